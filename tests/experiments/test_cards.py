"""experiments.cards: rows, figures and answer; and the processes that it times."""

import numpy as np
import pandas as pd
import pytest

import md
from experiments import cards
from experiments.processes import at_once
from experiments.processes.at_once import Gas, time_at_once
from experiments.results import gains
from md.domain.communicator import in_turn
from tests.experiments.runs import run

GAS = Gas(2000, 0.2, 5, "cpu", "float64", "", 0.0, "", 2, 3, 2)


@pytest.fixture
def timed(monkeypatch) -> list[tuple[int, Gas]]:
    """What was to be timed: on several cards it takes 1.25 times as long as ideally."""
    found = []

    def time(ranks: int, gas: Gas) -> dict:
        found.append((ranks, gas))
        ms = 1e-6 * gas.n / ranks * (1 if ranks == 1 else 1.25)
        return {"times_ms": [ms, 9 * ms, 0.5 * ms], "time": 1.0, "devices": ranks * ["H200"],
                "ghosts": gas.n // 10 * (ranks > 1), "migrations": 7}  # fmt: skip

    monkeypatch.setattr(cards, "time_at_once", time)
    return found


def test_each_number_of_cards_is_timed_once_a_round_and_one_card_twice(timed, tmp_path):
    options = ("--order", "row", "--travel", "1.5", "--transport", "peer", "--backend", "cpu")
    many = ("--n", "2000", "4000", "--cards", "2", "4", "--runs", "1", "--rounds", "2")
    folder = run(cards, tmp_path, *many, *options)
    table = pd.read_parquet(folder / "table.parquet")
    counts = table.groupby(["mode", "n", "round", "cards"]).size()
    assert len(counts) == 2 * 2 * 2 * 4
    assert (counts == 1).all()
    assert set(table["cards"]) == {"1 card", "1 card again", "2 cards", "4 cards"}
    weak = table["mode"] == "weak"
    assert (table["n_all"] == table["n"] * np.where(weak, table["count"], 1)).all()
    np.testing.assert_allclose(table["n_card"] * table["count"], table["n_all"])
    several = table["count"] > 1
    np.testing.assert_allclose(table["particle_steps_per_ns"], table["count"] / np.where(several, 1.25, 1))
    np.testing.assert_allclose(table["halo_share"], 0.1 * several)
    assert {path.name for path in folder.glob("*.png")} == {"weak.png", "strong.png"}
    assert {(gas.order, gas.travel, gas.transport) for _, gas in timed} == {("row", 1.5, "peer")}
    found = gains.gains(table[~weak], ["n"], "cards", "1 card")
    np.testing.assert_allclose(found["gain_median_of_rounds"].max(), 4 / 1.25)
    answer = cards.answer(table)
    assert answer.sentence.startswith("3.20 particle-steps a nanosecond by ")
    assert "particles on 4 cards (H200)" in answer.sentence
    assert list(answer.table.index) == ["weak 2,000", "weak 4,000", "strong 2,000", "strong 4,000"]
    assert list(answer.table.columns) == ["2 cards", "4 cards"]


def test_one_card_alone_has_no_gain(timed, tmp_path):
    folder = run(
        cards, tmp_path, "--n", "2000", "--cards", "1", "--runs", "1", "--rounds", "1", "--backend", "cpu"
    )
    answer = cards.answer(pd.read_parquet(folder / "table.parquet"))
    assert "Only one card was measured; give --cards." in answer.sentence


@pytest.mark.parametrize(
    ("wrong", "message"),
    [
        ({"mode": ("even",)}, "unknown mode 'even'"),
        ({"transport": ("post",)}, "unknown transport 'post'"),
        ({"order": ("nowhere",)}, "nowhere"),
        ({"cards": (0,)}, "--cards = 0"),
        ({"travel": (-1.0,)}, "--travel"),
    ],
)
def test_wrong_settings_are_named(wrong, message):
    with pytest.raises(ValueError, match=message):
        cards.Config(**wrong)


def test_a_small_gas_is_checked_on_all_ranks(monkeypatch):
    monkeypatch.setattr(at_once, "CHECKED", 600)
    in_turn(2, lambda ranks: at_once._check(GAS, ranks))
    before = at_once._simulation

    def other(gas, ranks, state, is_part):
        faster = md.State(state.pos, (1 + 1e-6 * (ranks is not None)) * state.vel, state.box)
        return before(gas, ranks, faster, is_part)

    monkeypatch.setattr(at_once, "_simulation", other)

    def check(ranks):
        if ranks.rank == 0:
            with pytest.raises(
                RuntimeError, match=r"a particle on 2 ranks is .* d from where one rank has it"
            ):
                at_once._check(GAS, ranks)
        else:
            at_once._check(GAS, ranks)

    in_turn(2, check)


def test_without_mpiexec_it_is_named(monkeypatch):
    monkeypatch.setattr(at_once.sys, "executable", "/nowhere/python")
    monkeypatch.setattr(at_once.shutil, "which", lambda name: None)
    with pytest.raises(FileNotFoundError, match=r"mpiexec.*pip install '\.\[mpi\]'"):
        time_at_once(2, GAS)


def test_ranks_that_fail_say_why():
    with pytest.raises(RuntimeError, match=r"1 ranks ended with status 1, and wrote: .*filling_fraction"):
        time_at_once(1, GAS._replace(filling_fraction=2.0))


@pytest.mark.full
def test_processes_at_once_time_their_gas():
    found = time_at_once(2, GAS)
    assert len(found["times_ms"]) == 2
    assert min(found["times_ms"]) > 0
    assert found["ghosts"] > 0
    assert found["migrations"] > 0
    np.testing.assert_allclose(found["time"], 8 * md.scenes.BENCHMARK_DT)
