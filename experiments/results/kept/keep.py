"""Copy a complete run into `results/reference/<experiment>/<name>/`, if it can stand as a reference.

Contract. A kept run is complete, or its description says after how many cases it was interrupted. Its table
is as it was written, its sources are those of a commit, and its times come from enough runs. Its provenance
has the entry `reference`: `commit`, which introduced the sources; `runs`, counted in the table;
`fewest_runs`, the number that was required. A kept run has its table, provenance, figures and summaries, and
`about.toml`, which describes it. Journals and reports of profilers are not copied, and films only if wanted.
"""

import json
import re
import shutil
import tempfile
import tomllib
import zlib
from pathlib import Path
from typing import Any

import pandas as pd

from experiments.core.provenance import PROVENANCE, TABLE_CRC, read_provenance, write_provenance
from experiments.core.record import DATABASE, ERROR, TABLE, read_table, write_bytes
from experiments.core.rerun import experiment_of, was_quick
from experiments.core.settings import UsageError, checked_text
from experiments.results.kept.history import find_commit
from experiments.results.kept.shrink import ENDINGS, FILM, shrink
from md.checks import path as as_path
from sfc import checks

ABOUT = "about.toml"
ABOUT_KEYS = ("what", "code", "where")  # the last two replace what the provenance says
REFERENCE = "reference"  # key of the provenance
FEWEST_RUNS = 3  # of times
INTERRUPTED = ("interrupted", "terminated")  # status of a run that can be resumed, and did not fail
_NAME = re.compile(r"[a-z0-9]+(_[a-z0-9]+)*")


def keep(
    run: Path,
    name: str,
    what: str,
    root: Path,
    fewest_runs: int = FEWEST_RUNS,
    films: bool = False,
    interrupted: bool = False,
    without: tuple[str, ...] = (),
    quick: bool = False,
) -> Path:
    """Copy a run into the references of a checkout.

    Args:
        run: its folder, results/<experiment>/<utc>-<hash>.
        name: of the new folder: the device, and what tells the run from others of the experiment.
        what: was measured, in a line; without the values that the provenance has.
        root: the top of the checkout, whose history has the run's sources.
        fewest_runs: smallest number of runs of a table of times.
        films: whether films are copied too.
        interrupted: whether the run may have ended before its last case; its description then says so.
        without: values of the column `what` whose rows are left out, such as the pictures of a film; the
            description then says so.
        quick: whether the run may have sizes of `--quick`; its description then says so.

    Returns:
        The new folder.

    Raises:
        UsageError: a run that is incomplete, failed, damaged, small by `--quick`, of no experiment, of
            sources of no commit or of too few runs; a name that is taken or not allowed; rows to leave out
            that the table has not.
        OSError: a file cannot be copied; nothing is left then.
    """
    run, root = as_path("run", run), as_path("root", root)
    fewest_runs = checks.integer("fewest_runs", fewest_runs, 1)
    if not _NAME.fullmatch(checks.text("name", name)):
        raise UsageError(
            f"name {name!r}; allowed: lower-case letters and digits, in words joined by _, such as h200_512"
        )
    origin = read_provenance(run)
    table = _check_complete(run, origin, interrupted)
    experiment = experiment_of(run, origin)
    if was_quick(origin) and not quick:
        raise UsageError(
            f"{run} has sizes of --quick, which are too small for an answer; allowed: a run of larger ones; "
            "take --quick to keep it all the same, which its description will say"
        )
    commit = _commit_of(root, run, origin)
    runs = count_runs(table)
    if is_timed(table) and runs < fewest_runs:
        raise UsageError(
            f"{run} has times of {runs} run{'s' * (runs != 1)}; allowed: {fewest_runs} or more; measure more "
            f"with --from {run} --runs {fewest_runs}, or take --runs {runs}, which its provenance will say"
        )
    folder = root / "results" / "reference" / experiment / name
    if folder.exists():
        raise UsageError(f"{folder} exists; allowed: a new name; to replace that run, remove it first")
    entry = {"commit": commit, "runs": runs, "fewest_runs": fewest_runs}
    what = checked_text("--about", checks.text("--about", what))
    finished, every = origin.get("finished", 0), origin.get("cases", 0)
    if origin["status"] != "complete" and finished < every:
        what += f"; interrupted after {finished} of {every} cases"
    if was_quick(origin):
        what += "; with sizes of --quick"
    if without:
        what += f"; without its rows {', '.join(without)}"
    _copy(run, folder, origin | {REFERENCE: entry}, what, films, _rest(run, table, without))
    return folder


def _rest(run: Path, table: pd.DataFrame, without: tuple[str, ...]) -> pd.DataFrame | None:
    """Return the rows that are kept; None for all of them."""
    if not without:
        return None
    there = set(table["what"]) if "what" in table else set()
    if set(without) - there:
        raise UsageError(f"{run} has no rows {', '.join(without)} to leave out; allowed: {sorted(there)}")
    return table[~table["what"].isin(without)]


def is_timed(table: pd.DataFrame) -> bool:
    """Return whether the rows of a table are times: only these are measured in runs."""
    return "run" in table


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


def _check_complete(run: Path, origin: dict, interrupted: bool) -> pd.DataFrame:
    """Return the table of a run that is undamaged, and complete unless it may be interrupted."""
    if "experiment" not in origin or "code" not in origin:
        raise UsageError(f"{run} has no {PROVENANCE} of a run; allowed: results/<experiment>/<utc>-<hash>")
    allowed = ("complete", *(INTERRUPTED if interrupted else ()))
    is_complete = origin.get("status") == "complete"
    left = [name for name in (DATABASE, ERROR) if (run / name).exists()]
    if origin.get("status") not in allowed or ERROR in left or (is_complete and left):
        found = f"{origin.get('status')!r}" + (f", with {' and '.join(left)}" if left else "")
        raise UsageError(
            f"{run} is {found}; allowed: a complete run; take --resume {run} to complete it, or "
            "--interrupted if it was terminated"
        )
    if TABLE_CRC not in origin:
        raise UsageError(
            f"{run} has no CRC-32 of its table; allowed: a run of code that records one; take --from {run}"
        )
    table = read_table(run)
    if table.empty:
        raise UsageError(f"{run} has an empty table; allowed: one row or more")
    return table


def _commit_of(root: Path, run: Path, origin: dict) -> str:
    """Return the commit with the sources of a run; of the last, if it was resumed with others."""
    commit = ""
    for part in (origin, *origin.get("resumed", [])):
        code: dict[str, Any] = part.get("code", {})
        sources = code.get("sources")
        if not isinstance(sources, str) or not sources:
            raise UsageError(f"{run} has no hash of its sources; allowed: a run of code that records one")
        found = find_commit(root, sources)
        if found is None:
            raise UsageError(
                f"{run} was made with sources of hash {sources:.12}, which are those of no commit in the "
                f"history of {root}; its own checkout was at {code.get('commit')}; allowed: a run of "
                "committed sources; commit them unchanged, or repeat the run from a commit"
            )
        commit = found
    return commit


def _copy(run: Path, folder: Path, origin: dict, what: str, films: bool, table: pd.DataFrame | None) -> None:
    """Copy what a reference needs beside its place, or another table, shrink it, and move it there whole."""
    folder.parent.mkdir(parents=True, exist_ok=True)
    endings = (*ENDINGS, *((FILM,) if films else ()))
    with tempfile.TemporaryDirectory(dir=folder.parent, prefix=f".{folder.name}-") as place:
        made = Path(place) / folder.name
        made.mkdir()
        for path in sorted(run.iterdir()):
            if path.is_file() and (path.name == TABLE or path.suffix in endings):
                shutil.copyfile(path, made / path.name)
        if table is not None:
            write_bytes(made / TABLE, table.to_parquet(index=False))
            origin = origin | {TABLE_CRC: zlib.crc32((made / TABLE).read_bytes())}
            (made / "table.csv").unlink(missing_ok=True)
        write_provenance(made, origin)
        line = f"what = {json.dumps(what, ensure_ascii=False)}\n"  # a JSON string is one of TOML too
        write_bytes(made / ABOUT, line.encode())
        shrink(made)
        made.rename(folder)
