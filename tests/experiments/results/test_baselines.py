"""The words for what is compared, and the ages that stand beside them in summaries."""

import numpy as np
import pandas as pd
import pytest

from experiments import reorder_cost, timing
from experiments.results import baselines
from experiments.results.baselines import aged, aged_by, fresh, memory_of, reordered_every, with_ages

pytestmark = pytest.mark.quick


def test_memory_is_named_by_its_age():
    assert aged(20000) == "aged (20000 steps)"
    assert aged_by(0.1) == "aged (0.1 d)"
    assert fresh(5) == "fresh (5 steps)"
    assert reordered_every(500) == "reordered every 500"


@pytest.mark.parametrize(
    ("ordering", "age", "every", "message"),
    [
        ("shuffled", None, 500, "shuffled"),
        ("lattice", 40, None, "aged (40 steps)"),
        ("aged", 40.0, 8, "aged (40 steps)"),
        ("hilbert", 6, 500, "fresh (6 steps)"),
        ("hilbert", 500, 500, "fresh (500 steps)"),  # 499 steps and the one that is not timed: no reorder
        ("hilbert", 501, 500, "reordered every 500"),
        ("hilbert", 101, None, "fresh (101 steps)"),
        ("hilbert", np.nan, 500, ""),
    ],
)
def test_an_order_is_fresh_until_it_is_reordered_again(ordering, age, every, message):
    assert memory_of(ordering, age, every) == message


def test_a_summary_has_the_largest_age_of_each_case():
    table = pd.DataFrame(
        {"n": 8, "ordering": ["shuffled", "aged", "aged", "row"], "age_steps": [None, 20, 30, 6]}
    )
    found = with_ages(table[["n", "ordering"]].drop_duplicates(), table, ["n", "ordering"])
    assert found["memory"].tolist() == ["shuffled", "aged (30 steps)", "fresh (6 steps)"]
    assert found["age_steps"].fillna(-1).tolist() == [-1, 30, 6]
    kept = table.assign(reorder_every=5)
    found = with_ages(kept[["ordering"]].drop_duplicates(), kept, ["ordering"])
    assert found["memory"].tolist()[-1] == "reordered every 5"
    assert "reorder_every" not in found


def test_a_table_that_tells_no_ages_has_a_summary_without():
    found = pd.DataFrame({"ordering": ["row"]})
    assert with_ages(found, found, ["ordering"]) is found


def test_the_experiments_share_the_word_for_aged_memory():
    assert timing.AGED == reorder_cost.AGED == baselines.AGED
