"""Tests of md/boundaries."""
