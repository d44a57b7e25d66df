"""Tests of `experiments.report`."""
