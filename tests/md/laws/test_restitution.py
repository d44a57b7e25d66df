"""Restitution: spheres of any two sizes, and walls, keep the fraction of their speed that was asked for."""

import math

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

import md
from md.laws import FrictionalSpringDashpot, SpringDashpot
from md.laws.spring_dashpot import LEAST_RESTITUTION, steps_per_contact
from md.simulation.time_step import time_step
from tests import tiers
from tests.final_laws import Power
from tests.tiers import full

TIME = 0.02
RADII = (0.1, 0.25, 0.5, 1.0, 2.0, 4.0)
PAIRS = np.array([(one, other) for one in RADII for other in RADII if one <= other])
ASKED = (0.1, 0.2, 0.3, 0.5, 0.7, 0.8, 0.9, 0.95)


def law_of(restitution: float, friction: bool) -> SpringDashpot:
    if friction:
        return FrictionalSpringDashpot.from_restitution(restitution, TIME, 0.3, 0.5)
    return SpringDashpot.from_restitution(restitution, TIME)


def pairs_of_all_sizes(dim: int, dt: float, depth: float = 0.2) -> tuple[md.State, np.ndarray]:
    """Make a pair for each of `PAIRS`, that approaches; contacts start at various moments of a step."""
    sizes, n = PAIRS.sum(axis=1), len(PAIRS)
    speed = depth * sizes / TIME
    pos, vel = np.full((2 * n, dim), 8.5), np.zeros((2 * n, dim))
    pos[:, 1] = np.repeat(8.5 * np.arange(n) + 4.2, 2)
    pos[::2, 0] = 4.5
    pos[1::2, 0] = 4.5 + sizes + (np.arange(n) + 0.5) / n * speed * dt
    vel[1::2, 0] = -speed
    lengths = (24.0, 8.5 * n) + (17.0,) * (dim - 2)
    return md.State(pos, vel, md.Box(lengths), radius=PAIRS.ravel()), speed


def measured(law: SpringDashpot, dim: int, backend: str, precision="float64", finer: int = 1, **options):
    """Integrate one contact of each pair with the derived step, or a finer one; return e of each."""
    dt = time_step(None, law, None) / finer
    state, speed = pairs_of_all_sizes(dim, dt)
    run = md.Simulation(state, law, dt=dt, backend=backend, precision=precision, **options)
    run.run(math.ceil(1.2 * TIME / dt), phases=False)
    assert not len(run.pairs())
    vel = run.state.by_id().vel[:, 0]
    assert vel[::2] + vel[1::2] == pytest.approx(-speed, rel=1e-5)
    return (vel[1::2] - vel[::2]) / speed


@pytest.mark.parametrize(
    ("dim", "precision", "friction"),
    [
        (3, "float64", False),
        full(3, "float64", True),
        full(2, "float64", False),
        full(2, "float64", True),
        full(3, "float32", False),
    ],
)
def test_any_two_sizes_keep_what_was_asked(dim, precision, friction, backend):
    for asked in ASKED if precision == "float64" else ASKED[3:]:  # else the step is too short for float32
        law = law_of(asked, friction)
        assert measured(law, dim, backend, precision) == pytest.approx(asked, rel=0.02), asked
        assert measured(law, dim, backend, precision, finer=4) == pytest.approx(asked, rel=0.01), asked


@given(log=st.floats(math.log(LEAST_RESTITUTION), 0.0))
@tiers.examples(10)
def test_any_restitution_is_within_2_percent_at_the_derived_step(log, backend):
    asked = max(math.exp(log), LEAST_RESTITUTION)
    assert measured(law_of(asked, False), 3, backend) == pytest.approx(asked, rel=0.02)


@pytest.mark.parametrize("asked", [0.05, full(0.1), 0.8])
def test_spheres_of_all_sizes_keep_at_walls_what_was_asked(asked, backend):
    walls = md.Walls(restitution=asked, contact_time=TIME)
    radius = np.array(RADII)
    pos, vel = np.full((len(radius), 3), 8.5), np.zeros((len(radius), 3))
    pos[:, 0] = radius + 1e-4
    pos[:, 1] = 8.5 * np.arange(len(radius)) + 4.2
    vel[:, 0] = -0.4 * radius / TIME
    box = md.Box((24.0, 8.5 * len(radius), 17.0), (False, True, True))
    law = law_of(0.9, False)
    run = md.Simulation(md.State(pos, vel, box, radius=radius), law, walls=walls, backend=backend)
    run.run(math.ceil(1.3 * TIME / run.dt), phases=False)
    assert run.state.by_id().vel[:, 0] == pytest.approx(-asked * vel[:, 0], rel=0.02)


@pytest.mark.parametrize("normal", [0.6, full(1.0), full(0.1)])
def test_a_drag_keeps_of_the_sliding_speed_what_was_asked(normal, backend):
    for asked in (0.01, 0.05, 0.1, 0.3, 0.9):
        law = FrictionalSpringDashpot.from_restitution(normal, TIME, 1e6, asked)
        dt = time_step(None, law, None)
        state, speed = pairs_of_all_sizes(3, dt, depth=1e-4)  # too short a way to turn the line of centres
        state.vel[1::2, 2] = 1e-6 * speed
        run = md.Simulation(state, law, dt=dt, backend=backend)
        run.run(math.ceil(1.2 * TIME / dt), phases=False)
        vel = run.state.by_id().vel[:, 2]
        assert (vel[1::2] - vel[::2]) / (1e-6 * speed) == pytest.approx(asked, rel=0.02)


@pytest.mark.parametrize(
    "law",
    [
        SpringDashpot(1e3, 4.0),
        full(FrictionalSpringDashpot(1e3, 4.0, friction=0.4, tangential_damping=8.0)),
        full(Power(stiffness=1e3)),
    ],
)
@given(
    radius=st.tuples(st.floats(0.1, 4.0), st.floats(0.1, 4.0)),
    share=st.one_of(st.floats(0.5, 0.999), st.floats(1.001, 1.1)),  # the dashpot jumps at 1
    vel=st.tuples(*[st.floats(-9.0, 9.0)] * 6),
)
def test_unequal_spheres_are_equal_ones_enlarged(law, radius, share, vel, backend):
    if isinstance(law, Power) and backend != "cpu":
        pytest.skip("a law without a .cuh")
    size, vel = sum(radius), np.reshape(vel, (2, 3))
    forces = []
    for scale, radii in ((size, radius), (1.0, None)):
        pos = np.array([[8.0, 9.0, 9.0], [8.0 + scale * share, 9.0, 9.0]])
        state = md.State(pos, scale * vel, md.Box((18.0,) * 3), radius=radii)
        forces.append(md.Simulation(state, law, search="naive", dt=1e-3, backend=backend).forces())
    assert forces[0] == pytest.approx(size * forces[1], rel=1e-9, abs=1e-8)


class TestTimeStep:
    @given(e=st.floats(LEAST_RESTITUTION, 1.0), contact_time=st.floats(1e-6, 1e3))
    def test_resolves_strong_damping(self, e, contact_time):
        law = SpringDashpot.from_restitution(e, contact_time)
        assert law.contact_time / time_step(None, law, None) == pytest.approx(steps_per_contact(e), rel=1e-9)
        assert steps_per_contact(e) >= 50
        assert steps_per_contact(e) >= 100 * math.log(e) ** 2

    def test_is_a_fiftieth_of_a_contact_down_to_e_of_a_half(self):
        assert [steps_per_contact(e) for e in (1.0, 0.8, 0.5, 0.1, 0.01)] == [50, 50, 50, 531, 2121]

    def test_is_that_of_the_most_damped_contact(self):
        law, walls = law_of(0.9, False), md.Walls(restitution=0.1, contact_time=5 * TIME)
        assert time_step(None, law, None) == pytest.approx(TIME / 50)
        assert time_step(None, law, md.Walls()) == pytest.approx(TIME / 50)
        assert time_step(None, law, walls) == pytest.approx(5 * TIME / 531)
        wing = md.Wing(airfoil=md.naca("2412"), chord=5.0, at=(10.0, 10.0), stiffness=1e6, damping=1200.0)
        expected = wing.contact_time / steps_per_contact(wing.restitution)
        assert time_step(None, law, None, (wing,)) == pytest.approx(expected)
        assert wing.restitution < 0.1

    @pytest.mark.parametrize("friction", [False, True])
    @pytest.mark.parametrize("e", [0.0, 1e-300, 0.0099, 1.1])
    def test_a_restitution_that_no_step_resolves_is_refused(self, e, friction):
        with pytest.raises(ValueError, match=r"restitution = .*; allowed: .*0\.01.*2,000 steps a contact"):
            law_of(e, friction)
        with pytest.raises(ValueError, match=r"restitution of walls = .*; allowed: .*0\.01"):
            md.Walls(restitution=e)
        with pytest.raises(ValueError, match=r"tangential_restitution = .*; allowed: .*0\.01"):
            FrictionalSpringDashpot.from_restitution(0.8, TIME, 0.3, e)

    def test_a_law_that_keeps_less_needs_a_step_of_its_own(self, backend):
        law = SpringDashpot(1e4, 130.0)
        assert law.restitution < LEAST_RESTITUTION
        state = md.State([[4.0, 4.0, 4.0]], np.zeros((1, 3)), md.Box((8.0,) * 3))
        with pytest.raises(ValueError, match=r"dt = None, but a contact under SpringDashpot.*at least 0\.01"):
            md.Simulation(state, law, backend=backend)
        md.Simulation(state, law, dt=1e-4, backend=backend)


class TestOverdampedContact:
    STATE = md.State([[4.0, 4.0]], np.zeros((1, 2)), md.Box((20.0, 20.0)))

    @pytest.mark.parametrize("law", [SpringDashpot(1e4, 150.0), SpringDashpot(1e4, 100 * math.sqrt(2))])
    def test_is_named(self, law, backend):
        with pytest.warns(
            md.OverdampedContact, match=r"under SpringDashpot.*never ends; allowed: damping < 141"
        ) as found:
            md.Simulation(self.STATE, law, dt=1e-4, backend=backend)
        assert found[0].filename == __file__
        with pytest.raises(ValueError, match="is overdamped: a contact never ends; allowed: damping < 141"):
            md.Simulation(self.STATE, law, backend=backend)

    def test_of_a_wing_is_named(self, backend):
        wing = md.Wing(airfoil=md.naca("2412"), chord=5.0, at=(10.0, 10.0), stiffness=1e4, damping=201.0)
        law = law_of(0.8, False)
        with pytest.warns(md.OverdampedContact, match=r"under Wing.*ends; allowed: damping < 200"):
            md.Simulation(self.STATE, law, surroundings=(wing,), dt=1e-4, backend=backend)
        with pytest.raises(ValueError, match=r"of a wing .* is overdamped: a contact never ends"):
            md.Simulation(self.STATE, law, surroundings=(wing,), backend=backend)

    @given(e=st.floats(LEAST_RESTITUTION, 1.0), friction=st.booleans())
    @pytest.mark.filterwarnings("error")
    def test_is_not_named_where_contacts_end(self, e, friction):
        md.Simulation(self.STATE, law_of(e, friction), backend="cpu")

    @pytest.mark.filterwarnings("error")
    def test_is_not_named_of_an_ideal_gas(self):
        md.Simulation(self.STATE, SpringDashpot(0.0, 5.0), dt=1e-3, backend="cpu")
