"""Tests of md/observe."""
