"""Bounding volume hierarchies: Morton-ordered trees of boxes, and the searches that traverse them."""
