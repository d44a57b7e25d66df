"""Boundaries: walls, gravity and shaking, wing, inflow. A new one is a file (pair) and one line here."""

from md.boundaries.inflow import Inflow
from md.boundaries.walls import ShakenWalls, Walls
from md.boundaries.wing import Wing

__all__ = ["BOUNDARIES", "WALLS", "Inflow", "ShakenWalls", "Walls", "Wing"]

WALLS: dict[str, type] = {"walls": Walls, "shaken_walls": ShakenWalls}
BOUNDARIES: dict[str, type] = {"wing": Wing, "inflow": Inflow}
