"""Loads of a sweep over the pressure of a cavity: those of a plain walk, and the sectors of a row."""

from collections.abc import Callable

import numpy as np
import pytest

import md
import sfc
from experiments.loads.cavity import cavity_loads
from sfc.cache.loads import ALIGNED, LANES, WRITTEN
from sfc.cache.sectors import counted

INLET = {"left": md.cavity.Inlet(0.5), "right": md.cavity.Outlet(0.25)}
CELL = {  # bytes of a record, and of its numbers before p, p_next and source
    "float64": (184, 16, 112, 88),
    "float32": (92, 8, 56, 44),
}


def cavity(order="row", precision="float32", layout="arrays", **more) -> md.Cavity:
    options = {"strategy": "serial", "backend": "cpu", "viscosity": 0.1} | more
    return md.Cavity(order=order, precision=precision, layout=layout, **{"shape": (12, 9)} | options)


class Walk:
    """Instructions of the threads of a sweep: name, array, number of its entry, whether the warp waits."""

    def __init__(self, made: md.Cavity):
        self.ny, self.nx = made.scheme.shape
        rank = sfc.ordering(made.order, (self.nx, self.ny)).dense_ranks()
        self.rank = rank.reshape(self.ny, self.nx)
        self.has_tables = made.order != "row"
        every = [(y, x) for y in range(self.ny) for x in range(self.nx)]
        self.edge = [at for at in every if at[0] in (0, self.ny - 1) or at[1] in (0, self.nx - 1)]
        self.inside = sorted(set(every) - set(self.edge), key=lambda at: self.rank[at])
        self.fixed = {side for side, one in made.scheme.conditions.items() if one.p is not None}

    def source_of(self, y: int, x: int) -> tuple[int, int] | None:
        """The point inside whose pressure a boundary point copies: that of the side that is set last."""
        moves = {
            "top": (y == self.ny - 1, (-1, 0)),
            "bottom": (y == 0, (1, 0)),
            "left": (x == 0, (0, 1)),
            "right": (x == self.nx - 1, (0, -1)),
        }
        for side, (is_here, (dy, dx)) in moves.items():
            if is_here and side in self.fixed:
                return None
            if is_here:
                beside = y + dy, x + dx
                return beside if beside in self.inside else self.source_of(*beside)
        raise AssertionError

    def point(self, at: tuple[int, int]) -> list[tuple]:
        y, x = at
        around = {"west": (y, x - 1), "east": (y, x + 1), "south": (y - 1, x), "north": (y + 1, x)}
        k = self.inside.index(at)
        listed = [(side, side, k, side == "west") for side in (*around, "centre") if self.has_tables]
        listed += [(f"p {side}", "p", self.rank[there], side == "west") for side, there in around.items()]
        return [*listed, ("b", "source", self.rank[at], False)]

    def thread(self, k: int) -> list[tuple]:
        if k < len(self.inside):
            at = self.inside[k]
            return [*self.point(at), ("store", "p_next", self.rank[at], True)]
        k -= len(self.inside)
        source = self.source_of(*self.edge[k])
        listed = [("from", "sources", k, True)]
        copied = [] if source is None else [(f"copied {name}", *rest) for name, *rest in self.point(source)]
        listed += copied or [("value", "values", k, True)]
        stored = self.rank[self.edge[k]]
        return [*listed, ("to", "points", k, True), ("edge", "p_next", stored, True)]

    def warp(self, first: int) -> list[tuple[list[tuple], bool]]:
        """Events of a warp: of points inside; of copied ones, of fixed ones, and the stores of both."""
        lanes = [self.thread(k) for k in range(first, min(first + LANES, self.ny * self.nx))]
        names = ["p west", "p east", "p south", "p north", "b"]
        names = ["west", "east", "south", "north", "centre", *names] if self.has_tables else names
        program = [*names, "store", "from", *(f"copied {name}" for name in names), "value", "to", "edge"]
        events = []
        for name in program:
            taken = [one for lane in lanes for one in lane if one[0] == name]
            if taken:
                events.append(([(array, int(number)) for _, array, number, _ in taken], taken[0][3]))
        return events

    def address(self, layout: str, precision: str) -> Callable[[str, int], int]:
        """The function from an entry of an array to its address."""
        points, size = self.ny * self.nx, int(precision[-2:]) // 8
        cell, *within = CELL[precision] if layout == "structs" else (size, 0, 0, 0)
        place = {"points": 4, "sources": 4, "values": size}
        extents = {name: bytes * len(self.edge) for name, bytes in place.items()}
        for name in ("centre", "west", "east", "south", "north"):
            place[name], extents[name] = 4, 4 * len(self.inside)
        fields = "p", "p_next", "source"
        extents = {name: cell * points for name in fields[: 1 if layout == "structs" else 3]} | extents
        ends = np.cumsum([-(-extent // ALIGNED) * ALIGNED for extent in extents.values()])
        begin = dict(zip(extents, [0, *ends], strict=False))
        if layout == "structs":
            begin |= dict(zip(fields, within, strict=True))
        place |= dict.fromkeys(fields, cell)
        return lambda array, number: int(begin[array] + place[array] * number)


def events_of(stream, warps):
    loads = stream.loads_of(warps)
    lanes = map(np.ndarray.tolist, np.split(loads.address, loads.start[1:-1]))
    events = [*zip(lanes, loads.waits.tolist(), strict=True)]
    return [events[a:b] for a, b in zip(loads.first, loads.first[1:], strict=False)]


@pytest.mark.parametrize("precision", ["float32", "float64"])
@pytest.mark.parametrize("layout", ["arrays", "structs"])
@pytest.mark.parametrize("order", ["row", "gilbert"])
@pytest.mark.parametrize("sides", [None, INLET])
def test_loads_are_those_of_a_plain_walk(order, layout, precision, sides):
    made = cavity(order, precision, layout, sides=sides)
    stream = cavity_loads(made).force
    walk = Walk(made)
    address = walk.address(layout, precision)
    expected = [
        [([address(*entry) for entry in lanes], waits) for lanes, waits in walk.warp(first)]
        for first in range(0, 12 * 9, LANES)
    ]
    assert events_of(stream, np.arange(stream.warps)) == expected
    assert stream.registers == {"float32": 22, "float64": 24}[precision]


def test_the_sweep_before_has_the_pressures_in_the_other_roles():
    force, (before,) = cavity_loads(cavity("gilbert", shape=(31, 45)))
    every = np.arange(force.warps)
    now, then = (one.loads_of(every) for one in (force, before))
    size = -(-4 * 31 * 45 // ALIGNED) * ALIGNED
    swapped = np.select(
        [now.address < size, now.address < 2 * size], [now.address + size, now.address - size], now.address
    )
    assert np.array_equal(then.address, swapped)
    stores = now.address[np.repeat(now.kind == WRITTEN, np.diff(now.start))]
    assert sorted(stores - size) == list(range(0, 4 * 31 * 45, 4))


def test_a_row_asks_for_a_sector_more_than_its_numbers_fill_unless_it_begins_with_one():
    n = 258  # a warp has part of a row of 256 points inside, whose neighbours along x begin 2 further
    stream = cavity_loads(cavity(shape=(n, n))).force
    read, written, added, rounds = counted(stream.loads_of(np.arange(2048)), 32)
    assert read.mean() == 3 * 5 + 2 * (5 - 1 / 4)
    assert (written.mean(), added.sum()) == (5, 0)
    assert (rounds == 2).all()  # a load and a store
    along = cavity_loads(cavity("hilbert", shape=(256, 256))).force
    read, written, added, rounds = counted(along.loads_of(np.arange(2000)), 32)
    assert read.mean() > 5 * 4 + 5 * 4  # tables, and fields
    assert (rounds == 3).all()


def test_what_is_no_sweep_after_another_is_told():
    allowed = "allowed: 'jacobi' and 2 or more"
    with pytest.raises(ValueError, match=rf"pressure 'jacobi' and sweeps = 1; {allowed}"):
        cavity_loads(cavity(sweeps=1))
    with pytest.raises(ValueError, match=rf"pressure 'converged' and sweeps = 50; {allowed}"):
        cavity_loads(cavity(pressure="converged", strategy="numpy"))
    with pytest.raises(TypeError, match=r"cavity = an array .*; allowed: an md\.Cavity"):
        cavity_loads(np.zeros((9, 9)))
