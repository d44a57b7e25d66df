"""The shaken box's gains, the interval between reorders, the models beside the counters."""

import numpy as np
import pandas as pd
import pytest

import md
from experiments import counters, interval, speed_up
from experiments.core.apart import rows_of
from experiments.core.settings import cases
from tests.experiments.test_experiments import run


def one(module, **fields):
    return cases(module.Config(backend="cpu", runs=1, **fields))[0].config


def counting(function, calls):
    """The function, which notes that it was called."""

    def counted(*arguments):
        calls.append(arguments)
        return function(*arguments)

    return counted


class TestSpeedUp:
    @pytest.fixture(scope="class")
    @classmethod
    def folder(cls, tmp_path_factory):
        flags = "--quick --length 16 --rounds 3 --steps 4 --contact-time 4e-4 8e-4 --precision float64"
        return run(speed_up, tmp_path_factory.mktemp("speed_up"), *flags.split())

    def test_parts_add_up_and_a_fused_step_has_one(self, folder):
        table = pd.read_parquet(folder / "table.parquet")
        assert table.groupby("fused")["part"].unique().map(sorted).to_dict() == {
            False: ["force", "other", "total"],
            True: ["total"],
        }
        keys = ["filling_fraction", "contact_time", "ordering", "run", "round"]
        parts = table[~table["fused"]].pivot(index=keys, columns="part", values="time_ms")
        assert len(parts) == 2 * 2 * (3 + 1) * 3
        assert parts["total"].to_numpy() == pytest.approx((parts["force"] + parts["other"]).to_numpy())
        assert (parts > 0).all(axis=None)
        assert (table.loc[table["ordering"] == "pancake", "reorder_ms"] > 0).all()
        assert (table.loc[table["ordering"] == "aged", "reorder_ms"] == 0).all()
        assert set(table["particles"]) == {round(phi * 16 * 16 * 10 / (np.pi / 6)) for phi in (0.05, 0.2)}
        assert (table.loc[~table["fused"], "phases_over_step"] > 0).all()

    def test_every_order_s_age_is_told(self, folder):
        table = pd.read_parquet(folder / "table.parquet")
        assert table.loc[table["ordering"].str.startswith("shuffled"), "age_steps"].isna().all()
        assert set(table.loc[table["ordering"] == "pancake", "age_steps"]) == {5}
        own = table[(table["ordering"] == "aged") & table["fused"]].groupby("round")["age_steps"]
        assert own.nunique().eq(1).all()  # in every case as old, without any shakes before
        assert own.first().diff().dropna().eq(5).all()  # four steps that are timed, and one

    def test_the_temperature_is_told_at_both_ends_and_is_the_same_in_any_order(self, folder):
        table = pd.read_parquet(folder / "table.parquet")
        assert (table["temperature_start"] > 0).all()
        assert table.groupby("round")["temperature_end"].count().tolist()[:-1] == [0, 0]
        for _, rows in table[table["round"] == 2].groupby("case"):
            assert rows["temperature_end"].to_numpy() == pytest.approx(
                rows["temperature_end"].iloc[0], rel=1e-6
            )

    def test_gains_are_ratios_within_a_round(self, folder):
        table = pd.read_parquet(folder / "table.parquet")
        summary = pd.read_csv(folder / "summary.csv")
        own = "filling_fraction == 0.2 and contact_time == 8e-4 and not fused and part == 'force'"
        times = table.query(own).pivot(index="round", columns="ordering", values="time_ms")
        row = summary.query(own).set_index("ordering").loc["pancake"]
        gains = times["aged"] / times["pancake"]
        assert row["gain_over_aged_median_of_rounds"] == pytest.approx(gains.median())
        assert row["gain_over_aged_highest_round"] == pytest.approx(gains.max())
        twice = np.exp(abs(np.log((times["shuffled"] / times["shuffled again"]).median())))
        assert row["noise_floor_aged"] == row["noise_floor_shuffled"] == pytest.approx(twice)
        assert row["gain_thesis"] == 2.97
        assert set(summary["ordering"]) == {"shuffled", "aged", "pancake"}
        assert summary.loc[summary["ordering"] != "pancake", "gain_thesis"].isna().all()

    def test_every_figure_is_drawn(self, folder):
        names = {path.stem for path in folder.glob("*.png")}
        assert {
            "contact_time_fused",
            "contact_time_phases",
            "gain_0_0004_fused",
            "gain_0_0008_phases",
            "time_0_0004_fused",
        } <= names

    @pytest.mark.parametrize("fused", [False, True])
    def test_what_reorders_cost_is_shared_out_over_the_interval(self, monkeypatch, fused):
        case = one(speed_up, length=8.0, filling_fraction=(0.1,), contact_time=(8e-4,), shakes_before=0,
                   rounds=1, steps=5, ordering=("hilbert", "shuffled"), fused=(fused,),
                   precision=("float64",), reorder_every=2)  # fmt: skip
        monkeypatch.setattr(
            speed_up,
            "phases_of",
            lambda sim, steps: {"force": [2.0] * steps, "build": [1.0], "integrate": [1.0]},
        )
        monkeypatch.setattr(speed_up, "whole_steps", lambda sim, steps: 10.0 * steps)
        reordered = []
        monkeypatch.setattr(md.Simulation, "reorder", counting(md.Simulation.reorder, reordered))
        rows = pd.DataFrame(rows_of(speed_up.measure(case))).set_index(["ordering", "part"])
        # In stretches of 2, 2 and 1 steps, each after a reorder: with phases, and as a whole.
        assert (
            len(reordered) % (3 if fused else 6) == 2
        )  # and one before the forces are checked; the twin too
        cost = rows.loc[("hilbert", "total"), "reorder_ms"]
        assert cost > 0
        bare = 10.0 if fused else (5 * 2 + 3 * 2) / 5
        assert rows.loc[("hilbert", "total"), "time_ms"] == pytest.approx(bare + cost / 2)
        assert rows.loc[("shuffled", "total"), "time_ms"] == pytest.approx(bare)
        assert rows.loc[("hilbert", "total"), "age_steps"] == 2
        if not fused:
            assert rows.loc[("hilbert", "force"), "time_ms"] == 2
            assert rows.loc[("hilbert", "other"), "time_ms"] == pytest.approx(6 / 5 + cost / 2)
            assert rows.loc[("shuffled", "total"), "phases_over_step"] == pytest.approx(16 / 50)

    @pytest.mark.parametrize(
        ("age", "every", "told"),
        [(500, 500, "pancake, reordered every 500"), (5, 500, "pancake, fresh (5 steps)")],
    )
    def test_legends_tell_a_fresh_order_from_one_that_is_reordered_every_so_many_steps(
        self, age, every, told
    ):
        rows = pd.DataFrame({"ordering": ["pancake"], "age_steps": [age], "reorder_every": [every]})
        assert speed_up._names(rows) == {"pancake": told}
        rows = pd.DataFrame(
            {"ordering": ["aged", "aged again"], "age_steps": [20000, 20000], "reorder_every": 500}
        )
        assert speed_up._names(rows) == {"aged": "aged (20000 steps)"}

    def test_a_table_of_before_rounds_is_drawn_again(self, tmp_path):
        old = pd.DataFrame(
            {"case": 0, "repeat": 0, "filling_fraction": phi, "contact_time": 2e-4, "search": "linked",
             "precision": "float32", "fused": True, "ordering": name, "particles": 100, "length_d": 8.0,
             "height_d": 8.0, "reorder_ms": 0.0, "part": "total", "sample": k, "time_ms": ms}
            for name, ms in (("shuffled", 4.0), ("lattice", 3.0), ("pancake", 2.0))
            for phi in (0.05, 0.2)
            for k in range(3)
        )  # fmt: skip
        speed_up.draw(old, tmp_path)
        row = (
            pd.read_csv(tmp_path / "summary.csv")
            .set_index(["ordering", "filling_fraction"])
            .loc["pancake", 0.2]
        )
        assert row["gain_over_shuffled_median_of_rounds"] == 2
        assert row["gain_over_aged_median_of_rounds"] == 1.5
        assert (tmp_path / "gain.png").exists()

    @pytest.mark.parametrize(
        ("fields", "told"),
        [
            (
                {"filling_fraction": (0.6,)},
                "--filling-fraction = 0.6; allowed: a finite number above 0, up to 0.5",
            ),
            (
                {"contact_time": (0.01,)},
                "--contact-time = 0.01; allowed: a finite number above 0, up to 0.001",
            ),
            ({"search": ("verlet",)}, "unknown search 'verlet'; allowed: one of linked, scattered"),
            ({"ordering": ("spiral",)}, "unknown ordering 'spiral'; allowed: one of shuffled, aged"),
            ({"ordering": ("lattice",)}, "unknown ordering 'lattice'; allowed: one of shuffled, aged"),
            ({"rounds": 0}, "--rounds = 0; allowed: an integer of at least 1"),
            ({"length": float("inf")}, "--length = inf; allowed: a finite number"),
            ({"reorder_every": 0}, "--reorder-every = 0; allowed: an integer of at least 1"),
        ],
    )
    def test_what_cannot_be_run_is_refused(self, fields, told):
        with pytest.raises(ValueError, match=told):
            speed_up.Config(**fields)


def invented(cost: float, slope: float, intervals=(5, 10, 20, 40, 80, 160), runs=1) -> pd.DataFrame:
    """Rows of a gas whose steps take 1 ms, and `slope` more for each step since a reorder of `cost`."""
    case = {"n": 1000, "filling_fraction": 0.2, "speed": 0.01, "ordering": "hilbert", "search": "linked"}
    case |= {"precision": "float32", "round": 0}
    rows = [{"what": "reorder", "time_ms": ms} for ms in (9 * cost, cost)]
    rows += [{"what": "auto", "schedule": interval.DECAYED, "interval": 30.0, "time_ms": 1.3}]
    rows += [{"what": "age", "age": age, "steps": 1, "time_ms": 1 + slope * age} for age in (0, 8.5, 40, 160)]
    times = {k: cost / k + 1 + slope * (k - 1) / 2 for k in intervals}
    rows += [
        {"what": "interval", "schedule": f"reordered every {k}", "interval": k, "time_ms": ms}
        for k, ms in times.items()
    ]
    twin = {"what": "interval", "schedule": "reordered every 40 again", "interval": 40}
    rows.append(twin | {"time_ms": 1.02 * times[40]})
    return pd.DataFrame([case | row | {"run": run} for run in range(runs) for row in rows])


class TestInterval:
    def test_the_model_foresees_the_best_interval_of_a_decay_in_proportion(self):
        k, time = interval.foreseen(invented(2.0, 0.01))
        assert k[time.argmin()] == pytest.approx(np.sqrt(2 * 2.0 / 0.01), abs=1)
        assert time == pytest.approx(2.0 / k + 1 + 0.01 * (k - 1) / 2)

    def test_optima_tell_the_best_and_what_the_others_cost(self):
        (row,) = interval.optima(invented(2.0, 0.01)).to_dict("records")
        assert (row["interval_best"], row["interval_foreseen"]) == (20, 20)
        assert row["time_ms_best"] == pytest.approx(0.1 + 1 + 0.095)
        assert row["auto_over_best_median_of_rounds"] == pytest.approx(1.3 / row["time_ms_best"])
        assert row["noise_floor"] == pytest.approx(1.02)
        assert (row["interval_best_from"], row["interval_best_to"]) == (20, 20)
        assert not row["is_best_at_an_end"]
        (edge,) = interval.optima(invented(2.0, 0.01, intervals=(40, 80))).to_dict("records")
        assert edge["is_best_at_an_end"]
        assert np.isnan(edge["time_ms_at_foreseen"])
        (flat,) = interval.optima(invented(0.1, 1e-5)).to_dict("records")
        assert (flat["interval_best_from"], flat["interval_best_to"]) == (10, 160)

    def test_several_runs_have_an_interval_and_a_verdict(self):
        rows = invented(2.0, 0.01, runs=3)
        auto = rows["what"] == "auto"
        rows.loc[auto, "time_ms"] *= [0.99, 1.0, 1.01]
        (row,) = interval.optima(rows).to_dict("records")
        assert row["auto_over_best_low"] < row["auto_over_best"] < row["auto_over_best_high"]
        assert row["auto_over_best"] == pytest.approx(1.3 / row["time_ms_best"], rel=1e-3)
        assert row["auto_over_best_difference"] == "slower"
        rows.loc[auto, "time_ms"] = 1.01 * row["time_ms_best"]  # one interval differs by more from itself
        (row,) = interval.optima(rows).to_dict("records")
        assert row["auto_over_best_difference"] == "no difference"

    def test_a_best_interval_that_is_the_longest_is_as_fast_as_itself(self):
        (row,) = interval.optima(invented(2.0, 1e-9)).to_dict("records")
        assert row["interval_best"] == 160
        assert row["longest_over_best_median_of_rounds"] == 1

    def test_a_table_of_before_rounds_is_drawn_again(self, tmp_path):
        new = invented(2.0, 0.01)
        old = new[~new["schedule"].str.endswith("again", na=False)].drop(columns="schedule")
        interval.draw(old.rename(columns={"run": "repeat", "round": "sample"}), tmp_path)
        found = pd.read_csv(tmp_path / "summary.csv").loc[0]
        assert (found["interval_best"], found["interval_foreseen"]) == (20, 20)
        schedules = pd.read_csv(tmp_path / "schedules.csv").set_index("schedule")
        assert schedules.loc["reordered every 5", "over"] == "reordered every 20"
        assert len(schedules) == 6 + 1

    def test_a_run_has_every_interval_in_every_round(self, tmp_path):
        flags = "--quick --n 1000 --interval 3 9 30 --rounds 2 --least-steps 30 --precision float64"
        folder = run(interval, tmp_path, *flags.split())
        table = pd.read_parquet(folder / "table.parquet")
        fixed = table[table["what"] == "interval"]
        names = ["reordered every 3", "reordered every 30", "reordered every 9", "reordered every 9 again"]
        for k in (0, 1):
            assert sorted(fixed.loc[fixed["round"] == k, "schedule"]) == names
        assert (fixed["steps"] % fixed["interval"] == 0).all()
        assert fixed["steps"].min() == 30
        ages = table[table["what"] == "age"]
        assert ages.groupby("round")["steps"].sum().to_dict() == {0: 60, 1: 60}
        assert ages["age"].between(0, 29).all()
        assert (table[table["what"] == "reorder"].groupby("round").size() == 2).all()
        assert (table["time_ms"] > 0).all()
        ends = table[table["round"] == 1]  # elastic: as warm as before, but for what contacts hold
        assert (ends["temperature_end"] / ends["temperature_start"]).between(0.8, 1.25).all()
        assert {"interval.png", "foreseen.png", "summary.csv"} <= {path.name for path in folder.iterdir()}

    @pytest.mark.parametrize(
        ("fields", "told"),
        [
            ({"speed": (0.1,)}, "--speed = 0.1; allowed: a finite number above 0, up to 0.01"),
            ({"interval": (0,)}, "--interval = 0; allowed: an integer of at least 1"),
            ({"search": ("coherent",)}, "unknown search 'coherent'; allowed: one of linked, scattered"),
            ({"least_steps": 0}, "--least-steps = 0; allowed: an integer of at least 1"),
        ],
    )
    def test_what_cannot_be_run_is_refused(self, fields, told):
        with pytest.raises(ValueError, match=told):
            interval.Config(**fields)


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
        assert timed.groupby("ordering")["age_steps"].first().dropna().eq(5).all()
        ratio = predicted[predicted["model"] == "lru"].pivot(
            index="ordering", columns="level", values="hit_ratio"
        )
        assert (ratio["chip"] >= ratio["L1"]).all()
        names = {path.name for path in folder.iterdir()}
        assert {"correlations.csv", "hit_ratios.csv", "summary.csv", "time.png"} <= names
        summary = pd.read_csv(folder / "summary.csv").set_index("ordering")
        gains = timed.pivot(index="round", columns="ordering", values="time_ms")
        gains = gains["shuffled"] / gains["hilbert"]
        assert summary.loc["hilbert", "gain_over_shuffled_median_of_rounds"] == pytest.approx(gains.median())

    def test_rounds_that_are_there_are_not_taken_again_and_predictions_are_the_same(self):
        case = one(counters, n=(500,), ordering=("row", "hilbert"), model=("block",), rounds=2,
                   counter="none", precision=("float64",))  # fmt: skip
        whole, rest = (rows_of(counters.measure(case, begin)) for begin in (0, 2))
        assert [row["what"] for row in rest] == ["predicted"] * 4
        assert [row for row in whole if row["what"] == "predicted"] == rest

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
            rows_of(counters.measure(case))
        monkeypatch.setattr(counters, "counter_for", lambda backend, n: "perf")
        case = one(counters, n=(200,), ordering=("row",), model=("block",), rounds=1,
                   precision=("float64",))  # fmt: skip
        assert {row["what"] for row in rows_of(counters.measure(case))} == {"time", "predicted"}
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
    def test_what_cannot_be_run_is_refused(self, fields, told):
        with pytest.raises(ValueError, match=told):
            counters.Config(**fields)
