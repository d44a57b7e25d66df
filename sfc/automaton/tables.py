"""Tables of an automaton: checks, the inverse tables for decoding, states reached, and equivalent states."""

from collections.abc import Callable, Hashable, Iterable
from typing import Any, NamedTuple, TypeVar

import numpy as np
from numpy.typing import ArrayLike

from sfc import checks

MOST = 2**16  # states, and cells of a state: entries are uint16
MOST_BASE = 2**6  # for which the walk of `sfc.automaton.walk` is compiled
State = TypeVar("State", bound=Hashable)


class Tables(NamedTuple):
    """Tables of a curve, each (states, base**dim) uint16 and read-only.

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


def tables(where: str, dim: int, base: int, rank: ArrayLike, next: ArrayLike, start: int) -> Tables:
    """Check the two encoding tables of an automaton and compute the two decoding tables.

    Args:
        where: name of the curve, for error messages.
        dim: dimensions.
        base: of a digit.
        rank: (states, base**dim) integers.
        next: (states, base**dim) integers.
        start: the state of the whole cube.

    Returns:
        The tables.

    Raises:
        TypeError: a dim, base or start that is no integer, or tables that make no array.
        ValueError: tables that are no automaton of base**dim cells, or over `MOST` states or cells.
    """
    cells = cells_of_a_state(where, dim, base)
    remedy = "round whole numbers first, with np.rint(table).astype(np.int64)"
    rank = checks.array(f"{where}: table `rank`", rank, "iu", checks.INTEGERS, ("states", cells), remedy)
    states = len(rank)
    if not 1 <= states <= MOST:
        raise ValueError(
            f"{where}: {states} states; allowed: 1 to {MOST}; merge equivalent ones, as "
            f"sfc.curve_from_grammar does"
        )
    bounds: Any = {"low": 0, "high": states - 1, "outside": "entries are rows of the tables"}
    sides = states, cells
    next = checks.array(f"{where}: table `next`", next, "iu", checks.INTEGERS, sides, remedy, **bounds)
    for s in range(states):
        if not np.array_equal(np.sort(rank[s]), np.arange(cells)):
            raise ValueError(
                f"{where}: rank[{s}] = {rank[s].tolist()} does not visit every cell digit once; "
                f"allowed: a permutation of 0..{cells - 1}"
            )
    checks.integer(f"{where}: start", start, 0, states - 1, remedy="a state is a row of the tables")
    rank = np.array(rank, np.uint16, order="C")
    next = np.array(next, np.uint16, order="C")
    cell = np.argsort(rank, axis=1).astype(np.uint16)
    made = Tables(rank, next, cell, np.take_along_axis(next, cell.astype(np.intp), axis=1))
    for table in made:
        table.setflags(write=False)
    return made


def reached(start: State, after: Callable[[State], Iterable[State]]) -> list[State]:
    """List the states that follow from a start, directly or not, in the order in which they are found.

    Args:
        start: the first state.
        after: state -> the states that follow from it; repeated ones count once.
    """
    known = {start: None}
    states = [start]
    for state in states:  # grows during the loop
        new = [other for other in dict.fromkeys(after(state)) if other not in known]
        known.update(dict.fromkeys(new))
        states += new
    return states


def minimised(rank: np.ndarray, next: np.ndarray) -> tuple[np.ndarray, np.ndarray, np.ndarray]:
    """Merge equivalent states (Moore's partition refinement).

    Args:
        rank: (states, cells) position of each cell digit.
        next: (states, cells) state of each cell digit.

    Returns:
        rank, next of the merged states, and the merged state of each original one.
    """
    group = np.unique(rank, axis=0, return_inverse=True)[1].reshape(-1)
    while True:
        finer = np.unique(np.column_stack([group, group[next]]), axis=0, return_inverse=True)[1].reshape(-1)
        if finer.max() == group.max():
            break
        group = finer
    _, first = np.unique(group, return_index=True)
    by_appearance = np.argsort(np.argsort(first))
    group, first = by_appearance[group], np.sort(first)
    return rank[first], group[next[first]], group


def cells_of_a_state(where: str, dim: int, base: int) -> int:
    """Check a dim and base; return the cells of a state, base**dim.

    Args:
        where: name of the curve, for error messages.
        dim: dimensions.
        base: of a digit.

    Raises:
        TypeError: a dim or base that is no integer.
        ValueError: one out of range, or more than `MOST` cells.
    """
    dim = checks.integer(f"{where}: dim", dim)
    remedy = "a larger one is several levels of a smaller"
    base = checks.integer(f"{where}: base", base, 2, MOST_BASE, remedy=remedy)
    if dim > 16 or base**dim > MOST:
        raise ValueError(
            f"{where}: base {base} in {dim}D; allowed: base**dim up to {MOST}; take a smaller base, and more "
            f"levels of it"
        )
    return base**dim
