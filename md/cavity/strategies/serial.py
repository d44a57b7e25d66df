"""Strategy "serial": compiled loops over the points, on one thread."""

from __future__ import annotations

from dataclasses import dataclass

from md.backend.base import Backend
from md.cavity.base import Order, Strategy
from md.cavity.compiled import CompiledSolver
from md.cavity.scheme import Scheme


@dataclass(frozen=True)
class Serial(Strategy):
    """Configuration of compiled loops on one thread, as the serial program of Vickers (fluid_simulation).

    That program has the layout "structs": all numbers of a point side by side in memory.
    """

    name = "serial"
    layouts = ("arrays", "structs")
    any_order = True

    def build(self, scheme: Scheme, layout: str, order: Order, backend: Backend) -> CompiledSolver:
        """Make the solver, with all fields 0."""
        return CompiledSolver(scheme, layout, order, parts=1)
