"""Steady solutions of the lid-driven cavity: published values, and errors of the schemes against them."""
