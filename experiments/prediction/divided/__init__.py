"""Gases that are divided among ranks: densities, and divisions of their cells."""
