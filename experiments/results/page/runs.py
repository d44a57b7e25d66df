"""Runs of the page: the kept ones, and those of a reader given with `--run`."""

from __future__ import annotations

import re
from collections.abc import Iterable
from dataclasses import dataclass
from pathlib import Path

from experiments.core.provenance import PROVENANCE, read_provenance
from experiments.core.record import TABLE
from experiments.core.rerun import experiment_of
from experiments.core.settings import UsageError
from experiments.drawing.style import commit_of
from experiments.results.kept.listing import ANY_MACHINE, COLUMNS, kept_runs, read_about, row
from experiments.results.kept.queries import REFERENCE
from sfc import checks


@dataclass(frozen=True)
class Run:
    """Run as the page lists it.

    Args:
        name: `<experiment>/<name>`.
        folder: where its table is.
        own: whether it was given by the reader.
        backend: "cpu" or "cuda".
        what: was measured.
        where: device or machine.
        n: sizes.
        runs: number of runs, or of repeats.
        s: wall time, or "unknown".
        code: commit.
        command: command line.
    """

    name: str
    folder: Path
    own: bool
    backend: str
    what: str
    where: str
    n: str
    runs: str
    s: str
    code: str
    command: str

    @property
    def experiment(self) -> str:
        """Name of its experiment."""
        return self.name.split("/")[0]

    @property
    def is_same_anywhere(self) -> bool:
        """Whether any machine gives the same numbers, as predictions are."""
        return self.where.startswith(ANY_MACHINE)

    @property
    def anchor(self) -> str:
        """Id of the run's row on the page."""
        return "run-" + re.sub(r"\W", "-", self.name)


def kept(root: Path = REFERENCE) -> list[Run]:
    """Return all kept runs, sorted by name.

    Args:
        root: folder of the runs, named `reference`.

    Raises:
        UsageError: a folder that is no kept run, or lacks its description.
    """
    return [
        _run(folder, f"{folder.parent.name}/{folder.name}", read_about(folder), own=False)
        for folder in kept_runs(root.parent)
    ]


def own(folders: Iterable[Path]) -> list[Run]:
    """Return the runs of a reader.

    Args:
        folders: results/<experiment>/<utc>-<hash>.

    Raises:
        UsageError: a folder that is no run, has no table, or is given twice.
    """
    found: dict[Path, Run] = {}
    for given in folders:
        folder = checks.path("run", given).resolve()
        if folder in found:
            raise UsageError(f"--run {given} is given twice; allowed: each run once")
        if not (folder / PROVENANCE).is_file():
            raise UsageError(
                f"--run {given} has no {PROVENANCE}; allowed: the folder of a run, results/<experiment>/"
                "<utc>-<hash>, whose name every experiment prints"
            )
        origin = read_provenance(folder)
        if not (folder / TABLE).is_file():
            raise UsageError(
                f"--run {given} has no {TABLE}; allowed: a run that wrote its table; complete it with "
                f"--resume {given}"
            )
        about = {"what": "your own run", "code": commit_of(origin) or "no commit"}
        found[folder] = _run(folder, f"{experiment_of(folder, origin)}/{folder.name}", about, own=True)
    return [*found.values()]


def _run(folder: Path, name: str, about: dict[str, str], own: bool) -> Run:
    cells = {column: cell.strip("`") for column, cell in zip(COLUMNS, row(folder, about), strict=True)}
    del cells["run"]  # a link to the folder
    backend = read_provenance(folder)["backend"].get("name", "unknown")
    return Run(name, folder, own, str(backend), **cells)
