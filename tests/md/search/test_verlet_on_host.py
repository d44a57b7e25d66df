"""The neighbour lists of a device, built on the host: all partners, lists without room, and forces."""

from types import SimpleNamespace

import numpy as np
import pytest

import md
from md.integrate.fused import KickDrift
from md.laws.pair import kernel_law
from md.particles.cell_grid import CellGrid
from md.particles.cell_sort import CellSort
from md.particles.units import units_of
from md.search.displacement_guard import unguarded
from md.search.lists.lister import Lists as ListArrays
from md.search.lists.listing import ListBuilder, farthest
from md.search.lists.pruned_lists import MOST_KEPT, PrunedLists
from tests import tiers
from tests.md.cavity.strategies.emulated_cuda import EmulatedCuda, HostArray

LAW = md.laws.SpringDashpot(stiffness=1e3, damping=1.0)
BOIDS = md.laws.Boids(cohesion_radius=1.2, separation_radius=0.8, alignment_radius=1.0)
MANY = 16  # partners
LINK = 2**21 - 2
CASES = {  # dim, lengths, periodic, order, particles, precision
    "many cells": (3, (19.0, 14.4, 18.4), True, "row", 1200, "float32"),
    "most cells": (3, (21.0, 25.1, 21.2), True, "row", 1400, "float32"),
    "far sides": (3, (2.7, 3.9, 90.0), True, "row", 270, "float32"),
    "open cells": (3, (9.0, 8.0, 7.0), False, "row", 90, "float32"),
    "flat cells": (2, (22.0, 31.0), True, "row", 200, "float64"),
    "plain": (3, (7.0, 6.0, 5.6), True, "row", 150, "float32"),
    "open": (3, (7.0, 6.0, 5.0), False, "row", 64, "float64"),
    "no order": (3, (7.0, 6.0, 5.6), True, "random", 100, "float32"),
    "curve": (3, (7.0, 6.0, 5.6), True, "hilbert", 100, "float32"),
    "many partners": (3, (5.4, 5.5, 5.6), True, "row", 300, "float32"),
    "crowd": (3, (12.0, 12.0, 12.0), True, "row", 40, "float32"),
    "flat": (2, (9.0, 8.0), True, "row", 60, "float32"),
    "flat crowd": (2, (12.0, 12.0), True, "row", 40, "float32"),
    "two cells": (2, (2.7, 9.0), True, "row", 33, "float64"),
}


def of_cases(names, *rows: int) -> list:
    """Cases by numbers of rows; by default those in 3D in float32, each with one number in turn."""

    def keep(name: str, row: int) -> bool:
        dim, *_, precision = CASES[name]
        return dim == 3 and precision == "float32" and row == rows[list(names).index(name) % len(rows)]

    return tiers.by_default([(name, row) for name in names for row in rows], keep, tiers.full)


class Spanning(EmulatedCuda):
    """A device on which an entry of a list spans few slots, so that most partners are far."""

    span = 12

    def kernels(self, stem, law=None, constants=None):
        return super().kernels(stem, law, {**(constants or {}), "SPAN": self.span})


@pytest.fixture(scope="module")
def device():
    return EmulatedCuda()


class Lists:
    """Lists of a random cloud with a skin of 0.3; a crowd fills one cell. The pool has room for rows."""

    def __init__(self, device, case, rows=2, room=3000, column=MANY, is_exact=True):
        self.dim, lengths, periodic, order, n, precision = CASES[case]
        cpu, dtype = md.backend.get("cpu"), np.dtype(precision)
        self.grid = CellGrid(md.Box(lengths, periodic), 1.3, dtype, cpu)
        random = np.random.default_rng(5)
        pos = random.uniform(0, 1, (n, self.dim)) * lengths
        if "crowd" in case:
            pos = 5.3 + 0.3 * random.uniform(0, 1, (n, self.dim))
        self.pos, sort = pos.astype(dtype), CellSort(order, n, self.grid, cpu)
        if order != "random":  # else in memory in no order
            sort.find(cpu.upload_rows(self.pos))
            self.pos = self.pos[sort.order]
        sort.find(cpu.upload_rows(self.pos), by_number=True)
        self.vel = random.normal(size=(n, self.dim)).astype(dtype)
        self.n, self.per_list, self.span = n, rows, getattr(device, "span", 2**20)
        self.rows = [rows_of(array) for array in (self.pos, self.vel)]
        self.partners = device.empty(rows * n + room, np.uint64)
        self.needed = device.zeros(1, np.int64)
        self.travelled = HostArray(np.full(6, -1, np.int32).view(np.float32))  # as a build begins
        self.reference = rows_of(np.zeros_like(self.pos))
        self.none = device.empty(0, np.int32)
        self.kernels = device.kernels("md.search.lists.list_search", LAW)
        sorted_ = SimpleNamespace(
            find=lambda pos, by_number: None,
            scratch=device.zeros(-(-n // 4) * 4, np.int32),
            **{name: device.upload(getattr(sort, name)) for name in ("start", "order")},
        )
        lists = ListArrays(None, None, self.partners, None, rows, room, self.needed, self.travelled)
        builder = ListBuilder(self.grid, dtype.type(1.3), lambda reach: column, is_exact, device)
        builder.build(n, self.rows[0], sorted_, self.reference, lists)

    def apart(self) -> np.ndarray:
        """(n, n, dim) differences of positions between nearest images, float64."""
        apart = self.pos[:, None].astype(np.float64) - self.pos
        if self.grid.box.periodic[0]:
            apart -= np.array(self.grid.box.lengths) * np.round(apart / self.grid.box.lengths)
        return apart

    def forces(self) -> np.ndarray:
        """(n, dim) forces of `LAW` between all pairs, float64."""
        apart, vel = self.apart(), self.vel.astype(np.float64)
        distance = np.sqrt((apart**2).sum(-1))
        distance[distance == 0] = np.inf  # of a particle to itself
        normal = apart / distance[..., None]
        approach = ((vel[:, None] - vel) * normal).sum(-1)
        size = np.where(distance < 1, LAW.stiffness * (1 - distance) - LAW.damping * approach, 0)
        return (size[..., None] * normal).sum(1)

    def near(self, reach: float) -> np.ndarray:
        """(n, n) whether two particles are closer than a distance."""
        close = (self.apart() ** 2).sum(-1) < reach**2
        np.fill_diagonal(close, False)
        return close

    def of(self, i: int) -> list[int]:
        """Partners of a particle, in the order in which the force kernel reads them."""
        return listed(self.partners.host, self.n, self.per_list, i, self.span)


def listed(lists: np.ndarray, n: int, rows: int, i: int, span: int = 2**20) -> list[int]:
    """Partners of particle i in lists of n particles with rows, in the order of reading."""
    found, at, step, mask = [], i, n, 2**21 - 1
    for _ in range(n):
        row = int(lists[at])
        first, number, at = row & mask, row >> 21 & 2**32 - 1, at + step
        if first == 2 * span - 2:
            at, step = number, 1
        elif first == 2 * span - 1:
            found.append(number)
        else:
            found += [i + (row >> 21 * k & mask) - span for k in range(3)]
        if not row >> 63:
            return [j for j in found if j != i]
    raise AssertionError(f"the list of particle {i} has no end")


def rows_of(array: np.ndarray) -> HostArray:
    """Rows of 4 numbers in memory, of which the first belong to the array."""
    padded = np.zeros((len(array), 4), array.dtype)
    padded[:, : array.shape[1]] = array
    return HostArray(padded[:, : array.shape[1]])


def pooled(counts: np.ndarray, rows: int, run: int | None = None) -> int:
    """Rows of the pool of lists of so many partners, as one run or as runs with links, if run is not None."""
    more = np.where(counts > 3 * rows, -(-counts // 3) - (rows - 1), 0)
    in_runs = -(-(more - 1) // (run - 1)) * run if run else more
    return int(in_runs[more > 0].sum())


@pytest.mark.parametrize(("case", "rows"), of_cases(CASES, 1, 2, 5))
def test_lists_hold_all_partners_once(device, case, rows):
    lists = Lists(device, case, rows)
    near = lists.near(1.3)
    counts = near.sum(1)
    assert (counts.max() > MANY) == (case in ("many partners", "crowd", "flat crowd"))
    # Lists that shared memory has no room for take runs of 8 rows.
    assert pooled(counts, rows) <= lists.needed.host[0] <= pooled(counts, rows, run=8)
    assert (lists.travelled.host.view(np.int32) == -1).all()
    np.testing.assert_array_equal(lists.reference.host, lists.pos)
    for i in range(lists.n):
        assert sorted(lists.of(i)) == np.flatnonzero(near[i]).tolist()


@pytest.mark.parametrize(("case", "rows"), of_cases(CASES, 2))
def test_lists_that_are_not_exact_hold_all_partners_and_a_few_that_are_little_farther(device, case, rows):
    lists = Lists(device, case, rows, is_exact=False)
    passing = farthest(lists.grid, units_of(lists.grid, 1.3))
    near, farther = lists.near(1.3), lists.near(min(passing, 1.15 * 1.3))
    listed = [lists.of(i) for i in range(lists.n)]
    for i in range(lists.n):
        assert len(set(listed[i])) == len(listed[i])
        assert set(np.flatnonzero(near[i])) <= set(listed[i]) <= set(np.flatnonzero(farther[i]))
    is_crowded = near.sum(1).min() > MANY  # searched again by their positions
    exactly = sum(map(len, listed)) == near.sum()
    assert exactly == (is_crowded or passing > 1.15 * 1.3)
    assert not exactly or case != "most cells"


def test_lists_without_room_are_cut_and_halt_the_steps(device):
    needed = int(Lists(device, "many partners").needed.host[0])
    assert needed > 100
    for room in (0, 1, needed - 1, needed):
        lists = Lists(device, "many partners", 2, room)
        assert lists.needed.host[0] == needed
        assert np.isinf(lists.travelled.host[:2]).tolist() == 2 * [room < needed]
        assert (lists.travelled.host[2:].view(np.uint32) == 0).tolist() == 4 * [room < needed]
        near, cut = lists.near(1.3), 0
        for i in range(lists.n):
            found, all_of_it = lists.of(i), np.flatnonzero(near[i]).tolist()
            cut += sorted(found) != all_of_it
            assert set(found) <= set(all_of_it)
            assert len(found) >= min(6, len(all_of_it))
        assert (cut > 0) == (room < needed)


@pytest.mark.parametrize(("case", "rows"), of_cases(CASES, 1, 3))
def test_forces_are_those_of_all_pairs(device, case, rows):
    lists = Lists(device, case, rows)
    dtype = lists.pos.dtype
    found = rows_of(np.zeros_like(lists.pos))
    structure = lists.partners, lists.grid.record
    lists.kernels.force(lists.n, *lists.rows, *structure, kernel_law(LAW, dtype), found)
    expected = lists.forces()
    largest = np.abs(expected).max()
    assert largest > 10
    assert np.abs(found.host - expected).max() < 100 * np.finfo(dtype).eps * largest


@pytest.mark.parametrize("case", ["plain", "many partners", tiers.full("flat")])
def test_a_boid_is_not_its_own_neighbour(device, case):
    lists, none = Lists(device, case, rows=1), device.empty(0, np.int32)
    found, expected = (rows_of(np.zeros_like(lists.pos)) for _ in range(2))
    law = kernel_law(BOIDS, lists.pos.dtype)
    grid = lists.grid.record
    kernels = device.kernels("md.search.lists.list_search", BOIDS)
    kernels.force(lists.n, *lists.rows, lists.partners, grid, law, found)
    device.kernels("md.search.grid.naive", BOIDS).force(lists.n, *lists.rows, none, grid, law, expected)
    assert np.abs(expected.host).max() > 0.01
    np.testing.assert_allclose(found.host, expected.host, atol=1e-4 * np.abs(expected.host).max())


class Step:
    """The output of a fused step in a periodic box."""

    def __init__(self, device, lists, **guard):
        self.pos, self.vel = (rows_of(np.full_like(lists.pos, np.nan)) for _ in range(2))
        real, fault = lists.pos.dtype.type, device.upload(np.array([2**64 - 1], np.uint64))
        self.clock = device.zeros(2, np.int64)
        guard = unguarded(device)._replace(**guard)
        self.out = KickDrift(
            self.pos, self.vel, device.zeros(lists.n, np.int32), real(1e-3), real(2e-3), fault, self.clock, 0,
            *guard,
        )  # fmt: skip


@pytest.mark.parametrize(
    ("case", "rows"), of_cases([name for name, (_, _, periodic, *_) in CASES.items() if periodic], 1, 3, 5)
)
def test_pruned_lists_hold_the_nearer_partners_or_are_replaced_by_those_of_the_build(device, case, rows):
    lists = Lists(device, case)
    n, dtype, law, near = lists.n, lists.pos.dtype, kernel_law(LAW, lists.pos.dtype), lists.near(1.1)
    plain, pruning, after = Step(device, lists), Step(device, lists, prunes=1), Step(device, lists)
    pruned = PrunedLists(n, device)
    pruned.rows, pruned._partners = rows, device.upload(np.full(rows * n, 2**64 - 1, np.uint64))
    structure = lists.partners, lists.grid.record
    lists.kernels.force(n, *lists.rows, *structure, law, plain.out)
    for step in (pruning, after):
        reach2, given = dtype.type(1.1) ** 2, lists.partners
        pruned.step(LAW, {}, tuple(lists.rows), given, reach2, lists.grid.record, law, step.out)
        assert np.array_equal(step.pos.host, plain.pos.host)
        assert np.array_equal(step.vel.host, plain.vel.host)
    assert np.abs(plain.vel.host - lists.vel).max() > 1e-3
    first, crowded = pruned._partners.host[:n], near.sum(1) > min(3 * rows, MOST_KEPT)
    assert rows == 3 or crowded.any() == (rows == 1 or "crowd" in case or case == "many partners")
    assert np.array_equal(first == LINK, crowded)
    lists.partners, lists.per_list = pruned._partners, rows
    for i in np.flatnonzero(~crowded):
        assert sorted(lists.of(i)) == np.flatnonzero(near[i]).tolist()


@pytest.mark.parametrize(("case", "rows"), of_cases(CASES, 1, 3))
def test_partners_that_are_far_in_memory_have_rows_of_their_own_or_links(device, case, rows):
    near, far = Lists(device, case, rows), Lists(Spanning(), case, rows, room=40_000)
    n, dtype = near.n, near.pos.dtype
    apart = [abs(j - i) for i in range(n) for j in near.of(i)]
    assert max(apart) > 2 * far.span
    assert [far.of(i) for i in range(n)] == [near.of(i) for i in range(n)]
    assert (far.travelled.host.view(np.int32) == -1).all()
    stepped = []
    for lists, place in ((near, device), (far, Spanning())):
        found = rows_of(np.zeros_like(lists.pos))
        structure, law = (lists.partners, lists.grid.record), kernel_law(LAW, dtype)
        place.kernels("md.search.lists.list_search", LAW).force(n, *lists.rows, *structure, law, found)
        stepped.append(found.host)
        if not lists.grid.box.periodic[0]:
            continue
        pruned, pruning, after = PrunedLists(n, place), Step(place, lists, prunes=1), Step(place, lists)
        pruned.rows, pruned._partners = 3, place.upload(np.full(3 * n, 2**64 - 1, np.uint64))
        for step in (pruning, after):
            given = lists.partners, dtype.type(1.1) ** 2, lists.grid.record, law, step.out
            pruned.step(LAW, {}, tuple(lists.rows), *given)
            stepped += [step.pos.host, step.vel.host]
    half = len(stepped) // 2
    assert all(np.array_equal(a, b) for a, b in zip(stepped[:half], stepped[half:], strict=True))
