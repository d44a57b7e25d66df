"""Tests of `experiments.files`."""
