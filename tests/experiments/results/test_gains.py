"""Gains: ratios within a round, medians within a run, Student's interval over runs."""

from dataclasses import replace

import numpy as np
import pandas as pd
import pytest
from scipy import stats

from experiments.results import baselines, gains, reliability
from experiments.results.baselines import again
from experiments.results.selection import RUN

BY = ["n"]


def rows(times: dict[str, list[list[float]]], n: int = 8) -> pd.DataFrame:
    """A table of name -> runs -> rounds."""
    return pd.DataFrame(
        {"n": n, "ordering": name, "run": run, "round": k, "time_ms": ms}
        for name, runs in times.items()
        for run, rounds in enumerate(runs)
        for k, ms in enumerate(rounds)
    )


def over_shuffled(times, **columns):
    return gains.gains(rows(times, **columns), BY, "ordering", "shuffled")


def test_a_gain_is_the_ratio_of_one_round():
    # the machine is twice as slow in every second round, for both: no round's ratio sees it
    found = over_shuffled({"shuffled": [[4, 8, 4, 8, 4]], "row": [[2, 4, 2, 4, 2]]})
    assert found.loc[0, "gain_median_of_rounds"] == 2
    assert found.loc[0, "gain_lowest_round"] == found.loc[0, "gain_highest_round"] == 2
    assert found.loc[0, "over"] == "shuffled"


def test_one_run_has_no_interval_and_no_verdict():
    found = over_shuffled({"shuffled": [[4, 4, 4]], "row": [[1, 2, 4]]})
    assert {"gain", "gain_low", "difference"}.isdisjoint(found.columns)
    assert found[
        ["gain_median_of_rounds", "gain_lowest_round", "gain_highest_round"]
    ].to_numpy().tolist() == [[2, 1, 4]]
    assert gains.caption(found) == "median and range over the rounds of one run"


def test_windows_of_a_run_are_averaged_before_gains():
    times = {"shuffled": [[8, 16, 12], [8, 16, 12]], "row": [[4, 4, 3], [4, 4, 3]]}  # gains of 2, 4 and 4
    table = rows(times).assign(age_steps=[1, 2, 3] * 4)
    found = gains.windows_averaged(table, [*BY, "ordering"])
    assert found[["round", "windows", "age_steps"]].to_numpy().tolist() == [[0, 3, 3]] * 4
    assert gains.gains(found, BY, "ordering", "shuffled").loc[0, "gain"] == pytest.approx(36 / 11)
    one = gains.gains(found[found["run"] == 0], BY, "ordering", "shuffled")
    assert gains.caption(one) == "one run"


def test_a_caption_tells_how_many_runs_there_are():
    three, two = (over_shuffled({"shuffled": [[4, 4]] * n, "row": [[1, 2]] * n}) for n in (3, 2))
    assert gains.caption(three) == "mean over 3 runs and its 95 % interval"
    assert gains.caption(pd.concat([three, two])) == "mean over 2 to 3 runs and its 95 % interval"


def test_the_interval_is_students_of_the_logarithms_over_runs():
    own = [[4.0, 4.4, 3.9], [4.1, 4.0, 4.2], [3.8, 4.0, 4.1]]
    other = [[2.0, 2.0, 2.1], [2.2, 2.0, 2.1], [1.7, 1.9, 2.0]]
    found = over_shuffled({"shuffled": own, "row": other}).iloc[0]
    medians = [np.median(np.divide(a, b)) for a, b in zip(own, other, strict=True)]
    low, high = stats.t.interval(0.95, 2, np.mean(np.log(medians)), stats.sem(np.log(medians)))
    assert found["gain"] == pytest.approx(stats.gmean(medians))
    assert (found["gain_low"], found["gain_high"]) == pytest.approx((np.exp(low), np.exp(high)))
    assert (found["runs"], found["rounds"]) == (3, 3)


def test_rounds_of_a_run_do_not_count_as_independent():
    few = {"shuffled": [[4.0] * 3, [4.2] * 3], "row": [[2.0] * 3, [2.0] * 3]}
    many = {"shuffled": [[4.0] * 99, [4.2] * 99], "row": [[2.0] * 99, [2.0] * 99]}
    ends = [over_shuffled(times)[["gain_low", "gain_high"]].to_numpy() for times in (few, many)]
    assert np.array_equal(*ends)


def test_a_difference_within_the_noise_floor_is_none():
    times = {"shuffled": [[4.0], [4.0], [4.0]], again("shuffled"): [[4.0], [3.6], [4.1]]}
    times["row"] = [
        [3.80],
        [3.81],
        [3.79],
    ]  # 5 % faster in each run, but one case differs by 11 % from itself
    found = over_shuffled(times)
    assert found["ordering"].tolist() == ["row"]
    assert found.loc[0, "noise_floor"] == pytest.approx(4 / 3.6)
    assert found.loc[0, "gain_low"] > 1
    assert found.loc[0, "difference"] == "no difference"


def test_the_noise_floor_counts_a_twin_that_is_slower_too():
    found = over_shuffled({"shuffled": [[4.0]], again("shuffled"): [[5.0]], "row": [[2.0]]})
    assert found.loc[0, "noise_floor"] == pytest.approx(1.25)


@pytest.mark.parametrize(
    ("gain", "low", "high", "floor", "word"),
    [
        (2.0, 1.9, 2.1, 1.05, "faster"),
        (0.5, 0.4, 0.6, 1.05, "slower"),
        (1.1, 0.9, 1.3, 1.0, "no difference"),  # the interval holds 1
        (1.04, 1.03, 1.05, 1.05, "no difference"),  # within the noise
        (1.04, 1.03, 1.05, np.nan, "faster"),  # never measured twice
        (1.04, np.nan, np.nan, 1.0, ""),
    ],
)
def test_verdicts(gain, low, high, floor, word):
    assert gains.verdict(gain, low, high, floor) == word


def test_the_noise_floor_of_one_case_holds_for_gains_over_all():
    times = {"shuffled": [[4.0]], again("shuffled"): [[5.0]], "lattice": [[3.0]], "row": [[2.0]]}
    found = gains.gains(rows(times), BY, "ordering", "lattice")
    assert found["noise_floor"].tolist() == pytest.approx([1.25, 1.25])


def test_groups_have_noise_floors_of_their_own():
    quiet = rows({"shuffled": [[4.0]], again("shuffled"): [[4.0]], "row": [[2.0]]}, n=1)
    loud = rows({"shuffled": [[4.0]], again("shuffled"): [[8.0]], "row": [[2.0]]}, n=2)
    found = gains.gains(pd.concat([quiet, loud]), BY, "ordering", "shuffled")
    assert found.set_index("n")["noise_floor"].to_dict() == {1: 1.0, 2: 2.0}


def test_without_the_baseline_there_are_no_gains():
    assert over_shuffled({"row": [[2.0]]}).empty


def test_a_case_compared_with_itself_alone_has_no_gains():
    assert over_shuffled({"shuffled": [[4.0]], again("shuffled"): [[4.0]]}).empty


def test_no_gains_have_no_bounds():
    empty = gains.bounds(over_shuffled({"row": [[2.0]]}), "gain")
    assert empty.columns.tolist() == ["centre", "low", "high"]
    assert empty.empty


def test_a_case_of_one_run_among_several_has_no_bounds():
    table = pd.concat([rows({"row": [[2.0], [3.0]]}, n=1), rows({"row": [[2.0]]}, n=2)])
    found = gains.over_runs(table, ["n", "ordering"], "time_ms").set_index("n")
    assert np.isfinite(found.loc[1, "time_ms_low"])
    assert np.isnan(found.loc[2, "time_ms_low"])
    drawn = gains.bounds(found, "time_ms")
    assert drawn.loc[2].tolist() == [2, 2, 2]


def test_gains_of_one_run_beside_those_of_several_have_the_range_of_their_rounds():
    several = over_shuffled({"shuffled": [[4], [4]], "row": [[2], [2.5]]})
    one = over_shuffled({"shuffled": [[4, 4, 4]], "row": [[1, 2, 4]]})
    drawn = gains.bounds(pd.concat([several, one], ignore_index=True), "gain")
    assert drawn.loc[1].tolist() == [2, 1, 4]
    assert drawn.loc[0].tolist() == several[["gain", "gain_low", "gain_high"]].loc[0].tolist()


def test_columns_name_the_baseline():
    found = over_shuffled({"shuffled": [[4], [4]], again("shuffled"): [[4], [4]], "row": [[2], [2.5]]})
    message = gains.named(found, "shuffled")
    assert set(message.columns) == {
        "n", "ordering", "gain_over_shuffled", "gain_over_shuffled_low", "gain_over_shuffled_high",
        "noise_floor_shuffled", "difference_from_shuffled",
    }  # fmt: skip


TABLE = rows({"shuffled": [[4.0]], "row": [[2.0]]})


@pytest.mark.quick
@pytest.mark.parametrize(
    ("call", "message"),
    [
        (lambda t: gains.with_rounds(t, ["m"]), "table has no column 'm'; allowed: a table with m; "),
        (lambda t: gains.over_runs(t, ["n"], "ms"), "table has no column 'ms'; allowed: a table with n"),
        (
            lambda t: gains.gains(t.drop(columns="run"), BY, "ordering", "row"),
            "table has no column 'run'; .*; this one has .'n', 'ordering', 'round', 'time_ms'.",
        ),
        (lambda t: gains.named(t, "row"), "found has no column 'over', 'runs', 'rounds'; allowed: "),
        (lambda t: gains.noise_floors(t, ["n", "m"], "ordering"), "table has no column 'm'; allowed: "),
        (lambda t: gains.bounds(t, "gain"), "summary has no column 'gain_median_of_rounds', "),
        (lambda t: gains.caption(t.drop(columns="run")), "summary has no column 'runs'; allowed: "),
    ],
)
def test_a_column_that_is_missing_is_named(call, message):
    with pytest.raises(ValueError, match=f"^{message}"):
        call(TABLE)


@pytest.mark.quick
@pytest.mark.parametrize(
    "call",
    [
        lambda: gains.with_rounds([1], []),
        lambda: gains.over_runs(TABLE, "n", "time_ms"),
        lambda: gains.over_runs(TABLE, [3], "time_ms"),
        lambda: gains.gains(TABLE.to_dict(), BY, "ordering", "row"),
        lambda: gains.named({}, "row"),
        lambda: gains.bounds(None, "gain"),
        lambda: reliability.warned([1]),
        lambda: reliability.warned(TABLE, quick=1),
        lambda: reliability.lines({}),
        lambda: reliability.footer(None),
        lambda: baselines.aged(2.5),
        lambda: baselines.reordered_every("3"),
        lambda: baselines.again(None),
        lambda: baselines.original(3),
        lambda: baselines.gain_over(True),
    ],
)
def test_arguments_of_a_wrong_class_are_refused(call):
    with pytest.raises(TypeError, match=r"= .* of class .*; allowed: "):
        call()


@pytest.mark.quick
def test_ages_that_are_none_are_refused():
    for steps, name in ((-1, baselines.aged), (0, baselines.reordered_every)):
        with pytest.raises(ValueError, match=rf"steps = {steps}; allowed: an integer of at least "):
            name(steps)


def test_tables_of_before_have_their_samples_for_rounds():
    old = pd.DataFrame({"n": 8, "ordering": ["a", "a", "b"], "repeat": [0, 1, 1], "time_ms": [1.0, 2.0, 3.0]})
    found = gains.with_rounds(old, ["n", "ordering"])
    assert found["round"].tolist() == [0, 1, 0]
    assert found["run"].tolist() == [0, 0, 0]
    assert gains.with_rounds(found, ["n", "ordering"]) is found
    message = gains.with_rounds(old, ["n", "ordering"], runs="repeat")
    assert message["run"].tolist() == [0, 1, 1]
    assert message["round"].tolist() == [0, 0, 0]


def test_repeats_of_before_have_no_interval_and_no_verdict():
    old = rows({"shuffled": [[4.0], [4.2]], "row": [[2.0], [2.0]]}).rename(columns={"run": "repeat"})
    table = gains.with_rounds(old.drop(columns="round"), ["n", "ordering"])
    found = gains.gains(table, BY, "ordering", "shuffled")
    assert {"gain", "gain_low", "difference"}.isdisjoint(found.columns)
    assert found.loc[0, ["runs", "rounds"]].tolist() == [1, 2]


def test_a_case_is_compared_with_the_one_that_is_named_for_it():
    times = {"first": [[8.0]] * 2, "second": [[4.0]] * 2, "third": [[1.0]] * 2, again("first"): [[8.8]] * 2}
    over = {"first": None, "second": "first", "third": "second", "never": "first", "fourth": "never"}
    found = gains.gains_over(rows(times), BY, "ordering", over)
    assert found[["ordering", "over"]].to_numpy().tolist() == [["second", "first"], ["third", "second"]]
    assert found["gain"].tolist() == pytest.approx([2, 4])
    assert found["noise_floor"].tolist() == pytest.approx([1.1, 1.1])
    assert gains.gains_over(rows(times), BY, "ordering", {"first": "never"}).empty


def test_a_gain_over_the_fastest_is_over_another_case_in_each_group():
    slow, fast = {"a": [[2.0]] * 2, "p": [[10.0]] * 2}, {"a": [[2.0]] * 2, "p": [[30.0]] * 2}
    both = [rows(slow | {"q": [[20.0]] * 2}, n=1), rows(fast | {"q": [[20.0]] * 2}, n=2), rows(fast, n=3)]
    found = gains.gains_over_fastest(pd.concat(both), BY, "ordering", ["p", "q"]).set_index("n")
    assert found["over"].to_dict() == {1: "p", 2: "q", 3: "p"}
    assert found["gain"].to_dict() == pytest.approx({1: 5, 2: 10, 3: 15})
    assert set(found["ordering"]) == {"a"}
    assert gains.gains_over_fastest(rows(slow), BY, "ordering", ["q"]).empty


def estimate(value=1.5, low=1.2, high=1.9, runs=3, **given) -> gains.Estimate:
    return gains.Estimate(value, low, high, runs, RUN, 3, False, **given)


@pytest.mark.parametrize(
    ("given", "above"),
    [
        ({}, True),
        ({"low": 0.9}, False),
        ({"table_noise": 1.4}, True),
        ({"table_noise": 1.6}, False),
        ({"runs": 1}, False),
    ],
)
def test_a_gain_within_its_interval_or_its_noise_is_not_above_one(given, above):
    found = estimate(**given)
    assert found.above(1) is above
    assert not found.below(1)
    inverse = replace(found, value=1 / found.value, low=1 / found.high, high=1 / found.low)
    assert inverse.below(1) is above
    assert not inverse.above(1)


def test_an_alternative_is_judged_by_a_wider_interval():
    """Its ends are those of Student's t at 1 - 0.05 / 3: 7.65 instead of 4.30 for three runs."""
    reach = np.log(1.5 / 1.2)
    assert estimate().above(1.5 / np.exp(7.64 / 4.30 * reach) / 1.01, of=3)
    assert not estimate().above(1.5 / np.exp(7.66 / 4.30 * reach) * 1.01, of=3)
    assert estimate().above(1.19)


def test_the_lowest_of_several_cases_is_above_if_each_is():
    wide = estimate(value=1.7, low=0.9, high=3.2)
    assert not estimate(cases=(estimate(), wide)).above(1)
    assert estimate(cases=(estimate(), estimate(value=1.7))).above(1)
    assert replace(wide, cases=(estimate(), wide)).above(1) is False
    highest = estimate(value=1.7)
    assert replace(highest, cases=(estimate(low=0.9), highest)).above(1)
    assert not replace(highest, low=1.01, cases=(estimate(), replace(highest, low=1.01))).above(1)  # of two


def test_an_estimate_has_the_noise_and_the_warnings_of_its_rows_and_of_their_baseline():
    times = {
        "shuffled": [[4.0]] * 2,
        again("shuffled"): [[4.4], [5.0]],
        "row": [[2.0]] * 2,
        "peano": [[1.0]] * 2,
    }
    quiet = {"shuffled": [[4.0]] * 2, again("shuffled"): [[4.0]] * 2, "row": [[2.0]] * 2}
    table = pd.concat(
        [rows(times, n=1), rows(quiet, n=2), rows({"row": [[3.0]] * 2}, n=3)], ignore_index=True
    )
    table = table.assign(case=2 * table["n"] + table["run"], warning="")
    for n, name, text in ((1, "row", "a; b"), (1, "shuffled", "c"), (1, "peano", "d"), (2, "row", "e")):
        table.loc[(table["n"] == n) & (table["ordering"] == name), "warning"] = text
    over, each = "ordering == 'shuffled'", ("n", "ordering")
    found = gains.estimates(
        table, "time_ms", "gain", "ordering in ('row', 'peano')", over, each=each, compared="ordering"
    )
    by_key = {tuple(key.values()): estimate for key, estimate in found}
    assert list(by_key) == [(1, "row"), (1, "peano"), (2, "row")]  # size 3 has no baseline
    assert by_key[1, "row"].value == pytest.approx(2)
    assert {key: one.warnings for key, one in by_key.items()} == {
        (1, "row"): ("a", "b", "c"), (1, "peano"): ("c", "d"), (2, "row"): ("e",)
    }  # fmt: skip
    assert [one.noise_floor for one in by_key.values()] == pytest.approx([1.25, 1.25, 1.0])
    ((_, alone),) = gains.estimates(table, "time_ms", where="n == 3 and ordering == 'row'")
    assert np.isnan(alone.noise_floor)
    assert alone.warnings == ()


def test_the_noise_of_a_part_of_a_step_is_that_of_the_part():
    parts = [
        rows({"shuffled": [[4.0]] * 2, again("shuffled"): [[4.0 * factor]] * 2, "row": [[2.0]] * 2}).assign(
            phase=phase
        )
        for phase, factor in (("force", 1.5), ("step", 1.1))
    ]
    table = pd.concat(parts, ignore_index=True).assign(case=lambda own: own["run"])
    found = gains.estimates(table, "time_ms", where="ordering == 'row'", each=("phase",))
    assert [one.noise_floor for _, one in found] == pytest.approx([1.5, 1.1])


def test_rounds_without_a_baseline_of_their_run_count_for_nothing():
    table = rows({"shuffled": [[4.0, 4.0], [4.0]], "row": [[2.0, 1.0], [2.0, 1.0]]})
    found = gains.gains(table, BY, "ordering", "shuffled").iloc[0]
    assert (found["runs"], found["rounds"]) == (2, 1)
    assert found["gain"] == pytest.approx(np.sqrt(3 * 2))  # medians of 2 and 4, and of 2
    found = gains.gains(rows({"shuffled": [[4.0]], "row": [[2.0], [1.0]]}), BY, "ordering", "shuffled")
    assert found.loc[0, ["runs", "gain_median_of_rounds"]].tolist() == [1, 2]


def test_runs_without_a_common_round_count_for_nothing():
    table = rows({"shuffled": [[4.0], [4.0]], "row": [[2.0], [1.0]]})
    table.loc[(table["ordering"] == "row") & (table["run"] == 1), "round"] = 5
    found = gains.gains(table, BY, "ordering", "shuffled")
    assert found.loc[0, ["runs", "gain_median_of_rounds"]].tolist() == [1, 2]


@pytest.mark.parametrize("value", [-2.0, 0.0, 3.0])
def test_a_case_of_one_run_beside_others_of_several_has_its_number_and_no_interval(value):
    table = rows({"row": [[4.0], [4.0]], "hilbert": [[value]]})
    found = gains.over_runs(table, ["ordering"], "time_ms").set_index("ordering").loc["hilbert"]
    assert found["time_ms"] == pytest.approx(value)
    assert found[["time_ms_low", "time_ms_high"]].isna().all()


def test_a_run_with_several_samples_in_a_round_has_the_median_of_all_of_them():
    table = rows({"row": [[1.0, 1.0, 7.0, 9.0, 9.0]] * 2}).assign(round=[0, 0, 0, 1, 1] * 2)
    assert gains.over_runs(table, ["ordering"], "time_ms").loc[0, "time_ms"] == pytest.approx(7)


def test_what_is_compared_is_a_column_of_the_groups():
    with pytest.raises(ValueError, match="compared 'ordering'; allowed: one of n"):
        gains.estimates(TABLE, "time_ms", "gain", over="ordering == 'row'", each=("n",), compared="ordering")


def test_a_gain_of_sums_sums_the_samples_of_a_round():
    table = rows({"shuffled": [[8.0, 1.0, 0.0]], "row": [[1.0, 1.0, 1.0]]}).assign(round=0)
    where, over = "ordering == 'row'", "ordering == 'shuffled'"
    found = {
        name: gains.estimates(table, "time_ms", name, where, over)[0][1].value
        for name in ("gain of sums", "gain")
    }
    assert found == {"gain of sums": 3, "gain": 1}


def test_a_mean_of_blocks_has_twice_its_standard_error():
    table = pd.DataFrame({"case": [0, 0, 0, 0, 1], "lift": [1.0, 2.0, 3.0, 4.0, 7.0]})
    found = gains.of_rows(table, ["case"], "lift", "mean").to_dict("records")
    error = 2 * np.std([1, 2, 3, 4], ddof=1) / 4**0.5
    assert found[0] == pytest.approx(
        {"case": 0, "lift": 2.5, "lift_low": 2.5 - error, "lift_high": 2.5 + error}
    )
    assert found[1] == {"case": 1, "lift": 7.0, "lift_low": 7.0, "lift_high": 7.0}
    assert gains.of_rows(table, [], "lift", "median").to_numpy().tolist() == [[3.0, 1.0, 7.0]]
    with pytest.raises(ValueError, match="allowed: one of mean, median"):
        gains.of_rows(table, ["case"], "lift", "most")
