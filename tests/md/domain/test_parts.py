"""Each rank makes a part of a scene, or gives a part of the particles: the gas is that of the whole."""

from itertools import chain

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

import md
from md.domain import division
from md.domain.communicator import in_turn
from tests.md.domain.test_divided import N, course, farthest, gas, simulation


def test_each_rank_may_give_a_part_of_the_particles():
    state = gas()
    right = course(simulation(state), 80)

    def work(ranks):
        mine = np.arange(N) % 3 == ranks.rank
        part = md.State(state.pos[mine], state.vel[mine], state.box, np.flatnonzero(mine))
        return course(simulation(part, ranks, division=md.Division(is_part=True)), 80)

    for found in in_turn(3, work):
        assert farthest(state, found, right) < 1e-9
        assert np.array_equal(found[1], right[1])


@given(st.lists(st.lists(st.integers(0, 12) | st.integers(2**31 - 4, 2**31 - 1)), min_size=1, max_size=4))
def test_ids_of_all_parts_are_counted_once(parts):
    arrays, every = [np.array(one, np.int32) for one in parts], [*chain(*parts)]
    found = in_turn(len(parts), lambda ranks: division._count_ids(ranks, arrays[ranks.rank]))
    assert found == [(len(every), len(set(every)))] * len(parts)
    assert [one.tolist() for one in arrays] == parts  # they are sorted in a copy


def test_a_scene_is_made_in_parts():
    whole = md.scenes.benchmark_gas(N, 0.2, seed=3)
    right = course(simulation(whole), 40)
    recipe = md.scenes.benchmark_gas(N, 0.2, seed=3)
    parts = [recipe.part(rank, 3) for rank in range(3)]
    for name in ("pos", "vel", "id"):
        assert np.array_equal(np.concatenate([getattr(one, name) for one in parts]), getattr(whole, name))
    assert "pos" not in vars(recipe)

    def work(ranks):
        part = md.scenes.benchmark_gas(N, 0.2, seed=3).part(ranks.rank, ranks.size)
        return course(simulation(part, ranks, division=md.Division(is_part=True)), 40)

    for found in in_turn(3, work):
        assert farthest(whole, found, right) < 1e-9
    with pytest.raises(ValueError, match="rank = 3"):
        recipe.part(3, 3)


def test_a_flock_is_made_in_parts():
    options = {"law": md.laws.Boids(), "integrator": "flight", "dt": 0.05, "search": "linked", "fused": True}
    box, scene = md.Box((30.0, 20.0, 20.0)), {"clusters": 5, "cluster_radius": 4.0, "seed": 1}
    whole = md.scenes.flock(1500, box, **scene)
    right = course(simulation(whole, **options), 40)

    def work(ranks):
        part = md.scenes.flock(1500, box, part=(ranks.rank, ranks.size), **scene)
        return course(simulation(part, ranks, division=md.Division(is_part=True), **options), 40)

    for found in in_turn(3, work):
        assert np.array_equal(found[1], right[1])
        # Neighbours are summed in another order, and headings diverge.
        assert farthest(whole, found, right) < 1e-6


def test_a_gas_of_copies_is_made_in_parts():
    given = 0.2, md.scenes.box_for(8 * 250, 0.2), 2
    whole = md.preparation.tiled_gas(*given, backend="cpu")
    right = course(simulation(whole), 40)

    def work(ranks):
        part = md.preparation.tiled_gas(*given, backend="cpu", part=(ranks.rank, ranks.size))
        return course(simulation(part, ranks, division=md.Division(is_part=True)), 40)

    for found in in_turn(3, work):
        assert np.array_equal(found[1], right[1])
        assert farthest(whole, found, right) < 1e-9
