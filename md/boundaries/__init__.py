"""Boundaries: walls, gravity and shaking, wing, inflow. A new one is a file (pair) and one line here."""

from md.boundaries.base import ActiveBoundary, Boundary
from md.boundaries.inflow import Inflow
from md.boundaries.walls import ShakenWalls, Walls
from md.boundaries.wing import Wing
from md.particles.capabilities import BoundaryCapabilities as Capabilities
from md.registry import Registry

__all__ = [
    "BOUNDARIES",
    "WALLS",
    "ActiveBoundary",
    "Boundary",
    "Capabilities",
    "Inflow",
    "ShakenWalls",
    "Walls",
    "Wing",
    "register",
]

WALLS: Registry[Walls] = Registry("walls", Walls, {"walls": Walls, "shaken_walls": ShakenWalls})
BOUNDARIES: Registry[Boundary] = Registry("boundary", Boundary, {"wing": Wing, "inflow": Inflow})
register = BOUNDARIES.register
