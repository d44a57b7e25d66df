"""Write and read the folder of a run, so that a killed run loses at most a case or a round.

While cases are measured, the SQLite database `rows.sqlite` has a row for each finished round of a timed case,
and for the last rows of each case, with a CRC-32. A transaction adds one such row: after a kill, a power cut
or on a full disk, the row is complete or absent. The measuring process holds the exclusive lock of the
database, so that no other process resumes the run. At the end the rows become `table.parquet` and
`table.csv`, and the database is deleted: it holds nothing else, and takes more room. `provenance.json` holds
the origin of the table, and the CRC-32 of `table.parquet` (older runs may have two). `error.txt` is the
traceback of a failed attempt, until the run is complete.

Older code kept the rows of an unfinished run in `rows.jsonl`, which is read and never written.
"""

import contextlib
import errno
import io
import json
import secrets
import shutil
import sqlite3
import weakref
import zlib
from collections.abc import Callable, Sequence
from datetime import UTC, datetime
from pathlib import Path
from typing import Any

import numpy as np
import pandas as pd

from experiments.core.provenance import (
    PROVENANCE,
    TABLE_CRC,
    no_access,
    read_provenance,
    write_bytes,
    write_provenance,
)
from experiments.core.settings import KEPT, UsageError
from experiments.results.tables import save_table
from md.checks import path as as_path
from md.io.interrupt import defer_sigint
from sfc import checks

DATABASE = "rows.sqlite"
OLD_JOURNAL = "rows.jsonl"
TABLE = "table.parquet"
ERROR = "error.txt"
# The first change takes the lock, which is kept, and fails for a file that cannot be written.
_LOCK = ("PRAGMA locking_mode = EXCLUSIVE", "PRAGMA synchronous = FULL", "PRAGMA user_version = 1")
_CREATE = "CREATE TABLE rounds (number INTEGER, round INTEGER, last INTEGER, rows BLOB, crc32 INTEGER)"
_ACCESS = ("SQLITE_CANTOPEN", "SQLITE_READONLY", "SQLITE_PERM", "SQLITE_IOERR", "SQLITE_FULL")
_Cases = dict[int, list[list[dict]]]  # number of each case -> rows of each of its rounds


class Record:
    """Folder of one run: `create` makes a new one, `reopen` resumes an old one.

    A record locks its database until `release` or its deletion, so that no other process resumes the run.

    Args:
        folder: the run's own folder.
        new: create the database.

    Attributes:
        folder: the run's own folder.
        finished: numbers of the finished cases.
        finish: function that adds columns computed from all rows; the identity unless it is set.
        release: releases the lock.

    Raises:
        UsageError: another process holds the lock, the file system has no locks, the folder cannot be
            written, or the database is damaged.
    """

    def __init__(self, folder: Path, new: bool = False):
        self.folder = as_path("folder", folder)
        opening = ("mode=rwc", *_LOCK, _CREATE) if new else ("mode=rw", *_LOCK)
        self._database, self._cases, self.finished = _open(self.folder / DATABASE, *opening)
        self.release = weakref.finalize(self, self._database.close)
        self.finish: Callable[[pd.DataFrame], pd.DataFrame] = lambda table: table
        self._table_crc: int | None = None

    @classmethod
    def create(cls, results: Path, experiment: str, provenance: dict) -> "Record":
        """Create a folder `results/<experiment>/<utc>-<hash>/` from which a run can be resumed.

        Ctrl-C is deferred until the provenance is written, which `--resume` needs.

        Args:
            results: the results folder.
            experiment: name of the experiment.
            provenance: of the run, so far.

        Raises:
            UsageError: a results folder that cannot be made or written, or that has no locks.
        """
        name = f"{datetime.now(UTC):%Y%m%dT%H%M%SZ}-{secrets.token_hex(4)}"
        folder = as_path("results", results) / checks.text("experiment", experiment) / name
        with defer_sigint():
            try:
                folder.mkdir(parents=True)
                record = cls(folder, new=True)
                record.describe(provenance)
            except BaseException as error:
                shutil.rmtree(folder, ignore_errors=True)
                if not isinstance(error, (OSError, UsageError)):
                    raise
                raise UsageError(
                    f"cannot write results to {results}: {getattr(error, 'strerror', None) or error}; give a "
                    "folder you may write to, on a disk with room, with --results"
                ) from error
            return record

    @classmethod
    def reopen(cls, run: Path) -> "Record":
        """Open the folder of a run that did not complete.

        Args:
            run: the folder.

        Raises:
            UsageError: a folder without a database: of no run, of a complete one, or of one that older code
                began; a folder that another process has locked or that cannot be written; or a damaged
                database.
        """
        if not (as_path("run", run) / DATABASE).is_file():
            older = f", but {OLD_JOURNAL} of older code: resume it with the commit in its {PROVENANCE}"
            raise UsageError(
                f"no {DATABASE} in {run}{older if (run / OLD_JOURNAL).is_file() else ''}; allowed: the "
                "folder of an interrupted, killed or failed run; --from repeats a finished run"
            )
        return cls(run)

    def first_missing_round(self, number: int) -> int:
        """Return the first round of a case that is not recorded; 0 for a case that was not started.

        Args:
            number: of the case.
        """
        return len(self._cases.get(number, ()))

    def check(self, places: dict[int, dict]) -> None:
        """Check that the recorded cases are those of a sweep.

        Args:
            places: number of each case -> the columns of its axes; column -> value.

        Raises:
            UsageError: a case differs.
        """
        for number, case in self._cases.items():
            wanted = {name: _plain(name, value) for name, value in places.get(number, {}).items()}
            for row in [row for rows in case for row in rows][:1]:
                recorded = {name: row.get(name) for name in wanted}
                if not wanted or recorded != wanted:
                    raise UsageError(
                        f"case {number} of {self.folder} has {recorded}, but its settings give {wanted}: the "
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
            ValueError: an integer outside the range of int64, a round that is not the first missing one, or
                a case that is finished.
            OSError: the database cannot be written, for example on a full disk; the error names the file, and
                the rounds before are kept.
        """
        number, first = checks.integer("number of a case", number, 0), self.first_missing_round(number)
        if number in self.finished:
            raise checks.refuse_value("number of a case", number, "a case that is not finished")
        if round_number is not None and checks.integer("number of a round", round_number, 0) != first:
            raise checks.refuse_value(
                f"round of case {number}", round_number, f"{first}, the first missing one"
            )
        rows = [{name: _plain(name, value) for name, value in row.items()} for row in rows]
        values = number, first, int(round_number is None), json.dumps(rows).encode()
        try:
            with defer_sigint():
                self._database.execute("INSERT INTO rounds VALUES (?, ?, ?, ?, ?)", (*values, _crc(values)))
                self._cases.setdefault(number, []).append(rows)
                self.finished |= {number} if round_number is None else set()
        except sqlite3.Error as error:
            code = errno.ENOSPC if error.sqlite_errorname == "SQLITE_FULL" else errno.EIO
            raise OSError(code, str(error), str(self.folder / DATABASE)) from error

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

    def write_error(self, error: str) -> None:
        """Write the traceback of a failed attempt, if the disk has room."""
        with contextlib.suppress(OSError):
            (self.folder / ERROR).write_text(error, encoding="utf-8")

    def close(self) -> None:
        """Delete the database and error.txt of a run that its provenance calls complete."""
        self.release()
        (self.folder / ERROR).unlink(missing_ok=True)
        (self.folder / DATABASE).unlink(missing_ok=True)

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


def read_table(run: Path) -> pd.DataFrame:
    """Read the table of a run, or of its finished part, even while another process measures the rest.

    Args:
        run: a run's folder.

    Raises:
        UsageError: a folder without a table, or with one that is damaged or cannot be read.
    """
    names = (DATABASE, OLD_JOURNAL, TABLE)
    path = next((path for name in names if (path := as_path("run", run) / name).is_file()), None)
    if path is None:
        raise UsageError(
            f"no {TABLE} in {run}; allowed: the folder of a run, results/<experiment>/<utc>-<hash>"
        )
    if path.name == DATABASE:
        return _table(_read_file(path))
    remedy = f"restore a copy of it, or repeat the run with --from {run}"
    wanted = read_provenance(run).get(TABLE_CRC)
    allowed = wanted if isinstance(wanted, list) else [wanted]
    try:
        data = path.read_bytes()
        if path.name == OLD_JOURNAL:
            return _table(_parse_old_journal(data))
        if wanted is None or zlib.crc32(data) in allowed:
            return pd.read_parquet(io.BytesIO(data), page_checksum_verification=True)
    except Exception as error:  # pyarrow and pandas raise errors of many classes for a damaged file
        raise UsageError(f"{path} cannot be read: {type(error).__name__}: {error}; {remedy}") from error
    sums = " or ".join(map(str, allowed))
    raise UsageError(
        f"{path} is damaged: its CRC-32 is {zlib.crc32(data)}, but {PROVENANCE} says {sums}; {remedy}; if it "
        f"was changed on purpose, delete {TABLE_CRC!r} from {PROVENANCE}"
    )


def _read_file(path: Path) -> _Cases:
    """Read a database; in spite of its lock, if a process that measures holds that.

    A file that changes while it is read without the lock seems to be damaged. Then it is read again, up to 20
    times.
    """
    for access in ("mode=rw", *["immutable=1"] * 20):
        try:
            return _open(path, access)[1]
        except UsageError as error:
            failure = error
            if access == "mode=rw" and getattr(error.__cause__, "sqlite_errorname", "") != "SQLITE_BUSY":
                break
    raise failure


def _open(path: Path, access: str, *statements: str) -> tuple[sqlite3.Connection, _Cases, set[int]]:
    """Open a database, execute statements, and read and check its rows.

    Each statement is a transaction, and a lock of another process is not awaited.

    Returns:
        The connection, rows of each case by round, and numbers of the finished cases.

    Raises:
        UsageError: it is locked, it cannot be opened, or it is damaged; names the file and the remedy.
    """
    uri, database = f"{path.resolve().as_uri()}?{access}", None
    try:
        database = sqlite3.connect(uri, 0, isolation_level=None, check_same_thread=False, uri=True)
        database.text_factory = bytes
        for statement in statements:
            database.execute(statement)
        return database, *_read_rows(database)
    except sqlite3.Error as error:
        if database is not None:
            database.close()
        name = getattr(error, "sqlite_errorname", "")
        if name.startswith("SQLITE_BUSY"):
            raise UsageError(
                f"{path.parent} is being measured by another process, or is on a file system without locks; "
                "allowed: a run that no process measures, where there are locks; wait for that process, end "
                "it, or take a folder on a local disk"
            ) from error
        if name.startswith(_ACCESS):
            raise no_access(path, error) from error
        raise UsageError(
            f"{path} is damaged: {error}; restore a copy of it, or repeat the run with --from {path.parent}"
        ) from error


def _read_rows(database: sqlite3.Connection) -> tuple[_Cases, set[int]]:
    """Read all rows; check the structure of the file, and the CRC-32 of each row.

    Raises:
        sqlite3.Error: the file is damaged, or cannot be read; for a damaged row, the error names it.
    """
    if (problem := database.execute("PRAGMA integrity_check(1)").fetchone()[0]) != b"ok":
        raise sqlite3.DatabaseError(problem.decode())
    cases: _Cases = {}
    finished: set[int] = set()
    for key, *values, crc in database.execute("SELECT rowid, * FROM rounds ORDER BY rowid"):
        number, round_number, is_last, data = values
        case = cases.setdefault(number, [])
        if crc != _crc(values) or round_number != len(case) or number in finished:
            raise sqlite3.DatabaseError(
                f"row {key}, of case {number}, round {round_number}, has another CRC-32 or follows a gap; "
                f"after DELETE FROM rounds WHERE rowid >= {key} --resume measures the rest again"
            )
        case.append(json.loads(data))
        finished |= {number} if is_last else set()
    return cases, finished


def _crc(values: Sequence[Any]) -> int:
    """Return the CRC-32 of a row of the database: number of the case, round, whether it is the last, rows."""
    return zlib.crc32(repr(tuple(values)).encode())


def _parse_old_journal(data: bytes) -> _Cases:
    """Read the rows of a journal of older code, which has a line for each round.

    A line is a JSON list: number of the case, rows, round, and the CRC-32 of all before it. A line without an
    end was cut short by a kill.

    Raises:
        ValueError: a damaged line; the error names it.
    """
    cases: _Cases = {}
    for count, line in enumerate(data.split(b"\n")[:-1], 1):
        if not line.endswith(b", %d]" % zlib.crc32(line.rpartition(b", ")[0])):
            raise ValueError(f"line {count} has another CRC-32")
        number, rows, *_ = json.loads(line)
        cases.setdefault(number, []).append(rows)
    return cases


def _table(cases: _Cases) -> pd.DataFrame:
    rows = [row for number in sorted(cases) for part in cases[number] for row in part]
    table = pd.DataFrame(rows)
    # Where a row has no value, pandas makes floats of a column of integers.
    for name in table.select_dtypes("float64"):
        if (table[name].abs() >= checks.MOST_EXACT).any():
            values = [row.get(name) for row in rows]
            values = [None if value != value else value for value in values]
            if all(value is None or checks.is_integer(value) for value in values):
                table[name] = pd.array(values, "Int64")
    return table


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
