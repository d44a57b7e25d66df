"""The pages on advice: their numbers are those of the kept runs."""

import pandas as pd
import pytest

from experiments.advice.sets import SETS
from experiments.advice.verdict import DO_NOT, SMALLEST_GAIN
from experiments.advised import judged
from tests.experiments.results.claims.test_details import cells, rows_of
from tests.experiments.results.claims.test_sentences import text_of

KINDS = ("particles", "clouds", "cells", "edges", "matrices", "images", "traces")
PAGES = {
    "results/details/advice.md": ("advised/cpu", "advised/cpu_matrices", "advised/cpu_meshes"),
    "results/details/advice_h200.md": tuple(f"advised/h200_{kind}" for kind in KINDS),
}


def rows_on(page: str) -> pd.DataFrame:
    """The rows of the runs of a page, of the last one that has a set, in the order of the sets."""
    table = pd.concat([rows_of(run, "round >= 0").assign(of=run) for run in PAGES[page]], ignore_index=True)
    table = table[table["of"] == table.groupby("data")["of"].transform("last")]
    return table.assign(turn=table["data"].map({name: k for k, name in enumerate(SETS)})).sort_values("turn")


@pytest.mark.parametrize("data", SETS)
@pytest.mark.parametrize("page", PAGES)
def test_a_row_of_advice_is_that_of_its_run(page, data):
    table = rows_on(page).query(f"data == '{data}'")
    (found,), of_best = judged(table).to_dict("records"), table[table["is_advised"]].iloc[0]
    name = f"{data.replace('_', ' ')}{' *' * found['is_partly_ordered']}"
    low, high = of_best["advised_low"], of_best["advised_high"]
    shuffled = table.set_index("ordering")["gain"]["shuffled"]
    assert cells(page, name) == [
        f"{of_best['use']}, {of_best['library']}", found["says"].lower(), found["order"],
        f"{found['advised']:.2f} ({low:.2f} to {high:.2f})", f"{found['gain']:.2f}", f"{found['best']:.2f}",
        f"{1 / shuffled:.2f}",
    ]  # fmt: skip


@pytest.mark.parametrize("page", PAGES)
def test_what_is_said_of_advice_is_counted_in_its_runs(page):
    found, says = judged(rows_on(page)), text_of(page)
    assert len(found) == len(SETS)
    right, open_ = (found["is_right"] == True).sum(), found["is_right"].isna().sum()  # noqa: E712
    assert f"**Right in {right}, open in {open_}, wrong in {len(found) - right - open_}.**" in says
    assert found["is_best"].all()
    assert f"in all {len(found)}; the gain within 15 % in {found['is_near'].sum()}.**" in says
    partly = found[found["is_partly_ordered"]]
    right, by_rule = ((partly[name] == True).sum() for name in ("is_right", "rule_is_right"))  # noqa: E712
    assert f"it is right in {right} and open in {partly['is_right'].isna().sum()}.**" in says
    assert f"is right in {by_rule} of them, wrong in {len(partly) - by_rule}." in says
    advised_not = found[found["says"] == DO_NOT]
    assert (advised_not["best"] < SMALLEST_GAIN).all()
    assert f"the largest best of them is {advised_not['best'].max():.2f}" in says
