"""Tests of md/reorder."""
