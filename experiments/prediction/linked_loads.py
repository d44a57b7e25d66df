"""Loads of the force kernel of linked cell lists on a GPU, warp by warp (md/search/grid/linked.cu).

A thread loads its own rows; then for each row of three cells the heads of their lists together; then link
and position of each particle in these lists, and at a contact its velocity. The lanes of a warp wait for the
one with the longest lists in each row. Lists are in memory order here; atomics link them in another. The
stores of the forces are left out.
"""

from __future__ import annotations

from functools import partial
from typing import Any

import numpy as np

import md
from md.backend.prelude import axis_neighbours, displacement, dot, home_cell, load, neighbour_rows
from sfc.cache import LoadStream, WarpLoads
from sfc.cache.loads import LANES, READ, starts_of
from sfc.compile import callee, kernel

BLOCK = 256
REGISTERS = {"float32": 32, "float64": 54}  # as nvcc 13.0 prints them for compute capability 9.0
ROW = 4  # numbers of a position in layout aos4
PART = 16  # bytes that a lane loads at once


def linked_loads(simulation: md.Simulation) -> LoadStream:
    """Make the stream of the forces of a simulation at its present positions, in layout aos4.

    Args:
        simulation: with search "linked", on the CPU, without a reorder of the work.

    Raises:
        ValueError: another search or backend.
    """
    name, place = simulation.config.search.name, simulation.backend.name
    if name != "linked" or place != "cpu":
        raise ValueError(f"search {name!r} on {place!r}; allowed: 'linked' on 'cpu', as its arrays are read")
    view = simulation.device_view()
    particles, grid = view.particles, view.search.grid
    head, following = view.search.structure()
    n, parts = particles.n, ROW * particles.pos.itemsize // PART
    base = starts_of([PART * parts * n, PART * parts * n, 4 * len(head), 4 * n])
    reach = np.square(particles.pos.dtype.type(simulation.law.cutoff))
    given = n, particles.pos, head, following, grid.record, reach, parts, base
    return LoadStream(n, BLOCK, partial(_loads_of, given), REGISTERS[str(particles.pos.dtype)])


def _loads_of(given: tuple[Any, ...], warps: np.ndarray) -> WarpLoads:
    """Walk through some warps twice: to count, and to fill arrays of that size."""
    first, counts = np.zeros(len(warps) + 1, np.int64), np.zeros(2, np.int64)
    for _ in range(2):
        events, lanes = (int(count) for count in counts)
        found = WarpLoads(
            first, np.zeros(events + 1, np.int64), np.zeros(lanes, np.int64), np.zeros(events, bool),
            np.full(events, READ, np.uint8),
        )  # fmt: skip
        counts[:] = 0
        _walk(warps, *given, found, counts)
    return found


@callee
def _take(found, counts, address):
    # One more lane of the event that is open.
    if counts[1] < len(found.address):
        found.address[counts[1]] = address
    counts[1] += 1


@callee
def _close(found, counts, begin, waits):
    # Ends an event, if it has lanes: those from `begin` on.
    if counts[1] == begin:
        return
    if counts[0] < len(found.waits):
        found.waits[counts[0]] = waits
        found.start[counts[0] + 1] = counts[1]
    counts[0] += 1


@callee
def _take_rows(found, counts, base, rows, is_there, parts, waits):
    # The lanes that are there load a row of an array in parts of 16 bytes.
    for part in range(parts):
        begin = counts[1]
        for lane in range(len(rows)):
            if is_there[lane]:
                _take(found, counts, base + PART * (parts * rows[lane] + part))
        _close(found, counts, begin, waits and part == 0)


@kernel
def _walk(warps, n, pos, head, following, grid, reach2, parts, base, found, counts):
    g = grid[0]
    for w in range(len(warps)):
        found.first[w] = counts[0]
        own = np.arange(warps[w] * LANES, min(n, (warps[w] + 1) * LANES))
        is_there, at = np.ones(len(own), np.bool_), np.full((len(own), 3), -1)
        _take_rows(found, counts, base[0], own, is_there, parts, True)
        _take_rows(found, counts, base[1], own, is_there, parts, False)
        for row in range(len(neighbour_rows(g, home_cell(g, load(pos, own[0], g))))):
            for column in range(3):
                begin = counts[1]
                for lane in range(len(own)):
                    home = home_cell(g, load(pos, own[lane], g))
                    start, x = neighbour_rows(g, home)[row], axis_neighbours(g, 0, home[0])[column]
                    at[lane, column] = -1
                    if start >= 0 and x >= 0:
                        at[lane, column] = head[start + x]
                        _take(found, counts, base[2] + 4 * (start + x))
                _close(found, counts, begin, column == 0)
            _follow(g, own, at, pos, following, reach2, parts, base, found, counts)
    found.first[len(warps)] = counts[0]


@callee
def _follow(g, own, at, pos, following, reach2, parts, base, found, counts):
    # Follows the lists of three cells as one, a particle of each lane at a time.
    is_there = np.empty(len(own), np.bool_)
    partner = np.empty(len(own), np.int64)
    while True:
        begin = counts[1]
        for lane in range(len(own)):
            while at[lane, 0] < 0 and (at[lane, 1] >= 0 or at[lane, 2] >= 0):
                at[lane, 0], at[lane, 1], at[lane, 2] = at[lane, 1], at[lane, 2], -1
            partner[lane] = at[lane, 0]
            if partner[lane] >= 0:
                _take(found, counts, base[3] + 4 * partner[lane])
                at[lane, 0] = following[partner[lane]]
        if counts[1] == begin:
            return
        _close(found, counts, begin, True)
        for lane in range(len(own)):
            is_there[lane] = partner[lane] >= 0 and partner[lane] != own[lane]
        _take_rows(found, counts, base[0], partner, is_there, parts, False)
        for lane in range(len(own)):
            if is_there[lane]:
                dr = displacement(g, load(pos, own[lane], g), load(pos, partner[lane], g))
                is_there[lane] = dot(dr, dr) < reach2
        _take_rows(found, counts, base[1], partner, is_there, parts, True)
