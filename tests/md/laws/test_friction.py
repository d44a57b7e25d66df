"""Friction: the force by its definition, Coulomb's limit, collisions against another integration, energy."""

import math
from itertools import cycle

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

import md
from tests import tiers
from tests.md.search.test_contract import dense_cloud, separations

SpringDashpot, Frictional = md.laws.SpringDashpot, md.laws.FrictionalSpringDashpot
LAW = Frictional(stiffness=1e4, damping=5.0, friction=0.4, tangential_damping=60.0)
DT = LAW.contact_time / 50
CASES = [(2, "float64"), (3, "float32"), (3, "float64"), (2, "float32")]
STRENGTHS = [(0.1, 1000.0), (1.0, 100.0), (1e6, 20.0)]  # friction, tangential damping
IN_EVERY_SEARCH = pytest.mark.parametrize(
    ("search", "dim", "precision"),
    [
        ("linked", 3, "float64"),
        *(tiers.full(search, 3, "float64") for search in tiers.BY_DEFAULT[1:]),
        *(tiers.full("linked", *case) for case in CASES[:2]),
        *(
            tiers.nightly(search, *case)
            for search, case in zip(md.search.SEARCHES, cycle(CASES), strict=False)
        ),
    ],
)


def pair_force(law, dr, v) -> np.ndarray:
    """Compute the force on i by the definition; dr = r_i - r_j and v = v_i - v_j in the last axis."""
    r = np.linalg.norm(dr, axis=-1, keepdims=True)
    touching = (r < law.diameter) & (r > 0)
    n = dr / np.where(touching, r, 1)
    closing = (v * n).sum(axis=-1, keepdims=True)
    normal = law.stiffness * (1 - r / law.diameter) - law.damping * closing
    sliding = v - closing * n
    speed = np.linalg.norm(sliding, axis=-1, keepdims=True)
    rub = np.minimum(law.tangential_damping * speed, law.friction * np.maximum(normal, 0))
    return np.where(touching, normal * n - rub * sliding / np.where(speed > 0, speed, 1), 0)


def pair(dim: int, dr, v, box_side: float = 5.0) -> md.State:
    """Make two particles with r_1 - r_0 = dr and v_1 - v_0 = v at zero momentum; missing components are 0."""
    apart, relative = np.zeros(dim), np.zeros(dim)
    apart[: len(dr)], relative[: len(v)] = dr, v
    middle = np.full(dim, box_side / 2)
    return md.State(
        [middle - apart / 2, middle + apart / 2], [-relative / 2, relative / 2], md.Box((box_side,) * dim)
    )


def force_on_one(law, dim, precision, backend, distance, v) -> np.ndarray:
    state = pair(dim, [distance], v)
    return md.Simulation(state, law, search="naive", precision=precision, backend=backend).forces()[1]


def gas(dim: int) -> md.State:
    """Make a dense gas of zero total momentum: a lattice with random displacements."""
    box = md.Box((6.4,) * 3 if dim == 3 else (16.0, 15.0))
    sites, spacing = md.scenes.lattice_sites(box, 220)
    generator = np.random.default_rng(2)
    jitter = generator.uniform(-0.5, 0.5, sites.shape) * (spacing - 1) / math.sqrt(dim)
    vel = md.scenes.maxwell_velocities(len(sites), dim, 16.0, generator)
    return md.State(box.wrap(sites + jitter), vel, box)


def energy(simulation) -> float:
    state = simulation.state
    stored = md.observe.contact_energy(state, simulation.pairs(), simulation.law)
    return md.observe.kinetic_energy(state) + stored


class TestForce:
    @pytest.mark.quick
    @pytest.mark.parametrize(
        ("dim", "precision"), tiers.by_default(CASES, lambda *case: case == (3, "float64"), tiers.full)
    )
    def test_is_viscous_or_coulomb_s_or_zero_while_the_dashpot_pulls(self, dim, precision, backend):
        law = Frictional(stiffness=100.0, damping=1.0, friction=0.5, tangential_damping=2.0)
        tolerance = 1e-12 if precision == "float64" else 1e-4
        for v, expected in [
            ((0, 0), (10, 0)),  # an overlap of a tenth
            ((0, 1), (10, -2)),  # gamma v_t
            ((0, 2.5), (10, -5)),  # f F_n, just
            ((0, -40), (10, 5)),
            ((-4, 40), (14, -7)),  # approach increases the normal force
            ((4, 1), (6, -2)),
            ((4, 40), (6, -3)),
            ((14, 40), (-4, 0)),  # the dashpot pulls
        ]:
            force = force_on_one(law, dim, precision, backend, 0.9, v)
            assert np.abs(force[:2] - expected).max() < tolerance, v
            assert not force[2:].any()

    @IN_EVERY_SEARCH
    @pytest.mark.parametrize("periodic", [(True,) * 3, (True, False, True)], ids=["periodic", "open"])
    def test_is_the_sum_of_the_definition(self, search, dim, precision, periodic, backend):
        state = dense_cloud(dim, periodic)
        simulation = md.Simulation(state, LAW, search=search, precision=precision, backend=backend)
        velocity = state.vel[:, None] - state.vel[None]
        expected = pair_force(LAW, separations(state), velocity).sum(axis=1)[np.argsort(state.id)]
        without = md.Simulation(state, SpringDashpot(1e4, 5.0), search="naive", backend="cpu").forces()
        found = simulation.forces()
        assert found.dtype == np.dtype(precision)
        tolerance = 1e3 * np.finfo(precision).eps * LAW.stiffness
        assert np.abs(found - expected).max() < tolerance < np.abs(found - without).max() / 100
        assert np.abs(found.sum(axis=0)).max() <= 8 * np.finfo(precision).eps * np.abs(found).sum()

    @IN_EVERY_SEARCH
    @pytest.mark.parametrize("off", [{"friction": 0.0}, {"tangential_damping": 0.0}], ids=["f", "gamma"])
    def test_without_friction_every_bit_is_that_of_the_spring_dashpot(
        self, search, dim, precision, off, backend
    ):
        constants = {"friction": 0.7, "tangential_damping": 60.0} | off
        ends = []
        for law in (SpringDashpot(1e4, 5.0), Frictional(1e4, 5.0, **constants)):
            simulation = md.Simulation(gas(dim), law, search=search, precision=precision, backend=backend)
            simulation.run(60)
            ends.append(simulation.state.by_id())
        bits = 0 if backend == "cpu" else 1e3 * np.finfo(precision).eps  # compilers fuse a b + c as they like
        assert np.abs(ends[0].pos - ends[1].pos).max() <= bits
        assert np.abs(ends[0].vel - ends[1].vel).max() <= 1e3 * bits
        assert np.abs(ends[0].vel - gas(dim).vel).max() > 1

    @pytest.mark.parametrize("dim", [tiers.nightly(2), 3])
    def test_a_fused_step_is_the_plain_one(self, dim, backend):
        ends = []
        for fused in (False, True):
            simulation = md.Simulation(gas(dim), LAW, search="naive", backend=backend, fused=fused)
            simulation.run(40)
            ends.append(simulation.state.by_id())
        assert np.abs(ends[0].vel - ends[1].vel).max() < 1e-9

    @pytest.mark.parametrize("precision", [tiers.full("float32"), "float64"])
    def test_is_finite_for_almost_coincident_particles(self, precision, backend):
        for exponent in (1, 4, 8, 15, 19, 22, 23, 30, 44):
            force = force_on_one(LAW, 3, precision, backend, 10.0**-exponent, (0.3, 2.0, -1.0))
            assert np.isfinite(force).all(), exponent
            assert np.linalg.norm(force) <= 1.1 * (1 + LAW.friction) * (LAW.stiffness + 3 * LAW.damping)


def collided(law, dr, v, duration: float, steps: int) -> tuple[np.ndarray, np.ndarray]:
    """Integrate a collision by Runge and Kutta's fourth order with m_eff = 1/2; return r and v."""
    state, dt = np.array([dr, v], float), duration / steps

    def rate(s):
        return np.array([s[1], 2 * pair_force(law, s[0], s[1])])

    for _ in range(steps):
        a = rate(state)
        b = rate(state + dt / 2 * a)
        c = rate(state + dt / 2 * b)
        state = state + dt / 6 * (a + 2 * b + 2 * c + rate(state + dt * c))
    return state[0], state[1]


class TestCollision:
    """Relative velocities are given in diameters per contact time."""

    @pytest.mark.parametrize("dim", [tiers.nightly(2), 3])
    @pytest.mark.parametrize(
        ("friction", "tangential", "v"),
        [
            (0.3, 0.01, (-0.1, 0.3)),
            (5.0, 0.3, (-0.1, 0.3)),
            (0.3, 0.2, (-0.1, 0.05)),
            (0.5, 0.1, (-0.05, -0.4)),
        ],
        ids=["sliding", "viscous", "both", "grazing"],
    )
    def test_that_is_oblique_agrees_with_another_integration(self, dim, friction, tangential, v, backend):
        law = Frictional.from_restitution(0.8, 0.02, friction, tangential)
        v = np.array(v) / law.contact_time
        duration = 1.25 * law.contact_time
        r, u = collided(law, [1.0, 0.0], v, duration, 2000)
        assert np.linalg.norm(r) > 1
        errors = []
        for steps in (250, 1000):
            simulation = md.Simulation(
                pair(dim, [1.0], v), law, search="linked", dt=duration / steps, backend=backend
            )
            simulation.run(steps, phases=False)
            end = simulation.state.by_id()
            relative = end.vel[1] - end.vel[0]
            assert not relative[2:].any()
            errors.append(np.linalg.norm(relative[:2] - u) / np.linalg.norm(v))
        assert errors[1] < 2e-4
        assert errors[1] < errors[0] / 2
        smooth = Frictional(law.stiffness, law.damping, friction=0, tangential_damping=0)
        plain = collided(smooth, [1.0, 0.0], v, duration, 400)
        assert np.linalg.norm(plain[1] - u) / np.linalg.norm(v) > 0.02

    @pytest.mark.quick
    @pytest.mark.parametrize("friction", [0.05, 0.3, 1.0])
    def test_that_slides_throughout_loses_f_times_its_normal_change(self, friction, backend):
        law = Frictional(stiffness=1e4, damping=0.0, friction=friction, tangential_damping=1e6)
        v = np.array([-1e-5, 1e-4]) / law.contact_time  # too fast to stop, too slow to turn
        dt = law.contact_time / 50
        simulation = md.Simulation(pair(3, [1.0], v), law, search="linked", dt=dt, backend=backend)
        simulation.run(60)
        end = simulation.state.by_id()
        change = end.vel[1] - end.vel[0] - [*v, 0]
        assert change[0] == pytest.approx(-2 * v[0], rel=1e-2)
        assert change[1] / change[0] == pytest.approx(-friction, rel=1e-3)

    @pytest.mark.quick
    @pytest.mark.parametrize("tangential", [1.0, 0.7, 0.1])
    def test_that_never_reaches_the_limit_has_its_tangential_restitution(self, tangential, backend):
        law = Frictional.from_restitution(1.0, 0.02, friction=1e6, tangential_restitution=tangential)
        v = np.array([-1e-4, 1e-4]) / law.contact_time
        simulation = md.Simulation(
            pair(3, [1.0], v), law, search="linked", dt=law.contact_time / 1000, backend=backend
        )
        simulation.run(1100, phases=False)
        end = simulation.state.by_id()
        assert (end.vel[1, 1] - end.vel[0, 1]) / v[1] == pytest.approx(tangential, rel=5e-3)


class TestConservation:
    @IN_EVERY_SEARCH
    def test_momentum_stays_zero_to_rounding(self, search, dim, precision, backend):
        simulation = md.Simulation(gas(dim), LAW, search=search, precision=precision, backend=backend)
        simulation.run(200, phases=False)
        end = simulation.state
        limit = 1e-12 if precision == "float64" else 1e-6
        assert np.linalg.norm(md.observe.momentum(end)) < limit * np.linalg.norm(end.vel, axis=1).sum()

    @pytest.mark.parametrize("dim", [tiers.full(2), 3])
    @pytest.mark.parametrize(
        ("damping", "strength"),
        tiers.product([0.0, 5.0], STRENGTHS, 2, tiers.full),
    )
    def test_energy_is_never_gained(self, dim, damping, strength, backend):
        law = Frictional(1e4, damping, friction=strength[0], tangential_damping=strength[1])
        simulation = md.Simulation(gas(dim), law, search="linked", dt=DT, backend=backend)
        energies = [energy(simulation)]
        for _ in range(8):
            simulation.run(40, phases=False)
            energies.append(energy(simulation))
        assert (np.diff(energies) < 0).all()
        assert energies[-1] < 0.9 * energies[0]

    def test_friction_dissipates_more_than_the_dashpot_alone(self, backend):
        ends = []
        for law in (SpringDashpot(1e4, 5.0), LAW):
            simulation = md.Simulation(gas(3), law, search="linked", dt=DT, backend=backend)
            simulation.run(300, phases=False)
            ends.append(energy(simulation))
        assert ends[1] < 0.8 * ends[0]


class TestClosedForm:
    @given(
        restitution=st.floats(0.01, 1.0),
        contact_time=st.floats(1e-6, 1e3),
        friction=st.floats(0, 10, exclude_min=True),
        tangential=st.floats(0.01, 1.0),
    )
    def test_from_restitution_round_trips(self, restitution, contact_time, friction, tangential):
        law = Frictional.from_restitution(restitution, contact_time, friction, tangential)
        assert law.restitution == pytest.approx(restitution, rel=1e-12)
        assert law.contact_time == pytest.approx(contact_time, rel=1e-12)
        assert law.tangential_restitution == pytest.approx(tangential, rel=1e-12)
        assert law.friction == friction

    def test_the_normal_part_is_that_of_the_spring_dashpot(self):
        law = Frictional.from_restitution(0.8, 0.02, friction=0.3, tangential_restitution=0.5)
        plain = SpringDashpot.from_restitution(0.8, 0.02)
        r = np.linspace(0.5, 1.2, 8)
        assert np.array_equal(law.potential(r), plain.potential(r))
        for name in ("stiffness", "damping", "cutoff", "contact_time", "restitution", "closest_start"):
            assert getattr(law, name) == getattr(plain, name)

    def test_no_drag_keeps_all_and_an_ideal_gas_never_ends_a_contact(self):
        assert Frictional(1.0, 0.0, friction=1.0, tangential_damping=0.0).tangential_restitution == 1
        free = Frictional(0.0, 0.0, friction=1.0, tangential_damping=0.0)
        assert (free.contact_time, free.tangential_restitution) == (math.inf, 1)


class TestErrors:
    @pytest.mark.parametrize("value", [-1.0, np.inf, np.nan])
    def test_a_constant_that_is_negative_or_not_finite(self, value):
        with pytest.raises(ValueError, match=rf"friction = {value}; allowed: a finite number of at least 0"):
            Frictional(1.0, 0.0, friction=value, tangential_damping=0.0)
        with pytest.raises(ValueError, match=rf"tangential_damping = {value}; allowed: a finite number of"):
            Frictional(1.0, 0.0, friction=0.0, tangential_damping=value)
        with pytest.raises(ValueError, match=rf"stiffness = {value}; allowed: a finite number of at least 0"):
            Frictional(value, 0.0, friction=0.0, tangential_damping=0.0)

    @pytest.mark.parametrize("value", [0, -0.5, 1.2, np.nan])
    def test_a_restitution_out_of_range(self, value):
        with pytest.raises(
            ValueError, match=rf"tangential_restitution = {value}; allowed: a finite .* of at least 0\.01"
        ):
            Frictional.from_restitution(0.8, 1.0, friction=0.1, tangential_restitution=value)
        with pytest.raises(ValueError, match=rf"restitution = {value}; allowed: .* of at least 0\.01, up"):
            Frictional.from_restitution(value, 1.0, friction=0.1, tangential_restitution=0.5)

    @pytest.mark.parametrize("value", [True, "1", None, 1j])
    def test_what_is_no_number(self, value):
        for name in ("friction", "tangential_damping"):
            with pytest.raises(TypeError, match=rf"{name} = .* of class .*; allowed: a finite number"):
                Frictional(1.0, 0.0, **({"friction": 0.1, "tangential_damping": 0.1} | {name: value}))
        with pytest.raises(TypeError, match=r"tangential_restitution = .* of class .*; allowed: a finite"):
            Frictional.from_restitution(0.5, 1.0, friction=0.1, tangential_restitution=value)

    def test_narrow_numbers_are_as_good(self):
        law = Frictional.from_restitution(np.float16(0.5), np.uint8(2), np.float16(0.25), np.longdouble(0.5))
        assert law == Frictional.from_restitution(0.5, 2.0, 0.25, 0.5)
        assert type(law.friction) is type(law.tangential_damping) is float
