"""Incompressible fluid on a grid: the lid-driven cavity and others of four sides (`md.Cavity`).

A strategy computes the steps; the scheme is the same for all but "staggered" (`md.cavity.scheme`).
"""

from md.cavity.base import Solver, Strategy
from md.cavity.cavity import Cavity
from md.cavity.scheme import Scheme
from md.cavity.sides import Inlet, Outlet, Sides, Wall
from md.cavity.strategies import STRATEGIES, register

__all__ = [
    "STRATEGIES",
    "Cavity",
    "Inlet",
    "Outlet",
    "Scheme",
    "Sides",
    "Solver",
    "Strategy",
    "Wall",
    "register",
]
