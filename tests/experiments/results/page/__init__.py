"""Tests of `experiments.results.page`."""
