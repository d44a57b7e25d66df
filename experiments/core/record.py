"""A run's folder: the table and the provenance, written so that a killed run loses at most a case or a round.

What a folder holds. While cases are measured, `rows.jsonl` has a line for each that is finished, or for each
round of one that is timed, whole or not there, with a CRC-32 of its own; the tables are made of it every few
seconds, and at the end, when it goes. `provenance.json` says where the table comes from, how far the run has
got, and the CRC-32 of `table.parquet`. `error.txt` is the traceback of an attempt that failed, until one
completes the run. Lines and tables without a CRC-32 are of older code, and are read as they are.
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
from collections.abc import Callable
from datetime import UTC, datetime
from pathlib import Path
from typing import Any

import numpy as np
import pandas as pd

from experiments.core.settings import UsageError
from md.checks import path as as_path
from md.io.atomic_write import write_atomically
from md.simulation.interrupt import defer_sigint
from sfc import checks

JOURNAL = "rows.jsonl"
PROVENANCE = "provenance.json"
TABLE = "table.parquet"
TABLE_CRC = "table_crc32"  # key of the provenance
ERROR = "error.txt"
SECONDS = 5.0  # from one writing of the tables to the next
SHAPES = {  # of what is read of a provenance; the rest is for people
    "experiment": (str, "a word"),
    "config": (dict, "an object"),
    "grammars": (dict, "an object"),
    "code": (dict, "an object"),
    "backend": (dict, "an object"),
    "machine": (dict, "an object"),
    "resumed": (list, "a list"),
    TABLE_CRC: (int, "an integer"),
}


class Record:
    """The folder of one run; `begun` makes one, `taken_up` goes on with one.

    A record locks its journal until `release`, or as long as it lives: no other process can go on meanwhile.

    Args:
        folder: the run's own folder, with a journal.

    Attributes:
        folder: the run's own folder.
        finished: numbers of the cases that are.
        finish: adds columns that are found from all rows of a case; nothing unless it is set.
        release: let others go on with the run.

    Raises:
        UsageError: another process has it, it cannot be written, or its journal is damaged.
    """

    def __init__(self, folder: Path):
        self.folder = as_path("folder", folder)
        journal = self.folder / JOURNAL
        self.release = weakref.finalize(self, os.close, _held(journal))
        try:
            self._cases, whole = _read_journal(journal)
            os.truncate(journal, whole)  # a line cut short is of a case that is measured again
        except OSError as error:
            self.release()
            raise _no_access(journal, error) from error
        except UsageError:
            self.release()
            raise
        self.finish: Callable[[pd.DataFrame], pd.DataFrame] = _as_it_is
        self._table_crc: int | None = None
        self._written = time.monotonic()

    @classmethod
    def begun(cls, results: Path, experiment: str, provenance: dict) -> "Record":
        """A new folder `results/<experiment>/<utc>-<hash>/`, made at once, from which a run can go on.

        Ctrl-C is held back until its provenance is written, without which `--resume` takes no folder up.

        Args:
            results: the results folder.
            experiment: name of the experiment.
            provenance: of the run, as far as it is known.

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
    def taken_up(cls, run: Path) -> "Record":
        """The folder of a run that did not come to its end.

        Args:
            run: the folder.

        Raises:
            UsageError: a folder without a journal, which is none, or of a run that is complete; or one that
                another process has, that cannot be written, or whose journal is damaged.
        """
        if not (as_path("run", run) / JOURNAL).is_file():
            raise UsageError(
                f"no {JOURNAL} in {run}; allowed: the folder of a run that was interrupted, killed or failed"
            )
        return cls(run)

    @property
    def finished(self) -> set[int]:
        """Numbers of the cases that are."""
        return {number for number, case in self._cases.items() if case.finished}

    def begin(self, number: int) -> int:
        """The first round of a case that is not kept: 0 of one that has not been begun.

        Args:
            number: of the case.
        """
        return len(self._cases[number].rounds) if number in self._cases else 0

    def check(self, places: dict[int, dict]) -> None:
        """Look whether the finished cases are those of a sweep.

        Args:
            places: number of each case -> what tells it from the others; column -> value.

        Raises:
            UsageError: one is another.
        """
        for number, case in self._cases.items():
            wanted = {name: _plain(name, value) for name, value in places.get(number, {}).items()}
            for row in case.rows[:1]:
                found = {name: row.get(name) for name in wanted}
                if not wanted or found != wanted:
                    raise UsageError(
                        f"case {number} of {self.folder} is of {found}, and by the settings of {wanted}: the "
                        "experiment has changed since; take --from to measure all of it again"
                    )

    def add(self, number: int, rows: list[dict], round_number: int | None = None) -> None:
        """Keep the rows of a finished case, or of one of its rounds.

        Args:
            number: of the case.
            rows: column -> number, word, truth or None.
            round_number: of the round whose rows they are; None for the last rows of the case, which then is
                finished.

        Raises:
            TypeError: a value that is none of these; a table has one in each of its cells.
            ValueError: an integer of more than 64 bits.
            OSError: the disk is full, or something of the kind; tells the file, and all cases before are
                kept.
        """
        number = checks.integer("number of a case", number, 0)
        if round_number is not None:
            round_number = checks.integer("number of a round", round_number, 0)
        rows = [{name: _plain(name, value) for name, value in row.items()} for row in rows]
        journal = self.folder / JOURNAL
        before = journal.stat().st_size
        try:
            with open(journal, "ab") as file:
                file.write(_line(number, rows, round_number, self.begin(number)))
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
        """Write the table of what is finished, as Parquet and as CSV.

        Raises:
            OSError: they cannot be written; tells the file, and those there are stay as they were.
        """
        table, parquet = self.table, io.BytesIO()
        table.to_parquet(parquet, index=False, write_page_checksum=True)
        write_atomically(self.folder / TABLE, lambda file: file.write(parquet.getbuffer()))
        self._table_crc = zlib.crc32(parquet.getbuffer())
        save_table(table, self.folder, "table")
        self._written = time.monotonic()

    def failed(self, error: str) -> None:
        """Keep the traceback of an attempt that failed, as far as the disk has room."""
        with contextlib.suppress(OSError):
            (self.folder / ERROR).write_text(error, encoding="utf-8")

    def close(self) -> None:
        """End a run that is complete, and whose provenance says so: its journal and error.txt go."""
        (self.folder / ERROR).unlink(missing_ok=True)
        (self.folder / JOURNAL).unlink()

    @property
    def table(self) -> pd.DataFrame:
        """The rows so far, in the order of the cases; one row is one observation.

        Of an experiment that times, with the column `warning`.
        """
        return self.finish(_table(self._cases))

    def describe(self, provenance: dict) -> None:
        """Write the provenance as JSON, with the CRC-32 of the table if there is one.

        Raises:
            OSError: it cannot be written; tells the file, and the one there is stays as it was.
        """
        crc = {} if self._table_crc is None else {TABLE_CRC: self._table_crc}
        text = json.dumps(provenance | crc, indent=2, default=str) + "\n"
        write_atomically(self.folder / PROVENANCE, lambda file: file.write(text.encode()))


def save_table(table: pd.DataFrame, folder: Path, name: str) -> Path:
    """Write a table as CSV, whole or not at all.

    Args:
        table: one row is one observation; the index is left out.
        folder: where it goes.
        name: of the file, without .csv.

    Returns:
        The path.

    Raises:
        OSError: it cannot be written; tells the file.
    """
    checks.instance("table", table, pd.DataFrame, "a pandas.DataFrame")
    path = as_path("folder", folder) / f"{checks.text('name', name)}.csv"
    write_atomically(path, lambda file: table.to_csv(file, index=False, mode="wb"))
    return path


def read_table(run: Path) -> pd.DataFrame:
    """The table of a run, or of as much of it as is finished.

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
    remedy = f"put a copy of it there, or do the run again with --from {run}"
    try:
        data = path.read_bytes()
        if wanted is not None and zlib.crc32(data) != wanted:
            raise UsageError(
                f"{path} is damaged: its CRC-32 is {zlib.crc32(data)}, and by {PROVENANCE} {wanted}; "
                f"{remedy}; if it was changed on purpose, delete {TABLE_CRC!r} from {PROVENANCE}"
            )
        return pd.read_parquet(io.BytesIO(data), page_checksum_verification=True)
    except UsageError:
        raise
    except Exception as error:  # what pyarrow and pandas raise of a damaged file is of many classes
        raise UsageError(f"{path} cannot be read: {_told(error)}; {remedy}") from error


def read_provenance(run: Path) -> dict:
    """The provenance of a run; empty where it has none.

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
        raise _damaged(path, _told(error)) from error
    if not isinstance(found, dict):
        raise _damaged(path, f"{checks.shown(found)}, and no object")
    for name, (kind, allowed) in SHAPES.items():
        value = found.get(name)
        if name in found and (not isinstance(value, kind) or isinstance(value, bool)):
            raise _damaged(path, f"{name!r} is {checks.shown(value)}; allowed: {allowed}")
    for name, text in found.get("grammars", {}).items():
        if not isinstance(text, str):
            raise _damaged(path, f"grammar {name!r} is {checks.shown(text)}; allowed: text")
    return found


def _damaged(path: Path, why: str) -> UsageError:
    return UsageError(
        f"{path} is damaged: {why}; put a copy of it there, or move it away: --replot draws without it, but "
        "for curves of --curve-file; --resume and --from need it"
    )


def _no_access(path: Path, error: OSError) -> UsageError:
    return UsageError(
        f"{path}: {error.strerror or error}; allowed: a run's folder that you may read, and write to for "
        "--resume; take a copy of the folder that you may"
    )


def _told(error: BaseException) -> str:
    """An error in words; of those without, its class."""
    return f"{type(error).__name__}: {error}" if str(error) else type(error).__name__


def _table(kept: dict[int, "_Case"]) -> pd.DataFrame:
    return pd.DataFrame([row for number in sorted(kept) for row in kept[number].rows])


def _as_it_is(table: pd.DataFrame) -> pd.DataFrame:
    return table


class _Case:
    """What is kept of a case: its rounds in turn, one alone where it is not timed in rounds."""

    def __init__(self):
        self.rounds: list[list[dict]] = []
        self.finished = False

    @property
    def rows(self) -> list[dict]:
        """The rows of all rounds."""
        return [row for rows in self.rounds for row in rows]

    def add(self, rows: list[dict], number: int | None) -> None:
        """Keep the next round, or the last rows, which finish the case."""
        if rows:
            self.rounds.append(rows)
        self.finished = number is None


def _line(number: int, rows: list[dict], round_number: int | None, before: int = 0) -> bytes:
    """A line of the journal: a JSON list of a case's number, rows, their round, and the CRC-32 of all.

    In the place of the round the last line of a case has -1 - `before`, the rounds before it: a reader sees
    when one of them is gone.
    """
    text = json.dumps([number, rows, ~before if round_number is None else round_number])[:-1].encode()
    return b"%b, %d]\n" % (text, zlib.crc32(text))


def _read_journal(path: Path) -> tuple[dict[int, _Case], int]:
    """What is kept of each case by number, and the length of the lines that are whole.

    Raises:
        UsageError: a damaged line before the last; tells which.
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
                    f"{path}, line {count}, is damaged: {_told(error)}; put a copy of the file there, or "
                    "delete that line: --resume measures its case, or its round and those after it, again"
                ) from error
            lines.setdefault(number, {})[round_number] = rows
            whole += len(line)
    return {number: _case_of(parts) for number, parts in lines.items()}, whole


def _case_of(parts: dict[int, list[dict]]) -> _Case:
    """A case from its lines by round; of rounds, those before the first that is missing."""
    case, number = _Case(), 0
    while number in parts:
        case.add(parts[number], number)
        number += 1
    if ~number in parts:
        case.add(parts[~number], None)
    return case


def _read_line(line: bytes) -> tuple[int, list[dict], int]:
    """Number, rows and round of a line of the journal; of the last of a case -1 - the rounds before it.

    Raises:
        ValueError: no JSON, another shape, or another CRC-32.
        TypeError: a cell that is no number or word.
    """
    found = json.loads(line)
    if not isinstance(found, list) or len(found) not in (2, 4):  # two: of older code
        raise ValueError("no list of a case's number, its rows, their round and their CRC-32")
    if len(found) == 4 and found[3] != (crc := zlib.crc32(line.rpartition(b", ")[0])):
        raise ValueError(f"its CRC-32 is {crc}, and the line says {checks.shown(found[3])}")
    number, rows, round_number = (*found, -1)[:3] if len(found) == 2 else found[:3]
    whole = checks.is_integer(number) and checks.is_integer(round_number)
    if not (whole and isinstance(rows, list) and all(isinstance(row, dict) for row in rows)):
        raise ValueError("no number of a case with a list of its rows")
    return number, [{name: _plain(name, value) for name, value in row.items()} for row in rows], round_number


def _held(journal: Path) -> int:
    """The journal opened, and locked until it is closed, where the file system has locks.

    Raises:
        UsageError: another process holds it, or it cannot be opened.
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
            "measures; wait for it, or end it first"
        ) from error
    except OSError as error:
        if error.errno not in (errno.ENOLCK, errno.ENOTSUP):
            os.close(opened)
            raise _no_access(journal, error) from error
    return opened


def _plain(name: str, value: Any) -> Any:
    """A value as JSON has it.

    Raises:
        TypeError: one that no cell of a table holds.
        ValueError: an integer of more than 64 bits, for which a table has no column.
    """
    value = value.item() if isinstance(value, np.generic) else value
    if isinstance(value, int) and not -(2**63) <= value < 2**63:
        raise checks.refuse_value(f"column {name!r}", value, "an integer of 64 bits", "give it as a word")
    if value is None or isinstance(value, (str, bool, int, float)):
        return value
    raise TypeError(
        f"column {name!r} has {value!r:.80} of type {type(value).__name__}; allowed: a number, a word, a "
        "truth or None; give each number a column"
    )
