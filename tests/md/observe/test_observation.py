"""Observables equal those that numpy computes from the state on the host, pair by pair."""

import math
from itertools import cycle

import numpy as np
import pytest

import md
from md.observe import Profile, look
from tests import tiers
from tests.md.laws.alignment import Alignment
from tests.md.search.test_contract import plain_pairs, separations
from tests.md.simulation.test_simulation import same_run

LAW = md.laws.SpringDashpot(stiffness=500.0, damping=2.0)  # soft, for deep overlaps
DT = md.scenes.BENCHMARK_DT
CASES = [  # dim, precision, periodic
    (3, "float64", (True, True, True)),
    (2, "float32", (False, False)),
    (3, "float32", (True, False, True)),
    (2, "float64", (True, False)),
]
SEARCHES = sorted(md.search.SEARCHES)
every_search = pytest.mark.parametrize("search", tiers.searches(SEARCHES))


def crowd(dim: int, periodic: tuple[bool, ...], n: int = 150) -> md.State:
    """Make random, overlapping particles in a small box, away from walls."""
    box = md.Box((6.3, 7.9, 5.1)[:dim], periodic)
    generator = np.random.default_rng(5)
    margin = np.where(box.periodic, 0, 0.2)
    pos = margin + generator.random((n, dim)) * (np.array(box.lengths) - 2 * margin)
    return md.State(pos, generator.normal(1.0, 4.0, (n, dim)), box, id=generator.permutation(n))


def simulated(state, backend, law=LAW, **options) -> md.Simulation:
    walls = None if all(state.box.periodic) else md.Walls()
    options = {"walls": walls, "allow_overlap": True, "dt": DT} | options
    return md.Simulation(state, law, backend=backend, **options)


def new_contacts(simulation: md.Simulation) -> int:
    """Take a step, and count the pairs that are new after it."""
    before = {*map(tuple, simulation.pairs().tolist())}
    simulation.run(1)
    return len({*map(tuple, simulation.pairs().tolist())} - before)


def plain(state: md.State, law) -> dict:
    """Compute observables from positions and velocities by their definitions."""
    state = md.State(state.pos.astype(float), state.vel.astype(float), state.box, state.id)
    n, dim = state.pos.shape
    r = np.linalg.norm(separations(state), axis=2)[np.triu_indices(n, 1)]
    v2 = (state.vel**2).sum(axis=1)
    about = state.vel - state.vel.mean(axis=0)
    return {
        "kinetic_energy_per_particle": v2.mean() / 2,
        "contact_energy_per_particle": (law.stiffness * (1 - r[r < 1]) ** 2 / 2).sum() / n,
        "temperature": v2.mean() / dim,
        "temperature_about_local_mean": (about**2).sum(axis=1).mean() / dim,
        "momentum": state.vel.sum(axis=0),
        "mean_speed": np.sqrt(v2).mean(),
        "touching_pairs": np.count_nonzero(r < 1),
    }


@pytest.mark.parametrize(
    ("search", "dim", "precision", "periodic"),
    [
        *((search, 3, "float64", (True, False, True)) for search in tiers.BY_DEFAULT),
        *(tiers.full("linked", *case) for case in CASES[2:]),
        *(tiers.nightly(search, *case) for search, case in zip(SEARCHES, cycle(CASES), strict=False)),
    ],
)
def test_a_look_equals_numpy(search, dim, precision, periodic, backend):
    simulation = simulated(crowd(dim, periodic), backend, search=search, precision=precision)
    total = 0
    for _ in range(20):
        new = new_contacts(simulation)
        seen, state = look(simulation), simulation.state
        assert seen.contacts_begun == new
        total += new
    assert total > 0
    expected = plain(state, LAW)
    assert seen.touching_pairs == expected["touching_pairs"] == len(plain_pairs(state)) > 100
    tolerance = 1e-12 if precision == "float64" else 1e-5
    for name, value in expected.items():
        assert np.allclose(getattr(seen, name), value, rtol=tolerance, atol=tolerance * 100), name
    repeats = backend in md.search.SEARCHES[search].capabilities.bitwise_on  # else rounding differs
    summed = 1e-12 if repeats else tolerance
    assert seen.kinetic_energy_per_particle == pytest.approx(md.observe.kinetic_energy(state), rel=summed)
    stored = md.observe.contact_energy(state, simulation.pairs(), LAW)
    assert seen.contact_energy_per_particle == pytest.approx(stored, rel=tolerance)
    assert (seen.step, seen.time) == (20, 20 * DT)
    n = len(state)
    assert seen.collision_rate_per_particle == pytest.approx(2 * new / n / DT, rel=1e-6)
    assert seen.collision_rate_by_touching == pytest.approx(2 * seen.touching_pairs / n / LAW.contact_time)
    path = seen.mean_speed / seen.collision_rate_per_particle if new else math.inf
    assert seen.mean_free_path_d == pytest.approx(path)


class TestFewParticles:
    @pytest.mark.parametrize(
        ("search", "dim"),
        tiers.by_default(
            [*((search, 3) for search in SEARCHES), ("linked", 2)],
            lambda search, _: search in tiers.BY_DEFAULT,
        ),
    )
    def test_none(self, search, dim, backend):
        nothing = np.empty((0, dim))
        simulation = simulated(md.State(nothing, nothing, md.Box((5,) * dim)), backend, search=search)
        observer = md.Observer(1, Profile(0, 3))
        simulation.run(2, reporters=[observer])
        seen = observer.observations[-1]
        assert seen.momentum.tolist() == [0] * dim
        assert (seen.touching_pairs, seen.contacts_begun) == (0, 0)
        assert seen.profiles[0].particles.tolist() == [0, 0, 0]
        assert np.isnan(seen.profiles[0].temperature).all()
        means = (seen.temperature, seen.mean_speed, seen.contact_energy_per_particle, seen.mean_free_path_d)
        assert np.isnan(means).all()
        assert len(observer.table()["step"]) == 3

    @every_search
    def test_one(self, search, backend):
        state = md.State([[1.0, 2.0, 3.0]], [[3.0, 0.0, 4.0]], md.Box((5,) * 3))
        simulation = simulated(state, backend, search=search)
        simulation.run(1)
        seen = look(simulation)
        assert seen.kinetic_energy_per_particle == pytest.approx(12.5)
        assert seen.mean_speed == pytest.approx(5)
        assert seen.temperature_about_local_mean == 0
        assert seen.collision_rate_per_particle == 0
        assert seen.mean_free_path_d == math.inf
        assert seen.contact_energy_per_particle == 0


class TestLaws:
    def test_an_ideal_gas_has_contacts_but_no_contact_time(self, backend):
        simulation = simulated(crowd(3, (True,) * 3), backend, md.laws.SpringDashpot(0.0, 0.0))
        expected, found = [], []
        for _ in range(20):
            expected.append(new_contacts(simulation))
            seen = look(simulation)
            found.append(seen.contacts_begun)
        assert found == expected
        assert sum(found) > 0
        assert seen.contact_energy_per_particle == 0
        assert math.isnan(seen.collision_rate_by_touching)

    def test_a_contact_that_never_ends_has_no_rate(self, backend):
        law = md.laws.SpringDashpot(stiffness=1.0, damping=50.0)
        with pytest.warns(md.OverdampedContact):
            simulation = simulated(crowd(3, (True,) * 3), backend, law)
        assert math.isnan(look(simulation).collision_rate_by_touching)

    @pytest.mark.parametrize("dim", [tiers.nightly(2), 3])
    def test_friction_has_the_energy_of_the_spring(self, dim, backend):
        law = md.laws.FrictionalSpringDashpot(500.0, 2.0, friction=0.3, tangential_damping=1.0)
        simulation = simulated(crowd(dim, (True,) * dim), backend, law, search="naive")
        simulation.run(3)
        for name, value in plain(simulation.state, law).items():
            assert np.allclose(getattr(look(simulation), name), value, rtol=1e-12), name

    def test_another_diameter(self, backend):
        law = md.laws.SpringDashpot(stiffness=100.0, damping=0.0, diameter=1.5)
        state = md.State([[1, 1, 1], [2.2, 1, 1]], np.zeros((2, 3)), md.Box((6, 6, 6)))
        seen = look(simulated(state, backend, law))
        assert seen.touching_pairs == 1
        assert seen.contact_energy_per_particle == pytest.approx(law.potential([1.2])[0] / 2)

    def test_a_law_without_a_potential_has_no_energy(self, backend):
        law = Alignment(rate=1.0, push=1.0)
        assert not hasattr(law, "potential")
        simulation = simulated(crowd(3, (True,) * 3), backend, law, search="naive")
        new = new_contacts(simulation)
        seen = look(simulation)
        assert math.isnan(seen.contact_energy_per_particle)
        assert math.isnan(seen.collision_rate_by_touching)
        assert (seen.contacts_begun, seen.touching_pairs) == (new, len(simulation.pairs()))


class TestObserver:
    @every_search
    @pytest.mark.parametrize("fused", [False, True])
    def test_changes_nothing(self, search, fused, backend):
        if fused and not md.search.SEARCHES[search].capabilities.fusable:
            pytest.skip(f"{search} as it is by name cannot be fused")
        runs = [
            simulated(
                md.scenes.benchmark_gas(216, 0.3),
                backend,
                md.scenes.BENCHMARK_LAW,
                search=search,
                fused=fused,
            )
            for _ in range(2)
        ]
        observer = md.Observer(7, [Profile(2, 5)], cells=2)
        runs[0].run(60)
        runs[1].run(60, reporters=[observer])
        assert len(observer.observations) == 9
        one, other = (run.state.by_id() for run in runs)
        has_lists = search in ("verlet", "verlet_tree")
        if backend == "cuda" and has_lists and fused:  # they may be made at other steps then
            np.testing.assert_allclose(one.pos, other.pos, atol=1e-9)
            np.testing.assert_allclose(one.vel, other.vel, atol=1e-6)
        else:
            assert same_run(runs[0].state, runs[1].state, backend, search)

    @pytest.mark.quick
    def test_makes_tidy_tables(self, backend):
        observer = md.Observer(20, [Profile(0, 4), Profile(2, 6)])
        assert observer.table() == observer.profile_table() == {}
        simulation = simulated(md.scenes.benchmark_gas(125, 0.2), backend)
        simulation.run(30, reporters=[observer])
        simulation.run(30, reporters=[observer])
        table, profiles = observer.table(), observer.profile_table()
        assert table["step"].tolist() == [0, 20, 40, 60]
        assert np.allclose(table["time"], table["step"] * DT)
        assert {len(column) for column in table.values()} == {4}
        assert table["touching_pairs"].dtype.kind == "i"
        last = observer.observations[-1]
        assert table["momentum_z"][-1] == last.momentum[2]
        assert table["temperature"][-1] == last.temperature
        assert {len(column) for column in profiles.values()} == {4 * 10}
        assert profiles["axis"][:10].tolist() == [0] * 4 + [2] * 6
        assert profiles["slice"][:10].tolist() == [*range(4), *range(6)]
        assert profiles["velocity_y"][-6:].tolist() == last.profiles[1].velocity[:, 1].tolist()
        assert np.allclose(
            profiles["filling_fraction"], profiles["number_density_per_d3"] * math.pi / 6, rtol=1e-12
        )

    def test_has_the_columns_of_two_dimensions(self, backend):
        observer = md.Observer(1, Profile(1, 3))
        simulated(crowd(2, (True, True), n=20), backend).run(1, reporters=[observer])
        assert "momentum_y" in observer.table()
        assert "momentum_z" not in observer.table()
        assert {"number_density_per_d2", "velocity_y"} <= set(observer.profile_table())
