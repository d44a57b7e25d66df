"""Loads and stores of a kernel on a core of a CPU: item by item, in the order of the program."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from functools import partial
from typing import Any

import numpy as np

from sfc import checks
from sfc.cache.lockstep import noted_by


@dataclass(frozen=True)
class CoreStream:
    """Loads and stores of the items of a kernel, which a core works on one after the other.

    Attributes:
        items: number of items, at least 1.
        loads_of: takes the first item and the one behind the last, and returns what the core loads or stores
            for them, in this order: (m,) int64 addresses, in bytes, of what lies within a line; and (m,)
            int64 numbers of the instructions in the program, from 0 on.
        branches: whether the program branches on what it loads, as the end of a list. A core that has guessed
            wrong begins again, so that it waits for loads of few items at the same time.
        adds: number of the instruction, one of each item, that stores a sum of what the core loaded from the
            same address; one that has just been stored is waited for. None if there is no such instruction.

    Raises:
        TypeError: a number that is no integer, no function, or no flag.
        ValueError: no item, or a negative number of an instruction.
    """

    items: int
    loads_of: Callable[[int, int], tuple[np.ndarray, np.ndarray]]
    branches: bool = True
    adds: int | None = None

    def __post_init__(self) -> None:
        object.__setattr__(self, "items", checks.integer("items", self.items, 1))
        checks.function("loads_of", self.loads_of, "a function of two items that returns loads")
        object.__setattr__(self, "branches", checks.flag("branches", self.branches))
        if self.adds is not None:
            object.__setattr__(self, "adds", checks.integer("adds", self.adds, 0))


def one_by_one(
    walk: Callable, given: tuple[Any, ...], items: int, branches: bool = True, adds: int | None = None
) -> CoreStream:
    """Make the stream of a kernel from a walk through it.

    Args:
        walk: compiled by `sfc.compile.kernel`: takes (t,) int64 numbers of items, the arguments given, and
            `sfc.cache.lockstep.Noted`; for each item in turn it calls `sfc.cache.note` for each load and
            store, with the number of the instruction as its place, then `sfc.cache.end`.
        given: arguments of the walk.
        items: number of items.
        branches: as that of `CoreStream`.
        adds: as that of `CoreStream`.

    Raises:
        TypeError: no function, or a number that is no integer.
        ValueError: no item, or a negative number of an instruction; when loads are asked for, a walk that
            does not end each item.

    Example: lines of y[i] = x[element[i]] that are not in the first two caches of an EPYC, for each item.

        >>> from sfc.cache import READ, end, note, starts_of
        >>> from sfc.cache.core import Processor, lines
        >>> from sfc.compile import kernel
        >>> @kernel
        ... def walk(items, element, base, noted):
        ...     for k in range(len(items)):
        ...         i = items[k]
        ...         note(noted, 0, base[0] + 4 * i, READ, False)
        ...         note(noted, 1, base[1] + 8 * element[i], READ, True)
        ...         note(noted, 2, base[2] + 8 * i, READ, True)
        ...         end(noted, k)
        >>> n = 2**19
        >>> base = starts_of([4 * n, 8 * n, 8 * n])
        >>> for element in (np.arange(n), np.random.default_rng(0).permutation(n)):
        ...     found = lines(one_by_one(walk, (element, base), n, False), Processor.read("epyc_genoa"))
        ...     print(round(found.last.mean + found.memory.mean, 2))
        0.31
        1.0
    """
    checks.function("walk", walk, "a compiled function of items, arguments and Noted")
    return CoreStream(items, partial(_loads_of, walk, given, {}), branches, adds)


def _loads_of(
    walk: Callable, given: tuple[Any, ...], most: dict[int, int], first: int, last: int
) -> tuple[np.ndarray, np.ndarray]:
    """Return the loads that a walk notes for some items; `most` is that of `noted_by`."""
    noted = noted_by(walk, given, np.arange(first, last), most)
    return noted.address, noted.place
