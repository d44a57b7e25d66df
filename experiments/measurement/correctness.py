"""The check before a time is taken: a result equals what another search, a sort or another code computes.

Every check ends in `check_error`, so that a wrong result is refused in one place, and none is ever timed.
"""

from __future__ import annotations

from itertools import permutations, product
from typing import Any

import numpy as np

import md
import sfc
from sfc import checks

TOLERANCE = {"float32": 2e-3, "float64": 1e-9}  # of the root mean square force, and of the temperature
TOLERANCE_OF_LARGEST = {"float32": 2e-4, "float64": 1e-10}  # of the largest force
TOLERANCE_OF_ORDER = {"float32": 1e-4, "float64": 0.0}  # in float32 a coordinate on a cell's face is rounded
TOLERANCE_OF_STATE = {"float32": 2e-4, "float64": 1e-9}  # of positions in d, and of the relative energy
# of velocities of boids, and of positions besides rounding
TOLERANCE_OF_FLIGHT = {"float32": 2e-5, "float64": 1e-9}
NEIGHBOURS_OF_FLIGHT = 65.0  # up to which that tolerance holds; sums of more round by more
SHARE_OF_FLIGHT = 1e-4  # of the boids, in float32: that have a pair at a radius
SAMPLE_OF_KEYS = 2**14  # rows, for which keys are computed a second time


class WrongResultError(ValueError):
    """A result that differs from its reference by more than rounding; no time of it is recorded."""


def check_error(what: str, error: float, limit: float, unit: str = "", remedy: str = "") -> float:
    """Return an error that is within its limit.

    Args:
        what: the quantity and its reference, for the message: "the forces differ from those of linked".
        error: 0 or above; NaN is refused.
        limit: largest error allowed.
        unit: of the error, for the message, with a leading space.
        remedy: for the message.

    Raises:
        WrongResultError: the error is larger.
    """
    if not error <= limit:
        ending = f". {remedy}" if remedy else ""
        raise WrongResultError(f"{what} by {error:.3g}{unit}; allowed: up to {limit:g}; not recorded{ending}")
    return error


def check_forces(simulation: md.Simulation, expected: np.ndarray, precision: str) -> float:
    """Compare the forces of a simulation with those of another search, over their root mean square.

    Args:
        simulation: the one to be timed.
        expected: (n, dim) forces in order of id that another search computed after as many steps.
        precision: "float32" or "float64".

    Returns:
        The largest difference of a component over the root mean square component.

    Raises:
        TypeError: an argument of a wrong class.
        WrongResultError: they differ by more than rounding.
        ValueError: forces of another shape, or another precision.
    """
    checks.instance("simulation", simulation, md.Simulation, "an md.Simulation")
    checks.word("precision", precision, TOLERANCE)
    return check_force_rows(simulation.forces(), expected, precision)


def require_forces(forces: np.ndarray, what: str) -> np.ndarray:
    """Return forces that others can be compared with: some sphere feels one.

    Args:
        forces: (n, dim).
        what: has them, for the message.

    Raises:
        WrongResultError: all are zero.
    """
    if not forces.any():
        raise WrongResultError(f"no forces of {what} to be compared; not recorded")
    return forces


def check_force_rows(found: np.ndarray, expected: np.ndarray, precision: str) -> float:
    """Compare forces with those of another search, over their root mean square.

    Args:
        found: (n, dim) forces.
        expected: (n, dim) those of the other search, of the same particles.
        precision: "float32" or "float64".

    Returns:
        As `check_forces`.

    Raises:
        WrongResultError: they differ by more than rounding, or are not numbers.
        ValueError: forces of another shape, or another precision.
    """
    limit = TOLERANCE[checks.word("precision", precision, TOLERANCE)]
    expected = checks.array("expected", expected, "fiu", "forces", found.shape)
    scale = float(np.sqrt(np.square(expected, dtype=np.float64).mean()))
    error = float(np.abs(found - expected).max()) / (scale or 1.0)
    what = f"the forces in {precision} differ from those of another search"
    remedy = "The search or the reorder is broken: see whether their pairs() are the same"
    return check_error(what, error, limit, " of their root mean square", remedy)


def check_forces_over_largest(
    name: str, simulation: md.Simulation, expected: np.ndarray, precision: str
) -> float:
    """Compare the forces of a simulation with those of another search, over the largest of them.

    Args:
        name: of the simulation, for the message.
        simulation: the one to be timed.
        expected: (n, dim) forces in order of id that another search computed in the same positions.
        precision: "float32" or "float64".

    Returns:
        The largest difference of a component over the largest component.

    Raises:
        WrongResultError: they differ by more than rounding.
        ValueError: another precision.
    """
    limit = TOLERANCE_OF_LARGEST[checks.word("precision", precision, TOLERANCE_OF_LARGEST)]
    error = float(np.abs(simulation.forces() - expected).max() / np.abs(expected).max())
    what = f"the forces of {name!r} in {precision} differ from those of the grid"
    return check_error(what, error, limit, " of the largest")


def check_temperature(name: str, found: float, expected: float, precision: str) -> float:
    """Compare a temperature with the one that another search arrives at.

    Args:
        name: of the memory order, for the message.
        found: temperature of the gas to be timed.
        expected: temperature that another search arrived at after as many steps.
        precision: "float32" or "float64".

    Returns:
        The relative difference.

    Raises:
        WrongResultError: they differ by more than rounding.
        ValueError: another precision.
    """
    limit = TOLERANCE[checks.word("precision", precision, TOLERANCE)]
    what = f"the temperature {found:g} in {precision} under ordering {name!r} differs from {expected:g}"
    return check_error(what, abs(found / expected - 1), limit)


def check_pairs(
    simulation: md.Simulation, search: str, reference: str, precision: str, allow_overlap: bool = False
) -> int:
    """Compare the touching pairs of a simulation with those that another search finds in the same positions.

    Args:
        simulation: the one to be timed.
        search: name of its search, for the message.
        reference: name of the other search.
        precision: "float32" or "float64".
        allow_overlap: whether spheres may overlap deeply in these positions.

    Returns:
        The number of touching pairs.

    Raises:
        WrongResultError: another set of pairs.
    """
    found = simulation.pairs()
    settings: dict[str, Any] = {"search": reference, "precision": precision, "allow_overlap": allow_overlap}
    settings |= {"dt": simulation.dt, "backend": simulation.backend}
    if not np.array_equal(found, md.Simulation(simulation.state, simulation.law, **settings).pairs()):
        raise WrongResultError(f"{search} finds other pairs than {reference}; not recorded")
    return len(found)


def check_states(
    name: str, found: md.State, expected: md.State, precision: str = "float64", reference: str = "ours"
) -> float:
    """Compare positions and kinetic energy with those of a simulation after the same steps.

    Args:
        name: of the other code or simulation and the number of steps, for the message.
        found: its state.
        expected: state of the simulation, with the same ids.
        precision: of both: "float32" or "float64". In float32 the rounding of a coordinate is allowed too.
        reference: that the positions and the energy are those of, for the message.

    Returns:
        The largest difference of a coordinate, in d.

    Raises:
        WrongResultError: positions differ by more than 1e-9 d (2e-4 d in float32), or energies by more than
            that part of the whole.
        ValueError: another precision.
    """
    limit = TOLERANCE_OF_STATE[checks.word("precision", precision, TOLERANCE_OF_STATE)]
    energy = md.observe.kinetic_energy(found.by_id()) / md.observe.kinetic_energy(expected.by_id()) - 1
    error = float(np.abs(_offset(found, expected)).max())
    rounding = 4 * _spacing(expected.box, precision) if precision == "float32" else 0.0
    check_error(f"positions of {name} differ from {reference}", error, limit + rounding, " d")
    check_error(f"the kinetic energy of {name} differs from {reference}", abs(energy), limit)
    return error


def _offset(found: md.State, expected: md.State) -> np.ndarray:
    """Return the vectors from positions to those expected, in order of id."""
    return expected.box.nearest(expected.by_id().pos - found.by_id().pos)


def _spacing(box: md.Box, precision: str) -> float:
    """Return the distance of two coordinates beside each other at the far end of a box."""
    return float(np.spacing(np.dtype(precision).type(max(box.lengths))))


def check_order(ordering: str, ranks: np.ndarray, precision: str) -> None:
    """Check that the ranks of reordered particles do not fall along the memory.

    Args:
        ordering: name of the ordering, for the message.
        ranks: (n,) rank of each particle's cell, computed by numpy, in the memory order that came out.
        precision: "float32" or "float64".

    Raises:
        WrongResultError: too many ranks are below the one before.
    """
    limit = TOLERANCE_OF_ORDER[checks.word("precision", precision, TOLERANCE_OF_ORDER)]
    what = f"the memory order under {ordering!r} differs from a sort of the cells' ranks"
    check_error(what, float((ranks[1:] < ranks[:-1]).mean()), limit, " of the particles")


def check_flight(
    name: str, found: md.State, expected: md.State, precision: str, neighbours: float = NEIGHBOURS_OF_FLIGHT
) -> float:
    """Compare a flock with the one that another search or code computes from the same start.

    In float32 two searches may round the distance of a pair at a radius differently, so that the pair counts
    for one of them only. A few boids may therefore differ: one, or one in ten thousand.

    Args:
        name: of the search and the number of steps, for the message.
        found: state of the search to be timed.
        expected: the other state, with the same ids.
        precision: "float32" or "float64".
        neighbours: mean number of a boid; above 65 the tolerance grows in proportion.

    Returns:
        The share of the boids that differ.

    Raises:
        WrongResultError: more boids differ in position or velocity by more than rounding.
        ValueError: another precision.
    """
    limit = TOLERANCE_OF_FLIGHT[checks.word("precision", precision, TOLERANCE_OF_FLIGHT)]
    limit *= max(1.0, neighbours / NEIGHBOURS_OF_FLIGHT)
    offset, turned = _offset(found, expected), np.abs(expected.by_id().vel - found.by_id().vel)
    rounding = 2 * _spacing(expected.box, precision)  # of a coordinate
    near = (np.abs(offset) <= limit + rounding) & (turned <= limit)  # false for NaN
    differ = int((~near.all(axis=1)).sum())
    allowed = max(1, int(SHARE_OF_FLIGHT * len(found))) if precision == "float32" else 0
    what = f"{name} in {precision} differs from the reference by more than {limit:.3g}"
    check_error(what, differ, allowed, f" of {len(found)} boids")
    return differ / len(found)


def check_keys(curve: sfc.Curve, order: int, cells: np.ndarray, keys: np.ndarray) -> None:
    """Compare keys of cells with those of a walk through the curve's automaton, level by level in numpy.

    Args:
        curve: the curve.
        order: of the curve.
        cells: (n, dim) integers, of which up to `SAMPLE_OF_KEYS` rows are compared, evenly spread.
        keys: (n,) integers, to be checked.

    Raises:
        TypeError: an argument of a wrong class.
        WrongResultError: a key differs.
        ValueError: arrays of another dtype or shape, or an order that the curve does not have.
    """
    checks.instance("curve", curve, sfc.Curve, "an sfc.Curve").side(order)
    cells = checks.array("cells", cells, "iu", checks.INTEGERS, ("n", curve.dim))
    keys = checks.array("keys", keys, "iu", checks.INTEGERS, (len(cells),))
    rows = _spread(len(cells))
    cells, base = cells[rows].astype(np.uint64), curve.base
    state, expected = np.full(len(rows), curve.start), np.zeros(len(rows), np.uint64)
    for level in reversed(range(order)):
        digits = cells // np.uint64(base**level) % np.uint64(base)
        cell = (digits.astype(np.int64) * base ** np.arange(curve.dim)).sum(axis=1)
        expected = expected * np.uint64(base**curve.dim) + curve.rank[state, cell]
        state = curve.next[state, cell]
    what = f"keys of {curve.name} in {curve.dim}D differ from a walk through its automaton"
    check_error(what, int((keys[rows].astype(np.uint64) != expected).sum()), 0, f" of {len(rows)} keys")


def check_decoded(name: str, cells: np.ndarray, decoded: np.ndarray) -> None:
    """Check that the cells of keys are those that were encoded.

    Args:
        name: of the curve or code, for the message.
        cells: (n, dim) integers that were encoded.
        decoded: (n, dim) integers, to be checked.

    Raises:
        WrongResultError: a cell differs.
        ValueError: arrays of another dtype or shape.
    """
    cells = checks.array("cells", cells, "iu", checks.INTEGERS, ("n", "dim"))
    decoded = checks.array("decoded", decoded, "iu", checks.INTEGERS, cells.shape)
    differ = 0 if np.array_equal(decoded, cells) else int((decoded != cells).any(axis=1).sum())
    check_error(f"cells that {name} decodes differ from those encoded", differ, 0, f" of {len(cells)} cells")


def check_same_curve(name: str, curve: sfc.AnyCurve, order: int, cells: np.ndarray, keys: np.ndarray) -> None:
    """Check that keys of another code are those of a curve, up to a symmetry of the cube.

    Args:
        name: of the code, for the message.
        curve: the curve.
        order: of the curve.
        cells: (n, dim) integers, of which up to `SAMPLE_OF_KEYS` rows are compared, evenly spread.
        keys: (n,) integers, to be checked.

    Raises:
        TypeError: an argument of a wrong class.
        WrongResultError: keys differ in every orientation of the curve.
        ValueError: arrays of another dtype or shape, or an order that the curve does not have.
    """
    last = checks.instance("curve", curve, sfc.AnyCurve, "an sfc.AnyCurve").side(order) - 1
    cells = checks.array("cells", cells, "iu", checks.INTEGERS, ("n", curve.dim))
    keys = checks.array("keys", keys, "iu", checks.INTEGERS, (len(cells),))
    rows = _spread(len(cells))
    cells, keys, least = cells[rows].astype(np.uint64), keys[rows].astype(np.uint64), len(rows)
    for axes, flipped in product(permutations(range(curve.dim)), product((False, True), repeat=curve.dim)):
        turned = np.where(flipped, np.uint64(last) - cells, cells)[:, axes]
        least = min(least, int((curve.encode(turned, order) != keys).sum()))
    what = f"keys of {name} differ from those of {curve.name} in {curve.dim}D in every orientation"
    check_error(what, least, 0, f" of {len(rows)} keys")


def _spread(n: int) -> np.ndarray:
    """Return up to `SAMPLE_OF_KEYS` rows from the first to the last of n."""
    return np.unique(np.linspace(0, n - 1, min(n, SAMPLE_OF_KEYS)).astype(np.int64))
