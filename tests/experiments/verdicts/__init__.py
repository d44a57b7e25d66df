"""Tests of experiments/verdicts."""
