"""Searches in the cells of a grid, or among all particles: nothing is kept from step to step."""
