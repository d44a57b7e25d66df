"""Tables: CSV and other text with a separator, and Parquet; rows are kept as they are written.

A CSV file is read strictly: each line has as many fields as the first, the first line is names or numbers but
not both, and a column of positions holds numbers alone. Separators are `;`, tab, `,`, `|` or blanks.
"""

from __future__ import annotations

import csv
import io
import re
from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path

import numpy as np
import pandas as pd
import pyarrow as pa
import pyarrow.parquet as pq

from experiments.files.columns import AXES, from_columns
from experiments.files.data import Data, FileError, check_order, no_frames, refused
from experiments.files.opening import library, write_whole
from sfc import checks

SEPARATORS = (";", "\t", ",", "|", " ")
COMMA = re.compile(r"[+-]?\d+,\d+(?:[eE][+-]?\d+)?")  # a number with a decimal comma
LOOKED_AT = 1000  # lines from which separator and decimal mark are taken
BOM = "\ufeff"


@dataclass(frozen=True)
class Lines:
    """Lines of a text table.

    Attributes:
        head: comments and the line of names, as written.
        rows: lines of values, as written.
        numbers: number of each of these lines in the file, from 1.
        names: of the columns.
        named: whether the file names them.
        separator: between fields; a blank for any number of blanks.
        newline: end of a line.
        encoding: of the text.
    """

    head: list[str]
    rows: list[str]
    numbers: list[int]
    names: list[str]
    named: bool
    separator: str
    newline: str
    encoding: str


def read_csv(path: Path, columns: Sequence[str], frame: int) -> Data:
    """Read points or particles from a table of text.

    Without a line of names the columns are "0", "1", ...; two or three of them are x, y and z.

    Raises:
        FileError: as `read` of this package; a line with another number of fields than the first.
    """
    no_frames(path, frame)
    with library(path, "a table"):
        lines = _lines(path)
        decimal = "," if _has_commas(lines) else "."
        frame_of = pd.read_csv(
            io.StringIO("\n".join(lines.rows)),
            sep=r"\s+" if lines.separator == " " else lines.separator,
            header=None,
            names=lines.names,
            index_col=False,
            decimal=decimal,
            float_precision="round_trip" if decimal == "." else None,
            skipinitialspace=True,
            low_memory=False,
            on_bad_lines="error",
        )
        if len(frame_of) != len(lines.rows):
            raise refused(path, f"{len(lines.rows)} lines that make {len(frame_of)} rows", "one row a line")
        said = ["decimal marks are commas"] if decimal == "," else []
        axes = list(columns)
        if not lines.named and not columns and len(lines.names) in (2, 3):
            axes = lines.names
            said.append(f"the columns are {', '.join(AXES[: len(axes)])}: the file names none")
        table = {name: frame_of[name].to_numpy() for name in lines.names}
        _require_numbers(path, lines, table, axes)
        return from_columns(path, table, axes, said, choice=tuple(columns))


def write_csv(data: Data, order: np.ndarray, target: Path) -> Path:
    """Write the lines of a table in another order, as they are in the file."""
    with library(data.path, "a table"):
        lines = _lines(data.path)
    order = check_order(order, len(lines.rows))
    written = [*lines.head, *(lines.rows[i] for i in order.tolist())]

    def write(partial: Path) -> None:
        text = lines.newline.join([*written, ""])
        partial.write_bytes(text.encode(lines.encoding))

    return write_whole(target, write)


def read_parquet(path: Path, columns: Sequence[str], frame: int) -> Data:
    """Read points or particles from a Parquet file.

    Raises:
        FileError: as `read` of this package; more bytes than there is memory.
    """
    no_frames(path, frame)
    with library(path, "a Parquet file"):
        table = _parquet(path)
        names = table.column_names
        if len(set(names)) < len(names):
            raise refused(path, "columns of one name", "distinct names")
        arrays = {name: table.column(name).to_numpy() for name in names}
        return from_columns(path, arrays, columns)


def write_parquet(data: Data, order: np.ndarray, target: Path) -> Path:
    """Write the rows of a Parquet file in another order, with its schema, metadata and compression."""
    with library(data.path, "a Parquet file"):
        table = _parquet(data.path)
        with pq.ParquetFile(io.BytesIO(data.path.read_bytes())) as file:
            groups = file.metadata.num_row_groups
            codec = file.metadata.row_group(0).column(0).compression if groups else "SNAPPY"
        moved = table.take(pa.array(check_order(order, table.num_rows)))

    def write(partial: Path) -> None:
        pq.write_table(moved, partial, compression="NONE" if codec == "UNCOMPRESSED" else codec)

    return write_whole(target, write)


def _parquet(path: Path) -> pa.Table:
    """Read a whole Parquet file, after a check of its size.

    Raises:
        FileError: more bytes than there is memory.
    """
    with pq.ParquetFile(io.BytesIO(path.read_bytes())) as file:
        about = file.metadata
        size = sum(about.row_group(k).total_byte_size for k in range(about.num_row_groups))
        if size > checks.host_memory() or not 0 <= about.num_rows < 2**48:
            raise refused(path, f"{checks.bytes_shown(size)} unpacked", "what the memory holds")
        table = file.read()
        table.validate(full=True)
    return table


def _lines(path: Path) -> Lines:
    """Split a text table into comments, names and rows.

    Raises:
        FileError: no text, no rows, a line with another number of fields, or a first line of both names and
            numbers.
    """
    text, encoding = _text(path)
    newline = "\r\n" if "\r\n" in text else "\n"
    every = [(k, line) for k, line in enumerate(re.split(r"\r\n|\n|\r", text), 1) if line.strip()]
    comments = 0
    while comments < len(every) and every[comments][1].lstrip(BOM).lstrip().startswith("#"):
        comments += 1
    head, rest = every[:comments], every[comments:]
    if not rest:
        raise refused(path, "no rows", "a line of names and lines of numbers")
    separator = _separator([line for _, line in rest[:LOOKED_AT]])
    first = _fields(rest[0][1].lstrip(BOM), separator)
    numeric = [_is_numeric(word) for word in first]
    named = not any(numeric)
    if any(numeric) and not all(numeric):
        raise refused(
            path,
            f"line {rest[0][0]}, the first, holds numbers and {first[numeric.index(False)]!r:.40}",
            "names of columns alone, or numbers alone",
            "name the columns in a first line, or remove that one",
        )
    names = [word or f"column_{k}" for k, word in enumerate(first)]
    if named:
        head, rest = every[: comments + 1], rest[1:]
    else:
        names = [str(k) for k in range(len(first))]
        said = _fields(head[-1][1].lstrip(BOM).lstrip().lstrip("#").strip(), separator) if head else []
        if len(said) == len(first) and not any(map(_is_numeric, said)):
            names, named = said, True
    if repeated := next((name for name in names if names.count(name) > 1), ""):
        raise refused(path, f"column {repeated!r} twice", "distinct names of columns", "rename one")
    if not rest:
        raise refused(path, "a line of names and no rows", "lines of numbers below it")
    for number, line in rest:
        if (count := len(_fields(line, separator))) != len(names):
            raise refused(
                path,
                f"line {number} has {count} fields ({line!r:.60})",
                f"{len(names)}, as line {every[comments][0]}",
                "correct or remove that line",
            )
    rows = [line for _, line in rest]
    numbers = [number for number, _ in rest]
    return Lines([line for _, line in head], rows, numbers, names, named, separator, newline, encoding)


def _text(path: Path) -> tuple[str, str]:
    """Read text, UTF-8 or UTF-16 with a mark; return it and its encoding.

    Raises:
        FileError: neither, or control characters.
    """
    content = path.read_bytes()
    encoding = "utf-16" if content[:2] in (b"\xff\xfe", b"\xfe\xff") else "utf-8"
    try:
        text = content.decode(encoding)
    except UnicodeDecodeError as error:
        raise refused(path, f"byte {error.start} is no {encoding}", "text in UTF-8") from error
    if found := re.search(r"[\0-\x08\x0b-\x1f\x7f\x85\u2028\u2029]", text.replace("\r", "")):
        raise refused(path, f"the control character {found[0]!r} at {found.start()}", "lines of text")
    if '"' in text and (odd := next((x for x in text.split("\n") if x.count('"') % 2), None)):
        raise refused(path, f"a quote that does not end in its line ({odd!r:.60})", "one row a line")
    return text, encoding


def _separator(lines: list[str]) -> str:
    """Return the first separator that all lines have; a blank if none."""
    for separator in SEPARATORS[:-1]:
        if all(separator in line for line in lines):
            return separator
    found = [sum(separator in line for line in lines) for separator in SEPARATORS[:-1]]
    if max(found) * 2 > len(lines):  # damaged lines are refused by their number of fields
        return SEPARATORS[found.index(max(found))]
    return " "


def _fields(line: str, separator: str) -> list[str]:
    """Split a line into fields, without blanks around them."""
    if separator == " ":
        return line.split() if '"' not in line else next(csv.reader([" ".join(line.split())], delimiter=" "))
    if '"' in line:
        return [word.strip() for word in next(csv.reader([line], delimiter=separator, skipinitialspace=True))]
    return [word.strip() for word in line.split(separator)]


def _is_numeric(word: str) -> bool:
    """Return whether a field is a number, with a decimal point or comma."""
    try:
        float(word.replace(",", ".", 1))
    except ValueError:
        return False
    return True


def _has_commas(lines: Lines) -> bool:
    """Return whether numbers have decimal commas."""
    if lines.separator == ",":
        return False
    fields = (_fields(line, lines.separator) for line in lines.rows[:LOOKED_AT] if "," in line)
    return any(COMMA.fullmatch(word) for words in fields for word in words)


def _require_numbers(path: Path, lines: Lines, table: dict[str, np.ndarray], columns: Sequence[str]) -> None:
    """Check the columns that were chosen for positions, and name the line of the first word among them.

    Raises:
        FileError: a word among numbers.
    """
    wanted = [name for name in columns if name in table] or [
        name for name in table if name.casefold() in AXES
    ]
    for name in wanted:
        column = table[name]
        if column.dtype.kind in "fiu":
            continue
        place = lines.names.index(name)
        for number, line in zip(lines.numbers, lines.rows, strict=True):
            word = _fields(line, lines.separator)[place]
            if not _is_numeric(word) or ("," in word) != _has_commas(lines):
                raise FileError(
                    f"{path}: line {number} has {word!r:.40} in column {name!r}; allowed: numbers, with one "
                    "decimal mark; correct or remove that line"
                )
