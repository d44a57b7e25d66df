"""Answers in words: gains in every branch, tables of a few rows, and numbers as a reader needs them."""

import math

import pandas as pd
import pytest

from experiments.results import answers
from experiments.results.answers import ONE_RUN, Answer, Comparison

SHUFFLED = ["shuffled", "lattice"]


def table(times: dict[str, float], runs: int = 3, rounds: int = 2, spread: float = 0.01, **columns):
    """Times of orders in rounds and runs, which differ by `spread` but keep their ratios in a round."""
    return pd.DataFrame([
        {"run": run, "round": k, "ordering": name, "time_ms": ms * (1 + spread * (run + k))} | columns
        for run in range(runs) for k in range(rounds) for name, ms in times.items()
    ])  # fmt: skip


def sentence(rows, **options) -> str:
    found = Comparison("ordering", SHUFFLED, "n", "At 5 % filled", kind=" memory", **options)
    return found(rows.assign(n=8)).sentence


@pytest.mark.quick
def test_a_faster_order_and_the_next_one_are_named_with_their_ratio():
    found = sentence(table({"shuffled": 18.0, "hilbert": 10.0, "row": 9.0}), first="hilbert")
    assert found == (
        "At 5 % filled, hilbert is 1.80 times as fast as shuffled memory, row 2.00; "
        "row over hilbert 1.11: faster."
    )


@pytest.mark.quick
def test_the_intervals_of_several_runs_stand_beside_their_means():
    rows = table({"shuffled": 18.0, "hilbert": 10.0})
    rows.loc[(rows["ordering"] == "hilbert") & (rows["run"] == 2), "time_ms"] *= 0.98
    found = sentence(rows)
    assert found.startswith("At 5 % filled, hilbert is 1.81 (1.76 to 1.87) times as fast as shuffled memory")


@pytest.mark.quick
def test_a_slower_order_is_called_slower_and_an_equal_one_no_difference():
    rows = table({"shuffled": 10.0, "random": 20.0, "row": 10.0})
    rows.loc[(rows["ordering"] == "row") & (rows["run"] == 0), "time_ms"] *= 1.02
    rows.loc[(rows["ordering"] == "row") & (rows["run"] == 2), "time_ms"] *= 0.98
    found = sentence(rows, first="random")
    assert "random is 0.50 (slower) times as fast as shuffled memory" in found
    assert "row 1.00 (0.95 to 1.05, no difference)" in found
    assert found.endswith("row over random 2.00 (1.90 to 2.10): faster.")


@pytest.mark.quick
def test_one_run_has_the_range_of_its_rounds_called_so_and_no_verdict():
    rows = table({"shuffled": 20.0, "hilbert": 10.0, "row": 20.0}, runs=1)
    rows.loc[(rows["ordering"] == "hilbert") & (rows["round"] == 1), "time_ms"] *= 1.25
    found = sentence(rows)
    assert found == (
        "At 5 % filled, hilbert is 1.80 (1.60 to 2.00) times as fast as shuffled memory, row 1.00; "
        f"hilbert over row 1.80 (1.60 to 2.00).{ONE_RUN}"
    )


@pytest.mark.quick
def test_one_round_of_one_run_has_neither_range_nor_note():
    found = sentence(table({"shuffled": 20.0, "hilbert": 10.0}, runs=1, rounds=1))
    assert found == "At 5 % filled, hilbert is 2.00 times as fast as shuffled memory."


@pytest.mark.quick
def test_without_a_baseline_there_are_times_and_the_sentence_says_so():
    found = sentence(table({"hilbert": 10.0, "row": 20.0}, spread=0.0))
    assert found == (
        "At 5 % filled, hilbert takes 10.0 ms, row 20.0 ms, without a baseline (shuffled and lattice not "
        "measured); hilbert over row 2.00: faster."
    )


@pytest.mark.quick
def test_baselines_alone_are_compared_with_nothing():
    found = sentence(table({"shuffled": 10.0}, spread=0.0), more=lambda rows: "the end")
    assert found == "At 5 % filled, shuffled takes 10.0 ms, and nothing else was measured; the end."


@pytest.mark.quick
def test_a_single_order_is_compared_with_the_second_baseline_too():
    found = sentence(table({"shuffled": 30.0, "lattice": 20.0, "hilbert": 10.0}))
    assert found.endswith("; hilbert over lattice memory 2.00: faster.")


@pytest.mark.quick
def test_the_second_measurement_of_a_case_is_no_case():
    rows = table({"shuffled": 30.0, "shuffled again": 29.0, "hilbert": 10.0})
    assert "again" not in sentence(rows)
    assert "shuffled again" not in Comparison("ordering", SHUFFLED, "n", "At")(rows.assign(n=8)).table.index


@pytest.mark.quick
def test_a_name_with_a_comma_is_quoted():
    rows = table({"shuffled": 20.0, "verlet, row": 10.0, "verlet, hilbert": 5.0})
    assert '"verlet, hilbert" over "verlet, row" 2.00' in sentence(rows)


@pytest.mark.quick
def test_the_table_has_a_column_a_value_and_the_sentence_is_about_the_first():
    rows = pd.concat([
        table({"shuffled": 20.0, "hilbert": 10.0, "row": 5.0}, phi=phi) for phi in (0.4, 0.1, 0.2, 0.3)
    ])  # fmt: skip
    found = Comparison("ordering", SHUFFLED, "phi", "At 40 %", heading=answers.percent)(rows)
    assert list(found.table) == ["10 %", "20 %", "40 %"] or len(found.table.columns) == answers.MOST
    assert list(found.table.index) == ["row", "hilbert"]
    assert found.table.columns.name == "gain over shuffled"
    assert found.sentence.startswith("At 40 %, row is 4.00")


@pytest.mark.quick
def test_the_table_of_one_value_has_times_and_a_gain_over_each_baseline():
    rows = table({"shuffled": 30.0, "lattice": 20.0, "hilbert": 10.0}, spread=0.0, n=8)
    found = Comparison("ordering", SHUFFLED, "n", "At n")(rows).table
    assert list(found) == ["time (ms)", "gain over shuffled", "gain over lattice"]
    assert found.loc["hilbert"].tolist() == ["10.0", "3.00", "2.00"]
    assert found.loc["shuffled", "time (ms)"] == "30.0"


@pytest.mark.quick
def test_a_case_that_only_other_values_have_stands_last():
    rows = pd.concat([
        table({"shuffled": 20.0, "hilbert": 10.0}, n=8), table({"shuffled": 20.0, "row": 1.0}, n=4)
    ])  # fmt: skip
    assert list(Comparison("ordering", SHUFFLED, "n", "At")(rows).table.index) == ["hilbert", "row"]


@pytest.mark.quick
@pytest.mark.parametrize(
    ("value", "text"),
    [(0.00213, "0.0021"), (0.0, "0"), (0.98, "0.98"), (1.0, "1.00"), (1.824, "1.82"), (40.12, "40.1"),
     (524288.0, "524,288"), (9.996, "10.0"), (-0.5, "-0.50"), (math.nan, "-"), (math.inf, "-")],
)  # fmt: skip
def test_numbers_have_the_digits_that_a_reader_needs(value, text):
    assert answers.rounded(value) == text


@pytest.mark.quick
@pytest.mark.parametrize(
    ("share", "text"), [(0.05, "5 %"), (0.756, "75.6 %"), (0.0032, "0.32 %"), (1.0, "100 %"), (math.nan, "-")]
)
def test_shares_are_percentages(share, text):
    assert answers.percent(share) == text


@pytest.mark.quick
def test_a_spread_is_the_median_and_the_range_and_one_value_has_none():
    assert answers.spread([1.0, 3.0, 2.0, math.nan]) == "2.00 (1.00 to 3.00)"
    assert answers.spread([0.25, 0.27], answers.percent) == "26 % (25 to 27)"
    assert answers.spread([2.0]) == "2.00"
    assert answers.spread([]) == "-"


@pytest.mark.quick
def test_few_values_are_even_with_both_ends():
    assert answers.few([3, 1, 2, 1]) == [1, 2, 3]
    assert answers.few(range(9), 3) == [0, 4, 8]


@pytest.mark.quick
def test_the_headline_is_the_largest_number_and_the_word_that_stands_first():
    rows = pd.DataFrame(
        {"n": [1, 2, 2, 2], "search": ["b", "b", "a", "b"], "fused": [True, False, False, True]}
    )
    assert answers.headline(rows, "n", "search", "fused").index.tolist() == [1]
    assert answers.headline(rows, "search", "fused").index.tolist() == [0, 3]


@pytest.mark.quick
def test_a_case_is_described_by_what_differs():
    places = [
        {"case": 0, "run": 0, "n": 1024, "filling_fraction": 0.05, "fused": True, "search": "linked"},
        {"case": 1, "run": 0, "n": 2048, "filling_fraction": 0.2, "fused": False, "search": "linked"},
    ]
    names = answers.varying(places)
    assert names == ["n", "filling_fraction", "fused"]
    assert answers.case_in_words(places[0], names) == "n 1,024, 5 % filled, fused"
    assert answers.case_in_words(places[1], names) == "n 2,048, 20 % filled, not fused"
    assert answers.varying(places[:1]) == []
    rows = answers.rows_of(pd.DataFrame(places), ["n", "search"], {"twice": lambda row: 2 * row["n"]})
    assert rows["twice"].to_dict() == {"n 1,024": 2048, "n 2,048": 4096}


@pytest.mark.quick
def test_an_answer_is_a_table_and_a_sentence():
    with pytest.raises(TypeError, match=r"table = \[\].*allowed: a pandas.DataFrame"):
        Answer([], "words")
    with pytest.raises(ValueError, match="sentence = ''"):
        Answer(pd.DataFrame(), "")
