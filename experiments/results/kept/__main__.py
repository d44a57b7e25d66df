"""Keep runs for reference, list them, draw them again, and make them small."""

import sys
from pathlib import Path
from typing import Annotated

import tyro

from experiments.processes.output import until_output_closes
from experiments.results.kept import keep as keeping
from experiments.results.kept import listing, shrink
from experiments.results.kept import redraw as redrawing

ROOT = Path(__file__).parents[3]
_Run = Annotated[Path, tyro.conf.Positional]
_Runs = Annotated[tuple[Path, ...], tyro.conf.Positional]
_Name = Annotated[str, tyro.conf.Positional]


def keep(
    run: _Run,
    name: _Name,
    /,
    about: str,
    runs: int = keeping.FEWEST_RUNS,
    films: bool = False,
    interrupted: bool = False,
    without: tuple[str, ...] = (),
    quick: bool = False,
) -> None:
    """Copy a run into results/reference/<experiment>/<name>, and list it in results/RUNS.md.

    Args:
        run: Folder of the run, results/<experiment>/<utc>-<hash>.
        name: Name of the new folder, such as h200_512.
        about: One line: what was measured.
        runs: Smallest number of runs of a table of times.
        films: Whether films are kept.
        interrupted: Whether the run may have ended before its last case.
        without: Values of the column `what` whose rows are left out, such as the pictures of a film.
        quick: Whether the run may have sizes of --quick.
    """
    print(keeping.keep(run, name, about, ROOT, runs, films, interrupted, without, quick))
    list_runs()


def list_runs() -> None:
    """Write results/RUNS.md from all runs in results/reference."""
    print(listing.write_runs(ROOT / "results"))


def shrink_runs(run: _Runs = (), /) -> None:
    """Make the tables and the pictures of kept runs small, without loss of data.

    Args:
        run: Folders of kept runs; all if none is given.
    """
    for folder in run or listing.kept_runs(ROOT / "results"):
        if saved := shrink.shrink(folder):
            print(f"{folder}: {saved / 1e3:,.0f} kB less")


def redraw_runs(run: _Runs = (), /) -> None:
    """Draw the figures and tables of kept runs again, with this code; nothing is measured.

    Args:
        run: Folders of kept runs; all if none is given.
    """
    for folder in run or listing.kept_runs(ROOT / "results"):
        drawn, removed = redrawing.redraw(folder)
        note = f"; removed {', '.join(removed)}" if removed else ""
        print(f"{folder}: {len(drawn)} files{note}", flush=True)


if __name__ == "__main__":
    with until_output_closes():
        try:
            tyro.extras.subcommand_cli_from_dict(
                {"keep": keep, "list": list_runs, "redraw": redraw_runs, "shrink": shrink_runs},
                prog="python -m experiments.results.kept",
                description=__doc__,
            )
        except BrokenPipeError:
            raise
        except (ValueError, OSError) as error:
            print(f"error: {error}", file=sys.stderr)
            sys.exit(2)
