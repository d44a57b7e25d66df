"""experiments.gas_ladder: each rung changes one choice, all are checked, gains are ratios within a round."""

from dataclasses import fields

import pandas as pd
import pytest

import md
from experiments import gas_ladder
from experiments.gas_ladder import FIRST, RUNGS, Rung
from experiments.processes.separate_run import all_rows
from experiments.results.baselines import again
from tests.tiers import full

TIMES = {
    FIRST: [[4.0, 4.4], [4.0, 4.0]],
    again(FIRST): [[4.0, 4.4], [4.2, 4.2]],
    "memory sorted": [[2.0, 2.2], [2.0, 2.0]],
    "neighbour lists": [[1.0, 1.1], [1.0, 1.0]],
    "lists, fused": [[0.5, 0.55], [0.5, 0.5]],
}


def table_of(runs: int = 2) -> pd.DataFrame:
    fixed = {"n": 512, "precision": "float64", "filling_fraction": 0.2, "steps_per_build": 1.0}
    return pd.DataFrame(
        fixed | {"rung": name, "run": run, "round": k, "time_ms": ms}
        for name, given in TIMES.items()
        for run, rounds in enumerate(given[:runs])
        for k, ms in enumerate(rounds)
    )


def case(*names: str, precision: str = "float64") -> gas_ladder.Config:
    return gas_ladder.Config(backend="cpu", n=512, rung=names, precision=precision, rounds=2, steps=2)


def changed(rung: Rung, over: Rung) -> set[str]:
    """Names of the choices of two rungs that differ, those of their searches among them."""
    names = {name for name in ("layout", "reorder", "fused") if getattr(rung, name) != getattr(over, name)}
    if type(rung.search) is not type(over.search):
        return names | {"search"}
    own = [field.name for field in fields(rung.search)]
    return names | {name for name in own if getattr(rung.search, name) != getattr(over.search, name)}


def test_each_rung_changes_one_choice_of_a_rung_before_it():
    names = list(RUNGS)
    assert RUNGS[FIRST].over is None
    for name in names[1:]:
        over = str(RUNGS[name].over)
        assert names.index(over) < names.index(name)
        found = changed(RUNGS[name], RUNGS[over])
        two = {"cells sorted": {"search", "reorder"}, "pruned lists": {"skin", "inner_skin"}}
        assert found == two[name] if name in two else len(found) == 1, name


@pytest.mark.parametrize("name", list(RUNGS))
def test_every_rung_is_a_simulation_and_a_rung_that_needs_a_device_changes_nothing_here(name):
    rung = RUNGS[name]
    sim = gas_ladder._simulation(case(name), rung)
    assert (sim.config.search, sim.config.reorder, sim.config.fused) == rung[0:1] + rung[2:4]
    if rung.needs_device:
        other = gas_ladder._simulation(case(name), RUNGS[str(rung.over)])
        assert sim.backend.layout == other.backend.layout == "aos"
        assert getattr(sim.search, "skin").width == getattr(other.search, "skin").width  # noqa: B009


def test_each_round_has_each_rung_that_runs_here_after_the_same_steps():
    names = (FIRST, "neighbour lists", "packed rows")
    found = pd.DataFrame(all_rows(gas_ladder.measure(case(*names))))
    for _, same in found.groupby("round"):
        assert sorted(same["rung"]) == [FIRST, again(FIRST), "neighbour lists"]
        assert same["step"].nunique() == 1
    assert found.set_index("rung")["layout"].to_dict() == {
        FIRST: "soa",
        again(FIRST): "soa",
        "neighbour lists": "aos",
    }
    last = found[found["round"] == 1]
    assert last[["force_ms", "steps_per_build", "phases_over_step"]].gt(0).all(axis=None)
    assert found["position_off"].lt(1e-9).all()


def test_only_rungs_that_need_a_device_give_no_rows():
    assert list(gas_ladder.measure(case("packed rows"))) == []


@pytest.mark.parametrize(("precision", "excess"), [("float64", 1e-3), full("float32", 5e-3)])
def test_a_rung_with_wrong_forces_is_not_timed(monkeypatch, precision, excess):
    wrong = RUNGS["neighbour lists"]._replace(search=md.search.Verlet("row", 0.3))
    monkeypatch.setitem(gas_ladder.RUNGS, "neighbour lists", wrong)
    right = gas_ladder._simulation

    def with_another_law(case, rung):
        sim = right(case, rung)
        if rung is wrong:
            law = md.laws.SpringDashpot(stiffness=1e4 * (1 + excess), damping=5.0)
            sim = md.Simulation(
                sim.state, law, search=rung.search, dt=sim.dt, backend="cpu", precision=precision
            )
        return sim

    monkeypatch.setattr(gas_ladder, "_simulation", with_another_law)
    message = r"rung 'neighbour lists' after 100 steps differ from those of 'linked lists' by .*not recorded"
    with pytest.raises(ValueError, match=message):
        next(gas_ladder.measure(case(FIRST, "neighbour lists", precision=precision)))


def test_gains_are_ratios_of_one_round_over_the_nearest_rung_that_was_measured():
    found = gas_ladder.summary(table_of()).set_index("rung")
    assert list(found.index) == [name for name in TIMES if name != again(FIRST)]
    assert found.loc["neighbour lists", ["over", "gain"]].tolist() == ["memory sorted", pytest.approx(2)]
    assert found.loc["lists, fused", ["over", "gain"]].tolist() == ["neighbour lists", pytest.approx(2)]
    assert found.loc["lists, fused", "gain_over_linked_lists"] == pytest.approx(8)
    assert found.loc["lists, fused", "noise_floor"] == pytest.approx(1.05)
    assert pd.isna(found.loc[FIRST, "over"])


def test_the_figure_has_the_gains_beside_the_times(tmp_path, monkeypatch):
    drawn = {}
    monkeypatch.setattr(
        gas_ladder.figures.style, "save", lambda figure, out, name, *_: drawn.update({name: figure})
    )
    gas_ladder.draw(table_of(), tmp_path)
    assert set(drawn) == {"ladder", "gains"}
    texts = [text.get_text() for text in drawn["ladder"].axes[0].texts]
    assert "8.00" in texts
    assert "2.00 (neighbour lists)" in texts
    assert pd.read_csv(tmp_path / "summary.csv")["rung"].tolist()[-1] == "lists, fused"
