"""Tests of md."""
