"""Answers of experiments in words: a small table, and a sentence with numbers and their intervals.

Contract. A number is followed by its interval over runs, "1.82 (1.76 to 1.88)". A gain without the word
"slower" or "no difference" is faster, by the verdict of `experiments.results.gains`. One run has no
verdict: the sentence calls its ranges those of rounds.
"""

import math
import string
from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np
import pandas as pd

from experiments.results import gains
from experiments.results.baselines import is_again
from experiments.results.tables import table_of
from sfc import checks

ONE_RUN = " One run: ranges are of its rounds."
TIME = "time_ms"
MOST = 3  # columns of a table, so that intervals fit a line
_MIDDLE_AND_ENDS = tuple(f"_{name}" for name in gains.ONE_RUN)


@dataclass(frozen=True)
class Answer:
    """Answer of an experiment.

    Args:
        table: a few rows, the most important first. The index labels the rows, the name of the columns stands
            over the labels; cells are text or numbers.
        sentence: the answer in plain words.
        lines: further sentences, each on a line of its own or wrapped; none for an answer of one sentence.

    Raises:
        TypeError: an argument of a wrong class.
    """

    table: pd.DataFrame
    sentence: str
    lines: tuple[str, ...] = ()

    def __post_init__(self):
        table_of("table", self.table)
        checks.text("sentence", self.sentence)


def rounded(value: float) -> str:
    """Format a number with the digits that a reader needs: 0.0021, 0.98, 1.82, 40.1, 524,288; - for NaN."""
    if not math.isfinite(value):
        return "-"
    size = abs(value)
    if size < 0.095:
        return f"{value:.2g}"
    return f"{value:,.{2 if size < 9.995 else 1 if size < 99.95 else 0}f}"


def percent(share: float) -> str:
    """Format a share of one as a percentage: 0.05 as "5 %"."""
    return f"{rounded(100 * share).removesuffix('.00').removesuffix('.0')} %" if math.isfinite(share) else "-"


def listed(words: Iterable[object]) -> str:
    """Join words by commas, the last two by "and"."""
    *first, last = map(str, words)
    return f"{', '.join(first)} and {last}" if first else last


def quoted(name: str) -> str:
    """Quote a name with a comma in it, which would end there."""
    return f'"{name}"' if "," in name else name


def word(column: str, value: Any) -> str:
    """Return the text of a value in a title: a share in %, a number with commas, a flag by its name.

    Args:
        column: of the table.
        value: one of its values.
    """
    if column == "filling_fraction":
        return percent(value)
    if isinstance(value, bool | np.bool_):
        return column.replace("_", " ") if value else f"not {column.replace('_', ' ')}"
    if not checks.is_number(value):
        return quoted(str(value))
    number = float(value)
    is_count = checks.is_integer(value) or (number >= 1000 and number.is_integer())
    return f"{number:,.0f}" if is_count else f"{number:g}"


def fields_of(template: str) -> list[str]:
    """Return the names of the fields of a template, such as `n` of "{n} particles"."""
    return [name for _, name, _, _ in string.Formatter().parse(template) if name]


def filled(template: str, words: Mapping[str, str]) -> str:
    """Fill the fields of a template.

    Raises:
        ValueError: a field without a word.
    """
    missing = [name for name in fields_of(template) if name not in words]
    if missing:
        raise ValueError(
            f"{template!r} has no word for {', '.join(missing)}; allowed: fields {', '.join(words)}"
        )
    return template.format(**words)


def few(values: Iterable[Any], most: int = MOST) -> list:
    """Select values evenly, first and last among them.

    Args:
        values: of a column; each counts once.
        most: number of values that are selected at most, 2 or more.
    """
    every = sorted(set(values))
    if len(every) <= most:
        return every
    return [every[place] for place in np.linspace(0, len(every) - 1, most).round().astype(int)]


def estimate(row: Mapping, value: str, show: Callable[[float], str] = rounded, note: str = "") -> str:
    """Format a value with its interval over runs, or with the range of one run's rounds.

    Args:
        row: of `gains.over_runs` or `gains.gains`.
        value: its column.
        show: format of a number.
        note: follows the interval, such as "slower".
    """
    centre, low, high = bounds(row, value)
    ends = "" if math.isnan(low) or show(low) == show(high) else f"{show(low)} to {show(high)}"
    inside = ", ".join(filter(None, (ends, note)))
    return f"{show(centre)} ({inside})" if inside else show(centre)


def bounds(row: Mapping, value: str) -> tuple[float, float, float]:
    """Return centre, lower and upper end of a value in a row of `gains.over_runs`; NaN for no ends."""
    names = ("", "_low", "_high") if math.isfinite(row.get(value, math.nan)) else _MIDDLE_AND_ENDS
    centre, low, high = (float(row.get(value + name, math.nan)) for name in names)
    return centre, low, high


def spread(values: Iterable[float], show: Callable[[float], str] = rounded) -> str:
    """Format the median of values with their range, for what is not timed: "2.51 % (2.50 to 2.64)"."""
    known = np.asarray([value for value in values if math.isfinite(value)], dtype=float)
    if not len(known):
        return "-"
    middle, low, high = (show(float(end)) for end in (np.median(known), known.min(), known.max()))
    return middle if low == high else f"{middle} ({low.removesuffix(' %')} to {high.removesuffix(' %')})"


def grid(
    found: pd.DataFrame,
    rows: str,
    columns: str,
    cell: Callable[[dict], object],
    title: str,
    heading: Callable[[Any], str] = str,
) -> pd.DataFrame:
    """Arrange a summary as the table of an answer: a row for each value of a column, and a column of another.

    Args:
        found: one row for each cell; rows of the table keep its order.
        rows: column that labels the rows.
        columns: column with the names of the new columns, at most `MOST` of them.
        cell: content of a cell, from a row of the summary.
        title: stands over the labels.
        heading: words over a column, from its value.

    Raises:
        TypeError: no table.
        ValueError: a column that is missing.
    """
    table_of("found", found, [rows, columns])
    chosen = few(found[columns])
    cells: dict[str, dict] = {heading(value): {} for value in chosen}
    for row in found[found[columns].isin(chosen)].to_dict("records"):
        cells[heading(row[columns])].setdefault(row[rows], cell(row))
    index = list(dict.fromkeys(found[rows]))
    return pd.DataFrame(cells, index=index).rename_axis(columns=title)


def ranked(rows: pd.DataFrame, label: str) -> dict[str, dict]:
    """Return the cases by their mean time over runs, least first -> row of `gains.over_runs`.

    Args:
        rows: columns `label`, `run`, `round` and `time_ms`; second measurements are no cases.
        label: the column that names the cases.
    """
    found = gains.over_runs(rows[~rows[label].map(is_again)], [label], TIME)
    centres = found.assign(centre=gains.bounds(found, TIME)["centre"]).sort_values("centre")
    return {row[label]: row for row in centres.to_dict("records")}


def _gains_of(rows: pd.DataFrame, label: str, over: str) -> dict[str, dict]:
    """Return name of a case -> its row of `gains.gains`, of rows that are compared with each other."""
    return {row[label]: row for row in gains.gains(rows, [], label, over, TIME).to_dict("records")}


def largest_gain(ratios: pd.DataFrame) -> dict[str, Any]:
    """Return the row of `gains.gains` with the largest gain."""
    centres = gains.bounds(ratios, "gain")["centre"].to_numpy()
    rows: list[Any] = ratios.to_dict("records")
    return rows[int(centres.argmax())]


def gain_in_words(row: Mapping) -> str:
    """Format a gain, with its verdict if it is not faster: "0.90 (0.85 to 0.95, slower)"."""
    verdict = row.get("difference", "")
    return estimate(row, "gain", note="" if verdict == gains.FASTER else verdict)


def pair_in_words(row: Mapping, name: str, other: str) -> str:
    """Compare a case with another: "row over hilbert 1.02 (0.98 to 1.05): no difference".

    Args:
        row: of `gains.gains` over the other.
        name: of the case.
        other: name of the other.
    """
    verdict = row.get("difference", "")
    return f"{name} over {other} {estimate(row, 'gain')}" + (f": {verdict}" if verdict else "")


def one_run(rows: pd.DataFrame) -> str:
    """Return the sentence that calls the ranges of one run what they are; empty for several, or a round."""
    several = rows["run"].nunique() > 1
    return "" if several or rows["round"].nunique() < 2 else ONE_RUN


def headline(rows: pd.DataFrame, *columns: str) -> pd.DataFrame:
    """Select the rows of one case: the largest number in each column, or the word that stands first.

    Args:
        rows: of any cases.
        columns: in the order in which they are fixed.

    Raises:
        TypeError: no table.
        ValueError: a column that is missing.
    """
    for column in columns:
        values = table_of("rows", rows, [column])[column]
        is_number = pd.api.types.is_numeric_dtype(values) and not pd.api.types.is_bool_dtype(values)
        rows = rows[values == (values.max() if is_number else values.iloc[0])]
    return rows


@dataclass(frozen=True)
class Comparison:
    """Answer as data: how much faster cases are than a baseline; `main` and pages call it with a table.

    The sentence says how much faster the best cases are, and how they compare with each other. Without a
    baseline it has times, and says that there is none; so it does without a case to compare.

    Args:
        label: the column that names the cases.
        baselines: the first of them that was measured is the baseline, the others are no cases; or a function
            of the rows that returns them.
        column: the column of the table; the sentence is about its first value.
        where: the words in front of the sentence, with columns as fields: "At {filling_fraction} filled".
        rows: pandas query that selects the rows; empty for all.
        fixed: columns of `headline`.
        heading: words over a column of the table, from its value.
        first: case that is named first, if it was measured; else the fastest.
        kind: follows the name of a baseline: " memory".
        prepare: function of the table that adds columns or sorts rows; None for the table as it is.
        more: function of the rows of the sentence that returns the words at its end; None for none.
    """

    label: str
    baselines: Sequence[str] | Callable[[pd.DataFrame], Sequence[str]]
    column: str
    where: str
    rows: str = ""
    fixed: tuple[str, ...] = ()
    heading: Callable[[Any], str] = str
    first: str = ""
    kind: str = ""
    prepare: Callable[[pd.DataFrame], pd.DataFrame] | None = None
    more: Callable[[pd.DataFrame], str] | None = None

    def __call__(self, table: pd.DataFrame) -> Answer:
        """Answer for a table with the columns `label`, `column`, `run`, `round` and `time_ms`.

        Raises:
            TypeError: no table.
            ValueError: a column that is missing.
        """
        given = self.prepare(table) if self.prepare else table_of("table", table)
        rows = given.query(self.rows, engine="python") if self.rows else given
        rows = gains.with_rounds(rows, list(dict.fromkeys((*self.fixed, self.column, self.label))))
        rows = headline(rows, *self.fixed)
        baselines = self.baselines(rows) if callable(self.baselines) else self.baselines
        at = rows[rows[self.column] == rows[self.column].iloc[0]]
        times = {name: estimate(row, TIME) for name, row in ranked(at, self.label).items()}
        measured = [name for name in baselines if name in times]
        sentence = self._sentence(at, times, measured, baselines)
        return Answer(self._table(rows, at, list(times), measured), sentence)

    def _sentence(
        self, rows: pd.DataFrame, times: Mapping[str, str], measured: Sequence[str], baselines: Sequence[str]
    ) -> str:
        """Compare the best two cases with the baseline and with each other.

        Args:
            rows: that the sentence is about.
            times: name -> its time in ms, the fastest first.
            measured: baselines among them.
            baselines: all.
        """
        names, cases = list(times), [name for name in times if name not in measured]
        best = self.first if self.first in cases else next(iter(cases), "")
        second = next((name for name in cases if name != best), "")
        ratios = _gains_of(rows, self.label, measured[0]) if measured else {}
        if best in ratios:
            said = f"{quoted(best)} is {gain_in_words(ratios[best])} times as fast as "
            said += quoted(measured[0]) + self.kind
            said += f", {quoted(second)} {gain_in_words(ratios[second])}" if second in ratios else ""
        elif best:
            said = f"{quoted(best)} takes {times[best]} ms"
            said += f", {quoted(second)} {times[second]} ms" if second else ""
            said += f", without a baseline ({listed(baselines)} not measured)" if baselines else ""
        else:
            said = listed(f"{quoted(name)} takes {times[name]} ms" for name in names)
            said += ", and nothing else was measured"
        where = filled(self.where, {str(name): word(str(name), rows[name].iloc[0]) for name in rows})
        parts = [f"{where}, {said}"]
        pair = sorted((best, second), key=names.index) if second else [best, *measured[1:2]]
        if len(pair) > 1 and (row := _gains_of(rows, self.label, pair[1]).get(pair[0])):
            kind = "" if second else self.kind
            parts.append(pair_in_words(row, quoted(pair[0]), quoted(pair[1]) + kind))
        parts.append(self.more(rows) if self.more else "")
        return f"{'; '.join(filter(None, parts))}.{one_run(rows)}"

    def _table(
        self, rows: pd.DataFrame, at: pd.DataFrame, names: Sequence[str], measured: Sequence[str]
    ) -> pd.DataFrame:
        """Return gains over the first baseline for each value of the column, or times where there are none.

        Args:
            rows: of all values of the column.
            at: of the first one.
            names: of the cases there, the fastest first.
            measured: baselines among them.
        """
        several, found = rows[self.column].nunique() > 1, pd.DataFrame()
        value, title, heading = "gain", f"gain over {next(iter(measured), '')}", self.heading
        if several and measured:
            found = gains.gains(rows, [self.column], self.label, measured[0], TIME)
        if found.empty:
            found = gains.over_runs(rows[rows[self.label].isin(names)], [self.column, self.label], TIME)
            value, title = TIME, "time (ms)" if several else self.label
            heading = self.heading if several else lambda _: "time (ms)"
        places = {
            name: place for place, name in enumerate(sorted(names, key=lambda name: name != self.first))
        }
        found = found.sort_values(self.label, key=lambda cases: cases.map(places), kind="stable")
        table = grid(found, self.label, self.column, lambda row: estimate(row, value), title, heading)
        for name in () if several else measured:
            ratios = _gains_of(at, self.label, name).items()
            table[f"gain over {name}"] = pd.Series({case: estimate(row, "gain") for case, row in ratios})
        return table


def varying(places: Sequence[Mapping[str, Any]]) -> list[str]:
    """List the columns in which cases differ, besides their number.

    Args:
        places: columns of each case; all have the same.
    """
    names = places[0] if places else {}
    return [name for name in names if name != "case" and len({place[name] for place in places}) > 1]


def case_in_words(place: Mapping[str, Any], names: Iterable[str]) -> str:
    """Describe a case by some of its columns: "n 1,024, 5 % filled, hilbert, not fused"."""
    words = []
    for name in names:
        text = place[name] if isinstance(place[name], str) else word(name, place[name])
        if name == "filling_fraction":
            text = f"{text} filled"
        elif checks.is_number(place[name]):
            text = f"{name.replace('_', ' ')} {text}"
        words.append(text)
    return ", ".join(words)


def rows_of(
    found: pd.DataFrame, case: Sequence[str], cells: Mapping[str, Callable[[dict], object]], most: int = 3
) -> pd.DataFrame:
    """Arrange a summary as the table of an answer: a row for each case, evenly selected.

    Args:
        found: one row for each case.
        case: columns that identify it; those in which cases differ label the rows.
        cells: name of a column of the table -> its content, from a row of the summary.
        most: number of rows at most, 2 or more.

    Raises:
        TypeError: no table.
        ValueError: a column that is missing.
    """
    every: list[Any] = table_of("found", found, case).to_dict("records")
    names = varying([{name: row[name] for name in case} for row in every]) or case[:1]
    chosen: list[Any] = found.iloc[few(range(len(found)), most)].to_dict("records")
    table = [{name: cell(row) for name, cell in cells.items()} for row in chosen]
    labels = [case_in_words(row, names) for row in chosen]
    return pd.DataFrame(table, index=labels).rename_axis(columns="case")
