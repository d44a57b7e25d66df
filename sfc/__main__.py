"""Command line: `python -m sfc sort FILE --order row --out FILE2`."""

import argparse
import sys
from collections.abc import Sequence
from typing import Any

from sfc.files import sort_file

DESCRIPTION = """\
Sort the points of a file along a curve or by cells, with all columns and arrays that belong to them.

.npy   (n, columns) numbers, or a structured array
.npz   arrays by name; those with as many rows as points are sorted, the others kept as they are
.csv   with or without a line of names; rows stay as they are written

Other formats: python -m experiments.advise --write."""


def _number(word: str) -> int | float:
    """Convert a word to an integer if it is one, else to a float."""
    try:
        return int(word)
    except ValueError:
        return float(word)


ARGUMENTS: dict[str, dict[str, Any]] = {
    "file": {"metavar": "FILE", "help": ".npy, .npz or .csv"},
    "--order": {
        "default": "hilbert",
        "help": "a curve, an ordering, or an order of points, such as hilbert, row, str (default: hilbert)",
    },
    "--out": {"metavar": "FILE", "help": "the sorted file, of the same format"},
    "--permutation": {
        "metavar": "FILE.npy",
        "help": "row k of the sorted file was row permutation[k] of FILE, from 0",
    },
    "--columns": {
        "nargs": "+",
        "metavar": "NAME",
        "help": "coordinates: names, or numbers from 0; of a .npz, names of arrays (default: x y z)",
    },
    "--overwrite": {"action": "store_true", "help": "replace files that are there"},
    "--bits": {"type": int, "metavar": "N", "help": "base**N cells along each axis"},
    "--cells": {
        "type": int,
        "nargs": "+",
        "metavar": "N",
        "help": "cells along each axis, one number or one for each (default: about two points each)",
    },
    "--box": {
        "type": _number,
        "nargs": "+",
        "metavar": "X",
        "help": "low and high, or both corners in full (default: that of the points; integers are cells)",
    },
    "--clip": {"action": "store_true", "help": "take the nearest cell for a point outside the box"},
    "--stretch": {"action": "store_true", "help": "let the cells of --bits fill the box"},
    "--tile": {"type": int, "nargs": "+", "metavar": "N", "help": "of tiled and tiled_strided: cells"},
    "--capacity": {"type": int, "metavar": "N", "help": "of str: points of a tile"},
    "--seed": {"type": int, "metavar": "N", "help": "of random"},
}
OPTIONS = ("bits", "cells", "tile", "capacity", "seed")  # of `sfc.argsort`, given as they are


def main(arguments: Sequence[str] | None = None) -> int:
    """Run the command line.

    Args:
        arguments: words after `python -m sfc`; None for those of the process.

    Returns:
        0; 2 after an error, with its message on the standard error.
    """
    parser = argparse.ArgumentParser("python -m sfc", description="Curves and orderings.", allow_abbrev=False)
    commands = parser.add_subparsers(dest="command", required=True)
    _add_sort(commands)
    given = parser.parse_args(arguments)
    how: dict[str, Any] = {name: getattr(given, name) for name in OPTIONS if getattr(given, name) is not None}
    how |= {"curve": given.order, "clip": given.clip, "stretch": given.stretch}
    for name in ("cells", "tile"):
        if len(how.get(name, ())) == 1:
            how[name] = how[name][0]
    try:
        if given.box is not None:
            how["box"] = _corners(given.box)
        found = sort_file(given.file, given.out, given.permutation, given.columns, given.overwrite, **how)
    except (TypeError, ValueError, OSError) as error:
        print(f"{parser.prog} sort: {error}", file=sys.stderr)
        return 2
    places = [f"{name} in {where}" for name, where in
              (("sorted file", given.out), ("permutation", given.permutation)) if where]  # fmt: skip
    print(f"{len(found.order)} points in {found.dim}D by {given.order}; {', '.join(places)}")
    for note in found.notes:
        print(note)
    return 0


def _add_sort(commands: Any) -> None:
    sort = commands.add_parser(
        "sort",
        help="sort the points of a file",
        description=DESCRIPTION,
        formatter_class=argparse.RawDescriptionHelpFormatter,
        allow_abbrev=False,
    )
    for name, how in ARGUMENTS.items():
        sort.add_argument(name, **how)


def _corners(numbers: list[int | float]) -> tuple[Any, Any]:
    """Return the lower and the upper corner of a box.

    Raises:
        ValueError: an odd number of coordinates.
    """
    half, odd = divmod(len(numbers), 2)
    if odd:
        raise ValueError(f"--box of {len(numbers)} numbers; allowed: low high, or both corners in full")
    return (numbers[0], numbers[1]) if half == 1 else (numbers[:half], numbers[half:])


if __name__ == "__main__":
    sys.exit(main())
