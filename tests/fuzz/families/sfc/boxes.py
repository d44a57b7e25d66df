"""Orderings of boxes: scans, paths and curves, their ranks and cells."""

from __future__ import annotations

import functools
import math
from collections.abc import Callable

import numpy as np
from hypothesis import strategies as st
from hypothesis.strategies import just, sampled_from

import sfc
from tests.fuzz.drawing import among, chance, stored
from tests.fuzz.families import Family
from tests.fuzz.families.sfc.curves import coordinate
from tests.fuzz.judge import Cases, cases, equal, require, same
from tests.fuzz.kinds import Kind, an, array, either, few, integer, text, word
from tests.strategies import CURVES, all_cells

LISTED = 2**17  # cells of a box that may be listed; from 2**41 on none can be
COMPARED = 300  # cells of a box whose order is looked at whole
SIDES = sampled_from((1, 2, 3, 4, 5, 7, 8))
DIMS = sampled_from((1, 2, 2, 3, 3, 4))
SHAPES = DIMS.flatmap(lambda n: st.tuples(*[SIDES] * n)).filter(lambda sides: math.prod(sides) <= COMPARED)
MADE = ((5,), (8,), (4, 4), (3, 7), (8, 8), (1, 5), (2, 3, 4), (4, 4, 4), (5, 3, 2), (2, 2, 2, 3))


def shape_kind(of: tuple[int, ...]) -> Kind:
    """Sides of a box of as many axes; larger ones than can be listed are left out."""
    return few(integer(1, 2**63 - 1), None, among(of, of, list(of), np.array(of)), LISTED, 2**41)


def ordered(call: Callable) -> Callable[[sfc.Ordering, dict], None]:
    """Require that an ordering visits the cells of its box in turn, as that of plain arguments does."""

    def check(found, plain):
        sides = tuple(plain["shape"])
        equal((found.shape, found.dim, found.size), (sides, len(sides), math.prod(sides)), "shape, dim, size")
        require(all(type(side) is int for side in found.shape), "sides that are no Python integers")
        if found.size <= COMPARED:
            sfc.testing.check_ordering(found)
            same(found.traversal(), call(**plain).traversal(), "path")

    return check


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
    return cases(call, kinds, check=ordered(call), calm=0.4)


made = functools.cache(sfc.covering)


@st.composite
def some_orderings(draw, most: int = COMPARED) -> sfc.Ordering:
    """One of a few orderings of boxes of so many cells."""
    sides = draw(sampled_from([sides for sides in MADE if math.prod(sides) <= most]))
    return made(draw(sampled_from(sfc.orderings(len(sides)))), sides)


def ranks(draw) -> Cases:
    """Ranks of cells."""
    ordering = draw(some_orderings())
    cells = draw(st.lists(st.tuples(*map(coordinate, ordering.shape)).map(list), max_size=5))
    given = stored(cells, max(ordering.shape)) if cells else np.zeros((0, ordering.dim))
    kind = array(given, "iu", (None, ordering.dim), lambda of: ((of >= 0) & (of < ordering.shape)).all())
    return cases(ordering.rank, {"cells": kind}, name=f"{ordering!r}.rank", sure=True)


def cells(draw) -> Cases:
    """Cells of ranks."""
    ordering = draw(some_orderings())
    given = stored(draw(st.lists(coordinate(ordering.size), max_size=5)), ordering.size)
    kind = array(given, "iu", (None,), lambda of: (of >= 0).all() and (of < ordering.size).all())
    return cases(ordering.cells, {"ranks": kind}, name=f"{ordering!r}.cells", sure=ordering.is_dense)


def pieces(draw) -> Cases:
    """The traversal in pieces."""
    ordering = draw(some_orderings())
    return cases(ordering.chunks, {"length": integer(1)}, name=f"{ordering!r}.chunks", sure=True)


def own(draw) -> Cases:
    """Orderings of one's own functions."""
    sides = draw(SHAPES)
    rows = all_cells(sides).tolist()

    def rank(cells):
        return np.array([rows.index(cell) for cell in cells.tolist()], np.uint64)

    kinds = {"name": text("mine"), "shape": shape_kind(sides), "rank": an(Callable, just(rank))}
    return cases(sfc.Ordering, kinds, calm=0.3)


FAMILY = Family({orderings: 5, ranks: 4, cells: 3, pieces: 1, own: 1})
