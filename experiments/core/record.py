"""A run's folder: the table and the provenance, written so that a killed run loses at most one case."""

import contextlib
import json
import os
import secrets
import tempfile
from collections.abc import Iterator
from datetime import UTC, datetime
from pathlib import Path

import pandas as pd

from experiments.core.settings import UsageError


class Record:
    """The folder `results/<experiment>/<utc>-<hash>/` of one run.

    Args:
        results: the results folder.
        experiment: name of the experiment.

    Attributes:
        folder: the run's own folder, made at once.

    Raises:
        UsageError: a results folder that cannot be made or written.
    """

    def __init__(self, results: Path, experiment: str):
        name = f"{datetime.now(UTC):%Y%m%dT%H%M%SZ}-{secrets.token_hex(4)}"
        self.folder = results / experiment / name
        self._rows: list[dict] = []
        try:
            self.folder.mkdir(parents=True)
            tempfile.TemporaryFile(dir=self.folder).close()
        except OSError as error:
            raise UsageError(
                f"cannot write results to {results}: {error.strerror or error}; give a folder you may "
                "write to "
                f"with --results"
            ) from error

    def add(self, rows: list[dict]) -> None:
        """Append the rows of a finished case and write the table again, as Parquet and as CSV."""
        self._rows.extend(rows)
        table = self.table
        with _replacing(self.folder / "table.parquet") as path:
            table.to_parquet(path, index=False)
        with _replacing(self.folder / "table.csv") as path:
            table.to_csv(path, index=False)

    @property
    def table(self) -> pd.DataFrame:
        """The rows so far; one row is one observation."""
        return pd.DataFrame(self._rows)

    def describe(self, provenance: dict) -> None:
        """Write the provenance as JSON."""
        with _replacing(self.folder / "provenance.json") as path:
            path.write_text(json.dumps(provenance, indent=2, default=str) + "\n")


def read_table(run: Path) -> pd.DataFrame:
    """The table of a run.

    Args:
        run: a run's folder.

    Raises:
        UsageError: a folder without a table.
    """
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


@contextlib.contextmanager
def _replacing(path: Path) -> Iterator[Path]:
    """A temporary path that takes the place of `path` in one move, once it is written."""
    partial = path.with_name(f".{path.name}.partial")
    yield partial
    os.replace(partial, path)
