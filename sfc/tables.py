"""The tables of an automaton: checked, and inverted."""

from typing import NamedTuple

import numpy as np

from sfc.points import is_integer, require_integers

MOST = 2**16  # states, and cells of a state: entries are uint16
MOST_BASE = 2**6  # for which the walk is compiled


class Tables(NamedTuple):
    """The tables of a curve, (states, base**dim) uint16 each, read-only.

    Attributes:
        rank: position along the curve of each cell digit.
        next: state inside the sub-cube of each cell digit.
        cell: cell digit of each position.
        succ: state inside the sub-cube at each position.
    """

    rank: np.ndarray
    next: np.ndarray
    cell: np.ndarray
    succ: np.ndarray


def tables(where: str, dim: int, base: int, rank, next, start: int) -> Tables:
    """The four tables of an automaton from the two that encode.

    Args:
        where: whose they are, to begin a message with.
        dim: dimensions.
        base: of a digit.
        rank: (states, base**dim) integers.
        next: (states, base**dim) integers.
        start: the state of the whole cube.

    Returns:
        The tables.

    Raises:
        ValueError: what is no automaton of base**dim cells, or one over `MOST` states or cells.
    """
    cells = _checked_cells(where, dim, base)
    rank, next = np.asarray(rank), np.asarray(next)
    if rank.ndim != 2 or rank.shape[1] != cells or rank.shape != next.shape:
        raise ValueError(
            f"{where}: tables of shape {rank.shape} and {next.shape}; allowed: both (states, {cells})"
        )
    states = len(rank)
    if not 1 <= states <= MOST:
        raise ValueError(
            f"{where}: {states} states; allowed: 1 to {MOST}; merge those that say the same, as "
            f"sfc.curve_from_grammar does"
        )
    for what, table in (("rank", rank), ("next", next)):
        require_integers(f"{where}: table `{what}`", table)
    for s in range(states):
        if not np.array_equal(np.sort(rank[s]), np.arange(cells)):
            raise ValueError(
                f"{where}: rank[{s}] = {rank[s].tolist()} does not visit every cell digit once; "
                f"allowed: a permutation of 0..{cells - 1}"
            )
    if not is_integer(start):
        raise ValueError(f"{where}: start {start!r}; allowed: an integer, the number of a state")
    for what, found in (("next", next), ("start", np.array(start))):
        if found.min() < 0 or found.max() >= states:
            wrong = int(found.min()) if found.min() < 0 else int(found.max())
            raise ValueError(
                f"{where}: {wrong} in `{what}`, a state outside 0..{states - 1}; allowed: the row numbers "
                f"of the tables"
            )
    rank = np.array(rank, np.uint16, order="C")
    next = np.array(next, np.uint16, order="C")
    cell = np.argsort(rank, axis=1).astype(np.uint16)
    made = Tables(rank, next, cell, np.take_along_axis(next, cell.astype(np.intp), axis=1))
    for table in made:
        table.setflags(write=False)
    return made


def _checked_cells(where: str, dim: int, base: int) -> int:
    """Cells of a state: base**dim."""
    if not is_integer(dim) or dim < 1:
        raise ValueError(f"{where}: dim {dim!r}; allowed: an integer of at least 1")
    if not is_integer(base) or not 2 <= base <= MOST_BASE:
        raise ValueError(
            f"{where}: base {base!r}; allowed: an integer from 2 to {MOST_BASE}; a larger one is several "
            f"levels of a smaller"
        )
    if dim > 16 or int(base) ** int(dim) > MOST:
        raise ValueError(
            f"{where}: base {base} in {dim}D; allowed: base**dim up to {MOST}; take a smaller base, and more "
            f"levels of it"
        )
    return int(base) ** int(dim)
