"""Discs against a wing: distances and contacts off the definition, momentum, mirrors, what is refused."""

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st
from hypothesis.extra import numpy as hnp

import md
from md.boundaries.base import RADIUS

IDEAL = md.laws.SpringDashpot(0.0, 0.0)
LAW = md.laws.SpringDashpot(1e4, 0.0)
DT = 1e-3
BOX = md.Box((24.0, 16.0))
SECTIONS = {
    "block": md.Airfoil("block", [[1, 0.5], [0, 0.5], [0, -0.5], [1, -0.5]]),
    "dart": md.Airfoil("dart", [[0.6, 0], [1, 0.4], [0, 0], [1, -0.4]]),  # turns in at its first point
    "plate": md.Airfoil("plate", [(1, 0.25), (0.5, 0.25), (0, 0.25), (0, -0.25), (0.5, -0.25), (1, -0.25)]),
    "sharp": md.naca("0012", 12),
    "blunt": md.naca("4412", 15, closed=False),
}
TREES = "linked", "lbvh"
either_way = pytest.mark.parametrize("search", TREES)  # every particle alike, and through the tree


def wing(section="block", **options) -> md.Wing:
    options = {"chord": 8.0, "at": (9.0, 8.0), "stiffness": 100.0} | options
    return md.Wing(airfoil=SECTIONS[section], **options)


def simulated(state, *surroundings, law=IDEAL, **options) -> md.Simulation:
    options = {"dt": DT, "backend": "cpu"} | options
    return md.Simulation(state, law, surroundings=surroundings, **options)


def discs(pos, vel=(0.0, 0.0), box=BOX) -> md.State:
    pos = np.atleast_2d(np.asarray(pos, float))
    return md.State(pos, np.broadcast_to(vel, pos.shape), box)


def gas(foil: md.Wing, speed: float, seed: int = 0) -> md.State:
    """Discs around a wing, some pressed against it, in a stream along +x that is as hot as it is fast."""
    generator = np.random.default_rng(seed)
    x, y = (0.55 + 1.1 * np.arange(int(side / 1.1)) for side in BOX.lengths)
    pos = np.stack(np.meshgrid(x, y), -1).reshape(-1, 2) + generator.uniform(
        -0.04, 0.04, (len(x) * len(y), 2)
    )
    pos = pos[foil.distance(pos) > 0.7 * RADIUS]
    return md.State(pos, generator.normal((speed, 0), speed, pos.shape), BOX)


def plain_distance(outline: np.ndarray, pos: np.ndarray) -> np.ndarray:
    """Distance to the nearest segment, negative where a ray along +x crosses an odd number of them."""
    (x0, y0), (x1, y1) = outline.T, np.roll(outline, -1, axis=0).T
    x, y = pos[:, :1], pos[:, 1:]
    share = ((x - x0) * (x1 - x0) + (y - y0) * (y1 - y0)) / ((x1 - x0) ** 2 + (y1 - y0) ** 2)
    share = np.clip(share, 0, 1)
    away = np.hypot(x - x0 - share * (x1 - x0), y - y0 - share * (y1 - y0)).min(axis=1)
    level = (y0 <= y) != (y1 <= y)
    crossed = level & (x < x0 + (y - y0) / np.where(level, y1 - y0, 1) * (x1 - x0))
    return np.where(crossed.sum(axis=1) % 2, -away, away)


@pytest.mark.parametrize("angle", [0.0, 17.0])
@pytest.mark.parametrize("section", SECTIONS)
def test_distances_are_those_of_the_nearest_segment_and_inside_negative(section, angle):
    foil, generator = wing(section, angle=angle), np.random.default_rng(1)
    anywhere = generator.uniform((0, 0), BOX.lengths, (4000, 2))
    near_points = np.repeat(foil.outline, 60, axis=0)
    near_points = near_points + generator.normal(0, 0.1, near_points.shape)
    for pos in (anywhere, near_points):
        wanted = plain_distance(foil.outline, pos)
        assert min((wanted < -0.01).sum(), (wanted > 0.01).sum()) > 20
        np.testing.assert_allclose(foil.distance(pos), wanted, atol=1e-12)


def test_a_point_where_the_outline_goes_straight_on_has_the_sides_of_its_neighbours():
    foil = wing("plate")
    middle = foil.outline[1]
    assert foil.distance(np.add(middle, [(0, -0.25), (0, 0.25)])) == pytest.approx([-0.25, 0.25])


@pytest.mark.quick
@either_way
@pytest.mark.parametrize("apart", [0.4, 0.0, -0.3, -1.9])
def test_a_disc_on_a_face_is_pushed_by_its_spring_and_its_dashpot(search, apart, backend):
    foil = wing(angle=-90.0, damping=3.0)  # the nose is down, the lower face is on the left
    left = foil.outline[:, 0].min()
    run = simulated(discs([left - apart, 9.0], (0.7, 5.0)), foil, search=search, backend=backend)
    assert run.forces()[0] == pytest.approx([-100.0 * (0.5 - apart) - 3.0 * 0.7, 0.0], abs=1e-11)
    assert run.surroundings[0].force.sum(axis=0) == pytest.approx(-run.forces()[0])


@either_way
@pytest.mark.parametrize("depth", [0.0, 0.5, 1.5])
def test_a_disc_that_is_too_deep_is_let_go(search, depth):
    foil = wing(depth=depth)
    down = np.array([0.01, 0.0]) + depth
    pos = np.column_stack([np.full(2, 12.0), foil.outline[:, 1].max() - down])
    forces = simulated(discs(pos), foil, search=search).forces()
    assert forces.tolist() == pytest.approx(np.array([[0, 0], [0, 100 * (0.5 + depth)]]))


@pytest.mark.quick
@either_way
@pytest.mark.parametrize(
    ("section", "edge", "towards"), [("block", 1, (-0.6, 0.8)), ("sharp", 0, (1.0, 0.0))]
)
def test_a_disc_at_an_edge_has_one_contact(section, edge, towards, search, backend):
    foil = wing(section)
    run = simulated(discs(foil.outline[edge] + 0.2 * np.array(towards)), foil, search=search, backend=backend)
    assert run.forces()[0] == pytest.approx(30.0 * np.array(towards))
    assert np.count_nonzero(run.surroundings[0].force.any(axis=1)) == 1


@given(
    section=st.sampled_from(sorted(SECTIONS)),
    search=st.sampled_from(TREES),
    angle=st.sampled_from([0.0, -30.0, 90.0]),
    depth=st.sampled_from([0.0, 0.3, 2.0, 60.0]),
    share=hnp.arrays(float, (30, 2), elements=st.floats(0, 1)),
    sides=st.tuples(*[st.sampled_from("pwo")] * 2),
)
def test_every_disc_in_reach_is_pushed_once_and_no_other(section, search, angle, depth, share, sides):
    """Not those beyond an open side either, which would be in reach if the axis were periodic."""
    box = md.Box(BOX.lengths, tuple(s == "p" for s in sides), tuple(s == "o" for s in sides))
    foil = wing(section, at=(12.0, 8.0), angle=angle, depth=depth)
    low, high = foil.outline.min(axis=0) - 0.6, foil.outline.max(axis=0) + 0.6
    pos = low + share * (high - low)
    shifts = [way * np.array(box.lengths) * box.open for way in (-1, 1)] if any(box.open) else []
    pos = np.concatenate([pos, *(pos + shift for shift in shifts)])
    run = simulated(discs(pos, box=box), foil, search=search)
    forces, distance = run.forces(), plain_distance(foil.outline, pos)
    reached = (distance < RADIUS) & (distance >= -depth)
    sure = np.minimum(np.abs(distance + depth), np.abs(distance - RADIUS)) > 1e-9
    wanted = np.where(reached, 100.0 * (RADIUS - distance), 0.0)
    np.testing.assert_allclose(np.hypot(*forces.T)[sure], wanted[sure], atol=1e-9)
    np.testing.assert_allclose(run.surroundings[0].force.sum(axis=0), -forces.sum(axis=0), atol=1e-9)


@pytest.mark.split
@pytest.mark.parametrize("depth", [2.0, 60.0])
def test_the_tree_has_the_same_forces_on_discs_and_segments_as_every_particle_alike(depth, backend):
    foil, generator = wing("blunt", angle=12.0, depth=depth, damping=2.0), np.random.default_rng(3)
    pos = generator.uniform((0, 0), BOX.lengths, (2000, 2))
    state = md.State(pos, generator.normal(0, 5, pos.shape), BOX)
    one, other = (simulated(state, foil, search=name, backend=backend) for name in TREES)
    np.testing.assert_allclose(other.forces(), one.forces(), rtol=1e-13, atol=1e-13)
    forces = [run.surroundings[0].force for run in (one, other)]
    assert np.count_nonzero(forces[0].any(axis=1)) > 20
    np.testing.assert_allclose(forces[1], forces[0], rtol=1e-11, atol=1e-11)


@pytest.mark.parametrize("search", TREES)
def test_a_wing_without_a_gas_stays_as_it_is(search, backend):
    run = simulated(md.State(np.empty((0, 2)), np.empty((0, 2)), BOX), wing(), search=search, backend=backend)
    run.run(3)
    assert not run.surroundings[0].momentum.any()


@pytest.mark.parametrize(
    ("integrator", "search"), [("velocity_verlet", "lbvh"), ("adaptive_euler", "linked")]
)
def test_the_wing_is_given_what_the_gas_loses(integrator, search, backend):
    """The velocities as they are stored, not as `state` has them: those that the kicks were added to."""
    foil = wing("blunt", angle=15.0, stiffness=1e4)
    run = simulated(gas(foil, 5.0), foil, law=LAW, search=search, integrator=integrator, backend=backend)
    before = run.state.vel.sum(axis=0)
    for _ in range(2):
        run.run(100, phases=False)
        run.state, run.forces()  # who looks gives nothing
        lost = before - run.backend.download(run.system.particles.vel).sum(axis=0)
        assert np.abs(lost).max() > 10
        assert run.surroundings[0].momentum.sum(axis=0) == pytest.approx(lost, abs=1e-9)


@either_way
def test_a_symmetric_section_in_a_symmetric_stream_has_no_lift(search, backend):
    foil = wing("sharp", stiffness=1e4)
    above = gas(foil, 5.0)
    above = above.take(above.pos[:, 1] > 8.0 + RADIUS)
    mirrored = np.column_stack([above.pos[:, 0], 16.0 - above.pos[:, 1]])
    pos, vel = np.concatenate([above.pos, mirrored]), np.concatenate([above.vel, above.vel * (1, -1)])
    run = simulated(md.State(pos, vel, BOX), foil, law=LAW, search=search, backend=backend)
    run.run(200, phases=False)
    drag, lift = run.surroundings[0].momentum.sum(axis=0)
    assert abs(lift) < 1e-8
    assert min(abs(drag), np.abs(run.surroundings[0].momentum[:, 1]).max()) > 2


def test_the_lift_has_the_sign_of_the_angle():
    """In a gas that does not collide: pressure of one that does fluctuates by more than this lift."""
    lifts = []
    for angle in (-20.0, 20.0):
        foil = wing("sharp", angle=angle, stiffness=1e4)
        stream = md.Inflow(velocity=(10.0, 0.0), temperature=1.0)
        run = simulated(gas(foil, 3.0), foil, stream)
        run.run(3000, phases=False)
        lifts.append(run.surroundings[0].momentum[:, 1].sum() / run.time)
    assert lifts[0] < -30
    assert lifts[1] > 30


def test_an_old_tree_of_discs_that_go_round_meets_the_wing_as_a_new_one(backend):
    foil = wing("dart", angle=30.0, stiffness=1e4)
    state = gas(foil, 40.0)
    ends = [
        simulated(state, foil, search=search, dt=0.01, backend=backend)
        for search in ("linked", md.search.Lbvh(rebuild_every=10**6))
    ]
    for _ in range(3):
        for end in ends:
            end.run(100, phases=False)
        one, other = (end.state.by_id() for end in ends)
        assert np.array_equal(one.pos, other.pos)
        given_, also = (end.surroundings[0].momentum for end in ends)
        np.testing.assert_allclose(also, given_, atol=1e-8 * np.abs(given_).max())
        assert np.abs(given_).max() > 100


@pytest.mark.quick
@either_way
def test_a_run_with_a_wing_goes_on_as_it_did(search, backend, tmp_path):
    foil = wing("blunt", chord=np.float32(7.1), angle=np.pi, stiffness=1e4, damping=0.1, depth=1 / 3)
    run = simulated(gas(foil, 5.0), foil, law=LAW, search=search, backend=backend)
    run.run(60)
    run.save(tmp_path / "run.npz")
    loaded = md.Simulation.load(tmp_path / "run.npz")
    assert np.array_equal(loaded.surroundings[0].wing.outline, foil.outline)
    assert np.array_equal(loaded.surroundings[0].momentum, run.surroundings[0].momentum)
    for one in (run, loaded):
        one.run(70)
    for name in ("pos", "vel", "id"):
        assert np.array_equal(getattr(run.state, name), getattr(loaded.state, name))
    if backend == "cpu" or search == "lbvh":  # else reactions are added up as they come
        assert np.array_equal(loaded.surroundings[0].momentum, run.surroundings[0].momentum)
    fresh = md.Simulation.load(tmp_path / "run.npz", surroundings=(wing("blunt"),))
    assert not fresh.surroundings[0].momentum.any()


def test_a_file_without_the_momentum_is_damaged(tmp_path):
    run = simulated(discs([12.0, 12.2]), wing())
    run.save(tmp_path / "run.npz")
    with np.load(tmp_path / "run.npz") as file:
        arrays = dict(file)
    for given_ in (None, np.zeros(3), np.full(8, np.nan)):
        without = {name: array for name, array in arrays.items() if name != "surroundings_0_given"}
        np.savez(
            tmp_path / "bad.npz", **without | ({} if given_ is None else {"surroundings_0_given": given_})
        )
        with pytest.raises(md.CheckpointError, match=r"given.* allowed: (\(8,\)|finite numbers)"):
            md.Simulation.load(tmp_path / "bad.npz")


@pytest.mark.parametrize(
    ("options", "said"),
    [
        ({"stiffness": -1.0}, "stiffness of a wing = -1.0; allowed: a finite number of at least 0"),
        ({"stiffness": np.inf}, "stiffness of a wing = inf"),
        ({"damping": -0.1}, "damping of a wing = -0.1"),
        ({"damping": np.nan}, "damping of a wing = nan"),
        ({"depth": -1e-9}, "depth of a wing = -1e-09"),
        ({"chord": 0.0}, "chord = 0.0; allowed: a finite number of at least 1e-09"),
        ({"angle": np.nan}, "angle = nan"),
        ({"at": (1.0, 2.0, 3.0)}, r"at = \(1.0, 2.0, 3.0\)"),
    ],
)
def test_a_wing_that_cannot_be_is_refused(options, said):
    with pytest.raises(ValueError, match=said):
        wing(**options)


@pytest.mark.quick
@pytest.mark.parametrize(
    ("options", "said"),
    [
        ({"airfoil": "2412"}, r"airfoil = '2412' of class str; allowed: an md.Airfoil; md.naca"),
        ({"chord": "8"}, "chord = '8' of class str; allowed: a finite number"),
        ({"angle": None}, "angle = None"),
        ({"at": 3.0}, "at = 3.0 .*allowed: a sequence of 2 numbers"),
        ({"at": (1.0, True)}, r"at\[1\] = True"),
        ({"stiffness": True}, "stiffness of a wing = True of class bool"),
        ({"damping": 1j}, "damping of a wing = 1j"),
        ({"depth": np.timedelta64(2, "s")}, "depth of a wing = "),
    ],
)
def test_a_wing_of_what_is_no_number_is_refused(options, said):
    with pytest.raises(TypeError, match=said):
        md.Wing(
            **({"airfoil": SECTIONS["block"], "chord": 8.0, "at": (9.0, 8.0), "stiffness": 1.0} | options)
        )


@pytest.mark.quick
def test_narrow_numbers_are_as_good_as_python_s():
    narrow = {
        "stiffness": np.float16(1e4),
        "damping": np.uint8(30),
        "chord": np.int8(8),
        "depth": np.longdouble(1),
    }
    options = narrow | {"at": np.array([9, 8], np.uint8), "angle": np.float32(5)}
    found = wing(**options)
    assert found.contact_time == pytest.approx(np.pi / np.sqrt(1e4 - 15.0**2))
    for name in narrow:
        assert type(getattr(found, name)) is float
    assert found == wing(stiffness=1e4, damping=30.0, angle=5.0, depth=1.0)


class TestDistanceOf:
    @pytest.mark.parametrize("shape", [(12, 1), (12, 0), (12, 3), (12,), (), (2, 6, 2), (0,)])
    def test_an_array_of_another_shape(self, shape):
        """Rows of another length were read as pairs, out of the array's memory."""
        with pytest.raises(ValueError, match=r"pos of shape .*; allowed|pos\[0\]|\(p, 2\)"):
            wing().distance(np.zeros(shape))

    @pytest.mark.parametrize(
        "many", [np.broadcast_to(np.uint8(1), (2**40, 2)), range(10**13)], ids=["rows", "range"]
    )
    def test_more_than_memory_holds(self, many):
        with pytest.raises(ValueError, match=r"^pos: .* are needed; allowed: up to "):
            wing().distance(many)

    @pytest.mark.parametrize("pos", [[["1", "2"]], [[True, False]], [[1j, 2]], np.zeros((1, 2), "m8[s]")])
    def test_what_is_no_number(self, pos):
        with pytest.raises(ValueError, match=r"pos of dtype .*; allowed: real numbers, in d"):
            wing().distance(pos)

    @pytest.mark.parametrize("value", [np.nan, np.inf, -np.inf, 1e101])
    def test_a_number_that_is_none(self, value):
        with pytest.raises(ValueError, match=r"pos\[1, 0\] = .*; allowed: finite numbers .*up to 1e\+100"):
            wing().distance([[1.0, 2.0], [value, 2.0]])

    def test_arrays_that_lie_in_another_way(self):
        pos = np.random.default_rng(0).uniform(0, 16, (50, 2))
        wanted, wide = wing().distance(pos), np.zeros((50, 5))
        wide[:, ::4] = pos
        for same in (pos.tolist(), np.asfortranarray(pos), wide[:, ::4], pos.astype(">f8")):
            assert np.array_equal(wing().distance(same), wanted)
        assert wing().distance(np.empty((0, 2))).shape == (0,)


@pytest.mark.parametrize(
    ("options", "at", "said"),
    [
        ({}, (2.9, 8.0), "a wing from .* in a box of .*; allowed: at least 1 d from every side; move it"),
        ({}, (9.0, 11.1), "at least 1 d"),
        ({}, (17.1, 8.0), "at least 1 d"),
        ({"box": md.Box((24.0, 16.0, 9.0))}, (9.0, 8.0), "a wing in a box of 3 axes; allowed: 2"),
        ({"fused": True}, (9.0, 8.0), "surroundings with fused=True.*take fused=False"),
        ({"integrator": "position_verlet"}, (9.0, 8.0), "allowed: velocity_verlet, adaptive_euler"),
        ({"integrator": "steepest_descent"}, (9.0, 8.0), "surroundings with integrator 'steepest_descent'"),
        ({"reorder": md.Reorder("row", md.Every(5), mode="shadow")}, (9.0, 8.0), "mode 'shadow'"),
    ],
)
def test_a_wing_that_does_not_fit_is_refused(options, at, said):
    box = options.pop("box", BOX)
    with pytest.raises(ValueError, match=said):
        simulated(discs([[1.0] * box.dim], [0.0] * box.dim, box), wing(at=at), **options)


@pytest.mark.gpu
@either_way
def test_a_device_computes_what_the_cpu_does(search):
    """Within 1e-8 d and 1e-6 m d / time after 300 steps of collisions."""
    try:
        device = md.backend.Cuda(fmad=False)
    except md.BackendUnavailableError as reason:
        pytest.skip(str(reason))
    foil = wing("blunt", angle=15.0, stiffness=1e4, damping=1.0)
    runs = [
        simulated(gas(foil, 5.0), foil, law=LAW, search=search, backend=backend)
        for backend in ("cpu", device)
    ]
    for run in runs:
        run.run(300, phases=False)
    one, other = (run.state.by_id() for run in runs)
    np.testing.assert_allclose(other.pos, one.pos, atol=1e-8)
    momenta = [run.surroundings[0].momentum for run in runs]
    assert np.abs(momenta[0]).max() > 10
    np.testing.assert_allclose(momenta[1], momenta[0], atol=1e-6)
