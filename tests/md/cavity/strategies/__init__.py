"""Tests of md/cavity/strategies."""
