"""Tests of md/simulation."""
