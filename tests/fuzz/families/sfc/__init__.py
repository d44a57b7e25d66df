"""Families of curves, orderings, models of a cache and measures of locality."""
