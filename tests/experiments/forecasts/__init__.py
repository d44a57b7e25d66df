"""Tests of experiments/forecasts."""
