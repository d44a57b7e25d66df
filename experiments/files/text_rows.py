"""Text files of particle codes: their lines, and rows of fields between blanks as columns."""

from __future__ import annotations

import io
from collections.abc import Sequence
from pathlib import Path

import numpy as np
import pandas as pd

from experiments.files.data import FileError, refused

MOST_DIGITS = 18  # of an integer in a header


def lines_of(path: Path) -> list[str]:
    """Read the lines of a text file, without their ends.

    Raises:
        FileError: no text.
    """
    try:
        text = path.read_bytes().decode("utf-8")
    except UnicodeDecodeError as error:
        raise refused(path, f"byte {error.start} is no text", "text in UTF-8") from error
    lines = text.replace("\r\n", "\n").split("\n")
    return lines[:-1] if not lines[-1] else lines


def columns_of(path: Path, names: Sequence[str], rows: Sequence[str], first: int) -> dict[str, np.ndarray]:
    """Convert rows to columns.

    Args:
        path: of the file.
        names: of the fields of each row.
        rows: lines with as many fields between blanks.
        first: number of the first line in the file, for messages.

    Returns:
        name -> (n,), numbers where all fields are.

    Raises:
        FileError: a row with another number of fields, or names that repeat.
    """
    if len(set(names)) < len(names):
        raise refused(path, f"columns {' '.join(names)!r:.80}", "distinct names")
    for k, row in enumerate(rows):
        if (count := len(row.split())) != len(names):
            raise refused(
                path, f"line {first + k} has {count} fields ({row!r:.60})", f"{len(names)}: {' '.join(names)}"
            )
    found = pd.read_csv(
        io.StringIO("\n".join(rows)),
        sep=r"\s+",
        header=None,
        names=list(names),
        index_col=False,
        quoting=3,
        float_precision="round_trip",
        low_memory=False,
    )
    if len(found) != len(rows):
        raise refused(path, f"{len(rows)} lines that make {len(found)} rows", "one row a line")
    return {name: found[name].to_numpy() for name in names}


def whole_number(path: Path, line: int, word: str, what: str, least: int = 0) -> int:
    """Convert a word to an integer.

    Raises:
        FileError: no integer, or one below the least.
    """
    digits = word.strip().lstrip("+-")
    if not (digits.isascii() and digits.isdecimal() and len(digits) <= MOST_DIGITS) or int(word) < least:
        raise refused(path, f"line {line}: {what} = {word.strip()!r:.40}", f"an integer from {least} on")
    return int(word)


def number(path: Path, line: int, word: str, what: str) -> float:
    """Convert a word to a finite number.

    Raises:
        FileError: no number, or one that is not finite.
    """
    try:
        found = float(word)
    except ValueError:
        found = np.nan
    if not np.isfinite(found):
        raise refused(path, f"line {line}: {what} = {word!r:.40}", "a finite number")
    return found


def distinct_ids(path: Path, columns: dict[str, np.ndarray], name: str = "id") -> np.ndarray:
    """Return the ids of a column, (n,) int64.

    Raises:
        FileError: no integers, or one that repeats.
    """
    ids = columns[name]
    if ids.dtype.kind not in "iu" or (ids.size and int(ids.max()) >= 2**62):
        raise FileError(f"{path}: column {name!r} of {ids.dtype}; allowed: integers; correct the file")
    ranked = np.sort(ids)
    if (same := ranked[1:] == ranked[:-1]).any():
        raise refused(path, f"id {ranked[int(same.argmax())]} twice", "distinct ids")
    return ids.astype(np.int64)
