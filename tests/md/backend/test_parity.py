"""Parity of CUDA and CPU: integers are equal, floats agree within a stated tolerance."""

import numpy as np
import pytest

import md
from md.backend import Cpu, Cuda
from md.particles.arrays import ParticleArrays
from md.particles.cell_grid import CellGrid

pytestmark = pytest.mark.gpu


@pytest.fixture(scope="module")
def device() -> Cuda:
    try:
        return Cuda(fmad=False)
    except md.BackendUnavailableError as reason:
        pytest.skip(str(reason))


@pytest.fixture(scope="module")
def gas() -> md.State:
    """Make a gas with many contacts."""
    simulation = md.Simulation(
        md.scenes.benchmark_gas(20_000, 0.35),
        md.scenes.BENCHMARK_LAW,
        dt=md.scenes.BENCHMARK_DT,
        backend="cpu",
    )
    simulation.run(150)
    return simulation.state


@pytest.mark.parametrize("precision", [np.float32, np.float64])
def test_cell_keys_and_their_stable_sort_are_equal(device, gas, precision):
    found = []
    for backend in (Cpu(), device):
        particles = ParticleArrays(gas, precision, backend)
        grid = CellGrid(gas.box, 1.0, precision, backend)
        keys, order = (backend.empty(len(gas), np.int32) for _ in range(2))
        start = backend.empty(grid.size + 1, np.int32)
        grid.keys(particles.pos, backend.empty(0, np.int32), keys)
        backend.sort(keys, start, order, backend.sort_scratch(len(gas), grid.size))
        found.append([backend.download(a) for a in (keys, start, order)])
    for on_cpu, on_device in zip(*found, strict=True):
        assert np.array_equal(on_cpu, on_device)


@pytest.mark.parametrize("crowd", [31, 33, 5000])
def test_a_crowded_bin_keeps_its_order(device, crowd):
    keys = np.zeros(2 * crowd, np.int32)
    keys[::2] = 1
    start, order = device.empty(3, np.int32), device.empty(2 * crowd, np.int32)
    device.sort(device.upload(keys), start, order, device.sort_scratch(2 * crowd, 2))
    assert device.download(start).tolist() == [0, crowd, 2 * crowd]
    assert np.array_equal(device.download(order), np.argsort(keys, kind="stable"))


def test_a_sort_need_be_stable_in_the_first_bins_alone(device):
    keys = np.random.default_rng(2).integers(0, 50, 4000).astype(np.int32)
    start, order = device.empty(51, np.int32), device.empty(4000, np.int32)
    device.sort(device.upload(keys), start, order, device.sort_scratch(4000, 50), stable_bins=20)
    found, right = device.download(order), np.argsort(keys, kind="stable")
    stable = int(device.download(start)[20])
    assert stable == (keys < 20).sum()
    assert np.array_equal(found[:stable], right[:stable])
    assert np.array_equal(keys[found], keys[right])
    assert np.array_equal(np.sort(found), np.arange(4000))


@pytest.mark.parametrize("ordering", ["row", "zigzag", "random", "morton", "hilbert"])
def test_a_reorder_gives_the_same_memory_order(device, gas, ordering):
    ids = []
    for backend in ("cpu", device):
        simulation = md.Simulation(
            gas, md.scenes.BENCHMARK_LAW, reorder=md.Reorder(ordering, md.Every(1)), backend=backend
        )
        simulation.run(1)
        ids.append(simulation.state.id)
    assert np.array_equal(*ids)


@pytest.mark.parametrize("fmad", [False, True])
@pytest.mark.parametrize("search", list(md.search.SEARCHES))
@pytest.mark.parametrize(("precision", "tolerance"), [("float32", 1e-5), ("float64", 1e-12)])
def test_forces_of_one_step_agree(gas, device, fmad, search, precision, tolerance):
    forces = []
    for backend in ("cpu", Cuda(fmad=fmad)):
        simulation = md.Simulation(
            gas, md.scenes.BENCHMARK_LAW, search=search, precision=precision, backend=backend
        )
        forces.append(simulation.forces().astype(np.float64))
    on_cpu, on_device = forces
    assert np.abs(on_cpu).max() > 100
    assert np.linalg.norm(on_cpu - on_device) <= tolerance * np.linalg.norm(on_cpu)


@pytest.mark.parametrize("search", list(md.search.SEARCHES))
def test_pairs_and_accesses_are_equal(gas, device, search):
    if search in ("verlet", "verlet_tree"):  # the defaults depend on the backend
        order = {"verlet": "row", "verlet_tree": "hilbert"}[search]
        search = md.search.SEARCHES[search](order, skin=0.3)
    on_cpu, on_device = (
        md.Simulation(gas, md.scenes.BENCHMARK_LAW, search=search, backend=backend)
        for backend in ("cpu", device)
    )
    assert np.array_equal(on_cpu.pairs(), on_device.pairs())
    assert len(on_cpu.pairs()) > 1000
    own, other = on_cpu.accesses(), on_device.accesses()
    assert np.array_equal(own.offsets, other.offsets)
    reader = np.repeat(np.arange(len(gas)), np.diff(own.offsets))
    for stream in (own, other):  # a linked list has any order on a device
        stream.reads[:] = stream.reads[np.lexsort((stream.reads, reader))]
    assert np.array_equal(own.reads, other.reads)


@pytest.mark.parametrize("search", list(md.search.SEARCHES))
def test_the_benchmark_gas_has_the_cpus_energy_after_200_steps_in_float32(device, search):
    energies = []
    for backend in ("cpu", "cuda"):
        simulation = md.Simulation(
            md.scenes.benchmark_gas(4096, 0.2),
            md.scenes.BENCHMARK_LAW,
            search=search,
            dt=md.scenes.BENCHMARK_DT,
            precision="float32",
            backend=backend,
        )
        simulation.run(200)
        energies.append(md.observe.kinetic_energy(simulation.state))
    assert energies[1] == pytest.approx(energies[0], rel=1e-4)


def test_too_large_an_array_raises_a_named_error(device):
    with pytest.raises(md.backend.DeviceMemoryError, match=r"no room on the device .* GiB.*fewer particles"):
        device.empty(2**45, np.float64)


def test_a_fault_between_two_readings_keeps_its_step_and_particle(device):
    state = md.State([[1, 1, 1], [2, 2, 2]], [[0, 0, 0], [0, 0, 17.0]], md.Box((4, 4, 4), periodic=False))
    simulation = md.Simulation(state, md.laws.SpringDashpot(0, 0), dt=0.01, backend="cuda")
    with pytest.raises(md.ParticleEscaped) as fault:
        simulation.run(45)
    assert (fault.value.step, fault.value.particle) == (11, 1)
    assert simulation.step == 45


def test_a_device_is_described(device):
    described = device.describe()
    assert described["multiprocessors"] > 0
    assert described["compute_capability"]
    assert described["device"]


def test_a_call_with_another_number_of_arguments_is_refused(device):
    with pytest.raises(TypeError, match=r"md\.particles\.arrays\.gather takes 10 arguments, not 1"):
        device.kernels("md.particles.arrays").gather(1)
    with pytest.raises(
        AttributeError, match=r"no kernel 'scatter' in md\.particles\.arrays\.cu; known: gather"
    ):
        device.kernels("md.particles.arrays").scatter(1)
