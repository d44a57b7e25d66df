"""Put the items of a data set into another order in memory, and results back into the order given."""

from __future__ import annotations

from dataclasses import replace
from pathlib import Path
from typing import Any, NamedTuple

import numpy as np
from scipy.sparse import csr_array
from scipy.sparse.csgraph import reverse_cuthill_mckee

import sfc
from experiments.advice.sets.data import SetData, arrays_in
from sfc import checks


class Order(NamedTuple):
    """Where items and cells lie in memory.

    Attributes:
        items: (n,) int64; the item at place k is the one that was at place items[k].
        cells: (c,) int64, of the cells in the same way; None to leave them where they are. In either case
            their corners are renumbered.
    """

    items: np.ndarray
    cells: np.ndarray | None = None

    def save(self, path: str | Path) -> None:
        """Write the order to a `.npz`, which `load` reads.

        Args:
            path: of the file, ending in `.npz`.

        Raises:
            OSError: the file cannot be written.
        """
        cells: dict[str, Any] = {} if self.cells is None else {"cells": self.cells}
        np.savez(checks.path("path", path), items=self.items, **cells)

    @classmethod
    def load(cls, path: str | Path) -> Order:
        """Read an order: a `.npz` with `items`, and with `cells` or not, or a `.npy` of the items alone.

        Args:
            path: of the file.

        Raises:
            OSError: the file cannot be read.
            ValueError: a file with other contents, or damaged.
        """
        found = arrays_in(path)
        if found.keys() == {""}:
            return cls(found[""])
        if not {"items"} <= found.keys() <= {"items", "cells"}:
            raise ValueError(f"{path} holds {', '.join(found)}; allowed: items, or items and cells")
        return cls(found["items"], found.get("cells"))


def check_order_of(data: SetData, order: Order | np.ndarray) -> Order:
    """Check that an order is one of a data set; return it with int64.

    Args:
        data: the data set.
        order: an `Order`, or (n,) integers for `items` alone.

    Raises:
        TypeError: no array of integers.
        ValueError: another length, or an array that does not hold each of 0 .. n - 1 once.
    """
    if not isinstance(order, Order):
        order = Order(order)
    items = _permutation("items", order.items, data.n)
    if order.cells is None:
        return Order(items)
    count = 0 if data.cells is None else len(data.cells)
    return Order(items, _permutation("cells", order.cells, count))


def _permutation(name: str, values: np.ndarray, n: int) -> np.ndarray:
    found = checks.array(name, values, "iu", checks.INTEGERS, (n,), low=0, high=n - 1).astype(np.int64)
    count = np.bincount(found, minlength=n)
    if (count != 1).any():
        missing = int((count == 0).argmax())
        raise ValueError(
            f"{name} is no permutation: {missing} is missing; allowed: each of 0 .. {n - 1} once"
        )
    return found


def put(data: SetData, order: Order | np.ndarray) -> SetData:
    """Copy a data set into an order: arrays of items are moved, and what refers to items is renumbered.

    Args:
        data: the data set.
        order: of its items, and perhaps of its cells.

    Returns:
        A data set of new arrays, also for the order given. Columns of a matrix ascend in each row.

    Raises:
        TypeError, ValueError: as `check_order_of`.
    """
    items, moved = check_order_of(data, order)
    place = np.empty_like(items)
    place[items] = np.arange(len(items))
    found = {
        name: getattr(data, name)[items]
        for name in ("values", "points", "radii")
        if getattr(data, name) is not None
    }
    if data.cells is not None:
        cells = data.cells if moved is None else data.cells[moved]
        found["cells"] = place[cells].astype(data.cells.dtype)
    if data.trace is not None:
        found["trace"] = place[data.trace]
    if data.matrix is not None:
        found["matrix"] = _renumbered(data.matrix, items, place)
    return replace(data, **found)


def _renumbered(matrix: csr_array, items: np.ndarray, place: np.ndarray) -> csr_array:
    """Return a matrix with rows and columns in another order, of int32 columns that ascend."""
    rows = matrix[items]
    columns = place[rows.indices].astype(matrix.indices.dtype)
    begin = rows.indptr.astype(matrix.indptr.dtype)
    found = csr_array((rows.data, columns, begin), shape=matrix.shape)
    found.has_sorted_indices = False
    found.sort_indices()
    return found


def undo(result: np.ndarray, order: Order) -> np.ndarray:
    """Return a result for each item in the order in which the items were given.

    Args:
        result: (n, ...) of the items in the order.
        order: that the items were put into.
    """
    found = np.empty_like(result)
    found[order.items] = result
    return found


def given(data: SetData) -> Order:
    """Return the order in which a data set is.

    Args:
        data: the data set.
    """
    return Order(np.arange(data.n))


def shuffled(data: SetData, seed: int) -> Order:
    """Return a random order of the items, and of the cells.

    Args:
        data: the data set.
        seed: of the order.
    """
    rng = np.random.default_rng(seed)
    items = rng.permutation(data.n)
    return Order(items, None if data.cells is None else rng.permutation(len(data.cells)))


def along(data: SetData, name: str = "hilbert") -> Order:
    """Return an order with locality; cells are sorted by the first of their corners in memory.

    Args:
        data: the data set.
        name: a curve or an order of points of `sfc`, for data with points; `first touch`, in which the trace
            reads the items, and then those that it never reads; or `cuthill-mckee`, the reverse order of
            Cuthill and McKee (1969), for a matrix.

    Raises:
        ValueError: data without what the order needs, or an unknown name.
    """
    if name == "first touch":
        items = _first_touch(data.required("trace", f"order {name!r}"), data.n)
    elif name == "cuthill-mckee":
        matrix = data.required("matrix", f"order {name!r}")
        items = reverse_cuthill_mckee(matrix, symmetric_mode=False).astype(np.int64)
    else:
        items = sfc.argsort(data.required("points", f"order {name!r}"), name)
    if data.cells is None:
        return Order(items)
    place = np.empty_like(items)
    place[items] = np.arange(len(items))
    return Order(items, np.argsort(place[data.cells].min(axis=1), kind="stable"))


def _first_touch(trace: np.ndarray, n: int) -> np.ndarray:
    items, first = np.unique(trace, return_index=True)
    touched = items[np.argsort(first)]
    is_left = np.ones(n, bool)
    is_left[touched] = False
    return np.concatenate([touched, np.flatnonzero(is_left)])
