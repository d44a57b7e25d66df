"""Measurements: samples in rounds, times of steps, hardware counters, and the check before a time is taken."""
