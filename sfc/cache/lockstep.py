"""Loads of warps from those of their threads, which are noted one thread after the other.

A compiled walk through a kernel, as one thread takes it, calls `note` for each load and store, with the place
in the program: a number that grows from one instruction to the next, and from one turn of a loop to the next.
Lanes that come to the same place take the instruction together; the others wait for them there.

Example: a kernel in which thread i adds up the numbers that are listed for it, as in a sparse matrix.

    >>> import sfc.cache
    >>> from sfc.cache import READ
    >>> from sfc.compile import kernel
    >>> @kernel
    ... def walk(threads, begin, listed, base, noted):
    ...     for k in range(len(threads)):
    ...         i = threads[k]
    ...         note(noted, 0, base[0] + 4 * i, READ, True)
    ...         note(noted, 1, base[0] + 4 * (i + 1), READ, False)
    ...         for turn in range(begin[i + 1] - begin[i]):
    ...             at = begin[i] + turn
    ...             note(noted, 2 * turn + 2, base[1] + 4 * at, READ, True)
    ...             note(noted, 2 * turn + 3, base[2] + 4 * listed[at], READ, True)
    ...         end(noted, k)
    >>> begin, listed = 3 * np.arange(65), np.random.default_rng(0).integers(0, 64, 192)
    >>> base = sfc.cache.starts_of([4 * 65, 4 * 192, 4 * 64])
    >>> stream = in_lockstep(walk, (begin, listed, base), items=64, block=64)
    >>> round(sfc.cache.warps(stream).read.mean, 2)
    2.16
"""

from __future__ import annotations

from collections.abc import Callable
from functools import partial
from typing import Any, NamedTuple

import numpy as np

from sfc import checks
from sfc.bitwise.bits import mixed
from sfc.cache.loads import LANES, Draw, LoadStream, WarpLoads
from sfc.compile import kernel

WAITS = 4  # added to the kind of a load for which the warp waits
EACH = 64  # loads of a thread for which there is room at first


class Noted(NamedTuple):
    """Loads and stores of threads, one thread after the other.

    Attributes:
        place: (m,) int64 places in the program, for `in_lockstep` ascending in each thread.
        address: (m,) int64, in bytes.
        kind: (m,) uint8: `READ`, `WRITTEN` or `ADDED`, and `WAITS` if the warp waits for the loads before.
        ends: (threads,) int64; number of loads noted up to the end of each thread.
        used: (1,) int64; number of loads, more than m if there was no room for all.
        drawn: (3,) uint64: shift, seed and mask of a `Draw`.
    """

    place: np.ndarray
    address: np.ndarray
    kind: np.ndarray
    ends: np.ndarray
    used: np.ndarray
    drawn: np.ndarray


@kernel
def note(noted, place, address, kind, waits):
    """Note a load or store of the present thread.

    Args:
        noted: `Noted`, as the walk received it.
        place: in the program; for `in_lockstep` of a thread each is larger than the one before.
        address: in bytes, of what lies within a sector.
        kind: `READ`, `WRITTEN` or `ADDED`.
        waits: whether the warp waits for all loads before; the same for all threads in this place.
    """
    if noted.drawn[2]:
        page = np.uint64(address) >> noted.drawn[0]
        if mixed(page + noted.drawn[1]) & noted.drawn[2]:
            return
    k = noted.used[0]
    if k < len(noted.place):
        noted.place[k], noted.address[k] = place, address
        noted.kind[k] = kind + WAITS if waits else kind
    noted.used[0] = k + 1


@kernel
def note_row(noted, place, address, parts, kind, waits):
    """Note a row of an array, in parts of 16 bytes, in as many places."""
    for part in range(parts):
        note(noted, place + part, address + 16 * part, kind, waits and part == 0)


@kernel
def end(noted, thread):
    """End a thread, given by its number among those that the walk received."""
    noted.ends[thread] = noted.used[0]


def in_lockstep(
    walk: Callable, given: tuple[Any, ...], items: int, block: int = 256, registers: int = 32, shared: int = 0
) -> LoadStream:
    """Make the stream of a kernel from a walk through it.

    Args:
        walk: compiled by `sfc.compile.kernel`: takes (t,) int64 numbers of threads, the arguments given, and
            `Noted`; for each thread in turn it calls `note` for each load and store, then `end`.
        given: arguments of the walk.
        items: number of threads that work.
        block: threads of a block.
        registers: of a thread.
        shared: bytes of shared memory of a block.

    Raises:
        TypeError: no function, or a number that is no integer.
        ValueError: a number out of range (`LoadStream`); when loads are asked for, a walk that does not end
            each thread.
    """
    checks.function("walk", walk, "a compiled function of threads, arguments and Noted")
    loads_of = partial(_loads_of, walk, given, items, {})
    return LoadStream(items, block, loads_of, registers, shared, loads_of)


def _loads_of(
    walk: Callable, given: tuple[Any, ...], items: int, most: dict[int, int], warps: np.ndarray,
    draw: Draw | None = None,
) -> WarpLoads:  # fmt: skip
    """Return the loads of some warps, or those of them to the pages that are drawn.

    `most` keeps the most loads of a thread, on average, that other warps had, for each mask of a draw: for so
    many there is room at first.
    """
    threads = (warps[:, None] * LANES + np.arange(LANES)).ravel()
    noted = noted_by(walk, given, threads[threads < items], most, draw)
    count = len(noted.address)
    found = WarpLoads(
        np.zeros(len(warps) + 1, np.int64), np.zeros(count + 1, np.int64), np.empty(count, np.int64),
        np.empty(count, bool), np.empty(count, np.uint8), np.empty(count, np.int64),
    )  # fmt: skip
    events = _merge(noted, found)
    of_events = {name: getattr(found, name)[:events] for name in ("waits", "kind", "place")}
    return found._replace(start=found.start[: events + 1], **of_events)


def noted_by(
    walk: Callable, given: tuple[Any, ...], threads: np.ndarray, most: dict[int, int] | None = None,
    draw: Draw | None = None,
) -> Noted:  # fmt: skip
    """Return the loads that a walk notes of some threads, or those of them to the pages that are drawn.

    Args:
        walk: as that of `in_lockstep`.
        given: its arguments.
        threads: (t,) int64 numbers, one or more.
        most: keeps the most loads of a thread, on average, that others had, for each mask of a draw: for so
            many there is room at first.
        draw: of pages; None for all.

    Raises:
        ValueError: a walk that does not end each thread.
    """
    if not len(threads):
        raise ValueError("no threads; allowed: one or more")
    most = {} if most is None else most
    words = np.array([0, 0, 0] if draw is None else draw, np.uint64)
    mask = int(words[2])
    room, used = 0, np.full(1, most.get(mask, EACH) * len(threads), np.int64)
    while used[0] > room:
        room = int(used[0])
        noted = Noted(
            np.empty(room, np.int64), np.empty(room, np.int64), np.empty(room, np.uint8),
            np.zeros(len(threads), np.int64), np.zeros(1, np.int64), words,
        )  # fmt: skip
        walk(threads, *given, noted)
        used = noted.used
    count = int(used[0])
    if (np.diff(noted.ends, prepend=0) < 0).any() or noted.ends[-1] != count:
        raise ValueError(
            f"a walk that noted {count} loads of {len(threads)} threads, and ended these at {noted.ends[:3]} "
            f".. {noted.ends[-1]}; allowed: end(noted, k) after the loads of thread k of those given"
        )
    most[mask] = max(most.get(mask, 8), -(-5 * count // (4 * len(threads))))
    return noted._replace(place=noted.place[:count], address=noted.address[:count], kind=noted.kind[:count])


@kernel
def _merge(noted, found):
    # Lanes take the least place to which any of them comes; `at` is the next load of each.
    events, lanes = 0, 0
    at, last = np.empty(LANES, np.int64), np.empty(LANES, np.int64)
    for warp in range(len(found.first) - 1):
        begin = warp * LANES
        here = min(LANES, len(noted.ends) - begin)
        for lane in range(here):
            before = begin + lane - 1
            at[lane] = noted.ends[before] if before >= 0 else 0
            last[lane] = noted.ends[before + 1]
        while True:
            place = np.int64(2**62)
            for lane in range(here):
                if at[lane] < last[lane]:
                    place = min(place, noted.place[at[lane]])
            if place == 2**62:
                break
            for lane in range(here):
                k = at[lane]
                if k < last[lane] and noted.place[k] == place:
                    found.address[lanes] = noted.address[k]
                    found.waits[events] = noted.kind[k] >= WAITS
                    found.kind[events] = noted.kind[k] & (WAITS - 1)
                    lanes += 1
                    at[lane] += 1
            found.place[events] = place
            events += 1
            found.start[events] = lanes
        found.first[warp + 1] = events
    return events
