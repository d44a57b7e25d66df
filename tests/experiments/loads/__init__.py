"""Tests of experiments.loads."""
