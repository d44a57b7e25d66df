"""Curves: the catalogue, automata of one's own, encode, decode, traversal."""

from __future__ import annotations

import functools
from unittest import mock

import numpy as np
from hypothesis import strategies as st
from hypothesis.strategies import booleans, integers, sampled_from

import sfc
from sfc.automaton import registers
from sfc.registry import ALIASES
from tests.fuzz.drawing import RNG, among, chance, stored
from tests.fuzz.families import Family
from tests.fuzz.judge import Cases, cases, equal, require, same
from tests.fuzz.kinds import Kind, an, array, integer, maybe, text
from tests.sfc.automaton.test_curve import walked
from tests.strategies import CURVES

LISTED = 4096  # cells of a traversal that is looked at
KNOWN = sampled_from(CURVES).map(lambda of: sfc.curve(*of))
TRUTH = maybe(Kind(booleans()))


def coordinate(side: int) -> st.SearchStrategy[int]:
    """One of a grid, often at its ends."""
    return among(0, side - 1, integers(0, side - 1), integers(0, side - 1))


def check_walk(curve: sfc.Curve, cells: np.ndarray, index: np.ndarray, order: int) -> None:
    """Cells and indices belong together, as a walk along the tables has them."""
    equal((cells.shape, index.shape), ((len(index), curve.dim), (len(cells),)), "shapes")
    require((cells >= 0).all() and (cells < curve.base**order).all(), "a cell outside the grid")
    equal([walked(curve, cell, order) for cell in cells.tolist()], index.tolist(), "indices walked")


def coded(name: str):
    """Indices of cells or cells of indices, as the walk of the automaton has them."""

    def part(draw) -> Cases:
        curve = draw(KNOWN)
        order = draw(among(0, 1, 2, 3, integers(0, curve.max_order), curve.max_order))
        encodes, call = name == "encode", getattr(curve, name)
        fewest = 1 if draw(chance(0.1)) else registers.FEWEST  # a kernel for an order compiles for a second

        @functools.wraps(call)
        def called(*given, **named):
            with mock.patch.object(registers, "FEWEST", fewest):
                return call(*given, **named)

        width = curve.dim if encodes else None
        argument, shape = ("cells", (None, width)) if encodes else ("index", (None,))

        def end(order: int) -> int:
            return curve.base ** (order if encodes else curve.dim * order)

        def inside(plain: dict) -> bool:
            return all(0 <= c < end(plain["order"]) for c in plain[argument].ravel().tolist())

        def check(found, plain):
            require(inside(plain), "what is outside the grid was taken")
            require(found.dtype == (np.uint64 if encodes else np.int64), f"dtype {found.dtype}")
            pair = (plain[argument], found) if encodes else (found, plain[argument])
            check_walk(curve, *pair, plain["order"])

        entry = coordinate(end(order))
        one = st.lists(entry, min_size=width, max_size=width) if encodes else entry
        given = draw(st.lists(one, max_size=7)) * draw(sampled_from((1, 1, 1, 30)))
        valid = stored(given, end(order), width) if given or encodes else np.zeros(0)
        kinds = {argument: array(valid, "iu", shape), "order": integer(0, curve.max_order, (order, order))}
        return cases(called, kinds, name=f"{curve!r}.{name}", check=check, sure=inside,
                     always=("order",))  # fmt: skip

    return part


def traversal(draw) -> Cases:
    """All cells in turn."""
    curve = draw(KNOWN)
    most = max(k for k in range(8) if curve.base ** (curve.dim * k) <= LISTED)
    order = integer(0, 10**9, (0, most))

    def too_large(value):
        return order.admits(value) and most < int(value) and curve.base ** (curve.dim * int(value)) < 2**41

    kinds = {"order": order.but(too_large=too_large)}
    return cases(curve.traversal, kinds, name=f"{curve!r}.traversal", always=("order",))


def side(draw) -> Cases:
    """Sides of grids."""
    curve = draw(KNOWN)
    return cases(
        curve.side, {"order": integer(0, curve.max_order)}, name=f"{curve!r}.side", sure=True,
        always=("order",),
    )  # fmt: skip


NAMES = among(*[cases(names, {"dim": maybe(Kind(integers(1, 5)))}) for names in (sfc.curves, sfc.orderings)])


def by_name(draw) -> Cases:
    """Curves by name and dimension."""
    curve = draw(KNOWN)

    def check(found, plain):
        own = plain["name"] in sfc.curves(plain["dim"])
        named = plain["name"] if own else ALIASES.get(plain["name"])
        equal((found.name, found.dim), (named, plain["dim"]), "name and dimension")

    def there(plain):
        return "axiom" not in plain and plain["name"] in sfc.curves(plain["dim"])

    name = text(curve.name).but(admits=lambda value: isinstance(value, str))
    kinds = {"name": name, "dim": integer(1, 10**9, (curve.dim, curve.dim))}
    kinds |= {"axiom": text("A")} if draw(chance(0.15)) else {}
    return cases(sfc.curve, kinds, check=check, sure=there)


@st.composite
def tables(draw, states: int, cells: int) -> tuple[np.ndarray, np.ndarray]:
    """Tables of any automaton."""
    rng, ranks = draw(RNG), np.tile(np.arange(cells), (states, 1))
    return rng.permuted(ranks, axis=1), rng.integers(states, size=(states, cells))


def automata(draw) -> Cases:
    """Automata of one's own, encoded along."""
    dim, base, states = draw(st.tuples(sampled_from((1, 2, 2, 3)), sampled_from((2, 2, 3)), integers(1, 5)))
    rank, following = draw(tables(states, base**dim))
    kinds = {
        "name": text("mine"), "dim": integer(1, 10**9, (dim, dim)), "base": integer(2, 10**9, (base, base)),
        "rank": array(rank, "iu", (None, None)), "next": array(following, "iu", (None, None)),
        "start": integer(0, states - 1, (0, states - 1)),
    }  # fmt: skip

    def check(curve, plain):
        for name, given in plain.items():
            same(getattr(curve, name), given, name)
        for order in (1, 2):
            cells = np.random.default_rng(0).integers(0, plain["base"] ** order, (9, plain["dim"]))
            found = curve.encode(cells, order)
            check_walk(curve, cells, found, order)
            same(curve.decode(found, order), cells, "decoded again")

    return cases(sfc.Curve, kinds, check=check)


CHECKED = {
    "curve": an(sfc.Curve, KNOWN), "seed": integer(0), "continuous": TRUTH, "closed": TRUTH,
    "cells": integer(0, usual=(1, 64), most=10**4), "samples": integer(0, usual=(1, 20), most=10**4),
}  # fmt: skip
CHECKS = cases(sfc.testing.check_curve, CHECKED, documented=(AssertionError,))


def registered(draw) -> Cases:
    """Curves made known; the name is one's own, so that no other input is changed by it."""
    mine = sfc.Curve(f"own{draw(integers(0, 2**60))}", 2, 2, *draw(tables(1, 4)))

    def check(_, plain):
        curve = plain["curve"]
        known = (curve.name, curve.dim) in CURVES
        require(sfc.curve(curve.name, curve.dim) is curve or known, "not known by its name")

    return cases(sfc.register, {"curve": an(sfc.Curve, among(mine, mine, KNOWN))}, check=check)


PARTS = {coded("encode"): 10, coded("decode"): 10, traversal: 4, side: 1, NAMES: 1, by_name: 4, automata: 6}
FAMILY = Family(PARTS | {CHECKS: 2, registered: 2})
