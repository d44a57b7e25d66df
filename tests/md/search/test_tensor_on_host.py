"""The kernel of the search `tensor` on the host, with emulated tensor cores, against the CPU's `naive`."""

import re
import subprocess
from pathlib import Path

import numpy as np
import pytest

import md
from md.backend.kernels.launcher import _struct, functor_of
from md.backend.kernels.source import STORE, assemble, struct_of_dtype
from md.laws.pair import kernel_law
from md.search.grid.tensor import PARTS
from tests.on_host.build import built
from tests.tiers import full

PROGRAM = """
template <class T> void read(FILE* file, std::vector<T>& into, size_t count) {
    into.resize(count);
    if (fread(into.data(), sizeof(T), count, file) != count) abort();
}
std::vector<real> pos, vel, out;
std::vector<int> start;
std::vector<Windows> windows;
std::vector<Grid> grid;
std::vector<Law> law;
int n, per_row, per_plane, blocks, capacity, cells;
static_assert(BLOCK_THREADS == FIBERS);
void kernel() {
    force(BLOCK_THREADS * blocks, n, pos.data(), vel.data(), start.data(), per_row, per_plane, capacity, 0,
          windows[0], grid[0], law[0], Out{out.data()});
}
int main(int, char** given) {
    FILE* file = fopen(given[1], "rb");
    n = atoi(given[2]), per_row = atoi(given[3]), per_plane = atoi(given[4]), blocks = atoi(given[5]);
    capacity = atoi(given[6]), cells = atoi(given[7]);
    read(file, pos, 4 * n), read(file, vel, 4 * n), read(file, start, cells + 1);
    read(file, windows, 1), read(file, grid, 1), read(file, law, 1);
    out.assign(4 * n, NAN);
    for (int block = 0; block < blocks; ++block) run_block(block, kernel);
    file = fopen(given[8], "wb");
    fwrite(out.data(), sizeof(real), 4 * n, file);
    fclose(file);
    printf("%d", plain_blocks);
}
"""
BOXES = {
    "periodic": md.Box((31.0, 16.0, 17.0)),
    "small": md.Box((10.0, 11.0, 14.0)),
    "open": md.Box((26.0, 12.0, 17.0), periodic=False, open=(True, False, True)),
    "flat": md.Box((41.0, 33.0)),
}
N = 192  # in the small box
TOLERANCE = 2e-5  # of increments up to 2.5: sums of some 50 numbers up to 20, in float32


def compiled(dim: int, windows: np.ndarray, law: md.laws.Boids) -> Path:
    """Compile the kernel for a number of different radii."""
    box = md.Box((20.0,) * dim)
    grid = md.particles.cell_grid.CellGrid(box, 5.0, np.dtype(np.float32), md.backend.get("cpu"))
    structs = {
        "Windows": struct_of_dtype(windows.dtype),
        "Grid": struct_of_dtype(grid.record.dtype),
        "Law": _struct(kernel_law(law, np.dtype(np.float32))),
        "Out": _struct(np.empty(0, np.float32)),
    }
    source = assemble(
        "md.search.grid.tensor",
        "force",
        dim,
        np.dtype(np.float32),
        "aos4",
        structs,
        [functor_of(type(law)), STORE],
    )
    emulated = '#line 1 "md/backend/tensor_cores.cuh"'
    source, found = re.subn(rf"{re.escape(emulated)}.*?(?=#line)", "", source, flags=re.DOTALL)
    assert found == 1
    source = source.replace("extern __shared__ uint4 memory[];", "uint4* memory = shared_memory;")
    source, found = re.subn("(?=int index = lane)", "if (threadIdx.x == 0) plain_blocks += plain;", source)
    assert found == 1
    return built("blocks_on_host.h", f"static int plain_blocks = 0;\n{source}\n{PROGRAM}", "tensor")


@pytest.fixture(autouse=True)
def staging_memory(monkeypatch):
    """Let the CPU have the shared memory of a device: then the search sorts for its kernel."""
    monkeypatch.setattr(md.backend.Cpu, "staging_memory", 227 * 1024)


@pytest.fixture(scope="module")
def program():
    """Return a function that compiles the kernel for a law, once for each case."""
    made = {}

    def get(dim: int, windows: np.ndarray, law: md.laws.Boids) -> Path:
        key = dim, windows.dtype
        if key not in made:
            made[key] = compiled(dim, windows, law)
        return made[key]

    return get


def simulated(state: md.State, law: md.laws.Boids) -> md.Simulation:
    place = md.backend.Cpu("aos4") if "aos4" in md.backend.LAYOUTS else "cpu"
    run = md.Simulation(
        state, law, search="tensor", integrator="flight", dt=0.2, backend=place, precision="float32"
    )
    run.search.update()
    assert run.search._parts == PARTS
    return run


def by_tensor_cores(
    run: md.Simulation, program, folder: Path, capacity: int | None = None, plain: bool = False
) -> np.ndarray:
    """The increments of a simulation by the kernel on the host: (n, dim), in memory order.

    `plain` is whether there are blocks that are summed from memory.
    """
    search, law = run.search, run.law
    windows, n, dim = search._record(law.windows), len(run), run.system.box.dim
    pos, vel = (np.asarray(a)[:, :dim] for a in (run.system.particles.pos, run.system.particles.vel))
    parts = [np.pad(a, ((0, 0), (0, 4 - dim))).astype(np.float32) for a in (pos, vel)]
    parts += [np.asarray(search._sort.start), windows, search._finer.record]
    parts.append(np.array(tuple(kernel_law(law, np.dtype(np.float32))), np.float32))
    (folder / "in").write_bytes(b"".join(np.ascontiguousarray(part).tobytes() for part in parts))
    blocks, room = search._blocks, search._capacity if capacity is None else capacity
    numbers = n, *blocks[:2], int(np.prod(blocks)), room, search._finer.size
    path = program(dim, windows, law)
    command = [path, folder / "in", *map(str, numbers), folder / "out"]
    done = subprocess.run(command, check=True, capture_output=True, text=True)
    assert (int(done.stdout) > 0) == plain
    return np.frombuffer((folder / "out").read_bytes(), np.float32).reshape(n, 4)[:, :dim]


def reference(run: md.Simulation) -> np.ndarray:
    """The increments by `naive` in float32, in memory order."""
    config, system = md.search.Naive(), run.system
    out = system.scratch("reference")
    config.build(system).force(run.law, out)
    return np.asarray(out)[:, : system.box.dim]


def largest_difference(
    run: md.Simulation, program, folder: Path, capacity: int | None = None, plain: bool = False
) -> float:
    """The largest difference of an increment by the kernel to that by the CPU; some are not 0."""
    expected = reference(run)
    assert np.abs(expected).max() > 0.05
    return float(np.abs(by_tensor_cores(run, program, folder, capacity, plain) - expected).max())


@pytest.mark.parametrize(
    "kind",
    [
        "small",
        "open",
        full("periodic"),
        full("flat"),
    ],
)
def test_sums_are_those_of_naive_in_every_box(kind, program, tmp_path):
    box = BOXES[kind]
    n = int(box.volume / 8) if box.dim == 3 else 600
    run = simulated(md.scenes.flock(n, box, seed=1), md.laws.Boids())
    assert largest_difference(run, program, tmp_path) < TOLERANCE


@pytest.mark.parametrize("radii", [(5.0, 3.0, 4.0), full((2.0, 3.0, 5.0))])
def test_three_different_radii(radii, program, tmp_path):
    run = simulated(md.scenes.flock(N, BOXES["small"], seed=2), md.laws.Boids(*radii))
    assert largest_difference(run, program, tmp_path) < TOLERANCE


@pytest.mark.parametrize("capacity", [0, 300])
def test_a_block_with_too_many_particles_around_it_is_summed_from_memory(capacity, program, tmp_path):
    run = simulated(md.scenes.flock(N, BOXES["small"], seed=3), md.laws.Boids())
    assert largest_difference(run, program, tmp_path, capacity, plain=True) < TOLERANCE


@pytest.mark.parametrize("speed", [full(0.0), full(1e-20), 300.0, 1e-35])
def test_any_speed(speed, program, tmp_path):
    """A block with velocities that cannot be scaled is summed from memory."""
    state = md.scenes.flock(N, BOXES["small"], seed=4)
    law = md.laws.Boids(cohesion=0, separation=0)
    run = simulated(state, law)
    run.system.particles.vel[...] *= speed
    expected = reference(run)
    found = by_tensor_cores(run, program, tmp_path, plain=speed == 1e-35)
    assert np.abs(found - expected).max() <= 1e-5 * max(np.abs(expected).max(), 1e-30)


@pytest.mark.parametrize("unit", [full(2.0**-7), 0.3, full(1000.0)])
def test_any_unit_of_length(unit, program, tmp_path):
    state = md.scenes.flock(N, BOXES["small"], seed=5)
    box = md.Box(tuple(unit * length for length in state.box.lengths))
    law = md.laws.Boids(5 * unit, 3 * unit, 5 * unit)
    run = simulated(md.State(unit * state.pos, state.vel, box), law)
    assert largest_difference(run, program, tmp_path) < TOLERANCE * max(1, unit)


def test_particles_without_partners_have_sums_of_zero(program, tmp_path):
    side = np.arange(0.5, 40, 10)
    pos = np.stack(np.meshgrid(side, side, side), -1).reshape(-1, 3)
    vel = np.random.default_rng(0).uniform(-0.6, 0.6, pos.shape)
    run = simulated(md.State(pos, vel, md.Box((40.0,) * 3)), md.laws.Boids())
    assert not by_tensor_cores(run, program, tmp_path).any()


def test_pairs_exactly_at_a_radius_are_no_neighbours(program, tmp_path):
    """In a cubic lattice of side 1 the pairs (2, 2, 1), (3, 0, 0) and (2, 0, 0) are at a radius of 3 or 2."""
    side = np.arange(8.0)
    pos = np.stack(np.meshgrid(side, side, side), -1).reshape(-1, 3)
    vel = np.random.default_rng(0).uniform(-0.6, 0.6, pos.shape)
    run = simulated(md.State(pos, vel, md.Box((8.0,) * 3)), md.laws.Boids(3, 2, 3))
    assert largest_difference(run, program, tmp_path) < TOLERANCE


def test_coincident_particles_and_empty_cells(program, tmp_path):
    state = md.scenes.flock(40, BOXES["small"], seed=6)
    pos = np.concatenate([np.tile(state.pos[:1], (70, 1)), state.pos])
    vel = np.random.default_rng(1).uniform(-0.6, 0.6, pos.shape)
    run = simulated(md.State(pos, vel, state.box), md.laws.Boids(separation=0.01))
    assert largest_difference(run, program, tmp_path) < TOLERANCE


def test_particles_beyond_an_open_side(program, tmp_path):
    box = md.Box((16.0, 12.0, 12.0), periodic=(False, True, True), open=(True, False, False))
    state = md.scenes.flock(300, box, seed=7)
    run = simulated(state, md.laws.Boids())
    moved = run.system.particles.pos
    moved[:40, 0] -= 900.0  # together, in the first cells
    moved[40:50, 0] = -5000.0
    assert largest_difference(run, program, tmp_path, plain=True) < 1e-4  # 900 has four digits less than 5


def test_numbers_that_are_not_finite_reach_the_output(program, tmp_path):
    run = simulated(md.scenes.flock(200, BOXES["small"], seed=8), md.laws.Boids())
    run.system.particles.vel[17] = np.nan
    found, expected = by_tensor_cores(run, program, tmp_path, plain=True), reference(run)
    assert np.isnan(expected).any()
    assert np.array_equal(np.isnan(found), np.isnan(expected))
