"""Tests of experiments/measurement."""
