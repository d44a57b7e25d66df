"""Curves from patterns: conversion of a geometric definition to the tables of an automaton.

Contract. A pattern lists the sub-cubes of a cube in visiting order, each with the copy of a pattern that
fills it. A line "01 beta yX~" says: the sub-cube at (0, 1) holds a copy of the pattern `beta`; letter k is
the axis of the pattern that lies along axis k of the cube (x, y, z, w are axes 0, 1, 2, 3), upper case if
mirrored; with ~ the copy is traversed backwards. A state of the automaton is a placement of a pattern that
follows from the start; equivalent ones are merged.

The notation follows the signed permutations of Haverkort, J. Comput. Geom. 8 (2017) 206.
"""

from collections.abc import Mapping, Sequence
from typing import NamedTuple

import numpy as np

from sfc.automaton.curve import Curve
from sfc.automaton.tables import minimised

AXES = "xyzw"


class Placement(NamedTuple):
    """A copy of a pattern in a cube.

    Attributes:
        pattern: its name.
        axes: the axis of the pattern along each axis of the cube.
        mirrored: 1 for each axis of the cube along which the pattern is mirrored, else 0.
        backwards: whether it is traversed from its end.
    """

    pattern: str
    axes: tuple[int, ...]
    mirrored: tuple[int, ...]
    backwards: bool

    def cell(self, cell: tuple[int, ...], base: int) -> tuple[int, ...]:
        """Return the (dim,) numbers in the cube of a sub-cube of the pattern; numbers are below `base`."""
        flipped = zip(self.axes, self.mirrored, strict=True)
        return tuple(base - 1 - cell[axis] if mirrored else cell[axis] for axis, mirrored in flipped)

    def inner(self, copy: "Placement") -> "Placement":
        """Return the placement in the cube of a copy that is placed in the pattern."""
        flipped = zip(self.axes, self.mirrored, strict=True)
        return Placement(
            copy.pattern,
            tuple(copy.axes[axis] for axis in self.axes),
            tuple(copy.mirrored[axis] ^ mirrored for axis, mirrored in flipped),
            self.backwards ^ copy.backwards,
        )


def curve_from_patterns(
    name: str, dim: int, base: int, patterns: Mapping[str, Sequence[str]], start: str
) -> Curve:
    """Convert patterns to the tables of an automaton.

    Args:
        name: of the curve.
        dim: dimensions, up to 4.
        base: sub-cubes along each axis of a pattern, up to 10.
        patterns: name -> the base**dim lines of the pattern, in visiting order.
        start: the placement in the whole cube, a line without a cell: "beta yX~".

    Returns:
        The curve; state 0 is the start.

    Raises:
        ValueError: a line of another form, an unknown pattern, or one that does not visit every cell once.
    """
    parts = {key: [_part(name, dim, base, patterns, line) for line in patterns[key]] for key in patterns}
    states, rows = [_placement(name, dim, patterns, start)], []
    for placed in states:  # grows during the loop
        inner = [(placed.cell(cell, base), placed.inner(copy)) for cell, copy in parts[placed.pattern]]
        rows.append(inner[::-1] if placed.backwards else inner)
        states += dict.fromkeys(copy for _, copy in rows[-1] if copy not in states)
    number = {state: k for k, state in enumerate(states)}
    rank = np.full((len(states), base**dim), base**dim)  # no rank: refused if a cell is not visited
    next = np.zeros_like(rank)
    for state, row in enumerate(rows):
        for position, (cell, copy) in enumerate(row):
            digit = sum(digit * base**axis for axis, digit in enumerate(cell))
            rank[state, digit], next[state, digit] = position, number[copy]
    rank, next, _ = minimised(rank, next)
    return Curve(name, dim, base, rank, next)


def _part(
    name: str, dim: int, base: int, patterns: Mapping[str, Sequence[str]], line: str
) -> tuple[tuple[int, ...], Placement]:
    cell, _, copy = line.partition(" ")
    if len(cell) != dim or not all(digit.isdecimal() and int(digit) < base for digit in cell):
        raise ValueError(f"{name}: cell of {line!r}; allowed: {dim} digits from 0 to {base - 1}")
    return tuple(map(int, cell)), _placement(name, dim, patterns, copy)


def _placement(name: str, dim: int, patterns: Mapping[str, Sequence[str]], text: str) -> Placement:
    pattern, _, letters = text.rstrip("~").partition(" ")
    if pattern not in patterns or sorted(letters.lower()) != sorted(AXES[:dim]):
        allowed = f"one of {', '.join(patterns)}, and each of {', '.join(AXES[:dim])} once"
        raise ValueError(f"{name}: placement {text!r}; allowed: {allowed}, with ~ if backwards")
    axes = tuple(AXES.index(letter) for letter in letters.lower())
    return Placement(pattern, axes, tuple(int(letter.isupper()) for letter in letters), text.endswith("~"))
