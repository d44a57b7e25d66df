"""Measurements: samples in rounds, times of steps, hardware counters, the check of results."""
