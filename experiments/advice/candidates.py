"""Candidate memory orders of some items, and what it costs to make them."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from functools import partial
from typing import Any

import numpy as np
import scipy.sparse
from scipy.sparse.csgraph import reverse_cuthill_mckee

import sfc
from experiments.advice.uses import TRACE, Use
from experiments.results.baselines import SHUFFLED, again

GIVEN = "given"
AGAIN = again(GIVEN)  # timed twice
OF_POINTS = ("row", "hilbert", "morton", "str")
RCM, FIRST_TOUCH, FREQUENCY = "rcm", "first touch", "frequency"
NEVER_ADVISED = (GIVEN, AGAIN, SHUFFLED)


def orders_of(use: Use, seed: int, learnt: np.ndarray | None = None) -> Iterator[tuple[str, Any, float]]:
    """Make the candidate orders of a use.

    Args:
        use: its points, cells, matrix or trace decide which.
        seed: of the shuffled order.
        learnt: of a trace, the part from which orders are learnt; it should not be the one that is timed.

    Returns:
        Name, permutation (None for the order of the file) and time in s to make it (`Use.clock`), of each:
        given, shuffled, and at most six candidates. Orders of points are made where the code works, on a GPU
        twice, since the first time compiles; all others on the host.
    """
    yield GIVEN, None, 0.0
    yield SHUFFLED, np.random.default_rng(seed).permutation(use.items), 0.0
    makers: dict[str, Callable[[], np.ndarray]] = {}
    if use.kind == TRACE:
        seen = use.trace if learnt is None else learnt
        makers = {name: partial(make, seen, use.items) for name, make in OF_TRACES.items()}
    if use.points is not None:
        makers |= {name: partial(sfc.argsort, use.placed["points"], name) for name in OF_POINTS}
    if use.cells is not None or use.matrix is not None:
        makers[RCM] = partial(_narrow, graph_of(use))
    for name, make in makers.items():
        if name in OF_POINTS and use.backend is not None:
            make()
        began = use.clock()
        order: Any = make()
        taken = use.clock() - began
        yield name, order if isinstance(order, np.ndarray) else order.get(), taken


def graph_of(use: Use) -> Any:
    """Return the symmetric graph of the cells or the matrix of a use."""
    if use.matrix is not None:
        found = scipy.sparse.csr_array(use.matrix)
        pattern = scipy.sparse.csr_array(
            (np.ones(len(found.data), np.int8), found.indices, found.indptr), found.shape
        )
        return scipy.sparse.csr_matrix(pattern + pattern.T)
    first = np.repeat(use.cells[:, :1], use.cells.shape[1] - 1, axis=1).ravel()
    second = use.cells[:, 1:].ravel()
    ones = np.ones(len(first), np.int8)
    one = scipy.sparse.csr_matrix((ones, (first, second)), (use.items, use.items))
    return one + one.T


def _narrow(graph: Any) -> np.ndarray:
    """Return the order of Cuthill and McKee, reversed, of a symmetric graph."""
    return reverse_cuthill_mckee(graph, symmetric_mode=True).astype(np.int64)


def first_touch(trace: np.ndarray, items: int) -> np.ndarray:
    """Order items as a trace reads them first; those that it does not read follow.

    Args:
        trace: (m,) items.
        items: number of them.
    """
    when = np.full(items, len(trace), np.int64)
    np.minimum.at(when, trace, np.arange(len(trace)))
    return np.argsort(when, kind="stable")


def frequency(trace: np.ndarray, items: int) -> np.ndarray:
    """Order items as often as a trace reads them, the most frequent first.

    Args:
        trace: (m,) items.
        items: number of them.
    """
    return np.argsort(-np.bincount(trace, minlength=items), kind="stable")


OF_TRACES = {FIRST_TOUCH: first_touch, FREQUENCY: frequency}
