"""XYZ files, plain and extended: frames of atoms, in the extended form with a box and named properties.

https://github.com/libAtoms/extxyz
"""

from __future__ import annotations

import re
from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path

import numpy as np

from experiments.files.columns import with_positions
from experiments.files.data import Data, check_order, dimensions_of, frame_of, no_columns, refused
from experiments.files.opening import library, write_whole
from experiments.files.text_rows import columns_of, lines_of, number, whole_number

PAIR = re.compile(r"""(\w+)\s*=\s*(?:"([^"]*)"|'([^']*)'|(\S+))""")
PLAIN = "species:S:1:pos:R:3"
VELOCITIES = ("velo", "vel", "velocities", "velocity")
TRUTHS = {"t": True, "true": True, "1": True, "f": False, "false": False, "0": False}


@dataclass(frozen=True, eq=False)
class Frame:
    """A frame of an XYZ file.

    Attributes:
        place: of its line with the number of atoms.
        count: number of atoms.
        keys: of the comment, in small letters -> value.
    """

    place: int
    count: int
    keys: dict[str, str]

    @property
    def rows(self) -> slice:
        """Places of the lines of the atoms."""
        return slice(self.place + 2, self.place + 2 + self.count)


def read_xyz(path: Path, columns: Sequence[str], frame: int) -> Data:
    """Read a frame of an XYZ file, and the positions of the frame before.

    Raises:
        FileError: as `read` of this package; a tilted box, or another number of atoms than stated.
    """
    no_columns(path, columns)
    with library(path, "an XYZ file"):
        lines = lines_of(path)
        frames = _frames(path, lines)
        index = frame_of(path, frame, len(frames))
        last, said = frames[index], list[str]()
        table = _table(path, lines, last)
        points = _positions(path, table)
        box = _box(path, last, said)
        dim = dimensions_of(points, said)
        earlier, steps = None, None
        if index:
            earlier = _before(path, lines, frames[index - 1], last, table, said)
            steps = _steps(path, frames[index - 1], last, said)
        rest = {name: column for name, column in table.items() if name not in ("pos_x", "pos_y", "pos_z")}
        fields = {name: value[:dim] for name, value in box.items()}
        return with_positions(
            path,
            points[:, :dim],
            rest,
            said,
            kind="particles",
            earlier=None if earlier is None or steps is None else earlier[:, :dim],
            steps=None if earlier is None else steps,
            frame=index,
            **fields,
        )


def write_xyz(data: Data, order: np.ndarray, target: Path) -> Path:
    """Write all frames of an XYZ file with the lines of its atoms in another order.

    Raises:
        FileError: frames of different numbers of atoms.
    """
    with library(data.path, "an XYZ file"):
        lines = lines_of(data.path)
        order, written = check_order(order, data.n), list(lines)
        for k, one in enumerate(_frames(data.path, lines)):
            if one.count != data.n:
                raise refused(data.path, f"frame {k} of {one.count} atoms", f"{data.n} in all frames")
            rows = lines[one.rows]
            written[one.rows] = [rows[i] for i in order.tolist()]

    def write(partial: Path) -> None:
        partial.write_text("\n".join([*written, ""]), encoding="utf-8", newline="\n")

    return write_whole(target, write)


def _frames(path: Path, lines: list[str]) -> list[Frame]:
    """Find the frames.

    Raises:
        FileError: a frame that is cut short, or a line where a number of atoms should be.
    """
    frames, place = [], 0
    while place < len(lines):
        if not lines[place].strip():
            place += 1
            continue
        count = whole_number(path, place + 1, lines[place], "number of atoms", 1)
        if place + 2 + count > len(lines):
            there = max(0, len(lines) - place - 2)
            raise refused(path, f"line {place + 1} states {count} atoms, and {there} rows follow", "as many")
        found = PAIR.findall(lines[place + 1])
        frames.append(Frame(place, count, {name.lower(): "".join(words) for name, *words in found}))
        place += 2 + count
    if not frames:
        raise refused(path, "no frames", "at least one")
    return frames


def _table(path: Path, lines: list[str], frame: Frame) -> dict[str, np.ndarray]:
    """Return the columns of a frame; of properties of three columns `name_x`, ..., velocities `vel_x`, ....

    Raises:
        FileError: properties that cannot be read, or rows of another number of fields.
    """
    rows = lines[frame.rows]
    words = frame.keys.get("properties", PLAIN).split(":")
    if len(words) % 3:
        raise refused(path, f"line {frame.place + 2}: Properties of {len(words)} words", "name:type:columns")
    names: list[str] = []
    for name, count in zip(words[::3], words[2::3], strict=True):
        width = whole_number(path, frame.place + 2, count, f"columns of {name}", 1)
        if width > 100:
            raise refused(path, f"line {frame.place + 2}: {width} columns of {name}", "up to 100")
        stem = "vel" if name.lower() in VELOCITIES else name
        names += [name] if width == 1 else [f"{stem}_{'xyz'[k] if width == 3 else k}" for k in range(width)]
    if "properties" not in frame.keys:
        names += [f"column_{k}" for k in range(4, len(rows[0].split()))]
    return columns_of(path, names, rows, frame.place + 3)


def _positions(path: Path, table: dict[str, np.ndarray]) -> np.ndarray:
    """Return positions, (n, 3) float64.

    Raises:
        FileError: no property pos, or words among its numbers.
    """
    for name in ("pos_x", "pos_y", "pos_z"):
        if name not in table or table[name].dtype.kind not in "fiu":
            raise refused(path, f"column {name!r} absent, or with words", "three columns of numbers, pos:R:3")
    return np.column_stack([table[f"pos_{axis}"] for axis in "xyz"]).astype(np.float64)


def _box(path: Path, frame: Frame, said: list[str]) -> dict:
    """Return lengths, origin and periodic axes of a frame with a lattice; empty without one.

    Raises:
        FileError: a tilted box, or words among its numbers.
    """
    if "lattice" not in frame.keys:
        return {}
    line = frame.place + 2
    lattice = [number(path, line, word, "Lattice") for word in frame.keys["lattice"].split()]
    start = [number(path, line, word, "Origin") for word in frame.keys.get("origin", "0 0 0").split()]
    flags = [TRUTHS.get(word.lower()) for word in frame.keys.get("pbc", "T T T").split()]
    if len(lattice) != 9 or len(start) != 3 or len(flags) != 3 or None in flags:
        raise refused(path, f"line {line}: {frame.keys!r:.120}", "Lattice of 9 numbers, Origin and pbc of 3")
    matrix = np.array(lattice).reshape(3, 3)
    if (matrix != np.diag(np.diag(matrix))).any():
        raise refused(path, f"line {line}: a tilted box, {lattice}", "a box along the axes")
    if "pbc" not in frame.keys:
        said.append("all axes are periodic: the file does not say")
    return {"lengths": np.diag(matrix).copy(), "origin": np.array(start), "periodic": tuple(map(bool, flags))}


def _before(
    path: Path,
    lines: list[str],
    before: Frame,
    last: Frame,
    table: dict[str, np.ndarray],
    said: list[str],
) -> np.ndarray | None:
    """Return the positions of the frame before; None if the box or the ids have changed.

    Raises:
        FileError: another number of atoms.
    """
    if before.count != last.count:
        raise refused(
            path,
            f"frames of {before.count} and {last.count} atoms",
            "as many in both",
            "give frame 0, or a file with the same atoms in all frames",
        )
    other = _table(path, lines, before)
    same = all(
        np.array_equal(table[name], other.get(name, ())) for name in ("species", "id") if name in table
    )
    boxes = [
        {name: frame.keys.get(name) for name in ("lattice", "origin", "pbc")} for frame in (before, last)
    ]
    if not same or boxes[0] != boxes[1]:
        said.append("the frame before is not used: its box, or the order of its atoms, is another")
        return None
    return _positions(path, other)


def _steps(path: Path, before: Frame, last: Frame, said: list[str]) -> int | None:
    """Return the steps between two frames; None if the comments have no step.

    Raises:
        FileError: steps that do not increase.
    """
    steps = []
    for frame in (before, last):
        word = next((frame.keys[name] for name in ("step", "timestep") if name in frame.keys), None)
        if word is None:
            said.append("the frame before is not used: the comments have no step=")
            return None
        steps.append(whole_number(path, frame.place + 2, word, "step"))
    if steps[1] <= steps[0]:
        raise refused(path, f"step {steps[1]} after step {steps[0]}", "steps that increase")
    return steps[1] - steps[0]
