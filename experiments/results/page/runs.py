"""Runs of the page: the kept ones, and those of a reader given with `--run`."""

from __future__ import annotations

import re
from collections.abc import Iterable, Iterator
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
        experiment: its name.
        name: `<experiment>/<name>`.
        folder: where its table is.
        own: whether it was given by the reader.
        what: was measured.
        where: device or machine.
        n: sizes.
        runs: number of runs, or of repeats.
        seconds: wall time, or "unknown".
        code: commit.
        command: command line.
        backend: "cpu" or "cuda".
    """

    experiment: str
    name: str
    folder: Path
    own: bool
    what: str
    where: str
    n: str
    runs: str
    seconds: str
    code: str
    command: str
    backend: str

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
    return list(_own(folders))


def _own(folders: Iterable[Path]) -> Iterator[Run]:
    seen: set[Path] = set()
    for given in folders:
        folder = checks.path("run", given).resolve()
        if folder in seen:
            raise UsageError(f"--run {given} is given twice; allowed: each run once")
        seen.add(folder)
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
        experiment = experiment_of(folder, origin)
        about = {"what": "your own run", "code": commit_of(origin) or "no commit"}
        yield _run(folder, f"{experiment}/{folder.name}", about, own=True)


def _run(folder: Path, name: str, about: dict[str, str], own: bool) -> Run:
    cells = dict(zip(COLUMNS, row(folder, about), strict=True))
    return Run(
        experiment=name.split("/")[0],
        name=name,
        folder=folder,
        own=own,
        what=cells["what"],
        where=cells["where"],
        n=cells["n"],
        runs=cells["runs"],
        seconds=cells["s"],
        code=cells["code"].strip("`"),
        command=cells["command"].strip("`"),
        backend=str(read_provenance(folder)["backend"].get("name", "unknown")),
    )
