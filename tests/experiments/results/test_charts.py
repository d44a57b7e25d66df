"""Charts as data: their numbers, their titles, and what is refused."""

import pandas as pd
import pytest

from experiments.results import gains as statistics
from experiments.results.answers import Comparison, filled, percent, word
from experiments.results.charts import (
    DOTS,
    FIRST,
    GAINS,
    LINES,
    MIDDLE,
    ORDERS,
    PARTICLES,
    Chart,
    Points,
    Scale,
    Summary,
    estimates,
    facts,
)

pytestmark = pytest.mark.quick
BASELINES = ("shuffled", "lattice")
TIMES = {"shuffled": 6.0, "lattice": 4.0, "row": 2.0, "hilbert": 3.0, "row again": 2.2}
GAIN = Points("time_ms", over=BASELINES, compared="ordering")


@pytest.fixture
def table() -> pd.DataFrame:
    """Times of three runs and two rounds at two sizes; the larger one takes twice as long for a particle."""
    return pd.DataFrame(
        {"n": n, "filling_fraction": 0.2, "fused": True, "ordering": name, "run": run, "round": k,
         "time_ms": ms * n * n * (1 + 0.1 * run + 0.01 * k), "hits": ms / 10, "age_steps": 5.0}
        for n in (1, 2)
        for name, ms in TIMES.items()
        for run in range(3)
        for k in range(2)
    )  # fmt: skip


def chart(**changes) -> Chart:
    given = {"name": "gain", "title": "{best} is {value} times as fast as {over}", "form": DOTS,
             "points": GAIN, "names": ORDERS, "values": GAINS, "panels": "n"}  # fmt: skip
    return Chart(**given | changes)


def test_gains_of_points_are_those_of_the_engine_to_the_last_bit(table):
    found = estimates(table, GAIN, ("n", "ordering"))
    assert list(dict.fromkeys(found["over"])) == list(BASELINES)
    for baseline in BASELINES:
        own = found[found["over"] == baseline].reset_index(drop=True)
        wanted = statistics.gains(table, ["n"], "ordering", baseline)
        assert own["value"].tolist() == wanted["gain"].tolist()
        assert own["value_high"].tolist() == wanted["gain_high"].tolist()
        assert own["noise_floor"].tolist() == wanted["noise_floor"].tolist()
    assert "row again" not in set(found["ordering"])


def test_times_are_scaled_after_they_were_averaged(table):
    plain = estimates(table, Points("time_ms", "ordering == 'row'"), ("n",))
    scaled = estimates(table, Points("time_ms", "ordering == 'row'", scale="1e6 / n"), ("n",))
    assert (scaled["value"] == plain["value"] * (1e6 / plain["n"])).all()
    assert (scaled["value_low"] < scaled["value"]).all()


@pytest.mark.parametrize(("statistic", "value"), [(FIRST, 24.0), (MIDDLE, 24.0 * 1.105)])
def test_statistics_without_an_interval(table, statistic, value):
    found = estimates(table, Points("time_ms", "ordering == 'shuffled' and n == 2", statistic), ("ordering",))
    assert found["value"].tolist() == found["value_high"].tolist() == [pytest.approx(value)]


def test_gases_have_a_median_and_a_range():
    gases = pd.DataFrame({"x": 1, "repeat": range(3), "hits": [0.1, 0.5, 0.2]})
    (row,) = estimates(gases, Points("hits"), ("x",)).to_dict("records")
    assert (row["value"], row["value_low"], row["value_high"]) == (0.2, 0.1, 0.5)
    assert row["of_gases"]


def test_any_statistic_of_the_engine_is_one_of_a_chart(table):
    best = Points(
        "time_ms", "ordering in ('row', 'hilbert')", "over best", compared="ordering", along="ordering"
    )
    found = estimates(table, best, ("n", "ordering"))
    times = table[table["n"] == 2].groupby("ordering")["time_ms"].first()
    wanted = {name: times[name] / min(times["row"], times["hilbert"]) for name in ("row", "hilbert")}
    values = found[found["n"] == 2].set_index("ordering")["value"]
    assert values.to_dict() == pytest.approx(wanted)
    assert set(found["ordering"]) == {"row", "hilbert"}  # no second measurement


def test_a_baseline_that_was_not_measured_gives_no_point(table):
    rows = table[table["ordering"].isin(["row", "hilbert"])]
    assert estimates(rows, GAIN, ("n", "ordering")).empty


@pytest.mark.parametrize(
    ("points", "message"),
    [
        (Points("time"), "'time' where '' cannot be evaluated.*allowed: expressions of n, "),
        (Points("time_ms", "m > 1"), "where 'm > 1' cannot be evaluated"),
        (
            Points("time_ms", statistic="slopes"),
            "unknown statistic 'slopes'; allowed: one of .*median",
        ),
    ],
)
def test_points_that_a_table_does_not_have_are_refused(table, points, message):
    with pytest.raises(ValueError, match=message):
        estimates(table, points, ("n", "ordering"))


@pytest.mark.parametrize(
    ("make", "error", "message"),
    [
        (lambda: Points("time_ms", over=("a",)), ValueError, "compared = ''; allowed: the column"),
        (lambda: Points("time_ms", over="shuffled", compared="x"), TypeError, "over = 'shuffled'"),
        (lambda: Scale("x", log=3), ValueError, "log = 3; allowed: 0 .*the base 2 or 10"),
        (lambda: Scale("x", log=True), ValueError, "log = True"),
        (lambda: chart(form="pie"), ValueError, "unknown form 'pie'; allowed: one of dots, lines, bars"),
        (lambda: chart(names=GAINS), ValueError, "names .*a Scale with a column"),
        (lambda: chart(points=()), ValueError, "points .*one or more"),
        (lambda: chart(points="time_ms"), TypeError, "points"),
        (lambda: chart(files="n"), TypeError, "files"),
    ],
)
def test_charts_that_cannot_be_are_refused(make, error, message):
    with pytest.raises(error, match=message):
        make()


def test_a_title_has_the_numbers_of_the_largest_case(table):
    made = chart()
    words = facts(made, table, estimates(table, GAIN, made.each))
    assert filled("{best} {worst} {over} {n} {filling_fraction} {fused}", words) == (
        "row lattice shuffled 2 20 % fused"
    )
    assert words["value"] == "3.00"
    assert filled(made.title, words) == "row is 3.00 times as fast as shuffled"


def test_the_best_of_times_is_the_least(table):
    made = chart(points=Points("time_ms"), form=LINES, names=PARTICLES, series="ordering", panels="")
    words = facts(made, table, estimates(table, made.points, made.each))
    assert (words["best"], words["worst"], words["n"], words["times"]) == ("row", "shuffled", "2", "3.00")


def test_a_title_with_an_unknown_field_is_refused():
    with pytest.raises(ValueError, match="no word for wurst; allowed: fields best"):
        filled("{wurst}", {"best": "row"})


@pytest.mark.parametrize(
    ("column", "value", "text"),
    [
        ("filling_fraction", 0.05, "5 %"),
        ("n", 2097152, "2,097,152"),
        ("speed", 0.01, "0.01"),
        ("fused", False, "not fused"),
        ("name", "verlet, row", '"verlet, row"'),
    ],
)
def test_values_in_words(column, value, text):
    assert word(column, value) == text


def test_a_summary_has_times_gains_ages_and_more_columns(table):
    made = Summary(("n",), "ordering", BASELINES, ages=True,
                   more={"hits": "median", "absent": "max", "ns": "1e6 * value / n"})  # fmt: skip
    found = made.table(table).set_index(["n", "ordering"])
    assert found["gain_over_shuffled"].dropna().round(6).loc[1].to_dict() == {
        "lattice": 1.5, "row": 3.0, "hilbert": 2.0,
    }  # fmt: skip
    assert found.loc[(1, "row"), ["hits", "memory"]].tolist() == [0.2, "fresh (5 steps)"]
    assert found.loc[(2, "row"), "ns"] == 1e6 * found.loc[(2, "row"), "time_ms"] / 2
    assert "absent" not in found
    assert not found.index.isin([(1, "row again")]).any()


def test_the_names_of_baselines_in_columns_can_be_chosen(table):
    found = Summary(("n",), "ordering", lambda table: {"shuffled": "none"}).table(table)
    assert "gain_over_none" in found
    assert "gain_over_shuffled" not in found


def test_an_answer_that_compares_is_data(table):
    answer = Comparison("ordering", BASELINES, "n", "At {n} ({filling_fraction})", "run < 2", ("fused",))
    found = answer(table)
    assert found.sentence.startswith("At 1 (20 %), row is 3.00 times as fast as shuffled")
    assert list(found.table) == ["1", "2"]
    with pytest.raises(ValueError, match="no word for size"):
        Comparison("ordering", BASELINES, "n", "At {size}", heading=percent)(table)
