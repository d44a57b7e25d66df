"""The shaken box's gains, the interval between reorders."""

import numpy as np
import pandas as pd
import pytest

import md
from experiments import interval, speed_up
from experiments.core.settings import cases
from experiments.processes.separate_run import all_rows
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
        assert row["memory"] == "fresh (5 steps)"
        assert summary.loc[summary["ordering"] == "aged", "memory"].str.fullmatch(r"aged \(\d+ steps\)").all()
        assert summary.loc[summary["ordering"] == "aged", "age_steps"].gt(5).all()
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
        rows = pd.DataFrame(all_rows(speed_up.measure(case))).set_index(["ordering", "part"])
        # In stretches of 2, 2 and 1 steps, each after a reorder: with phases, and as a whole.
        assert (
            len(reordered) % (3 if fused else 6) == 2
        )  # and one before the forces are checked; the twin too
        cost = rows.loc[("hilbert", "total"), "reorder_ms"]
        assert cost > 0
        bare = 10.0 if fused else (5 * 2 + 3 * 2) / 5
        assert rows.loc[("hilbert", "total"), "time_ms"] == pytest.approx(bare + cost / 2)
        assert rows.loc[("shuffled", "total"), "time_ms"] == pytest.approx(bare)
        assert rows.loc[("hilbert", "total"), "age_steps"] == 3  # two, and one that is not timed
        if not fused:
            assert rows.loc[("hilbert", "force"), "time_ms"] == 2
            assert rows.loc[("hilbert", "other"), "time_ms"] == pytest.approx(6 / 5 + cost / 2)
            assert rows.loc[("shuffled", "total"), "phases_over_step"] == pytest.approx(16 / 50)

    @pytest.mark.parametrize(
        ("age", "every", "told"),
        [(501, 500, "pancake, reordered every 500"), (500, 500, "pancake, fresh (500 steps)")],
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
        k, time = interval.predicted_times(invented(2.0, 0.01))
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
        interval.draw(pd.concat([old.assign(run=k) for k in (0, 1)]).rename(
            columns={"run": "repeat", "round": "sample"}), tmp_path)  # fmt: skip
        assert pd.read_csv(tmp_path / "summary.csv").loc[0, "runs"] == 1
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
