"""The CUDA kernels of `coherent` and `tiles`, compiled for the host, against those of the CPU."""

from typing import NamedTuple

import numpy as np
import pytest

import md
from md.laws.pair import kernel_law
from md.particles.arrays import PackedRows
from md.particles.cell_grid import CellGrid
from md.particles.cell_rows import divided, reach_of
from md.particles.cell_sort import CellSort
from md.search.partners import CollectPartners
from tests import tiers
from tests.md.cavity.strategies.emulated_cuda import EmulatedCuda, HostArray
from tests.md.search.test_contract import dense_cloud, simulated

LAW = md.laws.SpringDashpot(stiffness=1e3, damping=1.0)
CUTOFF = 1.3
CPU = md.backend.get("cpu")


class Cloud(NamedTuple):
    """Random particles in a box.

    Attributes:
        lengths, periodic: of the box; a side that is not periodic is open.
        cells: of the cutoff, along each axis.
        n: number of particles.
    """

    lengths: tuple[float, ...]
    periodic: tuple[bool, ...]
    cells: tuple[int, ...]
    n: int


PERIODIC = (True, True, True)
CLOUDS = {
    "one, two and three cells": Cloud((2.6, 2.7, 4.0), PERIODIC, (1, 2, 3), 140),
    "two, three and one cells": Cloud((2.7, 4.0, 2.6), PERIODIC, (2, 3, 1), 140),
    "three, one and two cells": Cloud((4.0, 2.6, 2.7), PERIODIC, (3, 1, 2), 140),
    "few in many cells": Cloud((14.4, 9.0, 8.0), PERIODIC, (11, 6, 6), 260),
    "full cells": Cloud((5.3, 5.4, 6.6), PERIODIC, (4, 4, 5), 700),
    "open": Cloud((5.3, 2.7, 4.0), (False, False, False), (4, 2, 3), 200),
    "open along x": Cloud((5.3, 4.0, 5.4), (False, True, True), (4, 3, 4), 200),
    "one open cell": Cloud((1.0, 4.0, 1.5), (False, True, False), (1, 3, 1), 60),
    "flat": Cloud((8.0, 7.0), (True, True), (6, 5), 150),
    "flat, few cells": Cloud((4.0, 2.7), (True, True), (3, 2), 60),
    "flat and open": Cloud((2.7, 7.0), (True, False), (2, 5), 90),
}


@pytest.fixture(scope="module")
def device():
    return EmulatedCuda()


class Particles:
    """The particles of a cloud, sorted by cell, on the CPU and on a device."""

    def __init__(self, device, name, order, precision, division=None, is_packed=False):
        cloud, dtype = CLOUDS[name], np.dtype(precision)
        dim, n = len(cloud.lengths), cloud.n
        sides_open = tuple(not wraps for wraps in cloud.periodic)
        whole = CellGrid(md.Box(cloud.lengths, cloud.periodic, open=sides_open), CUTOFF, dtype, CPU)
        assert whole.shape == cloud.cells
        self.grid = divided(whole, division)
        random = np.random.default_rng(7)
        pos = random.uniform(0, 1, (n, dim)) * cloud.lengths
        beyond = np.flatnonzero(sides_open)
        pos[::5, beyond] += random.uniform(-2, 2, (len(pos[::5]), len(beyond)))
        vel = random.normal(size=(n, dim))
        self.sort = CellSort(order, n, self.grid, CPU)
        self.sort.find(CPU.upload_rows(pos.astype(dtype)))
        self.n, self.device, self.backend = n, device, CPU
        self.pos, self.vel = (CPU.upload_rows(a[self.sort.order].astype(dtype)) for a in (pos, vel))
        self.constants = {"PACKED": 1} if is_packed else {}
        self.rows = [rows_of(self.pos), rows_of(self.vel)]
        if is_packed:
            packed = PackedRows(np.empty(2 * dim * n, dtype), dim)
            packed.fill(self.pos, self.vel)
            self.rows = 2 * [HostArray(packed.pos)]

    def fold(self, law, parameters, out, *structure, stem="coherent", kernel="force", before=()):
        """Fold a law on the device, with the start and the rank of each cell."""
        kernels = self.device.kernels(f"md.search.grid.{stem}", law, self.constants)
        cells = self.device.upload(self.sort.start), self.device.upload(self.rank(stem))
        arguments = *before, self.n, *self.rows, *cells, *structure, self.grid.record, parameters, out
        getattr(kernels, kernel)(*arguments)

    def rank(self, stem):
        return self.sort.rank if stem == "tiles" else self.sort.table

    def forces(self, *structure, **options) -> np.ndarray:
        """(n, dim) forces on the device."""
        out = rows_of(np.full_like(self.pos, np.nan))
        self.fold(LAW, kernel_law(LAW, self.grid.precision), out, *structure, **options)
        return out.host

    def expected(self) -> np.ndarray:
        """(n, dim) forces between all pairs, on the CPU."""
        out, none = np.zeros_like(self.pos), np.empty(0, np.int32)
        law = kernel_law(LAW, self.grid.precision)
        CPU.kernels("md.search.grid.naive", LAW).force(
            self.n, self.pos, self.vel, none, self.grid.record, law, out
        )
        return out

    def partners(self, reach2, on_cpu=False) -> list[list[int]]:
        """Slots within reach of each particle, in the order in which the kernel visits them."""
        place, real = CPU if on_cpu else self.device, self.grid.precision
        reach, radius, counts = np.array([reach2], real), place.empty(0, real), place.zeros(self.n, np.int64)
        law = CollectPartners(reach, radius, place.zeros(self.n, np.int64), place.empty(0, np.int32))
        self._collect(law, counts, on_cpu)
        found = place.download(counts)
        ends = np.cumsum(found)
        partners = place.empty(int(ends[-1]), np.int32)
        law = CollectPartners(reach, radius, place.upload(ends - found), partners)
        self._collect(law, counts, on_cpu)
        return [part.tolist() for part in np.split(place.download(partners), ends[:-1])]

    def _collect(self, law, counts, on_cpu):
        if not on_cpu:
            self.fold(law, law, counts)
            return
        structure = self.sort.start, self.sort.table, self.grid.record
        CPU.kernels("md.search.grid.coherent", law).force(self.n, self.pos, self.vel, *structure, law, counts)

    def is_at_periodic_side(self) -> np.ndarray:
        """(n,) whether a cell around that of a particle is beyond a periodic side."""
        record, dim = self.grid.record[0], self.pos.shape[1]
        cells, wraps = record["cells"][:dim], record["periodic"][:dim] != 0
        home = np.clip((self.pos * record["per_side"]).astype(int), 0, cells - 1)
        return (((home == 0) | (home == cells - 1)) & wraps).any(axis=1)


def rows_of(array: np.ndarray) -> HostArray:
    """Rows of 4 numbers in memory, of which the first belong to the array."""
    padded = np.zeros((len(array), 4), array.dtype)
    padded[:, : array.shape[1]] = array
    return HostArray(padded[:, : array.shape[1]])


def assert_forces_equal(particles: Particles, found: np.ndarray) -> None:
    expected = particles.expected()
    largest = np.abs(expected).max()
    assert largest > 10
    assert np.abs(found - expected).max() < 200 * np.finfo(particles.grid.precision).eps * largest


def all_pairs(particles: Particles) -> list[list[int]]:
    apart = particles.pos[:, None].astype(float) - particles.pos
    periodic, lengths = particles.grid.box.periodic, np.array(particles.grid.box.lengths)
    apart -= np.array(periodic) * lengths * np.round(apart / lengths)
    close = (apart**2).sum(-1) < CUTOFF**2
    np.fill_diagonal(close, False)
    return [np.flatnonzero(row).tolist() for row in close]


def in_3d(names, *others) -> list:
    """Clouds by other values; by default those in 3D, each with one value in turn."""
    every = tiers.product(list(names), others, len(others), tiers.full)
    return tiers.by_default(every, lambda name, other: len(CLOUDS[name].lengths) == 3, tiers.full)


@pytest.mark.parametrize(("name", "order"), in_3d(CLOUDS, "row", "hilbert", "random"))
def test_a_particle_meets_all_in_the_cells_around_it_once(device, name, order):
    particles = Particles(device, name, order, "float64")
    if order == "row" or particles.grid.size > 3:  # of three cells any order may be that of the rows
        assert len(particles.sort.table) == (0 if order == "row" else particles.grid.size)
    found = particles.partners(np.inf)
    expected = particles.partners(np.inf, on_cpu=True)
    assert list(map(sorted, found)) == list(map(sorted, expected))
    for i in np.flatnonzero(~particles.is_at_periodic_side()):
        assert found[i] == expected[i]
    assert sum(map(len, expected)) > 2 * particles.n
    assert list(map(sorted, particles.partners(CUTOFF**2))) == all_pairs(particles)


def test_clouds_fill_the_list_of_ranges_and_leave_most_of_it_empty(device):
    ranges = {}
    for name in ("full cells", "few in many cells"):
        particles = Particles(device, name, "row", "float64")
        counts = np.diff(particles.sort.start).reshape(particles.grid.shape[::-1])
        rows = sum(np.roll(counts, shift, axis=2) for shift in (-1, 0, 1)) > 0
        # Not empty, around each cell away from the sides of axis 0; at these there are up to twice as many.
        ranges[name] = sum(np.roll(rows, (z, y), axis=(0, 1)) for z in (-1, 0, 1) for y in (-1, 0, 1))
    assert ranges["full cells"].min() == 9
    assert ranges["few in many cells"].min() < 7


@pytest.mark.parametrize("order", ["row", "hilbert"])
@pytest.mark.parametrize(("name", "is_packed"), in_3d(CLOUDS, False, True))
def test_forces_are_those_of_all_pairs(device, name, order, is_packed):
    particles = Particles(device, name, order, "float32", is_packed=is_packed)
    assert_forces_equal(particles, particles.forces())


@pytest.mark.parametrize(
    ("name", "order"),
    tiers.by_default(
        [(name, order) for name in CLOUDS for order in ("row", "hilbert")],
        lambda name, order: (name, order) in (("full cells", "row"), ("flat", "hilbert")),
    ),
)
@pytest.mark.full
def test_forces_in_float64_are_those_of_all_pairs(device, name, order):
    particles = Particles(device, name, order, "float64", is_packed=True)
    assert_forces_equal(particles, particles.forces())


@pytest.mark.parametrize(
    ("order", "division", "is_packed"),
    [("row", 1, False), ("hilbert", 3, False), tiers.full("row", 1, True), tiers.full("hilbert", 3, True)],
)
def test_forces_by_rows_of_smaller_cells_are_those_of_all_pairs(
    device, order, division, is_packed, monkeypatch
):
    monkeypatch.setitem(CLOUDS, "whole warps", CLOUDS["few in many cells"]._replace(n=256))
    particles = Particles(device, "whole warps", order, "float32", division, is_packed)
    reach = reach_of(particles.grid)
    found = particles.forces(division, reach, reach * reach, 1, kernel="force_rows")
    assert_forces_equal(particles, found)


@pytest.mark.parametrize("is_packed", [False, True], ids=["rows", "packed"])
@pytest.mark.parametrize("name", ["few in many cells", tiers.full("flat")])
def test_forces_by_tiles_are_those_of_all_pairs(device, name, is_packed):
    particles = Particles(device, name, "row", "float32", is_packed=is_packed)
    width = 3
    tiles = -(-particles.grid.shape[0] // width) * particles.grid.size // particles.grid.shape[0]
    found = particles.forces(width, tiles, 1, stem="tiles", before=(32 * tiles,))
    assert_forces_equal(particles, found)


@pytest.mark.parametrize(
    "choice", [md.search.Coherent(), md.search.Coherent(division=2), md.search.Tiles()], ids=repr
)
def test_packed_rows_are_read_by_kernels_compiled_for_them(choice, monkeypatch):
    class Kernels:
        """Notes the positions and velocities that a kernel is given."""

        def __getattr__(self, name):
            return lambda *given: noted.append([a for a in given if getattr(a, "ndim", 0) == 2])

    noted, compiled = [], []
    run = simulated(dense_cloud(3), choice, md.backend.Cpu("aos4"), "float32", allow_overlap=True)
    particles = run.system.particles
    monkeypatch.setattr(run.system.backend, "packs_rows_for", lambda law: True)
    monkeypatch.setattr(
        run.system.backend,
        "kernels",
        lambda stem, law=None, constants=None: compiled.append(constants) or Kernels(),
    )
    out = np.zeros((particles.n, 3), np.float32)
    for constants in ({}, {"PACKED": 1}):
        run.search._fold(run.law, None, out)
        assert dict(compiled.pop()) == constants
        pos, vel = noted.pop()[:2]
        assert pos is particles.pos
        assert vel is particles.velocities
        particles.pack()
    assert particles.is_packed
