"""States from files of other programs: GSD, and arrays of numpy."""

from __future__ import annotations

import warnings
from pathlib import Path
from typing import Any

from md import checks
from md.errors import ConvertedPoints
from md.io.gsd_file import read_frames
from md.io.npy_file import read_npy
from md.particles.points import convert_points
from md.particles.state import State

ENDINGS = (".gsd", ".npy")


def read(path: str | Path, diameter: float | None = None, frame: int = -1) -> State:
    """Read a state from a GSD file, or points from a `.npy` file.

    A GSD file has the box, and maybe velocities, diameters and walls (as `md.Trajectory` logs them); its
    centred positions are shifted. Points of a `.npy` file, (n, 2) or (n, 3), are put into the box around
    their spheres, between walls, at rest; `md.State.from_points` takes another box.

    Args:
        path: of the file.
        diameter: of a sphere in the unit of the file, which becomes 1 d; None for the mean diameter that the
            file has.
        frame: of a GSD file, from 0, or from -1 backwards.

    Returns:
        The state, in the order of the file.

    Raises:
        TypeError: an argument of another class.
        ValueError: another ending, a damaged file, no such frame, a tilted box, a position outside the box,
            or no diameter, neither given nor in the file; names the file.
        OSError: the file cannot be read.

    Warns:
        ConvertedPoints: lengths were divided, or a box, velocities or diameters assumed; says which.
    """
    path = checks.path("path", path)
    frame = checks.integer("frame", frame, -(2**62), 2**62)
    ending = path.suffix.lower()
    if ending not in ENDINGS:
        raise ValueError(
            f"{path}: ending {path.suffix!r}; allowed: {', '.join(ENDINGS)}; give other points, "
            "as arrays, to md.State.from_points"
        )
    ids, given = None, dict[str, Any]()
    if ending == ".npy":
        if frame not in (0, -1):
            raise ValueError(f"{path}: frame = {frame}; allowed: 0 or -1, the only one of a .npy file")
        points = read_npy(path)
        if points.dtype.kind not in "fiu" or points.ndim != 2 or points.shape[1] not in (2, 3):
            raise ValueError(
                f"{path}: an array of {points.dtype}, shape {points.shape}; allowed: numbers, "
                "(n, 2) or (n, 3)"
            )
    else:
        stored, _ = read_frames(path, frame)
        points, ids = stored.position, stored.others.get("log/id")
        given = {"box": stored.lengths, "origin": -stored.lengths / 2, "velocities": stored.velocity}
        given |= {"periodic": stored.periodic}
        if stored.diameter is not None:
            given["radius"] = stored.diameter / 2
            if stored.periodic is not None and diameter is None:  # of this package: in d
                diameter = 1.0
    try:
        made = convert_points(points, diameter=diameter, **given)
        state = State(made.pos, made.vel, made.box, ids, made.radius)
    except ValueError as error:
        raise ValueError(f"{path}: {error}") from error
    if len(made.notes) > 1:
        warnings.warn(f"{path}: {'; '.join(made.notes)}", ConvertedPoints, stacklevel=2)
    return state
