"""The command on a file: what is written, what is recorded, and what is refused before anything is."""

import re

import numpy as np
import pandas as pd
import pytest

from experiments import advise
from experiments.advice import times
from experiments.advice.memory_map import without_map
from experiments.advice.verdict import CANNOT_TELL, DO_NOT, LOOKS, REORDER, judge
from experiments.core import main
from tests.experiments.runs import views

POINTS = np.random.default_rng(0).random((1500, 3)) * 10


@pytest.fixture
def saying(monkeypatch):
    """A function that lets all times say the same."""

    def say(says: str) -> None:
        for module in (advise, times):
            monkeypatch.setattr(module, "judge", lambda table, gain: judge(table, gain)._replace(says=says))

    return say


def run(folder, *flags: str) -> pd.DataFrame:
    """Run the command on 1,500 points; return its table."""
    np.save(folder / "p.npy", POINTS)
    arguments = [str(folder / "p.npy"), "--rounds", "1", "--results", str(folder / "results"), *flags]
    main(advise.Config, advise.measure, views(advise), advise.QUICK, arguments,
         answer=advise.answer, plan=advise.plan)  # fmt: skip
    (table,) = folder.glob("results/*/*/table.parquet")
    return pd.read_parquet(table)


@pytest.mark.parametrize("says", [REORDER, DO_NOT])
def test_data_is_written_in_the_advised_order_if_a_reorder_is_advised(tmp_path, saying, says):
    saying(says)
    target, order = tmp_path / "sorted.npy", tmp_path / "sorted.npy.order.npy"
    run(tmp_path, "--write", str(target))
    assert (target.exists(), order.exists()) == (says == REORDER,) * 2
    if says == REORDER:
        np.testing.assert_array_equal(np.load(target), POINTS[np.load(order)])


def test_what_is_interrupted_is_measured_again(tmp_path):
    np.save(tmp_path / "p.npy", POINTS)
    case = advise.Config(file=str(tmp_path / "p.npy"), rounds=3, smallest_gain=1e9)
    assert [rows[0]["round"] for rows in advise.measure(case, 1)] == [1, 2]


def test_all_rounds_are_recorded(tmp_path, saying):
    saying(CANNOT_TELL)
    table = without_map(run(tmp_path))
    assert sorted(table["round"].unique()) == [*range(times.LEAST_ROUNDS * LOOKS)]


def test_another_machine_is_foreseen_beside_what_was_measured(tmp_path):
    said = " ".join(advise.answer(run(tmp_path, "--machine", "h200")).lines)
    assert re.search(r"Foreseen on h200: (\w+ \d\.\d, ){4}\w+ \d\.\d \(model: gather;", said)


@pytest.mark.parametrize(("flags", "message"), [
    (("--machine", "abacus"), "--machine abacus"),
    (("--write", "no.npy", "--sample", "1100"), "--write beside --sample; allowed: one of them"),
    (("--walk", "cells"), "has no cells or matrix"),
])  # fmt: skip
def test_what_does_not_fit_is_refused_before_anything_is_written(tmp_path, capsys, flags, message):
    with pytest.raises(SystemExit) as ended:
        run(tmp_path, *flags)
    assert ended.value.code == 2
    assert message in " ".join(capsys.readouterr().err.split())
    assert not (tmp_path / "results").exists()
