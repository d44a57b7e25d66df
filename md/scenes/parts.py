"""Parts of a scene: each rank of several makes one, without the particles of the others."""

from collections.abc import Callable, Iterator

import numpy as np

from md.checks import integer

BLOCK = 2**20  # rows of random numbers that are drawn at once


def rows_of_part(part: tuple[int, int], n: int) -> range:
    """Return the particles of a part of a scene.

    Args:
        part: its number, from 0 on, and the number of parts.
        n: number of particles of the scene.

    Raises:
        TypeError: a number that is no integer.
        ValueError: more parts than particles, or no such part.
    """
    of = integer("number of parts", part[1], 1, n)
    number = integer("number of the part", part[0], 0, of - 1)
    return range(n * number // of, n * (number + 1) // of)


def ids_of(rows: range, n: int) -> np.ndarray | None:
    """Return the int32 ids of the particles of a part; None for all n, which are numbered anyway."""
    return None if len(rows) == n else np.arange(rows.start, rows.stop, dtype=np.int32)


def blocks_of(draw: Callable[[int], np.ndarray], n: int) -> Iterator[tuple[int, np.ndarray]]:
    """Draw n rows of random numbers, block by block.

    Args:
        draw: draws so many rows.
        n: number of rows.

    Yields:
        The number of the first row of a block, and its rows.
    """
    for begin in range(0, n, BLOCK):
        yield begin, draw(min(BLOCK, n - begin))


def part_of(rows: np.ndarray, begin: int, kept: range) -> np.ndarray:
    """Return those of some rows, of which the first has the number `begin`, that are in a range."""
    return rows[max(0, kept.start - begin) : max(0, kept.stop - begin)]


def drawn(draw: Callable[[int], np.ndarray], n: int, kept: range) -> np.ndarray:
    """Draw n rows of random numbers, block by block, and return some.

    Args:
        draw: draws so many rows.
        n: number of rows; all are drawn, so that what is drawn next does not depend on those that are kept.
        kept: rows that are returned.
    """
    found = [part_of(rows, begin, kept) for begin, rows in blocks_of(draw, n)]
    return np.concatenate(found)
