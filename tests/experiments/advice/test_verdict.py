"""Reorder, do not, or cannot tell; and the answer in ten lines."""

import math
from pathlib import Path

import numpy as np
import pandas as pd
import pytest

from experiments.advice.how_often import Lasting
from experiments.advice.report import NOT_MEASURED, OWN_CODE, lines
from experiments.advice.verdict import CANNOT_TELL, DO_NOT, LOOKS, REORDER, judge
from experiments.core.terminal import answer_lines
from experiments.results.answers import Answer
from tests import tiers


def table_of(times: dict[str, float], spread: float = 1.001, rounds: int = 8) -> pd.DataFrame:
    """Times in rounds of memory of other speeds, with normal errors of the size of the log of `spread`."""
    random = np.random.default_rng(1)
    memory = 0.2 * random.normal(size=rounds)
    memory = np.exp(memory - np.median(memory))
    return pd.DataFrame([
        {"ordering": name, "round": k, "time_ms": ms * memory[k] * spread ** random.normal()}
        for name, ms in times.items() for k in range(rounds)
    ])  # fmt: skip


TIMES = {"given": 10.0, "shuffled": 12.0, "row": 5.0, "hilbert": 5.002, "morton": 8.0}


@pytest.mark.parametrize(("best", "spread", "says"), [
    (5.0, 1.001, REORDER), (9.9, 1.001, DO_NOT), (9.7, 1.05, CANNOT_TELL), (11.0, 1.001, DO_NOT),
])  # fmt: skip
def test_the_interval_of_the_gain_decides(best, spread, says):
    found = judge(table_of({"given": 10.0, "shuffled": 12.0, "row": best}, spread))
    assert (found.says, found.best) == (says, "row")
    gain = found.gains["row"]
    assert gain.value == pytest.approx(10 / best, rel=0.05)
    assert gain.low < gain.value < gain.high


def test_the_memory_of_a_round_changes_no_gain():
    found = judge(table_of(TIMES, 1.0))
    assert found.gains["row"].low == pytest.approx(2)
    assert found.gains["row"].high == pytest.approx(2)


def test_a_few_samples_beside_other_work_do_not_decide():
    table = table_of(TIMES, 1.01)
    before = judge(table).gains["row"]
    table.loc[table.index[::11], "time_ms"] *= 3
    after = judge(table).gains["row"]
    assert after.value == pytest.approx(before.value, rel=0.02)
    assert after.high / after.low < 1.5 * before.high / before.low


def errors_of(spread: float, wide: list[str], every: int = 6) -> list[bool]:
    """Whether each of many answers on orders that gain nothing is wrong; some have errors thrice as large.

    After so many rounds as `every` says, only orders that may be the best are timed.
    """
    random, wrong = np.random.default_rng(0), []
    for _ in range(150):
        table = table_of(dict.fromkeys(("given again", *TIMES), 1.0), 1.0, rounds=6)
        wider = np.where(table["ordering"].isin(wide), 3, 1)
        table["time_ms"] *= np.exp(spread * wider * random.normal(size=len(table)))
        first = judge(table[table["round"] < every], 1.0)
        left = {"given", "given again", first.best, *first.equal}
        found = judge(table[(table["round"] < every) | table["ordering"].isin(left)], 1.0)
        wrong.append(found.says == REORDER)
        wrong[-1] |= any(not gain.low <= 1 <= gain.high for gain in found.gains.values())
    return wrong


@pytest.mark.parametrize("wide", tiers.first([["given", "given again"], [], ["row"], ["shuffled"]]))
def test_all_gains_of_an_answer_are_covered_at_all_looks(wide):
    assert np.mean(errors_of(0.05, wide)) < 0.05 / LOOKS + 0.02
    assert np.mean(errors_of(0.05, wide, every=3)) < 0.05 / LOOKS + 0.02


def test_an_order_that_is_no_longer_timed_keeps_its_gain():
    table = table_of(TIMES, 1.01)
    late = table["ordering"].isin(["shuffled", "morton"]) & (table["round"] > 2)
    before, after = judge(table), judge(table[~late])
    assert (after.says, after.best, after.equal) == (before.says, before.best, before.equal)
    gain = after.gains["morton"]
    assert gain.low < 10 / 8 < gain.high
    assert gain.high / gain.low > before.gains["morton"].high / before.gains["morton"].low
    row = after.gains["row"]
    assert row.value == pytest.approx(before.gains["row"].value)


def test_an_order_that_was_slower_and_is_no_longer_timed_is_not_advised_later():
    """The order of the file is slower in the first rounds: gains over it there are larger."""
    table = table_of({"given": 10.0, "row": 5.0, "hilbert": 5.2, "morton": 5.01}, 1.001)
    early = table["round"] < 3
    table.loc[early & (table["ordering"] == "given"), "time_ms"] *= 1.3
    assert judge(table[early]).equal == ("morton",)
    found = judge(table[early | (table["ordering"] != "hilbert")])
    assert found.gains["hilbert"].value > found.gains["row"].value
    assert (found.best, found.equal) == ("row", ("morton",))


def test_one_look_has_a_narrower_interval_than_several():
    table = table_of(TIMES, 1.01)
    one, several = (judge(table.assign(looks=looks)).gains["row"] for looks in (1, LOOKS))
    assert 1 < one.high < several.high
    assert judge(table).gains["row"] == several


def test_the_order_of_the_file_is_the_mean_of_both_its_times():
    table = table_of(TIMES | {"given again": 12.1}, 1.0)
    found = judge(table)
    assert found.gains["row"].value == pytest.approx(math.sqrt(10 * 12.1) / 5)
    assert found.times_ms["given"] == pytest.approx(math.sqrt(10 * 12.1))
    assert found.times_ms["row"] == pytest.approx(5)


def test_runs_have_rounds_of_their_own():
    table = table_of(TIMES)
    both = pd.concat([table.assign(run=0), table.assign(run=1, time_ms=2 * table["time_ms"])])
    assert judge(both).gains["row"].value == pytest.approx(judge(table).gains["row"].value)
    assert judge(both).gains["row"].high < judge(table).gains["row"].high


def test_one_round_has_no_error():
    with pytest.raises(ValueError, match="one round; allowed: two or more"):
        judge(table_of(TIMES, rounds=1))


def test_shuffled_memory_is_never_advised_and_equal_orders_are_named():
    assert judge(table_of(TIMES | {"shuffled": 1.0})).best == "row"
    found = judge(table_of(TIMES, 1.001))
    assert found.equal == ("hilbert",)
    assert list(found.gains) == ["row", "hilbert", "morton", "given", "shuffled"]


def test_the_error_of_the_order_of_the_file_makes_no_others_equal():
    table = table_of(
        {"given": 10.0, "shuffled": 12.0, "row": 5.0, "hilbert": 6.0, "morton": 5.01}, 1.004, rounds=5
    )
    given = table["ordering"] == "given"
    table.loc[given, "time_ms"] *= np.exp(0.2 * np.random.default_rng(2).normal(size=given.sum()))
    found = judge(table)
    assert found.gains["row"].high > 1.2 * found.gains["row"].value
    assert found.equal == ("morton",)


def test_a_table_without_a_baseline_or_a_candidate_is_refused():
    for names in (["given", "shuffled"], ["row"]):
        with pytest.raises(ValueError, match="allowed: given and a candidate or more"):
            judge(table_of({name: 1.0 for name in names}))


def said_of(times=TIMES, what="a walk", **more) -> list[str]:
    costs = dict.fromkeys(times, 18.0)
    return lines(
        judge(table_of(times, 1.001)),
        what=what,
        items=5000,
        costs_ms=costs,
        smallest_gain=1.03,
        rounds=8,
        **more,
    )


def test_the_answer_has_ten_lines_at_most_and_says_all():
    last = Lasting(40.0, 60.0, 200.0, 0.14)
    found = said_of(
        uses=1000, step_ms=20.0, last=last, said="A cutoff.", least_ms=2.5, foreseen="More to say."
    )
    answer = Answer(pd.DataFrame(), found[0], tuple(found[1:]))
    assert len(answer_lines(answer, Path("results/advise/run"))) <= 10
    assert found[0].startswith("REORDER along row: 2.00 (")
    text = " ".join(found)
    for part in (
        "A walk, 5,000 items: ", "along row (one thread, 8 rounds; noise 0 %)",
        "equal to row: hilbert",
        "shuffled 0.83", "pays after 4 uses", "1,000 uses save ", "at best 1.33 times as fast",
        "every 40 to 60 steps", "takes 14 % longer after 200, up to 2.40 times as long if never", "A cutoff.",
        "More to say.", "at most about 2.00 times as fast", NOT_MEASURED,
    ):  # fmt: skip
        assert part in text, part


def test_no_gain_is_said_so():
    found = said_of(TIMES | {"row": 10.5, "hilbert": 10.6, "morton": 10.7})
    assert found[0].startswith("DO NOT REORDER: the best order, row, is 0.95")
    assert "pays" not in " ".join(found)
    never = Lasting(math.inf, math.inf, 300.0, 0.0)
    assert "No loss was found within 300 steps" in " ".join(said_of(last=never))
    assert said_of(what="your function")[-1] == OWN_CODE
    assert "one thread" not in " ".join(said_of(what="your function"))
    assert "is shorter than the time saved here" in said_of(step_ms=4.0)[-1]
