"""Orderings of boxes: scans, paths and curves, their ranks and cells, and five measures of locality."""

from __future__ import annotations

import functools
import itertools
import math

import numpy as np

import sfc
from tests.fuzz import references
from tests.fuzz.drawing import Draw
from tests.fuzz.families import Family
from tests.fuzz.families.curves import as_stored, automaton, coordinate, known
from tests.fuzz.judge import Case, made_case, require, same
from tests.fuzz.kinds import Array, Either, Few, Function, Integer, Is, Kind, Maybe, Text, Word

LISTED = 2**17  # cells of a box that may be listed; from 2**41 on none can be
COMPARED = 300  # cells of a box whose order is looked at whole
SIDES = (1, 2, 3, 4, 5, 7, 8)


def shape(draw: Draw, dim: int | None = None, cells: int = COMPARED) -> tuple[int, ...]:
    """A small box."""
    dim = dim or draw.choice((1, 2, 2, 3, 3, 4))
    while True:
        found = tuple(draw.choice(SIDES) for _ in range(dim))
        if math.prod(found) <= cells:
            return found


def shape_kind(of: tuple[int, ...]) -> Few:
    """Sides of a box of as many axes; larger ones than can be listed are left out."""
    return Few(
        Integer(1, 2**63 - 1), None, lambda draw: draw.choice((of, of, list(of), np.array(of))), LISTED, 2**41
    )


def order_kind(draw: Draw, dim: int) -> Either:
    """A name, or a curve."""
    names = sfc.orderings(dim)
    curves = [curve for curve in known() if curve.dim == dim]
    return Either(
        Word(*names), *([Is(sfc.Curve, draw.choice(curves))] if curves and draw.chance(0.2) else [])
    )


def options(draw: Draw, dim: int) -> dict[str, Kind]:
    """Options that some ordering takes."""
    found: dict[str, Kind] = {}
    if draw.chance(0.2):
        found["seed"] = Integer(0)
    if draw.chance(0.2):
        found["tile"] = Either(Integer(1), Few(Integer(1), (dim,)))
    return found


def path_of(ordering: sfc.Ordering) -> list[tuple[int, ...]]:
    """Its cells in turn."""
    return [tuple(map(int, cell)) for cell in ordering.traversal()]


def check_order(found: sfc.Ordering, plain: dict) -> None:
    """An ordering visits the cells of its box once, as the reference of its name does."""
    sides = tuple(plain["shape"])
    require(found.shape == sides and found.dim == len(sides) and found.size == math.prod(sides), f"{found!r}")
    require(all(type(side) is int for side in found.shape), "sides that are no Python integers")
    if found.size > COMPARED:
        return
    cells = sorted(itertools.product(*map(range, sides)))
    path = path_of(found)
    require(sorted(path) == cells, "a cell is missed or visited twice")
    ranks = [int(rank) for rank in found.rank(np.array(path))]
    require(ranks == sorted(set(ranks)), "ranks do not rise along the path")
    if found.is_dense:
        require(ranks == list(range(len(path))), "ranks of an order without gaps")
        require(found.cells(np.arange(len(path))).tolist() == [list(cell) for cell in path], "cells of ranks")
    dense = found.dense_ranks()
    require(
        [int(dense[references.row(cell, sides)]) for cell in path] == list(range(len(path))), "dense ranks"
    )
    if found.name == "row":
        require(path == sorted(cells, key=lambda cell: cell[::-1]), "another path than row by row")
    elif found.name == "zigzag":
        require(path == references.zigzag(sides), "another path than in stripes")
    elif found.name == "tiled":
        tile = plain.get("tile", 4)
        tile = (tile,) * len(sides) if isinstance(tile, int) else tile
        require(path == references.tiled(sides, tile), "another path than by tiles")
    elif found.name == "gilbert" and any(side % 2 == 0 for side in sides):
        steps = [sum(abs(a - b) for a, b in zip(p, q, strict=True)) for p, q in itertools.pairwise(path)]
        require(sorted(steps)[-1:] <= [2], "a long step")
    elif found.curve is not None:
        walk, order = automaton(found.curve[0].name, len(sides)), found.curve[1]
        require(ranks == [walk.encode(cell, order) for cell in path], "other ranks than the curve's")


def orderings(draw: Draw) -> Case:
    """Orderings by name or curve."""
    sides = shape(draw)
    call = draw.choice((sfc.ordering, sfc.ordering, sfc.covering))
    kinds = {"order": order_kind(draw, len(sides)), "shape": shape_kind(sides)}
    return made_case(
        draw, call.__name__, call, kinds | options(draw, len(sides)), check=check_order, calm=0.4
    )


@functools.cache
def made(name: str, sides: tuple[int, ...]) -> tuple[sfc.Ordering, list[tuple[int, ...]]]:
    """An ordering, and its path."""
    found = sfc.covering(name, sides)
    return found, path_of(found)


def an_ordering(draw: Draw, cells: int = COMPARED) -> tuple[sfc.Ordering, list[tuple[int, ...]]]:
    """One of a few."""
    sides = draw.choice(
        ((5,), (8,), (4, 4), (3, 7), (8, 8), (1, 5), (2, 3, 4), (4, 4, 4), (5, 3, 2), (2, 2, 2, 3))
    )
    if math.prod(sides) > cells:
        sides = (3, 4)
    return made(draw.choice(sfc.orderings(len(sides))), sides)


def ranks(draw: Draw) -> Case:
    """Ranks of cells."""
    ordering, path = an_ordering(draw)
    cells = [draw.choice(path) for _ in range(draw.randrange(6))]
    given = as_stored(draw, [list(c) for c in cells], max(ordering.shape))
    if not cells:
        given = np.zeros((0, ordering.dim))

    def inside(plain):
        return all(tuple(map(int, cell)) in set(path) for cell in plain["cells"].tolist())

    def check(found, plain):
        require(inside(plain), "a cell outside the box was taken")
        place = {cell: k for k, cell in enumerate(path)}
        along = [place[tuple(map(int, cell))] for cell in plain["cells"].tolist()]
        require(found.dtype == np.uint64, f"dtype {found.dtype}")
        if ordering.is_dense:
            require(found.tolist() == along, f"{found.tolist()}, and by the path {along}")
        else:
            by_rank, by_path = np.argsort(found, kind="stable"), np.argsort(along, kind="stable")
            require(by_rank.tolist() == by_path.tolist(), "another order than the path's")

    kinds = {"cells": Array(lambda _: given, "iu", (None, ordering.dim))}
    return made_case(draw, f"{ordering!r}.rank", ordering.rank, kinds, check=check, sure=inside)


def cells(draw: Draw) -> Case:
    """Cells of ranks."""
    ordering, path = an_ordering(draw)
    given = as_stored(draw, [coordinate(draw, len(path)) for _ in range(draw.randrange(6))], len(path))

    def inside(plain):
        return ordering.is_dense and all(0 <= int(rank) < len(path) for rank in plain["ranks"].tolist())

    def check(found, plain):
        require(inside(plain), "a rank past the end was taken")
        right = [list(path[int(rank)]) for rank in plain["ranks"].tolist()]
        require(found.tolist() == right, f"{found.tolist()}, and by the path {right}")

    kinds = {"ranks": Array(lambda _: given, "iu", (None,))}
    return made_case(draw, f"{ordering!r}.cells", ordering.cells, kinds, check=check, sure=inside)


def pieces(draw: Draw) -> Case:
    """The traversal in pieces."""
    ordering, path = an_ordering(draw)

    def check(found, plain):
        require(all(1 <= len(piece) <= plain["length"] for piece in found), "lengths of pieces")
        require([tuple(map(int, cell)) for piece in found for cell in piece] == path, "another path")

    def call(length):
        return list(ordering.chunks(length))

    return made_case(draw, f"{ordering!r}.chunks", call, {"length": Integer(1)}, check=check, sure=True)


def own(draw: Draw) -> Case:
    """Orderings of one's own functions."""
    sides = shape(draw)

    def rank(cells):
        return np.array([references.row(cell, sides) for cell in cells.tolist()], np.uint64)

    kinds = {
        "name": Text("mine"),
        "shape": shape_kind(sides),
        "rank": Function(rank),
    }

    def check(found, plain):
        if tuple(plain["shape"]) == sides and plain["rank"] is rank:
            require(
                path_of(found) == sorted(itertools.product(*map(range, sides)), key=lambda c: c[::-1]), "path"
            )

    return made_case(draw, "Ordering", sfc.Ordering, kinds, check=check, calm=0.3)


def measured(found: sfc.locality.Measure, right: list[float]) -> None:
    """A measure is the mean and the largest of all values."""
    if not right:
        require(math.isnan(found.mean) and math.isnan(found.worst), f"{found} of nothing")
        return
    if found.exact:
        require(found.samples == len(right), f"{found.samples} looked at, of {len(right)}")
        same(found.mean, math.fsum(right) / len(right), "mean", 1e-9)
        same(found.worst, max(right), "worst", 1e-9)
    else:
        require(found.worst <= max(right) * (1 + 1e-9), f"worst {found.worst}, and {max(right)} of all")


def locality(draw: Draw) -> Case:
    """Measures of an ordering, beside loops over all pairs, sections, windows and faces."""
    ordering, path = an_ordering(draw, 64)
    kinds: dict[str, Kind] = {"ordering": Is(sfc.Ordering, lambda _: ordering)}
    more: dict[str, Kind] = {"samples": Maybe(Integer(1, usual=(1, 40), most=10**5)), "seed": Integer(0)}
    name = draw.choice(("dilation", "bounding_box", "clusters", "edge_stretch", "partition_cut"))

    def check(found, plain):
        if name == "dilation":
            measured(found, references.dilations(path, float(plain.get("norm", 2))))
        elif name == "bounding_box":
            measured(found, references.box_shares(path))
        elif name == "edge_stretch":
            measured(found, references.stretches(path))
        elif name == "clusters":
            window = plain["window"]
            window = (window,) * ordering.dim if isinstance(window, int) else window
            measured(found, references.cluster_counts(path, ordering.shape, window))
        elif found.exact:
            cuts, pairs = references.cut(path, plain["pieces"])
            require(found.cut in cuts, f"{found.cut} cut, and by the reference {cuts}")
            same(found.share, found.cut / pairs if pairs else math.nan, "share", 1e-12)

    if name == "dilation":
        more["norm"] = Kind(lambda d: d.choice((1, 2, math.inf)))
    if name == "clusters":
        kinds["window"] = Either(
            Integer(1, min(ordering.shape), (1, 2)), Few(Integer(1, 8, (1, 3)), (ordering.dim,))
        )
    if name == "partition_cut":
        kinds["pieces"] = Integer(1, ordering.size, (1, min(8, ordering.size)))
    return made_case(draw, name, getattr(sfc.locality, name), kinds, optional=more, check=check)


BOXES = ((orderings, 5), (ranks, 4), (cells, 3), (pieces, 1), (own, 1))


def one_of(draw: Draw) -> Case:
    """An input of any of these."""
    makers, weights = zip(*BOXES, strict=True)
    return draw.choices(makers, weights)[0](draw)


FAMILIES = [Family("boxes", one_of, 10, known), Family("locality", locality, 5, known)]
