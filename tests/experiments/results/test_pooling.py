"""Spreads pooled over the cases of a table: which cases, which of them outlie, and which interval counts."""

import numpy as np
import pandas as pd
import pytest
from scipy import stats

from experiments.results.estimate import Estimate, Spread, reach
from experiments.results.gains import estimates, gains, over_runs
from experiments.results.pooling import pooled, siblings
from experiments.results.selection import Selection

pytestmark = pytest.mark.quick
NOISE = {"a": 0.001, "b": 0.02, "c": 0.03, "d": 0.025}  # of the logarithms of a case
RUNS = np.array([-1.0, 0.0, 1.0])  # whose standard deviation is 1


def rows(**columns) -> pd.DataFrame:
    """Three runs of four orders, and of shuffled memory that repeats exactly; one round each."""
    times = {"shuffled": 8 * np.ones(3)} | {name: 4 * np.exp(sd * RUNS) for name, sd in NOISE.items()}
    found = [
        {"n": 100, "ordering": name, "run": run, "round": 0, "case": 0, "time_ms": time}
        for name, of_runs in times.items()
        for run, time in enumerate(of_runs)
    ]
    return pd.DataFrame(found).assign(**columns)


def half(estimate) -> float:
    return float(np.log(estimate.high / estimate.low) / 2)


def expected(*sds: float) -> float:
    """Student's half-width of a mean of three runs, by a spread pooled over cases of three runs each."""
    sd, freedom = np.sqrt(np.mean(np.square(sds))), 2 * len(sds)
    return float(stats.t.ppf(0.975, freedom) * sd / np.sqrt(3))


def time_of(name: str, table: pd.DataFrame) -> Estimate:
    return estimates(table, "time_ms", where=f"n == 100 and ordering == {name!r}")[0][1]


def gain_of(name: str, table: pd.DataFrame) -> Estimate:
    where, over = (f"n == 100 and ordering == {one!r}" for one in (name, "shuffled"))
    return estimates(table, "time_ms", "gain", where, over)[0][1]


def test_runs_that_agree_by_luck_have_the_interval_of_the_table():
    own, pool = expected(0.001), expected(*NOISE.values())
    assert own < pool
    assert half(gain_of("a", rows())) == pytest.approx(pool)
    assert half(time_of("a", rows())) == pytest.approx(pool)


def test_a_case_that_is_noisier_than_the_table_keeps_its_own_interval():
    assert half(gain_of("c", rows())) == pytest.approx(expected(0.03))
    assert expected(0.03) > expected(*NOISE.values())


def test_both_forms_of_the_engine_have_the_same_intervals():
    table = over_runs(rows(), ["n", "ordering"], "time_ms").set_index("ordering")
    over = gains(rows(), ["n"], "ordering", "shuffled").set_index("ordering")
    for name in NOISE:
        for frame, column, answer in ((table, "time_ms", time_of(name, rows())),
                                      (over, "gain", gain_of(name, rows()))):  # fmt: skip
            ends = frame.loc[name, [f"{column}_low", f"{column}_high"]]
            assert list(ends) == pytest.approx([answer.low, answer.high], rel=1e-12)


@pytest.mark.parametrize(
    "other", [{"n": 200}, {"cache_MB": 5.0}, {"place": "host"}, {"strategy": "threads"}, {"part": "force"}]
)
def test_another_size_device_or_part_is_no_measure(other):
    usual = {name: {"n": 100, "cache_MB": 1.0}.get(name, "usual") for name in other}
    table = rows(**usual)
    table.loc[table["ordering"].isin(["b", "c", "d"]), list(other)] = list(other.values())
    where = " and ".join(f"{name} == {value!r}" for name, value in usual.items())
    found = estimates(table, "time_ms", where=f"{where} and ordering == 'a'")[0][1]
    assert half(found) == pytest.approx(expected(0.001))


def test_an_outlying_case_is_no_measure_of_the_others():
    variances = {"a": 0.01, "b": 0.012, "c": 0.011, "d": 0.9}
    found = pooled(("pool", sd * RUNS) for sd in variances.values())["pool"]
    assert found.freedom == 6
    assert found.sd == pytest.approx(np.sqrt(np.mean(np.square([0.01, 0.012, 0.011]))))
    limit = stats.f.ppf(1 - 0.01 / 4, 2, 6)
    for factor, freedom in ((0.99, 8), (1.01, 6)):
        sds = [1.0, 1.0, 1.0, np.sqrt(limit * factor)]
        assert pooled(("pool", sd * RUNS) for sd in sds)["pool"].freedom == freedom


def test_runs_that_are_equal_are_no_spread_and_get_none():
    assert pooled([("pool", np.zeros(3)), ("pool", RUNS)]) == {"pool": Spread(1.0, 2)}
    exact = time_of("shuffled", rows())
    assert (exact.low, exact.high) == pytest.approx((8, 8))


def test_second_measurements_and_a_baseline_over_itself_are_left_out_of_gains():
    again = rows().query("ordering == 'c'").assign(ordering="shuffled again")
    assert half(gain_of("a", pd.concat([rows(), again]))) == pytest.approx(expected(*NOISE.values()))


def test_a_rule_of_alternatives_takes_the_wider_at_its_level():
    spreads = (Spread(0.01, 2), Spread(0.018, 40))
    assert reach(spreads, 3) == pytest.approx(stats.t.ppf(0.975, 2) * 0.01 / np.sqrt(3))
    assert reach(spreads[1:], 3) < reach(spreads, 3)
    own = Estimate(1.06, 1.0, 1.12, 3, "run", 1, False, spreads=(Spread(0.0222, 2),))
    many = Estimate(1.06, 1.03, 1.09, 3, "run", 1, False, spreads=(Spread(0.0245, 40),))
    assert many.above(1.02)
    assert many.above(1.02, of=2)
    assert not own.above(0.995, of=2)


def test_a_query_is_pooled_over_what_it_says_of_its_own_case():
    where = "(n == 8 and search == 'linked' and not fused and (x == x or y)) and ordering == 'row'"
    over = where.replace("row", "shuffled")
    found = siblings(Selection("time_ms", where, over, "", ("speed",), ()))
    assert found.where == "(n == 8) and (x == x or y)"
    assert found.over == "(n == 8) and (ordering == 'shuffled') and (x == x or y)"
    assert (found.each, found.labels) == (("fused", "ordering", "search", "speed"), ("ordering",))
    of_speed = "what == 'x' and speed == 2"
    best = siblings(Selection("time_ms", f"{of_speed} and interval == 500", of_speed, "", (), ()))
    assert best.where == "(interval == 500) and (what == 'x')"
    assert (best.over, best.each) == ("(what == 'x')", ("speed",))
