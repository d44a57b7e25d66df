"""Predictions: systems, models of caches, how long an order lasts, and how long the main job takes."""
