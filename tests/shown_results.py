"""Record all that a reader is shown of the kept runs, to compare two commits number by number.

    python -m tests.shown_results record FOLDER [--only TEXT ...]
    python -m tests.shown_results compare OLD NEW [--points] [--digits N] [--only TEXT ...] [--rename OLD=NEW]
    python -m tests.shown_results check [--only TEXT ...]
    python -m tests.shown_results update [--only TEXT ...]

`record` draws every run of `results/reference` again, without pixels, and writes what it shows (answer,
tables, figures with every drawn point), and what the verdicts, the page of results and the pages of
`results/` show: a file in JSON each. `compare` prints every place where two such folders differ and ends
with status 1 if there is any; with `--points` only the points of charts count, not which artist draws them
in which look, and `--digits 12` forgives what a library rounds. Records are equal to the last bit on one
machine with one set of packages. `check` compares digests of numbers with 7 digits, which any machine gives,
with those in `shown_results.json`; `update` writes them.
"""

from __future__ import annotations

import argparse
import json
import multiprocessing
import os
import sys
import time
import traceback
from collections.abc import Iterable, Iterator
from pathlib import Path
from typing import Any

RECORDED = Path(__file__).with_suffix(".json")
SETTINGS = {
    "PYTHONHASHSEED": "0",
    "MPLBACKEND": "Agg",
    "OMP_NUM_THREADS": "1",
    "OPENBLAS_NUM_THREADS": "1",
    "NUMBA_NUM_THREADS": "1",
}
PROCESSES = 2
MOST_SHOWN = 12  # differences of a record that are printed
SLOW = ("page", "results", "curves/", "cache_hit/", "flock_order/", "verdicts")  # begun first
APART = ("page", "page_of_reader", "verdicts", "results")  # records that are no runs
OWN = (
    "timing/cpu_three_runs",
    "cooling/cpu_decades",
)  # runs that the page of a reader shows beside the kept ones


def names(only: Iterable[str] = ()) -> list[str]:
    """Return the names of all records: `<experiment>/<name>` of the kept runs, and `APART`.

    Args:
        only: parts of names; all records if there is none.
    """
    from tests.shown.entries import REFERENCE

    runs = sorted(path.parent for path in REFERENCE.glob("*/*/provenance.json"))
    every = [*APART, *(f"{run.parent.name}/{run.name}" for run in runs)]
    only = list(only)
    return [name for name in every if not only or any(text in name for text in only)]


def recorded(name: str) -> tuple[str, Any, str, float]:
    """Return a name, its record, the reason why there is none, and the seconds it took."""
    from tests.shown import catching, entries, pages

    begin = time.process_time()
    try:
        if name in APART:
            makers = {"page": pages.page, "verdicts": pages.verdicts, "results": pages.results}
            record = pages.page(OWN) if name == "page_of_reader" else makers[name]()
        else:
            record = catching.record_run(entries.REFERENCE / name)
    except Exception:
        return name, None, traceback.format_exc(), 0.0
    return name, record, "", time.process_time() - begin


def records(chosen: list[str]) -> Iterator[tuple[str, Any]]:
    """Yield name and record of each, each made in a process of its own.

    Raises:
        SystemExit: records that could not be made, after all others.
    """
    from tests.shown.entries import warm_up

    warm_up()
    failed = []
    order = sorted(chosen, key=lambda name: next((k for k, of in enumerate(SLOW) if of in name), len(SLOW)))
    with multiprocessing.get_context("fork").Pool(PROCESSES, maxtasksperchild=1) as pool:
        for name, record, reason, seconds in pool.imap_unordered(recorded, order, chunksize=1):
            print(f"{name}: {'failed' if reason else f'{seconds:.1f} s'}", file=sys.stderr, flush=True)
            if reason:
                failed.append(f"{name} cannot be recorded: {reason}")
            else:
                yield name, record
    if failed:
        sys.exit("\n".join(failed))


def write(folder: Path, only: list[str]) -> None:
    """Write the records into a folder."""
    for name, record in records(names(only)):
        path = folder / f"{name}.json"
        path.parent.mkdir(parents=True, exist_ok=True)
        path.write_text(json.dumps(record, indent=0, ensure_ascii=False), encoding="utf-8")


def read(folder: Path, only: list[str]) -> dict[str, Any]:
    """Read the records of a folder."""
    paths = {path.relative_to(folder).with_suffix("").as_posix(): path for path in folder.rglob("*.json")}
    return {
        name: json.loads(path.read_text(encoding="utf-8"))
        for name, path in sorted(paths.items())
        if not only or any(text in name for text in only)
    }


def compare(old: dict[str, Any], new: dict[str, Any], most: int = MOST_SHOWN) -> int:
    """Print the differences of two sets of records, and return how many there are."""
    from tests.shown.comparing import differences

    total = 0
    for name in sorted(old.keys() | new.keys()):
        if name not in old or name not in new:
            print(f"{name}: {'no such record before' if name not in old else 'no such record now'}")
            total += 1
            continue
        differing = list(differences(old[name], new[name]))
        for place, what in differing[:most]:
            print(f"{name} / {place}: {what}")
        if len(differing) > most:
            print(f"{name}: {len(differing) - most} more differences")
        total += len(differing)
    return total


def check(only: list[str]) -> int:
    """Print the places whose digests differ from the recorded ones, and return how many there are."""
    from tests.shown.comparing import digests

    before = json.loads(RECORDED.read_text(encoding="utf-8"))
    chosen = names(only)
    now = {name: digests(record) for name, record in records(chosen)}
    expected = {name: of for name, of in before.items() if name in chosen or not only}
    return compare(expected, now, 40)


def update(only: list[str]) -> None:
    """Write the digests of the records."""
    from tests.shown.comparing import digests

    kept = json.loads(RECORDED.read_text(encoding="utf-8")) if only and RECORDED.exists() else {}
    kept |= {name: digests(record) for name, record in records(names(only))}
    lines = [f"{json.dumps(name)}: {json.dumps(kept[name], separators=(',', ':'))}" for name in sorted(kept)]
    RECORDED.write_text("{\n" + ",\n".join(lines) + "\n}\n", encoding="utf-8")


def parser() -> argparse.ArgumentParser:
    """Return the parser of the command line."""
    made = argparse.ArgumentParser(
        prog="python -m tests.shown_results",
        description=__doc__,
        formatter_class=argparse.RawDescriptionHelpFormatter,
    )
    commands = made.add_subparsers(dest="command", required=True)
    added = {name: commands.add_parser(name) for name in ("record", "compare", "check", "update")}
    for command in added.values():
        command.add_argument("--only", nargs="+", action="extend", default=[], metavar="TEXT")
    added["record"].add_argument("folder", type=Path)
    added["compare"].add_argument("folders", type=Path, nargs=2, metavar="FOLDER")
    added["compare"].add_argument("--points", action="store_true", help="compare the points of charts alone")
    added["compare"].add_argument("--all", action="store_true", help="print all differences")
    added["compare"].add_argument("--digits", type=int, help="compare numbers to so many significant digits")
    added["compare"].add_argument(
        "--rename", nargs="+", action="extend", default=[], metavar="OLD=NEW",
        help="names of runs, or of figures as <experiment>/<run>/<figure>, that have changed",
    )  # fmt: skip
    return made


def main(arguments: list[str] | None = None) -> int:
    """Run the command; return 1 if there are differences."""
    options = parser().parse_args(arguments)
    if options.command == "record":
        write(options.folder, options.only)
        return 0
    if options.command == "update":
        update(options.only)
        return 0
    if options.command == "check":
        count = check(options.only)
    else:
        from tests.shown import comparing

        old, new = (read(folder, options.only) for folder in options.folders)
        old = comparing.renamed(old, dict(pair.split("=", 1) for pair in options.rename))
        if options.points:
            old, new = ({name: comparing.coarse(of) for name, of in each.items()} for each in (old, new))
        if options.digits is not None:
            old, new = (comparing.to_digits(each, options.digits) for each in (old, new))
        count = compare(old, new, sys.maxsize if options.all else MOST_SHOWN)
    print(f"{count} differences")
    return int(count > 0)


if __name__ == "__main__":
    if any(os.environ.get(name) != value for name, value in SETTINGS.items()):
        command = [sys.executable, "-m", "tests.shown_results", *sys.argv[1:]]
        os.execve(sys.executable, command, os.environ | SETTINGS)
    sys.exit(main())
