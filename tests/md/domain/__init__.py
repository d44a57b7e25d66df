"""Tests of the division among ranks."""
