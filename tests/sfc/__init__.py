"""Tests of sfc."""
