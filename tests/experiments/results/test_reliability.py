"""Warnings: each provoked, and each absent where nothing is wrong. See test_rounds and test_gpu_clock too."""

import numpy as np
import pandas as pd
import pytest

from experiments.results.reliability import (
    BUSY,
    CLOCK,
    PHASES,
    RECORDED,
    SMALL,
    TICKS,
    footer,
    lines,
    warned,
    warnings_in,
)


def judged(rows):
    """Return the warnings of rows, each once."""
    return warnings_in(warned(rows)["warning"])


def times(lengths, rounds=5, spread=0.01, seed=0):
    """Samples of some lengths in ms, one entry each."""
    noise = np.random.default_rng(seed).normal(1, spread, (len(lengths), rounds))
    return pd.DataFrame(
        {"ordering": f"order {k}", "phase": "step", "sample_ms": ms, "case": 0, "run": 0, "round": number}
        for k, length in enumerate(lengths)
        for number, ms in enumerate(length * noise[k])
    )


@pytest.mark.parametrize("tick", [4.0, 10.0])
def test_times_on_ticks_are_warned_of(tick):
    rows = times([40.0] * 6, spread=0)
    rows["sample_ms"] = tick * np.rint(rows["sample_ms"] / tick) + np.random.default_rng(1).normal(
        0, 0.03, 30
    )
    assert TICKS in judged(rows)
    assert warned(rows)["warning"].eq(TICKS).all()


def test_steps_on_ticks_are_warned_of_though_their_phases_end_between_two():
    parts = {"force": 10.0, "build": 24.0, "integrate": 6.0, "step": 40.0}  # ms, seen with spinning threads
    rows = pd.concat(
        [times([ms] * 8, rounds=7, spread=0.001).assign(phase=name) for name, ms in parts.items()]
    )
    assert TICKS in judged(rows)
    predicted = pd.DataFrame([{"ordering": "order 0", "model": "lru", "case": 0, "run": 0}])
    assert TICKS in judged(pd.concat([rows, predicted]))


@pytest.mark.parametrize(
    "lengths",
    [
        [37.0, 42.9, 51.3, 66.1, 29.7, 35.5],  # of no common length
        [0.4] * 6,  # far shorter than a tick
        [8.0, 8.0],  # too few to tell from chance
        [40.0, 33.0, 25.0, 61.0, 40.0, 75.0],  # two of six on a tick
    ],
)
def test_other_times_are_not(lengths):
    assert TICKS not in judged(times(lengths))
    assert warned(times(lengths))["warning"].eq("").all()


@pytest.mark.parametrize(("apart", "expected"), [(0.16, True), (-0.16, True), (0.14, False), (0.0, False)])
def test_phases_that_are_16_percent_off_are_warned_of(apart, expected):
    rows = times([37.0, 42.9]).assign(phases_over_step=1.0)
    rows.loc[rows["ordering"] == "order 1", "phases_over_step"] = 1 + apart
    assert (PHASES in judged(rows)) is expected
    marked = warned(rows)["warning"].eq(PHASES)
    assert marked.equals(rows["ordering"].eq("order 1") & expected)


def test_one_round_that_is_off_is_no_disagreement():
    rows = times([37.0]).assign(phases_over_step=[1, 1, 3, 1, 1])
    assert PHASES not in judged(rows)


@pytest.mark.parametrize(
    ("other", "spare", "waited", "expected"),
    [
        (0.9, 0, 0.0, True),  # one core busy, two wanted
        (0.9, 1, 0.0, False),  # one busy core that is not needed
        (0.05, 0, 0.02, False),
        (0.0, 0, 0.3, True),  # the host's other cores are not seen, waiting is
        (None, None, None, False),
    ],
)
def test_load_counts_where_cores_are_lacking(other, spare, waited, expected):
    rows = times([37.0]).assign(other_load_cores=other, spare_cores=spare, waited_share=waited)
    assert (BUSY in judged(rows)) is expected
    assert (BUSY in warned(rows).loc[0, "warning"]) is expected


def test_cores_to_spare_in_one_sample_are_none_in_another():
    rows = times([370.0, 370.0]).assign(spare_cores=4)
    rows["other_load_cores"] = np.where(rows["ordering"] == "order 0", 0, 8)
    assert warned(rows)["warning"].eq(BUSY).equals(rows["ordering"] == "order 1")


def test_the_ticks_of_counters_are_no_load():
    rows = times([7.0] * 9, rounds=9).assign(spare_cores=0)
    ticks = (
        np.random.default_rng(2).integers(0, 3, len(rows)) * 10.0
    )  # busy ms that are reported, about 10 on average
    assert BUSY not in judged(rows.assign(other_load_cores=(ticks - 10.0) / 7.0))
    assert BUSY in judged(rows.assign(other_load_cores=(ticks - 10.0) / 7.0 + 0.5))


def test_short_samples_weigh_little():
    rows = times([100.0, 1.0], rounds=1, spread=0).assign(spare_cores=0, other_load_cores=[0.0, 1.0])
    assert BUSY not in judged(rows)


def test_a_sample_that_recorded_warns_of_all_samples_of_its_name_in_its_case_alone():
    one = times([37.0, 42.9, 51.3]).assign(recorded=False)
    one.loc[one.index[0], "recorded"] = True  # of order 0
    rows = pd.concat([one, one.assign(case=1, run=1, recorded=False)], ignore_index=True)
    found = warned(rows)
    is_marked = rows["ordering"].eq("order 0") & rows["case"].eq(0)
    assert found["warning"].eq(RECORDED).equals(is_marked)
    assert found["warning"].eq("").equals(~is_marked)
    assert judged(rows[rows["ordering"] != "order 0"]) == ()
    of_case = found[found["case"] == 0]
    assert footer(of_case) == f"Warning: {RECORDED} (order 0)"
    assert lines(of_case) == [f"{RECORDED} (order 0 in every case)"]


def test_a_clock_that_is_low_for_one_name_warns_of_that_name():
    rows = times([37.0, 42.9]).assign(clock_MHz=1980.0)
    rows.loc[rows["ordering"] == "order 1", "clock_MHz"] = 1700.0
    assert warned(rows)["warning"].eq(CLOCK).equals(rows["ordering"] == "order 1")


def test_rows_of_the_device_are_not_warned_of_the_cache_of_the_host():
    rows = times([37.0, 42.9]).assign(working_set_MB=100.0)
    rows["cache_MB"] = np.where(rows["ordering"] == "order 0", 315.0, 50.0)
    assert warned(rows)["warning"].eq(SMALL).equals(rows["ordering"] == "order 0")


def test_a_recorded_warning_counts_where_its_columns_are_missing():
    rows = times([37.0, 42.9]).assign(recorded=False, warning=f"{CLOCK}; {RECORDED}")
    assert warned(rows)["warning"].eq(CLOCK).all()  # `recorded` tells that nothing was


def test_a_quick_run_is_too_small():
    assert warned(times([37.0]), quick=True)["warning"].eq(SMALL).all()


@pytest.mark.parametrize(("cache", "expected"), [(8.0, True), (5.0, False), (None, False)])
def test_a_working_set_that_fits_the_cache_is_too_small(cache, expected):
    rows = times([37.0]).assign(working_set_MB=6.0, cache_MB=cache)
    assert warned(rows)["warning"].eq(SMALL if expected else "").all()


def test_warnings_are_of_a_case_and_its_run():
    rows = pd.concat([times([37.0]), times([37.0]).assign(case=1, run=1)], ignore_index=True)
    rows["phases_over_step"] = np.where(rows["case"] == 1, 1.5, 1.0)
    table = warned(rows)
    assert set(table.loc[table["case"] == 1, "warning"]) == {PHASES}
    assert set(table.loc[table["case"] == 0, "warning"]) == {""}
    assert footer(table) == f"Warning: {PHASES} (in 1 of 2 runs)"


def test_a_footer_has_each_warning_once():
    rows = times([37.0]).assign(phases_over_step=2.0)
    assert footer(warned(rows, quick=True)) == f"Warning: {PHASES}; {SMALL}"
    assert footer(warned(times([37.0]))) == ""
    assert footer(times([37.0])) == ""


def test_nothing_of_an_empty_table():
    assert warned(pd.DataFrame(), quick=True).empty


def test_a_run_of_before_rounds_is_told():
    old = times([37.0]).drop(columns="round").assign(phases_over_step=2.0)
    assert footer(warned(old)) == "Warning: measured before samples were taken in rounds of random order"


def test_warnings_stand_in_the_order_of_the_checks_and_others_after_them():
    texts = pd.Series([f"b; {PHASES}", f"{TICKS}; {PHASES}", "", "a"])
    assert warnings_in(texts) == (TICKS, PHASES, "a", "b")
