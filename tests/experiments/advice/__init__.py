"""Tests of experiments/advice."""
