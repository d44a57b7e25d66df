"""The shaken box's gains, the interval between reorders, the models beside the counters."""

import numpy as np
import pandas as pd
import pytest

from experiments import counters, interval, speed_up
from experiments.core.settings import cases
from tests.experiments.test_experiments import run


def one(module, **fields):
    return cases(module.Config(backend="cpu", **fields))[0].config


class TestSpeedUp:
    @pytest.fixture(scope="class")
    @classmethod
    def folder(cls, tmp_path_factory):
        flags = [
            "--quick",
            "--length",
            "16",
            "--samples",
            "3",
            "--steps",
            "4",
            "--contact-time",
            "4e-4",
            "8e-4",
            "--precision",
            "float64",
        ]
        return run(speed_up, tmp_path_factory.mktemp("speed_up"), *flags)

    def test_parts_add_up_and_a_fused_step_has_one(self, folder):
        table = pd.read_parquet(folder / "table.parquet")
        assert table.groupby("fused")["part"].unique().map(sorted).to_dict() == {
            False: ["force", "other", "total"],
            True: ["total"],
        }
        keys = ["filling_fraction", "contact_time", "ordering", "sample"]
        parts = table[~table["fused"]].pivot(index=keys, columns="part", values="time_ms")
        assert len(parts) == 2 * 2 * 3 * 3
        assert parts["total"].to_numpy() == pytest.approx((parts["force"] + parts["other"]).to_numpy())
        assert (parts > 0).all(axis=None)
        assert (table.loc[table["ordering"] == "pancake", "reorder_ms"] > 0).all()
        assert (table.loc[table["ordering"] == "lattice", "reorder_ms"] == 0).all()
        assert set(table["particles"]) == {round(phi * 16 * 16 * 10 / (np.pi / 6)) for phi in (0.05, 0.2)}

    def test_gains_are_ratios_to_the_median_of_the_baseline(self, folder):
        table = pd.read_parquet(folder / "table.parquet")
        summary = pd.read_csv(folder / "summary.csv")
        row = summary[
            (summary["filling_fraction"] == 0.2) & (summary["contact_time"] == 8e-4) & ~summary["fused"]
            & (summary["part"] == "force") & (summary["baseline"] == "lattice")
        ].iloc[0]  # fmt: skip
        own = table[(table["filling_fraction"] == 0.2) & (table["contact_time"] == 8e-4) & ~table["fused"]]
        median = own[own["part"] == "force"].groupby("ordering")["time_ms"].median()
        assert row["speed_up_median"] == pytest.approx(median["lattice"] / median["pancake"])
        assert row["speed_up_thesis"] == 2.97
        assert set(summary["ordering"]) == {"pancake"}

    def test_every_figure_is_drawn(self, folder):
        names = {path.stem for path in folder.glob("*.png")}
        assert {
            "contact_time_fused",
            "contact_time_phases",
            "gain_0_0004_fused",
            "gain_0_0008_phases",
            "time_0_0004_fused",
        } <= names

    def test_what_reorders_cost_is_shared_out_over_the_interval(self, monkeypatch):
        monkeypatch.setattr(speed_up.np, "median", lambda values: 1000.0)
        totals = {}
        for fused in (False, True):
            case = one(speed_up, length=8.0, filling_fraction=(0.1,), contact_time=(8e-4,), shakes_before=0,
                       samples=2, steps=3, ordering=("hilbert",), fused=(fused,),
                       precision=("float64",), reorder_every=2)  # fmt: skip
            rows = pd.DataFrame(speed_up.measure(case))
            totals[fused] = rows[rows["part"] == "total"]["time_ms"].to_numpy()
        assert totals[False] == pytest.approx([500, 500], abs=5)  # its share beside the phases
        # Of steps 10 .. 12 and 13 .. 15 one and two begin with a reorder (11; 13, 15): their cost goes.
        assert totals[True] == pytest.approx([1000 / 2 - 1000 / 3, 1000 / 2 - 2 * 1000 / 3], abs=5)

    @pytest.mark.parametrize(
        ("fields", "told"),
        [
            (
                {"filling_fraction": (0.6,)},
                "--filling-fraction = 0.6; allowed: .* above 0, up to 0.5",
            ),
            (
                {"contact_time": (0.01,)},
                "--contact-time = 0.01; allowed: .* above 0, up to 0.001",
            ),
            ({"search": ("verlet",)}, "unknown search 'verlet'; allowed: one of linked, scattered"),
            ({"ordering": ("spiral",)}, "unknown ordering 'spiral'; allowed: one of shuffled, lattice"),
            ({"length": float("inf")}, "--length = inf; allowed: a finite number"),
            ({"reorder_every": 0}, "--reorder-every = 0; allowed: an integer of at least 1"),
        ],
    )
    def test_what_cannot_be_run_is_refused(self, fields, told):
        with pytest.raises(ValueError, match=told):
            speed_up.Config(**fields)


def invented(cost: float, slope: float, intervals=(5, 10, 20, 40, 80, 160)) -> pd.DataFrame:
    """Rows of a gas whose steps take 1 ms, and `slope` more for each step since a reorder of `cost`."""
    case = {"n": 1000, "filling_fraction": 0.2, "speed": 0.01, "ordering": "hilbert", "search": "linked"}
    case |= {"precision": "float32", "repeat": 0}
    rows = [{"what": "reorder", "sample": 0, "time_ms": ms} for ms in (9 * cost, cost)]
    rows += [{"what": "auto", "interval": 30.0, "time_ms": 1.3}]
    rows += [{"what": "age", "age": age, "steps": 1, "time_ms": 1 + slope * age} for age in (0, 8.5, 40, 160)]
    rows += [
        {"what": "interval", "interval": k, "time_ms": cost / k + 1 + slope * (k - 1) / 2} for k in intervals
    ]
    return pd.DataFrame([case | row for row in rows])


class TestInterval:
    def test_the_model_foresees_the_best_interval_of_a_decay_in_proportion(self):
        k, time = interval.foreseen(invented(2.0, 0.01))
        assert k[time.argmin()] == pytest.approx(np.sqrt(2 * 2.0 / 0.01), abs=1)
        assert time == pytest.approx(2.0 / k + 1 + 0.01 * (k - 1) / 2)

    def test_optima_tell_the_best_and_what_the_others_cost(self):
        (row,) = interval.optima(invented(2.0, 0.01)).to_dict("records")
        assert (row["interval_best"], row["interval_foreseen"]) == (20, 20)
        assert row["time_ms_best"] == pytest.approx(0.1 + 1 + 0.095)
        assert row["auto_over_best"] == pytest.approx(1.3 / row["time_ms_best"])
        assert (row["interval_best_from"], row["interval_best_to"]) == (20, 20)
        assert not row["is_best_at_an_end"]
        (edge,) = interval.optima(invented(2.0, 0.01, intervals=(40, 80))).to_dict("records")
        assert edge["is_best_at_an_end"]
        assert np.isnan(edge["time_ms_at_foreseen"])
        (flat,) = interval.optima(invented(0.1, 1e-5)).to_dict("records")
        assert (flat["interval_best_from"], flat["interval_best_to"]) == (10, 160)

    def test_a_run_has_every_interval_in_every_turn(self, tmp_path):
        flags = [
            "--quick",
            "--n",
            "1000",
            "--interval",
            "3",
            "9",
            "30",
            "--samples",
            "2",
            "--least-steps",
            "30",
            "--precision",
            "float64",
        ]
        folder = run(interval, tmp_path, *flags)
        table = pd.read_parquet(folder / "table.parquet")
        fixed = table[table["what"] == "interval"]
        assert sorted(zip(fixed["sample"], fixed["interval"], strict=True)) == [
            (sample, k) for sample in (0, 1) for k in (3, 9, 30)
        ]
        ages = table[table["what"] == "age"]
        assert ages.groupby("sample")["steps"].sum().to_dict() == {0: 60, 1: 60}
        assert ages["age"].between(0, 29).all()
        assert (table[table["what"] == "reorder"].groupby("sample").size() == 2).all()
        assert (table["time_ms"] > 0).all()
        assert {"interval.png", "foreseen.png", "summary.csv"} <= {path.name for path in folder.iterdir()}

    @pytest.mark.parametrize(
        ("fields", "told"),
        [
            ({"speed": (0.1,)}, "--speed = 0.1; allowed: .* above 0, up to 0.01"),
            ({"interval": (0,)}, "--interval = 0; allowed: an integer of at least 1"),
            ({"search": ("coherent",)}, "unknown search 'coherent'; allowed: one of linked, scattered"),
            ({"least_steps": 0}, "--least-steps = 0; allowed: an integer of at least 1"),
        ],
    )
    def test_what_cannot_be_run_is_refused(self, fields, told):
        with pytest.raises(ValueError, match=told):
            interval.Config(**fields)


def judged(names, predicted, time, seen=None) -> pd.DataFrame:
    common = {"n": 1000, "filling_fraction": 0.2, "search": "linked", "precision": "float32", "repeat": 0}
    rows = []
    for place, name in enumerate(names):
        own = common | {"ordering": name}
        rows.append(own | {"what": "time", "time_ms": time[place]})
        rows.append(own | {"what": "predicted", "model": "lru", "level": "L1", "hit_ratio": predicted[place]})
        if seen is not None:
            rows.append(own | {"what": "counted", "level": "L1", "hit_ratio": seen[place]})
    return pd.DataFrame(rows)


class TestCounters:
    NAMES = ("hilbert", "morton", "row", "zigzag", "peano", "shuffled", "lattice")

    @pytest.fixture(autouse=True)
    def few_resamples(self, monkeypatch):
        monkeypatch.setattr(counters, "RESAMPLES", 100)

    def test_a_model_that_foresees_the_order_has_rank_correlation_one(self):
        ratio = np.array([0.9, 0.8, 0.7, 0.6, 0.5, 0.1, 0.2])
        found = counters.correlations(judged(self.NAMES, ratio, np.exp(-5 * ratio), ratio**2))
        found = found.set_index(["against", "among"])
        assert found.loc["time", "all"]["rank_correlation"] == pytest.approx(-1)
        assert found.loc["counted", "curves"]["rank_correlation"] == pytest.approx(1)
        assert found.loc["counted", "all"]["mean_difference"] == pytest.approx((ratio - ratio**2).mean())
        orders = {"all": 7, "curves": 5, "families": 4}  # a zigzag is of the family of the rows
        assert found["orders"].to_dict() == {
            (of, k): v for of in ("time", "counted") for k, v in orders.items()
        }
        off = found.loc["counted", "curves"]
        assert off["largest_difference"] == pytest.approx(0.25)
        assert off["mean_difference_from_mean"] == pytest.approx(
            np.abs(ratio[:5] ** 2 - (ratio[:5] ** 2).mean()).mean()
        )
        assert (found["from"] <= found["rank_correlation"]).all()

    def test_one_that_knows_nothing_has_none_and_too_few_say_nothing(self):
        found = counters.correlations(
            judged(self.NAMES, [0.5, 0.6, 0.7, 0.8, 0.9, 0.4, 0.3], [1, 3, 2, 2, 1, 2, 3])
        )
        wide = found[found["among"] == "all"].iloc[0]
        assert wide["from"] < 0 < wide["to"]
        few = counters.correlations(judged(self.NAMES[:3], [1.0, 0.5, 0.2], [1, 2, 3]))
        assert few["rank_correlation"].isna().all()
        same = counters.correlations(judged(self.NAMES, np.ones(7), np.arange(7)))
        assert same["rank_correlation"].isna().all()

    def test_the_kernel_alone_is_what_counts_where_it_was_seen(self):
        rows = judged(self.NAMES, np.ones(7), np.arange(7))
        assert set(counters.times(rows)["what"]) == {"time"}
        rows.loc[0, "what"] = "kernel"
        assert set(counters.times(rows)["what"]) == {"kernel"}

    def test_every_model_has_both_levels_of_the_chip(self, tmp_path):
        flags = ["--quick", "--n", "1000", "--ordering", "shuffled", "row", "hilbert", "morton", "zigzag"]
        folder = run(counters, tmp_path, *flags, "--samples", "2", "--precision", "float64")
        table = pd.read_parquet(folder / "table.parquet")
        predicted = table[table["what"] == "predicted"]
        assert predicted.groupby(["model", "level"]).size().to_dict() == {
            (model, level): 5 for model in ("block", "lru", "set_associative") for level in ("L1", "chip")
        }
        assert (table[table["what"] == "time"].groupby("ordering").size() == 2).all()
        ratio = predicted[predicted["model"] == "lru"].pivot(
            index="ordering", columns="level", values="hit_ratio"
        )
        assert (ratio["chip"] >= ratio["L1"]).all()
        assert {"correlations.csv", "summary.csv", "time.png"} <= {path.name for path in folder.iterdir()}

    def test_what_was_counted_stands_beside(self, monkeypatch, tmp_path):
        def told(counter, job):
            assert (counter, job.n) == ("cachegrind", 500)
            for place, ordering in enumerate(job.orderings):
                loads = {"l1_loads": 1000.0, "l1_hits": 500.0 + place, "dram_read": 8000.0, "time_ns": 2e3}
                yield {"ordering": ordering, "on_chip": 0.75, **loads}

        monkeypatch.setattr(counters, "counted", told)
        flags = [
            "--quick",
            "--n",
            "500",
            "--ordering",
            "row",
            "hilbert",
            "morton",
            "zigzag",
            "--samples",
            "1",
            "--precision",
            "float64",
        ]
        folder = run(counters, tmp_path, *flags, "--counter", "cachegrind")
        table = pd.read_parquet(folder / "table.parquet")
        seen = table[table["what"] == "counted"].set_index(["ordering", "level"])
        assert seen.loc[("hilbert", "L1"), "hit_ratio"] == 0.501
        assert seen.loc[("hilbert", "L1"), "loads_per_particle"] == 2
        assert seen.loc[("row", "chip"), "hit_ratio"] == 0.75
        assert seen.loc[("row", "chip"), "dram_bytes_per_particle"] == 16
        assert table[table["what"] == "kernel"]["time_ms"].tolist() == [2e-3] * 4
        assert (folder / "counted.png").exists()

    def test_a_counter_that_was_asked_for_and_fails_ends_the_run(self, monkeypatch, capsys):
        def fails(counter, job):
            raise counters.CannotCountError("no permission")
            yield

        monkeypatch.setattr(counters, "counted", fails)
        case = one(counters, n=(200,), ordering=("row",), model=("block",), samples=1, counter="perf",
                   precision=("float64",))  # fmt: skip
        with pytest.raises(ValueError, match="--counter perf: no permission; allowed: one that works here"):
            list(counters.measure(case))
        monkeypatch.setattr(counters, "counter_for", lambda backend, n: "perf")
        case = one(counters, n=(200,), ordering=("row",), model=("block",), samples=1,
                   precision=("float64",))  # fmt: skip
        assert {row["what"] for row in counters.measure(case)} == {"time", "predicted"}
        assert "nothing is counted: no permission" in capsys.readouterr().out

    @pytest.mark.parametrize(
        ("fields", "told"),
        [
            ({"counter": "perf", "backend": "cuda"}, "--counter perf beside --backend cuda; allowed: cpu"),
            ({"counter": "nsight", "backend": "cpu"}, "--counter nsight beside --backend cpu; allowed: cuda"),
            (
                {"counter": "cachegrind", "n": (2**20,)},
                "--n = 1048576; allowed: an integer up to 131072",
            ),
            (
                {"counter": "vtune"},
                "unknown counter 'vtune'; allowed: .* nsight, perf, cachegrind, auto, none",
            ),
            ({"n": (10,)}, "--n = 10; allowed: an integer of at least 64"),
            ({"model": ("fifo",)}, "unknown model 'fifo'"),
            (
                {"filling_fraction": (0.7,)},
                "--filling-fraction = 0.7; allowed: .* above 0, up to 0.5",
            ),
        ],
    )
    def test_what_cannot_be_run_is_refused(self, fields, told):
        with pytest.raises(ValueError, match=told):
            counters.Config(**fields)
