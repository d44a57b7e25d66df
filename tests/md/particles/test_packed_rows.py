"""Packed rows: positions and velocities of fused steps on a device, in one block of memory."""

import numpy as np
import pytest

import md
from md.backend.kernels import launcher
from md.integrate.fused import KickDrift
from md.laws.pair import kernel_law
from md.laws.polydisperse import PolydisperseLaw
from md.particles.arrays import PackedRows, ParticleArrays
from md.particles.cell_grid import CellGrid
from md.search.displacement_guard import unguarded
from tests.md.cavity.strategies.emulated_cuda import EmulatedCuda, HostArray
from tests.tiers import first

LAW = md.laws.SpringDashpot(stiffness=1e3, damping=1.0)
CASES = [(3, "float32"), (2, "float32"), (3, "float64")]
ON_DEVICE = first(CASES)


@pytest.fixture(scope="module")
def device():
    return EmulatedCuda()


def cloud(dim: int, precision: str, n: int = 50) -> tuple[np.ndarray, np.ndarray]:
    random = np.random.default_rng(2)
    return random.uniform(0, 4, (n, dim)).astype(precision), random.normal(size=(n, dim)).astype(precision)


def packed(pos: np.ndarray, vel: np.ndarray) -> PackedRows:
    """Packed rows of these positions and velocities."""
    rows = PackedRows(np.empty(2 * pos.size, pos.dtype), pos.shape[1])
    rows.fill(pos, vel)
    return rows


def plain(array: np.ndarray) -> HostArray:
    """Rows of 4 numbers, of which the first are those of the array."""
    padded = np.zeros((len(array), 4), array.dtype)
    padded[:, : array.shape[1]] = array
    return HostArray(padded[:, : array.shape[1]])


@pytest.mark.parametrize(("dim", "precision"), CASES)
def test_rows_hold_positions_and_velocities(dim, precision):
    for n in (0, 1, 50):
        pos, vel = cloud(dim, precision, n)
        rows, found = packed(pos, vel), np.zeros_like(vel)
        rows.copy_velocities(found)
        np.testing.assert_array_equal(found, vel)
        np.testing.assert_array_equal(rows.pos, pos)


def test_reading_the_velocities_ends_the_packing():
    state = md.scenes.benchmark_gas(64, 0.2)
    p = ParticleArrays(state, np.dtype(np.float32), md.backend.Cpu("aos4"))
    vel = p.vel.copy()
    for _ in range(2):
        p.pack()
        assert p.is_packed
        assert p.constants == {"PACKED": 1}
        assert p.spare[0] is p.spare[1] is not p.pos
        p.swap()
        p.swap()
        np.testing.assert_array_equal(p.vel, vel)
        assert not p.is_packed
        assert p.constants == {}
        assert len({id(array) for array in (p.pos, p.vel, *p.spare)}) == 4
    np.testing.assert_array_equal(p.to_state().pos, state.pos.astype(np.float32))


def test_a_velocity_read_needs_no_spare_one():
    p = ParticleArrays(md.scenes.benchmark_gas(64, 0.2), np.dtype(np.float32), md.backend.Cpu("aos4"))
    p.pack()
    assert p._spare == 2 * [p.spare[0]]
    p.vel  # noqa: B018
    assert len(p._spare) == 1
    p.pack()
    p.vel  # noqa: B018
    assert len({id(array) for array in (p.pos, p.vel, *p.spare)}) == 4


@pytest.mark.parametrize(
    ("head", "takes"),
    [
        ("const Law& law, const velocity* vel, int n", True),
        ("const Law& law, const velocity  *v,\n int n", True),
        ("const Law& law, const real* vel, int n", False),
        ("const Law& law, const real* vel /* not const velocity* vel */, int n", False),
    ],
)
def test_a_law_takes_packed_rows_by_the_type_of_its_velocities(tmp_path, monkeypatch, head, takes):
    path = tmp_path / "law.cuh"
    path.write_text(f"// const velocity* vel\n__device__ Vec interact({head}) {{\n    return f(law);\n}}\n")
    monkeypatch.setattr(launcher, "functor_of", lambda kind: path)
    assert launcher.takes_packed_rows(type(LAW)) is takes


def test_a_law_and_the_law_that_it_wraps_take_packed_rows():
    assert launcher.takes_packed_rows(type(LAW))
    assert launcher.takes_packed_rows(PolydisperseLaw)


@pytest.mark.parametrize(("dim", "precision"), ON_DEVICE)
def test_particles_are_permuted_with_their_velocities(device, dim, precision):
    pos, vel = cloud(dim, precision)
    before, after = packed(pos, vel), packed(np.zeros_like(pos), np.zeros_like(vel))
    order = np.random.default_rng(3).permutation(len(pos)).astype(np.int32)
    none, rows = device.empty(0, np.int32), [HostArray(packed.pos) for packed in (before, after)]
    device.kernels("md.particles.arrays", constants={"PACKED": 1}).gather(
        len(pos), device.upload(order), rows[0], rows[0], none, none, rows[1], rows[1], none, none
    )
    found = np.zeros_like(vel)
    after.copy_velocities(found)
    np.testing.assert_array_equal(found, vel[order])
    np.testing.assert_array_equal(after.pos, pos[order])


@pytest.mark.parametrize(("dim", "precision"), ON_DEVICE)
def test_a_fused_step_is_that_of_separate_arrays(device, dim, precision):
    pos, vel = cloud(dim, precision)
    n, dtype = len(pos), np.dtype(precision)
    grid = CellGrid(md.Box((4.0,) * dim), 1.3, dtype, md.backend.Cpu())
    law, real = kernel_law(LAW, dtype), dtype.type
    everyone = np.array([[j for j in range(n) if j != i] for i in range(n)], np.int32)
    entries = np.concatenate([everyone, np.tile(np.arange(n)[:, None], 3)], 1)[:, : -(-n // 3) * 3]
    entries = (entries - np.arange(n)[:, None] + 2**20).reshape(n, -1, 3).transpose(1, 0, 2)
    lists = (entries.astype(np.uint64) << np.array([0, 21, 42], np.uint64)).sum(2, dtype=np.uint64)
    lists[:-1] |= np.uint64(2**63)  # another row follows
    steps = {}
    for kind in ("separate", "packed"):
        if kind == "packed":
            rows, moved = packed(pos, vel), packed(pos, vel)
            given, out = 2 * [HostArray(rows.pos)], 2 * [HostArray(moved.pos)]
        else:
            given, out = [plain(pos), plain(vel)], [plain(pos), plain(vel)]
        clock, fault = device.zeros(2, np.int64), device.upload(np.array([2**64 - 1], np.uint64))
        guard = unguarded(device)
        step = KickDrift(*out, device.zeros(n, np.int32), real(0.01), real(0.02), fault, clock, 0, *guard)
        kernels = device.kernels(
            "md.search.lists.list_search", LAW, {"PACKED": 1} if kind == "packed" else {}
        )
        partners = device.upload(lists.reshape(-1))
        kernels.force(n, *given, partners, grid.record, law, step)
        velocities = np.zeros_like(vel)
        if kind == "packed":
            moved.copy_velocities(velocities)
        else:
            velocities = out[1].host
        steps[kind] = out[0].host.copy(), velocities
    assert np.abs(steps["packed"][1] - vel).max() > 0.1
    for separate, together in zip(*steps.values(), strict=True):
        np.testing.assert_array_equal(separate, together)


@pytest.mark.gpu
@pytest.mark.parametrize("dim", [2, 3])
def test_a_run_that_is_looked_at_goes_on_as_if_it_were_not(dim):
    side = 12 if dim == 3 else 40
    lattice = 1.2 * np.stack(np.meshgrid(*dim * [np.arange(side)], indexing="ij"), -1).reshape(-1, dim)
    vel = np.random.default_rng(1).normal(0, 5, lattice.shape)
    state = md.State(lattice, vel, md.Box((1.2 * side,) * dim))

    def run(looks: bool) -> md.State:
        simulation = md.Simulation(
            state, md.scenes.BENCHMARK_LAW, "verlet", dt=md.scenes.BENCHMARK_DT, backend="cuda", fused=True
        )
        for _ in range(3):
            simulation.run(40, phases=False)
            assert simulation.system.particles.is_packed
            if looks:
                simulation.system.particles.unpack()
        return simulation.state

    looked_at, alone = run(True).by_id(), run(False).by_id()
    np.testing.assert_array_equal(looked_at.pos, alone.pos)
    np.testing.assert_array_equal(looked_at.vel, alone.vel)
