"""Tests of the loads of cores."""
