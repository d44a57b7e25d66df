"""Dumps of LAMMPS in text: frames of particles, positions plain, scaled or unwrapped.

https://docs.lammps.org/dump.html
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path

import numpy as np

from experiments.files.columns import with_positions
from experiments.files.data import Data, check_order, dimensions_of, frame_of, refused
from experiments.files.opening import library, write_whole
from experiments.files.text_rows import columns_of, distinct_ids, lines_of, number, whole_number

FORMS = {  # columns of positions -> whether they are scaled by the box, and whether they may be outside it
    "xyz": (("x", "y", "z"), False, False),
    "scaled": (("xs", "ys", "zs"), True, False),
    "unwrapped": (("xu", "yu", "zu"), False, True),
    "scaled and unwrapped": (("xsu", "ysu", "zsu"), True, True),
}
STRAY = 0.25  # of a length: particles leave a periodic box by less until LAMMPS wraps them again
TILTED = "a tilted box (xy xz yz)"


@dataclass(frozen=True, eq=False)
class Frame:
    """A frame of a dump.

    Attributes:
        step: of the simulation.
        lengths: (3,) of the box.
        origin: (3,) its lower corner.
        periodic: one flag an axis.
        table: columns by name.
        start: place of the first row in the lines of the file.
        count: number of rows.
    """

    step: int
    lengths: np.ndarray
    origin: np.ndarray
    periodic: tuple[bool, ...]
    table: dict[str, np.ndarray]
    start: int
    count: int


def read_dump(path: Path, columns: Sequence[str], frame: int) -> Data:
    """Read a frame of a dump, and the positions of the frame before for the same ids.

    Raises:
        FileError: as `read` of this package; a tilted box, or frames of different particles.
    """
    with library(path, "a dump of LAMMPS"):
        lines = lines_of(path)
        starts = _starts(path, lines)
        index = frame_of(path, frame, len(starts))
        last = _frame(path, lines, starts[index], [*starts, len(lines)][index + 1])
        before = _frame(path, lines, starts[index - 1], starts[index]) if index else None
        said: list[str] = []
        points = _positions(path, last, columns, said)
        dim = dimensions_of(points, said)
        earlier, steps = None, None
        if before is not None:
            earlier, steps = _before(path, last, before, columns, said)
        rest = {name: column for name, column in last.table.items() if name not in _used(last, columns)}
        return with_positions(
            path,
            points[:, :dim],
            rest,
            said,
            kind="particles",
            lengths=last.lengths[:dim],
            origin=last.origin[:dim],
            periodic=last.periodic[:dim],
            earlier=None if earlier is None else earlier[:, :dim],
            steps=steps,
            frame=index,
            choice=tuple(columns),
        )


def write_dump(data: Data, order: np.ndarray, target: Path) -> Path:
    """Write all frames of a dump with the lines of its particles in another order; ids stay theirs.

    Raises:
        FileError: frames of different particles, or several frames without ids.
    """
    with library(data.path, "a dump of LAMMPS"):
        lines = lines_of(data.path)
        starts = _starts(data.path, lines)
        order, written = check_order(order, data.n), list(lines)
        frames = [
            _frame(data.path, lines, start, end)
            for start, end in zip(starts, [*starts[1:], len(lines)], strict=True)
        ]
        for one in frames:
            rows = _matched(data.path, frames[data.frame], one)[order] if len(frames) > 1 else order
            written[one.start : one.start + one.count] = [lines[one.start + i] for i in rows.tolist()]

    def write(partial: Path) -> None:
        partial.write_text("\n".join([*written, ""]), encoding="utf-8", newline="\n")

    return write_whole(target, write)


def _starts(path: Path, lines: list[str]) -> list[int]:
    """Return the places of the first lines of frames.

    Raises:
        FileError: no dump.
    """
    starts = [k for k, line in enumerate(lines) if line.startswith("ITEM: TIMESTEP")]
    first = next((line for line in lines if line.strip() and not line.startswith("ITEM: UNITS")), "")
    begins = starts and (first.startswith("ITEM: TIMESTEP") or lines[0].startswith("ITEM: UNITS"))
    if not begins:
        raise refused(path, f"first line {(lines or [''])[0]!r:.60}", "ITEM: TIMESTEP", "give a text dump")
    return starts


def _frame(path: Path, lines: list[str], start: int, end: int) -> Frame:
    """Parse a frame.

    Args:
        path: of the file.
        lines: of the file.
        start: place of its first line.
        end: place after its last line.

    Raises:
        FileError: an item that is absent or damaged, a tilted box, or another number of rows than stated.
    """
    heads = {
        " ".join(words[1:3]) if words[1:2] in (["BOX"], ["NUMBER"]) else words[1]: k
        for k in range(start, end)
        if lines[k].startswith("ITEM:") and len(words := lines[k].split()) > 1
    }
    for item in ("TIMESTEP", "NUMBER OF", "BOX BOUNDS", "ATOMS"):
        if item not in heads or heads[item] + 1 >= end:
            raise refused(
                path, f"no ITEM: {item} after line {start + 1}", "whole frames", "remove that frame"
            )
    place = heads["TIMESTEP"] + 1
    step = whole_number(path, place + 1, lines[place], "step")
    place = heads["NUMBER OF"] + 1
    count = whole_number(path, place + 1, lines[place], "number of atoms")
    lengths, origin, periodic = _box(path, lines, heads["BOX BOUNDS"], end)
    first = heads["ATOMS"] + 1
    rows = lines[first : max([end, *(k for k in heads.values() if k > first)][0], first)]
    while rows and not rows[-1].strip():
        rows.pop()
    if len(rows) != count or not count:
        raise refused(
            path,
            f"line {place + 1} states {count} atoms, and {len(rows)} rows follow line {first}",
            "as many rows, at least 1",
            "remove the frame if it was cut short",
        )
    table = columns_of(path, lines[first - 1].split()[2:], rows, first + 1)
    return Frame(step, lengths, origin, periodic, table, first, count)


def _box(
    path: Path, lines: list[str], head: int, end: int
) -> tuple[np.ndarray, np.ndarray, tuple[bool, ...]]:
    """Parse the box of a frame: lengths, lower corner, periodic axes.

    Raises:
        FileError: a tilted box, or bounds that are no numbers.
    """
    flags = lines[head].split()[3:]
    if len(flags) > 3 or flags[:1] == ["abc"]:
        raise refused(path, f"line {head + 1}: {TILTED}", "a box along the axes", "convert it in LAMMPS")
    if flags and len(flags) != 3:
        raise refused(path, f"line {head + 1}: boundaries {flags}", "three, such as pp pp ff")
    bounds = []
    for k in range(head + 1, head + 4):
        words = lines[k].split() if k < end else []
        if len(words) != 2:
            raise refused(path, f"line {k + 1}: bounds {' '.join(words)!r:.60}", "two numbers, lo and hi")
        bounds.append([number(path, k + 1, word, "a bound") for word in words])
    low, high = np.array(bounds).T
    return high - low, low, tuple(flag == "pp" for flag in flags) if flags else (True,) * 3


def _form(path: Path, frame: Frame, columns: Sequence[str]) -> tuple[tuple[str, ...], bool, bool]:
    """Return the columns of positions, whether they are scaled, and whether they may be outside the box.

    Raises:
        FileError: there are none.
    """
    wanted = tuple(columns)
    for names, scaled, loose in FORMS.values():
        if (wanted == names or not wanted) and set(names) <= frame.table.keys():
            return names, scaled, loose
    known = ", ".join(" ".join(names) for names, _, _ in FORMS.values())
    raise refused(path, f"columns {' '.join(frame.table)!r:.80}", known, "dump one of these, and name it")


def _used(frame: Frame, columns: Sequence[str]) -> tuple[str, ...]:
    """Return the names of the columns that positions are taken from."""
    return _form(Path(), frame, columns)[0]


def _positions(path: Path, frame: Frame, columns: Sequence[str], said: list[str]) -> np.ndarray:
    """Return the positions of a frame in its box, (n, 3).

    Raises:
        FileError: words among numbers, or a position far outside the box.
    """
    names, scaled, loose = _form(path, frame, columns)
    for name in names:
        if frame.table[name].dtype.kind not in "fiu":
            raise refused(path, f"words in column {name!r} of step {frame.step}", "numbers")
    pos = np.column_stack([frame.table[name] for name in names]).astype(np.float64)
    if scaled:
        pos = frame.origin + pos * frame.lengths
        said.append(f"positions are {' '.join(names)} times the lengths of the box")
    return wrapped(path, pos, frame.origin, frame.lengths, frame.periodic, loose, said)


def wrapped(
    path: Path,
    pos: np.ndarray,
    origin: np.ndarray,
    lengths: np.ndarray,
    periodic: tuple[bool, ...],
    loose: bool,
    said: list[str],
) -> np.ndarray:
    """Wrap positions along the periodic axes of a box.

    Args:
        path: of the file.
        pos: (n, 3).
        origin: (3,) lower corner.
        lengths: (3,).
        periodic: one flag an axis.
        loose: whether positions may be any number of lengths outside, as unwrapped ones.
        said: sentences, to which one is added if positions were wrapped.

    Raises:
        FileError: a position farther outside than LAMMPS lets one be; axes without period are not looked at.
    """
    if not (np.isfinite(pos).all() and (lengths > 0).all()):
        return pos  # which is refused by the checks of all readers
    images = np.where(periodic, np.floor((pos - origin) / lengths), 0)
    moved = images.any(axis=1)
    if not moved.any():
        return pos
    away = np.where(periodic, np.maximum(origin - pos, pos - origin - lengths) / lengths, 0).max(axis=1)
    if not loose and away.max() > STRAY:
        i = int(away.argmax())
        raise refused(
            path,
            f"position {pos[i].tolist()} of row {i} is {away[i]:.3g} lengths outside the box",
            f"up to {STRAY:g}, by which particles leave it until they are wrapped",
            "dump x y z, or name the columns of unwrapped ones xu yu zu",
        )
    said.append(f"{int(moved.sum()):,} of {len(pos):,} positions were wrapped into the box")
    return np.where(periodic, pos - images * lengths, pos)


def _matched(path: Path, last: Frame, other: Frame) -> np.ndarray:
    """Return the rows of another frame that have the ids of a frame, in its order: (n,).

    Raises:
        FileError: no ids, or other particles.
    """
    if "id" not in last.table or "id" not in other.table:
        raise refused(path, "several frames without a column id", "ids", "dump id too, or one frame alone")
    ids, found = distinct_ids(path, last.table), distinct_ids(path, other.table)
    order = np.argsort(found)
    places = np.searchsorted(found[order], ids)
    if len(found) != len(ids) or (found[order][np.minimum(places, len(found) - 1)] != ids).any():
        raise refused(
            path,
            f"step {other.step} of {len(found)} particles, step {last.step} of {len(ids)}",
            "the same ids in both",
            "give frame 0, or a file with the same particles in all frames",
        )
    return order[places]


def _before(
    path: Path, last: Frame, before: Frame, columns: Sequence[str], said: list[str]
) -> tuple[np.ndarray | None, int | None]:
    """Return the positions of the frame before for the ids of the last, and the steps between; or None.

    Raises:
        FileError: other particles, or steps that do not increase.
    """
    if before.count != last.count:
        raise refused(
            path,
            f"step {before.step} of {before.count} particles, step {last.step} of {last.count}",
            "as many in both",
            "give frame 0, or a file with the same particles in all frames",
        )
    if "id" not in last.table:
        said.append("the frame before is not used: there are no ids")
        return None, None
    rows = _matched(path, last, before)
    if last.step <= before.step:
        raise refused(path, f"step {last.step} after step {before.step}", "steps that increase")
    if not (np.array_equal(before.lengths, last.lengths) and np.array_equal(before.origin, last.origin)):
        said.append("the frame before is not used: its box is another")
        return None, None
    return _positions(path, before, columns, [])[rows], last.step - before.step
