"""experiments.cavity: each strategy, layout and order from the same fields; gains that [cavity] has too."""

import json
from types import SimpleNamespace

import numpy as np
import pandas as pd
import pytest

import md
from experiments import cavity
from experiments.measurement import memory_bandwidth
from experiments.measurement.correctness import WrongResultError
from experiments.processes.separate_run import all_rows
from experiments.results.baselines import again
from tests.experiments.runs import run

NAMES = ["numpy", "serial, arrays", again("serial, arrays"), "serial, arrays, hilbert"]
NAMES += ["serial, structs", "serial, structs, hilbert", "blocked"]
FLAGS = (
    "--quick --n 9 41 --strategy numpy serial blocked --order row hilbert --rounds 2 --updates 4000".split()
)


@pytest.fixture(autouse=True, scope="module")
def small_copies():
    with pytest.MonkeyPatch.context() as patch:
        patch.setitem(memory_bandwidth.BYTES, "cpu", 2**20)
        patch.setattr(memory_bandwidth, "TIMES", 0)
        yield


def case(**options) -> cavity.Config:
    own = {"strategy": ("numpy", "serial"), "layout": ("arrays",), "predicted_up_to": 0, "updates": 81}
    return cavity.Config(backend="cpu", n=9, precision="float64", rounds=1, **own | options)


@pytest.fixture(scope="module")
def folder(tmp_path_factory):
    return run(cavity, tmp_path_factory.mktemp("cavity"), *FLAGS)


def test_every_round_has_each_strategy_in_each_layout_and_order(folder):
    table = pd.read_parquet(folder / "table.parquet")
    for _, rows in table.groupby(["n", "round"]):
        assert sorted(rows["name"]) == sorted(NAMES)
    assert table.groupby("n")["steps"].unique().map(list).to_dict() == {9: [49], 41: [2]}
    np.testing.assert_allclose(table["sample_ms"], table["steps"] * table["time_ms"])


def test_bandwidth_is_of_the_bytes_of_single_sweeps(folder):
    table = pd.read_parquet(folder / "table.parquet")
    moved = 8 * (3 * 50 + 12) * table["n"] ** 2
    np.testing.assert_allclose(table["GB_per_s"], moved / table["time_ms"] / 1e6)
    assert table["copy_GB_per_s"].gt(0).all()
    summary = pd.read_csv(folder / "summary.csv")
    assert again("serial, arrays") not in set(summary["name"])
    np.testing.assert_allclose(summary["share_of_copy"], summary["GB_per_s"] / summary["copy_GB_per_s"])


def test_hits_are_predicted_for_each_order(folder):
    hits = pd.read_parquet(folder / "table.parquet").groupby(["n", "order"])["hit_ratio"]
    assert hits.nunique().eq(1).all()
    assert 0.5 < hits.first()[41, "row"] < 1
    assert hits.first()[41, "row"] != hits.first()[41, "hilbert"]


def test_gains_over_the_ways_of_the_source_are_those_of_a_round(folder):
    found = pd.read_csv(folder / "gains.csv")
    pairs = found[found["n"] == 41][["name", "over"]].to_numpy().tolist()
    assert pairs == [["serial, structs", "numpy"], ["serial, arrays", "serial, structs"]]
    assert found["source_gain"].dropna().tolist() == [2.5]
    table = (
        pd.read_parquet(folder / "table.parquet").set_index(["n", "name", "round"])["time_ms"].sort_index()
    )
    found = found[found["n"] == 41]
    ratio = (table[41, "numpy"] / table[41, "serial, structs"]).median()
    assert found.query("n == 41")["gain_median_of_rounds"].iloc[0] == pytest.approx(ratio)
    orders = pd.read_csv(folder / "orders.csv")
    assert set(orders["name"]) == {"serial, arrays, hilbert", "serial, structs, hilbert"}
    assert set(orders["over"]) == {"serial, arrays", "serial, structs"}
    assert {path.stem for path in folder.glob("*.png")} == {"times", "gains", "orders"}
    assert json.loads((folder / "provenance.json").read_text())["status"] == "complete"


def test_without_other_orders_there_is_no_figure_of_orders(tmp_path):
    flags = "--quick --n 9 --strategy numpy serial --layout arrays --rounds 1 --updates 81".split()
    folder = run(cavity, tmp_path, *flags)
    assert {path.stem for path in folder.glob("*.png")} == {"times"}


def test_all_samples_start_from_fields_without_zeros_and_advance_as_far(monkeypatch):
    seen, advance = [], md.Cavity.run

    def noted(one, steps):
        fields = one.u, one.v, one.p
        advance(one, steps)
        seen.append((one.strategy.name, steps, fields))

    monkeypatch.setattr(md.Cavity, "run", noted)
    all_rows(cavity.measure(case(updates=300)))
    warm = [fields for _, steps, fields in seen if steps == 1]
    assert len(warm) >= 2 * 3  # three ways, and a round that is not timed
    for fields in warm:
        begin = cavity._smooth(cavity._cavity(case(), "numpy"))
        for field, start in zip(fields, begin.values(), strict=True):
            assert np.array_equal(field, start)
            assert np.abs(start[1:-1, 1:-1]).max() > 0
    assert {steps for _, steps, _ in seen} == {1, 3, 4}  # warm-up, sample, reference


def test_fields_are_of_a_vortex_without_divergence_and_have_the_values_of_the_sides():
    fields = cavity._smooth(md.Cavity((65, 65), viscosity=0.1, backend="cpu"))
    u, v, p = fields["u"], fields["v"], fields["p"]
    divergence = (u[1:-1, 2:] - u[1:-1, :-2] + v[2:, 1:-1] - v[:-2, 1:-1]) * 32
    assert np.abs(divergence[:-1]).max() < 1e-12  # the row below the lid has the lid beside it
    assert (u[-1, 1:-1] == 1).all()
    assert not u[0].any()
    assert not v[-1].any()
    assert not p[-1].any()
    assert np.array_equal(p[:-1, 0], p[:-1, 1])


def test_a_strategy_with_a_tolerance_is_measured_and_one_that_does_not_take_the_shape_is_left_out(
    monkeypatch, capsys
):
    rows = all_rows(cavity.measure(case(strategy=("numpy", "spectral"), updates=300)))
    assert {row["name"] for row in rows} == {"numpy", "spectral"}
    kind = cavity.STRATEGIES["spectral"]
    monkeypatch.setattr(kind, "allowed_shapes", classmethod(lambda cls, shape, backend: "up to 8 points"))
    rows = all_rows(cavity.measure(case(strategy=("numpy", "spectral"))))
    assert {row["name"] for row in rows} == {"numpy"}
    assert "spectral is left out at 9 points a side; allowed: up to 8 points" in capsys.readouterr().err


@pytest.mark.parametrize("value", [1.0 + 1e-15, np.nan])
def test_a_strategy_with_other_fields_is_not_recorded(monkeypatch, value):
    right = md.Cavity.v.fget

    def wrong(one):
        return right(one) * (value if one.strategy.name == "serial" else 1)

    monkeypatch.setattr(md.Cavity, "v", property(wrong))
    with pytest.raises(WrongResultError, match=r"v of serial, arrays.* differs from that of the reference"):
        all_rows(cavity.measure(case()))


@pytest.mark.parametrize(
    ("options", "message"),
    [
        ({"order": ("hilbert",)}, "--order hilbert; allowed: row, and others beside it"),
        ({"order": ("row", "spiral")}, "unknown order 'spiral'"),
        ({"strategy": ("fast",)}, "unknown strategy 'fast'"),
        ({"strategy": ("staggered",)}, "unknown strategy 'staggered'"),
        ({"strategy": ("cuda",)}, "--strategy cuda beside --backend cpu; allowed: auto, cuda"),
        (
            {"strategy": ("blocked",), "layout": ("structs",)},
            "--layout structs beside --strategy blocked; allowed: a layout that one of",
        ),
        ({"viscosity": 0.0}, "--viscosity = 0.0; allowed: a finite number above 0"),
    ],
)
def test_what_is_refused(options, message):
    with pytest.raises(ValueError, match=message):
        case(**options)


def test_a_copy_moves_twice_the_bytes_of_an_array_that_does_not_fit_the_last_cache(monkeypatch):
    place, last = md.backend.get("cpu"), 2**23
    levels = [SimpleNamespace(bytes=2**15), SimpleNamespace(bytes=last)]
    monkeypatch.setattr(memory_bandwidth, "caches", lambda backend: levels)
    monkeypatch.setattr(memory_bandwidth, "TIMES", 1)
    monkeypatch.setattr("numba.get_num_threads", lambda: 3)
    ended, times = [], iter([3.0, 2.0, *[5.0] * 5])

    class Watch:
        def __enter__(self):
            return [next(times)]

        def __exit__(self, *error):
            ended.append(1)

    monkeypatch.setattr(type(place), "stopwatch", lambda self: Watch())
    assert memory_bandwidth.copy_bandwidth.__wrapped__(place) == 2 * last / 2.0 / 1e6
    assert len(ended) == memory_bandwidth.SAMPLES


def test_a_copy_that_leaves_a_part_out_is_not_recorded(monkeypatch):
    class Lazy:
        def __init__(self, workers):
            pass

        def __enter__(self):
            return self

        def __exit__(self, *error):
            pass

        def map(self, function, parts):
            return [function(part) for part in list(parts)[1:]]

    monkeypatch.setattr(memory_bandwidth, "ThreadPoolExecutor", Lazy)
    monkeypatch.setattr("numba.get_num_threads", lambda: 2)
    with pytest.raises(WrongResultError, match="a copy in memory differs"):
        memory_bandwidth.copy_bandwidth.__wrapped__(md.backend.get("cpu"))


def times(ms: dict, n: int = 41) -> pd.DataFrame:
    """Make a table of times: a round of each of three runs."""
    rows = [
        {"n": n, "precision": "float64", "run": k, "round": 0, "name": name, "time_ms": t * (1 + 0.01 * k)}
        | {"strategy": name.split(", ")[0], "layout": "structs" if "structs" in name else "arrays"}
        | {"order": "hilbert" if "hilbert" in name else "row"}
        for k in range(3)
        for name, t in ms.items()
    ]
    return pd.DataFrame(rows)


WAYS = {"serial, structs": 2.0, "serial, arrays": 1.0, "cuda, structs": 0.6, "cuda, arrays": 0.5}


def test_noise_is_of_the_processor_that_both_ways_run_on():
    both = times(WAYS | {again("serial, arrays"): 1.3, again("cuda, arrays"): 0.505})
    floors = cavity.gains_of_source(both).set_index("name")["noise_floor"]
    assert floors.to_dict() == pytest.approx(
        {"serial, arrays": 1.3, "cuda, structs": 1.3, "cuda, arrays": 1.01}
    )
    (row,) = cavity.order_gains(
        times(WAYS | {"cuda, arrays, hilbert": 1.0, again("cuda, arrays"): 0.505})
    ).to_dict("records")
    assert row["noise_floor"] == pytest.approx(1.01)
    assert row["gain"] == pytest.approx(0.5)


def test_orders_are_compared_with_rows_of_the_same_strategy_and_layout():
    turned = {"serial, structs, hilbert": 8.0, "serial, arrays, hilbert": 3.0, again("serial, arrays"): 1.1}
    found = cavity.order_gains(times(WAYS | turned)).set_index("name")
    assert found["over"].to_dict() == {
        "serial, structs, hilbert": "serial, structs",
        "serial, arrays, hilbert": "serial, arrays",
    }
    assert found["gain"].tolist() == pytest.approx([1 / 4, 1 / 3])
    assert found["noise_floor"].tolist() == pytest.approx([1.1, 1.1])
    assert cavity.order_gains(times(WAYS)).empty
