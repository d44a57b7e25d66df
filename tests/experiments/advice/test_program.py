"""Advice in a program, its candidate orders, and how long one lasts."""

import itertools
import math
from types import SimpleNamespace

import numpy as np
import pandas as pd
import pytest
import scipy.sparse

import md
import sfc
from experiments.advice import how_often, times
from experiments.advice.candidates import first_touch, frequency, orders_of
from experiments.advice.how_often import AGES, lasting
from experiments.advice.question import edges_of, question_of
from experiments.advice.times import LEAST_ROUNDS, candidates, rounds_of
from experiments.advice.uses import CELLS, CUTOFF, MATRIX, NEIGHBOURS, OWN, TRACE, Use
from experiments.advice.verdict import CANNOT_TELL, LOOKS, REORDER, judge
from experiments.advise import advise
from experiments.core.settings import UsageError
from experiments.files import Data
from experiments.measurement.correctness import WrongResultError

PAIRS = {"edges": np.array([[0, 1]])}
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
            result=lambda _: np.full(1500, 0.0 if order is None else 1.0)))  # fmt: skip
        with pytest.raises(WrongResultError, match="differs from that in the order of the file"):
            candidates(use, 0)

    def test_too_little_memory_is_told(self, monkeypatch):
        monkeypatch.setattr(times, "LEAST_FREE", 1.01)
        with pytest.raises(UsageError, match=r"1,500 items in 1 orders.*take --sample"):
            candidates(Use(NEIGHBOURS, "numpy", 1500, points=POINTS, reach=3), 0)


def rows_until_told(monkeypatch, says: str, **options) -> pd.DataFrame:
    """Rows of the rounds if all times say the same."""
    said = SimpleNamespace(says=says, best="row", equal=("str",))
    monkeypatch.setattr(times, "judge", lambda table, gain: said)
    use = Use(NEIGHBOURS, "compiled", 1500, points=POINTS, reach=3)
    given = {"rounds": 4, "seed": 0, "seconds": 40.0, "smallest_gain": 1.03} | options
    return pd.DataFrame(itertools.chain.from_iterable(rounds_of(use, candidates(use, 0), **given)))


def test_each_order_is_timed_in_each_round_and_that_of_the_file_twice(monkeypatch):
    table = rows_until_told(monkeypatch, REORDER)
    assert set(table["ordering"]) == {"given", "given again", "shuffled", "row", "hilbert", "morton", "str"}
    assert table.groupby("ordering").size().tolist() == [4] * 7
    assert (table[["time_ms", "wall_ms", "cost_ms"]] >= 0).all(axis=None)


def test_there_are_more_rounds_while_they_do_not_tell_and_time_is_left(monkeypatch):
    table = rows_until_told(monkeypatch, CANNOT_TELL)
    assert sorted(table["round"].unique()) == [*range(4 * LOOKS)]
    assert set(table["looks"]) == {LOOKS}
    often = table.groupby("ordering").size()
    assert often[["given", "given again", "row", "str"]].tolist() == [4 * LOOKS] * 4
    assert often[["shuffled", "hilbert", "morton"]].tolist() == [4] * 3, "they cannot be the best"
    table = rows_until_told(monkeypatch, CANNOT_TELL, seconds=1e-9)
    assert sorted(table["round"].unique()) == [*range(LEAST_ROUNDS)]
    assert set(table["looks"]) == {1}


def test_all_orders_of_a_round_are_timed_in_the_same_memory_and_rounds_in_others():
    use, seen = Use(NEIGHBOURS, "compiled", 1500, points=POINTS, reach=3), []
    every = candidates(use, 0)

    def noting(one):
        def run(*arrays):
            seen.append((arrays[0].ctypes.data, np.array_equal(arrays[0], one.work.arrays[0])))

        return one._replace(use_s=1.0, work=one.work._replace(run=run))

    every = [noting(one) for one in every]
    list(rounds_of(use, every, 3, 0, 1e9, 1e9))
    places = [place for place, _ in seen]
    assert all(is_own for _, is_own in seen)
    assert len(places) == 3 * 7
    assert [len({*places[k : k + 7]}) for k in (0, 7, 14)] == [1] * 3
    assert places[0] != places[7] != places[14]


@pytest.mark.parametrize("n", [40, 30_000, 400_000])
def test_a_matrix_of_arrays_of_a_round_is_no_copy(n):
    matrix = scipy.sparse.random_array((n, n), density=4 / n, rng=0).tocsr()
    arrays = matrix.indptr, matrix.indices, matrix.data
    memory = times.Memory(arrays, 0)
    for _ in range(4):
        held = memory.hold(arrays)
        made = scipy.sparse.csr_array((held[2], held[1], held[0]), matrix.shape)
        for one, other in zip((made.indptr, made.indices, made.data), held, strict=True):
            assert np.shares_memory(one, other)
        assert (made != matrix).nnz == 0
        memory.renew(arrays)


def test_arrays_of_a_round_begin_at_other_lines():
    arrays = (np.ones(300_000), np.zeros((50_000, 3)), np.ones(7, np.uint8), np.empty(0))
    memory, seen = times.Memory(arrays, 0), set()
    for _ in range(8):
        places = [one.ctypes.data for one in memory.hold(arrays)]
        seen.add(places[0] % 2**20)
        memory.renew(arrays)
    assert len(seen) > 4


def test_a_function_of_ones_own_is_judged_by_wall_time(monkeypatch):
    clock = itertools.count()
    monkeypatch.setattr(times.time, "process_time", lambda: 10.0 * next(clock))
    use = Use(OWN, OWN, 1500, points=POINTS, function=len, arrays=(POINTS,))
    wall, own = times.timed(len, (POINTS,), use)
    assert wall == own < 5
    assert times.timed(len, (POINTS,), Use(NEIGHBOURS, "numpy", 1500, points=POINTS, reach=3))[1] == 10


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

    @pytest.mark.parametrize(("name", "corners", "edges"), [
        ("triangle", 3, 3), ("quad", 4, 4), ("tetra", 4, 6), ("pyramid", 5, 8), ("wedge", 6, 9),
        ("hexahedron", 8, 12),
    ])  # fmt: skip
    def test_a_cell_has_the_edges_of_its_shape(self, name, corners, edges):
        found = edges_of(name, np.array([range(corners), range(corners)[::-1]]), 99)
        assert len(found) <= 2 * edges
        assert len(edges_of(name, np.array([range(corners)]), 99)) == edges
        assert (found[:, 0] < found[:, 1]).all()

    def test_bonds_of_particles_are_no_mesh(self):
        bonds = {"edges": np.array([[0, 1], [1, 2]])}
        asked = question_of(data_of(points=POINTS, cells=bonds, diameters=np.full(1500, 0.7)))
        assert (asked.use.kind, asked.use.reach) == (CUTOFF, 0.7)

    def test_a_sample_is_a_part_of_the_box_in_the_order_of_the_file(self):
        points = np.random.default_rng(0).random((20_000, 3))
        asked = question_of(data_of(points=points, n=20_000), cutoff=0.1, sample=5000)
        assert len(asked.whole) == 5000
        assert (np.diff(asked.whole) > 0).all()
        assert np.array_equal(asked.use.points, points[asked.whole])
        assert np.ptp(asked.use.points, axis=0).max() < 0.9  # a ball
        ring = np.random.default_rng(0).random(20_000) * 2 * np.pi
        ring = np.stack([np.cos(ring), np.sin(ring)], axis=1)
        part = question_of(data_of(points=ring, n=20_000), neighbours=4, sample=5000).use.points
        assert len(part) == 5000
        assert np.ptp(part, axis=0).max() < 1.5  # a quarter of it

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
        ({"matrix": scipy.sparse.eye_array(1500)}, {"displacement": 1.0}, "a matrix; allowed: without it"),
        ({"matrix": scipy.sparse.eye_array(1500)}, {"walk": "edges"}, "--walk beside points.npy, a matrix"),
        ({"kind": "mesh", "cells": PAIRS}, {"displacement": 0.1}, "--displacement beside"),
        ({"kind": "mesh", "cells": PAIRS}, {"walk": "matrix"}, "--walk beside"),
        ({"trace": np.arange(1500)}, {"box": np.ones(3)}, "--box beside points.npy, a trace"),
        ({"points": POINTS}, {"cutoff": 5.1, "box": np.full(3, 10.0)}, "up to half of the shortest periodic"),
        ({"matrix": scipy.sparse.eye_array(1500, 900)}, {}, "1,500 rows and 900 columns"),
        ({"points": POINTS}, {"cutoff": 1.0, "box": np.full(3, 5.0)}, "point 0 is at .*; allowed: from 0 to"),
        ({"trace": np.arange(1500)}, {"item_bytes": 10**12}, "6 tables of 1,500,000,000,000,000 bytes"),
        ({"kind": "mesh", "cells": PAIRS}, {"item_bytes": 10**12}, "9 tables of 1,500,000,000,000,000 bytes"),
        ({"points": POINTS}, {"item_bytes": 64}, "--item-bytes beside points.npy, points"),
        ({"kind": "mesh", "points": POINTS, "cells": PAIRS}, {"item_bytes": 64, "cutoff": 1.0},
         "--item-bytes beside points.npy, points"),
        ({"matrix": scipy.sparse.eye_array(1500)}, {"item_bytes": 64}, "--item-bytes beside points.npy, a m"),
    ])  # fmt: skip
    def test_what_does_not_fit_is_refused(self, parts, options, message):
        with pytest.raises(UsageError, match=message):
            question_of(data_of(**parts), **options)


def test_items_of_other_bytes_than_whole_numbers_are_refused():
    for given in (4, 12, -8):
        with pytest.raises(ValueError, match=f"item_bytes = {given}"):
            Use(TRACE, "numpy", 1500, trace=np.arange(1500), item_bytes=given)


class TestSample:
    def test_of_a_mesh_has_joined_items_and_their_cells(self):
        side = 60
        n = side * side
        left = np.arange(n).reshape(side, side)
        edges = np.concatenate([
            np.stack([left[:, :-1].ravel(), left[:, 1:].ravel()], axis=1),
            np.stack([left[:-1].ravel(), left[1:].ravel()], axis=1),
        ])  # fmt: skip
        shuffled = np.random.default_rng(0).permutation(n)
        asked = question_of(data_of(n=n, kind="mesh", cells={"edges": shuffled[edges]}), sample=1100)
        inside = np.isin(shuffled[edges], asked.whole).all(axis=1)
        assert asked.use.items == len(asked.whole) == 1100
        assert np.array_equal(asked.whole[asked.use.cells], shuffled[edges][inside])
        assert len(np.unique(asked.use.cells)) == 1100
        assert "1,100 items that are joined to each other are timed" in asked.said[-1]

    def test_of_a_matrix_has_their_rows_and_columns(self):
        matrix = scipy.sparse.diags_array([1.0, 2.0, 3.0], offsets=[-1, 0, 1], shape=(4000, 4000))
        asked = question_of(data_of(n=4000, kind="matrix", matrix=matrix), sample=1500)
        assert np.array_equal(asked.whole, np.arange(1250, 2750))
        assert (asked.use.matrix != scipy.sparse.csr_array(matrix)[1250:2750, 1250:2750]).nnz == 0

    def test_that_is_joined_to_few_is_refused(self):
        matrix = scipy.sparse.eye_array(4000)
        with pytest.raises(UsageError, match=r"--sample 1500: 1 items are joined .* allowed: 1,000 or more"):
            question_of(data_of(n=4000, kind="matrix", matrix=matrix), sample=1500)


class TestMemory:
    def test_each_round_begins_at_other_lines(self):
        arrays = np.ones(1000), np.arange(300, dtype=np.int32)
        memory, seen = times.Memory(arrays, 0), set()
        for _ in range(20):
            held = memory.hold(arrays)
            for one, right in zip(held, arrays, strict=True):
                np.testing.assert_array_equal(one, right)
                assert (one.dtype, one.flags.c_contiguous, one.flags.aligned) == (right.dtype, True, True)
            seen.add(tuple(one.ctypes.data % times.SPREAD for one in held))
            memory.renew(arrays)
            assert memory.hold(arrays)[0].ctypes.data != held[0].ctypes.data
        assert len(seen) > 15
        assert len(memory._held) == 2

    def test_a_sample_takes_what_was_planned(self):
        use, used = Use(CUTOFF, "compiled", 1500, points=POINTS, reach=1.0), []
        work = use.arrange(None)
        run = work.run
        for parts in (times.PARTS, times.PARTS_ON_GPU):
            used.clear()
            counted = work._replace(run=lambda *arrays: (used.append(1), run(*arrays)))
            one = times.Candidate("", None, 0, counted, 1e-3, parts)
            list(times._sampler(use, one, times.Memory(work.arrays, 0))())
            assert one.sample_s == pytest.approx(1e-3 * len(used))

    def test_pairs_are_timed_in_as_many_rounds_as_there_are_seconds_for(self):
        use = Use(CUTOFF, "compiled", 1500, points=POINTS, reach=1.0)
        orders = [np.arange(1500), np.arange(1500)[::-1].copy()]
        assert times.paired(use, orders, 5, 0, 100.0).shape == (5, 2)
        assert times.paired(use, orders, 5, 0, 1e-9).shape == (LEAST_ROUNDS, 2)


def test_spheres_of_two_sizes_have_the_largest_diameter_as_cutoff():
    sizes = np.where(np.arange(1500) % 2, 0.5, 1.0)
    asked = question_of(data_of(points=POINTS, diameters=sizes))
    assert asked.use.reach == 1
    assert np.array_equal(asked.use.radii, sizes / 2)
    assert "The cutoff is the largest diameter, 1." in asked.said
    assert question_of(data_of(points=POINTS, diameters=sizes), diameter=0.7).use.radii is None
    assert question_of(data_of(points=POINTS, diameters=sizes), code="scipy").use.radii is None
    part = question_of(data_of(points=POINTS, diameters=sizes), sample=1100)
    assert np.array_equal(part.use.radii, sizes[part.whole] / 2)


def test_the_interval_follows_from_the_loss_at_each_age(monkeypatch):
    asked = question_of(data_of(points=POINTS), cutoff=1.0, displacement=0.01)
    losses = iter([25 * 0.02, 50 * 0.02, 100 * 0.08, 200 * 0.08, 400 * 0.08])

    def paired(moved, orders, rounds, seed, seconds):
        assert seconds == pytest.approx(20 / len(AGES))
        assert np.array_equal(orders[0], sfc.argsort(moved.points, "row"))
        assert np.array_equal(orders[1], np.arange(1500))
        return np.tile([10.0, 10.0 + next(losses)], (rounds, 1))

    monkeypatch.setattr(how_often, "paired", paired)
    verdict = judge(pd.DataFrame([{"ordering": name, "round": k, "time_ms": 1.0}
                                  for name in ("given", "row") for k in (0, 1)]))  # fmt: skip
    found = lasting(asked, np.arange(1500), verdict, 9.0, 20.0)
    assert (found.low, found.high) == (
        pytest.approx(math.sqrt(2 * 9 / 0.08)),
        pytest.approx(math.sqrt(2 * 9 / 0.02)),
    )
    assert (found.longest, found.loss) == (pytest.approx(100 * AGES[-1]), pytest.approx(3.2))
    monkeypatch.setattr(how_often, "paired", lambda moved, orders, rounds, *_: np.full((rounds, 2), 10.0))
    assert math.isinf(lasting(asked, np.arange(1500), verdict, 9.0, 20.0).low)
    assert lasting(question_of(data_of(points=POINTS)), np.arange(1500), verdict, 9.0, 20.0) is None


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
        assert set(found.table["ordering"]) == {
            "given", "given again", "shuffled", "row", "hilbert", "morton", "str"
        }  # fmt: skip
        with pytest.raises(ValueError, match="cutoff beside run; allowed: run alone"):
            advise(POINTS, weights, run=len, cutoff=1.0)
        with pytest.raises(ValueError, match="1 further arrays without run"):
            advise(POINTS, weights)
        assert "Your own function was timed" in found.explain()

    def test_a_simulation_has_the_cutoff_of_its_law(self):
        state = md.State(POINTS, np.zeros((1500, 3)), md.Box((10.0,) * 3))
        run = md.Simulation(state, md.scenes.BENCHMARK_LAW, dt=1e-3, backend="cpu", allow_overlap=True)
        found = advise(run, rounds=1, displacement=0.05)
        assert f"Neighbours within {md.scenes.BENCHMARK_LAW.cutoff:g}" in found.explain()
        assert found.interval is not None

    def test_another_machine_can_be_foreseen(self):
        assert "Foreseen on h200: " in advise(POINTS, neighbours=3, rounds=1, machine="h200").explain()
        with pytest.raises(ValueError, match="machine beside run; allowed: run alone"):
            advise(POINTS, run=len, rounds=1, machine="h200")

    def test_a_matrix_and_a_trace_are_known_by_their_class(self):
        matrix = scipy.sparse.random_array((1500, 1500), density=0.01, rng=np.random.default_rng(0))
        assert "A matrix times a vector" in advise(matrix, rounds=1).explain()
        assert "learnt from the first 2,000" in advise(np.arange(4000) % 1500, rounds=1).explain()

    def test_a_function_that_changes_its_arrays_is_refused(self):
        with pytest.raises(ValueError, match=r"changes its arrays\[0\]; allowed: none"):
            advise(POINTS, run=lambda points: points.sort(axis=0), rounds=1)
        with pytest.raises(ValueError, match="9 points; allowed: 1,000 or more"):
            advise(POINTS[:9], run=len)

    @pytest.mark.gpu
    @pytest.mark.parametrize(("options", "points"), [
        ({"cutoff": 1.0, "code": "cuda", "displacement": 0.01}, POINTS),
        ({"neighbours": 8, "code": "cupy"}, POINTS), ({"code": "cupy"}, scipy.sparse.eye_array(1500)),
        ({"code": "cuda"}, np.arange(4000) % 1500),
    ])  # fmt: skip
    def test_code_on_a_gpu_is_timed_there(self, options, points):
        found = advise(points, rounds=1, **options)
        assert " on the GPU, " in found.explain()
        assert "one thread" not in found.explain()
        assert np.array_equal(np.sort(found.order), np.arange(1500))
        assert (found.table["cost_ms"][found.table["ordering"] == found.verdict.best] > 0).all()

    def test_masked_entries_are_not_numbers(self):
        masked = np.ma.masked_array(np.arange(1500), np.arange(1500) == 7)
        with pytest.raises(ValueError, match=r"arrays\[0\] has 1 masked entries; allowed: none"):
            advise(POINTS, masked, run=lambda *_: None)
        with pytest.raises(ValueError, match="data has 1 masked entries"):
            advise(masked)

    @pytest.mark.parametrize(("given", "error", "message"), [
        (np.empty(0, int), ValueError, "a trace of no reads"),
        (np.array([3, -1]), ValueError, "a trace with -1"),
        (scipy.sparse.eye_array(1500) * 1j, ValueError, "complex numbers; allowed: real ones"),
        (np.full((1500, 3), np.nan), ValueError, r"points\[0\] = \[nan"),
        (np.ones((1500, 4)), TypeError, "points \\(n, 2\\) or \\(n, 3\\)"),
        ("nothing.npy", ValueError, "nothing.npy"),
    ])  # fmt: skip
    def test_what_is_no_data_is_refused(self, given, error, message):
        with pytest.raises(error, match=message):
            advise(given)
        if isinstance(given, np.ndarray) and given.ndim == 2:
            with pytest.raises(error, match=message):
                advise(given, run=len)
