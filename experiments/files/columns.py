"""Columns by name: positions, velocities, diameters and the rest of a table, whatever file it is from."""

from __future__ import annotations

import re
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Any

import numpy as np

from experiments.files.data import Data, FileError, checked, refused, said_of

AXES = "xyz"
POSITIONS = ("{}", "pos_{}", "position_{}", "pos{}", "p{}", "coord_{}", "{}coord", "points:{}", "{}s", "{}u")
VELOCITIES = ("v{}", "vel_{}", "velocity_{}", "vel{}", "v_{}")
SIZES = {"diameter": 1.0, "diameters": 1.0, "radius": 2.0, "radii": 2.0}
MOST_SHOWN = 12  # names of columns in a message


def plain(name: str) -> str:
    """Return a name of a column without its unit, quotes and case: "X [mm]" -> "x"."""
    name = re.sub(r"[\[(].*?[\])]", "", name).strip().strip("\"'#").strip()
    return re.sub(r"[\s.]+", "_", name.casefold())


def shown(names: Sequence[str]) -> str:
    """Format names of columns for a message, at most `MOST_SHOWN`."""
    return ", ".join(map(repr, names[:MOST_SHOWN])) + (", ..." if len(names) > MOST_SHOWN else "")


def positions_of(path: Path, names: Sequence[str], columns: Sequence[str]) -> tuple[dict[str, str], str]:
    """Choose the columns of positions.

    Args:
        path: of the file.
        names: of all its columns.
        columns: two or three of them that were asked for; empty to find x, y, z by name.

    Returns:
        Axis -> column, and a sentence on what was assumed; empty if nothing was.

    Raises:
        FileError: a column that is absent or named twice, another number of them, or no x and y.
    """
    have = f"the columns are {shown(names)}"
    if len(set(names)) < len(names):
        repeated = next(name for name in names if names.count(name) > 1)
        raise refused(path, f"column {repeated!r} twice", "distinct names of columns", "rename one")
    if columns:
        if len(columns) not in (2, 3) or len(set(columns)) < len(columns):
            raise refused(path, f"columns = {list(columns)}", "two or three distinct columns, of x, y, z")
        for name in columns:
            if name not in names:
                raise refused(path, f"no column {name!r}; {have}", "columns of the file")
        return dict(zip(AXES, columns, strict=False)), ""
    short = {plain(name): name for name in reversed(names)}
    for form in POSITIONS:
        found = {a: short[form.format(a)] for a in AXES if form.format(a) in short}
        if ":" in form:  # columns of a vector, as ParaView writes them
            found = {a: short[form.format(k)] for k, a in enumerate(AXES) if form.format(k) in short}
        if {"x", "y"} <= found.keys():
            return found, said_of(found) if form != "{}" else ""
    raise refused(path, f"no columns x and y; {have}", "x, y and maybe z", "give columns, two or three names")


def from_columns(
    path: Path, table: Mapping[str, np.ndarray], columns: Sequence[str], said: Sequence[str] = (), **more: Any
) -> Data:
    """Make the data of a table.

    Args:
        path: of the file.
        table: name -> (n,) column.
        columns: names of the positions; empty to find x, y, z by name.
        said: sentences so far.
        more: other fields of `Data`, such as the box.

    Returns:
        The data: particles if there is a box, a velocity or a diameter, else points.

    Raises:
        FileError: as `positions_of` and `checked`; a column of positions, velocities or diameters that is
            not of numbers.
    """
    axes, note = positions_of(path, list(table), columns)
    points = _stack(path, table, axes.values())
    rest = {name: column for name, column in table.items() if name not in axes.values()}
    return with_positions(path, points, rest, (*said, note), **({"choice": tuple(columns)} | more))


def with_positions(
    path: Path, points: np.ndarray, rest: Mapping[str, np.ndarray], said: Sequence[str], **more: Any
) -> Data:
    """Make the data of positions and other columns, among which velocities and diameters are found by name.

    Args:
        path: of the file.
        points: (n, dim).
        rest: name -> (n,) column.
        said: sentences so far; empty ones are left out.
        more: other fields of `Data`.

    Raises:
        FileError: as `checked`; a column of velocities or diameters that is not of numbers.
    """
    short = {plain(name): name for name in reversed(list(rest))}
    axes = AXES[: points.shape[1]]
    forms = ([short[f.format(a)] for a in axes if f.format(a) in short] for f in VELOCITIES)
    moving = next((found for found in forms if len(found) == len(axes)), [])
    size = next((short[word] for word in SIZES if word in short), None)
    diameters, note = None, ""
    if size is not None:
        factor = SIZES[plain(size)]
        diameters = factor * _numbers(path, size, rest[size])
        note = f"diameters are 2 {size!r}" if factor == 2 else ""
    particles = bool(moving) or diameters is not None or more.get("lengths") is not None
    fields: dict[str, Any] = {
        "kind": "particles" if particles else "points",
        "velocities": _stack(path, rest, moving) if moving else None,
        "diameters": diameters,
        "columns": {name: column for name, column in rest.items() if name not in (*moving, size)},
        "said": tuple(filter(None, (*said, note))),
    }
    return checked(Data(path=path, n=len(points), points=points, **(fields | more)))


def _stack(path: Path, table: Mapping[str, np.ndarray], names: Any) -> np.ndarray:
    """Return columns side by side, (n, dim) float64.

    Raises:
        FileError: a column that is not of numbers.
    """
    return np.column_stack([_numbers(path, name, table[name]) for name in names])


def _numbers(path: Path, name: str, column: np.ndarray) -> np.ndarray:
    """Return a column as float64.

    Raises:
        FileError: it holds no numbers; names the first entry that is none.
    """
    if column.dtype.kind not in "fiu" or column.ndim != 1:
        found = f"column {name!r} of {column.dtype}"
        for row, entry in enumerate(column.tolist() if column.dtype.kind in "OU" else ()):
            if not _is_number(entry):
                found = f"{str(entry)!r:.40} in row {row} of column {name!r}"
                break
        raise FileError(
            f"{path}: {found}; allowed: numbers; correct or remove the row, or choose another column"
        )
    return column.astype(np.float64)


def _is_number(entry: object) -> bool:
    """Return whether an entry is a number, or a text of one."""
    try:
        float(str(entry))
    except ValueError:
        return False
    return not isinstance(entry, bool)
