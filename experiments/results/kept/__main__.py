"""Keep runs for reference, list them, and draw them again."""

import sys
from pathlib import Path
from typing import Annotated

import tyro

from experiments.processes.output import until_output_closes
from experiments.results.kept.keep import ROOT, keep
from experiments.results.kept.listing import kept_runs, write_runs
from experiments.results.kept.redraw import redraw


def list_runs() -> Path:
    """Write results/RUNS.md from all runs in results/reference."""
    return write_runs(ROOT / "results")


def redraw_runs(run: Annotated[tuple[Path, ...], tyro.conf.Positional] = ()) -> None:
    """Draw the figures and tables of kept runs again, with this code; nothing is measured.

    Args:
        run: Folders of kept runs; all if none is given.
    """
    for folder in run or kept_runs(ROOT / "results"):
        drawn, removed = redraw(folder)
        note = f"; removed {', '.join(removed)}" if removed else ""
        print(f"{folder}: {len(drawn)} files{note}", flush=True)


if __name__ == "__main__":
    with until_output_closes():
        try:
            made = tyro.extras.subcommand_cli_from_dict(
                {"keep": keep, "list": list_runs, "redraw": redraw_runs},
                prog="python -m experiments.results.kept",
                description=__doc__,
            )
            if made is not None:
                print(made)
                if made.is_dir():  # a new run
                    list_runs()
        except BrokenPipeError:
            raise
        except (ValueError, OSError) as error:
            print(f"error: {error}", file=sys.stderr)
            sys.exit(2)
