"""Airfoils: closed outlines in chord units, placed in a stream; NACA sections in closed form.

The chord is from the leading edge at x = 0 to the trailing edge at x = 1; the stream is along +x and y points
up. Outlines are counter-clockwise: from the trailing edge along the upper surface to the leading edge, and
back along the lower one.
"""

from __future__ import annotations

import math
import re
from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np

from md.boundaries.polygon import distances
from md.checks import array, flag, integer, number, numbers, refuse_value, set_fields, text

SAME = 1e-9  # distance in chords below which points are equal
STRAIGHT = 1e-12  # angle below which neighbouring segments are parallel
MIRRORED = 1e-6  # largest distance in chords of a symmetric outline from its mirror image
QUARTER_CHORD = np.array([0.25, 0.0])  # centre of the rotation of an airfoil
THICKNESS = (0.2969, -0.1260, -0.3516, 0.2843)  # of sqrt(x), x, x^2, x^3, for a section 0.2 thick
SHORTEST = 1e-9  # chord in d, so that the squares of segments are normal numbers of float32
LONGEST = 1e100  # chord, and positions of a wing and of points near it, in d, so that squares are finite
MOST_POINTS = 10_000  # of a surface: each segment is compared with all others
OPEN, CLOSED = -0.1015, -0.1036  # of x^4: as in the report, and for surfaces that are joined at x = 1


@dataclass(frozen=True, eq=False)
class Airfoil:
    """Section of a wing: a closed outline that does not cross itself.

    Args:
        name: of the section.
        outline: (m, 2) points in chords, 3 to 20000, the first not repeated at the end; x in about [0, 1].
            Stored as a read-only copy in float64, counter-clockwise: the first point stays first, the other
            points are reversed if necessary.

    Raises:
        TypeError: a name that is not a str, or an outline that is not an array.
        ValueError: another shape or dtype, a number that is not finite, consecutive points that are the same
            within 1e-9, or segments that cross, touch or lie on each other.
    """

    name: str
    outline: np.ndarray

    def __post_init__(self) -> None:
        set_fields(self, name=text("name of an airfoil", self.name))
        of, kinds = f"outline of {self.name!r}", ("fiu", "real numbers, in chords", ("m", 2))
        outline = np.array(array(of, self.outline, *kinds, finite=True, outside="in chords"), np.float64)
        if not 3 <= len(outline) <= 2 * MOST_POINTS:
            raise ValueError(
                f"{of} of shape {outline.shape}; allowed: (m, 2) with m of at least 3, up to "
                f"{2 * MOST_POINTS}"
            )
        steps = np.hypot(*(np.roll(outline, -1, axis=0) - outline).T)
        if steps.min() <= SAME:
            k = int(steps.argmin())
            raise ValueError(
                f"outline[{k}] and outline[{(k + 1) % len(outline)}] of {self.name!r} are both "
                f"{outline[k].tolist()}; allowed: consecutive points more than {SAME:g} chords apart; leave "
                "one out"
            )
        if (pair := crossing(outline)) is not None:
            raise ValueError(
                f"segments {pair[0]} and {pair[1]} of the outline of {self.name!r} cross or touch; allowed: "
                "an outline that does not cross or touch itself; put the points in order along it (segment k "
                "is from outline[k] to outline[k + 1])"
            )
        if _signed_area(outline) < 0:
            outline = np.roll(outline[::-1], 1, axis=0)
        outline.setflags(write=False)
        set_fields(self, outline=outline)

    def __repr__(self) -> str:
        return f"<Airfoil {self.name!r} of {len(self.outline)} points>"

    @property
    def area(self) -> float:
        """Area inside the outline, in chord^2."""
        return _signed_area(self.outline)

    @property
    def thickness(self) -> float:
        """Largest height of the upper surface over the lower one at the same x, in chords.

        Both are straight between points, so that the largest height is at the x of a point.
        """
        x = self.outline[:, 0]
        upper, lower = np.full(len(x), -np.inf), np.full(len(x), np.inf)
        for segment in zip(self.outline, np.roll(self.outline, -1, axis=0), strict=True):
            (left, y_left), (right, y_right) = sorted(segment, key=tuple)
            if left < right:  # the ends of a vertical segment belong to its neighbours
                within = (left <= x) & (x <= right)
                y = np.interp(x[within], (left, right), (y_left, y_right))
                upper[within], lower[within] = np.maximum(upper[within], y), np.minimum(lower[within], y)
        return float((upper - lower).max())

    @property
    def is_symmetric(self) -> bool:
        """Whether the outline equals its mirror image about y = 0 within 1e-6 chords.

        Compared are the points and the centres of segments, because segments may join equal points otherwise.
        """
        middle = (self.outline + np.roll(self.outline, -1, axis=0)) / 2
        mirrored = np.concatenate([self.outline, middle]) * (1, -1)
        return bool(np.abs(distances(self.outline, mirrored)).max() <= MIRRORED)

    def placed(self, chord: float, angle: float, at: Sequence[float]) -> np.ndarray:
        """Scale, rotate about the quarter-chord point (0.25, 0) and shift the outline, for a stream along +x.

        Args:
            chord: length from leading to trailing edge, in d, positive.
            angle: of attack, in degrees; for a positive angle the leading edge is up.
            at: (2,) position of the quarter-chord point, in d.

        Returns:
            (m, 2) float64 in d, counter-clockwise.

        Raises:
            TypeError: a value that is not a number.
            ValueError: a chord that is not positive, or a value that is not finite.
        """
        chord, angle, place = placement(chord, angle, at)
        cos, sin = math.cos(math.radians(angle)), math.sin(math.radians(angle))
        return chord * ((self.outline - QUARTER_CHORD) @ np.array([[cos, -sin], [sin, cos]])) + place


def placement(chord: float, angle: float, at: Sequence[float]) -> tuple[float, float, tuple[float, float]]:
    """Check chord, angle and position of an airfoil (`Airfoil.placed`), and return them as Python numbers."""
    chord = number("chord", chord, SHORTEST, LONGEST, unit="d")
    angle = number("angle", angle, unit="degrees")
    x, y = numbers("at", at, 2, low=-LONGEST, high=LONGEST, unit="d")
    return chord, angle, (x, y)


def naca(digits: str, points: int = 100, closed: bool = True) -> Airfoil:
    """Make a NACA section of four digits, in closed form, with points denser towards both edges.

    Args:
        digits: "2412" has a camber of 2 % of the chord at 4 tenths of the chord, and is 12 % thick; "0012" is
            symmetric.
        points: of each surface, 3 to 10000, both edges included; both surfaces share the leading edge.
        closed: whether the surfaces are joined at the trailing edge; in the report their distance there is
            2.1 % of the thickness.

    Returns:
        The section.

    Raises:
        TypeError: an argument of another class.
        ValueError: not four digits, no thickness, a camber without its position or a position without camber;
            too few points; or digits for which the outline crosses itself.

    Jacobs, Ward and Pinkerton, NACA report 460 (1933). Joined surfaces have another last coefficient, which
    is usual but not in the report. Points are at (1 - cos t) / 2 for equal steps of t.
    """
    if not re.fullmatch("[0-9]{4}", text("digits", digits, "write them as a str, such as '0012'")):
        raise refuse_value("digits", digits, "four digits, such as '0012' or '2412'")
    if digits[2:] == "00":
        raise ValueError(f"digits = {digits!r}: a section without thickness; allowed: last two of 01 .. 99")
    if (digits[0] == "0") != (digits[1] == "0"):
        raise ValueError(
            f"digits = {digits!r}: a camber of {digits[0]} % at {digits[1]} tenths of the chord; allowed: "
            "first two both 0 (symmetric) or both 1 .. 9"
        )
    points = integer("points", points, 3, MOST_POINTS, unit="points of each surface")
    closed = flag("closed", closed)
    x = (1 - np.cos(np.linspace(0, np.pi, points))) / 2
    a, b, c, d = THICKNESS
    last = CLOSED if closed else OPEN
    half = int(digits[2:]) / 100 / 0.2 * (a * np.sqrt(x) + b * x + c * x**2 + d * x**3 + last * x**4)
    camber, slope = _camber_line(x, int(digits[0]) / 100, int(digits[1]) / 10)
    across = np.stack([-np.sin(np.arctan(slope)), np.cos(np.arctan(slope))], axis=1) * half[:, None]
    middle = np.stack([x, camber], axis=1)
    outline = np.concatenate([(middle + across)[::-1], (middle - across)[1:]])
    return Airfoil(f"NACA {digits}", outline[:-1] if closed else outline)


def _camber_line(x: np.ndarray, most: float, place: float) -> tuple[np.ndarray, np.ndarray]:
    """Compute height and slope of the camber line: two parabolas joined at the highest point."""
    ahead = x < place
    steep = most / np.where(ahead, place, 1 - place) ** 2
    height = steep * (np.where(ahead, 0, 1 - 2 * place) + 2 * place * x - x**2)
    return height, 2 * steep * (place - x)


def _signed_area(outline: np.ndarray) -> float:
    """Compute the area inside by the shoelace formula, positive for a counter-clockwise outline."""
    x, y = (outline - outline[0]).T
    return float(np.sum(x * np.roll(y, -1) - np.roll(x, -1) * y) / 2)


def _cross(first: np.ndarray, second: np.ndarray) -> np.ndarray:
    """Compute the z component of the cross product of vectors, (..., 2) each."""
    return first[..., 0] * second[..., 1] - first[..., 1] * second[..., 0]


def crossing(outline: np.ndarray) -> tuple[int, int] | None:
    """Find two segments of a closed outline that cross or touch, apart from neighbours at their common point.

    Args:
        outline: (m, 2) points; segment k is from point k to the next, the last one to the first point.

    Returns:
        The numbers of both segments; None without such segments.
    """
    m, start, end = len(outline), outline, np.roll(outline, -1, axis=0)
    low, high, along = np.minimum(start, end), np.maximum(start, end), end - start
    following, length = np.roll(along, -1, axis=0), np.hypot(*along.T)
    parallel = np.abs(_cross(along, following)) <= STRAIGHT * length * np.roll(length, -1)
    back = parallel & ((along * following).sum(axis=1) < 0)
    if back.any():
        k = int(back.argmax())
        return k, (k + 1) % m
    for k in range(m - 2):
        others = slice(k + 2, m - (k == 0))  # without the neighbours
        near = ((low[others] <= high[k]) & (low[k] <= high[others])).all(axis=1)
        sides = [np.sign(_cross(along[k], ends[others] - start[k])) for ends in (start, end)]
        own = [np.sign(_cross(along[others], ends[k] - start[others])) for ends in (start, end)]
        meeting = near & (sides[0] * sides[1] <= 0) & (own[0] * own[1] <= 0)
        if meeting.any():
            return k, k + 2 + int(meeting.argmax())
    return None
