"""States and boxes: what is kept is what was given, in double precision unless given in single."""

from __future__ import annotations

import math
from typing import Any

import numpy as np

import md
from tests.fuzz.drawing import Draw, laid
from tests.fuzz.families import Family
from tests.fuzz.judge import Case, made_case, require, same
from tests.fuzz.kinds import Array, Either, Few, Flag, Integer, Is, Kind, Maybe, Number

FARTHEST = 1000.0  # from an open side, in lengths
MAX_ID = 2**31 - 1
LARGE = 10**6  # entries of an array that is not looked at
LENGTHS = (2.0, 2.5, 3.0, 4.0, 6.0, 7.25, 10.0)


def box(draw: Draw, dim: int | None = None, kinds: str = "pwo") -> md.Box:
    """A box, each axis periodic (p), walled (w) or open (o)."""
    dim = dim or draw.choice((2, 3))
    sides = [draw.choice(kinds) for _ in range(dim)]
    lengths = tuple(draw.choice(LENGTHS) for _ in range(dim))
    return md.Box(lengths, tuple(s == "p" for s in sides), tuple(s == "o" for s in sides))


def cloud(draw: Draw, within: md.Box, n: int | None = None) -> np.ndarray:
    """Positions in a box."""
    n = draw.choice((0, 1, 2, 5, 20)) if n is None else n
    return draw.rng.random((n, within.dim)) * np.array(within.lengths) * 0.999


def stored(draw: Draw, values: np.ndarray) -> Any:
    """Numbers in some precision and layout, or as lists."""
    kind = draw.randrange(6)
    if kind == 0:
        return values.tolist() if len(values) else values
    if kind == 1:
        return values.astype(np.float32)
    if kind == 2:
        other = laid(draw, values)
        return values if isinstance(other, np.ma.MaskedArray) else other
    return values


def boxes(draw: Draw) -> Case:
    """Boxes."""
    dim = draw.choice((2, 3))
    flags = Either(Flag(), Few(Flag(), (1, dim)))
    optional = {"periodic": flags, "open": flags if draw.chance(0.3) else Kind(False)}
    kinds = {"lengths": Few(Number(above=0), (2, 3), lambda d: tuple(d.choice(LENGTHS) for _ in range(dim)))}

    def all_flags(plain: Any, dim: int, default: bool) -> tuple[bool, ...]:
        plain = default if plain is None else plain
        given = (plain,) if isinstance(plain, (bool, np.bool_)) else tuple(plain)
        return given * dim if len(given) == 1 else given

    def check(found, plain):
        lengths = plain["lengths"]
        require(found.lengths == lengths and all(type(x) is float for x in found.lengths), f"{found!r}")
        periodic = all_flags(plain.get("periodic"), len(lengths), True)
        open_ = all_flags(plain.get("open"), len(lengths), False)
        require((found.periodic, found.open) == (periodic, open_), f"{found!r}, and {periodic}, {open_}")
        require(not any(p and o for p, o in zip(periodic, open_, strict=True)), "both periodic and open")
        same(found.volume, math.prod(lengths), "volume", 1e-12)

    return made_case(draw, "Box", md.Box, kinds, optional=optional, check=check)


def in_boxes(draw: Draw) -> Case:
    """Positions folded back, judged outside, and differences of nearest images."""
    within = box(draw)
    name = draw.choice(("wrap", "outside", "nearest"))
    spread = draw.choice((1, 1, 3))
    pos = (cloud(draw, within) - 0.5) * spread
    low = [-FARTHEST * side if o else 0.0 for side, o in zip(within.lengths, within.open, strict=True)]
    high = [(1 + FARTHEST) * s if o else s for s, o in zip(within.lengths, within.open, strict=True)]

    def check(found, plain):
        given = np.asarray(plain["pos" if name != "nearest" else "apart"])
        if name == "outside":
            right = [
                any(
                    x < a or x > b or (p and x >= b)
                    for x, a, b, p in zip(row, low, high, within.periodic, strict=True)
                )
                for row in given.tolist()
            ]
            require(np.asarray(found).tolist() == right, f"{found}, and by the reference {right}")
            return
        good = given.astype(np.float64)
        if not np.isfinite(good).all() or (np.abs(good) > 1e6).any():
            return
        right = good.copy()
        for axis, (side, periodic) in enumerate(zip(within.lengths, within.periodic, strict=True)):
            if periodic:
                count = np.floor(good[:, axis] / side) if name == "wrap" else np.round(good[:, axis] / side)
                right[:, axis] -= side * count
        apart = np.abs(np.asarray(found, np.float64) - right)
        sides = np.where(within.periodic, within.lengths, np.inf)
        off = np.minimum(apart, np.abs(apart - sides))
        require(found.shape == given.shape and (off <= 1e-4).all(), f"{found}, and by the reference {right}")
        if name == "wrap":
            inside = (found >= 0) & (found < np.array(within.lengths)) | ~np.array(within.periodic)
            require(inside.all(), "a position that is not folded back")

    kinds = {
        "pos" if name != "nearest" else "apart": Array(lambda d: stored(d, pos), "fiu", (None, within.dim))
    }
    return made_case(draw, f"{within!r}.{name}", getattr(within, name), kinds, check=check)


class Ids(Array):
    """Names of particles."""

    def __init__(self, valid: Any, n: int):
        super().__init__(valid, "iu", (n,))

    def admits(self, value: Any) -> bool | None:
        """Integers from 0 on, all different."""
        good = super().admits(value)
        if not good:
            return good
        found = [int(v) for v in np.asarray(value).tolist()]
        return len(set(found)) == len(found) and all(0 <= v <= MAX_ID for v in found)


class Floats(Array):
    """Finite numbers between bounds, (n, dim) or (n,)."""

    def __init__(self, valid: Any, shape: tuple[int | None, ...], low: Any = -np.inf, high: Any = np.inf):
        super().__init__(valid, "fiu", shape)
        self.low, self.high = low, high

    def admits(self, value: Any) -> bool | None:
        """Within the bounds; what is just at one is not judged."""
        good = super().admits(value)
        if not good or np.asarray(value).size > LARGE:
            return good
        with np.errstate(all="ignore"):
            found = np.asarray(value).astype(np.float64)
            slack = 1e-6 * (1 + np.abs(np.nan_to_num(self.high, posinf=0)))
            if not np.isfinite(found).all() or (found < self.low).any() or (found > self.high + slack).any():
                return False
            return True if (found < self.high - slack).all() and np.abs(found).max(initial=0) < 1e30 else None

    def plain(self, value: Any) -> np.ndarray:
        """As they are kept."""
        found = np.asarray(value)
        if found.size > LARGE:
            return found
        return found.astype(np.float32 if found.dtype.newbyteorder("=") == np.float32 else np.float64)


def states(draw: Draw) -> Case:
    """States."""
    within = box(draw)
    pos = cloud(draw, within)
    n = len(pos)
    vel = draw.rng.normal(size=pos.shape)
    low = np.array([a for a, _ in within.ends])
    high = np.array([b for _, b in within.ends])
    kinds = {
        "pos": Floats(lambda d: stored(d, pos), (None, within.dim), low, high),
        "vel": Floats(lambda d: stored(d, vel), (None, within.dim)),
        "box": Is(md.Box, lambda _: within),
    }
    names = draw.sample(range(3 * n + 1), n)
    radius = draw.rng.random(n) + 0.2
    optional: dict[str, Kind] = {
        "id": Maybe(Ids(lambda d: stored_ids(d, names), n), 0.2),
        "radius": Maybe(Floats(lambda d: stored(d, radius), (n,), 1e-9, 1e9), 0.2),
    }

    def together(plain):
        return plain["pos"].shape == plain["vel"].shape and len(plain["pos"]) == n and plain["box"] is within

    def check(found, plain):
        for name in ("pos", "vel"):
            kept = getattr(found, name)
            require(kept.dtype == plain[name].dtype and kept.flags.c_contiguous, f"{name} of {kept.dtype}")
            same(kept, plain[name], name)
        ids = plain.get("id")
        same(found.id, range(len(found)) if ids is None else [int(v) for v in np.asarray(ids).tolist()], "id")
        require(found.id.dtype == np.int32, f"id of {found.id.dtype}")
        if plain.get("radius") is None or not len(found):
            require(found.radius is None, "a radius that was not given")
        else:
            same(found.radius, plain["radius"], "radius")
        require(np.isfinite(found.pos).all() and np.isfinite(found.vel).all(), "what is not finite")

    return made_case(draw, "State", md.State, kinds, optional=optional, check=check, sure=together)


def stored_ids(draw: Draw, names: list[int]) -> Any:
    """Integers in some width."""
    if not names:
        return np.zeros(0, np.int64)
    return (
        names
        if draw.chance(0.3)
        else np.array(names, draw.choice(("i1", "u1", "i2", "i4", "u4", "i8", "u8", ">i4")))
    )


def a_state(draw: Draw, n: int | None = None, within: md.Box | None = None) -> md.State:
    """A state of a few particles."""
    within = within or box(draw)
    pos = cloud(draw, within, n)
    names = draw.sample(range(3 * len(pos) + 1), len(pos))
    radius = draw.rng.random(len(pos)) * 0.4 + 0.2 if draw.chance(0.2) else None
    return md.State(pos, draw.rng.normal(size=pos.shape), within, np.array(names, np.int64), radius)


def taken(draw: Draw) -> Case:
    """States in another memory order."""
    state = a_state(draw, draw.choice((0, 1, 5, 9)))
    n = len(state)
    order = draw.sample(range(n), draw.randint(0, n))

    class Order(Array):
        def admits(self, value):
            made = self._made(value)
            if made is not None and made.dtype.kind == "b":
                return None  # flags choose, as in numpy
            good = super().admits(value)
            if not good:
                return good
            found = [int(v) for v in np.asarray(value).tolist()]
            if any(not -n <= v < n for v in found) or len({v % n for v in found}) < len(found):
                return False
            return None if any(v < 0 for v in found) else True

    def check(found, plain):
        order = np.asarray(plain["order"])
        at = np.flatnonzero(order).tolist() if order.dtype.kind == "b" else [int(v) for v in order.tolist()]
        same(found.pos, state.pos[at].reshape(-1, state.box.dim), "pos")
        same(found.id, state.id[at], "id")

    kinds = {
        "order": Order(
            lambda d: np.array(order, np.int64) if d.chance(0.7) or not order else order, "iu", (None,)
        )
    }
    return made_case(draw, f"{state!r}.take", state.take, kinds, check=check)


def seen(draw: Draw) -> Case:
    """What is seen of a state on the host."""
    state = a_state(draw)
    if state.box.dim == 3 and draw.chance(0.5):
        kinds: dict[str, Kind] = {"state": Is(md.State, lambda _: state)}
        length = min(state.box.lengths)
        optional: dict[str, Kind] = {
            "axis": Integer(0, 2, (0, 2)),
            "at": Maybe(Number(0, usual=(0.0, length))),
        }

        def check_section(found, plain):
            axis, at = plain.get("axis", 1), plain.get("at")
            at = state.box.lengths[axis] / 2 if at is None else at
            require(0 <= at <= state.box.lengths[axis], "a plane outside the box")
            rows = []
            for k in np.argsort(state.id):
                away = float(state.pos[k, axis]) - at
                if state.box.periodic[axis]:
                    away -= state.box.lengths[axis] * round(away / state.box.lengths[axis])
                if abs(away) < (0.5 if state.radius is None else float(state.radius[k])):
                    rows.append(int(state.id[k]))
            require(found.id.tolist() == rows, f"{found.id}, and by the reference {rows}")

        return made_case(draw, "section", md.observe.section, kinds, optional=optional, check=check_section)
    call = draw.choice((md.observe.kinetic_energy, md.observe.temperature, md.observe.momentum))

    def check(found, plain):
        speed2 = sum(float(v) ** 2 for v in state.vel.ravel())
        n = len(state)
        right = {
            "kinetic_energy": speed2 / 2 / n if n else math.nan,
            "temperature": speed2 / n / state.box.dim if n else math.nan,
            "momentum": [math.fsum(column) for column in state.vel.T.tolist()],
        }[call.__name__]
        same(found, right, call.__name__, 1e-10)

    return made_case(draw, call.__name__, call, {"state": Is(md.State, lambda _: state)}, check=check)


KINDS = ((boxes, 4), (in_boxes, 2), (states, 7), (taken, 1), (seen, 2))


def one_of(draw: Draw) -> Case:
    """An input of any of these."""
    makers, weights = zip(*KINDS, strict=True)
    return draw.choices(makers, weights)[0](draw)


FAMILIES = [Family("states", one_of, 14)]
