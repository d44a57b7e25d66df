"""experiments.ladder: rungs in the same rounds at the same steps of the flow; gains over two baselines."""

from dataclasses import dataclass

import numpy as np
import pandas as pd
import pytest

import md
from experiments import ladder
from experiments.measurement.correctness import TOLERANCE_OF_LARGEST
from experiments.processes.separate_run import all_rows
from experiments.results.baselines import again
from md.search import Coherent

TIMES = {
    "no reorder": [[4.0, 4.0, 4.0], [4.0, 4.0, 4.0]],
    again("no reorder"): [[4.0, 4.0, 4.0], [4.4, 4.4, 4.4]],
    "reorder": [[2.0, 2.0, 2.0], [2.0, 2.0, 2.2]],
    "shared stack": [[1.9, 1.9, 1.9], [1.9, 1.9, 1.9]],
    "grid": [[1.0, 1.0, 1.0], [1.0, 1.0, 1.0]],
}


def rows(runs: int = 2, n: int = 512) -> pd.DataFrame:
    return pd.DataFrame(
        {"n": n, "rung": name, "run": run, "round": k, "time_ms": ms}
        for name, given in TIMES.items()
        for run, rounds in enumerate(given[:runs])
        for k, ms in enumerate(rounds)
    )


def case(**options) -> ladder.Config:
    options = {"n": 600, "rung": ("grid",), "precision": "float64", "rounds": 2} | options
    return ladder.Config(backend="cpu", steps=2, warmup=1, **options)


def test_every_rung_that_is_compared_with_another_names_one_of_the_ladder():
    assert {rung.over for rung in ladder.RUNGS.values()} - {None} <= set(ladder.RUNGS)


def test_all_rungs_take_the_same_steps_in_a_round():
    found = pd.DataFrame(all_rows(ladder.measure(case(rung=("grid", "twice, kept 16 steps")))))
    for _, same in found.groupby("round"):
        assert sorted(same["rung"]) == ["grid", "grid again", "twice, kept 16 steps"]
        assert same["step"].nunique() == same["time"].nunique() == 1
    steps = found.groupby("round")["step"].first()
    assert steps[1] - steps[0] == 1 + 2
    last = found[found["round"] == 1]
    assert last[["build_ms", "force_ms", "integrate_ms", "phases_over_step"]].gt(0).all(axis=None)
    assert (found["force_off"] <= TOLERANCE_OF_LARGEST["float64"]).all()


def test_forces_that_are_wrong_are_not_timed(monkeypatch):
    right = md.Simulation.forces
    monkeypatch.setattr(
        md.Simulation, "forces", lambda sim: right(sim) * (1.001 if sim.search.name == "coherent" else 1)
    )
    with pytest.raises(
        ValueError, match=r"the forces of 'grid' .*differ from those of the grid by .*not recorded"
    ):
        next(ladder.measure(case()))


def test_gains_over_the_first_rung_and_over_the_one_compared_with():
    found = ladder.summary(rows()).set_index("rung")
    assert list(found.index) == ["no reorder", "reorder", "shared stack", "grid"]
    assert found.loc["grid", "gain_over_no_reorder"] == 4
    assert found.loc["grid", "difference_from_no_reorder"] == "faster"
    assert pd.isna(found.loc["grid", "over"])  # the rung that it is compared with was not measured
    assert found.loc["shared stack", "over"] == "reorder"
    assert found.loc["shared stack", "gain"] == pytest.approx(2 / 1.9)
    assert found.loc["shared stack", "noise_floor"] == pytest.approx(1.1)  # of the first rung
    assert found.loc["shared stack", "difference"] == "no difference"
    assert found.loc["reorder", ["over", "gain", "difference"]].tolist() == ["no reorder", 2, "faster"]


def test_one_run_has_no_verdict(tmp_path):
    table = pd.concat([rows(1), rows(1, n=1024)])
    found = ladder.summary(table)
    assert {"gain", "gain_over_no_reorder", "difference"}.isdisjoint(found.columns)
    assert {"gain_median_of_rounds", "gain_over_no_reorder_median_of_rounds"} <= set(found.columns)
    ladder.draw(table, tmp_path)
    assert {path.stem for path in tmp_path.glob("*.png")} == {"ladder", "gains"}


def test_the_second_measurement_is_no_rung_of_the_figure(tmp_path, monkeypatch):
    figures = {}
    monkeypatch.setattr(
        ladder.figures.style, "save", lambda figure, out, name, *_: figures.update({name: figure})
    )
    ladder.draw(rows(), tmp_path)
    labels = [label.get_text() for label in figures["ladder"].axes[0].get_yticklabels()]
    assert labels == ["no reorder", "reorder", "shared stack", "grid"]


@pytest.mark.parametrize("columns", [["run", "round"], []])
def test_tables_of_before_are_drawn(tmp_path, columns):
    table = rows(1)
    table = table[~table["rung"].str.endswith("again")].drop(columns=columns)
    ladder.draw(table, tmp_path)
    assert pd.read_csv(tmp_path / "summary.csv")["noise_floor"].isna().all()


@dataclass(frozen=True)
class Listed(Coherent):
    """Cells that say how many lists overflow: one for each partner that there is room for."""

    contacts: str = "listed"
    room: int = 32

    def build(self, system):
        search = super().build(system)
        search.crowded = self.room
        return search


def test_the_share_of_lists_that_overflow_is_recorded_for_the_room_that_is_given(monkeypatch):
    rungs = "grid", "contacts in lists"
    monkeypatch.setattr(ladder, "Reflexive", Listed)
    monkeypatch.setitem(ladder.RUNGS, "contacts in lists", ladder.Rung(Listed, "grid"))
    table = pd.DataFrame(all_rows(ladder.measure(case(rung=rungs, room=150))))
    found = ladder.summary(table.assign(n=600, run=0)).set_index("rung")["crowded_share"]
    assert np.isnan(found["grid"])
    assert found["contacts in lists"] == 150 / 600


@pytest.mark.full
@pytest.mark.parametrize(("room", "overflows"), [(2, True), (200, False)])
def test_the_share_of_lists_that_overflow_is_recorded_and_summed_up(room, overflows):
    rungs = "grid", "contacts in lists"
    table = pd.DataFrame(all_rows(ladder.measure(case(rung=rungs, room=room))))
    found = ladder.summary(table.assign(n=600, run=0)).set_index("rung")["crowded_share"]
    assert np.isnan(found["grid"])
    assert (0 < found["contacts in lists"] <= 1) if overflows else found["contacts in lists"] == 0


def test_a_list_without_room_is_refused():
    with pytest.raises(ValueError, match="--room = 0; allowed: an integer of at least 1"):
        case(room=0)
