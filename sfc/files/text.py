"""Tables of text (.csv): each row stays as it is written, its digits and quotes too, in a new place."""

import csv
import io
from collections.abc import Iterator, Sequence
from pathlib import Path
from typing import BinaryIO

import numpy as np

from sfc import checks
from sfc.files.columns import AXES, coordinate_columns

DELIMITERS = (",", ";", "\t")  # without any of them, fields are apart by blanks
COMMENT = "#"
MARK = "\ufeff"  # that some editors write before a text


class TextTable:
    """Table of a .csv file, with or without a line of names, and with comments before it.

    Args:
        path: of the file. Fields are apart by commas, semicolons, tabs or blanks, those that are most in the
            first line; decimal points only.

    Raises:
        OSError: a file that cannot be read.
        ValueError: no rows, or quotes that are not closed.
    """

    def __init__(self, path: Path):
        text = path.read_bytes().decode("utf-8", "surrogateescape")  # other bytes come out as they were
        mark, text = (MARK, text[1:]) if text.startswith(MARK) else ("", text)
        lines = list(io.StringIO(text, newline=""))
        first = next((k for k, line in enumerate(lines) if line.strip() and line[0] != COMMENT), len(lines))
        if first == len(lines):
            raise checks.refuse_value(f"rows of {path}", 0, "at least one row of numbers")
        self._path, self._lines, self._first = path, lines, first
        self._end = "\r\n" if lines[0].endswith("\r\n") else "\n"
        counts = [lines[first].count(one) for one in DELIMITERS]
        self._delimiter = DELIMITERS[counts.index(max(counts))] if max(counts) else None
        self._head = [mark, *lines[:first]]
        self._names: list[str] | None = None
        _, fields, line = next(self._records())
        self._count = len(fields)
        if not all(map(_is_number, fields)):
            self._names = [field.strip() for field in fields]
            self._head += lines[first:line]
            self._first = line
        # numpy.savetxt writes names, or anything else, into the last line of comments
        self._said = (
            [one.strip() for one in self._fields_of(lines[first - 1].lstrip(COMMENT))] if first else []
        )
        self._rows: list[str] = []
        self.notes: list[str] = []

    def coordinates(self, columns: Sequence[str] | None) -> np.ndarray:
        """Return the coordinates, (n, dim) float64; `columns` as for `coordinate_columns`.

        Raises:
            ValueError: as `coordinate_columns`; a row of another number of fields, or a coordinate that is no
                number, with its line.
        """
        names = self._names
        if names is None and len(self._said) == self._count:
            known = {*self._said, *(one.lower() for one in self._said)}
            names = self._said if {*(columns or AXES[:2])} <= known else None
        chosen = coordinate_columns(columns, names, self._count)
        self._rows, numbers, blank = [], [], 0
        for raw, fields, line in self._records():
            if not raw.strip():
                blank += 1
                continue
            if len(fields) != self._count:
                where = f"fields of line {line} of {self._path}"
                raise checks.refuse_value(where, len(fields), f"{self._count}, as in the first line")
            for k in chosen:
                if not _is_number(fields[k]):
                    where = f"column {names[k] if names else k} in line {line} of {self._path}"
                    raise checks.refuse_value(where, fields[k], "a number with a decimal point")
            numbers.append([float(fields[k]) for k in chosen])
            self._rows.append(raw if raw.endswith(("\n", "\r")) else raw + self._end)
        self.notes = [f"left out: {blank} blank lines"] if blank else []
        return np.array(numbers, np.float64).reshape(-1, len(chosen))

    def write(self, order: np.ndarray, stream: BinaryIO) -> None:
        """Write comments, names, and the rows in an order, (n,) int64."""
        for line in (*self._head, *(self._rows[row] for row in order.tolist())):
            stream.write(line.encode("utf-8", "surrogateescape"))

    def _fields_of(self, line: str) -> list[str]:
        return line.split() if self._delimiter is None else line.strip().split(self._delimiter)

    def _records(self) -> Iterator[tuple[str, list[str], int]]:
        """Iterate over the rows: text, fields, and the number of the last line, from 1."""
        lines, first = self._lines, self._first
        if self._delimiter is None:
            yield from ((line, line.split(), k) for k, line in enumerate(lines[first:], first + 1))
            return
        reader = csv.reader(iter(lines[first:]), delimiter=self._delimiter, strict=True)
        done = 0
        try:
            for fields in reader:
                yield "".join(lines[first + done : first + reader.line_num]), fields, first + reader.line_num
                done = reader.line_num
        except csv.Error as error:
            where = f"line {first + reader.line_num} of {self._path}"
            raise checks.refuse_value(
                where, lines[first + done], "fields with closed quotes", str(error)
            ) from error


def _is_number(field: str) -> bool:
    try:
        float(field)
    except ValueError:
        return False
    return "_" not in field
