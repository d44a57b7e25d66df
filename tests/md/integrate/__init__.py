"""Tests of md/integrate."""
