"""Copy a complete run into `results/reference/<experiment>/<name>/`, if it can stand as a reference.

Contract. A kept run is complete, or its description says after how many cases it was interrupted. Its table
is as it was written, its sources are those of a commit, and its times come from enough runs. In its
provenance `code.commit` is the commit that introduced the sources, and `code.checkout` what the machine's
own git said, which may be older; `reference` has `runs`, counted in the table, and `fewest_runs`, the number
that was required. A kept run has its table, provenance, figures and summaries, and `about.toml`, which
describes it. Journals, PDFs, reports of profilers, the table as text and other CSV files of 100 kB and more
are not copied, and films only if wanted.
"""

import io
import json
import re
import shutil
import tempfile
import zlib
from pathlib import Path
from typing import Annotated, Any

import pandas as pd
import pyarrow as pa
import pyarrow.parquet as pq
import tyro

from experiments.core.provenance import PROVENANCE, TABLE_CRC, read_provenance, write_provenance
from experiments.core.record import DATABASE, ERROR, TABLE, read_table, write_bytes
from experiments.core.rerun import experiment_of, was_quick
from experiments.core.settings import UsageError, checked_text
from experiments.results.kept.history import find_commit
from experiments.results.kept.listing import ABOUT, REFERENCE, count_runs
from md.checks import path as as_path
from sfc import checks

ROOT = Path(__file__).parents[3]
FEWEST_RUNS = 3  # of times
INTERRUPTED = ("interrupted", "terminated")  # status of a run that can be resumed, and did not fail
LARGE_CSV = 100_000  # bytes from which a CSV is left out: `--replot` writes it again
AS_TEXT = "table.csv"  # the rows of table.parquet as text
FILM = ".mp4"
_DRAWN = (".png", ".csv")
_NAME = re.compile(r"[a-z0-9]+(_[a-z0-9]+)*")


def keep(
    run: Annotated[Path, tyro.conf.Positional],
    name: Annotated[str, tyro.conf.Positional],
    about: str,
    root: tyro.conf.Suppress[Path] = ROOT,
    runs: int = FEWEST_RUNS,
    films: bool = False,
    interrupted: bool = False,
    without: tuple[str, ...] = (),
    quick: bool = False,
) -> Path:
    """Copy a run into results/reference/<experiment>/<name>, and list it in results/RUNS.md.

    Args:
        run: Folder of the run, results/<experiment>/<utc>-<hash>.
        name: Name of the new folder: the device, and what tells the run from others, such as h200_512.
        about: One line: what was measured, without the values that the provenance has.
        root: Top of the checkout, whose history has the sources of the run.
        runs: Smallest number of runs of a table of times.
        films: Whether films are kept.
        interrupted: Whether the run may have ended before its last case; its description then says so.
        without: Values of the column `what` whose rows are left out, such as the pictures of a film; the
            description then says so.
        quick: Whether the run may have sizes of --quick; its description then says so.

    Returns:
        The new folder.

    Raises:
        UsageError: a run that is incomplete, failed, damaged, small by `--quick`, of no experiment, of
            sources of no commit or of too few runs; a name that is taken or not allowed; rows to leave out
            that the table has not.
        OSError: a file cannot be copied; nothing is left then.
    """
    run, root = as_path("run", run), as_path("root", root)
    runs = checks.integer("runs", runs, 1)
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
    origin = _with_commits(root, run, origin)
    found = count_runs(table)
    if "run" in table and found < runs:  # its rows are times
        raise UsageError(
            f"{run} has times of {found} run{'s' * (found != 1)}; allowed: {runs} or more; measure more "
            f"with --from {run} --runs {runs}, or take --runs {found}, which its provenance will say"
        )
    folder = root / "results" / "reference" / experiment / name
    if folder.exists():
        raise UsageError(f"{folder} exists; allowed: a new name; to replace that run, remove it first")
    finished, every = origin.get("finished", 0), origin.get("cases", 0)
    notes = [checked_text("--about", checks.text("--about", about))]
    if origin["status"] != "complete" and finished < every:
        notes.append(f"interrupted after {finished} of {every} cases")
    if was_quick(origin):
        notes.append("with sizes of --quick")
    if without:
        there = set(table["what"]) if "what" in table else set()
        if set(without) - there:
            raise UsageError(f"{run} has no rows {', '.join(without)} to leave out; allowed: {sorted(there)}")
        notes.append(f"without its rows {', '.join(without)}")
        table = table[~table["what"].isin(without)]
    origin |= {REFERENCE: {"runs": found, "fewest_runs": runs}}
    _copy(run, folder, origin, "; ".join(notes), films, table if without else None)
    return folder


def is_kept(path: Path) -> bool:
    """Return whether a kept run has a file that an experiment draws.

    Args:
        path: of the file: a PNG, or a CSV of less than 100 kB that is not the table as text.
    """
    is_left_out = path.name == AS_TEXT or (path.suffix == ".csv" and path.stat().st_size >= LARGE_CSV)
    return path.suffix in _DRAWN and not is_left_out


def smallest(table: pa.Table) -> bytes:
    """Return a table as Parquet with Zstandard, with dictionaries or without, whichever takes less room.

    Args:
        table: its values, types and metadata stay as they are.
    """
    found = []
    zstd: dict[str, Any] = {"compression": "zstd", "compression_level": 19, "write_page_checksum": True}
    for use_dictionary in (True, False):
        file = io.BytesIO()
        pq.write_table(table, file, use_dictionary=use_dictionary, **zstd)
        found.append(file.getvalue())
    return min(found, key=len)


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


def _with_commits(root: Path, run: Path, origin: dict) -> dict:
    """Return the provenance with the commit of the sources of the run, and of each of its resumptions."""

    def named(part: dict) -> dict:
        code: dict[str, Any] = part.get("code", {})
        sources = code.get("sources")
        if not isinstance(sources, str) or not sources:
            raise UsageError(f"{run} has no hash of its sources; allowed: a run of code that records one")
        commit = find_commit(root, sources)
        if commit is None:
            raise UsageError(
                f"{run} was made with sources of hash {sources:.12}, which are those of no commit in the "
                f"history of {root}; its own checkout was at {code.get('commit')}; allowed: a run of "
                "committed sources; commit them unchanged, or repeat the run from a commit"
            )
        checkout = {name: code.get(name) for name in ("commit", "dirty")}
        return part | {"code": code | {"commit": commit, "dirty": False, "checkout": checkout}}

    resumed = [named(part) for part in origin.get("resumed", [])]
    return named(origin) | ({"resumed": resumed} if resumed else {})


def _copy(run: Path, folder: Path, origin: dict, what: str, films: bool, rest: pd.DataFrame | None) -> None:
    """Copy what a reference needs beside its place, with the rest of its rows if some go, and move it."""
    folder.parent.mkdir(parents=True, exist_ok=True)
    with tempfile.TemporaryDirectory(dir=folder.parent, prefix=f".{folder.name}-") as place:
        made = Path(place) / folder.name
        made.mkdir()
        for path in sorted(run.iterdir()):
            if path.is_file() and (is_kept(path) or (films and path.suffix == FILM)):
                shutil.copyfile(path, made / path.name)
        if rest is None:
            before = (run / TABLE).read_bytes()
            table = min(before, smallest(pq.read_table(io.BytesIO(before))), key=len)
        else:
            table = smallest(pa.Table.from_pandas(rest, preserve_index=False))
        write_bytes(made / TABLE, table)
        write_provenance(made, origin | {TABLE_CRC: zlib.crc32(table)})
        line = f"what = {json.dumps(what, ensure_ascii=False)}\n"  # a JSON string is one of TOML too
        write_bytes(made / ABOUT, line.encode())
        made.rename(folder)
