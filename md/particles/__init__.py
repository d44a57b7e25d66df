"""Particles: box, state, device arrays, cell grid and sorting by cell."""
