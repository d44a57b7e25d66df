"""States and boxes: what is kept is what was given, in double precision unless given in single."""

from __future__ import annotations

import math
from typing import Any

import numpy as np
from hypothesis import strategies as st
from hypothesis.strategies import SearchStrategy, integers, just, sampled_from

import md
from tests.fuzz.drawing import RNG, among, chance, laid
from tests.fuzz.drawing import stored as stored_integers
from tests.fuzz.families import Family
from tests.fuzz.judge import Cases, again, cases, require, same
from tests.fuzz.kinds import (
    LARGE,
    Kind,
    an,
    array,
    as_array,
    either,
    few,
    flag,
    integer,
    maybe,
    number,
    usual,
)

FARTHEST = 1000.0  # from an open side, in lengths
MAX_ID = 2**31 - 1
LENGTHS = sampled_from((2.0, 2.0 + 4e-16, 2.5, 3.0, 4.0, 6.0, 7.25, 10.0))
DIMS = integers(2, 3)


@st.composite
def boxes(draw, dim: int | None = None, kinds: str = "pwo", unit: float = 1.0) -> md.Box:
    """A box, each axis periodic (p), walled (w) or open (o); from two units of length a side on."""
    dim = dim or draw(DIMS)
    sides = [draw(sampled_from(kinds)) for _ in range(dim)]
    lengths = tuple(unit * draw(LENGTHS) for _ in range(dim))
    return md.Box(lengths, tuple(s == "p" for s in sides), tuple(s == "o" for s in sides))


def cloud(rng: np.random.Generator, within: md.Box, n: int, margin: float = 0.0, out: float = 0.0):
    """Positions in a box, at a margin from walls, and out of open sides by up to so many lengths."""
    sides, walled = np.array(within.lengths), ~(np.array(within.periodic) | within.open)
    low = np.where(walled, margin, -out * sides * within.open)
    return low + rng.random((n, within.dim)) * (sides - 2 * low) * 0.999


def stored(values: np.ndarray) -> SearchStrategy:
    """Numbers in some precision and layout, or as lists."""
    others = laid(values).map(lambda v: values if isinstance(v, np.ma.MaskedArray) else v)
    return among(values.tolist() if len(values) else values, values.astype(np.float32), others, *[values] * 3)


def check_box(found: md.Box, plain: dict) -> None:
    """A box has the sides that were given, for each axis or for all."""
    lengths, dim = plain["lengths"], len(plain["lengths"])
    require(found.lengths == lengths and all(type(x) is float for x in found.lengths), f"{found!r}")
    flags = np.broadcast_to(plain.get("periodic", True), dim), np.broadcast_to(plain.get("open", False), dim)
    same((found.periodic, found.open), flags, "sides")
    require(not (flags[0] & flags[1]).any(), "both periodic and open")
    same(found.volume, math.prod(lengths), "volume", 1e-12)


def made(draw) -> Cases:
    """Boxes."""
    dim = draw(DIMS)
    flags = either(flag(), few(flag(), (1, dim)))
    kinds = {"lengths": few(number(above=0), (2, 3), st.tuples(*[LENGTHS] * dim)), "periodic": flags}
    kinds["open"] = flags if draw(chance(0.3)) else Kind(False)
    return cases(md.Box, kinds, check=check_box)


def in_boxes(draw) -> Cases:
    """Positions folded back, judged outside, or differences of nearest images."""
    within, rng, name = draw(boxes()), draw(RNG), draw(sampled_from(("wrap", "outside", "nearest")))
    n, spread = draw(sampled_from((0, 1, 2, 5, 20))), draw(sampled_from((1, 1, 3)))
    pos = (cloud(rng, within, n) - 0.5) * spread
    sides, periodic = np.array(within.lengths), np.array(within.periodic)
    low, high = np.where(within.open, [-FARTHEST * sides, (1 + FARTHEST) * sides], [0 * sides, sides])
    argument = "apart" if name == "nearest" else "pos"

    def check(found, plain):
        again(getattr(within, name))(found, plain)
        good = plain[argument].astype(np.float64)
        right = (good < low) | (good > high) | (periodic & (good >= high))
        require(name != "outside" or (found == right.any(axis=-1)).all(), f"{found}, and {right} outside")

    kinds = {argument: array(stored(pos), "fiu", (None, within.dim))}
    return cases(getattr(within, name), kinds, name=f"{within!r}.{name}", check=check)


def ids(valid: Any, n: int) -> Kind:
    """Names of particles: integers from 0 on, all different."""

    def entries(found):
        return len(set(found.tolist())) == len(found) and all(0 <= v <= MAX_ID for v in found.tolist())

    return array(valid, "iu", (n,), entries)


def floats(valid: Any, shape: tuple[int | None, ...], low: Any = -np.inf, high: Any = np.inf) -> Kind:
    """Finite numbers between bounds, (n, dim) or (n,); of what is just at one nothing is said."""
    slack = 1e-6 * (1 + np.abs(np.nan_to_num(high, posinf=0)))

    @np.errstate(all="ignore")
    def entries(found):
        found = found.astype(np.float64)
        if not np.isfinite(found).all() or (found < low).any() or (found > high + slack).any():
            return False
        return True if (found < high - slack).all() and np.abs(found).max(initial=0) < 1e30 else None

    def plain(value):
        found = usual(value)
        return found if found.dtype == np.float32 or found.size > LARGE else found.astype(np.float64)

    return array(valid, "fiu", shape, entries).but(plain=plain)


def given(draw) -> Cases:
    """States."""
    within, rng, n = draw(boxes()), draw(RNG), draw(sampled_from((0, 1, 2, 5, 20)))
    pos, low, high = cloud(rng, within, n), *np.array(within.ends).T
    names = rng.permutation(3 * n + 1)[:n].tolist()
    kinds = {
        "box": an(md.Box, just(within)), "pos": floats(stored(pos), (None, within.dim), low, high),
        "vel": floats(stored(rng.normal(size=pos.shape)), (None, within.dim)),
        "id": maybe(ids(stored_integers(names, 61) if n else np.zeros(0, np.int64), n), 0.2),
        "radius": maybe(floats(stored(rng.random(n) + 0.2), (n,), 1e-9, 1e9), 0.2),
    }  # fmt: skip

    def together(plain):
        return plain["pos"].shape == plain["vel"].shape and len(plain["pos"]) == n and plain["box"] is within

    def check(found, plain):
        again(md.State)(found, plain)
        require(found.id.dtype == np.int32, "dtype of id")
        for name in ("pos", "vel", "id", "radius"):
            if len(found) and plain.get(name) is not None:
                same(getattr(found, name), plain[name], name)

    return cases(md.State, kinds, check=check, sure=together)


@st.composite
def states(draw, sizes=(0, 1, 2, 5, 20)) -> md.State:
    """A state of a few particles."""
    within, rng, n = draw(boxes()), draw(RNG), draw(sampled_from(sizes))
    pos, names = cloud(rng, within, n), rng.permutation(3 * n + 1)[:n]
    radius = rng.random(n) * 0.4 + 0.2 if draw(chance(0.2)) else None
    return md.State(pos, rng.normal(size=pos.shape), within, names, radius)


def taken(draw) -> Cases:
    """States in another memory order."""
    state = draw(states((0, 1, 5, 9)))
    n = len(state)
    order = draw(st.permutations(range(n)))[: draw(integers(0, n))]

    def entries(found):
        found = found.tolist()
        if any(not -n <= v < n for v in found) or len({v % n for v in found}) < len(found):
            return False
        return None if any(v < 0 for v in found) else True

    def admits(value):
        found = as_array(value)
        flags = found is not None and found.dtype.kind == "b"  # they choose, as in numpy
        return None if flags else kind.admits(value)

    whole = np.array(order, np.int64)
    kind = array(among(whole, whole, order or whole), "iu", (None,), entries)
    kinds = {"order": kind.but(admits=admits)}
    return cases(state.take, kinds, name=f"{state!r}.take")


def sections(draw) -> Cases:
    """What is seen in a plane."""
    state = draw(states().filter(lambda state: state.box.dim == 3))
    kinds = {"state": an(md.State, just(state)), "axis": integer(0, 2, (0, 2))}
    kinds["at"] = maybe(number(0, usual=(0.0, min(state.box.lengths))))
    return cases(md.observe.section, kinds)


SUMS = md.observe.kinetic_energy, md.observe.temperature, md.observe.momentum
SEEN = among(*[cases(sums, {"state": an(md.State, states())}) for sums in SUMS])
FAMILY = Family({made: 12, in_boxes: 6, given: 21, taken: 3, sections: 2, SEEN: 4})
