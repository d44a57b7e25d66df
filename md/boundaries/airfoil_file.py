"""Files of airfoil coordinates, in the forms of data bases, panel codes and spreadsheets.

The lines are sorted into title, points and text around the points; the points are put in order along the
outline. What may be read in two ways is refused.
"""

from __future__ import annotations

import re
import warnings
from dataclasses import dataclass, field
from itertools import groupby
from pathlib import Path

import numpy as np

from md.boundaries.airfoil import MOST_POINTS, SAME, Airfoil, crossing
from md.boundaries.airfoil_lines import Line, lines_of
from md.checks import path as as_path
from md.errors import SkippedText

NORMAL = 0.01  # largest error in chords of the chord of a file that is not normalised
JOINED = 1.5e-5  # distance in chords below which both ends are one point: one unit of the fifth decimal
SURFACE = 0.9  # least distance along x between the ends of a surface, in chords
BACK = 0.1  # largest sum of steps of a surface back towards the edge it comes from, in chords
THIN = 0.005  # least thickness in chords; that of the thinnest one of Selig's data base is 0.02
APART = 2.0  # largest distance along x between the ends of an outline, in longest steps between points
ALONE = 10  # points from which on a single one may not make up half of the length or height
SEPARATOR = (999.0, 999.0)  # between elements, in MSES
STATION = re.compile(r"(\S+)\s+\.{2,}")  # an x without a y
MARKS = "#!%;/* \t"  # of comments, ahead of a title
COLUMNS = frozenset("x y z x/c y/c z/c mm cm m in % i n no index # !".split())  # words of their headings
REMEDY = "; correct the line or leave it out"


@dataclass
class _Parts:
    """Lines of a file, by what they are.

    Attributes:
        points: lines of coordinates.
        counts: number of points of the first surface, and the line that has those of both; None without one.
        heading: number of points ahead of text between two surfaces, and the line; None without such text.
        name: the title; empty without one.
        skipped: lines that are not read, each with its text.
    """

    points: list[Line] = field(default_factory=list)
    counts: tuple[int, Line] | None = None
    heading: tuple[int, Line] | None = None
    name: str = ""
    skipped: list[tuple[Line, str]] = field(default_factory=list)


def read_airfoil(path: str | Path) -> Airfoil:
    """Read an airfoil from a file of coordinates x and y, x from leading to trailing edge.

    Orders: Selig's, once round the section from the trailing edge, in either direction, or from another
    point; and Lednicer's, one surface after the other, each in either direction, with or without a line of
    both numbers of points ahead. The forms of XFOIL are read, labelled, plain and of ISES (a second line of
    four numbers); of MSES with one element; tables of spreadsheets, with headings of columns.

    Lines: encodings are UTF-8, UTF-16 with a byte order mark, or else Windows-1252. Blanks, tabs, commas,
    semicolons or bars separate numbers, one kind in a line; decimal marks are points or commas; exponents are
    of e or d; numbers may be in brackets or quotes. Of three columns the one that is constant or counts the
    lines is skipped. Tags of HTML and blank lines are left out. The first line of text ahead of the points is
    the name, without marks of comments; without one the name is that of the file without its suffix. Other
    text is skipped ahead of the points, after them, between two surfaces, and from # or ! on after numbers;
    so is a line of an x and dots, if a line beside it has a point at that x.

    Units: if the leading or trailing edge is more than 1 % of the chord from x = 0 or x = 1, the outline is
    shifted along x and scaled so that both are there (percent, millimetres); otherwise it is as in the file.
    Then a point within 1e-9 chords of the one before it is dropped, and the last point if it is within 1.5e-5
    chords of the first one.

    Args:
        path: of the file.

    Returns:
        The airfoil.

    Raises:
        TypeError: a path of another class.
        ValueError: text between points of a surface, or a damaged line of numbers anywhere; other numbers of
            points than stated, fewer than 3 points; more elements or sections than one, only one surface,
            a surface that turns back along x, ends far apart, a single point far from all others, a section
            higher than long or thinner than 0.005 chords; or an outline for which `Airfoil` raises one. Names
            the file and, if known, the line.
        OSError: the file cannot be read.

    Warns:
        SkippedText: lines, ends of lines or a column were skipped; names the lines.

    M. Selig, UIUC airfoil coordinates database, https://m-selig.ae.illinois.edu/ads/coord_database.html;
    M. Drela and H. Youngren, XFOIL 6.9 user primer; M. Drela, A user's guide to MSES 3.05.
    """
    path = as_path("path", path)
    written = lines_of(path)
    parts = _sorted(path, written)
    points = _columns(parts)
    if (different := len(np.unique(points, axis=0))) < 3:
        raise written[-1].refused(f" ends the file after {different} different points; allowed: at least 3")
    _check_alone(parts.points, points)
    order = _order(parts, points[:, 0])
    points, lines = points[order], [parts.points[k] for k in order]
    _check_surfaces(lines, points[:, 0])
    least, most = points[:, 0].min(), points[:, 0].max()
    if max(abs(least), abs(most - 1)) > NORMAL:
        points = (points - (least, 0)) / (most - least)
    if (height := np.ptp(points[:, 1])) > 1:
        raise ValueError(
            f"{path}: the section is {height:.3g} chords high; allowed: up to 1; write x along the chord "
            "into the first column, and both columns in one unit"
        )
    kept = _different(points)
    airfoil = _airfoil(path, parts.name or path.stem, points[kept], [lines[k] for k in kept])
    if airfoil.thickness < THIN:
        raise ValueError(
            f"{path}: the section is {airfoil.thickness:.3g} chords thick; allowed: from {THIN:g}; write "
            "both columns in one unit, or create a thinner section by md.Airfoil"
        )
    if parts.skipped:
        warnings.warn(_report(path, written, parts, airfoil), SkippedText, stacklevel=2)
    return airfoil


def _sorted(path: Path, lines: list[Line]) -> _Parts:
    """Sort lines into title, points and text around them.

    Raises:
        ValueError: no points; damaged lines; text between points at more places than one; more elements than
            one; or other numbers of points than stated.
    """
    parts = _Parts()
    lines = _without_marks(lines, parts)
    rows = [k for k, line in enumerate(lines) if line.is_point]
    if not rows:
        last = lines[-1] if lines else Line(path, 1, "", ("",), None, "", ".")
        raise last.refused(
            " ends the file without a point; allowed: points, each a line of two finite numbers x and y"
        )
    head, body, foot = lines[: rows[0]], lines[rows[0] : rows[-1] + 1], lines[rows[-1] + 1 :]
    if _states_counts(body):
        parts.counts = int((body[0].numbers or (0,))[0]), body[0]
        ahead = next(k for k, line in enumerate(body) if k and line.is_point)
        head, body = head + body[1:ahead], body[ahead:]
    width = len(body[-1].numbers or ())
    for line in body:
        if line.is_point and len(line.words) == width:
            parts.points.append(line)
            if line.comment:
                parts.skipped.append((line, line.comment))
            continue
        elsewhere = parts.heading is not None and parts.heading[0] != len(parts.points)
        if line.is_damaged or elsewhere:
            raise line.refused(
                f" among the points; allowed there: {width} finite numbers a line, and a heading between two "
                f"surfaces{REMEDY}",
            )
        parts.heading = parts.heading or (len(parts.points), line)
        parts.skipped.append((line, line.text))
    if len(parts.points) > 2 * MOST_POINTS + 1:
        raise ValueError(f"{path} has {len(parts.points)} points; allowed: up to {2 * MOST_POINTS}")
    _read_title(head, parts)
    for line in foot:
        _check_text(line)
        parts.skipped.append((line, line.text))
    return parts


def _without_marks(lines: list[Line], parts: _Parts) -> list[Line]:
    """Leave out lines of an x and dots beside a point at that x, and a separator that ends the points.

    Files of NACA sections have such lines, files of MSES a separator of elements.

    Raises:
        ValueError: no line beside such a line has a point at its x; or points follow a separator.
    """
    kept = []
    for k, line in enumerate(lines):
        beside = [other.words[0] for other in lines[max(k - 1, 0) : k + 2] if other.is_point]
        if (station := STATION.fullmatch(line.text)) and station[1] not in beside:
            raise line.refused(f": a point without y; allowed: two finite numbers x and y{REMEDY}")
        separates = (line.numbers or ())[:2] == SEPARATOR
        if separates and any(other.is_point for other in lines[k + 1 :]):
            raise line.refused(
                " separates elements, as in MSES; allowed: one section; write each element into a file of "
                "its own"
            )
        if station or separates:
            parts.skipped.append((line, line.text))
        else:
            kept.append(line)
    return kept


def _states_counts(body: list[Line]) -> bool:
    """Return whether the first line has the numbers of points of both surfaces.

    Both are whole and above 1. A line that may be a point has them only if they fit: the points are as many,
    and each surface is from one edge to the other. In a file of three columns it cannot be a point.

    Raises:
        ValueError: other numbers of points than stated.
    """
    numbers, rest = body[0].numbers or (), [line for line in body[1:] if line.is_point]
    if len(numbers) != 2 or not rest or min(numbers) <= 1 or any(number % 1 for number in numbers):
        return False
    if len(body[-1].words) == 2:
        points = np.array([(line.numbers or ())[:2] for line in rest])
        split, x = int(numbers[0]), points[:, 0]
        if sum(numbers) == len(points):
            spans = np.abs((x[split - 1] - x[0], x[-1] - x[split]))
            if (spans >= SURFACE * np.ptp(x)).all():
                return True
        if ((points.min(axis=0) <= numbers) & (numbers <= points.max(axis=0))).all():
            return False
    gaps = np.flatnonzero(np.diff([line.row for line in rest]) > 1) + 1
    found = [int(gaps[0]), len(rest) - int(gaps[0])] if len(gaps) == 1 else [len(rest)]
    if found != (list(numbers) if len(gaps) == 1 else [sum(numbers)]):
        raise body[0].refused(
            f", but {' and '.join(map(str, found))} points follow; allowed: how many points the upper "
            "and the lower surface have; correct them, or write coordinates in chords if that is a point",
        )
    return True


def _check_text(line: Line) -> None:
    """Refuse a line around the points that may be a damaged point.

    Raises:
        ValueError: such a line.
    """
    if line.is_damaged:
        raise line.refused(
            ": a damaged line of numbers; allowed around the points: text; for points two finite "
            f"numbers x and y{REMEDY}",
        )


def _read_title(head: list[Line], parts: _Parts) -> None:
    """Find the name in the lines ahead of the points, and check the other ones.

    Raises:
        ValueError: a number of points that is not that of the file, or another damaged line.
    """
    most = max((line.numbers or (0.0,))[0] for line in parts.points)
    for k, line in enumerate(head):
        numbers = line.numbers or ()
        if len(numbers) == 1 and not numbers[0] % 1:
            if numbers[0] == len(parts.points):
                continue
            if k or numbers[0] <= most:
                raise line.refused(
                    f", but {len(parts.points)} points follow; allowed: the number of points, or a name in "
                    f"the first line that cannot be an x{REMEDY}",
                )
            parts.name = line.text
        elif len(numbers) == 4 and line is head[-1]:
            pass  # sides of a grid, in ISES
        else:
            _check_text(line)
            words = {word.casefold() for word in line.words}
            if words <= COLUMNS and len(words & {"x", "x/c"}) == 1 < len(words):
                pass  # headings of columns
            elif not parts.name and line.text.lstrip(MARKS):
                parts.name = line.text.lstrip(MARKS)
            else:
                parts.skipped.append((line, line.text))


def _columns(parts: _Parts) -> np.ndarray:
    """Return x and y of points, (n, 2), without a third column that is constant or counts the lines.

    Raises:
        ValueError: three columns, of which not just one is so.
    """
    values = np.array([line.numbers for line in parts.points])
    if values.shape[1] == 2:
        return values
    counting = np.isin(values[0], (0, 1)) & (np.diff(values, axis=0) == 1).all(axis=0)
    needless = np.flatnonzero(counting | (np.ptp(values, axis=0) == 0))
    if len(needless) != 1:
        raise parts.points[0].refused(
            f": three columns, of which {len(needless)} are constant or count the lines; allowed: two "
            "columns x and y, or one such column more; leave the others out",
        )
    parts.skipped += [(line, f"column {needless[0] + 1}") for line in parts.points]
    return np.delete(values, needless, axis=1)


def _check_alone(lines: list[Line], points: np.ndarray) -> None:
    """Refuse a single point that is farther from all others than they are apart, along x or y.

    Raises:
        ValueError: such a point.
    """
    if len(points) < ALONE:
        return
    for values in points.T:
        order = np.argsort(values)
        low, second, *_, before, high = values[order]
        for end, rest in ((order[-1], before - low), (order[0], high - second)):
            if rest < (high - low) / 2:
                raise lines[end].refused(
                    ": a point far from all others; allowed: an outline with points at both ends of its "
                    f"length and height{REMEDY}",
                )


def _order(parts: _Parts, x: np.ndarray) -> np.ndarray:
    """Put points in order along the outline.

    Args:
        parts: lines of the file.
        x: (n,) of its points.

    Returns:
        (n,) integers, the numbers of points in their order along the outline.

    Raises:
        ValueError: no chord; only one surface, or ends that are far apart; or text or counts at a place
            where no surface ends.
    """
    length, lines, run = np.ptp(x), parts.points, x[-1] - x[0]
    if not length:
        raise lines[-1].refused(": all points are at one x; allowed: an outline with a chord along x")
    split, place = parts.counts or (None, None)
    if parts.heading:
        split, place = parts.heading if split in (None, parts.heading[0]) else (0, parts.heading[1])
    if split is None and abs(run) < SURFACE * length:
        if abs(run) > APART * np.abs(np.diff(x)).max():
            raise lines[-1].refused(
                f" ends the outline {abs(run) / length:.3g} chords along x from its start at line "
                f"{lines[0].row}; allowed: up to {APART:g} times the longest step between two points; add "
                "the missing points, or repeat the first one",
            )
        return np.arange(len(x))
    if split is None:
        jumps = np.flatnonzero(-np.sign(run) * np.diff(x) >= SURFACE * length) + 1
        if len(jumps) != 1:
            raise lines[-1].refused(
                " ends the points at the other edge than they start from, after one surface; allowed: "
                "both surfaces; add the other one",
            )
        split = int(jumps[0])
    surfaces = []
    for surface in (np.arange(split), np.arange(split, len(x))):
        along = x[surface[-1]] - x[surface[0]] if len(surface) else 0.0
        if abs(along) < SURFACE * length:
            raise (place or lines[split]).refused(
                " does not divide the points into two surfaces, each from one edge to the other; allowed: "
                f"one section, with text only around it or between its surfaces{REMEDY}",
            )
        surfaces.append(surface[:: 1 if along > 0 else -1])
    return np.concatenate([surfaces[0][::-1], surfaces[1]])


def _check_surfaces(lines: list[Line], x: np.ndarray) -> None:
    """Refuse an outline of which a surface turns back along x by more than 0.1 chords in all.

    Raises:
        ValueError: such a surface, of which the line ahead of the longest step back is named.
    """
    ends = int(x.argmin()), int(x.argmax())
    for start, end in (ends, ends[::-1]):
        along = np.arange(start, start + (end - start) % len(x) + 1) % len(x)
        back = np.maximum(-np.diff(x[along]) * np.sign(x[end] - x[start]), 0)
        if back.sum() > BACK * np.ptp(x):
            raise lines[along[int(back.argmax())]].refused(
                f": from here on a surface turns back along x; allowed: by up to {BACK:g} chords in all; "
                "put the points in order along one section, and write each element into a file of its own",
            )


def _different(points: np.ndarray) -> list[int]:
    """Return the numbers of points of an outline without repeated ones."""
    kept = [0]
    for k in range(1, len(points)):
        if np.hypot(*(points[k] - points[kept[-1]])) > SAME:
            kept.append(k)
    while len(kept) > 1 and np.hypot(*(points[kept[-1]] - points[0])) <= JOINED:
        kept.pop()
    return kept


def _airfoil(path: Path, name: str, points: np.ndarray, lines: list[Line]) -> Airfoil:
    """Create the airfoil.

    Raises:
        ValueError: as `Airfoil`; names the file, and the lines of segments that cross.
    """
    try:
        return Airfoil(name, points)
    except ValueError as error:
        pair = crossing(points) if len(points) <= 2 * MOST_POINTS else None
        if pair is None:
            raise ValueError(f"{path}: {error}") from None
        one, other = (f"{lines[k].row} and {lines[(k + 1) % len(lines)].row}" for k in pair)
    raise ValueError(
        f"{path}: the outline of {name!r} crosses or touches itself: the segment between the points of lines "
        f"{one}, and that of lines {other}; allowed: an outline that does not; correct these lines, or put "
        "them in order along the outline"
    )


def _report(path: Path, written: list[Line], parts: _Parts, airfoil: Airfoil) -> str:
    """Describe what was skipped, neighbouring lines together."""
    place = {line.row: k for k, line in enumerate(written)}
    found = sorted(parts.skipped, key=lambda of: of[0].row)
    groups = []
    for _, run in groupby(enumerate(found), key=lambda of: place[of[1][0].row] - of[0]):
        texts = [of for _, of in run]
        (first, text), (last, _) = texts[0], texts[-1]
        rows = f"line {first.row}" if first is last else f"lines {first.row} to {last.row}"
        groups.append(f"{rows} ({text!r:.60}{', ...' if len(texts) > 1 else ''})")
    return (
        f"{path}: skipped: {'; '.join(groups)}; the outline of {airfoil.name!r} has {len(airfoil.outline)} "
        "points; check that none is missing, or leave the skipped text out"
    )
