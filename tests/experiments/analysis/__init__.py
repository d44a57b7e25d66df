"""Tests of experiments/analysis."""
