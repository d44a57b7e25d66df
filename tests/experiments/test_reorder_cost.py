"""experiments.reorder_cost: times of reorders."""

from dataclasses import replace

import numba
import pandas as pd
import pytest

from experiments import reorder_cost
from experiments.core.old_names import table_now
from experiments.drawing.charts import draw
from experiments.processes.separate_run import all_rows
from tests.experiments.runs import one, run


class TestReorderCost:
    @pytest.mark.parametrize(
        "places",
        [("one thread",), pytest.param(("one thread", "all threads"), marks=pytest.mark.nightly)],
    )
    def test_every_place_that_is_here_has_its_times(self, places, tmp_path):
        flags = ["--n", "512", "1000", "--runs", "1", "--rounds", "2"]
        folder = run(reorder_cost, tmp_path, *flags, *(["--place", *places] if len(places) == 1 else []))
        table = pd.read_parquet(folder / "table.parquet")
        assert set(table["place"]) == {*places, "one thread again"}
        counts = table.groupby(["n", "place", "memory", "round"]).size()
        assert len(counts) == 2 * (len(places) + 1) * 3 * 2
        assert (counts == 1).all()
        assert (table["time_ms"] > 0).all()
        assert table.loc[table["place"] == "one thread", "threads"].eq(1).all()
        assert {"cost.png", "summary.csv"} <= {path.name for path in folder.iterdir()}

    def test_gains_of_places_are_of_one_memory_and_one_round(self, tmp_path):
        table = pd.DataFrame(
            {"ordering": "hilbert", "precision": "float64", "n": 512, "memory": memory, "place": place,
             "run": 0, "round": k, "time_ms": ms * (k + 1) * (2 if memory == "shuffled" else 1)}
            for memory in reorder_cost.MEMORY
            for place, ms in (("one thread", 4.0), ("one thread again", 5.0), ("all threads", 2.0))
            for k in range(3)
        )  # fmt: skip
        found = reorder_cost.VIEWS[-1].table(table).set_index(["memory", "place"])
        assert found["gain_over_one_thread_median_of_rounds"].dropna().to_dict() == {
            (memory, "all threads"): 2 for memory in reorder_cost.MEMORY
        }
        assert found["noise_floor_one_thread"].dropna().eq(1.25).all()
        assert found.loc[("shuffled", "one thread"), "time_ms_median_of_rounds"] == 16
        old = table[table["place"] != "one thread again"].rename(columns={"run": "repeat", "round": "sample"})
        old["memory"] = old["memory"].replace({"fresh": "ordered", "aged": "worn"})
        draw(reorder_cost.VIEWS, table_now(old, "reorder_cost"), tmp_path)
        assert set(pd.read_csv(tmp_path / "summary.csv")["memory"]) == set(reorder_cost.MEMORY)

    def test_one_thread_leaves_the_others_to_the_next_sample(self):
        case = one(reorder_cost, n=(512,), rounds=1)
        threads = numba.get_num_threads()
        rows = pd.DataFrame(all_rows(reorder_cost.measure(replace(case, place=("one thread",)))))
        assert rows["threads"].eq(1).all()
        assert numba.get_num_threads() == threads

    def test_an_order_that_is_wrong_is_not_timed(self, monkeypatch):
        rows = reorder_cost.measure(one(reorder_cost, n=(512,)))
        monkeypatch.setattr("md.particles.cell_sort.CellSort.apply", lambda self, particles: None)
        with pytest.raises(
            ValueError,
            match=r"order under 'hilbert' differs .* of the particles; allowed: up to 0; not recorded",
        ):
            next(rows)

    @pytest.mark.parametrize(
        ("fields", "message"),
        [
            ({"place": ("moon",)}, "unknown place 'moon'; allowed: one of one thread"),
            ({"memory": ("new",)}, "unknown memory 'new'"),
            ({"n": (10,)}, "--n = 10; allowed: an integer of at least 64"),
            ({"filling_fraction": 0.6}, "--filling-fraction = 0.6"),
        ],
    )
    def test_what_cannot_be_timed_is_refused(self, fields, message):
        with pytest.raises(ValueError, match=message):
            reorder_cost.Config(**fields)
