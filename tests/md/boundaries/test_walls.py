"""Walls and gravity: what a wall gives back, what a shaken container does, what is refused."""

from itertools import product

import numpy as np
import pytest
from scipy.integrate import solve_ivp

import md
from md.boundaries import ShakenWalls, Walls
from md.laws import SpringDashpot
from tests import tiers

LAW = SpringDashpot.from_restitution(0.8, contact_time=1e-2)
AT_A_WALL = [  # side, restitution, dim, fused: pairwise, but for fused steps in 2D
    (0, 1.0, 3, False),
    (1, 0.9, 3, True),
    (0, 0.7, 3, True),
    (1, 0.5, 3, False),
    (1, 1.0, 2, False),
    (0, 0.5, 2, False),
]
IDEAL = SpringDashpot(0.0, 0.0)


def lone(dim, pos, vel, length=10.0, **options):
    """A particle on the last axis, the others periodic."""
    box = md.Box((5.0,) * (dim - 1) + (length,), (True,) * (dim - 1) + (False,))
    state = md.State([[2.5] * (dim - 1) + [pos]], [[0.3] * (dim - 1) + [vel]], box)
    return md.Simulation(state, options.pop("law", LAW), **options)


@pytest.mark.quick
@pytest.mark.parametrize(
    ("side", "restitution", "dim", "fused"),
    tiers.by_default(
        product((0, 1), (1.0, 0.9, 0.7, 0.5), (2, 3), (False, True)), lambda *case: case in AT_A_WALL
    ),
)
def test_a_wall_gives_back_its_restitution(backend, dim, restitution, side, fused):
    dt, speed, parts = LAW.contact_time / 500, 2.0, 16
    box = md.Box((2.0 * parts,) + (5.0,) * (dim - 2) + (10.0,), (True,) * (dim - 1) + (False,))
    pos, vel = np.full((parts, dim), 2.5), np.full((parts, dim), 0.3)
    pos[:, 0] = 2.0 * np.arange(parts)
    gap = 0.55 + np.arange(parts) / parts * speed * dt  # they meet the wall at any moment of a step
    pos[:, -1], vel[:, -1] = (gap, -speed) if side == 0 else (10 - gap, speed)
    walls = Walls(restitution=restitution)
    run = md.Simulation(md.State(pos, vel, box), LAW, walls=walls, dt=dt, fused=fused, backend=backend)
    run.run(2500, phases=False)
    found = run.state.by_id().vel
    assert -found[:, -1] / vel[:, -1] == pytest.approx(np.full(parts, restitution), abs=1e-3)
    assert found[:, :-1] == pytest.approx(vel[:, :-1], abs=1e-12)


@pytest.mark.parametrize("contact_time", [None, 4e-2])
def test_a_wall_is_left_after_its_contact_time(backend, contact_time):
    walls = Walls(restitution=0.9, contact_time=contact_time)
    wanted = contact_time or LAW.contact_time
    run = lone(3, 0.5 + 1e-9, -1.0, walls=walls, dt=wanted / 1000, backend=backend)
    inside = 0
    for _ in range(1200):
        run.run(1)
        inside += run.state.pos[0, -1] < 0.5
    assert inside == pytest.approx(1000, abs=2)


@pytest.mark.quick
@pytest.mark.parametrize(
    ("dim", "integrator", "fused"),
    [
        (2, "velocity_verlet", False),
        tiers.full(2, "velocity_verlet", True),
        (2, "position_verlet", False),
        (3, "velocity_verlet", False),
        (3, "velocity_verlet", True),
        (3, "position_verlet", False),
    ],
)
def test_free_fall_is_exact(backend, dim, integrator, fused):
    gravity = (0.5, -1.5, 0.25)[:dim]
    run = lone(
        dim,
        8.0,
        1.0,
        law=IDEAL,
        gravity=gravity,
        dt=1e-3,
        integrator=integrator,
        fused=fused,
        backend=backend,
    )
    run.run(1500, phases=False)
    t = run.time
    assert t == pytest.approx(1.5)
    start, speed = np.array([2.5] * (dim - 1) + [8.0]), np.array([0.3] * (dim - 1) + [1.0])
    pos = start + speed * t + np.array(gravity) * t**2 / 2
    pos[:-1] %= 5.0
    assert run.state.pos[0] == pytest.approx(pos, abs=1e-11)
    assert run.state.vel[0] == pytest.approx(speed + np.array(gravity) * t, abs=1e-11)


@pytest.mark.quick
@pytest.mark.parametrize("fused", [False, True])
def test_what_flies_free_stays_behind_in_a_container_that_is_shaken(backend, fused):
    walls = ShakenWalls(amplitude=0.4, frequency=3.0, contact_time=1e-2)
    run = lone(3, 5.0, 0.1, law=IDEAL, walls=walls,
               dt=1e-4, fused=fused, backend=backend)  # fmt: skip
    for steps in (700, 1300, 2000):
        run.run(steps, phases=False)
        t = run.step * 1e-4
        wanted = 5.0 - 0.4 + 0.1 * t + 0.4 * np.cos(2 * np.pi * 3 * t)
        assert run.state.pos[0, -1] == pytest.approx(wanted, abs=2e-6)


def seen_from_outside(amplitude, frequency, restitution, contact_time, absolute, pos, vel, length, time):
    """Position in the container of a particle between moving walls, by a fine integration at rest outside."""
    spring, damping = Walls(restitution=restitution, contact_time=contact_time).contact(LAW)
    omega = 2 * np.pi * frequency

    def motion(t, y):
        x, v = y
        floor, moves = -amplitude * np.cos(omega * t), amplitude * omega * np.sin(omega * t)
        speed = v if absolute else v - moves
        force = 0.0
        if x - floor < 0.5:
            force += spring * (0.5 - (x - floor)) - damping * speed
        if floor + length - x < 0.5:
            force -= spring * (0.5 - (floor + length - x)) + damping * speed
        return [v, force]

    start = [pos - amplitude, vel]
    options = {"method": "DOP853", "rtol": 1e-9, "atol": 1e-11, "max_step": contact_time / 20}
    end = solve_ivp(motion, (0, time), start, **options).y[:, -1]
    return end[0] + amplitude * np.cos(omega * time), end[1] - amplitude * omega * np.sin(omega * time)


@pytest.mark.parametrize(
    ("integrator", "wall_damping"),
    [
        ("velocity_verlet", "relative"),
        tiers.quick("velocity_verlet", "absolute"),
        ("position_verlet", "absolute"),
        ("adaptive_euler", "relative"),
    ],
)
def test_shaken_walls_act_as_walls_that_move(backend, wall_damping, integrator):
    dt = 5e-5 if integrator == "adaptive_euler" else 1e-4
    shake = {"amplitude": 0.3, "frequency": 2.0, "restitution": 0.9, "contact_time": 2e-2}
    run = lone(2, 1.4, -0.7, 3.0, walls=ShakenWalls(**shake, wall_damping=wall_damping), dt=dt,
               integrator=integrator, backend=backend)  # fmt: skip
    run.run(round(0.8 / dt), phases=False)
    pos, vel = seen_from_outside(
        **shake, absolute=wall_damping == "absolute", pos=1.4, vel=-0.7, length=3.0, time=run.time
    )
    assert run.state.pos[0, -1] == pytest.approx(pos, abs=5e-3)
    assert run.state.vel[0, -1] == pytest.approx(vel, abs=2e-2)


@pytest.mark.parametrize(
    ("search", "dim", "fused"),
    tiers.by_default(
        [
            (search, dim, fused)
            for search, dim, fused in product(md.search.SEARCHES, (3, 2), (False, True))
            if md.search.SEARCHES[search].capabilities.fusable or not fused
        ],
        lambda search, dim, fused: (
            dim == 3 and search in tiers.BY_DEFAULT and (search, fused) != ("lbvh", True)
        ),
        tiers.full,
    ),
)
def test_every_search_fused_or_not_feels_the_same_from_outside(backend, search, dim, fused):
    box = md.Box((9.0, 8.0, 7.0)[:dim], (True, False, False)[3 - dim :])
    generator = np.random.default_rng(4)
    pos, _ = md.scenes.lattice_sites(box, 30)
    state = md.State(pos[:30], generator.normal(0, 3, (30, dim)), box)
    options = {
        "walls": ShakenWalls(amplitude=0.5, frequency=10.0, restitution=0.8),
        "gravity": (0.2, -1.0, -5.0)[:dim],
        "dt": 2e-4,
        "backend": backend,
    }
    ends = [
        md.Simulation(state, LAW, search=name, fused=name == search and fused, **options)
        for name in ("naive", search)
    ]
    for end in ends:
        end.run(400, phases=False)
    one, other = (end.state.by_id() for end in ends)
    assert len(ends[0].pairs()) + (one.pos[:, -1] < 0.5).sum() > 0 or np.abs(one.vel - state.vel).max() > 1
    np.testing.assert_allclose(other.pos, one.pos, atol=1e-7)
    np.testing.assert_allclose(other.vel, one.vel, atol=1e-4)


def test_a_driven_gas_may_gain_energy(backend):
    box = md.Box((6.0, 6.0, 6.0), (True, True, False))
    state = md.preparation.granular_gas(0.1, box, temperature=1e-4, mixing=0)
    run = md.Simulation(
        state, LAW, dt=2e-4, walls=ShakenWalls(amplitude=0.5, frequency=10.0), backend=backend, fused=True
    )
    run.run(3000, phases=False)
    assert md.observe.temperature(run.state) > 1
    inside = run.state.pos[:, -1]
    assert (inside > 0).all() and (inside < 6).all()  # noqa: PT018


BOX = md.Box((5.0, 5.0, 5.0), (True, True, False))
PERIODIC = md.Box((5.0, 5.0, 5.0))


@pytest.mark.parametrize(
    ("kind", "values", "said"),
    [
        (
            Walls,
            {"restitution": 0.0},
            "restitution of walls = 0.0; allowed: a finite number of at least 0.01, up to 1",
        ),
        (Walls, {"restitution": 1.2}, "restitution of walls = 1.2"),
        (Walls, {"restitution": np.nan}, "restitution of walls = nan"),
        (Walls, {"contact_time": 0.0}, "contact_time of walls = 0.0"),
        (Walls, {"contact_time": -1.0}, "contact_time of walls = -1.0"),
        (ShakenWalls, {"amplitude": -0.1, "frequency": 1.0}, "amplitude of shaken walls = -0.1"),
        (Walls, {"contact_time": 1e-200}, "above 1e-150 .*; None takes that of the law"),
        (ShakenWalls, {"amplitude": 0.1, "frequency": np.inf}, "frequency of shaken walls = inf"),
        (
            ShakenWalls,
            {"amplitude": 0.1, "frequency": 1.0, "wall_damping": "none"},
            "one of relative, absolute",
        ),
        (ShakenWalls, {"amplitude": 0.1, "frequency": 1e151}, r"frequency of shaken walls = 1e\+151"),
        (
            ShakenWalls,
            {"amplitude": 1.0, "frequency": 1.0, "axis": 3},
            "axis of shaken walls = 3; .* up to 2",
        ),
        (
            Walls,
            {"sides": (0, 3)},
            r"sides of walls\[1\] = 3; allowed: .* up to 2 .*None takes those that are",
        ),
    ],
)
def test_walls_that_cannot_be_are_refused(kind, values, said):
    with pytest.raises(ValueError, match=said):
        kind(**values)


@pytest.mark.parametrize("value", [True, "1", 1j, [0.1], np.timedelta64(1, "s")])
@pytest.mark.parametrize("name", ["restitution", "contact_time", "sides", "amplitude", "frequency", "axis"])
def test_walls_of_what_is_no_number_are_refused(name, value):
    with pytest.raises(TypeError, match=rf"{name} of (shaken )?walls(\[0\])? = .* of class .*; allowed: "):
        ShakenWalls(**({"amplitude": 0.1, "frequency": 1.0} | {name: value}))


@pytest.mark.parametrize("axis", [1.5, "z", True])
def test_an_axis_of_shaking_that_is_no_integer_is_refused(axis):
    with pytest.raises(TypeError, match=rf"axis of shaken walls = {axis!r}"):
        ShakenWalls(amplitude=1.0, frequency=1.0, axis=axis)


def test_walls_of_narrow_numbers_are_as_good():
    """A contact time of float16 once gave (inf, -0.0)."""
    assert Walls(contact_time=np.float16(0.0078)).contact(LAW) == pytest.approx((162219.0, 0.0), rel=0.01)
    narrow = np.float16(0.5), np.longdouble(0.25), np.array([2], np.uint8), np.int8(-1)
    walls = ShakenWalls(restitution=narrow[0], contact_time=narrow[1], sides=narrow[2], amplitude=narrow[0],
                        frequency=np.uint8(200), axis=narrow[3])  # fmt: skip
    assert walls == ShakenWalls(
        restitution=0.5, contact_time=0.25, sides=(2,), amplitude=0.5, frequency=200.0, axis=-1
    )
    kept = walls.restitution, walls.contact_time, walls.sides[0], walls.amplitude, walls.frequency, walls.axis
    assert [type(value) for value in kept] == [float, float, int, float, float, int]


@pytest.mark.parametrize(
    ("box", "law", "options", "said"),
    [
        (PERIODIC, LAW, {"walls": Walls()}, "an axis that is neither"),
        (BOX, LAW, {"walls": ShakenWalls(amplitude=1.0, frequency=1.0, axis=0)}, "axis 0, which is periodic"),
        (BOX, LAW, {"walls": ShakenWalls(amplitude=100.0, frequency=50.0)}, "crush"),
        (md.Box((5.0, 5.0, 0.9), (True, True, False)), LAW, {"walls": Walls()}, "0.9 d apart"),
        (BOX, IDEAL, {"walls": Walls(), "dt": 1e-3}, "contact_time = None of walls"),
        (BOX, LAW, {"gravity": (0.0, 1.0)}, "gravity = .*2 entries; allowed: a sequence of 3 numbers"),
        (BOX, LAW, {"gravity": (0.0, 0.0, np.nan)}, r"gravity\[2\] = nan; allowed: a finite number"),
    ],
)
def test_walls_and_gravity_that_do_not_fit_are_refused(box, law, options, said):
    state = md.State([[1.0, 1.0, 0.45]], [[0.0, 0.0, 0.0]], box)
    with pytest.raises(ValueError, match=said):
        md.Simulation(state, law, backend="cpu", **options)


@pytest.mark.parametrize("gravity", [-1.0, "down", ("0", "0", "1"), (0.0, 0.0, True), (0.0, 0.0, 1j)])
def test_gravity_of_what_is_no_number_is_refused(gravity):
    state = md.State([[1.0, 1.0, 1.0]], [[0.0, 0.0, 0.0]], BOX)
    with pytest.raises(TypeError, match=r"gravity(\[.\])? = .* of class .*; allowed: "):
        md.Simulation(state, LAW, walls=Walls(), gravity=gravity, backend="cpu")


def test_the_shorter_contact_sets_the_time_step():
    state = md.State([[1.0, 1.0, 2.0]], [[0.0, 0.0, 0.0]], BOX)
    run = md.Simulation(state, LAW, walls=Walls(contact_time=1e-3), backend="cpu")
    assert run.dt == pytest.approx(1e-3 / 50)
    assert md.Simulation(state, LAW, walls=Walls(), backend="cpu").dt == pytest.approx(1e-2 / 50)


SOFT = 0.15 * np.pi / (2 * np.pi * 5.0 * LAW.contact_time)  # amplitude that presses as far as is allowed


def test_walls_too_soft_for_their_speed_are_refused_whatever_the_step():
    state = md.State([[1.0, 1.0, 2.0]], [[0.0, 0.0, 0.0]], BOX)
    for dt in (2e-4, 2e-6):
        walls = ShakenWalls(amplitude=1.001 * SOFT, frequency=5.0)
        with pytest.raises(ValueError, match=r"press 0\.15 d into .*lower amplitude, frequency or contact_t"):
            md.Simulation(state, LAW, walls=walls, dt=dt, backend="cpu")


def test_walls_as_soft_as_is_allowed_carry_a_sphere_along(backend):
    box = md.Box((5.0, 5.0, 2.5), (True, True, False))
    state = md.State([[1.0, 1.0, 0.5]], [[0.0, 0.0, 0.0]], box)
    walls = ShakenWalls(amplitude=0.999 * SOFT, frequency=5.0, restitution=0.9)
    run = md.Simulation(state, LAW, walls=walls, dt=5e-5, backend=backend, fused=True)
    for _ in range(40):
        run.run(200, phases=False)  # two shakes in all
        assert 0.1 < run.state.pos[0, 2] < 2.4
