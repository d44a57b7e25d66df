"""Data files of LAMMPS: a box, atoms of a known style, velocities and bonds.

https://docs.lammps.org/read_data.html
"""

from __future__ import annotations

import re
from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path

import numpy as np

from experiments.files.columns import with_positions
from experiments.files.data import Data, check_order, dimensions_of, no_columns, no_frames, ranks, refused
from experiments.files.lammps_dump import TILTED, wrapped
from experiments.files.opening import library, write_whole
from experiments.files.text_rows import columns_of, distinct_ids, lines_of, number, whole_number

STYLES = {  # columns of a line of Atoms, without the three images that may follow
    "atomic": "id type x y z",
    "charge": "id type q x y z",
    "bond": "id molecule type x y z",
    "angle": "id molecule type x y z",
    "molecular": "id molecule type x y z",
    "full": "id molecule type q x y z",
    "sphere": "id type diameter density x y z",
    "bpm/sphere": "id molecule type diameter density x y z",
    "dipole": "id type q x y z mux muy muz",
}
IMAGES = ["ix", "iy", "iz"]
GROUPS = {"Bonds": ("edges", 2, "bonds"), "Angles": ("angles", 3, "angles"),
          "Dihedrals": ("dihedrals", 4, "dihedrals"), "Impropers": ("impropers", 4, "impropers")}  # fmt: skip
SECTION = re.compile(r"[A-Z][A-Za-z]*(?: ?[A-Z][A-Za-z]*| Coeffs)*")
BOUNDS = ("xlo xhi", "ylo yhi", "zlo zhi")


@dataclass(frozen=True, eq=False)
class Content:
    """Lines of a data file, by section.

    Attributes:
        lines: all, as written.
        counts: "atoms", "bonds", ... -> number stated in the header.
        bounds: "xlo xhi", ... -> two numbers.
        rows: section -> places of its lines.
        style: of the atoms, as written behind `Atoms #`; empty without one.
    """

    lines: list[str]
    counts: dict[str, int]
    bounds: dict[str, tuple[float, float]]
    rows: dict[str, list[int]]
    style: str


def read_data(path: Path, columns: Sequence[str], frame: int) -> Data:
    """Read particles, velocities and bonds of a data file.

    Raises:
        FileError: as `read` of this package; a tilted box, an unknown style of atoms, or other numbers of
            lines than the header states.
    """
    no_columns(path, columns)
    no_frames(path, frame)
    with library(path, "a data file of LAMMPS"):
        content = _content(path)
        said: list[str] = []
        table = _atoms(path, content, said)
        ids = distinct_ids(path, table)
        for name in "xyz":
            if table[name].dtype.kind not in "fiu":
                raise refused(path, f"words in column {name!r} of Atoms", "numbers")
        low, high = np.array([content.bounds[axis] for axis in BOUNDS]).T
        periodic = (True,) * 3
        said.append("all axes are periodic: a data file does not say")
        pos = np.column_stack([table.pop(name) for name in "xyz"]).astype(np.float64)
        pos = wrapped(path, pos, low, high - low, periodic, False, said)
        moving = _velocities(path, content, ids)
        dim = dimensions_of(pos, said)
        return with_positions(
            path,
            pos[:, :dim],
            moving | table,
            said,
            kind="particles",
            lengths=(high - low)[:dim],
            origin=low[:dim],
            periodic=periodic[:dim],
            cells=_cells(path, content, ids),
        )


def write_data(data: Data, order: np.ndarray, target: Path) -> Path:
    """Write a data file with the lines of atoms and velocities in another order, and bonds by first atom.

    Ids stay those of their atoms, so bonds name the same atoms.
    """
    with library(data.path, "a data file of LAMMPS"):
        content = _content(data.path)
        ids = distinct_ids(data.path, _atoms(data.path, content, []))
        order, lines = check_order(order, len(ids)), list(content.lines)
        rank = ranks(order)
        for section, places in content.rows.items():
            if section == "Atoms":
                rows = order
            elif section == "Velocities":
                found = _ids(data.path, content, section)
                rows = _places(data.path, section, ids[order], found)
            elif section in GROUPS:
                cells = _cells(data.path, content, ids)[GROUPS[section][0]]
                rows = np.argsort(rank[cells].min(axis=1), kind="stable")
            else:
                continue
            for place, row in zip(places, rows.tolist(), strict=True):
                lines[place] = content.lines[places[row]]

    def write(partial: Path) -> None:
        partial.write_text("\n".join([*lines, ""]), encoding="utf-8", newline="\n")

    return write_whole(target, write)


def _content(path: Path) -> Content:
    """Sort the lines of a data file into header and sections.

    Raises:
        FileError: a header without atoms or bounds, a tilted box, or a line that is neither.
    """
    lines = lines_of(path)
    counts: dict[str, int] = {}
    bounds: dict[str, tuple[float, float]] = {}
    rows: dict[str, list[int]] = {}
    section, style = "", ""
    for k, line in enumerate(lines[1:], 1):  # the first line is a comment
        text = line.partition("#")[0].strip()
        if not text:
            continue
        if SECTION.fullmatch(text):
            section = text
            if section in rows:
                raise refused(path, f"line {k + 1}: section {section} twice", "each once")
            rows[section] = []
            style = line.partition("#")[2].strip() if section == "Atoms" else style
        elif section:
            rows[section].append(k)
        else:
            _read_header(path, k + 1, text, counts, bounds)
    missing = [name for name in BOUNDS if name not in bounds]
    if "atoms" not in counts or missing or "Atoms" not in rows:
        lacks = ", ".join([*(["atoms"] if "atoms" not in counts else []), *missing] or ["section Atoms"])
        raise refused(path, f"no {lacks}", "a data file of LAMMPS", "write it by write_data")
    for section, count in {
        "Atoms": "atoms",
        "Velocities": "atoms",
        **{s: g[2] for s, g in GROUPS.items()},
    }.items():
        stated = counts.get(count, 0)
        if stated != len(rows.get(section, ())) and (section in rows or (stated and section != "Velocities")):
            there = len(rows.get(section, ()))
            raise refused(path, f"the header states {stated} {count}, {section} has {there} lines", "as many")
    return Content(lines, counts, bounds, rows, style)


def _read_header(
    path: Path, line: int, text: str, counts: dict[str, int], bounds: dict[str, tuple[float, float]]
) -> None:
    """Read a line of the header into counts or bounds; other known ones are left.

    Raises:
        FileError: a tilted box, or a line that is no header.
    """
    words = text.split()
    name = " ".join(words[2:])
    if name in BOUNDS:
        low, high = (number(path, line, word, name) for word in words[:2])
        bounds[name] = low, high
    elif words[-3:] == ["xy", "xz", "yz"] or words[-1] in ("avec", "bvec", "cvec"):
        if words[-3:] != ["xy", "xz", "yz"] or any(number(path, line, word, "a tilt") for word in words[:-3]):
            raise refused(path, f"line {line}: {TILTED}", "a box along the axes", "convert it in LAMMPS")
    elif len(words) >= 2 and re.fullmatch(r"[a-z ]+", " ".join(words[1:])):
        counts[" ".join(words[1:])] = whole_number(path, line, words[0], " ".join(words[1:]))
    elif words[-3:] != ["per", "atom"] and words[-1:] != ["abc"]:
        raise refused(path, f"line {line}: {text!r:.60}", "a count, bounds, or a section")


def _atoms(path: Path, content: Content, said: list[str]) -> dict[str, np.ndarray]:
    """Return the columns of the atoms.

    Raises:
        FileError: an unknown style, or none where it is not plain, or rows of another number of fields.
    """
    places = content.rows["Atoms"]
    if not places:
        raise refused(path, "no atoms", "at least one")
    rows = [content.lines[k].partition("#")[0] for k in places]
    fields = len(rows[0].split())
    style = content.style.split()[0] if content.style else ""
    if not style and fields in (5, 8):
        style = "atomic"
        said.append("the style of the atoms is atomic: 5 fields, or 8, and no style behind Atoms")
    if style not in STYLES:
        raise refused(
            path,
            f"atoms of style {style!r}, {fields} fields",
            ", ".join(STYLES),
            "write it behind the section: Atoms # sphere",
        )
    names = STYLES[style].split()
    names += IMAGES if fields == len(names) + 3 else []
    return columns_of(path, names, rows, places[0] + 1)


def _ids(path: Path, content: Content, section: str) -> np.ndarray:
    """Return the ids of the lines of a section, (m,) int64.

    Raises:
        FileError: no integers.
    """
    words = [(k, content.lines[k].split()[0]) for k in content.rows[section]]
    return np.array([whole_number(path, k + 1, word, "id", 1) for k, word in words], np.int64)


def _places(path: Path, section: str, ids: np.ndarray, found: np.ndarray) -> np.ndarray:
    """Return the places of ids among those of a section, without ids that it lacks.

    Raises:
        FileError: an id that no atom has, or one twice.
    """
    if not np.isin(found, ids).all() or len(np.unique(found)) < len(found):
        raise refused(path, f"ids of {section} that no atom has, or one twice", "those of Atoms")
    place = {one: k for k, one in enumerate(found.tolist())}
    return np.array([place[one] for one in ids.tolist() if one in place], np.int64)


def _velocities(path: Path, content: Content, ids: np.ndarray) -> dict[str, np.ndarray]:
    """Return the columns vx, vy, vz in the order of the atoms; none without the section.

    Raises:
        FileError: other ids than those of the atoms, or words among numbers.
    """
    places = content.rows.get("Velocities")
    if not places:
        return {}
    rows = [content.lines[k].partition("#")[0] for k in places]
    more = [f"turn_{axis}" for axis in "xyz"] if len(rows[0].split()) == 7 else []
    table = columns_of(path, ["id", "vx", "vy", "vz", *more], rows, places[0] + 1)
    rows_of = _places(path, "Velocities", ids, distinct_ids(path, table))
    return {name: column[rows_of] for name, column in table.items() if name != "id"}


def _cells(path: Path, content: Content, ids: np.ndarray) -> dict[str, np.ndarray]:
    """Return bonds, angles, ... as places of atoms.

    Raises:
        FileError: an id that no atom has, or another number of fields.
    """
    found = {}
    order = np.argsort(ids)
    for section, (name, size, _) in GROUPS.items():
        if not (places := content.rows.get(section)):
            continue
        words = ["number", "type", *(str(k) for k in range(size))]
        rows = [content.lines[k].partition("#")[0] for k in places]
        table = columns_of(path, words, rows, places[0] + 1)
        named = np.column_stack([table[word] for word in words[2:]])
        if named.dtype.kind not in "iu":
            raise refused(path, f"{section} of {named.dtype}", "ids of atoms")
        at = np.minimum(np.searchsorted(ids, named, sorter=order), len(ids) - 1)
        if (wrong := ids[order[at]] != named).any():
            raise refused(path, f"{section} name id {named[wrong][0]}", "ids of Atoms")
        found[name] = order[at].astype(np.int64)
    return found
