"""Claims of [cavity] in words, and gains of memory orders over rows."""

import pandas as pd
import pytest

from experiments.results import cavity_claims
from experiments.results.baselines import again


def table(times: dict, runs: int = 3, n: int = 41) -> pd.DataFrame:
    """Make a table of times: a round of every run."""
    rows = []
    for run in range(runs):
        for name, ms in times.items():
            layout = "structs" if "structs" in name else "arrays"
            order = "hilbert" if "hilbert" in name else "row"
            row = {"n": n, "precision": "float64", "run": run, "round": 0, "name": name}
            row |= {"strategy": name.split(", ")[0], "layout": layout, "order": order}
            rows.append(row | {"time_ms": ms * (1 + 0.01 * run)})
    return pd.DataFrame(rows)


SMALL = {"numpy": 10.0, "serial, structs": 2.0, "serial, arrays": 1.0, "threads, structs": 4.0}
LARGE = {"serial, structs": 2.0, "threads, structs": 4.0}


def verdicts(cavities: pd.DataFrame) -> list[tuple]:
    """The claims on some cavities: claim, the two ways, points a side, and the verdict."""
    found = cavity_claims.with_verdicts(cavity_claims.judged(cavities))
    return list(found[["claim", "name", "over", "n", "verdict"]].itertuples(index=False, name=None))


def test_each_claim_is_judged_at_its_sizes_beside_the_gain_of_the_source():
    both = pd.concat([table(SMALL), table(LARGE, n=1000)])
    assert verdicts(both) == [
        ("F1", "serial, structs", "numpy", 41, "confirmed"),
        ("F1", "threads, structs", "serial, structs", 41, "confirmed"),
        ("F2", "threads, structs", "serial, structs", 1000, "refuted"),
        ("F3", "serial, arrays", "serial, structs", 41, "confirmed"),
    ]
    found = cavity_claims.judged(both)
    assert found["gain"].tolist() == pytest.approx([5, 0.5, 0.5, 2])
    assert found["source_gain"].dropna().tolist() == [2.5, 1.09]


def test_a_claim_is_not_judged_at_another_size():
    assert verdicts(table(LARGE, n=65)) == []


def test_no_difference_and_one_run():
    same = table({"numpy": 2.0, "serial, structs": 2.0})
    assert [word for *_, word in verdicts(same)] == ["no difference"]
    single = {word for *_, word in verdicts(table(SMALL, runs=1))}
    assert single == {"no verdict from one run (take --runs 3 or more)"}


def test_noise_is_of_the_processor_that_both_ways_run_on():
    times = {"serial, structs": 2.0, "serial, arrays": 1.0, "cuda, structs": 0.6, "cuda, arrays": 0.5}
    both = table(times | {again("serial, arrays"): 1.3, again("cuda, arrays"): 0.505})
    found = cavity_claims.judged(both).set_index(["claim", "name", "over"])
    floors = found["noise_floor"]
    assert floors["F3", "serial, arrays", "serial, structs"] == pytest.approx(1.3)
    assert floors["F1", "cuda, structs", "serial, structs"] == pytest.approx(1.3)
    assert floors["F3", "cuda, arrays", "cuda, structs"] == pytest.approx(1.01)
    assert found["difference"].tolist() == ["faster"] * 3
    turned = table(times | {"cuda, arrays, hilbert": 1.0, again("cuda, arrays"): 0.505})
    (row,) = cavity_claims.order_gains(turned).to_dict("records")
    assert row["noise_floor"] == pytest.approx(1.01)
    assert row["gain"] == pytest.approx(0.5)


def test_orders_are_compared_with_rows_of_the_same_strategy_and_layout():
    times = SMALL | {"serial, structs, hilbert": 8.0, "serial, arrays, hilbert": 3.0}
    both = table(times | {again("serial, arrays"): 1.1})
    found = cavity_claims.order_gains(both).set_index("name")
    assert found["over"].to_dict() == {
        "serial, structs, hilbert": "serial, structs",
        "serial, arrays, hilbert": "serial, arrays",
    }
    assert found.loc["serial, structs, hilbert", "gain"] == pytest.approx(1 / 4)
    assert found.loc["serial, arrays, hilbert", "gain"] == pytest.approx(1 / 3)
    assert found["noise_floor"].tolist() == pytest.approx([1.1, 1.1])
    assert cavity_claims.order_gains(table(SMALL)).empty
