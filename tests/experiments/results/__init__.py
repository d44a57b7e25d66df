"""Tests of experiments/results."""
