"""What a run writes to the terminal: nine lines of an answer, a bar, or a line for each case of a log."""

import io
import sys
from pathlib import Path

import pandas as pd
import pytest

from experiments.core import terminal
from experiments.core.terminal import COLUMNS, LINES, Progress, answer_lines, duration, so_far_lines
from experiments.results.answers import Answer
from tests.experiments import toy_timed
from tests.experiments.core.test_cli import Config, cases
from tests.experiments.core.test_survival import only, run

RUN = Path("results/toy/20260101T000000Z-00000000")


def long_table(rows: int = 20, columns: int = 9) -> pd.DataFrame:
    cells = {f"column {k}": ["1.82 (1.76 to 1.88)"] * rows for k in range(columns)}
    return pd.DataFrame(cells, [f"order {k}" for k in range(rows)]).rename_axis(index="name", columns="gain")


@pytest.mark.quick
@pytest.mark.parametrize("words", [3, 30, 300])
@pytest.mark.parametrize("note", ["", terminal.FITS_CACHE])
def test_an_answer_has_at_most_nine_lines_of_a_hundred_columns(words, note):
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
    assert lines == [
        "case 2 of 4: size 1, ...: done; some seconds left",
        "case 3 of 4: size 2, red: done; some seconds left",
        "case 4 of 4: size 2, ...: done",
    ]


@pytest.mark.quick
@pytest.mark.parametrize(("width", "most"), [("60", 60), ("80", 80), ("300", COLUMNS)])
def test_the_bar_fits_the_terminal_and_a_hundred_columns(width, most, monkeypatch):
    states = shown(monkeypatch, Screen(), width).replace("\n", "\r").split("\r")
    assert max(map(len, states)) <= most
    assert any("4/4" in state for state in states)
    assert width == "60" or any("size 2" in state for state in states)
    assert not any("weight" in state for state in states)


@pytest.mark.quick
def test_a_log_tells_the_set_up_a_round_after_a_silence_and_the_time_left(monkeypatch):
    stream, clock = io.StringIO(), [100.0]
    monkeypatch.setattr(sys, "stderr", stream)
    monkeypatch.setattr(terminal, "monotonic", lambda: clock[0])
    every = cases(toy_timed.Config(size=(1, 2), runs=1, rounds=2))
    with Progress(every) as progress:
        for seconds, number in ((12, 0), (13, 1), (14, None)):
            clock[0] = 100 + seconds
            progress.show(every[0].place, number)
    assert stream.getvalue().splitlines() == [
        "case 1 of 2: set-up (particles, kernels), then 2 rounds",
        "case 1 of 2: size 1: round 1 of 2; about 20 s left",  # 3/4 of a case, of two
        "case 1 of 2: size 1: done; about 10 s left",
    ]


class Untimed(toy_timed.Config):
    """Scene without times of an experiment that has rounds in another one."""

    CHANCE = "repeat"


@pytest.mark.quick
def test_a_sweep_without_times_announces_no_rounds(monkeypatch):
    stream = io.StringIO()
    monkeypatch.setattr(sys, "stderr", stream)
    every = cases(Untimed(size=(1, 2)))
    with Progress(every) as progress:
        progress.show(every[0].place)
    assert stream.getvalue() == "case 1 of 2: size 1: done; some seconds left\n"


@pytest.mark.quick
def test_a_resumed_sweep_estimates_from_what_it_measured_itself(monkeypatch):
    stream, clock = io.StringIO(), [0.0]
    monkeypatch.setattr(sys, "stderr", stream)
    monkeypatch.setattr(terminal, "monotonic", lambda: clock[0])
    every = cases(Config(size=(1, 2), colour=("red", "blue")))
    with Progress(every, finished=2) as progress:
        clock[0] = 40.0
        progress.show(every[2].place)
    assert stream.getvalue() == "case 3 of 4: size 2, red: done; about 40 s left\n"


@pytest.mark.quick
@pytest.mark.parametrize(
    ("seconds", "words"),
    [
        (3, "some seconds"),
        (44, "about 40 s"),
        (94, "about 90 s"),
        (95, "about 1.5 minutes"),
        (134, "about 2 minutes"),
        (150, "about 2.5 minutes"),
        (1500, "about 25 minutes"),
        (3 * 3600, "about 3 hours"),
        (1e6, "about 12 days"),
    ],
)
def test_a_length_of_time_is_rough(seconds, words):
    assert duration(seconds) == words


@pytest.mark.quick
def test_the_answer_so_far_says_of_how_much_and_has_the_table():
    lines = so_far_lines(Answer(long_table(), "At 5 % " * 30), "one run so far")
    assert lines[0].startswith("one run so far: At 5 % At")
    assert max(map(len, lines)) <= COLUMNS
    assert len(lines) == LINES
    table = lines.index(
        "gain                column 0             column 1             column 2             column 3"
    )
    assert [line[:7] for line in lines[table + 1 :]] == [f"order {k}" for k in range(LINES - table - 1)]


@pytest.mark.quick
def test_lines_stand_above_the_bar(monkeypatch):
    stream = Screen()
    monkeypatch.setattr(sys, "stderr", stream)
    every = cases(Config())
    with Progress(every) as progress:
        progress.write(["one run so far"])
        progress.show(every[0].place)
    assert "one run so far\n" in stream.getvalue()
    assert "1/4" in stream.getvalue().rpartition("so far")[2]


def test_a_path_that_a_terminal_in_ascii_has_no_letters_for_is_escaped(tmp_path, monkeypatch):
    written = io.BytesIO()
    monkeypatch.setattr(sys, "stdout", io.TextIOWrapper(written, encoding="ascii"))
    assert run("--results", tmp_path / "out_ä", "--size", 1) == 0
    folder = only(tmp_path / "out_ä")
    assert f"figures: {folder}".encode("ascii", "backslashreplace") in written.getvalue()
