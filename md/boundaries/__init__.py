"""Boundaries: walls, gravity, wing and inflow."""
