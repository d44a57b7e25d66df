"""What a run writes to the terminal: eight lines of an answer, a bar, or a line for each case of a log."""

import io
import sys
from pathlib import Path

import pandas as pd
import pytest

from experiments.analysis.answers import Answer
from experiments.core import terminal
from experiments.core.terminal import COLUMNS, LINES, Progress, answer_lines
from tests.experiments.core.test_cli import Config, cases

RUN = Path("results/toy/20260101T000000Z-00000000")


def long_table(rows: int = 20, columns: int = 9) -> pd.DataFrame:
    cells = {f"column {k}": ["1.82 (1.76 to 1.88)"] * rows for k in range(columns)}
    return pd.DataFrame(cells, [f"order {k}" for k in range(rows)]).rename_axis(index="name", columns="gain")


@pytest.mark.quick
@pytest.mark.parametrize("words", [3, 30, 300])
@pytest.mark.parametrize("note", ["", terminal.FITS_CACHE])
def test_an_answer_has_at_most_eight_lines_of_a_hundred_columns(words, note):
    lines = answer_lines(Answer(long_table(), "At 5 % " * words), RUN, note)
    assert len(lines) <= LINES
    assert max(map(len, lines)) <= COLUMNS
    assert lines[-1] == f"figures: {RUN}"
    assert lines[0].split() == "gain column 0 column 1 column 2 column 3".split()
    assert lines[1].startswith("order 0 ")
    assert not any(line.startswith("%") for line in lines)
    assert ("--quick: " in " ".join(lines)) == bool(note)


@pytest.mark.quick
def test_what_fits_is_shown_whole():
    table = pd.DataFrame({"n": [1024, 2048], "share": [0.5, None], "holds": [True, False]}, ["a", "b"])
    *rows, words, last = answer_lines(Answer(table, "Words."), RUN)
    assert [row.split() for row in rows] == [
        ["n", "share", "holds"],
        ["a", "1,024", "0.50", "yes"],
        ["b", "2,048", "-", "no"],
    ]
    assert (words, last) == ("Words.", f"figures: {RUN}")
    assert answer_lines(Answer(pd.DataFrame(), "Words."), RUN) == ["Words.", f"figures: {RUN}"]


class Screen(io.StringIO):
    """A standard error that is a terminal."""

    def isatty(self) -> bool:
        return True


def shown(monkeypatch, stream: io.StringIO, width: str = "80") -> str:
    monkeypatch.setattr(sys, "stderr", stream)
    monkeypatch.setenv("COLUMNS", width)
    every = cases(Config(size=(1, 2), colour=("red", "b" * 200), weight=2.0))
    with Progress(every, finished=1) as progress:
        for case in every[1:]:
            progress.show(case.place, 0)
            progress.show(case.place)
    return stream.getvalue()


@pytest.mark.quick
def test_a_log_gets_a_line_for_each_finished_case_with_what_differs(monkeypatch):
    lines = shown(monkeypatch, io.StringIO()).splitlines()
    assert [line.partition(" (")[0] for line in lines] == [
        "case 2 of 4: size 1, ...",
        "case 3 of 4: size 2, red",
        "case 4 of 4: size 2, ...",
    ]
    assert all(line.endswith(" s)") for line in lines)


@pytest.mark.quick
@pytest.mark.parametrize(("width", "most"), [("60", 60), ("80", 80), ("300", COLUMNS)])
def test_the_bar_fits_the_terminal_and_a_hundred_columns(width, most, monkeypatch):
    states = shown(monkeypatch, Screen(), width).replace("\n", "\r").split("\r")
    assert max(map(len, states)) <= most
    assert any("4/4" in state for state in states)
    assert width == "60" or any("size 2" in state for state in states)
    assert not any("weight" in state for state in states)
