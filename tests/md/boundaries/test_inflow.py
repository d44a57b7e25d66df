"""A stream that comes in: which discs are renewed, where, how fast, and that it goes by id and seed alone."""

import numpy as np
import pytest

import md

IDEAL = md.laws.SpringDashpot(0.0, 0.0)
LENGTH, DT = 12.0, 0.1
BOX = md.Box((LENGTH, 10.0), (True, False))
ROUND = md.Box((LENGTH, 10.0))


def simulated(state, box=BOX, law=IDEAL, **options) -> md.Simulation:
    stream = {
        name: options.pop(name) for name in ("velocity", "temperature", "axis", "seed") if name in options
    }
    stream = md.Inflow(**{"velocity": (5.0,) + (0.0,) * (box.dim - 1)} | stream)
    options = {"dt": DT, "backend": "cpu", "surroundings": (stream,)} | options
    return md.Simulation(state, law, **options)


def crowd(n: int = 400, box: md.Box = BOX) -> md.State:
    generator = np.random.default_rng(0)
    pos = np.column_stack([generator.uniform(0, LENGTH, n), generator.uniform(0.5, 9.5, n)])
    return md.State(pos, np.tile((5.0, 0.0), (n, 1)), box, id=generator.permutation(n))


@pytest.mark.quick
@pytest.mark.parametrize("integrator", ["velocity_verlet", "adaptive_euler"])
@pytest.mark.parametrize(
    ("stream", "x", "speed", "farthest"),
    [
        (4.0, 8.73, 3.0, 0.3),  # out at the far end, within a step's travel of where it comes in
        (4.0, 0.25, -2.0, 1.0),  # against the stream
        (-4.0, 3.21, -3.0, 0.3),
        (-4.0, 11.75, 2.0, 1.0),
    ],
)
def test_a_particle_that_leaves_at_either_end_comes_in_with_the_stream(
    stream, x, speed, farthest, integrator, backend
):
    state = md.State([[x, 5.0], [6.0, 1.0]], [[speed, 0.1], [0.0, 0.0]], BOX, id=[7, 3])
    run = simulated(state, velocity=(stream, 0.5), integrator=integrator, backend=backend)
    for _ in range(60):
        run.run(1)
        if run.surroundings[0].renewed:
            break
    at = run.state
    assert run.surroundings[0].renewed == 1
    assert at.id.tolist() == [7, 3]
    assert at.vel.tolist() == [[stream, 0.5], [0.0, 0.0]]
    assert 0 <= (at.pos[0, 0] if stream > 0 else LENGTH - at.pos[0, 0]) <= farthest + 1e-12
    assert 0.5 <= at.pos[0, 1] <= 9.5
    assert at.pos[0, 1] != pytest.approx(5.0, abs=0.2)
    assert at.pos[1].tolist() == [6.0, 1.0]


@pytest.mark.split
@pytest.mark.parametrize("search", ["linked", "lbvh"])
def test_no_particle_is_lost_and_all_that_left_are_counted(search, backend):
    run = simulated(crowd(), search=search, backend=backend)
    run.run(400, phases=False)  # 200 d, where a round takes 11 or 12
    at = run.state.by_id()
    assert np.array_equal(at.id, np.arange(400))
    assert (at.vel == (5.0, 0.0)).all()
    assert 400 * 16 <= run.surroundings[0].renewed <= 400 * 19


def test_lists_of_partners_hold_those_that_came_in(backend):
    """One that comes in is elsewhere at once, so that the lists have to be made again."""
    box = md.Box((LENGTH, 6.0, 5.0), (True, False, True))
    pos, _ = md.scenes.lattice_sites(box, 200)
    inside = (pos[:, 1] > 0.5) & (pos[:, 1] < 5.5)
    vel = np.random.default_rng(2).normal((20.0, 0.0, 0.0), 3.0, (inside.sum(), 3))
    state, law = md.State(pos[inside], vel, box), md.laws.SpringDashpot(1e4, 5.0)
    options = {"velocity": (20.0, 0.0, 0.0), "walls": md.Walls(contact_time=0.02), "dt": 4e-4}
    ends = []
    for search in ("naive", "verlet"):
        run = simulated(state, box, law, search=search, backend=backend, **options)
        run.run(400, phases=False)
        ends.append((run.state.by_id().pos, run.surroundings[0].renewed, run.pairs()))
    assert ends[0][1] == ends[1][1] > 20
    np.testing.assert_allclose(ends[1][0], ends[0][0], atol=1e-8)
    assert np.array_equal(ends[1][2], ends[0][2])


def test_they_come_in_all_across_the_stream_but_for_half_a_diameter_at_walls():
    heights, run = [], simulated(crowd())
    run.run(130, phases=False)
    for _ in range(5):
        run.run(24, phases=False)
        heights.append(run.state.pos[:, 1])
    heights = np.concatenate(heights)
    assert heights.min() >= 0.5
    assert heights.max() <= 9.5
    counts = np.histogram(heights, 9, (0.5, 9.5))[0]
    assert np.abs(counts - 2000 / 9).max() < 5 * np.sqrt(2000 / 9)


def test_a_periodic_axis_across_has_no_margin():
    run = simulated(crowd(box=ROUND))
    run.run(130, phases=False)
    heights = run.state.pos[:, 1]
    assert (heights < 0.5).sum() > 5
    assert (heights > 9.5).sum() > 5
    assert heights.max() < 10


def test_their_velocities_are_as_hot_as_the_stream():
    dim = 3
    box, generator = md.Box((LENGTH,) * dim), np.random.default_rng(1)
    pos, wind = generator.uniform(0, LENGTH, (3000, dim)), np.array((1.0, 12.0, -2.0))
    state = md.State(pos, np.tile(wind, (3000, 1)), box)
    run = simulated(state, box, velocity=wind, axis=1, temperature=4.0, dt=0.02)
    run.run(120, phases=False)  # so that the slowest has gone round
    fresh = run.state.vel[(run.state.vel != wind).all(axis=1)] - wind
    assert len(fresh) > 2500
    slower = np.where(np.arange(dim) == 1, -4.0 / 12.0, 0.0)  # slow particles stay for longer
    assert fresh.mean(axis=0) == pytest.approx(slower, abs=0.15)
    assert np.cov(fresh.T) == pytest.approx(4 * np.eye(dim), abs=0.4)


@pytest.mark.quick
def test_it_goes_by_seed_and_id_and_not_by_the_order_in_memory():
    ends = {}
    for name, seed, search in (("one", 3, "linked"), ("tree", 3, "lbvh"), ("other", 4, "linked")):
        run = simulated(crowd(box=ROUND), temperature=1.0, seed=seed, search=search)
        run.run(60, phases=False)
        ends[name] = run.state.by_id()
    again = simulated(crowd(box=ROUND).by_id(), temperature=1.0, seed=3)
    again.run(60, phases=False)
    for same in (ends["tree"], again.state):
        assert np.array_equal(same.pos, ends["one"].pos)
        assert np.array_equal(same.vel, ends["one"].vel)
    assert (ends["other"].vel != ends["one"].vel).any(axis=1).mean() > 0.3


@pytest.mark.quick
def test_a_run_with_an_inflow_goes_on_as_it_did(backend, tmp_path):
    run = simulated(crowd(box=ROUND), temperature=0.5, seed=2**62, backend=backend)
    run.run(50)
    run.save(tmp_path / "run.npz")
    loaded = md.Simulation.load(tmp_path / "run.npz")
    counts = []
    for one in (run, loaded):
        counts.append(one.surroundings[0].renewed)
        one.run(30)
        counts.append(one.surroundings[0].renewed)
    assert counts[:2] == counts[2:]
    assert 0 < counts[0] < counts[1]
    assert np.array_equal(run.state.pos, loaded.state.pos)
    assert np.array_equal(run.state.vel, loaded.state.vel)


@pytest.mark.parametrize("count", [None, np.array([-1]), np.array([0.5]), np.array([1, 2])])
def test_a_file_without_the_count_is_damaged(count, tmp_path):
    simulated(crowd()).save(tmp_path / "run.npz")
    with np.load(tmp_path / "run.npz") as file:
        arrays = {name: file[name] for name in file.files if name != "surroundings_0_renewed"}
    np.savez(tmp_path / "bad.npz", **arrays | ({} if count is None else {"surroundings_0_renewed": count}))
    with pytest.raises(md.CheckpointError, match=r"renewed = .*allowed: \(1,\) int64, not negative"):
        md.Simulation.load(tmp_path / "bad.npz")


@pytest.mark.parametrize(
    ("options", "said"),
    [
        ({"velocity": (0.0, 1.0)}, r"along axis 0; allowed: not 0 along it"),
        ({"velocity": (1.0, 0.0), "axis": 1}, r"along axis 1; allowed: not 0 along it"),
        ({"velocity": (1.0,)}, "two or three finite numbers"),
        ({"velocity": (1.0, np.nan)}, r"velocity of an inflow\[1\] = nan; allowed: a finite number"),
        ({"axis": 2}, "axis of an inflow = 2; allowed: an integer of at least 0, up to 1"),
        ({"temperature": -1.0}, "temperature of an inflow = -1.0; allowed: a finite number of at least 0"),
        ({"temperature": np.inf}, "temperature of an inflow = inf"),
        ({"seed": -1}, "seed of an inflow = -1; allowed: an integer of at least 0"),
        ({"seed": 2**63}, "seed of an inflow = 9223372036854775808"),
        ({"velocity": (1.0, 0.0, 0.0)}, "in a box of 2 axes; allowed: one number"),
        (
            {"velocity": (1.0, 1.0), "axis": 1},
            r"along axis 1 with periodic = \(True, False\); allowed: a periodic",
        ),
        ({"fused": True}, "take fused=False"),
        ({"integrator": "position_verlet"}, "allowed: velocity_verlet, adaptive_euler"),
    ],
)
def test_an_inflow_that_cannot_be_is_refused(options, said):
    with pytest.raises(ValueError, match=said):
        simulated(crowd(3), **options)


@pytest.mark.parametrize(
    ("options", "said"),
    [
        ({"axis": 0.0}, "axis of an inflow = 0.0 of class float; allowed: an integer"),
        ({"axis": True}, "axis of an inflow = True"),
        ({"velocity": 1.0}, "velocity of an inflow = 1.0 .*allowed: a sequence of numbers"),
        ({"velocity": "12"}, "velocity of an inflow = '12'"),
        ({"velocity": (1.0, "0")}, r"velocity of an inflow\[1\] = '0'"),
        ({"velocity": (1.0, True)}, r"velocity of an inflow\[1\] = True"),
        ({"temperature": None}, "temperature of an inflow = None"),
        ({"seed": "x"}, "seed of an inflow = 'x'"),
        ({"seed": 1.0}, "seed of an inflow = 1.0"),
    ],
)
def test_an_inflow_of_what_is_no_number_is_refused(options, said):
    with pytest.raises(TypeError, match=said):
        md.Inflow(**({"velocity": (1.0, 0.0)} | options))


def test_narrow_numbers_are_as_good():
    narrow = md.Inflow(
        velocity=np.array([1, 0], np.float16), temperature=np.longdouble(2), axis=np.int8(0), seed=np.uint8(3)
    )
    assert narrow == md.Inflow(velocity=(1.0, 0.0), temperature=2.0, axis=0, seed=3)
    kept = *narrow.velocity, narrow.temperature, narrow.axis, narrow.seed
    assert [type(value) for value in kept] == [float, float, float, int, int]


@pytest.mark.gpu
@pytest.mark.parametrize("search", ["linked", "lbvh"])
def test_a_device_computes_what_the_cpu_does(search):
    """Within 1e-9 d after 200 steps, for who does not collide."""
    try:
        device = md.backend.Cuda(fmad=False)
    except md.BackendUnavailableError as reason:
        pytest.skip(str(reason))
    runs = [simulated(crowd(box=ROUND), temperature=2.0, search=search, backend=b) for b in ("cpu", device)]
    for run in runs:
        run.run(200, phases=False)
    assert runs[0].surroundings[0].renewed == runs[1].surroundings[0].renewed > 400
    one, other = (run.state.by_id() for run in runs)
    np.testing.assert_allclose(other.pos, one.pos, atol=1e-9)
    np.testing.assert_allclose(other.vel, one.vel, atol=1e-9)


def test_a_step_that_the_fastest_sets_counts_new_particles(backend):
    """Two slow ones, of which one comes in again ten times as fast as the longest step allows."""
    state = md.State([[8.9, 5.0], [6.0, 1.0]], [[3.0, 0.0], [0.0, 0.0]], BOX)
    run = simulated(state, velocity=(50.0, 0.0), integrator="adaptive_euler", backend=backend)
    steps = []
    for _ in range(15):
        before = run.time
        run.run(1)
        steps.append(run.time - before)
    assert run.surroundings[0].renewed == 1
    came_in = next(k for k, step in enumerate(steps) if step < DT / 2)
    assert steps[:came_in] == pytest.approx([DT] * came_in)
    assert came_in > 3
    assert steps[came_in:] == pytest.approx([0.5 / 50.0] * (15 - came_in))
