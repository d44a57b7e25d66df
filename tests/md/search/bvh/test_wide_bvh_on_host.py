"""The CUDA kernels of the wide hierarchy, compiled for the host, against those of the CPU."""

from typing import Any

import numpy as np
import pytest

import md
from md.backend.cuda import Cuda
from md.integrate.fused import KickDrift
from md.laws.pair import kernel_law
from md.laws.polydisperse import scaled_to_radii
from md.observe.virial import Virial
from md.search.bvh.wide_boxes import ALL, LEAF, LEAVES, NODES, WideBoxes, levels_of
from md.search.bvh.wide_bvh import WideBvh
from md.search.displacement_guard import unguarded
from md.simulation.energy_monitor import EnergyMonitor
from tests import tiers
from tests.md.cavity.strategies.emulated_cuda import EmulatedCuda, HostArray
from tests.md.search.test_contract import dense_cloud, largest_difference, simulated


class Device(EmulatedCuda):
    """A device that is emulated, for kernels that make the structure too."""

    runs_ahead = True
    sort_scratch, sort = Cuda.sort_scratch, Cuda.sort
    radix_scratch, radix_sort = Cuda.radix_scratch, Cuda.radix_sort

    def zeros(self, shape: Any, dtype: Any) -> HostArray:
        return HostArray(np.zeros(shape, dtype))


def rows(array: np.ndarray) -> HostArray:
    """An (n, dim) array as rows of four numbers of a device."""
    padded = np.zeros((len(array), 4), array.dtype)
    padded[:, : array.shape[1]] = array
    return HostArray(padded[:, : array.shape[1]])


class Case:
    """A state on the CPU, and the same particles in the same order on the device.

    Attributes:
        run: the simulation on the CPU, with boxes of the present positions.
        tree: the boxes of the device.
    """

    def __init__(self, state: md.State, precision: str = "float64"):
        self.run = simulated(state, WideBvh(), "cpu", precision, allow_overlap=True)
        self.expected = self.run.forces()
        self.device, self._search, p = Device(), self.run.search, self.run.system.particles
        self.pos, self.vel, self.radius = rows(p.pos), rows(p.vel), HostArray(p.radius)
        self.tree = WideBoxes(p.n, self._search.grid, self._search.grid.cutoff, self.device)
        self.tree.fit(self.pos, self.radius, float(self._search._boxes_of()[1]["scale"][0]))

    def fold(self, law: Any, bytes_pass: bool = False) -> np.ndarray:
        """The sums of a law by the device, in the order of the ids."""
        p, (_, reach), units = self.run.system.particles, self._search._boxes_of(), self.tree.units.copy()
        if bytes_pass:
            units["most"] = ALL
        law = scaled_to_radii(law, self.radius if len(p.radius) else p.radius)
        numbers, out = kernel_law(law, p.pos.dtype), rows(np.zeros_like(p.pos))
        tree = self.tree
        structure = tree.boxes, tree.bytes, tree.levels, units, self.radius, reach, tree.eps, *tree.next, 1
        kernels = self.device.kernels("md.search.bvh.wide_bvh", law)
        kernels.force(p.n, self.pos, self.vel, *structure, self._search.grid.record, numbers, out)
        return out.host[np.argsort(p.id)]


def assert_boxes_hold_their_particles(boxes: np.ndarray, case: Case) -> None:
    """And leaves are as small as they can be, up to rounding, where no image is in doubt."""
    pos, box = np.asarray(case.run.system.particles.pos, float), case.run.system.particles.box
    radius = np.asarray(case.run.system.particles.radius, float)
    scale = float(case.run.search._boxes_of()[1]["scale"][0])
    n, dim = pos.shape
    spread = scale * radius[:, None] if len(radius) else np.zeros((n, 1))
    lengths, size = np.array(box.lengths), LEAF
    levels = levels_of(n)[0]
    for level in range(levels["count"]):
        for node in range(levels["number"][level]):
            row = boxes[levels["first"][level] + node].astype(float)
            own = slice(node * size, (node + 1) * size)
            apart = pos[own] - row[:dim]
            apart -= np.array(box.periodic) * lengths * np.round(apart / lengths)
            reach = np.abs(apart) + spread[own]
            assert (reach <= row[4 : 4 + dim] * (1 + 1e-12)).all()
            if level == 0 and (row[4 : 4 + dim] < lengths / 4).all():
                assert np.allclose(reach.max(axis=0), row[4 : 4 + dim], rtol=0, atol=1e-3)
        size *= LEAVES if level == 0 else NODES


def cloud(dim: int, n: int, spread: bool = False) -> md.State:
    """Particles in a box with a wall, or half of them in a dense cluster in a wide one."""
    if not spread:
        return dense_cloud(dim, n=n)
    generator = np.random.default_rng(3)
    box = md.Box((60.0, 50.0, 40.0)[:dim], (True, False, True)[:dim])
    pos = generator.random((n, dim)) * box.lengths
    pos[: n // 2] = 0.3 * pos[: n // 2] / np.array(box.lengths) * 6
    return md.State(pos, generator.normal(size=(n, dim)), box)


KINDS = [(dim, real) for dim in (3, 2) for real in ("float32", "float64")]


@pytest.mark.parametrize(
    ("dim", "precision", "n", "spread"),
    [
        (3, "float64", 150, False),
        (3, "float64", 1100, True),
        *(tiers.full(3, "float32", n, n == 1100) for n in (150, 1100)),
        *(tiers.full(2, "float64", n, n == 1100) for n in (150, 1100)),
        *(tiers.nightly(dim, real, n, n == 150) for dim, real in KINDS for n in (150, 1100)),
        *(tiers.nightly(2, "float32", n, n == 1100) for n in (150, 1100)),
    ],
)
def test_forces_and_boxes_are_those_of_the_cpu(dim, precision, n, spread):
    state = cloud(dim, n, spread)
    case = Case(state, precision)
    assert np.abs(case.expected).max() > 100
    limit = largest_difference(state, precision)
    found = case.fold(case.run.law)
    assert np.abs(found - case.expected).max() <= limit
    assert np.array_equal(case.fold(case.run.law, bytes_pass=True), found)
    for boxes in (case.run.search._tree.boxes, case.tree.boxes.host):
        assert_boxes_hold_their_particles(boxes, case)


def test_a_tree_of_three_levels_and_radii_that_differ():
    generator, n, side = np.random.default_rng(4), 17_000, 35.0
    pos, radius = generator.random((n, 3)) * side, generator.uniform(0.1, 0.5, n)
    radius[::500] = 2.0
    state = md.State(pos, generator.normal(size=(n, 3)), md.Box((side,) * 3), radius=radius)
    case = Case(state)
    assert case.tree.levels["count"] == 3
    assert np.abs(case.expected).max() > 100
    assert np.abs(case.fold(case.run.law) - case.expected).max() <= 1e-7
    assert_boxes_hold_their_particles(case.tree.boxes.host, case)


def test_a_block_near_more_leaves_than_it_has_room_for():
    generator, n = np.random.default_rng(5), 2400
    pos = generator.random((n, 3)) * 2 + 4
    state = md.State(pos, np.zeros((n, 3)), md.Box((10.0,) * 3))
    case = Case(state)
    assert n / LEAF > 256  # MOST_NODES of wide_traversal.cuh
    assert np.abs(case.fold(case.run.law) - case.expected).max() <= largest_difference(state, "float64")


@pytest.mark.parametrize("n", [100, 128, 150])
def test_threads_beyond_the_last_particle_add_nothing(n):
    case = Case(dense_cloud(3, n=n))
    on_cpu, on_device = (Virial(case.run.law, n, place) for place in (case.run.system.backend, case.device))
    case.run.search.force(on_cpu, np.zeros_like(case.run.system.particles.pos))
    case.fold(on_device)
    assert np.abs(on_cpu.virial).max() > 10
    assert np.allclose(on_device.virial.host, on_cpu.virial, rtol=1e-9, atol=1e-9)


def unequal_cloud(dim: int, n: int) -> md.State:
    state = dense_cloud(dim, n=n)
    radius = np.random.default_rng(7).uniform(0.2, 0.6, n)
    return md.State(state.pos, state.vel, state.box, radius=radius)


@pytest.mark.parametrize(
    ("dim", "n", "unequal"), [tiers.full(2, 300, False), (3, 300, True), (3, 256, False)]
)
def test_particles_that_are_moved_in_memory_get_the_boxes_of_their_new_places(dim, n, unequal):
    case = Case(unequal_cloud(dim, n) if unequal else dense_cloud(dim, n=n))
    device, tree, rng = case.device, case.tree, np.random.default_rng(8)
    order, id = rng.permutation(n).astype(np.int32), rng.permutation(n).astype(np.int32)
    scale = 1.7 if unequal else 0.0
    radius = case.radius.host
    pos, vel, new_id, new_radius = (np.full_like(a, 7) for a in (case.pos.host, case.vel.host, id, radius))
    new = rows(pos), rows(vel), HostArray(new_id), HostArray(new_radius)
    tree.boxes.host[...], tree.bytes.host[...] = np.nan, -1
    now = device.upload(order), case.pos, case.vel, device.upload(id), case.radius
    tree.gather({}, scale)(n, *now, *new)
    tree.fit_above(new[0])
    np.testing.assert_array_equal(new[0].host, case.pos.host[order])
    np.testing.assert_array_equal(new[1].host, case.vel.host[order])
    np.testing.assert_array_equal(new_id, id[order])
    np.testing.assert_array_equal(new_radius, radius[order] if unequal else radius)
    found = tree.boxes.host.copy(), tree.bytes.host.copy()[:n]
    tree.fit(new[0], new[3], scale)
    for one, other in zip(found, (tree.boxes.host, tree.bytes.host[:n]), strict=True):
        np.testing.assert_array_equal(one, other)
    assert np.abs(found[0]).max() > 1


@pytest.mark.parametrize(("dim", "n", "unequal"), [tiers.full(2, 300, True), (3, 300, False)])
@pytest.mark.parametrize("turn", [0, 1])
def test_a_fused_step_computes_the_boxes_of_the_next_step(dim, n, unequal, turn):
    case = Case(unequal_cloud(dim, n) if unequal else dense_cloud(dim, n=n))
    device, tree, (_, reach) = case.device, case.tree, case.run.search._boxes_of()
    assert len(tree.next[0]) == 0
    tree.alternate()
    law = scaled_to_radii(case.run.law, case.radius if unequal else case.radius.host)
    moved, real = (rows(np.zeros_like(case.pos.host)), rows(np.zeros_like(case.pos.host))), np.float64
    fault, clock = device.upload(np.array([2**64 - 1], np.uint64)), device.zeros(2, np.int64)
    out = KickDrift(
        *moved, device.zeros(n, np.int32), real(1e-4), real(0.01), fault, clock, turn, *unguarded(device)
    )
    made = tree.levels, tree.units, case.radius, reach, tree.eps
    kernels, grid = device.kernels("md.search.bvh.wide_bvh", law), case.run.search.grid.record
    numbers = kernel_law(law, np.dtype(real))
    kernels.force(n, case.pos, case.vel, tree.boxes, tree.bytes, *made, *tree.next, 1, grid, numbers, out)
    tree.turn = 1
    found = tree.boxes.host.copy(), tree.bytes.host.copy()
    assert np.abs(moved[0].host - case.pos.host).max() > 1e-4
    tree.fit(moved[0], case.radius, float(reach["scale"][0]))
    leaves, nodes = tree.levels["number"][0, :2]
    np.testing.assert_array_equal(found[0][: leaves + nodes], tree.boxes.host[: leaves + nodes])
    np.testing.assert_array_equal(found[1][:n], tree.bytes.host[:n])


class Asynchronous(Device):
    """An emulated device whose steps are captured: captured launches are executed when they are launched."""

    check_interval = 5
    count_cells = Cuda.count_cells
    _captured: list | None = None

    def fill(self, array: HostArray, value: Any) -> None:
        self._do(lambda: Device.fill(self, array, value))

    def kernels(self, stem: str, law: Any = None, constants: Any = None) -> Any:
        made = super().kernels(stem, law, constants)
        return Launches(made, self._do)

    def _do(self, work: Any) -> None:
        if self._captured is None:
            work()
        else:
            self._captured.append(work)

    def record(self, work: Any) -> Any:
        self._captured = captured = []
        try:
            work()
        finally:
            self._captured = None
        return lambda: [launch() for launch in captured]


class Launches:
    """Kernels, each of whose launches with its arguments is given to a function."""

    def __init__(self, kernels: Any, do: Any):
        self._kernels, self._do = kernels, do

    def __getattr__(self, name: str) -> Any:
        kernel = getattr(self._kernels, name)

        def launch(*arguments: Any) -> None:
            kept = [a.copy() if isinstance(a, np.ndarray) else a for a in arguments]  # records, by value
            self._do(lambda: kernel(*kept))

        return launch


@pytest.mark.parametrize(("dim", "every"), [tiers.full(3, 4), tiers.nightly(3, 1), tiers.nightly(2, 3)])
def test_captured_steps_are_those_of_the_cpu(monkeypatch, dim, every):
    # The cells that find the pairs of the start wait for threads that the emulated device lacks.
    monkeypatch.setattr(EnergyMonitor, "check_start", lambda self, step: setattr(self, "is_started", True))
    state = md.scenes.benchmark_gas(343, 0.2, seed=1, backend="cpu")
    if dim == 2:
        pos = 1.3 * np.stack(np.divmod(np.arange(600), 24), axis=1)
        state = md.State(pos, np.random.default_rng(1).normal(0, 4, (600, 2)), md.Box((32.5, 31.2)))
    # Fast enough for boxes of an earlier step to miss contacts.
    state = md.State(state.pos, 30 * state.vel, state.box)
    runs = []
    for backend in ("cpu", Asynchronous()):
        run = md.Simulation(
            state, md.scenes.BENCHMARK_LAW, search=WideBvh(rebuild_every=every), dt=md.scenes.BENCHMARK_DT,
            backend=backend, precision="float64", fused=True, allow_overlap=True,
        )  # fmt: skip
        run.run(21, phases=False)
        run.forces()  # between two runs: boxes for forces alone
        run.run(9, phases=False)
        runs.append(run)
    on_cpu, on_device = (run.state.by_id() for run in runs)
    np.testing.assert_allclose(on_device.pos, on_cpu.pos, rtol=0, atol=1e-9)
    assert runs[1].builds >= 30 // every
