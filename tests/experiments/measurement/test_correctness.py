"""The check of results before a time is taken."""

import numpy as np
import pytest
from scipy.spatial import cKDTree

import md
import sfc
from experiments.measurement.correctness import (
    SAMPLE_OF_KEYS,
    WrongResultError,
    check_decoded,
    check_error,
    check_flight,
    check_forces,
    check_forces_over_largest,
    check_keys,
    check_order,
    check_pairs,
    check_same_curve,
    check_states,
    check_temperature,
)
from experiments.measurement.profiler_target import Job, gas, ordered

JOB = Job(512, 0.2, "linked", "float64", "cpu", 0, ("shuffled", "lattice", "hilbert"))


def test_forces_that_are_wrong_are_not_timed():
    simulation = ordered(JOB, gas(JOB), "shuffled")
    right = simulation.forces()
    assert np.abs(right).max() > 0
    check_forces(simulation, right, "float64")
    wrong = right.copy()
    wrong[np.abs(right).max(axis=1).argmax()] *= 1 + 1e-6
    with pytest.raises(
        ValueError,
        match=r"forces in float64 differ from those of another search by .*allowed: up to 1e-09; not",
    ):
        check_forces(simulation, wrong, "float64")
    check_forces(simulation, wrong, "float32")
    with pytest.raises(ValueError, match=r"expected of shape \(3, 2\); allowed: \(512, 3\)"):
        check_forces(simulation, np.zeros((3, 2)), "float32")
    with pytest.raises(ValueError, match="unknown precision 'float16'; allowed: one of float32, float64"):
        check_forces(simulation, right, "float16")
    with pytest.raises(ValueError, match="by nan of their root"):
        check_forces(simulation, np.full_like(right, np.nan), "float32")


def test_an_error_within_its_limit_is_returned_and_a_larger_one_raises():
    assert check_error("forces differ", 0.5, 0.5) == 0.5
    with pytest.raises(
        WrongResultError, match=r"forces differ by 0.501 d; allowed: up to 0.5; not recorded. Stop$"
    ):
        check_error("forces differ", 0.501, 0.5, " d", "Stop")
    with pytest.raises(WrongResultError, match="by nan; allowed"):
        check_error("forces differ", float("nan"), 0.5)


def test_forces_over_the_largest_one():
    simulation = ordered(JOB, gas(JOB), "shuffled")
    right = simulation.forces()
    assert check_forces_over_largest("linked", simulation, right, "float64") == 0
    with pytest.raises(WrongResultError, match=r"the forces of 'linked' in float64 differ .* of the largest"):
        check_forces_over_largest("linked", simulation, 1.001 * right, "float64")


def test_temperatures_that_differ_are_not_timed():
    assert check_temperature("row", 1.0, 1.0, "float64") == 0
    with pytest.raises(
        WrongResultError, match=r"temperature 1.01 in float32 under ordering 'row' differs from 1 by 0.01"
    ):
        check_temperature("row", 1.01, 1.0, "float32")


def test_touching_pairs_are_those_of_another_search(monkeypatch):
    simulation = ordered(JOB, gas(JOB), "shuffled")
    assert check_pairs(simulation, "linked", "coherent", "float64") == len(simulation.pairs()) > 0
    monkeypatch.setattr(simulation, "pairs", lambda: np.zeros((0, 2), np.int64))
    with pytest.raises(WrongResultError, match="linked finds other pairs than coherent; not recorded"):
        check_pairs(simulation, "linked", "coherent", "float64")


def test_states_are_compared_by_id_across_periodic_sides():
    box = md.Box((4.0, 4.0, 4.0))
    ours = md.State([[0.0, 1, 1], [2, 2, 2]], [[1.0, 0, 0], [0, 1, 0]], box)
    theirs = md.State([[2.0, 2, 2], [4 - 1e-12, 1, 1]], [[0.0, 1, 0], [1, 0, 0]], box, [1, 0])
    check_states("other", theirs, ours)
    with pytest.raises(WrongResultError, match=r"positions of other differ from ours by 0.1 d"):
        check_states("other", md.State(ours.pos + np.array([0.1, 0, 0]), ours.vel, box), ours)
    with pytest.raises(WrongResultError, match=r"kinetic energy of other differs from ours by 0.21"):
        check_states("other", md.State(ours.pos, 1.1 * ours.vel, box), ours)


@pytest.mark.parametrize("open_", [False, True])
def test_a_box_length_is_a_difference_on_an_axis_that_is_not_periodic(open_):
    box = md.Box((4.0, 4.0, 4.0), (True, True, False), (False, False, open_))
    ours, theirs = (md.State([[1.0, 1, z]], [[1.0, 0, 0]], box) for z in (0.0, 4.0))
    with pytest.raises(WrongResultError, match=r"positions of other differ from ours by 4 d"):
        check_states("other", theirs, ours)
    with pytest.raises(WrongResultError, match="by 1 of 1 boids"):
        check_flight("tiles", theirs, ours, "float64")


def test_ranks_that_fall_are_refused():
    check_order("row", np.array([0, 1, 1, 2]), "float64")
    with pytest.raises(
        WrongResultError, match=r"the memory order under 'row' differs .* by 0.333 of the particles"
    ):
        check_order("row", np.array([0, 2, 1, 3]), "float32")


def test_flocks_are_compared_by_id_and_a_few_boids_may_differ_in_float32():
    state = md.scenes.flock(40_000, seed=1)
    order = np.random.default_rng(0).permutation(40_000)
    assert check_flight("tiles", state.take(order), state, "float64") == 0
    vel = state.vel.copy()
    vel[:4] += 0.01
    few = md.State(state.pos, vel, state.box, state.id)
    assert check_flight("tiles", few, state, "float32") == 1e-4
    with pytest.raises(WrongResultError, match=r"tiles in float64 differs .* than 1e-09 by 4 of 40000 boids"):
        check_flight("tiles", few, state, "float64")
    vel[4] -= 0.01
    with pytest.raises(WrongResultError, match=r"by 5 of 40000 boids; allowed: up to 4; not recorded"):
        check_flight("tiles", md.State(state.pos, vel, state.box, state.id), state, "float32")


def test_a_search_that_loses_one_far_neighbour_of_every_boid_is_refused_in_float32():
    state = md.scenes.flock(4000, seed=1)
    rounding = np.random.default_rng(2).uniform(-3e-6, 3e-6, state.vel.shape)
    assert (
        check_flight(
            "tiles", md.State(state.pos, state.vel + rounding, state.box, state.id), state, "float32"
        )
        == 0
    )
    law = md.laws.Boids()
    tree = cKDTree(state.pos, boxsize=state.box.lengths)
    pairs = tree.query_pairs(law.cutoff, output_type="ndarray")
    pairs = np.concatenate([pairs, pairs[:, ::-1]])
    apart = state.pos[pairs[:, 1]] - state.pos[pairs[:, 0]]
    apart -= np.round(apart / state.box.lengths) * state.box.lengths
    turn = state.vel[pairs[:, 1]] - state.vel[pairs[:, 0]]
    number = np.bincount(pairs[:, 0], minlength=4000)
    far = np.linalg.norm(apart, axis=1) > law.separation_radius
    lost = np.flatnonzero(far)[np.unique(pairs[far, 0], return_index=True)[1]]  # the first of each boid

    def increments(kept: np.ndarray) -> np.ndarray:
        count = np.maximum(np.bincount(pairs[kept, 0], minlength=4000), 1)[:, None]
        sums = [
            np.column_stack([np.bincount(pairs[kept, 0], column, 4000) for column in vectors[kept].T]) / count
            for vectors in (apart, turn)
        ]
        return law.cohesion * sums[0] + law.alignment * sums[1]

    every = np.ones(len(pairs), bool)
    fewer = every.copy()
    fewer[lost] = False
    assert number.min() > 10
    wrong = state.vel + increments(fewer) - increments(every)
    with pytest.raises(WrongResultError, match=r"tiles in float32 differs .* than 2e-05 by .* of 4000 boids"):
        check_flight("tiles", md.State(state.pos, wrong, state.box, state.id), state, "float32")


def test_the_tolerance_of_a_crowded_flock_grows_with_its_neighbours():
    state = md.scenes.flock(2000, seed=1)
    wrong = md.State(state.pos, state.vel + 5e-5, state.box, state.id)
    assert check_flight("tiles", wrong, state, "float32", neighbours=480.0) == 0
    with pytest.raises(WrongResultError, match="than 2e-05 by 2e"):
        check_flight("tiles", wrong, state, "float32", neighbours=30.0)


@pytest.mark.parametrize(
    ("name", "dim", "order"), [("hilbert", 2, 32), ("butz", 3, 21), ("peano", 3, 13), ("gray", 4, 1)]
)
def test_keys_are_those_of_a_walk_through_the_automaton(name, dim, order):
    curve, many = sfc.curve(name, dim), SAMPLE_OF_KEYS + 1001
    cells = np.random.default_rng(0).integers(0, curve.side(order), (many, dim), np.uint64)
    keys = curve.encode(cells, order)
    check_keys(curve, order, cells, keys)
    check_keys(curve, order, cells[:0], keys[:0])
    for row in (0, many - 1):
        wrong = keys.copy()
        wrong[row] ^= np.uint64(1)
        with pytest.raises(
            WrongResultError, match=f"keys of {name} in {dim}D .* by 1 of {SAMPLE_OF_KEYS} keys"
        ):
            check_keys(curve, order, cells, wrong)
    with pytest.raises(ValueError, match=r"keys of shape \(3,\)"):
        check_keys(curve, order, cells, keys[:3])


def test_cells_that_are_decoded_are_all_compared():
    cells = np.random.default_rng(0).integers(0, 9, (70000, 3))
    check_decoded("hilbert", cells, cells.astype(np.uint8))
    wrong = cells.copy()
    wrong[69998:, 1] += 1
    with pytest.raises(WrongResultError, match=r"cells that hilbert decodes differ .* by 2 of 70000 cells"):
        check_decoded("hilbert", cells, wrong)


@pytest.mark.parametrize("order", [3, 4])
def test_a_curve_is_known_in_every_orientation(order):
    curve = sfc.curve("hilbert", 2)
    cells = np.random.default_rng(0).integers(0, 2**order, (500, 2))
    last = 2**order - 1
    for turned in (cells, cells[:, ::-1], last - cells, np.column_stack([cells[:, 1], last - cells[:, 0]])):
        check_same_curve("a package", curve, order, cells, curve.encode(turned, order))
    for name in ("morton", "moore"):
        with pytest.raises(WrongResultError, match="keys of a package differ from those of hilbert in 2D"):
            check_same_curve("a package", curve, order, cells, sfc.curve(name, 2).encode(cells, order))


def test_keys_are_walked_by_tables_alone():
    cells = np.zeros((3, 9), np.int64)
    with pytest.raises(TypeError, match=r"curve = .* of class BitwiseCurve; allowed: an sfc\.Curve"):
        check_keys(sfc.curve("hilbert", 9), 2, cells, np.zeros(3, np.uint64))
