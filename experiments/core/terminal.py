"""What a run writes to the terminal: the answer to standard output, the progress to standard error.

Contract. An answer takes at most `LINES` lines of `COLUMNS` columns, one of several sentences at most
`MOST_LINES`: table, sentences, what a quick run cannot show, and the folder of the figures. The line with the
folder alone may be longer, because a path is not broken. Everything else goes to standard error: what will be
run, the progress, and the answer of the runs so far. The progress is a bar on a terminal; elsewhere it is a
line for each finished case, and for a round if nothing was written for `SILENCE` seconds. A time in it is a
time left, never one that has passed.
"""

import shutil
import sys
from collections.abc import Iterable, Mapping, Sequence
from pathlib import Path
from textwrap import shorten, wrap
from time import monotonic
from typing import Any

import numpy as np
import pandas as pd
from tqdm import tqdm

from experiments.core.settings import Case
from experiments.results.answers import Answer, case_in_words, rounded, varying

COLUMNS, LINES, MOST_LINES = 100, 9, 11
SENTENCE_LINES, NOTE_LINES = 5, 1  # at most
SILENCE = 10.0  # s, between two lines of progress
_CASE_LETTERS = 40  # of a case beside the bar
_CUT = " ..."
_NO_BREAK = "\N{NO-BREAK SPACE}"
# What the size of --quick cannot show, by the kind of experiment: one line each.
FITS_CACHE = "--quick: this size fits the last cache, where memory order is worth little; leave --quick out."
SMALL_SYSTEM = "--quick: small systems of random positions, not of a gas of spheres; leave --quick out."
FEW_PARTICLES = "--quick: few particles for a short time, so that numbers scatter; leave --quick out."
FEW_ROUNDS = "--quick: few rounds, so that intervals are wide; leave --quick out."
FEW_COUNTS = "--quick: few particles, steps and trials, so that numbers scatter; leave --quick out."
FEW_SIZES = "--quick: few sizes of memory, too small for machine.toml; leave --quick out."
FEW_CASES = "--quick: one small gas of those that are drawn; leave --quick out for all of them."
COARSE_GRID = "--quick: grids too coarse for the published values; leave --quick out."
SMALL_BOXES = "--quick: small boxes and few orderings; leave --quick out for all of them."


def answer_lines(answer: Answer, folder: Path, note: str = "") -> list[str]:
    """Arrange an answer for the terminal.

    Args:
        answer: rows and columns of its table that do not fit are left out, the last ones first.
        folder: of the figures and of the whole table.
        note: sentence that follows that of the answer; empty for none.
    """
    words = _wrapped(answer.sentence, SENTENCE_LINES) + _wrapped(note, NOTE_LINES)
    for line in answer.lines:
        words += _wrapped(line, SENTENCE_LINES)
    return [*_table_lines(answer.table, LINES - len(words) - 1), *words, f"figures: {folder}"]


def so_far_lines(answer: Answer, what: str) -> list[str]:
    """Arrange the answer of what is finished, while the rest is measured: its sentence, and its table.

    Args:
        answer: of the rows so far.
        what: is finished, such as "one run so far".
    """
    words = _wrapped(f"{what}: {answer.sentence}", SENTENCE_LINES)
    return [*words, *_table_lines(answer.table, LINES - len(words))]


def _wrapped(text: str, most: int) -> list[str]:
    """Wrap a sentence, but not between a number and its percent sign."""
    kept = text.replace(" %", f"{_NO_BREAK}%")
    lines = wrap(kept, COLUMNS, max_lines=most, placeholder=_CUT, break_on_hyphens=False)
    return [line.replace(_NO_BREAK, " ") for line in lines]


def _table_lines(table: pd.DataFrame, most: int) -> list[str]:
    """Format as many rows and columns of a table as fit."""
    if table.empty or most < 2:
        return []
    shown = table.iloc[: most - 1].map(_cell).rename_axis(index=None)  # whose name would take a line
    while True:
        lines = shown.to_string(na_rep="-").splitlines()
        if max(map(len, lines)) <= COLUMNS or shown.shape[1] < 2:
            return [line.rstrip()[:COLUMNS] for line in lines]
        shown = shown.iloc[:, :-1]


def _cell(value: Any) -> str:
    if isinstance(value, (bool, np.bool_)):
        return "yes" if value else "no"
    if isinstance(value, (int, np.integer)):
        return f"{value:,}"
    return rounded(float(value)) if isinstance(value, (float, np.floating)) else str(value)


class Progress:
    """Progress of a sweep on standard error, with the time left: a bar on a terminal, else lines.

    The time left follows from the share that this process has measured of what it has to. In a case with
    rounds the set-up counts as much as all rounds together. So it is a rough estimate, and none is shown
    before the first round.

    Args:
        cases: of the sweep.
        finished: number of those that an earlier process finished.
    """

    def __init__(self, cases: Sequence[Case], finished: int = 0):
        self._varying = varying([case.place for case in cases])
        is_timed = bool(cases) and cases[0].config.CHANCE == "run"
        self._rounds: int = vars(cases[0].config)["rounds"] if is_timed else 0
        self._total, self._begun_at, self._finished, self._begin = len(cases), finished, finished, monotonic()
        self._shown = self._begin
        self._bar = None
        if sys.stderr.isatty():
            width = min(COLUMNS, shutil.get_terminal_size().columns)
            form = "{desc}|{bar}|{postfix}"
            self._bar = tqdm(
                total=len(cases), initial=finished, ncols=width, file=sys.stderr, bar_format=form
            )
            self._bar.set_description_str(f"{finished}/{len(cases)}")

    def __enter__(self) -> "Progress":
        if self._bar is None and self._finished < self._total and self._rounds:
            first = f"case {self._finished + 1} of {self._total}"
            self.write([f"{first}: set-up (particles, kernels), then {self._rounds} rounds"])
        return self

    def __exit__(self, *_: object) -> None:
        if self._bar is not None:
            self._bar.close()

    def write(self, lines: Iterable[str]) -> None:
        """Write lines to standard error, above the bar if there is one."""
        for line in lines:
            if self._bar is None:
                print(line, file=sys.stderr, flush=True)
            else:
                self._bar.write(line, file=sys.stderr)

    def show(self, place: Mapping[str, Any], round_number: int | None = None) -> None:
        """Show that a round of a case is finished, or the whole case.

        Elsewhere than on a terminal, a round is shown only if nothing was for `SILENCE` seconds.

        Args:
            place: columns of the case.
            round_number: of the round; None for the whole case.
        """
        self._finished += round_number is None
        case, left = case_in_words(place, self._varying), self._left(round_number)
        if self._bar is not None:
            name = shorten(case, _CASE_LETTERS, placeholder=_CUT)
            done = "" if round_number is None else f"round {round_number + 1}"
            self._bar.n = self._finished + self._share_of_case(round_number)
            self._bar.set_description_str(f"{self._finished}/{self._total}", refresh=False)
            self._bar.set_postfix_str(", ".join(filter(None, [name, done, left])))
        elif round_number is None or monotonic() - self._shown > SILENCE:
            number = self._finished + (round_number is not None)
            words = filter(None, [f"case {number} of {self._total}", case])
            name = shorten(": ".join(words), _CASE_LETTERS, placeholder=_CUT)
            done = "done" if round_number is None else f"round {round_number + 1} of {self._rounds}"
            self.write([f"{name}: {'; '.join(filter(None, (done, left)))}"])
            self._shown = monotonic()

    def _share_of_case(self, round_number: int | None) -> float:
        """Return the share of the case that is being measured; 0 between two cases."""
        if round_number is None or not self._rounds:
            return 0.0
        return min(1.0, 0.5 + (round_number + 1) / (2 * self._rounds))

    def _left(self, round_number: int | None) -> str:
        """Say how much time is left, or nothing at the end."""
        done = self._finished - self._begun_at + self._share_of_case(round_number)
        todo = self._total - self._begun_at
        if not 0 < done < todo:
            return ""
        return f"{duration((monotonic() - self._begin) * (todo / done - 1))} left"


def duration(seconds: float) -> str:
    """Say a rough length of time: "about 40 s", "about 2.5 minutes", "about 3 hours"."""
    if seconds < 95:
        tens = 10 * round(seconds / 10)
        return f"about {tens} s" if tens else "some seconds"
    for unit, length in (("minutes", 60), ("hours", 3600), ("days", 86400)):
        if seconds < 90 * length or unit == "days":
            break
    count = seconds / length
    return f"about {count:.0f} {unit}" if count >= 9.75 else f"about {round(2 * count) / 2:g} {unit}"
