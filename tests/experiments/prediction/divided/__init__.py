"""Tests of experiments/prediction."""
