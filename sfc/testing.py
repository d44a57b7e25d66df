"""Checks that every curve and every ordering must pass; for the tests of this package and of users."""

import numpy as np

from sfc import checks
from sfc.any_curve import AnyCurve
from sfc.automaton.curve import Curve
from sfc.orderings.ordering import Ordering

JUMPS = "a step is not one cell although the tables are continuous"
NOT_UNDONE = "encode does not undo decode"


def check_curve(
    curve: AnyCurve,
    cells: int = 2**17,
    samples: int = 2**10,
    seed: int = 0,
    *,
    continuous: bool | None = None,
    closed: bool | None = None,
) -> None:
    """Check a curve exhaustively at small orders and by sampling up to the largest that fits 64 bits.

    A curve of any tables visits every cell once. Pass `continuous` and `closed` too, so that a wrong
    successor is detected.

    Args:
        curve: the curve.
        cells: orders with up to this many cells are checked cell by cell (order 1 of a curve with
            tables always is).
        samples: random indices checked at each larger order.
        seed: of the sampling.
        continuous: whether every step must be one cell; None to take the value of its tables.
        closed: whether its end must be adjacent to its start; None to take the value of its tables.

    Raises:
        AssertionError: a property that does not hold; the message names it and the order.
        TypeError: an argument of another class.
        ValueError: negative numbers of cells or samples, a negative seed, or more cells than fit in memory.
    """
    checks.instance("curve", curve, AnyCurve, "an sfc.AnyCurve", "make one with sfc.curve or sfc.Curve(...)")
    cells, samples = checks.integer("cells", cells, 0), checks.integer("samples", samples, 0)
    seed = checks.integer("seed", seed, 0)
    promises = {"continuous": continuous, "closed": closed}
    for name, promise in promises.items():
        if promise is not None:
            checks.flag(name, promise, "or None")
    checks.require_allocatable(f"{samples} samples", 8 * (curve.dim + 1) * samples, "take fewer")
    where = f"{curve.name} in {curve.dim}D"
    for name, promise in promises.items():
        found = getattr(curve, f"is_{name}")
        _require(promise in (None, found), where, f"{'' if found else 'not '}{name} by its tables")
    if isinstance(curve, Curve):
        _check_tables(curve)
    generator = np.random.default_rng(seed)
    for order in range(1, curve.max_order + 1):
        where = f"{curve.name} in {curve.dim}D, order {order}"
        length = curve.base ** (curve.dim * order)
        if length <= cells or (order == 1 and isinstance(curve, Curve)):
            _check_all(curve, order, where)
        else:
            index = generator.integers(0, length - 1, samples, dtype=np.uint64, endpoint=True)
            index = np.append(index, np.array([0, length - 1], np.uint64))
            path = curve.decode(index, order)
            _require(np.array_equal(curve.encode(path, order), index), where, NOT_UNDONE)
            side = curve.base**order
            _require(((path >= 0) & (path < side)).all(), where, "decode leaves the grid")
            if curve.is_continuous:
                before = np.minimum(index, length - 2)
                step = curve.decode(before + np.uint64(1), order) - curve.decode(before, order)
                _require((np.abs(step).sum(axis=1) == 1).all(), where, JUMPS)


def _check_tables(curve: Curve) -> None:
    """Check that the two pairs of tables agree: a device encodes with one pair, the host with the other."""
    where = f"{curve.name} in {curve.dim}D"
    cell = curve.cell.astype(np.intp)
    digits = np.broadcast_to(np.arange(curve.base**curve.dim), cell.shape)
    found = np.take_along_axis(curve.rank, np.minimum(cell, digits.shape[1] - 1), axis=1)
    _require(np.array_equal(found, digits), where, "table `cell` is not the inverse of `rank`")
    found = np.take_along_axis(curve.next, np.minimum(cell, digits.shape[1] - 1), axis=1)
    _require(np.array_equal(found, curve.succ), where, "table `succ` is not `next` in order of position")


def _check_all(curve: AnyCurve, order: int, where: str) -> None:
    path = curve.traversal(order)
    side, length = curve.base**order, curve.base ** (curve.dim * order)
    _require(((path >= 0) & (path < side)).all(), where, "the traversal leaves the grid")
    visits = np.bincount(path @ side ** np.arange(curve.dim), minlength=length)
    _require((visits == 1).all(), where, "the traversal does not visit every cell once")
    _require(np.array_equal(curve.encode(path, order), np.arange(length)), where, NOT_UNDONE)
    if curve.is_continuous:
        _require((np.abs(np.diff(path, axis=0)).sum(axis=1) == 1).all(), where, JUMPS)
    if curve.is_closed:
        is_met = np.abs(path[0] - path[-1]).sum() == 1
        _require(is_met, where, "the ends do not meet although the tables are closed")
    if order > 1 and curve.refines:
        refines = np.array_equal(path[:: curve.base**curve.dim] // curve.base, curve.traversal(order - 1))
        _require(refines, where, "it does not refine the order below")


def check_ordering(ordering: Ordering) -> None:
    """Check that an ordering ranks every cell of its box once and that its views of the order agree.

    Args:
        ordering: of a box small enough to list.

    Raises:
        AssertionError: a property that does not hold; the message names it.
        TypeError: an object that is no ordering.
        ValueError: more cells than fit in memory.
    """
    checks.instance("ordering", ordering, Ordering, "an sfc.Ordering", "make one with sfc.ordering")
    where = repr(ordering)
    path = ordering.traversal()
    _require(path.shape == (ordering.size, ordering.dim), where, f"a traversal of shape {path.shape}")
    _require(((path >= 0) & (path < np.array(ordering.shape))).all(), where, "the traversal leaves the box")
    number = np.ravel_multi_index(tuple(path.T), ordering.shape, order="F")
    visits = np.bincount(number, minlength=ordering.size)
    _require((visits == 1).all(), where, "a cell is missed or visited twice")
    rank = ordering.rank(path)
    _require((rank[1:] > rank[:-1]).all(), where, "the rank does not increase along the traversal")
    is_dense = np.array_equal(ordering.dense_ranks()[number], np.arange(ordering.size))
    _require(is_dense, where, "dense ranks disagree")


def _require(holds: object, where: str, what: str) -> None:
    if not holds:
        raise AssertionError(f"{where}: {what}")
