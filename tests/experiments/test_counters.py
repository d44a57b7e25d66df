"""The models of a cache beside times and counters."""

import numpy as np
import pandas as pd
import pytest

from experiments import counters
from experiments.drawing.charts import draw
from experiments.processes.separate_run import all_rows
from tests.experiments.runs import one, run


def judged(names, predicted, time, seen=None) -> pd.DataFrame:
    common = {"n": 1000, "filling_fraction": 0.2, "search": "linked", "precision": "float32", "run": 0}
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
        counts = found[found["model"] == counters.COUNTED].set_index("among")
        assert (counts["against"] == "time").all()
        assert counts["rank_correlation"].to_dict() == pytest.approx(dict.fromkeys(counts.index, -1))
        assert list(counts["orders"]) == [7, 5, 4]
        found = found[found["model"] == "lru"].set_index(["against", "among"])
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

    def test_a_model_is_compared_with_the_counts_of_its_own_level(self):
        ratio = np.array([0.9, 0.8, 0.7, 0.6, 0.5, 0.1, 0.2])
        first, second = judged(self.NAMES, ratio, -ratio, ratio), judged(self.NAMES, ratio, -ratio, 1 - ratio)
        second = second[second["level"] == "L1"].assign(level="L2")
        found = counters.correlations(pd.concat([first, second]))
        found = found[(found["model"] == "lru") & (found["against"] == "counted") & (found["among"] == "all")]
        assert found.set_index("level")["rank_correlation"].to_dict() == pytest.approx({"L1": 1, "L2": -1})

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
        folder = run(counters, tmp_path, *flags, "--rounds", "2", "--precision", "float64")
        table = pd.read_parquet(folder / "table.parquet")
        predicted = table[table["what"] == "predicted"]
        assert predicted.groupby(["model", "level"]).size().to_dict() == {
            (model, level): 5 for model in ("block", "lru", "set_associative") for level in ("L1", "chip")
        }
        timed = table[table["what"] == "time"]
        assert timed.groupby(["ordering", "round"]).size().to_dict() == {
            (name, k): 1 for name in (*predicted["ordering"].unique(), "shuffled again") for k in (0, 1)
        }
        assert table.loc[table["what"] != "time", "round"].isna().all()
        ages = timed.groupby("ordering")["age_steps"].first().dropna()
        assert set(ages.index) == {"row", "hilbert", "morton", "zigzag"}
        assert ages.eq(5).all()
        ratio = predicted[predicted["model"] == "lru"].pivot(
            index="ordering", columns="level", values="hit_ratio"
        )
        assert (ratio["chip"] >= ratio["L1"]).all()
        names = {path.name for path in folder.iterdir()}
        assert {"correlations.csv", "hit_ratios.csv", "summary.csv", "predicted.png"} <= names
        summary = pd.read_csv(folder / "summary.csv").set_index("ordering")
        assert summary["memory"].to_dict() == {"shuffled": "shuffled"} | dict.fromkeys(
            ages.index, "fresh (5 steps)"
        )
        gains = timed.pivot(index="round", columns="ordering", values="time_ms")
        gains = gains["shuffled"] / gains["hilbert"]
        assert summary.loc["hilbert", "gain_over_shuffled_median_of_rounds"] == pytest.approx(gains.median())

    def test_lattice_memory_ages_with_every_step(self):
        case = one(counters, n=(500,), ordering=("lattice", "row"), model=("block",), rounds=2, steps=3,
                   counter="none", precision=("float64",))  # fmt: skip
        timed = pd.DataFrame(all_rows(counters.measure(case))).query("what == 'time'")
        steps = timed[timed["ordering"] == "lattice"].groupby("round")["age_steps"].first()
        assert steps[1] - steps[0] == 1 + 3
        assert steps[0] >= 3 + 2 * (1 + 3)  # after the warm-up and a round that is not timed
        assert timed.loc[timed["ordering"] == "row", "age_steps"].eq(4).all()

    def test_a_table_of_before_rounds_has_a_correlation_for_each_gas_and_no_interval(self, tmp_path):
        old = pd.concat([judged(self.NAMES, np.linspace(0.1, 0.9, 7), np.arange(1, 8))] * 2)
        old["run"] = np.repeat([0, 1], len(old) // 2)
        draw(counters.VIEWS, old.rename(columns={"run": "repeat"}).reset_index(drop=True), tmp_path)
        assert set(pd.read_csv(tmp_path / "correlations.csv")["run"]) == {0, 1}
        summary = pd.read_csv(tmp_path / "summary.csv")
        assert {"time_ms", "difference_from_shuffled"}.isdisjoint(summary)
        assert (summary["runs"] == 1).all()

    def test_rounds_that_are_there_are_not_taken_again_and_predictions_are_the_same(self):
        case = one(counters, n=(500,), ordering=("row", "hilbert"), model=("block",), rounds=2,
                   counter="none", precision=("float64",))  # fmt: skip
        whole, rest = (all_rows(counters.measure(case, begin)) for begin in (0, 2))
        assert [row["what"] for row in rest] == ["predicted"] * 4
        assert [row for row in whole if row["what"] == "predicted"] == rest

    def test_what_was_counted_stands_beside(self, monkeypatch, tmp_path):
        def message(counter, job):
            assert (counter, job.n) == ("cachegrind", 500)
            for place, ordering in enumerate(job.orderings):
                loads = {"l1_loads": 1000.0, "l1_hits": 500.0 + place, "dram_read": 8000.0, "time_us": 2.0}
                yield {"ordering": ordering, "on_chip": 0.75, **loads}

        monkeypatch.setattr(counters, "counted", message)
        flags = [
            "--quick",
            "--n",
            "500",
            "--ordering",
            "row",
            "hilbert",
            "morton",
            "zigzag",
            "--rounds",
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
        case = one(counters, n=(200,), ordering=("row",), model=("block",), rounds=1, counter="perf",
                   precision=("float64",))  # fmt: skip
        with pytest.raises(ValueError, match="--counter perf: no permission; allowed: one that works here"):
            all_rows(counters.measure(case))
        monkeypatch.setattr(counters, "counter_for", lambda backend, n: "perf")
        case = one(counters, n=(200,), ordering=("row",), model=("block",), rounds=1,
                   precision=("float64",))  # fmt: skip
        assert {row["what"] for row in all_rows(counters.measure(case))} == {"time", "predicted"}
        assert "nothing is counted: no permission" in capsys.readouterr().err

    @pytest.mark.parametrize(
        ("fields", "message"),
        [
            ({"counter": "perf", "backend": "cuda"}, "--counter perf beside --backend cuda; allowed: cpu"),
            ({"counter": "nsight", "backend": "cpu"}, "--counter nsight beside --backend cpu; allowed: cuda"),
            (
                {"counter": "cachegrind", "n": (2**20,)},
                "--n = 1048576; allowed: an integer up to 131072",
            ),
            (
                {"counter": "vtune"},
                "unknown counter 'vtune'; allowed: one of nsight, perf, cachegrind, auto, none",
            ),
            ({"n": (10,)}, "--n = 10; allowed: an integer of at least 64"),
            ({"model": ("fifo",)}, "unknown model 'fifo'"),
            (
                {"filling_fraction": (0.7,)},
                "--filling-fraction = 0.7; allowed: a finite number above 0, up to 0.5",
            ),
        ],
    )
    def test_what_cannot_be_run_is_refused(self, fields, message):
        with pytest.raises(ValueError, match=message):
            counters.Config(**fields)

    def test_curves_stand_first_and_a_level_without_differences_is_left_out(self, drawn):
        ratio = np.array([0.9, 0.8, 0.7, 0.6, 0.5, 0.1, 0.2])
        rows = judged(self.NAMES, ratio, [1, 1.1, 1.2, 1.3, 1.05, 9, 1.15], ratio**2)
        rows["round"] = rows["what"].map({"time": 0.0})
        same = rows[rows["what"] != "time"].assign(level="chip", hit_ratio=0.5)
        (figure,) = drawn(counters.VIEWS, pd.concat([rows, same], ignore_index=True)).values()
        curves, times, first = figure.axes
        names = [tick.get_text() for tick in curves.get_yticklabels()]
        assert names == ["hilbert", "peano", "morton", "row", "zigzag", "lattice", "shuffled"]
        assert max(curves.containers[0][0].get_xdata()) == 1.3
        assert max(times.containers[0][0].get_xdata()) == 9
        assert first.get_xlabel().startswith("misses of the first level")
        assert "last level not drawn" in figure.get_suptitle()
        seen = {one.get_label().split(":")[0]: one[0].get_xdata() for one in first.containers}
        assert list(seen) == ["counted", "lru"]
        assert sorted(seen["counted"]) == pytest.approx(sorted(1 - ratio**2))
        labels = [text.get_text() for text in first.get_legend().get_texts()]
        assert labels == ["time", "counted: -0.40", "lru: -0.40"]

    def test_times_within_their_ranges_are_not_drawn_and_all_ends_are_in_the_frame(self, drawn):
        ratio, time = np.linspace(0.1, 0.7, 7), np.array([1.0, 1.1, 1.2, 1.3, 1.05, 9, 1.15])
        parts = [judged(self.NAMES, ratio, time * factor).assign(round=0.0) for factor in (1, 2)]
        rows = pd.concat([parts[0], parts[1].query("what == 'time'").assign(round=1.0)], ignore_index=True)
        (figure,) = drawn(counters.VIEWS, rows).values()
        assert len(figure.axes) == 1
        assert (
            "times not drawn: those of all curves and scans are within their ranges" in figure.get_suptitle()
        )
        rows.loc[(rows["what"] == "time") & (rows["ordering"] == "row"), "time_ms"] *= 50
        (figure,) = drawn(counters.VIEWS, rows).values()
        curves = figure.axes[0]
        assert curves.get_xlim()[0] < 1 < 120 < curves.get_xlim()[1]
