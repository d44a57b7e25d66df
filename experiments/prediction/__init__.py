"""Predictions: systems, and models of the caches that serve their reads."""
