"""Sparse matrices: `.mtx` of the Matrix Market, and `.npz` of scipy."""

from __future__ import annotations

import re
from collections.abc import Sequence
from pathlib import Path
from typing import Any, NamedTuple

import numpy as np
import pandas as pd
import scipy.io
import scipy.sparse

from experiments.files.data import Data, check_order, checked, no_columns, no_frames, refused
from experiments.files.opening import library, write_whole
from experiments.files.text_rows import whole_number
from sfc import checks

FIELDS = ("real", "double", "integer", "pattern")
SYMMETRIES = ("general", "symmetric", "skew-symmetric")
FEWEST = 4  # bytes of an entry in a .mtx file: "1 1\n"
COMPRESSED = {"csr": "csr_array", "csc": "csc_array", "bsr": "bsr_array"}
STRANGE = re.compile(rb"[^\t\n\r\x20-\x7e]")  # bytes of no text in ASCII
MOST = 2**31 - 1  # rows and columns


def read_mtx(path: Path, columns: Sequence[str], frame: int) -> Data:
    """Read a real sparse matrix of a Matrix Market file; the entries of a pattern are ones.

    The numbers are read by pandas: scipy's reader ends the process at some damaged files.

    Raises:
        FileError: as `read` of this package; a dense or complex matrix.
    """
    no_columns(path, columns)
    no_frames(path, frame)
    with library(path, "a matrix of the Matrix Market"):
        head = _header(path)
        _require_size(path, head.rows, head.cols)
        wide = 2 if head.field == "pattern" else 3
        names = ["row", "column", "value"][:wide]
        found = pd.read_csv(
            path,
            sep=r"\s+",
            header=None,
            names=[*names, "more"],
            skiprows=head.lines,
            index_col=False,
            quoting=3,
            float_precision="round_trip",
            low_memory=False,
            on_bad_lines="error",
        )
        if len(found) != head.entries:
            raise refused(path, f"{head.entries} entries stated, {len(found)} lines", "as many")
        if found["more"].notna().any() or any(found[name].dtype.kind not in "iuf" for name in names):
            raise refused(path, "a line of other fields", f"{wide} numbers: {' '.join(names)}")
        if any(found[name].dtype.kind == "f" for name in names[:2]) or found[names].isna().any(axis=None):
            raise refused(path, "a line without a row, a column or a value", "row and column are integers")
        value = np.ones(len(found)) if wide == 2 else found["value"].to_numpy()
        return _filled(path, head, found["row"].to_numpy(), found["column"].to_numpy(), value)


def _filled(path: Path, head: Header, row: np.ndarray, column: np.ndarray, value: np.ndarray) -> Data:
    """Make the data of entries, rows and columns from 1, with both halves of a symmetric matrix.

    Raises:
        FileError: an entry outside the matrix, or above the diagonal of a symmetric one.
    """
    for name, place, side in (("row", row, head.rows), ("column", column, head.cols)):
        if int(place.min()) < 1 or int(place.max()) > side:
            bad = int(place.min()) if int(place.min()) < 1 else int(place.max())
            raise refused(path, f"{name} {bad}", f"1 to {side}", "correct the line or the size")
    said = ["the entries are ones: a pattern"] if head.field == "pattern" else []
    row, column = row.astype(np.int64) - 1, column.astype(np.int64) - 1
    if head.symmetry != "general":
        if head.rows != head.cols or (column > row).any():
            raise refused(
                path, f"entries above the diagonal of a {head.symmetry} matrix", "those below alone"
            )
        below = column < row
        if head.symmetry == "skew-symmetric" and not below.all():
            raise refused(path, "entries on the diagonal of a skew-symmetric matrix", "those below alone")
        sign = -1 if head.symmetry == "skew-symmetric" else 1
        value = np.r_[value, sign * value[below]]
        row, column = np.r_[row, column[below]], np.r_[column, row[below]]
        said.append(f"both halves of the {head.symmetry} matrix are filled")
    return _data(path, scipy.sparse.coo_array((value, (row, column)), shape=(head.rows, head.cols)), said)


class Header(NamedTuple):
    """Header of a Matrix Market file.

    Attributes:
        field: "real", "integer" or "pattern".
        symmetry: "general", "symmetric" or "skew-symmetric".
        rows: of the matrix.
        cols: of the matrix.
        entries: stated.
        lines: of the header, with the line of sizes.
    """

    field: str
    symmetry: str
    rows: int
    cols: int
    entries: int
    lines: int


def _header(path: Path) -> Header:
    """Read and check the header of a Matrix Market file.

    Raises:
        FileError: another form of matrix, or more entries than the file has bytes for.
    """
    _require_text(path)
    with open(path, encoding="ascii") as file:
        first = file.readline().lower().split()
        lines, text = 2, file.readline()
        while text.startswith("%") or (text and not text.strip()):
            lines, text = lines + 1, file.readline()
    if len(first) != 5 or first[:2] != ["%%matrixmarket", "matrix"]:
        wanted = "%%MatrixMarket matrix coordinate real general"
        raise refused(path, f"first line {' '.join(first)!r:.60}", wanted)
    form, field, symmetry = first[2:]
    if form != "coordinate" or field not in FIELDS or symmetry not in SYMMETRIES:
        raise refused(path, f"a {field} {form} {symmetry} matrix", "a real coordinate (sparse) one")
    words = text.split()
    if len(words) != 3:
        raise refused(path, f"line {lines}: sizes {text.strip()!r:.60}", "rows, columns, entries")
    rows, cols, entries = (whole_number(path, lines, word, "a size", 1) for word in words)
    if entries * FEWEST > path.stat().st_size + FEWEST:
        raise refused(path, f"{entries} entries in {path.stat().st_size} bytes", "a whole file")
    return Header("real" if field == "double" else field, symmetry, rows, cols, entries, lines)


def write_mtx(data: Data, order: np.ndarray, target: Path) -> Path:
    """Write a matrix with rows in another order, columns too if it is square; field and symmetry stay."""
    head: Any = _header(data.path)
    moved = _ordered(data.matrix, check_order(order, data.n))

    def write(partial: Path) -> None:
        scipy.io.mmwrite(partial, moved.tocoo(), field=head.field, symmetry=head.symmetry, precision=17)

    return write_whole(target, write)


def _require_text(path: Path) -> None:
    """Check that a file holds printable characters alone.

    Raises:
        FileError: another byte.
    """
    with open(path, "rb") as file:
        place = 0
        while part := file.read(2**22):
            if found := STRANGE.search(part):
                raise refused(
                    path, f"the byte {found[0]!r} at {place + found.start()}", "lines of ASCII text"
                )
            place += len(part)


def is_sparse(arrays: dict[str, np.ndarray]) -> bool:
    """Return whether the arrays of an archive are those of a sparse matrix of scipy."""
    return "format" in arrays and "shape" in arrays


def sparse_data(path: Path, arrays: dict[str, np.ndarray]) -> Data:
    """Make the data of a sparse matrix that `scipy.sparse.save_npz` has written.

    Raises:
        FileError: another format, indices out of range, or a complex matrix.
    """
    form = _format(arrays)
    shape = tuple(int(side) for side in arrays["shape"].ravel())
    if len(shape) != 2:
        raise refused(path, f"a matrix of shape {shape}", "two axes")
    _require_size(path, *shape)
    if form in COMPRESSED:
        parts = (arrays["data"], arrays["indices"], arrays["indptr"])
        for name, part in zip(("indices", "indptr"), parts[1:], strict=True):
            if part.dtype.kind not in "iu" or (
                part.size and (int(part.min()) < 0 or int(part.max()) >= 2**62)
            ):
                raise refused(path, f"{name} of {part.dtype} with values below 0 or no integers", "indices")
        matrix = getattr(scipy.sparse, COMPRESSED[form])(parts, shape=shape)
        matrix.check_format(full_check=True)
    elif form == "coo":
        if any(arrays[name].dtype.kind not in "iu" for name in ("row", "col")):
            raise refused(path, "row or col of no integers", "integers")
        matrix = scipy.sparse.coo_array((arrays["data"], (arrays["row"], arrays["col"])), shape=shape)
    elif form == "dia":
        matrix = scipy.sparse.dia_array((arrays["data"], arrays["offsets"]), shape=shape)
    else:
        raise refused(path, f"a sparse matrix of format {form!r}", "bsr, coo, csc, csr, dia")
    return _data(path, matrix, [])


def write_sparse(data: Data, arrays: dict[str, np.ndarray], order: np.ndarray, target: Path) -> Path:
    """Write a matrix as `scipy.sparse.save_npz`, with rows in another order.

    A matrix of blocks or diagonals is written as csr: another order has other blocks, and many diagonals.
    """
    form = _format(arrays)
    moved = _ordered(data.matrix, order).asformat(form if form in ("csc", "coo") else "csr")

    def write(partial: Path) -> None:
        scipy.sparse.save_npz(partial, moved)

    return write_whole(target, write)


def _format(arrays: dict[str, np.ndarray]) -> str:
    """Return the format of a sparse matrix of scipy: "csr"."""
    found = arrays["format"].item() if arrays["format"].size == 1 else ""
    return found.decode("ascii", "replace") if isinstance(found, bytes) else str(found)


def _data(path: Path, matrix: Any, said: list[str]) -> Data:
    """Make the data of a matrix.

    Raises:
        FileError: not of real numbers, no entries, or an entry that is not finite.
    """
    if matrix.dtype.kind not in "fiub":
        raise refused(path, f"a matrix of {matrix.dtype}", "real numbers")
    stored = matrix.nnz
    csr = scipy.sparse.csr_array(matrix)
    csr.sum_duplicates()
    if csr.nnz < stored and matrix.format == "coo":
        said.append(f"{stored - csr.nnz:,} entries of places named before were added to these")
    if not csr.nnz:
        raise refused(path, "a matrix without entries", "at least one")
    if not np.isfinite(csr.data).all():
        raise refused(
            path, f"{int((~np.isfinite(csr.data)).sum())} entries that are not finite", "finite numbers"
        )
    return checked(Data(path, "matrix", csr.shape[0], matrix=csr, said=tuple(said)))


def _require_size(path: Path, rows: int, cols: int) -> None:
    """Check the sides of a matrix before its rows are allocated.

    Raises:
        ValueError: no rows or columns, or more than `MOST` or the memory holds.
    """
    if not (0 < rows <= MOST and 0 < cols <= MOST):
        raise refused(path, f"{rows} rows, {cols} columns", f"1 to {MOST}")
    checks.require_allocatable(f"{path}: {rows} rows", 16 * max(rows, cols), "give a smaller matrix")


def _ordered(matrix: Any, order: np.ndarray) -> Any:
    """Return a matrix with rows in another order, and columns too if it is square."""
    moved = matrix[order]
    moved = moved[:, order] if matrix.shape[0] == matrix.shape[1] else moved
    moved.sort_indices()
    return moved
