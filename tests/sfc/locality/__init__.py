"""Tests of sfc.locality: the measures of locality."""
