"""Pair laws: how two particles act on each other. A new law is its own file (pair) and one line here."""

from md.laws.contact import SpringDashpot
from md.laws.friction import FrictionalSpringDashpot
from md.laws.pair import PairLaw, pair_function
from md.laws.walls import ShakenWalls, Walls

__all__ = [
    "LAWS",
    "WALLS",
    "FrictionalSpringDashpot",
    "PairLaw",
    "ShakenWalls",
    "SpringDashpot",
    "Walls",
    "pair_function",
]

LAWS: dict[str, type] = {  # frozen dataclasses
    "spring_dashpot": SpringDashpot,
    "frictional_spring_dashpot": FrictionalSpringDashpot,
}
WALLS: dict[str, type] = {"walls": Walls, "shaken_walls": ShakenWalls}
