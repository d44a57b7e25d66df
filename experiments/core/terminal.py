"""What a run writes to the terminal: the answer to standard output, the progress to standard error.

Contract. An answer takes at most `LINES` lines of `COLUMNS` columns: table, sentence, what a quick run cannot
show, and the folder of the figures. The line with the folder alone may be longer, because a path is not
broken. The progress is a bar on a terminal, and a line for each finished case elsewhere.
"""

import shutil
import sys
from collections.abc import Mapping, Sequence
from pathlib import Path
from textwrap import shorten, wrap
from time import monotonic
from typing import Any

import numpy as np
import pandas as pd
from tqdm import tqdm

from experiments.analysis.answers import Answer, case_in_words, rounded, varying
from experiments.core.settings import Case

COLUMNS, LINES = 100, 8
SENTENCE_LINES, NOTE_LINES = 4, 1  # at most
_CASE_LETTERS = 40  # of a case beside the bar
_CUT = " ..."
_NO_BREAK = "\N{NO-BREAK SPACE}"
# What the size of --quick cannot show, by the kind of experiment: one line each.
FITS_CACHE = "--quick: this size fits the last cache, where memory order is worth little; leave --quick out."
SMALL_SYSTEM = "--quick: small systems of random positions, not of a gas of spheres; leave --quick out."
FEW_PARTICLES = "--quick: few particles for a short time, so that numbers scatter; leave --quick out."
FEW_RUNS = "--quick: one kept run of one density only; leave --quick out for all of them."
FEW_TRIALS = "--quick: too few trials to see a race that is rare; leave --quick out."
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
    return [*_table_lines(answer.table, LINES - len(words) - 1), *words, f"figures: {folder}"]


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
    """Progress of a sweep on standard error: a bar on a terminal, else a line for each finished case.

    Args:
        cases: of the sweep.
        finished: number of those that an earlier process finished.
    """

    def __init__(self, cases: Sequence[Case], finished: int = 0):
        self._varying = varying([case.place for case in cases])
        self._total, self._finished, self._begin = len(cases), finished, monotonic()
        self._bar = None
        if sys.stderr.isatty():
            width = min(COLUMNS, shutil.get_terminal_size().columns)
            self._bar = tqdm(total=len(cases), initial=finished, unit="case", ncols=width, file=sys.stderr)

    def __enter__(self) -> "Progress":
        return self

    def __exit__(self, *_: object) -> None:
        if self._bar is not None:
            self._bar.close()

    def show(self, place: Mapping[str, Any], round_number: int | None = None) -> None:
        """Show that a round of a case is finished, or the whole case.

        Args:
            place: columns of the case.
            round_number: of the round; None for the whole case.
        """
        name = shorten(case_in_words(place, self._varying), _CASE_LETTERS, placeholder=_CUT)
        if self._bar is None:
            if round_number is None:
                self._finished += 1
                words = f": {name}" if name else ""
                seconds = rounded(monotonic() - self._begin)
                line = f"case {self._finished} of {self._total}{words} ({seconds} s)"
                print(line, file=sys.stderr, flush=True)
            return
        parts = [name, "" if round_number is None else f"round {round_number + 1}"]
        self._bar.set_postfix_str(", ".join(filter(None, parts)), refresh=round_number is not None)
        if round_number is None:
            self._bar.update()
