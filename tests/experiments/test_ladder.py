"""experiments.ladder: checked rungs in the same rounds, each one choice apart; gains over two baselines."""

from dataclasses import dataclass, fields

import numpy as np
import pandas as pd
import pytest

import md
from experiments import ladder
from experiments.drawing.charts import draw
from experiments.ladder import FIRST, RUNGS, Rung
from experiments.measurement.correctness import TOLERANCE_OF_LARGEST
from experiments.processes.separate_run import all_rows
from experiments.results.baselines import again
from md.search import Coherent, Reflexive
from tests.tiers import full

TIMES = {
    "no reorder": [[4.0, 4.0, 4.0], [4.0, 4.0, 4.0]],
    again("no reorder"): [[4.0, 4.0, 4.0], [4.4, 4.4, 4.4]],
    "reorder": [[2.0, 2.0, 2.0], [2.0, 2.0, 2.2]],
    "shared stack": [[1.9, 1.9, 1.9], [1.9, 1.9, 1.9]],
    "grid": [[1.0, 1.0, 1.0], [1.0, 1.0, 1.0]],
}
GAS = {
    FIRST: [[4.0, 4.4], [4.0, 4.0]],
    again(FIRST): [[4.0, 4.4], [4.2, 4.2]],
    "memory sorted": [[2.0, 2.2], [2.0, 2.0]],
    "neighbour lists": [[1.0, 1.1], [1.0, 1.0]],
    "lists, fused": [[0.5, 0.55], [0.5, 0.5]],
}


def rows(runs: int = 2, n: int = 512, times=TIMES) -> pd.DataFrame:
    fixed = {"precision": "float64", "filling_fraction": 0.2, "steps_per_build": 1.0}
    return pd.DataFrame(
        {"n": n, "rung": name, "run": run, "round": k, "time_ms": ms} | (fixed if times is GAS else {})
        for name, given in times.items()
        for run, rounds in enumerate(given[:runs])
        for k, ms in enumerate(rounds)
    )


def summary(table: pd.DataFrame) -> pd.DataFrame:
    return ladder.VIEWS[-1].table(table)


def case(**options) -> ladder.Config:
    options = {"n": 600, "rung": ("grid",), "precision": "float64", "rounds": 2} | options
    return ladder.Config(backend="cpu", steps=2, warmup=1, **options)


def gas(*names: str, precision: str = "float64") -> ladder.Config:
    return case(n=512, scene="gas", rung=names, precision=precision)


def simulation(config: ladder.Config, rung: Rung) -> md.Simulation:
    return ladder._simulation(config, md.backend.get("cpu"), rung)


def changed(rung: Rung, over: Rung) -> set[str]:
    """Names of the choices of two rungs that differ, those of their searches among them."""
    names = {name for name in ("layout", "reorder", "fused") if getattr(rung, name) != getattr(over, name)}
    if type(rung.search) is not type(over.search):
        return names | {"search"}
    every = [field.name for field in fields(rung.search)]
    return names | {name for name in every if getattr(rung.search, name) != getattr(over.search, name)}


def test_each_rung_changes_a_rung_before_it_in_one_choice():
    two = {
        "each pair twice": {"met", "atomics"},
        "kept 64 steps, Hilbert": {"cell_order", "rebuild_every"},
        "twice, kept 64, Hilbert": {"cell_order", "rebuild_every"},
        "cells sorted": {"search", "reorder"},
        "pruned lists": {"skin", "inner_skin"},
    }
    for rungs in RUNGS.values():
        first, *names = rungs
        assert rungs[first].over is None
        for name in names:
            over = str(rungs[name].over)
            assert list(rungs).index(over) < list(rungs).index(name)
            found = changed(rungs[name], rungs[over])
            assert found == two[name] if name in two else len(found) == 1, (name, found)
    assert RUNGS["wing"].keys().isdisjoint(RUNGS["gas"])  # a table tells its scene by its rungs


def test_lists_over_unsorted_memory_are_not_those_of_a_cpu():
    name = "lists over unsorted memory"
    rung = RUNGS["gas"][name]
    assert rung.needs_device
    with pytest.raises(ValueError, match="sorts=False of Verlet on the CPU"):
        simulation(gas(name), rung)


@pytest.mark.parametrize("name", [name for name in RUNGS["gas"] if name != "lists over unsorted memory"])
def test_every_rung_is_a_simulation_and_a_rung_that_needs_a_device_changes_nothing_here(name):
    rung = RUNGS["gas"][name]
    sim = simulation(gas(name), rung)
    assert (sim.config.search, sim.config.reorder, sim.config.fused) == (
        rung.search,
        rung.reorder,
        rung.fused,
    )
    if rung.needs_device:
        other = simulation(gas(name), RUNGS["gas"][str(rung.over)])
        assert sim.backend.layout == other.backend.layout == "aos"
        assert getattr(sim.search, "skin").width == getattr(other.search, "skin").width  # noqa: B009


def test_all_rungs_of_the_wing_take_the_same_steps_in_a_round():
    found = pd.DataFrame(all_rows(ladder.measure(case(rung=("grid", "twice, kept 16 steps", FIRST)))))
    for _, same in found.groupby("round"):
        assert sorted(same["rung"]) == ["grid", "grid again", "twice, kept 16 steps"]
        assert same["step"].nunique() == same["time"].nunique() == 1
    steps = found.groupby("round")["step"].first()
    assert steps[1] - steps[0] == 1 + 2
    last = found[found["round"] == 1]
    assert last[["build_ms", "force_ms", "integrate_ms", "phases_over_step"]].gt(0).all(axis=None)
    assert (found["force_off"] <= TOLERANCE_OF_LARGEST["float64"]).all()


def test_each_round_of_the_gas_has_each_rung_that_runs_here_after_the_same_steps():
    found = pd.DataFrame(all_rows(ladder.measure(gas(FIRST, "neighbour lists", "packed rows"))))
    for _, same in found.groupby("round"):
        assert sorted(same["rung"]) == [FIRST, again(FIRST), "neighbour lists"]
        assert same["step"].nunique() == 1
    layouts = {FIRST: "soa", again(FIRST): "soa", "neighbour lists": "aos"}
    assert found.set_index("rung")["layout"].to_dict() == layouts
    last = found[found["round"] == 1]
    assert last[["force_ms", "steps_per_build", "phases_over_step"]].gt(0).all(axis=None)
    assert found["position_off"].lt(1e-9).all()


@pytest.mark.parametrize(("scene", "rung", "has"), [("wing", "grid", False), ("gas", FIRST, True)])
def test_the_gas_alone_has_an_energy_because_the_flow_at_the_wing_changes(monkeypatch, scene, rung, has):
    found = []
    monkeypatch.setattr(ladder, "take_rounds", lambda entries, *_, **__: found.extend(entries) or ())
    config = ladder.Config(
        backend="cpu", n=500, scene=scene, rung=(rung,), warmup=1, steps=3, precision="float64"
    )
    list(ladder.measure(config))
    assert [entry.work is not None for entry in found] == [has, has]
    assert bool(config.notes) is has
    assert not has or found[0].work().steps == 3


def test_only_rungs_that_need_a_device_give_no_rows():
    assert list(ladder.measure(gas("packed rows"))) == []


def test_rungs_of_the_other_scene_alone_are_refused():
    with pytest.raises(ValueError, match=r"--rung linked lists beside --scene wing; allowed: .*no reorder"):
        case(rung=(FIRST,))


def test_forces_that_are_wrong_are_not_timed(monkeypatch):
    right = md.Simulation.forces
    monkeypatch.setattr(
        md.Simulation, "forces", lambda sim: right(sim) * (1.001 if sim.search.name == "coherent" else 1)
    )
    message = r"the forces of 'grid' .*differ from those of the grid by .*not recorded"
    with pytest.raises(ValueError, match=message):
        next(ladder.measure(case()))


@pytest.mark.parametrize(("precision", "excess"), [("float64", 1e-3), full("float32", 5e-3)])
def test_a_rung_with_wrong_forces_is_not_timed(monkeypatch, precision, excess):
    wrong = RUNGS["gas"]["neighbour lists"]._replace(search=md.search.Verlet("row", 0.3))
    monkeypatch.setitem(RUNGS["gas"], "neighbour lists", wrong)
    right = ladder._simulation

    def with_another_law(config, place, rung):
        sim = right(config, place, rung)
        if rung is wrong:
            law = md.laws.SpringDashpot(stiffness=1e4 * (1 + excess), damping=5.0)
            options = {"dt": sim.dt, "backend": "cpu", "precision": precision}
            sim = md.Simulation(sim.state, law, search=rung.search, **options)
        return sim

    monkeypatch.setattr(ladder, "_simulation", with_another_law)
    message = r"rung 'neighbour lists' after 100 steps differ from those of 'linked lists' by .*not recorded"
    with pytest.raises(ValueError, match=message):
        next(ladder.measure(gas(FIRST, "neighbour lists", precision=precision)))


def test_gains_over_the_first_rung_and_over_the_nearest_one_that_was_measured():
    found = summary(rows()).set_index("rung")
    assert list(found.index) == ["no reorder", "reorder", "shared stack", "grid"]
    assert found.loc["grid", "gain_over_no_reorder"] == 4
    assert found.loc["grid", "difference_from_no_reorder"] == "faster"
    assert found.loc["grid", "over"] == "shared stack"  # those between the two were not measured
    assert found.loc["shared stack", "over"] == "reorder"
    assert found.loc["shared stack", "gain"] == pytest.approx(2 / 1.9)
    assert found.loc["shared stack", "noise_floor"] == pytest.approx(1.1)  # of the first rung
    assert found.loc["shared stack", "difference"] == "no difference"
    assert found.loc["reorder", ["over", "gain", "difference"]].tolist() == ["no reorder", 2, "faster"]
    of_gas = summary(rows(times=GAS)).set_index("rung")
    assert of_gas.loc["lists, fused", ["over", "gain"]].tolist() == ["neighbour lists", pytest.approx(2)]
    assert of_gas.loc["lists, fused", "gain_over_linked_lists"] == pytest.approx(8)
    assert pd.isna(of_gas.loc[FIRST, "over"])


def test_the_answer_names_the_largest_step_at_the_largest_size():
    small = rows(times=TIMES | {"grid": [[0.5] * 3] * 2}, n=256)
    found = ladder.answer(pd.concat([small, rows()])).sentence
    assert found.startswith("At 512 discs, grid is 4.00 ")
    assert "; the largest step is reorder over no reorder 2.00" in found
    assert ladder.answer(rows(times=GAS)).sentence.startswith("At 512 particles, ")


def rows_of(figure) -> list[str]:
    return [label.get_text() for label in figure.axes[0].get_yticklabels()]


@pytest.mark.parametrize("times", [TIMES, GAS])
def test_figures_have_a_row_for_each_rung_without_the_second_measurement(tmp_path, drawn, times):
    figures = drawn(ladder.VIEWS, rows(times=times))
    names = [name for name in times if not name.endswith("again")]
    assert rows_of(figures["ladder"]) == names
    assert len(figures["ladder"].axes) == 2  # times, and gains over the first rung
    over = ladder.compared_with(rows(times=times))
    assert rows_of(figures["gains"]) == [f"{name} / {over[name]}" for name in names[1:]]
    assert pd.read_csv(tmp_path / "summary.csv")["rung"].tolist() == names
    found = summary(rows(times=times)).set_index("rung")["gain"]
    (dots,) = figures["gains"].axes[0].containers
    assert dots[0].get_xdata() == pytest.approx(found[names[1:]].tolist())


def test_a_gain_that_is_no_difference_is_hollow(drawn):
    (panel,) = drawn(ladder.VIEWS, rows())["gains"].axes
    (hollow,) = [line for line in panel.lines if line.get_markerfacecolor() == "white"]
    assert hollow.get_ydata().tolist() == [1]  # the row of the shared stack
    assert hollow.get_xdata() == pytest.approx([2 / 1.9])


def test_one_run_has_no_verdict(tmp_path):
    table = pd.concat([rows(1), rows(1, n=1024)])
    found = summary(table)
    assert {"gain", "gain_over_no_reorder", "difference"}.isdisjoint(found.columns)
    assert {"gain_median_of_rounds", "gain_over_no_reorder_median_of_rounds"} <= set(found.columns)
    draw(ladder.VIEWS, table, tmp_path)
    assert {path.stem for path in tmp_path.glob("*.png")} == {"ladder", "gains"}


@pytest.mark.parametrize("columns", [["run", "round"], []])
def test_tables_of_before_are_drawn(tmp_path, columns):
    table = rows(1)
    table = table[~table["rung"].str.endswith("again")].drop(columns=columns)
    draw(ladder.VIEWS, table, tmp_path)
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
    monkeypatch.setitem(RUNGS["wing"], "contacts in lists", Rung(Listed(), "grid"))
    table = pd.DataFrame(all_rows(ladder.measure(case(rung=("grid", "contacts in lists"), room=150))))
    found = summary(table.assign(n=600, run=0)).set_index("rung")["crowded_share"]
    assert np.isnan(found["grid"])
    assert found["contacts in lists"] == 150 / 600


@pytest.mark.full
@pytest.mark.parametrize(("room", "overflows"), [(2, True), (200, False)])
def test_the_share_of_lists_that_overflow_is_recorded_and_summed_up(room, overflows):
    assert isinstance(RUNGS["wing"]["contacts in lists"].search, Reflexive)
    table = pd.DataFrame(all_rows(ladder.measure(case(rung=("grid", "contacts in lists"), room=room))))
    found = summary(table.assign(n=600, run=0)).set_index("rung")["crowded_share"]
    assert np.isnan(found["grid"])
    assert (0 < found["contacts in lists"] <= 1) if overflows else found["contacts in lists"] == 0


def test_a_list_without_room_is_refused():
    with pytest.raises(ValueError, match="--room = 0; allowed: an integer of at least 1"):
        case(room=0)
