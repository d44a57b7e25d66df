"""Long runs of a divided gas, dilute and dense, ideal, elastic and damped; none of its particles is lost."""

import itertools

import numpy as np
import pytest

import md
from md.domain.communicator import in_turn
from tests.md.domain.test_divided import check, course, gas, simulation
from tests.tiers import by_default, full

LAWS = {
    "ideal": md.laws.SpringDashpot(stiffness=1e-9, damping=0.0),
    "elastic": md.laws.SpringDashpot(stiffness=1e4, damping=0.0),
    "damped": md.laws.SpringDashpot(stiffness=1e4, damping=20.0),
}
FILLINGS = (0.05, 0.2, 0.4)
CASES = by_default(
    itertools.product(LAWS, FILLINGS), lambda law, filling: (law, filling) == ("elastic", 0.4), full
)
SHORT = 1000  # particles


@pytest.mark.parametrize(("law", "filling"), CASES)
def test_a_thousand_steps_on_ranks_are_those_of_one_to_the_last_bit(law, filling):
    state, options = gas(SHORT, filling=filling), {"law": LAWS[law], "deterministic": True}
    right = course(simulation(state, **options), 1000, every=100)
    for found in in_turn(3, lambda ranks: course(simulation(state, ranks, **options), 1000, every=100)):
        for pairs, expected in zip(found[0], right[0], strict=True):
            assert np.array_equal(pairs, expected)
        for one, expected in zip(found[1:], right[1:], strict=True):
            assert np.array_equal(one, expected)


@pytest.mark.full
@pytest.mark.parametrize("search", ["linked", "coherent", "verlet"])
@pytest.mark.parametrize("law", LAWS)
def test_a_thousand_steps_of_other_searches(law, search):
    check(gas(SHORT, filling=0.2), 2, steps=1000, every=100, tolerance=1e-6, law=LAWS[law], search=search)


@pytest.mark.nightly
def test_no_particle_is_lost_or_doubled_in_a_million_steps():
    n = 600
    state = gas(n, drift=(5.0, -3.0, 8.0), filling=0.1)

    def work(ranks):
        sim = simulation(state, ranks, law=LAWS["elastic"], search=md.search.Verlet(skin=0.3))
        moved = set()
        for _ in range(100):
            sim.run(10_000, phases=False)
            own = sim.system.particles.id[: sim.system.n_owned]
            moved.update(own.tolist())
            ids = np.concatenate(ranks.all_of(own.copy()))
            assert np.array_equal(np.sort(ids), np.arange(n))
        return sim.step, len(moved)

    assert in_turn(3, work) == 3 * [(1_000_000, n)]
