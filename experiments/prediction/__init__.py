"""Predictions: systems, models of the caches that serve their reads, and how long the main job takes."""
