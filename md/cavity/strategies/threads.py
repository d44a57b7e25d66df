"""Strategy "threads": compiled loops over the points, shared by the threads."""

from __future__ import annotations

from dataclasses import dataclass

from md.backend.base import Backend
from md.cavity.base import Order, Strategy
from md.cavity.compiled import CompiledSolver
from md.cavity.scheme import Scheme


@dataclass(frozen=True)
class Threads(Strategy):
    """Configuration of compiled loops, each shared by `NUMBA_NUM_THREADS` threads.

    As the threaded program of Vickers (fluid_simulation), but each thread gets adjacent rows, so that two
    threads write to one cache line at the ends of their rows only.
    """

    name = "threads"
    layouts = ("arrays", "structs")
    any_order = True

    def build(self, scheme: Scheme, layout: str, order: Order, backend: Backend) -> CompiledSolver:
        """Make the solver, with all fields 0."""
        return CompiledSolver(scheme, layout, order, parts=backend.workers)
