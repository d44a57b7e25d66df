"""Curves and orderings on a CUDA device: encode, decode and rank arrays of cupy.

cupy is imported at the first call.
"""

from typing import Any
from weakref import WeakKeyDictionary

import numpy as np

from sfc import checks
from sfc.automaton.device import decode, encode, require_cells, source
from sfc.orderings.ordering import Ordering

__all__ = ["decode", "encode", "rank", "source"]

TABLE_CELLS = 2**31  # of a box, in a table of ranks
_rank_tables: WeakKeyDictionary[Ordering, dict[int, Any]] = WeakKeyDictionary()


def rank(ordering: Ordering, cells: Any) -> Any:
    """Compute the rank of each cell of a box, on the device.

    A curve ranks by its tables, any other ordering by a table of all cells. The table (8 bytes per cell of
    the box, at most `TABLE_CELLS`) is made at the first call and stored on the device for the lifetime of the
    ordering.

    Args:
        ordering: of the box.
        cells: (n, dim) cupy integers of any dtype, 0 <= cell < shape.

    Returns:
        (n,) cupy uint64, as `Ordering.rank`.

    Raises:
        TypeError: no ordering, or cells that are no array of cupy.
        ValueError: as `Ordering.rank`, a check that synchronises with the device; a box too large for a
            table.
    """
    checks.instance("ordering", ordering, Ordering, "an sfc.Ordering", "make one with sfc.ordering")
    require_cells(cells, ordering.shape)
    import cupy

    outside = cupy.zeros(len(cells), bool)
    for axis, side in enumerate(ordering.shape):
        outside |= (cells[:, axis] < 0) | (cells[:, axis] >= side)
    if outside.any():
        bad = int(outside.argmax())
        raise ValueError(
            f"cell {cells[bad].tolist()} in row {bad} is outside the box; allowed: 0 <= cell < "
            f"{ordering.shape}"
        )
    if ordering.curve is not None:
        return encode(ordering.curve[0], cells, ordering.curve[1])
    if ordering.size > TABLE_CELLS:
        raise ValueError(
            f"a table of {ordering!r} takes {8 * ordering.size:,} bytes on the device; allowed: up to "
            f"{TABLE_CELLS} cells; take a curve, or rank on the host"
        )
    tables = _rank_tables.setdefault(ordering, {})
    device = cupy.cuda.runtime.getDevice()
    if device not in tables:
        tables[device] = cupy.asarray(ordering.ranks())
    number = cupy.zeros(len(cells), np.int64)
    for axis in reversed(range(ordering.dim)):
        number = number * ordering.shape[axis] + cells[:, axis].astype(np.int64)
    return tables[device][number]
