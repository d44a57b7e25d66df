"""Table 6.1 of [thesis]: its gains against the tables of the runs, and the page against the table."""

import numpy as np
import pandas as pd
import pytest

from experiments.results.claims import table_6_1
from experiments.results.claims.__main__ import THESIS
from experiments.results.kept.queries import REFERENCE

pytestmark = pytest.mark.quick


@pytest.fixture(scope="module")
def text():
    return table_6_1.markdown()


@pytest.fixture(scope="module")
def cells(text):
    """(filled, part) -> column -> text of the cell."""
    heading, _, *rows = (line[1:-1].split("|") for line in text.split("\n\n")[0].splitlines())
    return {(row[0], row[1]): dict(zip(heading, row, strict=True)) for row in rows}


def gain_by_hand(run: str, baseline: str, phi: float, part: str) -> float:
    """The geometric mean over runs of mean time over mean time of the windows."""
    table = pd.read_parquet(REFERENCE / run / "table.parquet")
    table = table[~table["fused"] & (table["filling_fraction"] == phi) & (table["part"] == part)]
    times = table.pivot_table(index="run", columns="ordering", values="time_ms", aggfunc="mean")
    return float(np.exp(np.log(times[baseline] / times["pancake"]).mean()))


@pytest.mark.parametrize(
    ("filled", "part", "column", "case"),
    [
        ("20 %", "force", "H100 over shuffled", ("speed_up/h100", "shuffled", 0.2, "force")),
        ("50 %", "total", "H100 over lattice", ("speed_up/h100", "aged", 0.5, "total")),
        ("40 %", "other", "H200 over lattice", ("speed_up/h200_three_runs", "aged", 0.4, "other")),
        ("5 %", "total", "CPU over shuffled", ("speed_up/cpu", "shuffled", 0.05, "total")),
    ],
)
def test_the_gains_are_those_of_the_tables(cells, filled, part, column, case):
    value, _, interval = cells[filled, part][column].partition(" ")
    assert float(value) == pytest.approx(gain_by_hand(*case), rel=0.005)
    low, high = map(float, interval.strip("()").partition(";")[0].split(" to "))
    assert low <= float(value) <= high


def test_every_part_of_every_fraction_has_a_row_and_what_was_not_measured_is_empty(cells):
    assert list(cells) == [(phi, part) for phi in ("5 %", "20 %", "40 %", "50 %") for part in table_6_1.PARTS]
    assert all(cells["40 %", "total"].values())
    assert cells["40 %", "total"]["[thesis]"] == "3.01"
    empty = {name for name, cell in cells["50 %", "force"].items() if not cell}
    assert empty == {"[thesis]", *(f"{device} over {name}" for device in ("H200", "CPU")
                                   for name in ("lattice", "shuffled"))}  # fmt: skip


def test_what_the_intervals_are_stands_below(text):
    assert text.endswith("over 2 runs at 50 %; H200: 95 % over 3 runs; CPU: 95 % over 3 runs.")


def test_the_page_has_the_table_that_the_command_writes(text):
    page = THESIS.read_text(encoding="utf-8")
    begin, end = page.index(table_6_1.BEGIN) + len(table_6_1.BEGIN), page.index(table_6_1.END)
    assert page[begin:end].strip() == text, "python -m experiments.results.claims --write"
