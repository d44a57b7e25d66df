"""Orderings of boxes: scans, paths and curves, their ranks and cells, and five measures of locality."""

from __future__ import annotations

import functools
import itertools
import math

import numpy as np
from hypothesis import strategies as st
from hypothesis.strategies import sampled_from

import sfc
from tests.fuzz import references
from tests.fuzz.drawing import among, chance, stored
from tests.fuzz.families import Family
from tests.fuzz.families.curves import automaton, coordinate
from tests.fuzz.judge import Cases, cases, equal, require, same
from tests.fuzz.kinds import Kind, an, array, either, few, function, integer, text, word
from tests.strategies import CURVES

LISTED = 2**17  # cells of a box that may be listed; from 2**41 on none can be
COMPARED = 300  # cells of a box whose order is looked at whole
SIDES = sampled_from((1, 2, 3, 4, 5, 7, 8))
DIMS = sampled_from((1, 2, 2, 3, 3, 4))
SHAPES = DIMS.flatmap(lambda n: st.tuples(*[SIDES] * n)).filter(lambda sides: math.prod(sides) <= COMPARED)
MADE = ((5,), (8,), (4, 4), (3, 7), (8, 8), (1, 5), (2, 3, 4), (4, 4, 4), (5, 3, 2), (2, 2, 2, 3))
Path = list[tuple[int, ...]]


def shape_kind(of: tuple[int, ...]) -> Kind:
    """Sides of a box of as many axes; larger ones than can be listed are left out."""
    return few(integer(1, 2**63 - 1), None, among(of, of, list(of), np.array(of)), LISTED, 2**41)


def path_of(ordering: sfc.Ordering) -> Path:
    """Its cells in turn."""
    return [tuple(cell) for cell in ordering.traversal().tolist()]


def check_order(found: sfc.Ordering, plain: dict) -> None:
    """An ordering visits the cells of its box once, as the reference of its name does."""
    sides = tuple(plain["shape"])
    equal((found.shape, found.dim, found.size), (sides, len(sides), math.prod(sides)), "shape, dim, size")
    require(all(type(side) is int for side in found.shape), "sides that are no Python integers")
    if found.size > COMPARED:
        return
    path, rows = path_of(found), references.tiled(sides, sides)
    require(sorted(path) == sorted(rows), "a cell is missed or visited twice")
    ranks, every = found.rank(np.array(path)).tolist(), list(range(len(path)))
    require(ranks == sorted(set(ranks)), "ranks do not rise along the path")
    if found.is_dense:
        require(ranks == every, "ranks of an order without gaps")
        require([*map(tuple, found.cells(np.arange(len(path))).tolist())] == path, "cells of ranks")
    dense = found.dense_ranks()
    require([int(dense[rows.index(cell)]) for cell in path] == every, "dense ranks")
    tile = plain.get("tile", 4)
    tile = (tile,) * len(sides) if isinstance(tile, int) else tile
    known = {"row": rows, "zigzag": references.zigzag(sides), "tiled": references.tiled(sides, tile)}
    require(path == known.get(found.name, path), "another path than the reference's")
    if found.name == "gilbert" and any(side % 2 == 0 for side in sides):
        steps = [sum(abs(a - b) for a, b in zip(p, q, strict=True)) for p, q in itertools.pairwise(path)]
        require(max(steps, default=0) <= 2, "a long step")
    elif found.curve is not None:
        walk, order = automaton(found.curve[0].name, len(sides)), found.curve[1]
        require(ranks == [walk.encode(cell, order) for cell in path], "other ranks than the curve's")


def orderings(draw) -> Cases:
    """Orderings by name or curve, with options that some take."""
    sides = draw(SHAPES)
    dim = len(sides)
    order, curves = word(*sfc.orderings(dim)), [sfc.curve(*of) for of in CURVES if of[1] == dim]
    if curves and draw(chance(0.2)):
        order = either(order, an(sfc.Curve, sampled_from(curves)))
    more = {"seed": integer(0), "tile": either(integer(1), few(integer(1), (dim,)))}
    kinds = {"order": order, "shape": shape_kind(sides)}
    kinds |= {name: kind for name, kind in more.items() if draw(chance(0.2))}
    call = draw(sampled_from((sfc.ordering, sfc.ordering, sfc.covering)))
    return cases(call, kinds, check=check_order, calm=0.4)


@functools.cache
def made(name: str, sides: tuple[int, ...]) -> tuple[sfc.Ordering, Path]:
    """An ordering, and its path."""
    found = sfc.covering(name, sides)
    return found, path_of(found)


@st.composite
def some_orderings(draw, most: int = COMPARED) -> tuple[sfc.Ordering, Path]:
    """One of a few orderings of boxes of so many cells, and its path."""
    sides = draw(sampled_from([sides for sides in MADE if math.prod(sides) <= most]))
    return made(draw(sampled_from(sfc.orderings(len(sides)))), sides)


def ranks(draw) -> Cases:
    """Ranks of cells."""
    ordering, path = draw(some_orderings())
    cells = draw(st.lists(sampled_from(path).map(list), max_size=5))
    place = {cell: k for k, cell in enumerate(path)}
    given = stored(cells, max(ordering.shape)) if cells else np.zeros((0, ordering.dim))

    def inside(plain):
        return all(tuple(cell) in place for cell in plain["cells"].tolist())

    def check(found, plain):
        require(inside(plain), "a cell outside the box was taken")
        along = [place[tuple(cell)] for cell in plain["cells"].tolist()]
        require(found.dtype == np.uint64, f"dtype {found.dtype}")
        if ordering.is_dense:
            equal(found.tolist(), along, "ranks")
        else:
            same(np.argsort(found, kind="stable"), np.argsort(along, kind="stable"), "order")

    kinds = {"cells": array(given, "iu", (None, ordering.dim))}
    return cases(ordering.rank, kinds, name=f"{ordering!r}.rank", check=check, sure=inside)


def cells(draw) -> Cases:
    """Cells of ranks."""
    ordering, path = draw(some_orderings())
    given = stored(draw(st.lists(coordinate(len(path)), max_size=5)), len(path))

    def inside(plain):
        return ordering.is_dense and all(0 <= rank < len(path) for rank in plain["ranks"].tolist())

    def check(found, plain):
        require(inside(plain), "a rank past the end was taken")
        equal(found.tolist(), [list(path[rank]) for rank in plain["ranks"].tolist()], "cells")

    kinds = {"ranks": array(given, "iu", (None,))}
    return cases(ordering.cells, kinds, name=f"{ordering!r}.cells", check=check, sure=inside)


def pieces(draw) -> Cases:
    """The traversal in pieces."""
    ordering, path = draw(some_orderings())

    def check(found, plain):
        found = list(found)
        require(all(1 <= len(piece) <= plain["length"] for piece in found), "lengths of pieces")
        require([tuple(cell) for piece in found for cell in piece.tolist()] == path, "another path")

    return cases(ordering.chunks, {"length": integer(1)}, name=f"{ordering!r}.chunks", check=check, sure=True)


def own(draw) -> Cases:
    """Orderings of one's own functions."""
    sides = draw(SHAPES)
    rows = references.tiled(sides, sides)

    def rank(cells):
        return np.array([rows.index(tuple(cell)) for cell in cells.tolist()], np.uint64)

    def check(found, plain):
        if tuple(plain["shape"]) == sides and plain["rank"] is rank:
            require(path_of(found) == rows, "another path")

    kinds = {"name": text("mine"), "shape": shape_kind(sides), "rank": function(rank)}
    return cases(sfc.Ordering, kinds, check=check, calm=0.3)


FAMILY = Family({orderings: 5, ranks: 4, cells: 3, pieces: 1, own: 1})
