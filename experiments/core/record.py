"""A run's folder: the table and the provenance, written so that a killed run loses at most one case.

What a folder holds. While cases are measured, `rows.jsonl` has a line for each that is finished, whole or
not there; the tables are made of it every few seconds, and at the end, when it goes. `provenance.json` says
where the table comes from, and how far the run has got.
"""

import contextlib
import errno
import fcntl
import json
import os
import secrets
import time
import weakref
from collections.abc import Iterator
from datetime import UTC, datetime
from pathlib import Path
from typing import Any

import numpy as np
import pandas as pd

from experiments.core.settings import UsageError

JOURNAL = "rows.jsonl"
SECONDS = 5.0  # from one writing of the tables to the next


class Record:
    """The folder of one run; `begun` makes one, `taken_up` goes on with one.

    A record holds its journal until `release`, or as long as it lives: nobody else can go on meanwhile.

    Args:
        folder: the run's own folder, with a journal.

    Attributes:
        folder: the run's own folder.
        finished: numbers of the cases that are.
        release: let others go on with the run.

    Raises:
        UsageError: somebody else is at it.
    """

    def __init__(self, folder: Path):
        self.release = weakref.finalize(self, os.close, _held(folder / JOURNAL))
        self._rows, whole = _read_journal(folder / JOURNAL)
        os.truncate(folder / JOURNAL, whole)  # a line cut short is of a case that is measured again
        self.folder, self._written = folder, time.monotonic()

    @classmethod
    def begun(cls, results: Path, experiment: str) -> "Record":
        """A new folder `results/<experiment>/<utc>-<hash>/`, made at once.

        Args:
            results: the results folder.
            experiment: name of the experiment.

        Raises:
            UsageError: a results folder that cannot be made or written.
        """
        folder = results / experiment / f"{datetime.now(UTC):%Y%m%dT%H%M%SZ}-{secrets.token_hex(4)}"
        try:
            folder.mkdir(parents=True)
            (folder / JOURNAL).touch()
        except OSError as error:
            raise UsageError(
                f"cannot write results to {results}: {error.strerror or error}; give a folder you may "
                "write to with --results"
            ) from error
        return cls(folder)

    @classmethod
    def taken_up(cls, run: Path) -> "Record":
        """The folder of a run that did not come to its end.

        Args:
            run: the folder.

        Raises:
            UsageError: a folder without a journal, which is none, or of a run that is complete; or one that
                somebody else is at.
        """
        journal = run / JOURNAL
        if not journal.is_file():
            raise UsageError(
                f"no {JOURNAL} in {run}; allowed: the folder of a run that was interrupted, killed or failed"
            )
        return cls(run)

    @property
    def finished(self) -> set[int]:
        """Numbers of the cases that are."""
        return set(self._rows)

    def check(self, places: dict[int, dict]) -> None:
        """Look whether the finished cases are those of a sweep.

        Args:
            places: number of each case -> what tells it from the others; column -> value.

        Raises:
            UsageError: one is another.
        """
        for number, rows in self._rows.items():
            wanted = {name: _plain(name, value) for name, value in places.get(number, {}).items()}
            for row in rows[:1]:
                found = {name: row.get(name) for name in wanted}
                if not wanted or found != wanted:
                    raise UsageError(
                        f"case {number} of {self.folder} is of {found}, and by the settings of {wanted}: the "
                        "experiment has changed since; take --from to measure all of it again"
                    )

    def add(self, number: int, rows: list[dict]) -> None:
        """Keep the rows of a finished case.

        Args:
            number: of the case.
            rows: column -> number, word, truth or None.

        Raises:
            TypeError: a value that is none of these; a table has one in each of its cells.
            OSError: the disk is full, or something of the kind; all cases before are kept.
        """
        rows = [{name: _plain(name, value) for name, value in row.items()} for row in rows]
        journal = self.folder / JOURNAL
        before = journal.stat().st_size
        try:
            with open(journal, "a", encoding="utf-8") as file:
                file.write(json.dumps([number, rows]) + "\n")
                file.flush()
                os.fsync(file.fileno())
        except BaseException:
            with contextlib.suppress(OSError):
                os.truncate(journal, before)
            raise
        self._rows[number] = rows
        if time.monotonic() - self._written > SECONDS:
            self.write_tables()

    def write_tables(self) -> None:
        """Write the table of what is finished, as Parquet and as CSV.

        Raises:
            OSError: they cannot be written; those there are stay as they were.
        """
        table = self.table
        with _replacing(self.folder / "table.parquet") as path:
            table.to_parquet(path, index=False)
        with _replacing(self.folder / "table.csv") as path:
            table.to_csv(path, index=False)
        self._written = time.monotonic()

    def close(self) -> None:
        """End a run that is complete, and told so: of its journal there is a table."""
        (self.folder / JOURNAL).unlink()

    @property
    def table(self) -> pd.DataFrame:
        """The rows so far, in the order of the cases; one row is one observation."""
        return _table(self._rows)

    def describe(self, provenance: dict) -> None:
        """Write the provenance as JSON."""
        with _replacing(self.folder / "provenance.json") as path:
            path.write_text(json.dumps(provenance, indent=2, default=str) + "\n")


def read_table(run: Path) -> pd.DataFrame:
    """The table of a run, or of as much of it as is finished.

    Args:
        run: a run's folder.

    Raises:
        UsageError: a folder without a table.
    """
    if (run / JOURNAL).is_file():
        return _table(_read_journal(run / JOURNAL)[0])
    path = run / "table.parquet"
    if not path.is_file():
        raise UsageError(
            f"no table.parquet in {run}; allowed: the folder of a run, results/<experiment>/<utc>-<hash>"
        )
    return pd.read_parquet(path)


def read_provenance(run: Path) -> dict:
    """The provenance of a run; empty where it has none.

    Args:
        run: a run's folder.
    """
    path = run / "provenance.json"
    return json.loads(path.read_text(encoding="utf-8")) if path.is_file() else {}


def _table(rows: dict[int, list[dict]]) -> pd.DataFrame:
    return pd.DataFrame([row for number in sorted(rows) for row in rows[number]])


def _read_journal(path: Path) -> tuple[dict[int, list[dict]], int]:
    """Rows of the finished cases by number, and the length of the lines that are whole."""
    rows, whole = {}, 0
    with open(path, "rb") as file:
        for line in file:
            if not line.endswith(b"\n"):
                break
            number, those = json.loads(line)
            rows[number] = those
            whole += len(line)
    return rows, whole


def _held(journal: Path) -> int:
    """The journal opened, and locked until it is closed, where the file system has locks.

    Raises:
        UsageError: somebody else holds it.
    """
    opened = os.open(journal, os.O_RDWR)
    try:
        fcntl.flock(opened, fcntl.LOCK_EX | fcntl.LOCK_NB)
    except BlockingIOError as error:
        os.close(opened)
        raise UsageError(
            f"{journal.parent} is being measured by another process; allowed: a run that nobody is at; wait "
            "for it, or end it first"
        ) from error
    except OSError as error:
        if error.errno not in (errno.ENOLCK, errno.ENOTSUP):
            os.close(opened)
            raise
    return opened


def _plain(name: str, value: Any) -> Any:
    """A value as JSON has it.

    Raises:
        TypeError: one that no cell of a table holds.
    """
    value = value.item() if isinstance(value, np.generic) else value
    if value is None or isinstance(value, (str, bool, int, float)):
        return value
    raise TypeError(
        f"column {name!r} has {value!r:.80} of type {type(value).__name__}; allowed: a number, a word, a "
        "truth or None; give each number a column"
    )


@contextlib.contextmanager
def _replacing(path: Path) -> Iterator[Path]:
    """A temporary path that takes the place of `path` in one move, once it is written."""
    partial = path.with_name(f".{path.name}.partial")
    try:
        yield partial
        os.replace(partial, path)
    except BaseException:
        partial.unlink(missing_ok=True)
        raise
