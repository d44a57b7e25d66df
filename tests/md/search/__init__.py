"""Tests of md/search."""
