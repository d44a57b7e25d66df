"""One contract for every law of the registry.

Of forces: opposite forces, a cutoff, a potential, no energy gained. Of increments of velocity: none without a
neighbour, the same under every search.
"""

import json

import numpy as np
import pytest

import md
from md.laws import LAWS
from md.laws.pair import gives_increments
from md.simulation.config import from_plain, to_plain
from tests import tiers

PARAMETERS = {
    "spring_dashpot": {"stiffness": 1e3, "damping": 4.0},
    "frictional_spring_dashpot": {
        "stiffness": 1e3, "damping": 4.0, "friction": 0.3, "tangential_damping": 2.0,
    },
    "boids": {
        "cohesion_radius": 1.0, "separation_radius": 0.7, "alignment_radius": 0.9, "cohesion": 0.5,
        "separation": 0.25, "alignment": 0.5,
    },
}  # fmt: skip
INCREMENTS = [name for name, kind in LAWS.items() if gives_increments(kind(**PARAMETERS[name]))]
FORCES = [name for name in LAWS if name not in INCREMENTS]
SEARCHES = sorted(md.search.SEARCHES)
IN_EVERY_SEARCH = "spring_dashpot"  # by default; the others in some
DIMS = pytest.mark.parametrize("dim", [tiers.full(2), 3])


def law_of(name: str, **options) -> md.laws.PairLaw:
    return LAWS[name](**PARAMETERS[name] | options)


def forces(law, r: float, vel, dim: int, backend: str, search: str = "linked") -> np.ndarray:
    """(2, dim) forces on two particles at a distance along x, with given relative velocity."""
    pos, rows = np.full((2, dim), 3.0), np.zeros((2, dim))
    pos[1, 0] += r
    rows[1, : len(vel)] = vel
    state = md.State(pos, rows, md.Box((8.0,) * dim))
    integrator = "flight" if gives_increments(law) else "velocity_verlet"
    return md.Simulation(state, law, search, integrator, dt=1e-4, backend=backend).forces()


def test_every_law_of_the_registry_is_tested_here():
    assert set(PARAMETERS) == set(LAWS)


@pytest.mark.quick
@pytest.mark.parametrize(
    ("name", "searches"),
    [
        (IN_EVERY_SEARCH, SEARCHES),
        *((name, ["linked", "verlet"]) for name in INCREMENTS),
        *((name, ["linked"]) for name in FORCES if name != IN_EVERY_SEARCH),
        *(tiers.full(name, SEARCHES) for name in LAWS if name != IN_EVERY_SEARCH),
    ],
)
def test_every_law_gives_the_same_force_under_every_search(name, searches, backend):
    expected = forces(law_of(name), 0.65, (-1.0, 0.5), 3, backend, "naive")
    assert np.abs(expected).max() > 0.1
    for search in searches:
        found = forces(law_of(name), 0.65, (-1.0, 0.5), 3, backend, search)
        np.testing.assert_allclose(found, expected, rtol=1e-12)


@pytest.mark.quick
@pytest.mark.parametrize("name", LAWS)
class TestEveryLaw:
    def test_is_zero_from_the_cutoff_on(self, name, backend):
        law = law_of(name)
        for r in (law.cutoff, 1.001 * law.cutoff):
            assert not forces(law, r, (-1.0, 1.0), 3, backend).any()

    def test_is_compared_by_its_parameters_and_made_again_from_plain_data(self, name):
        law, first = law_of(name), next(iter(PARAMETERS[name]))
        assert law == law_of(name) != law_of(name, **{first: 2e3})
        assert from_plain("law", json.loads(json.dumps(to_plain("law", law)))) == law
        with pytest.raises(AttributeError):
            setattr(law, first, 1.0)


@pytest.mark.quick
@pytest.mark.parametrize("name", INCREMENTS)
class TestEveryLawOfIncrements:
    def test_has_no_energy_and_no_contact(self, name):
        law = law_of(name)
        assert not any(hasattr(law, word) for word in ("potential", "closest_start", "contact_time"))

    def test_gives_finite_increments_to_coincident_particles(self, name, backend):
        assert np.isfinite(forces(law_of(name), 0.0, (-1.0, 1.0), 3, backend)).all()


@pytest.mark.quick
@pytest.mark.parametrize("name", FORCES)
class TestEveryLawOfForces:
    @DIMS
    @pytest.mark.parametrize("vel", [(0.0, 0.0), (-1.0, 0.5), (2.0, -3.0)])
    def test_gives_the_two_particles_opposite_forces(self, name, dim, vel, backend):
        found = forces(law_of(name), 0.9, vel, dim, backend)
        assert np.abs(found).max() > 10
        assert np.array_equal(found[0], -found[1])

    @DIMS
    def test_repels_at_rest(self, name, dim, backend):
        assert forces(law_of(name), 0.9, (), dim, backend)[1, 0] == pytest.approx(1e3 * (1 - 0.9))

    def test_has_a_potential_whose_slope_is_the_force_at_rest(self, name, backend):
        law, step = law_of(name), 1e-6
        for r in (0.6, 0.8, 0.95):
            low, high = law.potential(np.array([r - step, r + step]))
            slope = (high - low) / (2 * step)
            assert forces(law, r, (), 3, backend)[1, 0] == pytest.approx(-slope, rel=1e-6)
        assert law.potential(np.array([law.cutoff])) == 0
        assert 0 < law.closest_start < law.cutoff

    def test_takes_energy_from_a_pair_and_gives_none(self, name, backend):
        for vel in ((-1.0, 0.0), (1.0, 0.0), (0.0, 2.0), (-0.5, -1.0)):
            damping = forces(law_of(name), 0.9, vel, 3, backend) - forces(law_of(name), 0.9, (), 3, backend)
            assert damping[1, :2] @ np.array(vel) <= 0

    def test_has_a_contact_time(self, name):
        assert 0 < law_of(name).contact_time < np.inf
