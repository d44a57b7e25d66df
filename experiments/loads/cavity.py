"""Loads and stores of a sweep over the pressure of a cavity on a GPU (md/cavity/strategies/cuda.cu).

A thread loads the places of its point and of the four neighbours from tables; then the pressures of the
neighbours and the right-hand side together. Row by row the places are computed, and no table is read. The
last threads are those of the boundary points: each loads the point inside from which it copies, and computes
what is computed there, or loads a fixed value; then it loads its own place. The other launches of a step,
two before the sweeps and one after them, are not modelled.
"""

from __future__ import annotations

from typing import NamedTuple

import numpy as np

import md
from experiments.loads.force import StepLoads, block_of
from md.cavity.boundary import BoundaryTable, boundary_table
from md.cavity.memory import Stencil, cell_dtype, places, stencil
from md.cavity.strategies.cuda import by_place
from sfc import checks
from sfc.cache import end, in_lockstep, note, starts_of
from sfc.cache.loads import READ, WRITTEN
from sfc.compile import callee, kernel

STEM = "md.cavity.strategies.cuda"
NUMBER = 4  # bytes of a place in a table
PRESSURE, NEXT, SOURCE, POINTS, SOURCES, VALUES, TABLES = range(7)  # arrays; five tables are the last
AFTER = 16  # places of the points inside; those of the boundary follow


class Points(NamedTuple):
    """Points of a cavity in memory, as a walk through the kernel needs them.

    Attributes:
        around: places of the points inside and of their neighbours, by increasing place.
        edges: places of the boundary points, and numbers of the points inside from which they copy.
        has_tables: whether the kernel reads `around`; else it computes places.
        size: bytes of a number.
        apart: bytes from one value of a field to the next.
        base: addresses of pressure, next pressure, right-hand side, arrays of `edges` and of `around`.
    """

    around: Stencil
    edges: BoundaryTable
    has_tables: bool
    size: int
    apart: int
    base: np.ndarray

    def swapped(self) -> Points:
        """Return the same with the pressures in the roles of the sweep before."""
        return self._replace(base=np.concatenate([self.base[[NEXT, PRESSURE]], self.base[SOURCE:]]))


def cavity_loads(cavity: md.Cavity) -> StepLoads:
    """Make the streams of a sweep of strategy "cuda", and of the sweep before it.

    They are those of the shape, sides, order, layout and precision of a cavity; its own strategy may be any
    that takes these.

    Args:
        cavity: with pressure "jacobi" and two sweeps a step or more.

    Raises:
        TypeError: no cavity.
        ValueError: another pressure, or a single sweep.
    """
    checks.instance("cavity", cavity, md.Cavity, "an md.Cavity", "make md.Cavity(shape, viscosity=0.1)")
    scheme = cavity.scheme
    if scheme.pressure != "jacobi" or scheme.sweeps < 2:
        raise ValueError(
            f"a cavity with pressure {scheme.pressure!r} and sweeps = {scheme.sweeps}; allowed: 'jacobi' and "
            "2 or more, so that a sweep follows a sweep"
        )
    points = _points_of(cavity)
    block = block_of(STEM, "sweep", scheme.dtype)
    items = scheme.shape[0] * scheme.shape[1]
    force, before = (in_lockstep(_sweep, (one,), items, **block) for one in (points, points.swapped()))
    return StepLoads(force, [before])


def _points_of(cavity: md.Cavity) -> Points:
    """Return the points of a cavity in memory."""
    scheme, order = cavity.scheme, cavity.order
    place, size = places(order, scheme.shape), scheme.dtype.itemsize
    around = stencil(place)
    edges = by_place(boundary_table(scheme, "p"), place, around)
    tables = [NUMBER * len(edges.points)] * 2 + [size * len(edges.points)] + [NUMBER * len(around.centre)] * 5
    fields = "p", "p_next", "source"
    if cavity.layout == "structs":
        cell = cell_dtype(scheme.dtype)
        assert cell.fields
        apart = cell.itemsize
        cells, *others = starts_of([apart * place.size, *tables])
        base = [cells + cell.fields[name][1] for name in fields] + others
    else:
        apart = size
        base = [*starts_of([size * place.size] * len(fields) + tables)]
    return Points(around, edges, order != "row", size, apart, np.array(base, np.int64))


@callee
def _note_point(noted, points, place, k):
    """Note what is loaded for the pressure of point k inside, in 10 places."""
    around, base = points.around, points.base
    if points.has_tables:
        for turn in range(5):  # the compiler takes the neighbours first, and the centre last
            table = TABLES + (turn + 1) % 5
            note(noted, place + turn, base[table] + NUMBER * k, READ, turn == 0)
    note(noted, place + 5, base[PRESSURE] + points.apart * around.west[k], READ, True)
    note(noted, place + 6, base[PRESSURE] + points.apart * around.east[k], READ, False)
    note(noted, place + 7, base[PRESSURE] + points.apart * around.south[k], READ, False)
    note(noted, place + 8, base[PRESSURE] + points.apart * around.north[k], READ, False)
    note(noted, place + 9, base[SOURCE] + points.apart * around.centre[k], READ, False)


@kernel
def _sweep(threads, points, noted):
    inner = len(points.around.centre)
    base = points.base
    for t in range(len(threads)):
        k = threads[t]
        if k < inner:
            _note_point(noted, points, 0, k)
            note(noted, AFTER - 1, base[NEXT] + points.apart * points.around.centre[k], WRITTEN, True)
        else:
            edge = k - inner
            note(noted, AFTER, base[SOURCES] + NUMBER * edge, READ, True)
            source = points.edges.sources[edge]
            if source >= 0:
                _note_point(noted, points, AFTER + 1, source)
            else:
                note(noted, AFTER + 11, base[VALUES] + points.size * edge, READ, True)
            note(noted, AFTER + 12, base[POINTS] + NUMBER * edge, READ, True)
            note(noted, AFTER + 13, base[NEXT] + points.apart * points.edges.points[edge], WRITTEN, True)
        end(noted, t)
