"""Tests of experiments/processes."""
