"""Write `results/RUNS.md`, the list of all kept runs, from their provenance, tables and descriptions."""

from __future__ import annotations

import io
import re
import shlex
import tomllib
from datetime import datetime
from pathlib import Path

import pandas as pd
import pyarrow.parquet as pq

from experiments.core.provenance import PROVENANCE, read_provenance
from experiments.core.record import TABLE, write_bytes
from experiments.core.settings import UsageError
from experiments.drawing.style.origin import commit_of, device_of
from experiments.processes.output import readable
from experiments.results.tables import SIZES, sizes_of
from md.checks import path as as_path
from sfc import checks

RUNS, ABOUT = "RUNS.md", "about.toml"
ABOUT_KEYS = ("what", "code", "where")  # the last two replace what the provenance says
REFERENCE = "reference"  # key of the provenance
UNKNOWN = "unknown"
ANY_MACHINE = "any machine"  # begins the device of a run whose numbers are the same everywhere
_COMMIT = r"\b[0-9a-f]{7}\b"
COLUMNS = ("run", "what", "where", "n", "runs", "s", "code", "command")
_HEAD = f"""# Runs

Every run in `reference/`, written by `python -m experiments.results.kept list` from `provenance.json`,
`table.parquet` and `about.toml` of each. n: particles, points, or grid points a side. runs: counted in the
table; of predictions and physics, repeats with another seed. s: wall time, unknown if a run was resumed.
code: the commit that introduced the sources of the run, or what is known of it. table.csv, which is
table.parquet as text, and CSV files of 100 kB and more are left out: `--replot RUN --out FOLDER` writes the
latter again. It draws the figures too, with `--pdf` also as PDF.

| {" | ".join(COLUMNS)} |
|{"---|" * len(COLUMNS)}
"""


def write_runs(results: Path) -> Path:
    """Write the list of all kept runs.

    Args:
        results: the folder with `reference/`.

    Returns:
        The path of the list.

    Raises:
        UsageError: a folder that is no kept run, or lacks its description.
        OSError: the list cannot be written; the error names the file.
    """
    path = as_path("results", results) / RUNS
    write_bytes(path, readable(runs_text(results)).encode())
    return path


def runs_text(results: Path) -> str:
    """Return the list of all kept runs, a row for each.

    Args:
        results: the folder with `reference/`.

    Raises:
        UsageError: a folder that is no kept run, or lacks its description.
    """
    rows = [row(folder, read_about(folder)) for folder in kept_runs(results)]
    return _HEAD + "".join(f"| {' | '.join(cell.replace('|', '/') for cell in row)} |\n" for row in rows)


def kept_runs(results: Path) -> list[Path]:
    """List the folders of all kept runs, `reference/<experiment>/<name>`, sorted.

    A hidden folder is what a killed `keep` leaves, and is left out.
    """
    found = (as_path("results", results) / "reference").glob("*/[!.]*")
    return sorted(path for path in found if path.is_dir())


def count_runs(table: pd.DataFrame) -> int:
    """Count the runs of a table of times, or the repeats of another; 1 where older code counted none."""
    numbers = next((table[name] for name in ("run", "repeat") if name in table), pd.Series([0]))
    return int(numbers.nunique())


def read_about(folder: Path) -> dict[str, str]:
    """Read the description of a kept run: `what` was measured, and what its provenance does not say.

    Args:
        folder: of the run.

    Returns:
        what: one line; code: if the hash of the sources is missing or is that of no commit; where: if the
        name of the device does not describe the machine.

    Raises:
        UsageError: a missing or damaged file, or other keys.
    """
    path = as_path("folder", folder) / ABOUT
    try:
        found = tomllib.loads(path.read_text(encoding="utf-8"))
    except (OSError, ValueError) as error:
        raise UsageError(f'{path} cannot be read: {error}; allowed: a line what = "..."') from error
    texts = all(isinstance(value, str) and value and "\n" not in value for value in found.values())
    if "what" not in found or set(found) - set(ABOUT_KEYS) or not texts:
        raise UsageError(
            f"{path} has {checks.shown(found)}; allowed: what, and if needed {', '.join(ABOUT_KEYS[1:])}, "
            "each one line of text"
        )
    return found


def is_same_anywhere(folder: Path) -> bool:
    """Return whether any machine gives the numbers of a kept run, as it does of predictions.

    Args:
        folder: of the run.

    Raises:
        UsageError: a folder without a description.
    """
    return read_about(folder).get("where", "").startswith(ANY_MACHINE)


def commit_of_kept(folder: Path) -> str:
    """Return the commit of a kept run in seven digits: the one that its row in the list names first.

    Args:
        folder: of the run.

    Raises:
        UsageError: a folder that is no kept run, lacks its description, or is of unknown code.
    """
    text = _code(folder, read_provenance(folder), read_about(folder))
    commits = re.findall(_COMMIT, text)
    if not commits:
        raise UsageError(f"{folder / ABOUT} describes the code as {text!r}; allowed: a text with a commit")
    return commits[0]


def row(folder: Path, about: dict[str, str]) -> tuple[str, ...]:
    """Return the cells of a run, one for each of `COLUMNS`.

    Args:
        folder: of the run.
        about: what was measured, and `code` and `where` if its provenance does not say them.

    Raises:
        UsageError: a folder that is no run, or a run of unknown code.
    """
    origin = read_provenance(folder)
    if not {"config", "command", "started", "machine", "backend"} <= set(origin):
        raise UsageError(f"{folder} has no complete {PROVENANCE}; allowed: the folder of a kept run")
    table = _columns(folder, ("run", "repeat", *SIZES))
    name = f"{folder.parent.name}/{folder.name}"
    return (
        f"[{name}](reference/{name})",
        about["what"],
        about.get("where") or device_of(origin),
        sizes_of(table, origin["config"]),
        str(count_runs(table)),
        _seconds(folder, origin),
        _code(folder, origin, about),
        f"`{shlex.join(origin['command'])}`",
    )


def _columns(folder: Path, names: tuple[str, ...]) -> pd.DataFrame:
    """Read the columns of a table that it has among these."""
    path = folder / TABLE
    try:
        table = pq.ParquetFile(io.BytesIO(path.read_bytes()))  # pyarrow opens not every path
        return table.read(columns=list(names)).to_pandas()
    except (OSError, ValueError) as error:
        raise UsageError(f"{path} cannot be read: {error}; restore a copy of it") from error


def _seconds(folder: Path, origin: dict) -> str:
    """Return the wall time of a run in s; it is not known of one that was resumed or did not end."""
    if origin.get("resumed") or "ended" not in origin:
        return UNKNOWN
    try:
        ended, started = (datetime.fromisoformat(origin[name]).astimezone() for name in ("ended", "started"))
    except ValueError as error:
        raise UsageError(f"{folder / PROVENANCE}: {error}; allowed: dates as 2026-11-26T12:00:00") from error
    return f"{(ended - started).total_seconds():,.0f}"


def _code(folder: Path, origin: dict, about: dict[str, str]) -> str:
    """Return what is known of the code of a run."""
    if "code" in about:
        return about["code"]
    commit = commit_of(origin)
    if not re.fullmatch(_COMMIT, commit):
        raise UsageError(
            f"the commit of {folder} is not known: {commit or 'none'}; allowed: a run of which {PROVENANCE} "
            "names it, without changes; describe its code in about.toml"
        )
    return f"`{commit}`"
