"""Initial states that are prepared by runs of the engine. A new one is its own file and one line here."""

from md.preparation.cooling import cooling_gas
from md.preparation.granular import copies_for, granular_gas, tiled_gas
from md.preparation.mixture import with_large_spheres
from md.preparation.shaken import THESIS_LENGTHS, shaken_box
from md.preparation.wing import LiftCase, newtonian_lift, wing_tunnel

__all__ = [
    "THESIS_LENGTHS",
    "LiftCase",
    "cooling_gas",
    "copies_for",
    "granular_gas",
    "newtonian_lift",
    "shaken_box",
    "tiled_gas",
    "wing_tunnel",
    "with_large_spheres",
]
