"""Tests of sfc.curves: the curve families."""
