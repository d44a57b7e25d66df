"""Tests of experiments/results/claims."""
