"""Tests of experiments/drawing."""
