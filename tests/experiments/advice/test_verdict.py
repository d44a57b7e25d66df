"""Reorder, do not, or cannot tell; and the answer in ten lines."""

import math
from pathlib import Path

import numpy as np
import pandas as pd
import pytest

from experiments.advice.how_often import Lasting
from experiments.advice.report import NOT_MEASURED, OWN_CODE, lines
from experiments.advice.verdict import CANNOT_TELL, DO_NOT, REORDER, judge
from experiments.core.terminal import answer_lines
from experiments.results.answers import Answer


def table_of(times: dict[str, float], spread: float = 1.001, rounds: int = 3) -> pd.DataFrame:
    """Times of two copies of each order, one `spread` times as long as the other."""
    return pd.DataFrame([
        {"ordering": name, "copy": copy, "round": k, "time_ms": ms * (spread if copy else 1 / spread)}
        for name, ms in times.items() for copy in (0, 1) for k in range(rounds)
    ])  # fmt: skip


TIMES = {"given": 10.0, "shuffled": 12.0, "row": 5.0, "hilbert": 5.002, "morton": 8.0}


@pytest.mark.parametrize(("best", "spread", "says"), [
    (5.0, 1.001, REORDER), (9.9, 1.001, DO_NOT), (9.7, 1.05, CANNOT_TELL), (11.0, 1.001, DO_NOT),
])  # fmt: skip
def test_the_interval_of_the_gain_decides(best, spread, says):
    found = judge(table_of({"given": 10.0, "shuffled": 12.0, "row": best}, spread))
    assert (found.says, found.best) == (says, "row")
    gain = found.gains["row"]
    assert gain.value == pytest.approx(10 / best)
    assert gain.low < gain.value < gain.high


def test_intervals_are_those_of_students_t_with_the_pooled_spread_of_copies():
    found = judge(table_of(TIMES, 1.02))
    reach = 2.570582 * math.log(1.02) * math.sqrt(2)  # 5 orders; of a copy: sqrt(2) log(1.02)
    assert math.log(found.gains["row"].high / found.gains["row"].value) == pytest.approx(reach, rel=1e-5)
    assert math.log(found.floor) == pytest.approx(math.sqrt(2) * reach, rel=1e-5)


def test_gains_cover_the_truth_as_often_as_they_say():
    random, covered = np.random.default_rng(0), 0
    for _ in range(400):
        table = table_of(TIMES, 1.0, rounds=1)
        table["time_ms"] *= np.exp(0.03 * random.normal(size=len(table)))
        gain = judge(table).gains["morton"]
        covered += gain.low < 10 / 8 < gain.high
    assert 0.92 < covered / 400 < 0.98


def test_shuffled_memory_is_never_advised_and_equal_orders_are_named():
    assert judge(table_of(TIMES | {"shuffled": 1.0})).best == "row"
    found = judge(table_of(TIMES))
    assert found.equal == ["hilbert"]
    assert list(found.gains) == ["row", "hilbert", "morton", "given", "shuffled"]


def test_a_table_without_a_baseline_or_a_candidate_is_refused():
    for names in (["given", "shuffled"], ["row"]):
        with pytest.raises(ValueError, match="allowed: given and a candidate or more"):
            judge(table_of({name: 1.0 for name in names}))


def said_of(times=TIMES, what="a walk", **more) -> list[str]:
    costs = dict.fromkeys(times, 18.0)
    return lines(
        judge(table_of(times)), what=what, items=5000, costs_ms=costs, smallest_gain=1.03, rounds=3, **more
    )


def test_the_answer_has_ten_lines_at_most_and_says_all():
    last = Lasting(40.0, 60.0, 200.0, 0.14)
    found = said_of(uses=1000, step_ms=20.0, last=last, said="A cutoff.")
    answer = Answer(pd.DataFrame(), found[0], tuple(found[1:]))
    assert len(answer_lines(answer, Path("results/advise/run"))) <= 10
    assert found[0].startswith("REORDER along row: 2.00 (1.99 to 2.0")
    text = " ".join(found)
    for part in (
        "A walk, 5,000 items: 10.0 ms as given, 5.00 along row (one thread, 3 rounds, 2 copies",
        "equal to row: hilbert",
        "shuffled 0.83", "pays after 4 uses", "1,000 uses save 4.98 s", "at best 1.33 times as fast",
        "every 40 to 60 steps", "takes 14 % longer after 200, up to 2.40 times as long if never", "A cutoff.",
        NOT_MEASURED,
    ):  # fmt: skip
        assert part in text, part


def test_no_gain_is_said_so():
    found = said_of(TIMES | {"row": 10.5, "hilbert": 10.6, "morton": 10.7})
    assert found[0].startswith("DO NOT REORDER: the best order, row, is 0.95")
    assert "pays" not in " ".join(found)
    never = Lasting(math.inf, math.inf, 300.0, 0.0)
    assert "No loss was found within 300 steps" in " ".join(said_of(last=never))
    assert said_of(what="your function")[-1] == OWN_CODE
