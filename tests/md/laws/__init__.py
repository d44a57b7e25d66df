"""Tests of md/laws."""
