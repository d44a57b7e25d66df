"""Advice beside the times of users' code: what is right, open and wrong."""

import math

import numpy as np
import pandas as pd
import pytest

from experiments.advised import answer, error_of, judged


def rows_of(says: str, gains: dict[str, float], advised: str, error: float = 1.02, **more) -> pd.DataFrame:
    """Rows of a data set, with the gains of the user's code; the advice foretells those."""
    common = {"data": "a", "run": 0, "says": says, "floor": error, "is_partly_ordered": False} | more
    return pd.DataFrame([
        common | {"ordering": name, "gain": gain, "is_advised": name == advised, "advised_gain": 1.1 * gain}
        for name, gain in {"given": 1.0, **gains}.items()
    ])  # fmt: skip


@pytest.mark.parametrize(("says", "row", "hilbert", "error", "right"), [
    ("REORDER", 1.5, 1.2, 1.02, True),
    ("REORDER", 1.02, 1.5, 1.02, False),  # another order would have gained
    ("DO NOT REORDER", 0.9, 1.02, 1.02, True),
    ("DO NOT REORDER", 0.9, 1.2, 1.02, False),
    ("DO NOT REORDER", 0.9, 1.2, 1.3, True),  # not more than the error
    ("CANNOT TELL", 1.5, 1.2, 1.02, None),
])  # fmt: skip
def test_advice_is_judged_by_the_order_that_is_advised(says, row, hilbert, error, right):
    found = judged(rows_of(says, {"shuffled": 0.5, "row": row, "hilbert": hilbert}, "row", error)).iloc[0]
    assert found["is_right"] is right or found["is_right"] == right
    assert found["is_best"] == (hilbert <= row * max(1.05, error))
    assert found["is_near"]
    assert found["best"] == max(row, hilbert)


@pytest.mark.parametrize(("shuffled", "row", "right"), [
    (0.9, 1.5, True), (0.9, 0.9, False), (0.5, 0.9, True), (0.5, 1.5, False),
])  # fmt: skip
def test_the_rule_reorders_what_is_hardly_faster_than_shuffled(shuffled, row, right):
    assert (
        judged(rows_of("REORDER", {"shuffled": shuffled, "row": row}, "row"))["rule_is_right"].item() == right
    )


def test_each_run_of_a_data_set_is_judged_and_counted():
    table = pd.concat([
        rows_of("REORDER", {"shuffled": 0.5, "row": 1.5}, "row"),
        rows_of("REORDER", {"shuffled": 0.5, "row": 0.5}, "row", run=1),
        rows_of("CANNOT TELL", {"shuffled": 0.9, "row": 1.5}, "row", data="b", is_partly_ordered=True),
    ])  # fmt: skip
    assert len(judged(table)) == 3
    assert answer(table).sentence == (
        "Of 3 data sets the advice is right in 1, open in 1, wrong in 1; its order is within 5 % of the "
        "best, or the noise, in 3, its gain within 15 % in 3. Of 1 "
        "partly in order it is right in 0, the rule in 1."
    )


def test_the_error_of_a_gain_is_that_of_two_medians():
    random = np.random.default_rng(0)
    times = [{"order": order, "round": k, "cpu_ms": math.exp(0.03 * random.normal())}
             for order in range(400) for k in range(9)]  # fmt: skip
    medians = pd.DataFrame(times).groupby("order")["cpu_ms"].median().to_numpy()
    ratios = np.abs(np.log(medians[::2] / medians[1::2]))
    assert math.log(error_of(pd.DataFrame(times))) == pytest.approx(np.quantile(ratios, 0.95), rel=0.15)
    assert error_of(pd.DataFrame(times).query("round == 0")) == math.inf
