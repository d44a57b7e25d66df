"""Loads of neighbour lists: those of a plain walk, in lists that are those of a device."""

import math
import re
from itertools import product

import numpy as np
import pytest

import md
from experiments.loads import device_lists
from experiments.loads.device_lists import lists_of, skin_on_device
from experiments.loads.lists import verlet_loads
from md.backend.kernels.source import ROOT
from md.particles.cell_grid import CellGrid
from md.search.lists.step_costs import StepCosts
from sfc import cache
from sfc.cache.loads import ALIGNED, LANES
from tests.md.search.lists.device_of_lists import DeviceOfLists
from tests.md.search.test_verlet_on_host import listed
from tests.tiers import full

BLOCK, SKIN, INNER, DT = 128, 0.3, 0.1, 1e-4
MOST_KEPT = 16
LAW = md.laws.SpringDashpot(1e3, 1.0)


FLOCK = md.laws.Boids(cohesion_radius=1.0, separation_radius=0.6, alignment_radius=0.7)


def simulation(dim: int, periodic: bool, precision: str, n: int = 150, law=LAW, **options) -> md.Simulation:
    random = np.random.default_rng(dim)
    box = md.Box((4.4, 3.3, 5.6) if dim == 3 else (18.4, 3.3), periodic=periodic)
    state = md.State(random.random((n, dim)) * box.lengths, random.normal(size=(n, dim)), box)
    given = {"search": md.search.Verlet(skin=SKIN, inner_skin=INNER), "precision": precision, **options}
    return md.Simulation(state, law, dt=DT, backend="cpu", allow_overlap=law is LAW, **given)


class Walk:
    """A plain walk through the kernel, by lists of Python.

    Args:
        run: the simulation.
        prunes: whether lists are pruned.
        age: steps since they were.
        span: slots beyond which a partner is far.
        reach: within which velocities are loaded.
    """

    def __init__(self, run: md.Simulation, prunes: bool, age: int, span: int, reach: float = 1.0):
        self.reach = reach
        particles, self.box, self.span, self.prunes = run.system.particles, run.system.box, span, prunes
        self.pos, self.n, self.dim = particles.pos, particles.n, particles.pos.shape[1]
        then = particles.pos - age * DT * particles.vel.astype(np.float64)
        if all(self.box.periodic):
            then %= self.box.lengths
        self.then = then.astype(self.pos.dtype)
        self.shape = np.floor(np.array(self.box.lengths) / (1 + SKIN)).astype(int)
        self.now, self.before = self._distances(self.pos), self._distances(self.then)
        self._sort()
        means = [1.2 * self.n / self.box.volume * {2: 1, 3: 4 / 3}[self.dim] * math.pi * reach**self.dim
                 for reach in (1 + INNER, 1 + SKIN)]  # fmt: skip
        built = max(1, round((means[1] + 1.5 * math.sqrt(means[1])) / 3))
        first = min(math.ceil((means[0] + 2.5 * math.sqrt(means[0])) / 3), 6)
        self.rows = [first, built] if prunes else [built, built]
        self.lists: list[dict] = [{}, {}]
        self.pool = [0, 0]  # rows of the pool that are taken
        for i in self.order:
            kept = self._rows(i, 1 + INNER) if prunes else []
            if prunes and len(kept) <= first and len(self._near(i, 1 + INNER)) <= MOST_KEPT:
                self.lists[0][i] = [(row * self.n + i, *entries) for row, entries in enumerate(kept)]
            else:
                self._put_built(i, 1 if prunes else 0)
        size, row = self.pos.itemsize, 2 * self.dim * self.pos.itemsize * self.n
        longs = [8 * (self.n * rows + pool) for rows, pool in zip(self.rows, self.pool, strict=True)]
        sizes = [row, row, longs[0], longs[1] if prunes else 0, 56]
        self.base = np.cumsum([0, *(-(-one // ALIGNED) * ALIGNED for one in sizes)]).tolist()
        self.size = size

    def _sort(self):
        cells = np.clip((self.then * (self.shape / self.box.lengths)).astype(int), 0, self.shape - 1)
        self.cells, self.of_cell = cells, {}
        for i in range(self.n):
            self.of_cell.setdefault(tuple(cells[i]), []).append(i)
        number = np.cumprod([1, *self.shape[:-1]])
        self.order = np.argsort((cells * number).sum(1), kind="stable").tolist()

    def _distances(self, pos):
        dr = pos[:, None].astype(np.float64) - pos
        if all(self.box.periodic):
            dr -= np.round(dr / self.box.lengths) * self.box.lengths
        return np.sqrt((dr * dr).sum(2)).tolist()

    def _beside(self, axis, home):
        count = self.shape[axis]
        around = [home - 1, home, home + 1]
        if all(self.box.periodic) and count >= 3:
            around = [cell % count for cell in around]
        around = [cell for cell in around if 0 <= cell < count]
        if axis == 0:  # a range, and the cell beyond a side
            inner = sorted(cell for cell in around if abs(cell - home) <= 1)
            around = inner + [cell for cell in around if cell not in inner]
        return around

    def _near(self, i, reach):
        found = []
        for cell in product(*(self._beside(axis, self.cells[i][axis]) for axis in reversed(range(self.dim)))):
            found += self.of_cell.get(cell[::-1], [])
        return [j for j in found if j != i and self.before[i][j] < reach]

    def _rows(self, i, reach):
        rows: list[list[int]] = []
        for j in self._near(i, reach):
            if j - i < -self.span or j - i >= self.span - 2:
                rows.append([j, i, i])
                room = 0
            else:
                if not rows or room == 0:
                    rows.append([i, i, i])
                    room = 3
                rows[-1][3 - room] = j
                room -= 1
        return rows or [[i, i, i]]

    def _put_built(self, i, which):
        rows, most = self._rows(i, 1 + SKIN), self.rows[1]
        numbers = [row * self.n + i for row in range(most)]
        if len(rows) > most:
            rows.insert(most - 1, [i, i, i])  # the link
            more = len(rows) - most
            numbers += [most * self.n + self.pool[which] + k for k in range(more)]
            self.pool[which] += more
        self.lists[which][i] = [(number, *row) for number, row in zip(numbers, rows, strict=False)]

    def warps(self, is_swapped: bool, is_reversed: bool) -> list[list[tuple[list[int], bool]]]:
        """The events of each warp, in the order of the launch."""
        blocks = [range(first, min(first + BLOCK, self.n)) for first in range(0, self.n, BLOCK)]
        found = []
        for block in reversed(blocks) if is_reversed else blocks:
            starts = range(block.start, block.start + BLOCK if is_reversed else block.stop, LANES)
            for first in starts:
                lanes = [i for i in range(first, first + LANES) if i < self.n]
                found.append(list(self._of_warp(lanes, is_swapped)) if lanes else [])
        return found

    def _row(self, array, lanes, is_position=False):
        """The loads of a row: of four numbers in parts of 16 bytes, and of two."""
        parts = self.size // 4 if self.dim == 3 or not is_position else 1
        some = [[array + 4 * self.size * i + 16 * part for i in lanes] for part in range(parts)]
        if self.dim == 3 and not is_position:
            some.append([array + 4 * self.size * self.n + 2 * self.size * i for i in lanes])
        return [(addresses, k == 0) for k, addresses in enumerate(some) if addresses]

    def _velocity(self, array, lanes):
        rows = [array + 4 * self.size * j for j in lanes]
        if self.dim == 2:
            return [([row + 2 * self.size for row in rows], True)] if rows else []
        twos = [array + 4 * self.size * self.n + 2 * self.size * j for j in lanes]
        return [(twos, True), ([row + 3 * self.size for row in rows], False)] if rows else []

    def _of_warp(self, lanes, is_swapped):
        read, moved = self.base[:2][:: -1 if is_swapped else 1]
        own = self._row(read, lanes)
        yield from own
        yield [self.base[2] + 8 * i for i in lanes], False
        pruned = [i for i in lanes if i in self.lists[0]]
        yield from self._listed(pruned, 0, read)
        others = [i for i in lanes if i not in self.lists[0]]
        if others:
            yield [self.base[3] + 8 * i for i in others], True
            yield from self._listed(others, 1, read)
        yield [self.base[4]] * len(lanes), True
        yield [self.base[4] + 32] * len(lanes), False
        yield from self._row(moved, lanes)

    def _listed(self, lanes, which, read):
        turn, lists = 0, self.lists[which]
        while lanes:
            now = {i: lists[i][turn][1:] for i in lanes}
            going = [i for i in lanes if turn + 1 < len(lists[i])]
            yield from self._row(read, [now[i][0] for i in lanes], is_position=True)
            yield from ((some, False) for some, _ in self._row(read, [now[i][1] for i in lanes], True))
            if going:
                yield [self.base[2 + which] + 8 * lists[i][turn + 1][0] for i in going], False
            for k in range(3):
                others = [(i, now[i][k]) for i in lanes if now[i][k] != i]
                if k == 2:
                    yield from self._row(read, [j for _, j in others], is_position=True)
                yield from self._velocity(read, [j for i, j in others if self.now[i][j] < self.reach])
            lanes, turn = going, turn + 1


def events_of(stream: cache.LoadStream) -> list[list[tuple[list[int], bool]]]:
    loads = stream.loads_of(np.arange(stream.warps))
    lanes = map(np.ndarray.tolist, np.split(loads.address, loads.start[1:-1]))
    events = [*zip(lanes, loads.waits.tolist(), strict=True)]
    return [events[a:b] for a, b in zip(loads.first, loads.first[1:], strict=False)]


@pytest.mark.parametrize("prunes", [True, False])
@pytest.mark.parametrize("precision", ["float32", "float64"])
@pytest.mark.parametrize("periodic", [True, False])
@pytest.mark.parametrize("dim", [full(2), 3])
def test_loads_are_those_of_a_plain_walk(monkeypatch, dim, periodic, precision, prunes):
    span, age = (60, 100) if (dim == 3) == periodic else (2**20, 0)
    monkeypatch.setattr(device_lists, "SPAN", span)
    run = simulation(dim, periodic, precision)
    force, (before,) = verlet_loads(run, age, prunes)
    walk = Walk(run, prunes, age, span)
    assert events_of(force) == walk.warps(is_swapped=False, is_reversed=False)
    assert events_of(before) == walk.warps(is_swapped=True, is_reversed=True)
    assert force.block == before.block == BLOCK
    assert force.registers == {"float32": 40, "float64": 72}[precision]
    assert dim == 2 or (walk.pool[0] > 0) == (not prunes)
    assert not prunes or 0 < len(walk.lists[1]) < run.system.particles.n
    written = force.loads_of(np.arange(force.warps)).kind.reshape(-1)
    parts = (dim == 3) + (2 if precision == "float64" else 1)
    assert [written.sum(), *written[-parts:]] == [parts * force.warps] + parts * [1]
    run.run(2)  # the run goes on


@pytest.mark.parametrize(("prunes", "registers"), [(True, (40, 80)), (False, (40, 78))])
def test_a_flock_loads_velocities_within_its_radius_of_alignment(prunes, registers):
    run = simulation(3, True, "float64", law=FLOCK, integrator="flight")
    force = verlet_loads(run, prunes=prunes).force
    walk = Walk(run, prunes, 0, 2**20, FLOCK.alignment_radius)
    assert events_of(force) == walk.warps(is_swapped=False, is_reversed=False)
    assert force.registers == registers[1]


@pytest.mark.parametrize(("skin", "inner"), [(None, None), full(0.4, 0.4)])
def test_lists_are_those_of_a_device(monkeypatch, skin, inner):
    for name in ("STEP_LAUNCH", "BUILD_LAUNCHES", "PRUNING_LAUNCHES"):
        monkeypatch.setattr(StepCosts, name, 0.0)
    state, search = md.scenes.benchmark_gas(300, 0.3), md.search.Verlet("row", skin, inner)
    on_device, on_cpu = (
        md.Simulation(
            state, md.scenes.BENCHMARK_LAW, dt=md.scenes.BENCHMARK_DT, search=search, precision="float32",
            fused=True, backend=place,
        )
        for place in (DeviceOfLists(), "cpu")
    )  # fmt: skip
    on_device.run(1, phases=False)
    found, _ = skin_on_device(on_cpu, True)
    search = on_device.search
    assert (found.width, found.inner) == (search.skin.width, search.skin.inner)
    at = {one: slot for slot, one in enumerate(on_cpu.system.particles.id)}
    order = [at[one] for one in on_device.system.particles.id]
    lists, _ = lists_of(on_cpu, on_cpu.system.particles.pos[order], search.grid, found)
    pruned = search._pruned
    partners, rows = (pruned._partners, pruned.rows) if inner is None else (search._partners, search._rows)
    assert lists.rows == rows
    assert lists.length.sum() > 300
    for i in range(300):
        begin = lists.begin[i]
        assert lists.partners[begin : begin + lists.length[i]].tolist() == listed(partners, 300, rows, i)


def test_a_device_sorts_the_particles_by_cells_before():
    run = simulation(3, True, "float32")
    grid = CellGrid(run.system.box, 1 + SKIN, np.dtype(np.float32), run.backend)
    cells = np.floor(run.system.particles.pos * grid.shape / run.system.box.lengths)
    order = np.lexsort(cells.T)
    sorted_run = md.Simulation(
        run.state.take(order), LAW, dt=DT, search=run.config.search, precision="float32", backend="cpu",
        allow_overlap=True,
    )  # fmt: skip
    assert events_of(verlet_loads(run, cell_order="row").force) == events_of(verlet_loads(sorted_run).force)
    assert events_of(verlet_loads(run).force) != events_of(verlet_loads(sorted_run).force)


def test_what_is_no_list_of_a_device_is_told():
    with pytest.raises(ValueError, match="search 'linked' on 'cpu'; allowed: 'verlet'"):
        verlet_loads(simulation(3, True, "float32", search="linked"))
    run = simulation(3, True, "float32")
    with pytest.raises(ValueError, match=r"age = 1000; allowed: .* up to 114 \(steps\); lists are"):
        verlet_loads(run, 1000)
    with pytest.raises(TypeError, match="prunes"):
        verlet_loads(run, prunes=1)
    state = md.State([[1.0, 1.0], [3.0, 3.0]], [[0.0, 0.0]] * 2, md.Box((8.0, 8.0)), radius=[0.5, 0.4])
    run = md.Simulation(state, LAW, dt=DT, search="verlet", backend="cpu")
    with pytest.raises(ValueError, match="radii of their own; allowed: of one size"):
        verlet_loads(run)


def test_a_partner_is_far_where_it_is_for_the_kernel():
    text = (ROOT / "md" / "search" / "packed_lists.cuh").read_text()
    assert int(re.search(r"#define SPAN (0x[0-9a-f]+)u", text)[1], 16) == device_lists.SPAN
