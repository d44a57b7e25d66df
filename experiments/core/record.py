"""Write and read the folder of a run, so that a killed run loses at most a case or a round.

Contents of a folder. While cases are measured, the journal `rows.jsonl` has a line for each finished case, or
for each round of a timed case. A line is complete or absent, and has its own CRC-32. The tables are made from
the journal every few seconds, and at the end, when the journal is deleted. `provenance.json` holds the origin
of the table, the progress of the run, and the CRC-32 of `table.parquet`; while that table is replaced, those
of the old and of the new one. `error.txt` is the traceback of a failed attempt, until the run is complete.
Lines and tables without a CRC-32 are of older code, and are read as they are.
"""

import contextlib
import errno
import fcntl
import io
import json
import os
import secrets
import shutil
import time
import weakref
import zlib
from collections.abc import Callable, Iterator, Mapping, Sequence
from datetime import UTC, datetime
from pathlib import Path
from typing import Any, BinaryIO

import numpy as np
import pandas as pd

from experiments.core.settings import KEPT, UsageError
from experiments.results.tables import save_table
from md.checks import path as as_path
from md.io.atomic_write import replacing, write_atomically
from md.io.interrupt import defer_sigint
from sfc import checks

JOURNAL = "rows.jsonl"
PROVENANCE = "provenance.json"
TABLE = "table.parquet"
TABLE_CRC = "table_crc32"  # key of the provenance
ERROR = "error.txt"
SECONDS = 5.0  # between two writings of the tables
_OBJECT, _TEXT, _COUNT = (dict, "an object"), (str, "text"), (int, "an integer")
_TEXT_OR_NULL = ((str, type(None)), "text or null")
_CODE = {"code": _OBJECT, "code.commit": _TEXT_OR_NULL, "code.sources": _TEXT_OR_NULL}
_MACHINE = {"packages": _OBJECT, "environment": _OBJECT, "backend": _OBJECT, "machine": _OBJECT}
# Entries of a provenance that the code reads; * stands for each inside.
SHAPES: dict[str, tuple[Any, str]] = {
    "experiment": (str, "a word"),
    "config": _OBJECT,
    "quick": (bool, "true or false"),
    "command": (list, "a list of words"),
    "command.*": (str, "a word"),
    "grammars": _OBJECT,
    "grammars.*": _TEXT,
    "started": _TEXT,
    "ended": _TEXT,
    "status": _TEXT,
    "cases": _COUNT,
    "finished": _COUNT,
    "python": _TEXT,
    **_CODE,
    **_MACHINE,
    "resumed": (list, "a list of objects"),
    "resumed.*": _OBJECT,
    **{f"resumed.*.{name}": shape for name, shape in (_CODE | _MACHINE).items()},
    "reference": _OBJECT,
    "reference.commit": _TEXT,
    TABLE_CRC: ((int, list), "an integer, or a list of integers"),
}


class Record:
    """Folder of one run: `create` makes a new one, `reopen` resumes an old one.

    A record locks its journal until `release` or its deletion, so that no other process resumes the run.

    Args:
        folder: the run's own folder, with a journal.

    Attributes:
        folder: the run's own folder.
        finished: numbers of the finished cases.
        finish: function that adds columns computed from all rows; the identity unless it is set.
        release: releases the lock.

    Raises:
        UsageError: another process holds the lock, the folder cannot be written, or the journal is damaged.
    """

    def __init__(self, folder: Path):
        self.folder = as_path("folder", folder)
        journal = self.folder / JOURNAL
        self.release = weakref.finalize(self, os.close, _lock_journal(journal))
        try:
            self._cases, whole = _read_journal(journal)
            os.truncate(journal, whole)  # a line cut short is of a case that is measured again
        except OSError as error:
            self.release()
            raise _no_access(journal, error) from error
        except UsageError:
            self.release()
            raise
        self.finish: Callable[[pd.DataFrame], pd.DataFrame] = _unchanged
        self._table_crc: int | None = None
        self._written = time.monotonic()

    @classmethod
    def create(cls, results: Path, experiment: str, provenance: dict) -> "Record":
        """Create a folder `results/<experiment>/<utc>-<hash>/` from which a run can be resumed.

        Ctrl-C is deferred until the provenance is written, which `--resume` needs.

        Args:
            results: the results folder.
            experiment: name of the experiment.
            provenance: of the run, so far.

        Raises:
            UsageError: a results folder that cannot be made or written.
        """
        checks.text("experiment", experiment)
        folder = (
            as_path("results", results)
            / experiment
            / f"{datetime.now(UTC):%Y%m%dT%H%M%SZ}-{secrets.token_hex(4)}"
        )
        with defer_sigint():
            try:
                folder.mkdir(parents=True)
                (folder / JOURNAL).touch()
                record = cls(folder)
                record.describe(provenance)
            except BaseException as error:
                shutil.rmtree(folder, ignore_errors=True)
                if not isinstance(error, OSError):
                    raise
                raise UsageError(
                    f"cannot write results to {results}: {error.strerror or error}; give a folder you may "
                    "write to, on a disk with room, with --results"
                ) from error
            return record

    @classmethod
    def reopen(cls, run: Path) -> "Record":
        """Open the folder of a run that did not complete.

        Args:
            run: the folder.

        Raises:
            UsageError: a folder without a journal: of no run, or of a complete one; a folder that another
                process has locked or that cannot be written; or a damaged journal.
        """
        if not (as_path("run", run) / JOURNAL).is_file():
            raise UsageError(
                f"no {JOURNAL} in {run}; allowed: the folder of an interrupted, killed or failed run; "
                "--from repeats a finished run"
            )
        return cls(run)

    @property
    def finished(self) -> set[int]:
        """Return the numbers of the finished cases."""
        return {number for number, case in self._cases.items() if case.finished}

    def first_missing_round(self, number: int) -> int:
        """Return the first round of a case that is not recorded; 0 for a case that was not started.

        Args:
            number: of the case.
        """
        return len(self._cases[number].rounds) if number in self._cases else 0

    def check(self, places: dict[int, dict]) -> None:
        """Check that the recorded cases are those of a sweep.

        Args:
            places: number of each case -> the columns of its axes; column -> value.

        Raises:
            UsageError: a case differs.
        """
        for number, case in self._cases.items():
            wanted = {name: _plain(name, value) for name, value in places.get(number, {}).items()}
            for row in case.rows[:1]:
                found = {name: row.get(name) for name in wanted}
                if not wanted or found != wanted:
                    raise UsageError(
                        f"case {number} of {self.folder} has {found}, but its settings give {wanted}: the "
                        "experiment has changed since; take --from to measure all of it again"
                    )

    def add(self, number: int, rows: list[dict], round_number: int | None = None) -> None:
        """Record the rows of a finished case, or of one of its rounds.

        Args:
            number: of the case.
            rows: column -> number, str, bool or None.
            round_number: round of these rows; None for the last rows of the case, which finish it.

        Raises:
            TypeError: a value of another class; a cell of a table holds one value.
            ValueError: an integer outside the range of int64.
            OSError: the file cannot be written, for example on a full disk; the error names the file, and the
                cases before are kept.
        """
        number = checks.integer("number of a case", number, 0)
        if round_number is not None:
            round_number = checks.integer("number of a round", round_number, 0)
        rows = [{name: _plain(name, value) for name, value in row.items()} for row in rows]
        journal = self.folder / JOURNAL
        before = journal.stat().st_size
        try:
            with open(journal, "ab") as file:
                file.write(_line(number, rows, round_number, self.first_missing_round(number)))
                file.flush()
                os.fsync(file.fileno())
        except BaseException as error:
            with contextlib.suppress(OSError):
                os.truncate(journal, before)
            if isinstance(error, OSError):
                raise OSError(error.errno, error.strerror or str(error), str(journal)) from error
            raise
        self._cases.setdefault(number, _Case()).add(rows, round_number)
        if time.monotonic() - self._written > SECONDS:
            self.write_tables()

    def write_tables(self) -> None:
        """Write the table of all recorded rows, as Parquet and as CSV.

        Raises:
            OSError: they cannot be written; the error names the file, and the old files are unchanged.
        """
        table, parquet = self.table, io.BytesIO()
        table.to_parquet(parquet, index=False, write_page_checksum=True)
        write_bytes(self.folder / TABLE, parquet.getbuffer())
        self._table_crc = zlib.crc32(parquet.getbuffer())
        save_table(table, self.folder, "table")
        self._written = time.monotonic()

    def write_error(self, error: str) -> None:
        """Write the traceback of a failed attempt, if the disk has room."""
        with contextlib.suppress(OSError):
            (self.folder / ERROR).write_text(error, encoding="utf-8")

    def close(self) -> None:
        """Delete the journal and error.txt of a run that its provenance calls complete."""
        (self.folder / ERROR).unlink(missing_ok=True)
        (self.folder / JOURNAL).unlink()

    @property
    def table(self) -> pd.DataFrame:
        """Return the rows so far, in the order of the cases; one row is one observation.

        In an experiment that times, with the column `warning`.
        """
        return self.finish(_table(self._cases))

    def describe(self, provenance: dict) -> None:
        """Write the provenance as JSON, with the CRC-32 of the table if there is one.

        Raises:
            OSError: it cannot be written; the error names the file, and the old file is unchanged.
        """
        crc = {} if self._table_crc is None else {TABLE_CRC: self._table_crc}
        write_provenance(self.folder, provenance | crc)


def write_provenance(run: Path, provenance: Mapping[str, Any]) -> None:
    """Write the provenance of a run as JSON, whole or not at all.

    Args:
        run: its folder.
        provenance: of the run; what JSON does not hold is written as text.

    Raises:
        OSError: it cannot be written; the error names the file, and the old file is unchanged.
    """
    text = json.dumps(provenance, indent=2, default=str) + "\n"
    write_bytes(as_path("run", run) / PROVENANCE, text.encode())


def replace_table(run: Path, data: bytes) -> None:
    """Replace the table of a run, and its CRC-32 in the provenance if that has one.

    The provenance allows the old and the new table while one replaces the other. So after a kill, or on a
    full disk, the run has one of the two, and the next call completes the change.

    Args:
        run: its folder.
        data: the new table, as Parquet.

    Raises:
        OSError: a file cannot be written; the error names the file, and the old or the new table is there.
    """
    path = as_path("run", run) / TABLE
    origin, old, new = read_provenance(run), zlib.crc32(path.read_bytes()), zlib.crc32(data)
    if TABLE_CRC not in origin:
        return write_bytes(path, data)
    if old != new:
        write_provenance(run, origin | {TABLE_CRC: [old, new]})
        write_bytes(path, data)
    if origin[TABLE_CRC] != new:
        write_provenance(run, origin | {TABLE_CRC: new})
    return None


def write_bytes(path: Path, data: bytes | memoryview) -> None:
    """Write a file, whole or not at all.

    Args:
        path: of the file.
        data: its content.

    Raises:
        OSError: it cannot be written; the error names the file, and an old file is unchanged.
    """

    def write(file: BinaryIO) -> None:
        file.write(data)

    write_atomically(path, write)


def write_files(files: Mapping[Path, bytes]) -> None:
    """Write several files, each whole or not at all, and none of them if the disk is full.

    All are on the disk under partial names before the first is moved to its place. A killed process may leave
    some of them new and the others old.

    Args:
        files: path -> content.

    Raises:
        OSError: one cannot be written; the error names a file.
    """
    path = None
    try:
        with contextlib.ExitStack() as stack:
            for path, data in files.items():
                file = stack.enter_context(replacing(path))
                file.write(data)
                file.flush()
                os.fsync(file.fileno())
    except OSError as error:
        reason = f"{error.strerror or error}; each file is the old one or the new one"
        raise OSError(error.errno, reason, str(error.filename or path)) from error


def read_table(run: Path) -> pd.DataFrame:
    """Read the table of a run, or of its finished part.

    Args:
        run: a run's folder.

    Raises:
        UsageError: a folder without a table, or with one that is damaged or cannot be read.
    """
    run = as_path("run", run)
    if (run / JOURNAL).is_file():
        try:
            return _table(_read_journal(run / JOURNAL)[0])
        except OSError as error:
            raise _no_access(run / JOURNAL, error) from error
    path = run / TABLE
    if not path.is_file():
        raise UsageError(
            f"no {TABLE} in {run}; allowed: the folder of a run, results/<experiment>/<utc>-<hash>"
        )
    wanted = read_provenance(run).get(TABLE_CRC)
    remedy = f"restore a copy of it, or repeat the run with --from {run}"
    try:
        data = path.read_bytes()
        allowed = wanted if isinstance(wanted, list) else [wanted]
        if wanted is not None and zlib.crc32(data) not in allowed:
            sums = " or ".join(map(str, allowed))
            raise UsageError(
                f"{path} is damaged: its CRC-32 is {zlib.crc32(data)}, but {PROVENANCE} says {sums}; "
                f"{remedy}; if it was changed on purpose, delete {TABLE_CRC!r} from {PROVENANCE}"
            )
        return pd.read_parquet(io.BytesIO(data), page_checksum_verification=True)
    except UsageError:
        raise
    except Exception as error:  # pyarrow and pandas raise errors of many classes for a damaged file
        raise UsageError(f"{path} cannot be read: {_describe_error(error)}; {remedy}") from error


def read_provenance(run: Path) -> dict:
    """Read the provenance of a run; empty if there is none.

    Args:
        run: a run's folder.

    Raises:
        UsageError: a file that cannot be read, or is damaged.
    """
    path = as_path("run", run) / PROVENANCE
    if not path.is_file():
        return {}
    try:
        found = json.loads(path.read_bytes())
    except OSError as error:
        raise _no_access(path, error) from error
    except (ValueError, RecursionError, MemoryError) as error:
        raise _damaged(path, _describe_error(error)) from error
    if not isinstance(found, dict):
        raise _damaged(path, f"{checks.shown(found)}, not an object")
    for name, (kind, allowed) in SHAPES.items():
        for place, value in _entries(found, name.split(".")):
            if not isinstance(value, kind) or (isinstance(value, bool) and kind is not bool):
                raise _damaged(path, f"{place!r} is {checks.shown(value)}; allowed: {allowed}")
    return found


def _entries(found: Any, names: Sequence[str], place: str = "") -> Iterator[tuple[str, Any]]:
    """Yield the place and the value of each entry that a name of `SHAPES` stands for."""
    if not names:
        yield place[1:], found
        return
    inner = found if isinstance(found, dict) else dict(enumerate(found)) if isinstance(found, list) else {}
    for key in inner if names[0] == "*" else {names[0]} & inner.keys():
        yield from _entries(inner[key], names[1:], f"{place}.{key}")


def _damaged(path: Path, why: str) -> UsageError:
    return UsageError(
        f"{path} is damaged: {why}; restore a copy of it, or move it away: --replot draws without it, except "
        "curves of --curve-file; --resume and --from need it"
    )


def _no_access(path: Path, error: OSError) -> UsageError:
    return UsageError(
        f"{path}: {error.strerror or error}; allowed: a run's folder with permission to read, and to write "
        "for --resume; take a copy of the folder with these permissions"
    )


def _describe_error(error: BaseException) -> str:
    """Describe an error by its class and its message."""
    return f"{type(error).__name__}: {error}" if str(error) else type(error).__name__


def _table(kept: dict[int, "_Case"]) -> pd.DataFrame:
    rows = [row for number in sorted(kept) for row in kept[number].rows]
    table = pd.DataFrame(rows)
    # Where a row has no value, pandas makes floats of a column of integers.
    for name in table.select_dtypes("float64"):
        if (table[name].abs() >= checks.MOST_EXACT).any():
            values = [row.get(name) for row in rows]
            values = [None if value != value else value for value in values]
            if all(value is None or checks.is_integer(value) for value in values):
                table[name] = pd.array(values, "Int64")
    return table


def _unchanged(table: pd.DataFrame) -> pd.DataFrame:
    return table


class _Case:
    """Rows of a case by round; all in one round if the case is not timed in rounds."""

    def __init__(self):
        self.rounds: list[list[dict]] = []
        self.finished = False

    @property
    def rows(self) -> list[dict]:
        """Return the rows of all rounds."""
        return [row for rows in self.rounds for row in rows]

    def add(self, rows: list[dict], number: int | None) -> None:
        """Add the next round, or the last rows, which finish the case."""
        if rows:
            self.rounds.append(rows)
        self.finished = number is None


def _line(number: int, rows: list[dict], round_number: int | None, before: int = 0) -> bytes:
    """Write a line of the journal: a JSON list of case number, rows, round, and the CRC-32 of all.

    The last line of a case has -1 - `before` in place of the round, the number of rounds before it, so that a
    reader detects a missing one.
    """
    text = json.dumps([number, rows, ~before if round_number is None else round_number])[:-1].encode()
    return b"%b, %d]\n" % (text, zlib.crc32(text))


def _read_journal(path: Path) -> tuple[dict[int, _Case], int]:
    """Read a journal: each case by its number, and the length of the complete lines.

    Raises:
        UsageError: a damaged line before the last; the error names the line.
    """
    lines: dict[int, dict[int, list[dict]]] = {}
    whole = 0
    with open(path, "rb") as file:
        for count, line in enumerate(file, 1):
            if not line.endswith(b"\n"):
                break
            try:
                number, rows, round_number = _read_line(line)
            except (ValueError, TypeError, RecursionError, MemoryError) as error:
                raise UsageError(
                    f"{path}, line {count}, is damaged: {_describe_error(error)}; restore a copy of "
                    "the file, or delete that line: --resume measures its case again, or its round and those "
                    "after it"
                ) from error
            lines.setdefault(number, {})[round_number] = rows
            whole += len(line)
    return {number: _case_of(parts) for number, parts in lines.items()}, whole


def _case_of(parts: dict[int, list[dict]]) -> _Case:
    """Assemble a case from its lines, up to the first missing round."""
    case, number = _Case(), 0
    while number in parts:
        case.add(parts[number], number)
        number += 1
    if ~number in parts:
        case.add(parts[~number], None)
    return case


def _read_line(line: bytes) -> tuple[int, list[dict], int]:
    """Parse a line of the journal: number, rows and round; in a case's last line -1 - the rounds before it.

    Raises:
        ValueError: no JSON, another shape, or another CRC-32.
        TypeError: a cell that is no number or str.
    """
    found = json.loads(line)
    if not isinstance(found, list) or len(found) not in (2, 4):  # two, from older code
        raise ValueError("not a list of case number, rows, round and CRC-32")
    if len(found) == 4 and found[3] != (crc := zlib.crc32(line.rpartition(b", ")[0])):
        raise ValueError(f"its CRC-32 is {crc}, but the line says {checks.shown(found[3])}")
    number, rows, round_number = (*found, -1)[:3] if len(found) == 2 else found[:3]
    whole = checks.is_integer(number) and checks.is_integer(round_number)
    if not (whole and isinstance(rows, list) and all(isinstance(row, dict) for row in rows)):
        raise ValueError("not the number of a case with a list of its rows")
    return number, [{name: _plain(name, value) for name, value in row.items()} for row in rows], round_number


def _lock_journal(journal: Path) -> int:
    """Open the journal, and lock it until it is closed, where the file system has locks.

    Raises:
        UsageError: another process holds the lock, or the journal cannot be opened.
    """
    try:
        opened = os.open(journal, os.O_RDWR)
    except OSError as error:
        raise _no_access(journal, error) from error
    try:
        fcntl.flock(opened, fcntl.LOCK_EX | fcntl.LOCK_NB)
    except BlockingIOError as error:
        os.close(opened)
        raise UsageError(
            f"{journal.parent} is being measured by another process; allowed: a run that no process "
            "measures; wait for that process, or end it first"
        ) from error
    except OSError as error:
        if error.errno not in (errno.ENOLCK, errno.ENOTSUP):
            os.close(opened)
            raise _no_access(journal, error) from error
    return opened


def _plain(name: str, value: Any) -> Any:
    """Convert a value to one that JSON holds.

    Raises:
        TypeError: a value that no cell of a table holds.
        ValueError: an integer outside the range of int64.
    """
    value = value.item() if isinstance(value, np.generic) else value
    if isinstance(value, int) and not -(2**63) <= value < 2**63:
        raise checks.refuse_value(f"column {name!r}", value, KEPT, "give it as text")
    if value is None or isinstance(value, (str, bool, int, float)):
        return value
    raise TypeError(
        f"column {name!r} has {value!r:.80} of type {type(value).__name__}; allowed: a number, a str, a "
        "bool or None; give each number a column"
    )
