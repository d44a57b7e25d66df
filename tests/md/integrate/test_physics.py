"""Against closed forms: restitution, momentum, energy, the order of the integrator, free flight."""

import math
from itertools import product

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

import md
from tests import tiers

SpringDashpot = md.laws.SpringDashpot
PRECISIONS = "float32", "float64"
ELASTIC_BY_NIGHT = [
    (search, dim)
    for search, dim in product(sorted(set(md.search.SEARCHES) - {"naive"}), (3, 2))
    if (search, dim) not in (("linked", 3), ("linked", 2), ("reflexive", 3))
]
DIMS = pytest.mark.parametrize("dim", [2, 3])
LAWS = {
    "benchmark": md.scenes.BENCHMARK_LAW,
    "e 0.8": SpringDashpot.from_restitution(0.8, contact_time=2e-4),
    "e 0.95": SpringDashpot.from_restitution(0.95, contact_time=0.01),
    "elastic": SpringDashpot(stiffness=1e4, damping=0.0),
}


def pair(dim: int, distance: float, speed: float, axis: int = 0) -> md.State:
    """Two particles on an axis, each with `speed` towards the other."""
    pos = np.full((2, dim), 2.5)
    pos[:, axis] += [-distance / 2, distance / 2]
    vel = np.zeros((2, dim))
    vel[:, axis] = [speed, -speed]
    return md.State(pos, vel, md.Box((5.0,) * dim))


def measured_restitution(law, steps_a_contact: int, offset: float, dim: int, backend: str) -> float:
    """Separation speed over approach speed of a head-on meeting that starts `offset` steps before contact."""
    speed = 0.02 / law.contact_time
    dt = law.contact_time / steps_a_contact
    axis = dim - 1
    start = pair(dim, 1 + offset * 2 * speed * dt, speed, axis)
    simulation = md.Simulation(start, law, search="linked", dt=dt, backend=backend)
    simulation.run(int(1.2 * steps_a_contact) + 3, phases=False)
    end = simulation.state.by_id()
    assert len(simulation.pairs()) == 0
    return (end.vel[1, axis] - end.vel[0, axis]) / (2 * speed)


class TestRestitution:
    @pytest.mark.parametrize("law", LAWS.values(), ids=LAWS)
    @DIMS
    def test_is_met_to_7e_3_at_50_steps_a_contact_from_any_offset(self, law, dim, backend):
        misses = [
            abs(measured_restitution(law, 50, offset, dim, backend) - law.restitution)
            for offset in np.linspace(0, 1, 11)
        ]
        assert max(misses) <= 7e-3

    @tiers.examples(15)
    @given(offset=st.floats(0, 1))
    def test_of_the_benchmark_law_is_met_to_7e_3_from_any_drawn_offset(self, backend, offset):
        law = LAWS["benchmark"]
        assert abs(measured_restitution(law, 50, offset, 3, backend) - law.restitution) <= 7e-3

    @pytest.mark.quick
    @pytest.mark.parametrize("law", LAWS.values(), ids=LAWS)
    def test_is_met_to_1e_3_at_500_steps_a_contact(self, law, backend):
        for offset in (0.0, 0.3, 0.7):
            assert abs(measured_restitution(law, 500, offset, 3, backend) - law.restitution) <= 1e-3

    @pytest.mark.parametrize("law", LAWS.values(), ids=LAWS)
    def test_error_falls_with_the_step(self, law, backend):
        worst = [
            max(abs(measured_restitution(law, n, k / 6, 2, backend) - law.restitution) for k in range(6))
            for n in (50, 100, 200)
        ]
        assert worst[2] < worst[1] / 1.5 < worst[0] / 2.25

    def test_of_an_elastic_pair_is_one(self, backend):
        assert measured_restitution(LAWS["elastic"], 500, 0.5, 3, backend) == pytest.approx(1, abs=1e-6)

    @pytest.mark.quick
    def test_does_not_depend_on_the_direction_of_approach(self, backend):
        law = LAWS["benchmark"]
        direction = np.array([1.0, 2.0, -2.0]) / 3
        start = pair(3, 1.001, 0.0)
        start = md.State(
            2.5 + np.outer([-0.5005, 0.5005], direction), np.outer([1.0, -1.0], direction), start.box
        )
        simulation = md.Simulation(start, law, search="linked", backend=backend)
        simulation.run(70)
        away = simulation.state.by_id().vel[1]
        assert np.linalg.norm(away) == pytest.approx(law.restitution, abs=7e-3)
        assert away @ direction == pytest.approx(np.linalg.norm(away), rel=1e-12)

    @pytest.mark.quick
    def test_a_grazing_pair_keeps_its_tangential_speed(self, backend):
        start = pair(3, 1.0, 1.0)
        start = md.State(start.pos, start.vel + np.array([0, 3.0, 0]), start.box)
        simulation = md.Simulation(start, LAWS["benchmark"], search="linked", backend=backend)
        simulation.run(70)
        assert np.allclose(simulation.state.vel[:, 1], 3.0, rtol=0, atol=1e-13)


class TestClosedForm:
    @pytest.mark.quick
    def test_the_benchmark_law_lasts_as_the_peers_page_says(self):
        law = SpringDashpot(stiffness=1e4, damping=5.0)
        assert law.contact_time == pytest.approx(0.02223, abs=5e-6)
        w0_squared, g = 2e4, 5.0
        w = math.sqrt(w0_squared - g * g)
        assert law.contact_time == pytest.approx(math.pi / w, rel=1e-14)
        assert law.restitution == pytest.approx(math.exp(-math.pi * g / w), rel=1e-14)

    @pytest.mark.quick
    def test_the_energy_of_a_pair_is_that_of_distances_alone(self):
        law = SpringDashpot(stiffness=100.0, damping=0.0, diameter=2.0)
        for distance in ([1.0, 3.0], np.array([1, 3], np.uint8), np.array([1, 3], np.float32)):
            assert law.potential(distance).tolist() == [25.0, 0.0]
        assert law.potential(np.empty(0)).shape == (0,)
        for wrong in ("near", None, math, np.bool_):
            with pytest.raises(TypeError, match=r"distance = .* of class .*; allowed: an array of real"):
                law.potential(wrong)
        for wrong in (
            1.0,
            np.uint16(65535),
            np.zeros(0, "c8"),
            np.ones((2, 2)),
            [True, False],
            np.array(["1"]),
            np.zeros(1, "m8"),
        ):
            with pytest.raises(ValueError, match=r"distance of (dtype|shape) .*; allowed: "):
                law.potential(wrong)
        for wrong in ([1.0, -1.0], np.array([-1]), [math.nan]):
            with pytest.raises(ValueError, match=r"distance.* = (-1|nan).*; allowed: .* of at least 0"):
                law.potential(wrong)

    @given(restitution=st.floats(0.01, 1.0), contact_time=st.floats(1e-6, 1e3))
    def test_from_restitution_round_trips(self, restitution, contact_time):
        law = SpringDashpot.from_restitution(restitution, contact_time=contact_time)
        assert law.restitution == pytest.approx(restitution, rel=1e-12)
        assert law.contact_time == pytest.approx(contact_time, rel=1e-12)

    @given(stiffness=st.floats(1e-6, 1e9), share=st.floats(0, 0.82))  # e of 0.011 at 0.82
    def test_stiffness_and_damping_come_back_from_restitution_and_contact_time(self, stiffness, share):
        law = SpringDashpot(stiffness, damping=share * math.sqrt(2 * stiffness))  # a share of the critical
        back = SpringDashpot.from_restitution(law.restitution, law.contact_time)
        assert back.stiffness == pytest.approx(law.stiffness, rel=1e-12)
        assert back.damping == pytest.approx(law.damping, rel=1e-12, abs=1e-13 * math.sqrt(stiffness))

    @pytest.mark.parametrize("contact_time", [1e-6, 0.3, 1e3])
    def test_a_restitution_of_one_comes_back_to_the_bit(self, contact_time):
        assert SpringDashpot.from_restitution(1.0, contact_time).restitution == 1

    def test_an_elastic_law_has_no_damping_and_an_ideal_gas_never_meets(self):
        assert SpringDashpot.from_restitution(1.0, contact_time=0.1).damping == 0
        assert SpringDashpot(0.0, 0.0).contact_time == math.inf
        assert SpringDashpot(0.0, 0.0).restitution == 1

    def test_the_cutoff_is_one_diameter(self):
        assert LAWS["benchmark"].cutoff == 1


def motion_in_contact(law, distance: float, closing: float, time: float) -> tuple[float, float]:
    """Distance and its rate after a time of touching: a damped oscillator about one diameter."""
    w0_squared, g = 2 * law.stiffness, law.damping
    w = math.sqrt(w0_squared - g * g)
    overlap, rate = 1 - distance, closing
    b = (rate + g * overlap) / w
    decay = math.exp(-g * time)
    later = decay * (overlap * math.cos(w * time) + b * math.sin(w * time))
    speed = -g * later + decay * w * (b * math.cos(w * time) - overlap * math.sin(w * time))
    return 1 - later, -speed


def error_in_contact(law, steps: int, dim: int, backend: str) -> tuple[float, float]:
    """Errors of distance and rate of a pair that touches all the while."""
    time = 0.4 * SpringDashpot(law.stiffness, 0.0).contact_time
    start = pair(dim, 0.97, 0.5)
    simulation = md.Simulation(start, law, search="linked", dt=time / steps, backend=backend)
    simulation.run(steps, phases=False)
    assert len(simulation.pairs()) == 1
    end = simulation.state.by_id()
    distance, rate = motion_in_contact(law, 0.97, 1.0, time)
    return (
        abs(end.pos[1, 0] - end.pos[0, 0] - distance),
        abs(end.vel[1, 0] - end.vel[0, 0] - rate),
    )


class TestOrderOfTheIntegrator:
    @pytest.mark.quick
    @DIMS
    @pytest.mark.parametrize(("damping", "order"), [(0.0, 2), (20.0, 1)], ids=["elastic", "damped"])
    def test_velocity_verlet_is_second_order_elastic_and_first_order_damped(
        self, dim, damping, order, backend
    ):
        law = SpringDashpot(stiffness=1e4, damping=damping)
        errors = np.array([error_in_contact(law, steps, dim, backend) for steps in (80, 160, 320, 640)])
        observed = np.log2(errors[:-1] / errors[1:])
        assert np.abs(observed - order).max() < 0.15, observed

    @DIMS
    @given(data=st.data())
    def test_free_flight_is_exact(self, dim, backend, data):
        eighths = st.integers(-64, 64).map(lambda k: k / 8)
        vel = np.array(data.draw(st.lists(st.tuples(*[eighths] * dim), min_size=1, max_size=8)))
        steps = data.draw(st.integers(0, 40))
        generator = np.random.default_rng(0)
        pos = generator.integers(0, 4 * 64, vel.shape) / 64
        box = md.Box((4.0,) * dim)
        simulation = md.Simulation(
            md.State(pos, vel, box), SpringDashpot(0.0, 0.0), search="linked", dt=1 / 64, backend=backend
        )
        simulation.run(steps, phases=False)
        end = simulation.state.by_id()
        assert np.array_equal(end.pos, (pos + vel * steps / 64) % 4)
        assert np.array_equal(end.vel, vel)

    def test_an_ideal_gas_flies_through_itself(self, backend):
        simulation = md.Simulation(
            pair(3, 1.5, 1.0), SpringDashpot(0.0, 0.0), search="linked", dt=0.25, backend=backend
        )
        simulation.run(6)
        assert simulation.state.by_id().pos[:, 0].tolist() == [3.25, 1.75]

    @pytest.mark.quick
    def test_steepest_descent_takes_an_overlap_out_and_leaves_velocities(self, backend):
        start = pair(3, 0.9, 0.5)
        simulation = md.Simulation(
            start, LAWS["elastic"], search="linked", integrator="steepest_descent", dt=2e-3, backend=backend
        )
        simulation.run(300)
        end = simulation.state.by_id()
        assert end.pos[1, 0] - end.pos[0, 0] == pytest.approx(1, abs=1e-4)
        assert np.array_equal(end.vel, start.vel)


def gas(dim: int) -> md.State:
    """A gas of zero total momentum in two or three dimensions."""
    if dim == 3:
        return md.scenes.benchmark_gas(1000, 0.2, seed=1)
    sites, _ = md.scenes.lattice_sites(box := md.Box((30.0, 26.0)), 400)
    vel = md.scenes.maxwell_velocities(len(sites), 2, 16.0, np.random.default_rng(1))
    return md.State(sites, vel, box)


def kinds_of_conservation() -> list:
    """Search, dim and precision: three searches, and one in float32, and one of the others in full."""
    kept = [(search, 3, "float64") for search in tiers.BY_DEFAULT]
    others = sorted(set(md.search.SEARCHES) - {*tiers.BY_DEFAULT})
    return [
        *kept,
        ("linked", 3, "float32"),
        *(tiers.full(search, 3, "float64") for search in others),
        *(
            tiers.nightly(s, d, p)
            for s, d, p in product(sorted(md.search.SEARCHES), (2, 3), PRECISIONS)
            if d == 2 or p == "float32"
        ),
    ]


class TestConservation:
    @pytest.mark.parametrize(("search", "dim", "precision"), kinds_of_conservation())
    def test_momentum_stays_zero_to_rounding(self, search, dim, precision, backend):
        limit = 1e-12 if precision == "float64" else 1e-6
        simulation = md.Simulation(
            gas(dim), md.scenes.BENCHMARK_LAW, search=search, precision=precision, backend=backend
        )
        simulation.run(200, phases=False)
        end = simulation.state
        magnitudes = np.linalg.norm(end.vel.astype(float), axis=1).sum()
        assert np.linalg.norm(md.observe.momentum(end)) < limit * magnitudes
        assert md.observe.temperature(end) < 15.5

    @pytest.mark.parametrize(
        ("search", "dim"),
        tiers.by_default(
            [("linked", 3), *map(tiers.full, ("linked", "reflexive"), (2, 3)), *ELASTIC_BY_NIGHT],
            lambda *case: case == ("linked", 3),
        ),
    )
    def test_energy_of_an_elastic_gas_drifts_by_less_than_1e_4_in_1000_steps(self, search, dim, backend):
        law = LAWS["elastic"]
        simulation = md.Simulation(gas(dim), law, search=search, backend=backend)
        energies, stored = [], []
        for _ in range(11):
            state = simulation.state
            stored.append(md.observe.contact_energy(state, simulation.pairs(), law))
            energies.append(md.observe.kinetic_energy(state) + stored[-1])
            simulation.run(100, phases=False)
        assert max(stored) > 0.01 * energies[0]
        assert np.abs(np.array(energies) / energies[0] - 1).max() < 1e-4

    @pytest.mark.quick
    def test_a_dissipative_gas_only_loses_energy(self, backend):
        simulation = md.Simulation(gas(3), md.scenes.BENCHMARK_LAW, search="linked", backend=backend)
        energies = []
        for _ in range(6):
            state = simulation.state
            stored = md.observe.contact_energy(state, simulation.pairs(), md.scenes.BENCHMARK_LAW)
            energies.append(md.observe.kinetic_energy(state) + stored)
            simulation.run(50)
        assert (np.diff(energies) < 0).all()
