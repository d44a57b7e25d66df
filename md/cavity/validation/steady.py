"""Run a cavity to its steady state, and tables of its error against published solutions."""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from typing import Any, NamedTuple

import numpy as np

from md import checks
from md.cavity.cavity import Cavity
from md.cavity.validation.centre_lines import Deviation, deviation, extremes
from md.cavity.validation.references import GHIA, HELD_TO
from md.errors import NotSteady

SETTLED = 1e-6
LONGEST = 400.0
REYNOLDS = (100, 400, 1000)
SIZES = (65, 129, 257)


class Error(NamedTuple):
    """Error of one extreme of a steady cavity.

    Attributes:
        grid: "collocated" or "staggered".
        reynolds: Reynolds number.
        points: points a side.
        quantity: "u_min", "v_max", "v_min" or "psi".
        value: of the cavity.
        reference: published value.
        source: citation of the published value.
        relative: (value - reference) / |reference|.
    """

    grid: str
    reynolds: int
    points: int
    quantity: str
    value: float
    reference: float
    source: str
    relative: float


def settle(cavity: Cavity, tolerance: float = SETTLED, longest: float = LONGEST) -> float:
    """Run a cavity until it is steady.

    Args:
        cavity: with a lid of speed 1 and side 1, which give the unit of time.
        tolerance: largest change of u and v in a unit of time, above 0.
        longest: time after which to give up, above 0.

    Returns:
        The last change of u and v in a unit of time.

    Raises:
        TypeError, ValueError: an argument out of range.
        NotSteady: the cavity still changes after `longest`.
        NonFiniteField: a field has become NaN or infinite.
    """
    tolerance = checks.number("tolerance", tolerance, above=0)
    longest = checks.number("longest", longest, above=0)
    dt = cavity.scheme.dt
    start, chunk = cavity.time, max(1, round(1 / dt))
    u, v = cavity.u, cavity.v
    while True:
        cavity.run(chunk)
        before, (u, v) = (u, v), (cavity.u, cavity.v)
        change = max(float(np.abs(u - before[0]).max()), float(np.abs(v - before[1]).max())) / (chunk * dt)
        if change <= tolerance:
            return change
        if cavity.time - start >= longest:
            raise NotSteady(change, tolerance, cavity.time)


def steady_cavity(
    grid: str, reynolds: float, points: int, *, tolerance: float = SETTLED, **options: Any
) -> Cavity:
    """Run a lid-driven cavity of side 1 from rest to its steady state, with the converged pressure.

    On the collocated grid the Laplacian of the pressure is not the divergence of its gradient: the first
    reaches to the next points, the second to those after them. A steady state there has a divergence that is
    not 0, and depends on dt. On the staggered grid it does not.

    Args:
        grid: "staggered", or "collocated" for the source's scheme, with p = 0 along the lid.
        reynolds: Reynolds number, above 0.
        points: a side.
        tolerance: see `settle`.
        options: more arguments of `md.Cavity`, such as `dt`.

    Returns:
        The cavity.

    Raises:
        TypeError, ValueError, NotSteady: see `settle` and `md.Cavity`.
    """
    strategy = "numpy" if grid == "collocated" else grid
    chosen = {"pressure": "converged", "strategy": strategy, "backend": "cpu"} | options
    viscosity = 1 / checks.number("reynolds", reynolds, above=0)
    cavity = Cavity((points, points), viscosity=viscosity, grid=grid, **chosen)
    settle(cavity, tolerance)
    return cavity


def errors_of(cavity: Cavity, reynolds: int) -> list[Error]:
    """Compare the extremes of a steady cavity with those of `HELD_TO`.

    Args:
        cavity: steady, square, of side 1 and with a lid of speed 1.
        reynolds: 100, 400 or 1000.
    """
    found, rows = extremes(cavity), []
    for quantity, held in HELD_TO[reynolds].items():
        target = held.extremes[quantity]
        relative = (found[quantity] - target) / abs(target)
        rows.append(
            Error(
                cavity.scheme.grid, reynolds, cavity.scheme.shape[0], quantity, found[quantity], target,
                held.source, relative,
            )
        )  # fmt: skip
    return rows


def error_table(
    grid: str, reynolds: Iterable[int] = REYNOLDS, sizes: Iterable[int] = SIZES, **options: Any
) -> Iterator[tuple[Cavity, list[Error], Deviation]]:
    """Run cavities to their steady states; compare extremes and centre lines with published solutions.

    Args:
        grid: "collocated" for the source's scheme with its p = 0 along the lid, or "staggered".
        reynolds: Reynolds numbers: 100, 400 or 1000.
        sizes: points a side.
        options: see `steady_cavity`.

    Yields:
        Steady cavity, errors of its extremes, and deviation of its centre lines from those of Ghia et al.
    """
    sizes = tuple(sizes)
    for number in reynolds:
        checks.word("Reynolds number", str(number), tuple(map(str, HELD_TO)))
        for points in sizes:
            cavity = steady_cavity(grid, number, points, **options)
            yield cavity, errors_of(cavity, number), deviation(cavity, GHIA[number])
