"""Tests of the models of a core."""
