"""Times in processes of their own, each kept only if its result is that of the order given."""

import numpy as np
import pandas as pd
import pytest

from experiments.advice import apart
from experiments.advice.apart import Job, check_result, main, medians, timed, timed_apart
from experiments.advice.sets import SETS, Order, SetData, make, put, shuffled
from experiments.advice.sets.codes import library_on_gpu
from experiments.measurement.correctness import WrongResultError
from tests.processes import preloaded

N = 600
CPU, WALL = "cpu_ms", "wall_ms"


def test_each_order_is_timed_in_each_round_in_processes_of_their_own(monkeypatch):
    preloaded(monkeypatch)
    data = make("hexahedra_shuffled", N)
    table = timed_apart("hexahedra_shuffled", {"shuffled": shuffled(data, 1)}, 1, data=data)
    assert list(table.columns) == ["set", "order", "round", CPU, WALL, "runs"]
    assert table["order"].tolist() == ["given", "shuffled"]
    assert (table[[CPU, WALL]] > 0).all(axis=None)
    assert (table[CPU] < 1.5 * table[WALL] + 1).all()


@pytest.fixture
def here(monkeypatch):
    """Samples are taken in this process, once each; -> the orders and results are seen here."""
    seen = []

    def sample(job: Job) -> tuple[dict, np.ndarray]:
        (row,) = apart.measure(job)
        seen.append(job.order)
        return row, np.load(job.result)

    monkeypatch.setattr(apart, "_sample", sample)
    monkeypatch.setattr(apart, "AT_LEAST", 1e-9)
    return seen


def test_rounds_take_all_orders_in_turn(here):
    orders = {name: np.random.default_rng(k).permutation(N) for k, name in enumerate("abc")}
    table = timed_apart("hash_probes", orders, 4, n=N)
    assert [set(rows) for _, rows in table.groupby("round")["order"]] == 4 * [{"given", "a", "b", "c"}]
    assert table["order"][0] == "given"
    assert len({tuple(rows) for _, rows in table.groupby("round")["order"]}) > 1  # not always the same turn
    found = medians(table)
    assert found["order"].tolist() == table["order"][:4].tolist()
    assert found.loc[found["order"] == "given", "gain"].item() == 1


def test_a_gain_is_the_time_of_the_order_given_over_that_of_the_order():
    rows = [
        ("s", "given", 8.0),
        ("s", "given", 6.0),
        ("s", "given", 7.0),
        ("s", "a", 3.5),
        ("t", "given", 1.0),
    ]
    table = pd.DataFrame(rows, columns=["set", "order", CPU]).assign(wall_ms=1.0)
    assert medians(table)["gain"].tolist() == [1.0, 2.0, 1.0]


FORGOTTEN = {"cells": "icosphere", "trace": "zipf_probes", "matrix": "band_moved", "values": "delaunay",
             "radii": "two_sizes"}  # fmt: skip


@pytest.mark.parametrize(("field", "name"), FORGOTTEN.items())
def test_an_order_that_is_applied_to_a_part_of_the_data_is_found(field, name, here, monkeypatch):
    def wrong(data: SetData, order: Order) -> SetData:
        moved = put(data, order)
        return SetData(**{**vars(moved), field: getattr(data, field)})

    monkeypatch.setattr(apart, "put", wrong)
    data = make(name, N)
    message = (
        f"the result of {name} in the order 'a' differs from that of the order given by .*; not recorded"
    )
    with pytest.raises(WrongResultError, match=message):
        timed_apart(name, {"a": shuffled(data, 2)}, 1, data=data)
    assert len(here) == 2


@pytest.mark.parametrize("name", [name for name, one in SETS.items() if one.use != "trace"])
def test_a_result_put_back_by_another_order_is_found(name, monkeypatch):
    monkeypatch.setattr(apart, "AT_LEAST", 1e-9)
    data, one = make(name, N), SETS[name]
    expected, _ = timed(data, np.arange(data.n), one.use, one.library)
    found, _ = timed(data, shuffled(data, 4), one.use, one.library)
    assert check_result(name, found, expected) < 1e-12
    with pytest.raises(WrongResultError, match="differs from that of the order given"):
        check_result(name, found[np.random.default_rng(5).permutation(data.n)], expected)


def test_nan_and_another_shape_are_wrong_results():
    with pytest.raises(WrongResultError):
        check_result("a", np.array([1.0, np.nan]), np.ones(2))
    with pytest.raises(WrongResultError):
        check_result("a", np.ones(3), np.ones(2))


def test_what_is_no_order_is_refused_before_a_process_starts(here):
    with pytest.raises(ValueError, match="items is no permutation: 1 is missing"):
        timed_apart("hash_probes", {"a": np.zeros(N, int)}, 1, n=N)
    with pytest.raises(ValueError, match="unknown name 'gas'"):
        timed_apart("gas", {}, 1)
    with pytest.raises(ValueError, match="orders has 'given'; allowed: other names"):
        timed_apart("hash_probes", {"given": np.arange(N)}, 1, n=N)
    with pytest.raises(ValueError, match="rounds = 0; allowed: an integer"):
        timed_apart("hash_probes", {}, 0, n=N)
    assert here == []


def test_the_command_times_an_order_of_a_file(tmp_path, capsys, monkeypatch):
    monkeypatch.setattr(apart, "AT_LEAST", 1e-9)
    order = tmp_path / "order.npy"
    np.save(order, np.arange(N)[::-1])
    assert main(["hash_probes", str(order), "--n", str(N)]) == 0
    lines = capsys.readouterr().out.splitlines()
    assert [line.split(": ")[0] for line in lines] == ["hash_probes given", f"hash_probes {order}"]
    np.save(order, np.arange(N - 1))
    assert main(["hash_probes", str(order), "--n", str(N)]) == 2
    assert capsys.readouterr().err.startswith("error: items")


@pytest.mark.gpu
@pytest.mark.parametrize("name", SETS)
def test_code_on_a_gpu_computes_what_that_on_the_host_does(name, monkeypatch):
    monkeypatch.setattr(apart, "AT_LEAST", 1e-9)
    one, data = SETS[name], make(name, 700)
    library = library_on_gpu(one.use, one.library)
    order = shuffled(data, 1)
    expected, _ = timed(data, order, one.use, one.library)
    found, row = timed(data, order, one.use, library)
    assert check_result(name, found, expected) < apart.TOLERANCE
    assert row[CPU] == row[WALL] > 0
    assert row["runs"] % apart.ON_WAY == 0


def test_a_user_with_a_gpu_has_cuda_for_loops_and_cupy_for_whole_arrays():
    found = {(one.use, one.library): library_on_gpu(one.use, one.library) for one in SETS.values()}
    assert found[("edges", "compiled")] == found[("cutoff", "scipy")] == "cuda"
    assert found[("edges", "numpy")] == found[("matrix", "scipy")] == found[("neighbours", "scipy")] == "cupy"
