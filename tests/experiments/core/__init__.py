"""Tests of experiments/core."""
