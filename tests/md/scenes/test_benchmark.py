"""The benchmark gas: the same bits on CPU and CUDA, no overlap, and no arrays before they are read."""

import copy
import pickle

import numpy as np
import pytest
from scipy import stats
from scipy.spatial import cKDTree

import md
from md.backend import Cpu
from md.scenes import benchmark
from tests import tiers
from tests.md.cavity.strategies.emulated_cuda import EmulatedCuda

LAW, DT = md.scenes.BENCHMARK_LAW, md.scenes.BENCHMARK_DT
SIZES = (1, 7, 1000, 1001, 1331)  # cubes, and between


@pytest.fixture(scope="module")
def emulated():
    return EmulatedCuda()


def gas(n: int, phi: float = 0.3, **options) -> md.State:
    return md.scenes.benchmark_gas(n, phi, **{"backend": "cpu", **options})


def arrays_on(backend, state: md.State, precision=np.float64) -> list[np.ndarray]:
    """Position, velocity and id, made by the kernel of a backend."""
    n = len(state)
    made = backend.rows(n, 3, precision), backend.rows(n, 3, precision), backend.empty(n, np.int32)
    state.store(backend, *made)
    return [np.ascontiguousarray(backend.download(array)) for array in made]


def same(one: list[np.ndarray], other: list[np.ndarray]) -> bool:
    return all(a.tobytes() == b.tobytes() for a, b in zip(one, other, strict=True))


@pytest.mark.parametrize("memory_order", ["shuffled", "lattice"])
@pytest.mark.parametrize("n", SIZES)
def test_the_cuda_kernels_give_the_bits_of_the_cpu(emulated, n, memory_order):
    for seed in (0, 2**80 + 1):
        on_cpu, on_device = (
            gas(n, seed=seed, memory_order=memory_order, backend=backend) for backend in ("cpu", emulated)
        )
        assert on_cpu._record.tobytes() == on_device._record.tobytes()
        assert same(arrays_on(Cpu(), on_cpu), arrays_on(emulated, on_device))


def test_a_thread_of_a_device_sums_several_particles(emulated, monkeypatch):
    monkeypatch.setattr(benchmark, "THREADS", 256)
    assert gas(1001, backend=emulated)._record.tobytes() == gas(1001)._record.tobytes()


@pytest.mark.parametrize(
    ("layout", "precision"), tiers.product([*md.backend.LAYOUTS], [np.float32, np.float64], 2, tiers.full)
)
def test_the_bits_are_the_same_in_every_layout_and_precision(layout, precision):
    device, state = EmulatedCuda(), gas(700, 0.45, seed=5)
    device.layout = layout
    made = arrays_on(device, state, precision)
    assert same(made, arrays_on(Cpu(layout), state, precision))
    given = md.State(state.pos, state.vel, state.box, state.id)  # checked, and then rounded
    assert same(made, arrays_on(Cpu(), given, precision))


@pytest.mark.split
def test_the_sums_do_not_depend_on_the_number_of_parts(monkeypatch):
    one = gas(5000)._record
    monkeypatch.setattr(Cpu, "workers", 7, raising=False)
    monkeypatch.setattr("md.backend.cpu.thread_count", lambda: 7)
    assert gas(5000)._record.tobytes() == one.tobytes()


@pytest.mark.parametrize(
    ("n", "phi"), [(2, 0.06), (1000, 0.2), (1000, 0.523), (1001, 0.38), (20_000, 0.1), (2**15, 0.5235)]
)
def test_no_two_centres_are_closer_than_a_diameter(n, phi):
    for seed in range(3):
        state = gas(n, phi, seed=seed)
        assert not state.box.outside(state.pos).any()
        near = cKDTree(state.pos, boxsize=state.box.lengths).query(state.pos, 2)[0][:, 1]
        assert near.min() >= 1


def test_the_extreme_jitter_leaves_a_diameter_despite_rounding():
    """Two neighbours at the ends of their jitter, at every place of a lattice of 1291 sites a side."""
    n = 2**31 - 1024
    box = md.scenes.box_for(n, 0.522)
    record = benchmark._lattice(n, 0.522, box)
    spacing, amplitude, side = record["spacing"][0], record["amplitude"][0], int(record["side"][0])
    assert side == 1291
    most = 0.5 - 2.0**-43
    cells = np.arange(side) + 0.5
    right, left = cells * spacing + most * amplitude, cells * spacing - most * amplitude
    length = box.lengths[0]
    assert (left[1:] - right[:-1]).min() >= 1
    assert left[0] + length - right[-1] >= 1
    assert left[0] > 0
    assert right[-1] < length


@pytest.mark.parametrize("n", [2, 3, 10, 1000, 50_000])
def test_velocities_have_no_momentum_and_the_exact_temperature(n):
    state = gas(n, 0.05, seed=n)
    assert np.abs(state.vel.sum(axis=0)).max() < 1e-14 * np.abs(state.vel).sum()
    assert np.square(state.vel).sum() / (3 * n) == pytest.approx(16, rel=1e-13)


def test_velocities_are_normal_and_independent_of_places():
    state = gas(100_000, 0.2, memory_order="lattice")
    for axis in range(3):
        assert stats.kstest(state.vel[:, axis] / 4, "norm").pvalue > 1e-3
    assert len(np.unique(state.vel)) > 0.999 * state.vel.size
    assert (
        np.abs(np.corrcoef(np.column_stack([state.vel, np.roll(state.vel, 1, 0)]).T) - np.eye(6)).max()
        < 0.015
    )


def test_jitter_is_uniform_around_the_centres_of_the_cells():
    n, side = 27_000, 30
    state = gas(n, 0.2, memory_order="lattice")
    spacing = state.box.lengths[0] / side
    offsets = (state.pos / spacing % 1 - 0.5) * spacing / (spacing - 1)
    cells = (state.pos // spacing).astype(int)
    assert np.array_equal(np.ravel_multi_index(tuple(cells.T), (side,) * 3, order="F"), state.id)
    for axis in range(3):
        assert stats.kstest(offsets[:, axis] + 0.5, "uniform").pvalue > 1e-3
    assert np.abs(np.corrcoef(np.column_stack([offsets, state.vel]).T) - np.eye(6)).max() < 0.03


@pytest.mark.parametrize("n", SIZES)
def test_ids_are_a_permutation(n):
    assert np.array_equal(np.sort(gas(n).id), np.arange(n))
    assert np.array_equal(gas(n, memory_order="lattice").id, np.arange(n))


def test_another_seed_gives_other_places_velocities_and_orders():
    one, other = gas(500, seed=1), gas(500, seed=2)
    assert not np.array_equal(one.id, other.id)
    one, other = one.by_id(), other.by_id()
    assert not (one.pos == other.pos).any()
    assert not (one.vel == other.vel).any()


class TestRecipe:
    def test_a_simulation_needs_no_arrays_of_the_state(self, monkeypatch):
        state = gas(1000)
        expected = gas(1000).vel
        monkeypatch.setattr(benchmark.BenchmarkGas, "__getattr__", None)
        simulation = md.Simulation(state, LAW, dt=DT, backend="cpu")
        assert len(state) == len(simulation) == 1000
        assert "1000 particles" in repr(state)
        assert state.filling_fraction == pytest.approx(0.3)
        assert np.array_equal(simulation.state.vel, expected)

    @pytest.mark.parametrize("change", ["in place", "assigned", "assigned unread"])
    def test_arrays_that_were_changed_are_those_of_a_simulation(self, change):
        state = gas(100)
        if change == "in place":
            state.vel[3] = 0
        else:
            state.vel = np.zeros((100, 3)) if change == "assigned unread" else 0 * state.vel
        found = md.Simulation(state, LAW, dt=DT, backend="cpu").state
        assert np.array_equal(found.vel, state.vel)
        assert not found.vel[3].any()
        assert np.array_equal(found.pos, gas(100).pos)

    def test_can_be_copied_and_pickled_before_and_after_it_is_read(self):
        state = gas(100)
        for _ in range(2):
            for other in (copy.copy(state), copy.deepcopy(state), pickle.loads(pickle.dumps(state))):
                assert np.array_equal(other.pos, gas(100).pos)
                assert np.array_equal(other.id, gas(100).id)
            assert state.pos is state.pos

    def test_another_attribute_is_an_error(self):
        with pytest.raises(AttributeError, match="'BenchmarkGas' object has no attribute 'position'"):
            gas(8).position  # noqa: B018  # reading it is the test

    def test_too_little_memory_for_arrays_on_the_host(self, monkeypatch):
        state = gas(2**22)
        monkeypatch.setattr("sfc.checks.host_memory", lambda: 2**20)
        message = r"arrays of 4194304 particles on the host: 218,103,808 bytes .*; take fewer particles, or"
        with pytest.raises(ValueError, match=message):
            state.pos  # noqa: B018  # reading it is the test


class TestBackend:
    def test_the_memory_is_that_of_the_backend(self, emulated, monkeypatch):
        monkeypatch.setattr(EmulatedCuda, "free_memory", lambda self: 2**20)
        with pytest.raises(
            ValueError, match=r"a scene of 100000000 particles: 2,800,000,000 bytes .*1,048,576"
        ):
            gas(10**8, backend=emulated)

    def test_auto_is_the_device_for_many_particles(self, emulated, monkeypatch):
        monkeypatch.setattr(benchmark, "why_not", lambda: None)
        monkeypatch.setattr(benchmark, "get", lambda backend: backend)
        assert benchmark._summing_backend("auto", 2**16) == "cuda"
        assert benchmark._summing_backend("auto", 2**16 - 1) == "cpu"
        assert benchmark._summing_backend("cpu", 2**20) == "cpu"
        monkeypatch.setattr(benchmark, "why_not", lambda: "no device")
        assert benchmark._summing_backend("auto", 2**20) == "cpu"
        assert benchmark._summing_backend(emulated, 5) is emulated

    def test_another_backend_is_an_error(self):
        with pytest.raises(ValueError, match="unknown backend 'gpu'; allowed: one of auto, cpu, cuda"):
            gas(8, backend="gpu")
        with pytest.raises(TypeError, match=r"backend = None of class"):
            gas(8, backend=None)


@pytest.mark.gpu
class TestDevice:
    @pytest.mark.parametrize("fmad", [True, False])
    @pytest.mark.parametrize("n", [*SIZES, 2**18 + 1])
    def test_the_bits_are_those_of_the_cpu(self, device, n, fmad):
        place = md.backend.Cuda(fmad=fmad)
        for memory_order in ("shuffled", "lattice"):
            on_cpu, on_device = (
                gas(n, 0.35, seed=9, memory_order=memory_order, backend=backend) for backend in ("cpu", place)
            )
            assert on_cpu._record.tobytes() == on_device._record.tobytes()
            for precision in (np.float32, np.float64):
                assert same(arrays_on(Cpu(), on_cpu, precision), arrays_on(place, on_device, precision))

    @pytest.mark.parametrize("layout", md.backend.LAYOUTS)
    def test_a_million_particles_run(self, device, layout, monkeypatch):
        monkeypatch.setattr(benchmark.BenchmarkGas, "__getattr__", None)  # no arrays on the host
        state = md.scenes.benchmark_gas(2**20, 0.2)
        run = md.Simulation(
            state, LAW, "coherent", dt=DT, backend="cuda", layout=layout, precision="float32", fused=True
        )
        run.run(10)
        assert run.step == 10
        assert md.observe.kinetic_energy(run.state) == pytest.approx(24, rel=2e-3)
