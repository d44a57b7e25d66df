"""Advice in a program, its candidate orders, and how long one lasts."""

import itertools
import math
from types import SimpleNamespace

import numpy as np
import pandas as pd
import pytest
import scipy.sparse

import md
from experiments.advice import how_often, times
from experiments.advice.candidates import first_touch, frequency, orders_of
from experiments.advice.how_often import AGES, lasting
from experiments.advice.question import question_of
from experiments.advice.times import MOST_COPIES, candidates, rounds_of
from experiments.advice.uses import CELLS, CUTOFF, MATRIX, NEIGHBOURS, TRACE, Use
from experiments.advice.verdict import CANNOT_TELL, REORDER, judge
from experiments.advise import advise
from experiments.core.settings import UsageError
from experiments.files import Data
from experiments.measurement.correctness import WrongResultError

POINTS = np.random.default_rng(0).random((1500, 3)) * 10


def data_of(**parts) -> Data:
    return Data("points.npy", parts.pop("kind", "points"), parts.pop("n", len(POINTS)), **parts)


def names_of(use, learnt=None) -> list[str]:
    return [name for name, _, _ in orders_of(use, 0, learnt)]


class TestCandidates:
    def test_are_those_of_the_kind_of_data(self):
        of_points = ["given", "shuffled", "row", "hilbert", "morton", "str"]
        assert names_of(Use(CUTOFF, "numpy", 1500, points=POINTS, reach=1.0)) == of_points
        cells = np.random.default_rng(0).integers(0, 1500, (3000, 4))
        assert names_of(Use(CELLS, "numpy", 1500, points=POINTS, cells=cells)) == [*of_points, "rcm"]
        matrix = scipy.sparse.random_array((1500, 1500), density=0.01, rng=np.random.default_rng(0))
        assert names_of(Use(MATRIX, "scipy", 1500, matrix=matrix)) == ["given", "shuffled", "rcm"]
        trace = np.random.default_rng(0).integers(0, 1500, 4000)
        assert names_of(Use(TRACE, "numpy", 1500, trace=trace)) == [
            "given", "shuffled", "first touch", "frequency"
        ]  # fmt: skip

    def test_are_permutations_but_for_that_of_the_file(self):
        for name, order, seconds in orders_of(Use(CUTOFF, "numpy", 1500, points=POINTS, reach=1.0), 0):
            assert (order is None) == (name == "given")
            assert seconds >= 0
            if order is not None:
                assert np.array_equal(np.sort(order), np.arange(1500)), name

    def test_of_a_trace_are_learnt_from_another_part(self):
        learnt, judged = np.array([2, 2, 0, 1]), np.array([1, 1, 1, 3])
        found = dict(
            (name, order) for name, order, _ in orders_of(Use(TRACE, "numpy", 4, trace=judged), 0, learnt)
        )
        assert found["first touch"].tolist() == [2, 0, 1, 3]
        assert found["frequency"].tolist() == [2, 0, 1, 3]
        assert first_touch(judged, 4).tolist() == [1, 3, 0, 2]
        assert frequency(judged, 4).tolist() == [1, 3, 0, 2]

    def test_a_wrong_result_is_not_timed(self, monkeypatch):
        use = Use(NEIGHBOURS, "numpy", 1500, points=POINTS, reach=3)
        right = use.arrange
        monkeypatch.setattr(use, "arrange", lambda order: right(order)._replace(
            result=lambda: np.full(1500, 0.0 if order is None else 1.0)))  # fmt: skip
        with pytest.raises(WrongResultError, match="differs from that in the order of the file"):
            candidates(use, 0)

    def test_too_little_memory_is_told(self, monkeypatch):
        monkeypatch.setattr(times, "LEAST_FREE", 1.01)
        with pytest.raises(UsageError, match=r"1,500 items in 1 copies.*take --sample"):
            candidates(Use(NEIGHBOURS, "numpy", 1500, points=POINTS, reach=3), 0)


def rows_until_told(monkeypatch, says: str, **options) -> pd.DataFrame:
    """Rows of the rounds if all times say the same."""
    monkeypatch.setattr(times, "judge", lambda table, gain: SimpleNamespace(says=says))
    use = Use(NEIGHBOURS, "compiled", 1500, points=POINTS, reach=3)
    given = {"rounds": 2, "seed": 0, "seconds": 40.0, "smallest_gain": 1.03} | options
    return pd.DataFrame(itertools.chain.from_iterable(rounds_of(use, candidates(use, 0), **given)))


def test_each_copy_of_each_order_is_timed_in_each_round(monkeypatch):
    table = rows_until_told(monkeypatch, REORDER)
    assert table.groupby(["ordering", "copy"]).size().tolist() == [2] * 12
    assert (table[["time_ms", "wall_ms", "cost_ms"]] >= 0).all(axis=None)


def test_more_copies_are_timed_while_two_do_not_tell_and_time_is_left(monkeypatch):
    table = rows_until_told(monkeypatch, CANNOT_TELL)
    assert sorted(table["copy"].unique()) == [*range(MOST_COPIES)]
    assert table.groupby(["ordering", "copy"]).size().tolist() == [2] * 6 * MOST_COPIES
    assert sorted(table["round"].unique()) == [*range(MOST_COPIES)]  # each once, as a record wants them
    table = rows_until_told(monkeypatch, CANNOT_TELL, seconds=1e-9)
    assert (table["copy"].nunique(), len(table)) == (2, 12)  # one round


class TestQuestion:
    def test_points_have_eight_neighbours_and_particles_their_diameter(self):
        use = question_of(data_of(points=POINTS)).use
        assert (use.kind, use.reach, use.code) == (NEIGHBOURS, 8, "compiled")
        asked = question_of(data_of(points=POINTS, diameters=np.full(1500, 0.7)))
        assert (asked.use.kind, asked.use.reach) == (CUTOFF, 0.7)
        assert asked.said == ("The cutoff is the diameter, 0.7.",)

    def test_a_centred_box_begins_at_zero(self):
        data = data_of(
            points=POINTS - 5, lengths=np.full(3, 10.0), origin=np.full(3, -5.0), periodic=(True,) * 3
        )
        use = question_of(data, cutoff=1.0).use
        np.testing.assert_allclose(use.points, POINTS)
        assert use.periodic == (True,) * 3

    def test_a_trace_is_judged_on_its_second_half(self):
        trace = np.random.default_rng(0).integers(0, 1500, 4001)
        asked = question_of(data_of(kind="trace", trace=trace))
        assert np.array_equal(np.concatenate([asked.learnt, asked.use.trace]), trace)
        assert len(asked.learnt) == 2000

    def test_edges_of_cells_stand_once_each(self):
        cells = {"triangle": np.array([[0, 1, 2], [2, 1, 3]]), "edges": np.array([[0, 1]])}
        asked = question_of(data_of(kind="mesh", points=POINTS, cells=cells), walk="edges")
        assert asked.use.cells.tolist() == [[0, 1], [0, 2], [1, 2], [1, 3], [2, 3]]
        assert question_of(data_of(kind="mesh", points=POINTS, cells=cells)).use.cells.shape == (2, 3)

    def test_bonds_of_particles_are_no_mesh(self):
        bonds = {"edges": np.array([[0, 1], [1, 2]])}
        asked = question_of(data_of(points=POINTS, cells=bonds, diameters=np.full(1500, 0.7)))
        assert (asked.use.kind, asked.use.reach) == (CUTOFF, 0.7)

    def test_a_sample_is_a_part_of_the_box_in_the_order_of_the_file(self):
        points = np.random.default_rng(0).random((20_000, 3))
        asked = question_of(data_of(points=points, n=20_000), cutoff=0.1, sample=5000)
        assert 4000 < len(asked.whole) < 6000
        assert (np.diff(asked.whole) > 0).all()
        assert np.array_equal(asked.use.points, points[asked.whole])
        assert np.ptp(asked.use.points, axis=0).max() < 0.7

    def test_moves_are_those_of_two_frames_across_the_border(self):
        step = np.array([0.01, -0.02, 0.03])
        moved = np.mod(POINTS + 5 * step, 10)
        data = data_of(points=moved, earlier=POINTS, steps=5, lengths=np.full(3, 10.0),
                       origin=np.zeros(3), periodic=(True,) * 3)  # fmt: skip
        np.testing.assert_allclose(
            question_of(data, cutoff=1.0).moves_by, np.tile(step, (1500, 1)), atol=1e-12
        )

    def test_a_displacement_is_a_mean_path_along_velocities(self):
        vel = np.random.default_rng(1).normal(size=(1500, 3))
        moves = question_of(data_of(points=POINTS, velocities=vel), cutoff=1.0, displacement=0.2).moves_by
        assert np.linalg.norm(moves, axis=1).mean() == pytest.approx(0.2)
        assert np.allclose(np.cross(moves, vel), 0)
        moves = question_of(data_of(points=POINTS), cutoff=1.0, displacement=0.2).moves_by
        assert np.linalg.norm(moves, axis=1).mean() == pytest.approx(0.2)

    @pytest.mark.parametrize(("parts", "options", "message"), [
        ({"points": POINTS[:9], "n": 9}, {}, "9 items; allowed: 1,000 or more"),
        ({"points": POINTS}, {"walk": "cells"}, "has no cells or matrix"),
        ({"points": POINTS}, {"box": np.ones(2)}, "points have 3 dimensions"),
        ({"points": POINTS}, {"neighbours": 1500}, "fewer than the 1,500"),
        ({"matrix": scipy.sparse.eye_array(1500)}, {"sample": 100}, "is a matrix; allowed: of points"),
        ({"matrix": scipy.sparse.eye_array(1500, 900)}, {}, "1,500 rows and 900 columns"),
        ({"points": POINTS}, {"cutoff": 1.0, "box": np.full(3, 5.0)}, "point 0 is at .*; allowed: from 0 to"),
        ({"trace": np.arange(1500)}, {"item_bytes": 10**12}, "8 tables of 1,500,000,000,000,000 bytes"),
    ])  # fmt: skip
    def test_what_does_not_fit_is_refused(self, parts, options, message):
        with pytest.raises(UsageError, match=message):
            question_of(data_of(**parts), **options)


def test_the_interval_follows_from_the_loss_at_each_age(monkeypatch):
    asked = question_of(data_of(points=POINTS), cutoff=1.0, displacement=0.01)
    taken = iter([10.0, 10.0 + 25 * 0.02, 10.0 + 50 * 0.02, 10.0 + 100 * 0.08, 10.0 + 200 * 0.08])
    monkeypatch.setattr(how_often, "_time", lambda use, order: next(taken))
    verdict = judge(pd.DataFrame([{"ordering": name, "copy": k, "time_ms": 1.0 + k * 1e-6}
                                  for name in ("given", "row") for k in (0, 1)]))  # fmt: skip
    found = lasting(asked, np.arange(1500), verdict, 9.0)
    assert (found.low, found.high) == (
        pytest.approx(math.sqrt(2 * 9 / 0.08)),
        pytest.approx(math.sqrt(2 * 9 / 0.02)),
    )
    assert (found.longest, found.loss) == (pytest.approx(100 * AGES[-1]), pytest.approx(1.6))
    monkeypatch.setattr(how_often, "_time", lambda use, order: 10.0)
    assert math.isinf(lasting(asked, np.arange(1500), verdict, 9.0).low)
    assert lasting(question_of(data_of(points=POINTS)), np.arange(1500), verdict, 9.0) is None


class TestAdvise:
    def test_points_have_an_order_that_can_be_applied(self):
        found = advise(POINTS, cutoff=1.0, rounds=1)
        assert np.array_equal(np.sort(found.order), np.arange(1500))
        (sorted_points,) = found.apply(POINTS)
        right = POINTS[found.order] if found.should_reorder else POINTS
        assert np.array_equal(sorted_points, right)
        assert found.gain == found.verdict.gains[found.verdict.best]
        assert found.explain().startswith(found.verdict.says)
        assert found.interval is None
        with pytest.raises(ValueError, match=r"arrays\[0\] has 3 rows; allowed: 1,500"):
            found.apply(np.ones(3))

    def test_a_function_is_timed_in_each_order(self):
        seen = []
        weights = np.arange(1500)
        found = advise(POINTS, weights, run=lambda pos, w: seen.append(w[0]), rounds=1)
        assert len({*seen}) > 2
        assert set(found.table["ordering"]) == {"given", "shuffled", "row", "hilbert", "morton", "str"}
        assert "Your own function was timed" in found.explain()

    def test_a_simulation_has_the_cutoff_of_its_law(self):
        state = md.State(POINTS, np.zeros((1500, 3)), md.Box((10.0,) * 3))
        run = md.Simulation(state, md.scenes.BENCHMARK_LAW, dt=1e-3, backend="cpu", allow_overlap=True)
        found = advise(run, rounds=1, displacement=0.05)
        assert f"Neighbours within {md.scenes.BENCHMARK_LAW.cutoff:g}" in found.explain()
        assert found.interval is not None

    def test_a_matrix_and_a_trace_are_known_by_their_class(self):
        matrix = scipy.sparse.random_array((1500, 1500), density=0.01, rng=np.random.default_rng(0))
        assert "A matrix times a vector" in advise(matrix, rounds=1).explain()
        assert "learnt from the first 2,000" in advise(np.arange(4000) % 1500, rounds=1).explain()

    @pytest.mark.parametrize(("given", "error", "message"), [
        (np.full((1500, 3), np.nan), ValueError, r"points\[0\] = \[nan"),
        (np.ones((1500, 4)), TypeError, "points \\(n, 2\\) or \\(n, 3\\)"),
        ("nothing.npy", ValueError, "nothing.npy"),
    ])  # fmt: skip
    def test_what_is_no_data_is_refused(self, given, error, message):
        with pytest.raises(error, match=message):
            advise(given)
        if not isinstance(given, str):
            with pytest.raises(error, match=message):
                advise(given, run=len)
