"""Draw the figures and the tables of kept runs again, from their tables alone, with the code as it is now.

A run is drawn into a temporary folder first. Then its figures and the tables that its experiment makes of
`table.parquet` are replaced by the new ones: a figure that is no longer drawn is removed. Table,
provenance and films stay as they are, and so does a table that differs by rounding only.
"""

import contextlib
import importlib
import io
import os
import tempfile
from collections.abc import Mapping
from pathlib import Path

import pandas as pd

import sfc
from experiments.core.cli import UNANSWERED
from experiments.core.provenance import PROVENANCE, read_provenance
from experiments.core.rerun import experiment_of, read_table_now
from experiments.core.settings import UsageError
from experiments.drawing import style
from experiments.drawing.charts import drawer
from experiments.results import reliability
from experiments.results.kept.keep import is_kept
from md.checks import path as as_path
from md.io.atomic_write import replacing

_ROUNDING = 1e-9  # relative


def redraw(run: Path) -> tuple[list[str], list[str]]:
    """Draw a kept run again.

    Args:
        run: its folder, `reference/<experiment>/<name>`.

    Returns:
        Names of the files that are drawn now, and of those that were removed.

    Raises:
        UsageError: a folder that is no run, or a table that cannot be drawn; nothing has been changed then.
        OSError: a file cannot be written; the error names the file.
    """
    run = as_path("run", run)
    origin = read_provenance(run)
    if "experiment" not in origin:
        raise UsageError(f"{run} has no {PROVENANCE} of a run; allowed: reference/<experiment>/<name>")
    name = experiment_of(run, origin)
    experiment = importlib.import_module(f"experiments.{name}")
    for curve, text in origin.get("grammars", {}).items():
        sfc.register(sfc.parse_curve(text, f"grammar {curve!r} of {run}"))
    table = read_table_now(run)
    with tempfile.TemporaryDirectory() as folder:
        # the same names as those of the run, which the figures show
        drawn = Path(folder) / run.resolve().parent.name / run.resolve().name
        drawn.mkdir(parents=True)
        style.use(reliability.footer(table), style.origin_of(run, origin, table))
        try:
            with contextlib.redirect_stdout(io.StringIO()):  # what it prints is the answer of a run
                drawer(getattr(experiment, "VIEWS", None) or experiment.draw)(table, drawn)
        except UNANSWERED as error:
            raise UsageError(
                f"the table of {run} cannot be drawn: {type(error).__name__}: {error}; allowed: a table "
                "with the present names, or with those in experiments/core/old_names.py"
            ) from error
        return _replace(run, drawn)


def _replace(run: Path, drawn: Path) -> tuple[list[str], list[str]]:
    """Copy what was drawn to a run, and then remove what is no longer drawn."""
    made = {path.name for path in drawn.iterdir() if is_kept(path)}
    before = {path.name for path in run.iterdir() if is_kept(path)}
    changed = [name for name in sorted(made) if not _is_same_table(drawn / name, run / name)]
    _write_files({run / name: (drawn / name).read_bytes() for name in changed})
    for name in sorted(before - made):
        (run / name).unlink()
    return sorted(made), sorted(before - made)


def _write_files(files: Mapping[Path, bytes]) -> None:
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


def _is_same_table(made: Path, kept: Path) -> bool:
    """Return whether two tables differ by rounding only, as those of other versions of libraries do."""
    if made.suffix != ".csv" or not kept.exists():
        return False
    try:
        one, other = pd.read_csv(made), pd.read_csv(kept)
        pd.testing.assert_frame_equal(one, other, check_exact=False, rtol=_ROUNDING)
    except (AssertionError, ValueError):
        return False
    return True
