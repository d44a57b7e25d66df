"""Tests of md/cavity."""
