"""Particles: box, state, arrays on a backend, cell grid and sort by cell."""
