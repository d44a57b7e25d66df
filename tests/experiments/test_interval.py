"""experiments.interval: the interval between reorders, measured and predicted."""

import re
from types import SimpleNamespace

import numpy as np
import pandas as pd
import pytest

from experiments import interval
from experiments.drawing.charts import draw
from tests.experiments.runs import one, run


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
        time = interval.predicted_times(invented(2.0, 0.01))
        k = time.index
        assert time.idxmin() == pytest.approx(np.sqrt(2 * 2.0 / 0.01), abs=1)
        assert time.to_numpy() == pytest.approx(2.0 / k + 1 + 0.01 * (k - 1) / 2)

    def test_the_model_is_drawn_from_the_least_interval_that_was_measured(self):
        rows = interval.VIEWS[0].prepare(invented(2.0, 0.01, intervals=(20, 40)))
        assert rows.loc[rows["what"] == "model", "interval"].tolist() == list(range(20, 161))

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

    def test_the_optimum_of_linear_wear_is_told_for_both_slopes(self):
        rows = invented(2.0, 0.01)
        (row,) = interval.optima(rows).to_dict("records")
        for end in ("best", "oldest"):
            assert row[f"wear_us_per_step_to_{end}"] == pytest.approx(10)
            assert row[f"interval_sqrt_2C_over_s_to_{end}"] == pytest.approx(20)
        rows.loc[rows["age"] == 160, "time_ms"] = 1.4  # as at an age of 40: the order is worn out
        (row,) = interval.optima(rows).to_dict("records")
        assert row["interval_sqrt_2C_over_s_to_best"] == pytest.approx(20)
        assert row["interval_sqrt_2C_over_s_to_oldest"] > 40
        rows.loc[rows["what"] == "age", "time_ms"] = 1.0
        (row,) = interval.optima(rows).to_dict("records")
        assert np.isnan(row["interval_sqrt_2C_over_s_to_oldest"])

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

    def test_the_answer_tells_how_long_decayed_takes_and_how_often_it_reorders(self):
        rows = invented(2.0, 0.01, runs=3)
        auto = rows["what"] == "auto"
        rows.loc[auto, "time_ms"] *= [0.99, 1.0, 1.01]
        found = interval.answer(rows)
        assert found.sentence.endswith("; Decayed takes 1.088 (1.061 to 1.115) times the best time: slower.")
        assert found.table["Decayed"].tolist() == ["every 30"]
        rows.loc[auto, "interval"] = np.nan  # no reorder in a sample, or one
        assert interval.answer(rows).table["Decayed"].tolist() == ["seldom"]
        one = pd.concat([invented(2.0, 0.01).assign(round=k) for k in range(2)])
        one.loc[one["what"] == "auto", "time_ms"] = [1.1, 1.5]
        ending = r"; Decayed takes 1.062 \(0.921 to 1.255\) times the best time. One run: ranges .*$"
        assert re.search(ending, interval.answer(one).sentence)

    def test_a_best_interval_that_is_the_longest_is_as_fast_as_itself(self):
        (row,) = interval.optima(invented(2.0, 1e-9)).to_dict("records")
        assert row["interval_best"] == 160
        assert row["longest_over_best_median_of_rounds"] == 1

    def test_a_table_of_before_rounds_is_drawn_again(self, tmp_path):
        new = invented(2.0, 0.01)
        old = new[~new["schedule"].str.endswith("again", na=False)].drop(columns="schedule")
        old = pd.concat([old.assign(run=k) for k in (0, 1)])
        draw(interval.VIEWS, old.rename(columns={"run": "repeat", "round": "sample"}), tmp_path)
        found = pd.read_csv(tmp_path / "summary.csv").loc[0]
        assert (found["interval_best"], found["interval_foreseen"], found["runs"]) == (20, 20, 1)

    def test_optima_are_compared_with_predictions_in_a_figure_if_there_are_four(self, tmp_path):
        cases = [invented(2.0, 0.01).assign(speed=speed) for speed in (0.001, 0.002, 0.004, 0.008)]
        draw(interval.VIEWS, pd.concat(cases[:3]), tmp_path)
        assert not (tmp_path / "foreseen.png").exists()
        draw(interval.VIEWS, pd.concat(cases), tmp_path)
        assert (tmp_path / "foreseen.png").exists()

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
        summed = (ages["age"] * ages["steps"]).groupby(ages["round"]).sum()
        assert summed.to_list() == pytest.approx([2 * sum(range(30))] * 2)
        assert (table[table["what"] == "reorder"].groupby("round").size() == 2).all()
        shuffled = table[table["what"] == "shuffled"]
        assert shuffled["steps"].tolist() == [30, 30]
        assert shuffled["round"].tolist() == [0, 1]
        assert shuffled["schedule"].isna().all()
        assert (table["time_ms"] > 0).all()
        ends = table[table["round"] == 1]  # elastic: as warm as before, but for what contacts hold
        assert (ends["temperature_end"] / ends["temperature_start"]).between(0.8, 1.25).all()
        names = {path.name for path in folder.iterdir()}
        assert {"interval.png", "summary.csv"} <= names
        assert "foreseen.png" not in names  # of fewer optima than four

    def test_a_sample_starts_with_a_reorder_after_a_step_that_is_not_timed(self):
        case = one(interval, n=(64,), filling_fraction=(0.2,), speed=(0.008,))
        sim = interval._simulation(case, interval._Chosen())
        for every in (3, 4):
            start = sim.step
            interval._after_reorder(sim, every, 2 * every)
            assert sim.reordering.steps[-2:] == [start + 1, start + 1 + every]
            assert sim.step == start + 1 + 2 * every

    @pytest.mark.parametrize(
        ("fields", "message"),
        [
            ({"speed": (0.1,)}, "--speed = 0.1; allowed: a finite number above 0, up to 0.01"),
            ({"interval": (0,)}, "--interval = 0; allowed: an integer of at least 1"),
            ({"search": ("coherent",)}, "unknown search 'coherent'; allowed: one of linked, scattered"),
            ({"least_steps": 0}, "--least-steps = 0; allowed: an integer of at least 1"),
        ],
    )
    def test_what_cannot_be_run_is_refused(self, fields, message):
        with pytest.raises(ValueError, match=message):
            interval.Config(**fields)


class Reordered:
    """Stands for a simulation with a trigger at an interval; notes the steps at which it would reorder."""

    def __init__(self):
        self.step, self.at = 0, []
        self.chosen = interval._Chosen()
        self.reordering = SimpleNamespace(config=SimpleNamespace(schedule=self.chosen))
        self.timings = SimpleNamespace(clear=lambda: None)

    def run(self, steps, phases):
        assert not phases
        self.at += [step for step in range(self.step, self.step + steps) if self.chosen(step)]
        self.step += steps


def test_steps_for_an_energy_go_on_in_their_interval():
    sim = Reordered()
    for every, calls in ((5, 4), (9, 6)):
        for _ in range(calls):
            assert interval._steps_at_interval(sim, every, 3).steps == 3
    assert sim.at == [0, 5, 10, 12, 21]
