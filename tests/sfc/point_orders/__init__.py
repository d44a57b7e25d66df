"""Tests of sfc.orderings: the orderings of a box."""
