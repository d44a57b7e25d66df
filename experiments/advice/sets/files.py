"""Write a data set to a file as its users have it.

What a format has no place for is not in the file: GSD holds single precision, a matrix file no vector and no
coordinates, a `.npy` of points no radii and of a trace no table.
"""

from collections.abc import Callable
from pathlib import Path

import numpy as np
import pandas as pd
from scipy.io import mmwrite
from scipy.sparse import save_npz

import md
from experiments.advice.sets.data import SetData
from md.io.trajectory import append_frame
from sfc import checks

AXES = "xyz"


def write(data: SetData, path: str | Path) -> None:
    """Write a data set in the format of the file's ending.

    `.gsd`: particles, the first frame of a trajectory. `.csv`: points under a header, with `radius` if they
    have radii. `.npy`: points, or a trace. `.npz`: a matrix as `scipy.sparse.save_npz` does; else all arrays
    by the names of `SetData`, as `SetData.save` does. `.mtx`: a matrix as Matrix Market text. `.ply`: points
    and their edges or cells as text.

    Args:
        data: the data set.
        path: of the file, which is replaced.

    Raises:
        OSError: the file cannot be written.
        ValueError: an unknown ending, or a format that has no place for the data.
    """
    path = checks.path("path", path)
    checks.word("ending", path.suffix, WRITERS)
    WRITERS[path.suffix](data, path)


def _gsd(data: SetData, path: Path) -> None:
    points = data.required("points", path.name)
    corner = np.minimum(points.min(axis=0), 0)
    lengths = np.ceil((points - corner).max(axis=0) + 1e-3)
    state = md.State(
        points - corner, np.zeros_like(points), md.Box(tuple(lengths.tolist())), radius=data.radii
    )
    path.unlink(missing_ok=True)
    append_frame(path, state, 0)


def _csv(data: SetData, path: Path) -> None:
    points = data.required("points", path.name)
    columns = {AXES[axis]: points[:, axis] for axis in range(points.shape[1])}
    if data.radii is not None:
        columns["radius"] = data.radii
    pd.DataFrame(columns).to_csv(path, index=False, float_format="%.6f")


def _npy(data: SetData, path: Path) -> None:
    np.save(path, data.trace if data.trace is not None else data.required("points", path.name))


def _npz(data: SetData, path: Path) -> None:
    if data.matrix is not None:
        save_npz(path, data.matrix, compressed=False)
    else:
        data.save(path)


def _mtx(data: SetData, path: Path) -> None:
    mmwrite(path, data.required("matrix", path.name), precision=9, symmetry="general")


def _ply(data: SetData, path: Path) -> None:
    points, cells = data.required("points", path.name), data.required("cells", path.name)
    corners = cells.shape[1]
    head = ["ply", "format ascii 1.0", f"element vertex {len(points)}"]
    head += [f"property double {axis}" for axis in AXES]
    if corners == 2:
        head += [f"element edge {len(cells)}", "property int vertex1", "property int vertex2"]
    else:
        head += [f"element face {len(cells)}", "property list uchar int vertex_indices"]
        cells = np.column_stack([np.full(len(cells), corners), cells])
    flat = np.zeros((len(points), 3 - points.shape[1]))
    with path.open("w", encoding="ascii", newline="\n") as file:
        file.write("\n".join([*head, "end_header"]) + "\n")
        for rows in (np.column_stack([points, flat]), cells):
            pd.DataFrame(rows).to_csv(file, sep=" ", header=False, index=False, float_format="%.9g")


WRITERS: dict[str, Callable[[SetData, Path], None]] = {
    ".gsd": _gsd, ".csv": _csv, ".npy": _npy, ".npz": _npz, ".mtx": _mtx, ".ply": _ply,
}  # fmt: skip
