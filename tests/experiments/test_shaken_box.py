"""experiments.timing with the scene box: gains of the shaken box."""

import numpy as np
import pandas as pd
import pytest

import md
from experiments import timing
from experiments.core.old_names import table_now
from experiments.drawing import style
from experiments.drawing.charts import draw, draw_chart
from experiments.measurement import shaken_box
from experiments.processes.separate_run import all_rows
from tests.experiments.runs import counting, one, run

BOX = timing.Config.SCENES["box"].defaults
(PHASES,) = (view for view in timing.BOX_VIEWS if getattr(view, "name", "") == "phases")


class TestShakenBox:
    @pytest.fixture(scope="class")
    @classmethod
    def folder(cls, tmp_path_factory):
        flags = "--quick --length 12 --rounds 2 --steps 4 --contact-time 4e-4 8e-4 --precision float64"
        return run(timing, tmp_path_factory.mktemp("box"), "--scene", "box", *flags.split())

    def test_parts_add_up_and_a_fused_step_has_one(self, folder):
        table = pd.read_parquet(folder / "table.parquet")
        assert table.groupby("fused")["part"].unique().map(sorted).to_dict() == {
            False: ["build", "force", "integrate", "other", "reorder", "total"],
            True: ["total"],
        }
        keys = ["filling_fraction", "contact_time", "ordering", "run", "round"]
        parts = table[~table["fused"]].pivot(index=keys, columns="part", values="time_ms")
        assert len(parts) == 2 * 2 * (3 + 1) * 2
        assert parts["total"].to_numpy() == pytest.approx((parts["force"] + parts["other"]).to_numpy())
        reorder = parts.pop("reorder")
        assert (parts > 0).all(axis=None)
        whole = parts["build"] + parts["integrate"] + reorder.fillna(0)
        assert parts["other"].to_numpy() == pytest.approx(whole.to_numpy())
        is_reordered = parts.index.get_level_values("ordering") == "pancake"
        assert (reorder.notna() == is_reordered).all()
        assert (reorder[is_reordered] > 0).all()
        assert (table.loc[table["ordering"] == "pancake", "reorder_ms"] > 0).all()
        assert (table.loc[table["ordering"] == "aged", "reorder_ms"] == 0).all()
        assert set(table["particles"]) == {round(phi * 12 * 12 * 10 / (np.pi / 6)) for phi in (0.05, 0.2)}
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
        assert table.groupby("round")["temperature_end"].count().tolist()[:-1] == [0]
        for _, rows in table[table["round"] == 1].groupby("case"):
            assert rows["temperature_end"].to_numpy() == pytest.approx(
                rows["temperature_end"].iloc[0], rel=1e-6
            )

    def test_the_temperature_is_told_after_each_sample(self, folder):
        table = pd.read_parquet(folder / "table.parquet")
        assert (table["temperature"] > 0).all()
        for _, rows in table.groupby(["case", "round"]):  # of the same gas, after as many steps in any order
            assert rows["temperature"].to_numpy() == pytest.approx(rows["temperature"].iloc[0], rel=1e-6)
        for _, rows in table.groupby(["case", "ordering", "part"]):
            assert rows["temperature"].nunique() == 2
            last = rows.set_index("round").loc[1]
            assert last["temperature"] == pytest.approx(last["temperature_end"], rel=1e-9)

    def test_gains_are_mean_time_over_mean_time_of_a_run(self, folder):
        table = pd.read_parquet(folder / "table.parquet")
        summary = pd.read_csv(folder / "summary.csv")
        own = "filling_fraction == 0.2 and contact_time == 8e-4 and not fused and part == 'force'"
        times = table.query(own).pivot(index="round", columns="ordering", values="time_ms")
        row = summary.query(own).set_index("ordering").loc["pancake"]
        means = times.mean()
        assert row["gain_over_aged_median_of_rounds"] == pytest.approx(means["aged"] / means["pancake"])
        assert row["time_ms_median_of_rounds"] == pytest.approx(means["pancake"])
        twice = np.exp(abs(np.log(means["shuffled"] / means["shuffled again"])))
        assert row["noise_floor_aged"] == row["noise_floor_shuffled"] == pytest.approx(twice)
        assert set(summary["ordering"]) == {"shuffled", "aged", "pancake"}
        assert row["memory"] == "fresh (5 steps)"
        assert summary.loc[summary["ordering"] == "aged", "memory"].str.fullmatch(r"aged \(\d+ steps\)").all()
        assert summary.loc[summary["ordering"] == "aged", "age_steps"].gt(5).all()

    def test_every_figure_is_drawn(self, folder):
        names = {path.stem for path in folder.glob("*.png")}
        assert {
            "contact_time_fused",
            "contact_time_phases",
            "gain_0_0004_fused",
            "gain_0_0008_phases",
            "time_0_0004_fused",
            "phases_0_0004",
        } <= names

    @pytest.mark.parametrize("apart", [False, True])
    def test_the_bars_of_phases_are_their_times_end_to_end(self, apart, tmp_path, monkeypatch):
        of = {"force": 6.0, "other": 2.0, "total": 8.0} | ({"build": 0.5, "integrate": 1.5} if apart else {})
        rows = pd.DataFrame(
            {"filling_fraction": phi, "ordering": name, "part": part, "time_ms": factor * phi * ms,
             "run": run, "round": 0, "length_d": 8.0, "height_d": 8.0, "search": "linked",
             "precision": "float32", "fused": False, "contact_time": 2e-4}
            for phi in (0.05, 0.25)
            for name, factor in (("shuffled", 40.0), ("shuffled again", 99.0), ("pancake", 20.0))
            for part, ms in of.items()
            for run in range(2)
        )  # fmt: skip
        drawn = []
        monkeypatch.setattr(style, "save", lambda *given: drawn.append(given))
        draw_chart(PHASES, rows, tmp_path)
        ((figure, _, _, own),) = drawn
        assert set(own["filling_fraction"]) == {0.25}
        (panel,) = figure.axes
        shown = [text.get_text() for text in panel.get_legend().get_texts()]
        assert shown == [*(["force", "build", "integrate"] if apart else ["force", "other"]), "total"]
        bars = dict(zip(shown, panel.patches[::2], strict=False))  # of shuffled memory, which is drawn first
        left = 0.0
        for bar in bars.values():
            assert bar.get_x() == pytest.approx(left)
            left += bar.get_width()
        assert left == pytest.approx(40 * 0.25 * 8)  # at 25 %, the fraction nearest 20 %
        assert bars["force"].get_width() == pytest.approx(40 * 0.25 * 6)
        assert panel.texts[0].get_text() == "75%"

    @pytest.mark.parametrize("fused", [False, True])
    def test_what_reorders_cost_is_shared_out_over_the_interval(self, monkeypatch, fused):
        own = {"length": 8.0, "filling_fraction": (0.1,), "contact_time": (8e-4,), "shakes_before": 0,
               "rounds": 1, "steps": 5, "ordering": ("hilbert", "shuffled"), "fused": (fused,),
               "precision": ("float64",), "reorder_every": (2,)}  # fmt: skip
        case = one(timing, **BOX | own)
        monkeypatch.setattr(
            shaken_box,
            "phases_of",
            lambda sim, steps: {"force": [2.0] * steps, "build": [1.0], "integrate": [1.0]},
        )
        monkeypatch.setattr(shaken_box, "whole_steps", lambda sim, steps: 10.0 * steps)
        reordered = []
        monkeypatch.setattr(md.Simulation, "reorder", counting(md.Simulation.reorder, reordered))
        rows = pd.DataFrame(all_rows(timing.measure(case))).set_index(["ordering", "part"])
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
        ("age", "every", "message"),
        [(501, 500, "pancake, reordered every 500"), (500, 500, "pancake, fresh (500 steps)")],
    )
    def test_legends_tell_a_fresh_order_from_one_that_is_reordered_every_so_many_steps(
        self, age, every, message
    ):
        rows = pd.DataFrame({"ordering": ["pancake"], "age_steps": [age], "reorder_every": [every]})
        rows["contact_time"] = 2e-4
        assert shaken_box.names(rows)["pancake"] == message
        rows = pd.DataFrame(
            {"ordering": ["aged", "aged again"], "age_steps": [20000, 20000], "reorder_every": 500}
        )
        assert shaken_box.names(rows.assign(contact_time=2e-4)) == {
            "total": "whole step", "aged": "aged (20000 steps)", 2e-4: "0.2 ms"
        }  # fmt: skip

    def test_a_table_of_before_rounds_is_drawn_again(self, tmp_path):
        old = pd.DataFrame(
            {"case": 0, "repeat": 0, "filling_fraction": phi, "contact_time": 2e-4, "search": "linked",
             "precision": "float32", "fused": True, "ordering": name, "particles": 100, "length_d": 8.0,
             "height_d": 8.0, "reorder_ms": 0.0, "part": "total", "sample": k, "time_ms": ms}
            for name, ms in (("shuffled", 4.0), ("lattice", 3.0), ("pancake", 2.0))
            for phi in (0.05, 0.2)
            for k in range(3)
        )  # fmt: skip
        draw(timing.VIEWS, table_now(old, "speed_up"), tmp_path)
        row = (
            pd.read_csv(tmp_path / "summary.csv")
            .set_index(["ordering", "filling_fraction"])
            .loc["pancake", 0.2]
        )
        assert row["gain_over_shuffled_median_of_rounds"] == 2
        assert row["gain_over_aged_median_of_rounds"] == 1.5
        assert (tmp_path / "gain.png").exists()

    @pytest.fixture(scope="class")
    @classmethod
    def at_intervals(cls, tmp_path_factory):
        flags = (
            "--quick --length 12 --rounds 2 --steps 12 --reorder-every 3 12 --fused True --precision float64"
        )
        return run(timing, tmp_path_factory.mktemp("box"), "--scene", "box", *flags.split())

    def test_every_interval_is_sampled_in_the_same_rounds_as_the_baselines(self, at_intervals):
        table = pd.read_parquet(at_intervals / "table.parquet")
        cases = table[table["filling_fraction"] == 0.2].groupby(["ordering", "reorder_every"])["round"]
        assert set(cases.groups) == {
            ("pancake", 3), ("pancake", 12), ("shuffled", 3), ("shuffled again", 3), ("aged", 3)
        }  # fmt: skip
        assert (cases.unique().map(sorted).map(tuple) == (0, 1)).all()
        own = table[table["ordering"] == "pancake"].groupby("reorder_every")["age_steps"]
        assert own.first().to_dict() == {3: 4, 12: 13}

    def test_every_interval_has_a_gain_over_every_baseline(self, at_intervals):
        names = {path.stem for path in at_intervals.glob("*.png")}
        assert names == {"gain_3", "gain_12", "time_3", "time_12", "interval"}
        summary = pd.read_csv(at_intervals / "summary.csv").set_index(
            ["filling_fraction", "reorder_every", "ordering"]
        )
        table = pd.read_parquet(at_intervals / "table.parquet").query("filling_fraction == 0.05")
        times = table.set_index(["ordering", "reorder_every", "round"])["time_ms"].sort_index()
        for every in (3, 12):
            gain = times["shuffled", 3].mean() / times["pancake", every].mean()
            own = summary.sort_index().loc[(0.05, every, "pancake")]
            assert own["gain_over_shuffled_median_of_rounds"] == pytest.approx(gain)
        ms = summary["time_ms_median_of_rounds"].sort_index()
        assert ms[0.05, 3, "shuffled"] == ms[0.05, 12, "shuffled"]

    def test_the_interval_of_an_older_run_is_a_number(self):
        assert timing.Config(reorder_every=500).reorder_every == (500,)

    @pytest.mark.parametrize(
        ("fields", "message"),
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
            ({"reorder_every": (0,)}, "--reorder-every = 0; allowed: an integer of at least 1"),
        ],
    )
    def test_what_cannot_be_run_is_refused(self, fields, message):
        with pytest.raises(ValueError, match=message):
            timing.Config(**BOX | fields)
