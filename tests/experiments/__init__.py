"""Tests of the experiments and of what they share."""
