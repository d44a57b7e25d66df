"""The CUDA kernels of boids and flight, compiled for the host: the steps that the CPU takes."""

import numpy as np
import pytest

import md
from md.integrate import Flight
from md.laws.pair import kernel_law
from tests.md.backend.kernels.test_source import source_of
from tests.md.backend.test_cuda_on_host import printed_around
from tests.tiers import full, nightly

LAW = md.laws.Boids(2.0, 1.2, 1.6, cohesion=0.05, separation=0.1, alignment=0.2)
BOX = md.Box((9.1, 7.3, 8.2), (True, True, False))
WALLED = {"walls": md.Walls(restitution=0.8, contact_time=0.4), "gravity": (0.02, 0.0, -0.05)}
N, DT, STEP = 80, 0.2, 6
READ = """
template <class T> void read(FILE* file, std::vector<T>& into, size_t count) {
    into.resize(count);
    if (fread(into.data(), sizeof(T), count, file) != count) abort();
}
int main(int, char** paths) {
    FILE* file = fopen(paths[1], "rb");
    const int n = COUNT;
    std::vector<real> pos, vel, given, radius, to_pos(3 * n, -1), to_vel(3 * n, -1);
    std::vector<Grid> grid;
    std::vector<Flight> flight;
    std::vector<int> id(n);
    unsigned long long fault = ~0ull, fastest[2] = {FASTEST, 0};
    long long clock[2] = {STEP, -1};
    unsigned travelled[6] = {0, 0, HALTING_FROM};
    int halted = 0;
    double now[2] = {0, 0};
    read(file, pos, 3 * n), read(file, vel, 3 * n), read(file, given, 3 * n);
    read(file, grid, 1), read(file, flight, 1);
    for (int i = 0; i < n; ++i) id[i] = i;
    CALL
    for (int k = 0; k < 3 * n; ++k) printf("%.17g %.17g\\n", to_pos[k], to_vel[k]);
    printf("%lld %llu %d\\n", clock[1], fault == ~0ull ? 0 : fault, halted);
}
"""
FUSED = """
    std::vector<Law> law;
    read(file, law, 1);
    Out out{};
    out.pos = to_pos.data(), out.vel = to_vel.data(), out.id = id.data(), out.drift = flight[0].dt;
    out.fault = &fault, out.clock = clock, out.flight = flight[0];
    out.fastest = GUARDED ? fastest : nullptr, out.travelled = (float*)travelled, out.halted_steps = &halted;
    out.limit = 0.15f;
    DRIVEN
    for (unsigned i = 0; i < n; ++i) {
        blockIdx.x = i;
        force(n, pos.data(), vel.data(), nullptr, grid[0], law[0], out);
    }
"""
DRIVEN = """
    std::vector<Outside> outside;
    read(file, outside, 1);
    out.outside = outside[0], out.now = now, out.radius = nullptr;
"""
FLY = """
    for (unsigned i = 0; i < n; ++i) {
        blockIdx.x = i;
        fly(n, pos.data(), vel.data(), id.data(), given.data(), flight[0], clock, 0, grid[0], &fault);
    }
    to_pos = pos, to_vel = vel;
"""
ADD_FIELD = """
    std::vector<Outside> outside;
    read(file, outside, 1);
    for (unsigned i = 0; i < n; ++i) {
        blockIdx.x = i;
        add_field(n, pos.data(), vel.data(), nullptr, outside[0], now, flight[0].dt, grid[0], given.data());
    }
    to_pos = given, to_vel = given;
"""


def flock(**options) -> md.Simulation:
    """A simulation at its start; some boids are at a wall, some are too fast."""
    generator = np.random.default_rng(6)
    pos = generator.random((N, 3)) * BOX.lengths
    pos[:, 2] = 0.25 + 0.94 * pos[:, 2]
    state = md.State(pos, generator.uniform(-1, 1, (N, 3)), BOX)
    given = {"search": "naive", "dt": DT, "integrator": Flight(0.9), "backend": md.backend.Cpu("aos")}
    return md.Simulation(state, LAW, **given | options)


def ran(tmp_path, run: md.Simulation, call: str, kernel: str, stem: str, out: str, given=None, **names):
    """Run a kernel on the host from the state of a simulation; return positions, velocities, status."""
    particles, given = run.system.particles, np.zeros((N, 3)) if given is None else given
    law = kernel_law(LAW, np.dtype(np.float64))
    parts = [particles.pos, particles.vel, given, run.system.grid.record, run._stepper._speed_limit]
    parts += [np.array(law)] if kernel == "force" else []
    parts += [run._field.record] if "outside" in call or "DRIVEN" in call else []
    (tmp_path / "flock").write_bytes(b"".join(np.ascontiguousarray(part).tobytes() for part in parts))
    names = {"GUARDED": 0, "HALTING_FROM": 0, "FASTEST": 0, "DRIVEN": ""} | names
    program = READ.replace("CALL", call)
    if kernel == "add_field":
        program = "struct Flight { real max_speed, dt; };" + program
    for name, value in (names | {"COUNT": N, "STEP": STEP}).items():
        program = program.replace(name, str(value))
    source = source_of(stem, kernel, 3, np.float64, "aos", "boids", out)
    rows = printed_around(source, program, str(tmp_path / "flock"))
    found = np.array(rows[: 3 * N]).reshape(N, 3, 2)
    return found[..., 0], found[..., 1], rows[-1]


@pytest.mark.parametrize("options", [nightly({}), WALLED], ids=["free", "walled"])
class TestFusedSteps:
    def found(self, tmp_path, run, options, **names):
        driven, out = (DRIVEN, "driven_flight") if options else ("", "flight")
        return ran(tmp_path, run, FUSED, "force", "md.search.grid.naive", out, DRIVEN=driven, **names)

    def test_move_the_flock_as_the_cpu_does(self, options, tmp_path):
        run = flock(fused=True, **options)
        pos, vel, status = self.found(tmp_path, run, options)
        before = run.state
        run.run(1)
        np.testing.assert_allclose(pos, run.state.pos, rtol=0, atol=1e-13)
        np.testing.assert_allclose(vel, run.state.vel, rtol=0, atol=1e-13)
        assert status == [STEP + 1, 0, 0]
        assert (np.linalg.norm(before.vel, axis=1) > 0.9).any()

    def test_move_nothing_from_the_guard_s_limit_on(self, options, tmp_path):
        run = flock(fused=True, **options)
        square = int(np.float32(0.81).view(np.uint32))
        for halting, halted in ((square, 1), (square + 1, 0)):
            names = {"GUARDED": 1, "HALTING_FROM": f"{halting}u", "FASTEST": f"{square}ull"}
            pos, vel, status = self.found(tmp_path, run, options, **names)
            assert status == [STEP + 1 - halted, 0, halted]
            assert np.array_equal(pos, run.state.pos) == np.array_equal(vel, run.state.vel) == bool(halted)


def test_a_step_from_increments_is_that_of_the_cpu(tmp_path):
    run = flock()
    pos, vel, status = ran(tmp_path, run, FLY, "fly", "md.integrate.flight", "store", run.forces())
    run.run(1)
    np.testing.assert_allclose(pos, run.state.pos, rtol=0, atol=1e-13)
    np.testing.assert_allclose(vel, run.state.vel, rtol=0, atol=1e-13)
    assert status == [STEP + 1, 0, 0]


@pytest.mark.parametrize("wrong", [np.inf, full(np.nan), full(1e200)])
def test_an_infinite_increment_is_a_fault_of_its_step_and_particle(wrong, tmp_path):
    run, increments = flock(), np.zeros((N, 3))
    increments[17, 1] = wrong
    pos, _, status = ran(tmp_path, run, FLY, "fly", "md.integrate.flight", "store", increments)
    assert divmod(int(status[1]), 2**32) == (2 * STEP, 17)
    assert np.isfinite(pos).all()


def test_gravity_and_walls_are_added_as_on_the_cpu(tmp_path):
    run, without = flock(**WALLED), flock().forces()
    found, _, _ = ran(tmp_path, run, ADD_FIELD, "add_field", "md.integrate.flight", "store", without)
    np.testing.assert_allclose(found, run.forces(), rtol=0, atol=1e-13)
    assert np.abs(found - without).max() > 1
