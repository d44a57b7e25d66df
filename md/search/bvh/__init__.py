"""Bounding volume hierarchies: trees over particles sorted along a curve, and searches that traverse them."""
