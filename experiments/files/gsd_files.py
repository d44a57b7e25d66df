"""Trajectories: GSD files of the schema hoomd, as HOOMD-blue and this project write them."""

from __future__ import annotations

from collections.abc import Sequence
from pathlib import Path

import numpy as np

from experiments.files.data import Data, check_order, checked, no_columns, refused
from experiments.files.opening import library, write_whole
from md.io.gsd_file import StoredFrame, read_frames, write_ordered

EDGES = {"bonds": "edges"}  # names of groups as cells


def read_gsd(path: Path, columns: Sequence[str], frame: int) -> Data:
    """Read a frame of a GSD file, and the positions of the frame before.

    The box is centred on the origin, as the schema says.

    Raises:
        FileError: as `read` of this package; a tilted box, or frames of different numbers of particles.
    """
    no_columns(path, columns)
    with library(path, "a GSD file"):
        last, before = read_frames(path, frame)
    n, dim = last.position.shape
    said = []
    if last.periodic is None:
        said.append("all axes are periodic: the schema of GSD has no walls")
    earlier, steps = None, None
    if before is not None:
        earlier, steps = _before(path, last, before, said)
    return checked(
        Data(
            path=path,
            kind="particles",
            n=n,
            points=last.position,
            lengths=last.lengths,
            origin=-last.lengths / 2,
            periodic=last.periodic or (True,) * dim,
            velocities=last.velocity,
            diameters=last.diameter,
            earlier=earlier,
            steps=steps,
            cells={EDGES.get(name, name): group for name, group in last.groups.items()},
            columns=last.others,
            said=tuple(said),
            frame=last.index,
        )
    )


def write_gsd(data: Data, order: np.ndarray, target: Path) -> Path:
    """Write all frames and chunks of a GSD file with its particles in another order."""
    order = check_order(order, data.n)

    def write(partial: Path) -> None:
        with library(data.path, "a GSD file"):
            write_ordered(data.path, order, partial)

    return write_whole(target, write)


def _before(
    path: Path, last: StoredFrame, before: StoredFrame, said: list[str]
) -> tuple[np.ndarray | None, int | None]:
    """Return the positions of the frame before, and the steps between; None if the box has changed.

    Raises:
        FileError: another number of particles or dimensions, or steps that do not increase.
    """
    if before.position.shape != last.position.shape:
        raise refused(
            path,
            f"frame {before.index} of {len(before.position)} particles, frame {last.index} of "
            f"{len(last.position)}",
            "as many in both",
            "give frame 0, or a file with the same particles in all frames",
        )
    if last.step <= before.step:
        raise refused(path, f"step {last.step} after step {before.step}", "steps that increase")
    if not np.array_equal(before.lengths, last.lengths):
        said.append(f"frame {before.index} is not used: its box is another")
        return None, None
    return before.position, last.step - before.step
