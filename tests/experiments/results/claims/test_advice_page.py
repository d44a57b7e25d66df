"""The page on advice: its numbers are those of the kept run."""

import pytest

from experiments.advice.sets import SETS
from experiments.advised import judged
from tests.experiments.results.claims.test_details import cells, rows_of
from tests.experiments.results.claims.test_sentences import text_of

ADVICE = "results/details/advice.md"


@pytest.mark.parametrize("data", SETS)
def test_a_row_of_advice_is_that_of_its_run(data):
    table = rows_of("advised/cpu", f"data == '{data}'")
    (found,), of_best = judged(table).to_dict("records"), table[table["is_advised"]].iloc[0]
    name = f"{data.replace('_', ' ')}{' *' * found['is_partly_ordered']}"
    low, high = of_best["advised_low"], of_best["advised_high"]
    shuffled = table.set_index("ordering")["gain"]["shuffled"]
    assert cells(ADVICE, name) == [
        f"{of_best['use']}, {of_best['library']}", found["says"].lower(), found["order"],
        f"{found['advised']:.2f} ({low:.2f} to {high:.2f})", f"{found['gain']:.2f}", f"{found['best']:.2f}",
        f"{1 / shuffled:.2f}",
    ]  # fmt: skip


def test_what_is_said_of_advice_is_counted_in_its_run():
    found, says = judged(rows_of("advised/cpu", "round >= 0")), text_of(ADVICE)
    right, open_ = (found["is_right"] == True).sum(), found["is_right"].isna().sum()  # noqa: E712
    assert f"**Right in {right}, open in {open_}, wrong in {len(found) - right - open_}.**" in says
    assert found["is_best"].all()
    assert f"in all {len(found)}; the gain within 15 % in {found['is_near'].sum()}.**" in says
    partly = found[found["is_partly_ordered"]]
    right, by_rule = ((partly[name] == True).sum() for name in ("is_right", "rule_is_right"))  # noqa: E712
    assert f"it is right in {right} and open in {partly['is_right'].isna().sum()}.**" in says
    assert f"is right in {by_rule} of them, wrong in {len(partly) - by_rule}." in says
