"""Queries: statistics of small tables with known answers, and errors of broken queries."""

import math

import numpy as np
import pandas as pd
import pytest
from hypothesis import given
from hypothesis import strategies as st

from experiments.core.provenance import write_provenance
from experiments.results.gains import STATISTICS, combined
from experiments.results.kept.queries import Query, evaluate

pytestmark = pytest.mark.quick

STUDENT = 4.302652729911275  # of two degrees of freedom, 95 %, from a printed table
DRIFT = (1.0, 5.0, 25.0)  # of a machine, over the rounds of a run


@pytest.fixture
def folder(tmp_path):
    """Folder of runs, with a function that writes a table into one of them."""

    def write(rows: pd.DataFrame | list, name: str = "toy/run"):
        (tmp_path / name).mkdir(parents=True)
        pd.DataFrame(rows).to_parquet(tmp_path / name / "table.parquet")
        write_provenance(tmp_path / name, {"experiment": name.partition("/")[0]})
        return tmp_path

    return write


def query(statistic="median", where="case == 'a'", value="time_ms", run="toy/run", **others):
    run = (run,) if isinstance(run, str) else run
    return Query(run=run, where=where, value=value, statistic=statistic, **others)


def times(runs=(1, 2, 4), drift=DRIFT) -> list:
    """Case b takes 100 times as long as the machine's drift, case a less by the gain of its run."""
    return [
        {"case": case, "run": run, "round": k, "time_ms": 100 * slow / (gain if case == "a" else 1)}
        for run, gain in enumerate(runs)
        for k, slow in enumerate(drift)
        for case in "ab"
    ]


def test_a_gain_is_paired_by_round_and_has_students_interval_over_runs(folder):
    found = evaluate(query("gain", over="case == 'b'"), folder(times()))
    reach = STUDENT * math.log(2) / math.sqrt(3)  # the logarithms of 1, 2 and 4 are log 2 apart
    assert found.value == pytest.approx(2)
    assert (found.low, found.high) == pytest.approx((2 * math.exp(-reach), 2 * math.exp(reach)))
    assert (found.runs, found.support, found.interval) == (3, "3 runs", "95 % over 3 runs")


def test_rounds_are_paired_by_their_number_not_by_their_place(folder):
    rows = pd.DataFrame(times()).sample(frac=1, random_state=0)
    assert evaluate(query("gain", over="case == 'b'"), folder(rows)).value == pytest.approx(2)


def test_a_column_of_independent_values_has_their_median_and_range(folder):
    wrong = ([0, 1], [1, 1], [0, 0, 0, 1])  # of the trees of three scenes
    rows = [{"case": "a", "scene": k, "wrong": one} for k, of in enumerate(wrong) for one in of]
    root = folder(rows)
    found = evaluate(query("mean", value="wrong", unit="scene"), root)
    assert (found.value, found.low, found.high) == (0.5, 0.25, 1)
    assert (found.support, found.interval) == ("3 scenes", "range over 3 scenes")
    assert evaluate(query("mean", value="wrong"), root).support == "one gas"
    with pytest.raises(ValueError, match=r"unit = \['place'\] of .* toy/run; allowed: columns case, scene"):
        evaluate(query(unit="place", value="wrong"), root)


def test_one_run_has_the_range_of_its_rounds_and_says_so(folder):
    rows = [{"case": "a", "run": 0, "round": k, "time_ms": ms} for k, ms in enumerate((3, 1, 8))]
    found = evaluate(query(), folder(rows))
    assert (found.value, found.low, found.high) == (3, 1, 8)
    assert (found.support, found.interval) == ("one run", "range of 3 rounds of one run")


@pytest.mark.parametrize("number", [{"sample": True}, {}], ids=["numbered samples", "samples in order"])
def test_samples_of_an_old_table_are_the_rounds_of_one_run(folder, number):
    rows = [
        {"case": case, "repeat": 0, "time_ms": ms * (2 if case == "b" else 1)}
        | ({"sample": k} if number else {})
        for case in "ab"
        for k, ms in enumerate(DRIFT)
    ]
    found = evaluate(query("gain", over="case == 'b'"), folder(rows))
    assert (found.value, found.low, found.high, found.support) == (2, 2, 2, "one run")


def test_samples_in_order_are_numbered_in_each_group(folder):
    slow = {
        "a": (DRIFT, DRIFT[:2]),
        "b": (DRIFT[:2], DRIFT),
    }  # a has more samples in one group, b in the other
    rows = [
        {"case": case, "repeat": 0, "n": n, "time_ms": ms * (2 if case == "b" else 1)}
        for n in (0, 1)
        for case in "ab"
        for ms in slow[case][n]
    ]
    root = folder(rows)
    for pick in ("lowest", "highest"):
        found = evaluate(query("gain", over="case == 'b'", each=("n",), pick=pick), root)
        assert (found.value, found.low, found.high, found.rounds) == (2, 2, 2, 2)


def test_several_gases_have_their_median_and_range(folder):
    rows = [{"case": "a", "repeat": k, "hit_ratio": h} for k, h in enumerate((0.5, 0.1, 0.2))]
    found = evaluate(query(value="hit_ratio"), folder(rows))
    assert (found.value, found.low, found.high, found.interval) == (0.2, 0.1, 0.5, "range over 3 gases")


def test_times_of_several_gases_of_one_process_are_gases(folder):
    rows = [{"case": "a", "repeat": k, "time_ms": 1.0} for k in range(3)]
    assert evaluate(query(), folder(rows)).support == "3 gases"


def test_runs_in_several_folders_count_each(folder):
    folder([{"case": "a", "repeat": 0, "time_ms": 1.0}], "toy/one")
    root = folder([{"case": "a", "repeat": 0, "time_ms": 4.0}], "toy/two")
    found = evaluate(query(run=("toy/one", "toy/two")), root)
    assert (found.value, found.support) == (pytest.approx(2), "2 runs")


def test_runs_that_are_not_all_above_zero_have_a_range(folder):
    rows = [{"case": "a", "run": k, "round": 0, "lost": float(k)} for k in range(3)]
    found = evaluate(query(value="lost"), folder(rows))
    assert (found.value, found.low, found.high, found.interval) == (1, 0, 2, "range over 3 runs")


def test_words_of_old_tables_are_the_present_ones(folder):
    root = folder([{"memory": "worn", "repeat": 0, "time_ms": 1.0}], "reorder_cost/run")
    assert evaluate(query(where="memory == 'aged'", run="reorder_cost/run"), root).value == 1


def test_each_takes_the_lowest_or_the_highest_group(folder):
    rows = [{"case": "a", "repeat": 0, "n": n, "hit_ratio": 1 / n} for n in (2, 4, 8)]
    root = folder(rows)
    lowest = evaluate(query(value="hit_ratio", each=("n",), pick="lowest"), root)
    highest = evaluate(query(value="hit_ratio", each=("n",), pick="highest"), root)
    assert (lowest.value, lowest.case) == (0.125, "n 8")
    assert (highest.value, highest.case) == (0.5, "n 2")


PLACES = [0, 1, 3, 10, 30, 100, 300]
CURVE = [{"case": "a", "repeat": 0, "at": t, "v": 2.0 ** (-t / 100)} for t in PLACES]
LINE = [{"case": "a", "repeat": 0, "at": t, "v": 5 - 3.0 * t} for t in PLACES]
PAIRS = [
    {"case": c, "repeat": 0, "at": t, "v": v} for c, t, v in (("a", 1, 6.0), ("a", 3, 2.0), ("b", 1, 4.0))
]
SWEEP = [
    {"case": "a", "run": 0, "round": k, "at": at, "v": v * slow}
    for k, slow in enumerate(DRIFT)
    for at, v in ((5, 3.0), (50, 2.0), (500, 2.5))
]
WINDOWS = [  # of a shake: gains of 2, 4 and 4, of which a median drops the first
    {"case": c, "run": 0, "round": k, "v": v}
    for k, pair in enumerate(((4.0, 8.0), (4.0, 16.0), (3.0, 12.0)))
    for c, v in zip("ab", pair, strict=True)
]
TIED = [  # at 50 the mean is the lowest, at 5 the median
    {"case": "a", "run": 0, "round": k, "at": at, "v": v}
    for at, values in ((5, (2.0, 2.0, 7.0)), (50, (3.0, 3.0, 4.0)))
    for k, v in enumerate(values)
]
KNOWN = {  # statistic -> rows, fields of the query, answer
    "median": (PAIRS, {}, 4.0),
    "mean": (PAIRS, {"where": "repeat == 0"}, 4.0),
    "min": (PAIRS, {}, 2.0),
    "max": (PAIRS, {}, 6.0),
    "count": (PAIRS, {}, 2.0),
    "gain": (PAIRS, {"over": "case == 'b'"}, 1.0),
    "share": (PAIRS, {"over": "case == 'b'", "where": "v > 5"}, 1.5),
    "gain of sums": (WINDOWS, {"over": "case == 'b'"}, 36 / 11),
    "gain of medians": (WINDOWS, {"over": "case == 'b'"}, 3.0),
    "part of sums": (WINDOWS, {"over": "case == 'b'"}, 11 / 36),
    "apart": (WINDOWS, {"over": "case == 'b'"}, 4.0),
    "sums over best": (TIED, {"where": "at == 5", "over": "at > 0", "along": "at"}, 11 / 10),
    "weighted mean": (PAIRS, {"along": "at"}, 3.0),
    "slope": (LINE, {"along": "at"}, -3.0),
    "half": (CURVE, {"along": "at"}, 100.0),
    "spread": (PAIRS, {"along": "at"}, 3.0),
    "over best": (SWEEP, {"where": "at == 500", "over": "at > 0", "along": "at"}, 1.25),
    "peak over mean": (PAIRS, {"over": "case != 'c'"}, 1.5),
}


@pytest.mark.parametrize("name", STATISTICS)
def test_every_statistic_has_a_known_answer(folder, name):
    rows, fields, answer = KNOWN[name]
    assert evaluate(query(name, value="v", **fields), folder(rows)).value == pytest.approx(answer, rel=1e-12)
    assert STATISTICS[name].reduce.__doc__


def test_gains_of_windows_use_the_rounds_that_both_have(folder):
    found = evaluate(query("gain of sums", value="v", over="case == 'b' and round > 0"), folder(WINDOWS))
    assert (found.value, found.interval) == (28 / 7, "one run")


@given(st.lists(st.floats(0.001, 0.999), min_size=2, max_size=5))
def test_the_interval_of_a_part_of_a_whole_stays_between_0_and_1(parts):
    found = combined([np.array([part]) for part in parts], is_part=True)
    assert 0 <= found.low <= found.value <= found.high <= 1
    assert min(parts) - 1e-12 <= found.value <= max(parts) + 1e-12


def test_the_interval_of_a_part_is_students_of_its_log_odds(folder):
    rows = [
        {"case": case, "run": run, "round": 0, "v": v}
        for run, part in enumerate((0.5, 0.8))
        for case, v in (("a", part), ("b", 1.0))
    ]
    found = evaluate(query("part of sums", value="v", over="case == 'b'"), folder(rows))
    reach = 12.706204736432095 * math.log(2)  # odds of 1 and 4; t of one degree of freedom, 95 %
    assert found.value == pytest.approx(2 / 3)
    odds = [2 * math.exp(-reach), 2 * math.exp(reach)]
    assert (found.low, found.high) == pytest.approx([x / (1 + x) for x in odds])
    assert found.interval == "95 % over 2 runs"


def test_a_part_of_more_than_the_whole_is_refused(folder):
    with pytest.raises(
        ValueError, match=r"parts = \[3.27.*allowed: .*below 1; take a baseline that contains"
    ):
        evaluate(query("part of sums", where="case == 'b'", value="v", over="case == 'a'"), folder(WINDOWS))


def test_a_half_between_two_places_is_interpolated_over_their_logarithm(folder):
    rows = [{"case": "a", "repeat": 0, "at": t, "v": v} for t, v in ((0, 1.0), (10, 0.75), (1000, 0.25))]
    assert evaluate(query("half", value="v", along="at"), folder(rows)).value == pytest.approx(100)


def test_values_are_columns_or_expressions_of_them(folder):
    rows = [{"case": "a", "repeat": 0, "hits": 0.25, "reads": 8.0}]
    assert evaluate(query(value="(1 - hits) * reads"), folder(rows)).value == 6


@pytest.mark.parametrize(
    ("fields", "message"),
    [
        (
            {"where": "memory == 'c'"},
            r"where = .* on toy/run cannot be evaluated: .*memory.*case, run, round",
        ),
        ({"where": "case == 'c'"}, r"selects no row; allowed: .*case is one of \['a', 'b'\]"),
        ({"where": "case =="}, "cannot be evaluated"),
        ({"value": "time_us"}, r"value = 'time_us' of .* cannot be evaluated"),
        ({"value": "case"}, "allowed: a number in each row"),
        ({"value": "hole"}, "values that are missing; allowed: a number in each row"),
        ({"each": ("n",), "pick": "lowest"}, r"each = \['n'\] of .*; allowed: columns case, run"),
        (
            {"statistic": "gain", "over": "case == 'b' and run == 0", "each": ("run",), "pick": "lowest"},
            "has no row where run 1; allowed: a baseline in each group",
        ),
        ({"statistic": "gain", "over": "case == 'b' and round > 7"}, "selects no row"),
        (
            {
                "statistic": "gain",
                "where": "case == 'a' and round == 0",
                "over": "case == 'b' and round == 1",
            },
            r"rounds = \[1.*allowed: rounds of the other rows, \[0",
        ),
        ({"statistic": "half", "along": "round"}, "allowed: a curve that falls below a half"),
        ({"statistic": "slope", "along": "run * 0"}, "allowed: rows of two values of `along` or more"),
    ],
)
def test_a_broken_query_names_what_is_wrong_and_allowed(folder, fields, message):
    rows = pd.DataFrame(times()).assign(hole=np.nan)
    with pytest.raises(ValueError, match=message):
        evaluate(query(**fields), folder(rows))


def test_a_half_before_the_first_place_is_refused(folder):
    rows = [{"case": "a", "repeat": 0, "at": t, "v": v} for t, v in ((0, 1.0), (10, 0.25))]
    with pytest.raises(ValueError, match="half of the first value is lost before place 10"):
        evaluate(query("half", value="v", along="at"), folder(rows))


@pytest.mark.parametrize(
    ("fields", "message"),
    [
        ({"statistic": "mode"}, "unknown statistic 'mode'; allowed: one of median"),
        ({"statistic": "gain"}, r"over = ''; allowed: one \(statistic 'gain'\)"),
        ({"over": "case == 'b'"}, r"over = .*; allowed: none \(statistic 'median'\)"),
        ({"statistic": "half"}, r"along = ''; allowed: one \(statistic 'half'\)"),
        ({"each": ("n",)}, "pick = ''; allowed: one"),
        ({"pick": "lowest"}, "pick = 'lowest'; allowed: none"),
        ({"each": ("n",), "pick": "best"}, "unknown pick 'best'; allowed: one of lowest, highest"),
        ({"run": ()}, "run"),
        ({"where": ""}, "where = ''; allowed: a str of at least one character"),
    ],
)
def test_a_query_whose_fields_do_not_fit_is_refused(fields, message):
    with pytest.raises(ValueError, match=message):
        query(**fields)


def test_a_missing_run_is_named(tmp_path):
    with pytest.raises(ValueError, match=r"no table.parquet in .*toy/run"):
        evaluate(query(), tmp_path)
