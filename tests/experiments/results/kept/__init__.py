"""Tests of the runs kept for reference."""
