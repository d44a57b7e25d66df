"""Laser scans: LAS, and LAZ where laspy has a library for it.

The header is checked first: laspy counts what a header declares, whatever the file holds.
https://www.asprs.org/divisions-committees/lidar-division/laser-las-file-format-exchange-activities
"""

from __future__ import annotations

import struct
from collections.abc import Sequence
from pathlib import Path
from typing import Any

import numpy as np

from experiments.files.data import Data, FileError, check_order, checked, no_columns, no_frames, refused
from experiments.files.opening import INSTALL, library, module, write_whole
from sfc import checks

FEWEST = 54, 60  # bytes of a variable length record, and of an extended one
POINT = 20  # fewest bytes of a point


def read_las(path: Path, columns: Sequence[str], frame: int) -> Data:
    """Read the points of a laser scan, scaled to the unit of the file, and all their dimensions.

    Raises:
        FileError: as `read` of this package; laspy is absent, or its library for LAZ.
    """
    no_columns(path, columns)
    no_frames(path, frame)
    las = _scan(path)
    with library(path, "a laser scan"):
        points = np.column_stack([np.asarray(las[axis], np.float64) for axis in "xyz"])
        names = [name for name in las.point_format.dimension_names if name not in ("X", "Y", "Z")]
        rest = {name: np.asarray(las[name]) for name in names}
        return checked(Data(path, "points", len(points), points, columns=rest))


def write_las(data: Data, order: np.ndarray, target: Path) -> Path:
    """Write a laser scan with its points in another order; header and records stay."""
    las = _scan(data.path)

    def write(partial: Path) -> None:
        with library(data.path, "a laser scan"):
            las.points = las.points[check_order(order, len(las.points))]
            las.write(str(partial))

    return write_whole(target, write)


def _scan(path: Path) -> Any:
    """Read a whole scan.

    Raises:
        FileError: laspy is absent, or its library for LAZ; a damaged file.
    """
    laspy = module(path, "laspy")
    packed = path.suffix.lower() == ".laz"
    if packed and not laspy.LazBackend.detect_available():
        raise FileError(f"{path}: .laz needs lazrs, which is absent; {INSTALL}")
    with library(path, "a laser scan"):
        count = _check_header(path, packed)
        las = laspy.read(str(path))
        if len(las.points) != count:
            raise refused(
                path, f"{len(las.points)} points, {count} in the header", "as many", "give a whole file"
            )
        return las


def _check_header(path: Path, packed: bool) -> int:
    """Check what the header declares against the bytes of the file; return the number of points.

    Raises:
        ValueError: no scan, or more points or records than the file holds.
    """
    size = path.stat().st_size
    with open(path, "rb") as file:
        head = file.read(375)
    if head[:4] != b"LASF" or len(head) < 227:
        raise refused(path, f"first bytes {head[:4]!r}", "b'LASF' and a header", "give a LAS file")
    minor = head[25]
    length, start, records = struct.unpack_from("<HII", head, 94)
    form, width, count = struct.unpack_from("<BHI", head, 104)
    extended = 0
    if minor >= 4:
        if len(head) < 375:
            raise refused(path, f"{len(head)} bytes", "a header of 375", "give a whole file")
        place, extended, count = struct.unpack_from("<QIQ", head, 235)
        if extended and place + extended * FEWEST[1] > size:
            raise refused(
                path, f"{extended} extended records from byte {place}", f"{size} bytes, all there are"
            )
    if length > start or start > size or length + records * FEWEST[0] > start:
        raise refused(path, f"{records} records in bytes {length} to {start}", f"up to {size} bytes")
    if not packed and (width < POINT or start + count * width > size):
        raise refused(
            path,
            f"{count} points of {width} bytes from byte {start} of format {form}, in {size} bytes",
            "as many as the file holds",
            "give a whole file",
        )
    checks.require_allocatable(f"{path}: {count} points", 3 * 8 * count, "give a part of the scan")
    return count
