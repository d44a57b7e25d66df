"""Flight: increments, the largest speed, the drift, gravity and walls; faults; files of a flock."""

import re

import gsd.hoomd
import numpy as np
import pytest

import md
from md.integrate import Flight
from md.search import Coherent, Reflexive, Scattered, Tensor
from tests.md.flock_reference import flown
from tests.tiers import full

STILL = md.laws.Boids(1.0, 1.0, 1.0, 0.0, 0.0, 0.0)  # gives no increment
LAW = md.laws.Boids(2.0, 1.2, 1.6, cohesion=0.05, separation=0.1, alignment=0.2)
PULL = md.laws.Boids(4.0, 4.0, 4.0, cohesion=0.5, separation=0.0, alignment=0.0)
DT = 0.25
BOX = md.Box((8.0, 8.0, 8.0))
fused_or_not = pytest.mark.parametrize("fused", [False, True])
in_both_precisions = pytest.mark.parametrize(
    ("fused", "precision"),
    [(False, "float64"), (False, "float32"), (True, "float64"), full(True, "float32")],
)


def simulated(state, backend, law=STILL, max_speed=1.0, **options) -> md.Simulation:
    options = {"search": "naive", "dt": DT, "integrator": Flight(max_speed)} | options
    return md.Simulation(state, law, backend=backend, **options)


def lone(vel, pos=(4.0, 4.0, 4.0), box: md.Box = BOX) -> md.State:
    return md.State([pos], [vel], box, id=[5])


def after(run: md.Simulation, steps: int = 1) -> tuple[np.ndarray, np.ndarray]:
    run.run(steps)
    end = run.state.by_id()
    return end.pos, end.vel


def flock(n: int = 150, box: md.Box | None = None, seed: int = 2) -> md.State:
    box = md.Box((9.1, 7.3, 8.2)) if box is None else box
    return md.scenes.flock(n, box, seed=seed)


@pytest.mark.quick
@fused_or_not
class TestAStep:
    def test_adds_increments_as_they_are_and_drifts_by_dt_times_the_new_velocity(self, fused, backend):
        start = md.State([[3.0, 4, 4], [5.0, 4, 4]], [[0, 0.25, 0], [0, 0, 0.5]], BOX)
        vel = np.array([[1.0, 0.25, 0], [-1.0, 0, 0.5]])  # +- 0.5 * 2 along x, whatever dt is
        for dt in (0.25, 0.125):
            run = simulated(start, backend, PULL, max_speed=10.0, fused=fused, dt=dt)
            assert run.forces().tolist() == [[1, 0, 0], [-1, 0, 0]]
            found = after(run)
            assert np.array_equal(found[1], vel)
            assert np.array_equal(found[0], start.pos + dt * vel)
            assert run.time == dt

    def test_is_from_the_old_state_alone(self, fused, backend):
        """Each of two boids takes the velocity of the other: a step in place would make them equal."""
        law = md.laws.Boids(4.0, 4.0, 4.0, cohesion=0.0, separation=0.0, alignment=1.0)
        vel = np.array([[0.5, 0, 0], [0.0, 0.25, -0.5]])
        start = md.State([[3.0, 4, 4], [5.0, 4, 4]], vel, BOX)
        _, found = after(simulated(start, backend, law, fused=fused))
        assert np.array_equal(found, vel[::-1])

    def test_leaves_a_velocity_of_exactly_the_largest_speed(self, fused, backend):
        start = lone((1.5, -2.0, 0.0))
        assert after(simulated(start, backend, max_speed=2.5, fused=fused))[1].tolist() == [[1.5, -2, 0]]

    def test_wraps_positions_on_periodic_axes(self, fused, backend):
        box = md.Box((8.0, 8.0, 8.0), (True, True, False), (False, False, True))
        start = lone((1.0, -1.0, -1.0), (7.875, 0.125, 0.125), box)
        found = after(simulated(start, backend, max_speed=10.0, fused=fused))[0]
        assert found.tolist() == [[0.125, 7.875, -0.125]]

    def test_has_a_fault_at_a_closed_side(self, fused, backend):
        box = md.Box((8.0, 8.0, 8.0), (True, True, False))
        run = simulated(lone((0.0, 0.0, -1.0), (4, 4, 1.125), box), backend, fused=fused)
        with pytest.raises(md.ParticleEscaped) as caught:
            run.run(50)
        assert (caught.value.step, caught.value.particle) == (4, 5)

    def test_adds_gravity_times_dt_before_the_limit(self, fused, backend):
        run = simulated(lone((0.0, 0.0, 0.5)), backend, gravity=(0.0, 1.0, -1.0), fused=fused)
        assert after(run)[1].tolist() == [[0.0, 0.25, 0.25]]
        assert np.linalg.norm(after(run, 20)[1]) == pytest.approx(1, rel=1e-15)
        np.testing.assert_allclose(after(run, 20)[1], [[0, np.sqrt(0.5), -np.sqrt(0.5)]], atol=0.1)

    def test_turns_a_boid_back_at_a_wall(self, fused, backend):
        box = md.Box((8.0, 8.0, 8.0), (True, True, False))
        walls = md.Walls(restitution=0.9, contact_time=0.5)
        start = lone((0.5, 0.0, -0.75), (4, 4, 0.6), box)
        options = {"dt": 0.02, "walls": walls, "fused": fused}
        run = simulated(start, backend, **options)
        pos, vel = flown(start, STILL, 60, 0.02, walls=walls)
        found = after(run, 60)
        np.testing.assert_allclose(found[0], pos, atol=1e-12)
        np.testing.assert_allclose(found[1], vel, atol=1e-12)
        assert found[1][0, 0] == 0.5
        assert found[1][0, 2] == pytest.approx(0.9 * 0.75, rel=0.05)


@pytest.mark.quick
@in_both_precisions
def test_a_step_scales_what_is_too_fast_to_the_largest_speed_and_nothing_else(precision, fused, backend):
    vel = np.random.default_rng(0).normal(size=(50, 3))
    vel /= np.linalg.norm(vel, axis=1, keepdims=True)
    speeds = np.geomspace(1e-3, 1e3, 50)[:, None]
    start = md.State(np.full((50, 3), 4.0) + vel, speeds * vel, BOX)
    kept = start.vel.astype(precision)
    _, found = after(simulated(start, backend, max_speed=2.5, fused=fused, precision=precision))
    is_slow = speeds[:, 0] < 2.5
    assert 0 < is_slow.sum() < 50
    assert np.array_equal(found[is_slow], kept[is_slow])
    rounding = 4 * np.finfo(precision).eps
    lengths = np.linalg.norm(found[~is_slow].astype(float), axis=1)
    np.testing.assert_allclose(lengths, 2.5, rtol=rounding)
    np.testing.assert_allclose(found[~is_slow], 2.5 * vel[~is_slow], atol=3 * rounding)


@pytest.mark.quick
@fused_or_not
def test_a_shaken_container_accelerates_a_boid_as_at_the_start_of_each_step(fused, backend):
    box, omega = md.Box((8.0, 8.0, 8.0), (True, True, False)), 2 * np.pi * 0.3
    walls = md.ShakenWalls(contact_time=0.1, amplitude=0.05, frequency=0.3)
    run = simulated(lone((0.25, 0.0, 0.0), box=box), backend, walls=walls, fused=fused)
    for step in range(1, 6):
        run.run(1)
        pulls = -0.05 * omega**2 * np.cos(omega * DT * np.arange(step))
        np.testing.assert_allclose(run.state.vel, [[0.25, 0, DT * pulls.sum()]], rtol=0, atol=1e-14)


@pytest.mark.quick
def test_forces_are_the_increments_of_the_next_step(backend):
    box = md.Box((9.1, 7.3, 8.2), (True, True, False))
    walls = md.Walls(restitution=0.8, contact_time=1.1)
    run = simulated(flock(box=box), backend, LAW, max_speed=100.0, gravity=(0.1, 0.0, -0.2), walls=walls)
    run.run(2)
    before, increments = run.state.by_id(), run.forces()
    run.run(1)
    np.testing.assert_allclose(run.state.by_id().vel, before.vel + increments, rtol=0, atol=1e-14)


@pytest.mark.quick
def test_velocities_are_at_the_time_of_the_positions(backend):
    run = simulated(flock(), backend, LAW)
    run.run(3)
    assert np.array_equal(run.state.vel, run.backend.download(run.system.particles.vel))
    moved = run.state.by_id()
    run.run(1)
    end = run.state.by_id()
    np.testing.assert_allclose(end.box.nearest(end.pos - moved.pos), DT * end.vel, rtol=0, atol=1e-14)


@pytest.mark.quick
class TestErrors:
    @pytest.mark.parametrize("wrong", [0, -1.0, np.nan, np.inf, 1.1e150, 10**400])
    def test_a_largest_speed_out_of_range(self, wrong):
        with pytest.raises(
            ValueError, match=r"max_speed of Flight = .*; allowed: a finite number above 0, up to"
        ):
            Flight(wrong)

    @pytest.mark.parametrize("wrong", ["1", None, True, 1j, [1.0]])
    def test_a_largest_speed_that_is_no_number(self, wrong):
        with pytest.raises(
            TypeError, match=r"max_speed of Flight = .* of class \w+; allowed: a finite number"
        ):
            Flight(wrong)

    def test_a_largest_speed_is_kept_as_pythons_float(self):
        assert type(Flight(np.float32(2)).max_speed) is float
        assert Flight(2) == Flight(max_speed=2.0) != Flight()
        assert Flight().max_speed == 1

    @pytest.mark.parametrize(
        ("precision", "wrong"),
        [("float32", 1e20), ("float32", 1e-20), ("float64", 1e-155)],
    )
    def test_a_largest_speed_with_a_square_out_of_the_precision(self, precision, wrong, backend):
        found = re.escape(f"{wrong:g}")
        finer = ", or precision='float64'" if precision == "float32" else ""
        message = (
            rf"max_speed = {found} of Flight in {precision}; allowed: .* to .*; take other units{finer}$"
        )
        with pytest.raises(ValueError, match=message):
            simulated(lone((0.0, 0, 0)), backend, max_speed=wrong, precision=precision)

    @pytest.mark.parametrize(
        ("precision", "extreme"), [("float32", 1e19), ("float32", 2e-19), ("float64", 1e150)]
    )
    def test_a_largest_speed_within_the_range_limits(self, precision, extreme, backend):
        vel = np.array([1.2, -0.9, 0.0])
        start = lone(extreme * vel)
        run = simulated(start, backend, max_speed=extreme, precision=precision, dt=0.1 / extreme)
        run.run(1)
        np.testing.assert_allclose(run.state.vel[0] / extreme, vel / 1.5, rtol=1e-6)


@pytest.mark.quick
class TestFaults:
    @in_both_precisions
    def test_a_velocity_with_an_infinite_square_is_a_fault(self, precision, fused, backend):
        speed = {"float64": 1e200, "float32": 1e30}[precision]
        run = simulated(lone((speed, 0, 0)), backend, fused=fused, precision=precision)
        with pytest.raises(md.NonFiniteState, match="in a flock lower velocities and rates") as caught:
            run.run(3)
        assert (caught.value.step, caught.value.particle) == (0, 5)

    @pytest.mark.parametrize("fused", [False, full(True)])
    def test_increments_that_overflow_are_a_fault(self, fused, backend):
        """Each of 400 boids is pushed by 1e9 times a sum of distances of 1e8: the square is above 1e38."""
        law = md.laws.Boids(1e9, 1e9, 1e9, separation=1e9)
        pos = 4e9 + 1e9 * np.random.default_rng(0).random((400, 3))
        start = md.State(pos, np.zeros((400, 3)), md.Box((1e10, 1e10, 1e10)))
        run = simulated(start, backend, law, fused=fused, precision="float32")
        with pytest.raises(md.NonFiniteState) as caught:
            run.run(3)
        assert caught.value.step == 0

    @fused_or_not
    def test_a_flock_of_no_boid_runs(self, fused, backend):
        nothing = np.empty((0, 3))
        run = simulated(md.State(nothing, nothing, BOX), backend, fused=fused)
        run.run(3)
        assert run.step == 3


TWICE = Reflexive(met="twice", atomics="none")
RUNS = [  # search, fused, reorder
    ("linked", False, md.Reorder("hilbert", md.Every(7), "shadow")),
    ("linked", True, None),
    full("verlet", True, None),
    full("lbvh", False, None),
    full(TWICE, True, None),
]


@pytest.mark.parametrize(
    ("search", "fused", "reorder"), RUNS, ids=["linked", "fused", "verlet", "lbvh", "reflexive"]
)
class TestFiles:
    def made(self, search, fused, reorder, backend) -> md.Simulation:
        box = md.Box((9.1, 7.3, 8.2), (True, True, False))
        options = {"walls": md.Walls(contact_time=0.5), "gravity": (0.0, 0.02, 0.0), "search": search}
        return simulated(flock(box=box), backend, LAW, 0.75, fused=fused, reorder=reorder, **options)

    def test_a_run_goes_on_from_a_checkpoint_to_the_last_bit(self, search, fused, reorder, backend, tmp_path):
        run = self.made(search, fused, reorder, backend)
        run.run(11)
        run.save(tmp_path / "run.npz")
        loaded = md.Simulation.load(tmp_path / "run.npz")
        assert (loaded.law, loaded.config.integrator) == (LAW, Flight(0.75))
        assert (loaded.config.fused, loaded.dt, loaded.step) == (fused, DT, 11)
        for one in (run, loaded):
            one.run(12)
        assert run.time == loaded.time == 23 * DT
        assert not np.array_equal(run.state.by_id().vel, flock().by_id().vel)
        if backend in run.search.capabilities.bitwise_on:
            for name in ("pos", "vel", "id"):
                assert getattr(run.state, name).tobytes() == getattr(loaded.state, name).tobytes()
            assert run.forces().tobytes() == loaded.forces().tobytes()

    def test_a_trajectory_holds_the_flock(self, search, fused, reorder, backend, tmp_path):
        run, kept = self.made(search, fused, reorder, backend), []

        class Keeper:
            interval = 5

            def report(self, simulation):
                kept.append(simulation.state.by_id())

        run.run(12, reporters=[md.Trajectory(tmp_path / "run.gsd", 5), Keeper()])
        with gsd.hoomd.open(tmp_path / "run.gsd") as file:
            read = list(file)
        assert [frame.configuration.step for frame in read] == [0, 5, 10]
        for frame, state in zip(read, kept, strict=True):
            centred = frame.particles.position + np.float32(state.box.lengths) / 2
            np.testing.assert_allclose(centred, state.pos, atol=2e-6)
            np.testing.assert_allclose(frame.particles.velocity, state.vel, atol=1e-7)


def test_a_checkpoint_of_a_flock_takes_no_law_of_forces_and_no_other_integrator(backend, tmp_path):
    run = simulated(flock(), backend, LAW)
    run.run(2)
    run.save(tmp_path / "run.npz")
    with pytest.raises(
        ValueError, match="integrator 'flight' takes increments of velocity, and SpringDashpot"
    ):
        md.Simulation.load(tmp_path / "run.npz", law=md.laws.SpringDashpot(1e3, 1.0))
    with pytest.raises(ValueError, match=r"integrator = .*velocities and time .* are those of the saved"):
        md.Simulation.load(tmp_path / "run.npz", integrator="velocity_verlet")
    other = md.laws.Boids(1.0, 1.0, 1.0)
    assert md.Simulation.load(tmp_path / "run.npz", law=other).law == other


@pytest.mark.gpu
@pytest.mark.parametrize("search", [*md.search.SEARCHES, TWICE], ids=str)
@pytest.mark.parametrize(("precision", "tolerance"), [("float32", 2e-5), ("float64", 1e-12)])
def test_a_device_gives_the_increments_and_the_flight_of_the_cpu(device, search, precision, tolerance):
    box = md.Box((30.0, 31.0, 32.0), (True, True, False))
    state = flock(4000, box)
    fusable = md.search.search(search).capabilities.fusable
    for fused in (False, True) if fusable else (False,):
        ends = []
        for place in ("cpu", device):
            options = {"walls": md.Walls(contact_time=0.5), "gravity": (0.0, 0.02, 0.0), "search": search}
            run = simulated(state, place, md.laws.Boids(), precision=precision, fused=fused, **options)
            first = run.forces()
            run.run(3)
            ends.append((first, run.state.by_id()))
        (ours, on_cpu), (theirs, on_device) = ends
        assert np.abs(ours).max() > 0.1
        assert np.linalg.norm(ours - theirs) <= tolerance * np.linalg.norm(ours)
        if precision == "float64":  # in float32 rounding soon decides whether a neighbour is within a radius
            assert np.abs(box.nearest(on_cpu.pos - on_device.pos)).max() < 1e-10
            assert np.abs(on_cpu.vel - on_device.vel).max() < 1e-10


@pytest.mark.gpu
@pytest.mark.parametrize("search", ["coherent", "verlet", "lbvh", TWICE], ids=str)
def test_captured_and_fused_steps_on_a_device_are_those_of_the_cpu(device, search):
    """A flock is chaotic: two searches of the CPU differ by 2e-12 after 15 steps, and by 4e-7 after 40."""
    state, ends = flock(4000, md.Box((30.0, 31.0, 32.0))), []
    for place in ("cpu", device):
        run = simulated(state, place, md.laws.Boids(), search=search, fused=True)
        run.run(16, phases=False)
        ends.append(run.state.by_id())
    assert np.abs(state.box.nearest(ends[0].pos - ends[1].pos)).max() < 1e-10


@pytest.mark.gpu
@pytest.mark.parametrize(
    "search", [Tensor(), Coherent(division=2), Scattered("hilbert", division=3)], ids=str
)
def test_captured_steps_on_a_device_are_those_taken_one_by_one(device, search):
    ends = []
    for pieces in ([1] * 12, [12]):
        run = simulated(
            flock(4000, md.Box((30.0, 31.0, 32.0))), device, md.laws.Boids(), search=search, fused=True,
            precision="float32",
        )  # fmt: skip
        for steps in pieces:
            run.run(steps, phases=len(pieces) > 1)
        ends.append(run.state)
    for name in ("pos", "vel", "id"):
        assert np.array_equal(*(getattr(end, name) for end in ends))
