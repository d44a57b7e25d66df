"""Bytes that each kernel of a step has to read and write at least, from the sizes of the arrays of a run.

Every array that a kernel needs is counted as read once, and every array that it fills as written once,
whatever a cache holds already. Partners that are read through a list or a cell are counted once, as part of
the particles' rows: a second read of a row is what memory order may save. Kernels are named as in the CUDA
sources; the CPU takes the same steps under other names.
"""

from __future__ import annotations

from typing import NamedTuple

import numpy as np

import md
from md.search.lists.blocks import BLOCK
from md.search.lists.list_search import ListSearch
from md.search.lists.pruned_lists import ENTRIES, ROW_BYTES

INDEX = 4  # bytes of an index, a key or an id


class Sizes(NamedTuple):
    """Sizes of the arrays of a run, in bytes unless stated otherwise.

    Attributes:
        n: number of particles.
        cells: number of cells of the search.
        pos: positions of all particles.
        rows: positions and velocities of all particles.
        out: what a force kernel writes: rows if fused, else forces.
        listed: entries of all lists, with padding to whole rows on a device, at least; 0 without lists.
        ranked: table of the ranks of all cells that a build reads; 0 for row-major cells.
        pruned: entries of all pruned lists, with the same padding, at least; 0 without pruned lists.
    """

    n: int
    cells: int
    pos: float
    rows: float
    out: float
    listed: float
    ranked: float
    pruned: float = 0


class Traffic(NamedTuple):
    """Least bytes of a launch of a kernel.

    Attributes:
        phase: of the step: "build", "force" or "integrate".
        bytes: read and written.
        at_each_step: whether it runs at every step, also if the search is not rebuilt.
    """

    phase: str
    bytes: float
    at_each_step: bool


def sizes_of(simulation: md.Simulation) -> Sizes:
    """Return the sizes of the arrays of a simulation that has taken a step.

    The lengths of neighbour lists are counted (`Simulation.accesses`), so lists may be built for this.

    Args:
        simulation: of any search.
    """
    search, backend, config = simulation.search, simulation.backend, simulation.config
    n, dim = len(simulation), simulation.system.particles.box.dim
    number = np.dtype(config.precision).itemsize
    fused = config.fused
    packed = fused and search.capabilities.packs and backend.packs_rows_for(simulation.law)
    width = 4 if backend.layout == "aos4" else dim
    rows = n * number * (2 * dim if packed else 2 * width)
    pos = n * number * width
    listed = pruned = 0.0
    if isinstance(search, ListSearch):
        listed = _list_bytes(np.diff(simulation.accesses().offsets), backend.runs_ahead)
        if search.policy.prunes:
            near = simulation.system.grid.cutoff + search.skin.inner
            pruned = _list_bytes(np.bincount(search.pairs(near).ravel(), minlength=n), backend.runs_ahead)
    cells = search.grid.size
    order = getattr(search.config, "cell_order", "row")
    if isinstance(search, ListSearch) and (order is None or backend.runs_ahead):
        order = "row"  # a device sorts for its lists by the number of the cell, whatever the order in memory
    ranked = 0.0 if order == "row" else INDEX * float(cells)
    return Sizes(n, cells, pos, rows, rows if fused else pos, listed, ranked, pruned)


def entry_bytes(runs_ahead: bool) -> float:
    """Return the bytes of an entry of a list; on a device those of a row over its entries."""
    return ROW_BYTES / ENTRIES if runs_ahead else INDEX


def _list_bytes(lengths: np.ndarray, runs_ahead: bool) -> float:
    """Return the bytes of entries of lists; on a device they are in rows, of which each particle has one."""
    if runs_ahead:
        return ROW_BYTES * float(np.maximum(1, -(-lengths // ENTRIES)).sum())
    return INDEX * float(lengths.sum())


def traffic(search: str, sizes: Sizes, runs_ahead: bool) -> dict[str, Traffic]:
    """Return the least bytes of a launch of each kernel, by name; empty for a search that is not known here.

    Args:
        search: its name: verlet, coherent or linked.
        sizes: of its arrays.
        runs_ahead: whether it runs on a device. There lists need no start and length, and if steps are fused
            nothing measures the displacements, and most builds leave the particles where they are in memory.
    """
    ends = INDEX * sizes.n  # start and length of a list, a key, a rank, a place: an index for each particle
    starts, moved = INDEX * (sizes.cells + 1), 2 * sizes.rows
    keys = sizes.pos + sizes.ranked + ends
    counted = {"cell_keys": keys, "count": 2 * ends + INDEX * sizes.cells}
    if runs_ahead:  # counted while they are computed
        counted = {"count_cells": keys + ends + INDEX * sizes.cells}
    build: dict[str, float] = {
        **counted,
        "scan": INDEX * sizes.cells + starts,
        "place": 3 * ends + starts,
        "sort_bins": ends + starts,
        "gather": ends + moved + 2 * ends,  # order; rows; ids
    }
    each_step: dict[str, float] = {}
    if search == "verlet":
        lists, pruned = sizes.listed, sizes.pruned
        if not runs_ahead:  # each block of lists has a start and a length, each entry a byte for its owner
            lists, pruned = (entries + entries / INDEX + 2 * ends / BLOCK for entries in (lists, pruned))
        is_guarded = runs_ahead and sizes.out == sizes.rows  # fused steps of a device keep no positions
        reference = 0 if is_guarded else sizes.pos
        listing = sizes.pos + reference + starts + sizes.ranked + lists
        if runs_ahead:  # by the order of the cells, and coordinates of one byte
            build["store_bytes"] = ends + sizes.pos + ends
            build["list_partners"] = listing + 2 * ends
        else:
            build["build_lists"] = listing
        if is_guarded:
            del build["gather"]
        each_step["force"] = sizes.rows + (pruned if sizes.pruned else lists) + sizes.out
        if not is_guarded:
            each_step["farthest"] = 2 * sizes.pos
    elif search == "coherent":
        each_step["force"] = sizes.rows + starts + sizes.ranked + sizes.out
    elif search == "linked":
        heads = INDEX * min(sizes.n, sizes.cells)  # of empty cells nothing is exchanged
        build = {"link": sizes.pos + ends + 2 * heads}
        each_step["force"] = sizes.rows + ends + INDEX * sizes.cells + sizes.out
    else:
        return {}
    found = {name: Traffic("build", moved, False) for name, moved in build.items()}
    if search == "verlet" and sizes.pruned:  # once a build at least
        found["force_and_prune"] = Traffic("force", sizes.rows + lists + pruned + sizes.out, False)
    for name, moved in each_step.items():
        found[name] = Traffic("build" if name == "farthest" else "force", moved, True)
    if sizes.out != sizes.rows:
        found["kick_drift"] = Traffic("integrate", 2 * sizes.rows + sizes.out, True)
    return found


def of_phase(moved: dict[str, Traffic], phase: str, steps_per_build: float) -> float:
    """Sum the least bytes of a phase over its kernels, for a step; NaN if none is known.

    Args:
        moved: of `traffic`.
        phase: "build", "force" or "integrate".
        steps_per_build: by which the bytes of a build are divided.
    """
    own = [one for one in moved.values() if one.phase == phase]
    if not own:
        return float("nan")
    return sum(one.bytes if one.at_each_step else one.bytes / steps_per_build for one in own)
