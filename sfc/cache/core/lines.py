"""Lines that a core loads from each level of its memory: those in no order, and those in sequence."""

from __future__ import annotations

from typing import NamedTuple

import numpy as np

from sfc import checks
from sfc.cache.core.loads import CoreStream
from sfc.cache.core.processor import LEVELS, Processor
from sfc.compile import kernel

PART = 2**14  # items that have their loads in memory at the same time
SEQUENCES = 32  # of lines that a core follows at the same time
INSTRUCTIONS = 64  # of which it follows the lines; numbers that are equal modulo 64 are one instruction
FLEETING = 2**62  # subtracted from a time: before the times of other lines
NEVER = -(2**63)
STRIDE = 2  # lines between two of a sequence, at most


class LevelLines(NamedTuple):
    """Lines that a level of memory serves, for each item.

    Attributes:
        random: in no order.
        sequence: lines of a sequence, which the core asks for before it needs them.
    """

    random: float
    sequence: float

    @property
    def mean(self) -> float:
        """All lines."""
        return self.random + self.sequence


class CoreLines(NamedTuple):
    """What a core loads for each item of a kernel.

    Attributes:
        loads: loads and stores.
        second, last, memory: lines that the second cache, the last one and memory serve.
    """

    loads: float
    second: LevelLines
    last: LevelLines
    memory: LevelLines


def lines(stream: CoreStream, processor: Processor, passes: int = 2) -> CoreLines:
    """Follow the loads of a kernel through the caches of a core.

    Each cache replaces the line of a set that was used least recently, and a line is in all caches from which
    it was not replaced. A line belongs to a sequence if it is next, in their direction, to the last two lines
    that its instruction missed in the first cache, or to one of `SEQUENCES` others. The last cache replaces
    lines of sequences first. Stores load their line; that lines which were written go back to memory is not
    counted. Threads have shares of the items and of the last cache.

    Args:
        stream: loads and stores of the kernel.
        processor: the CPU.
        passes: how often the kernel runs; the last time is counted, with what the others left in the caches.

    Raises:
        TypeError: no stream, no processor, or a number that is no integer; loads that are no arrays.
        ValueError: no pass, or fewer items than threads; loads that are no two arrays of as many integers, or
            negative addresses.

    Least recently used: Mattson, Gecsei, Slutz and Traiger (1970), doi:10.1147/sj.92.0078.
    """
    checks.instance("stream", stream, CoreStream, "an sfc.cache.core.CoreStream", "make one_by_one")
    checks.instance("processor", processor, Processor, "an sfc.cache.core.Processor", "Processor.read(path)")
    passes = checks.integer("passes", passes, 1)
    if stream.items < processor.threads:
        raise ValueError(
            f"{stream.items} items; allowed: one or more for each of {processor.threads} threads"
        )
    items = -(-stream.items // processor.threads)  # of the first thread: all do the same
    state = []
    for level in LEVELS:
        shape = processor.sets(level), getattr(processor, f"{level}_ways")
        state += [np.full(shape, -1, np.int64), np.full(shape, NEVER, np.int64)]
    state += [np.full(SEQUENCES, -9, np.int64), np.zeros(SEQUENCES, np.int64), np.zeros(SEQUENCES, np.int64)]
    state += [np.full(INSTRUCTIONS, -9, np.int64), np.zeros(INSTRUCTIONS, np.int64)]
    shift, clock = processor.line.bit_length() - 1, np.zeros(1, np.int64)
    counts = np.zeros(7, np.int64)
    for _ in range(passes):
        counts[:] = 0
        for first in range(0, items, PART):
            loads = _checked(stream.loads_of(first, min(first + PART, items)))
            _follow(*loads, shift, clock, counts, tuple(state))
    each = counts / items
    levels = (LevelLines(float(each[k]), float(each[k + 1])) for k in (1, 3, 5))
    return CoreLines(float(each[0]), *levels)


def _checked(loads: tuple[np.ndarray, np.ndarray]) -> tuple[np.ndarray, np.ndarray]:
    """Check the loads of some items: addresses, and numbers of instructions."""
    if not isinstance(loads, tuple) or len(loads) != 2:
        raise TypeError(f"loads_of returned {checks.shown(loads)}; allowed: addresses and instructions")
    names = ("addresses", "instructions")
    found = [
        checks.array(f"{name} of loads_of", one, "iu", checks.INTEGERS, ("n",), low=0).astype(
            np.int64, copy=False
        )
        for name, one in zip(names, loads, strict=True)
    ]
    if len(found[0]) != len(found[1]):
        raise ValueError(f"{len(found[0])} addresses and {len(found[1])} instructions; allowed: as many")
    return found[0], found[1]


@kernel
def _find(line, tags, used, now):
    # Returns whether a cache has a line, which it has from now on.
    chosen, oldest = line % len(tags), 0
    for way in range(tags.shape[1]):
        if tags[chosen, way] == line:
            used[chosen, way] = now
            return True
        if used[chosen, way] < used[chosen, oldest]:
            oldest = way
    tags[chosen, oldest], used[chosen, oldest] = line, now
    return False


@kernel
def _goes_on(line, last, direction, used, now):
    # Returns whether a line belongs to one of some sequences; if to none, it takes the place of the oldest.
    oldest = 0
    for k in range(len(last)):
        step = line - last[k]
        if step != 0 and -STRIDE <= step <= STRIDE:
            goes_on = direction[k] * step > 0
            last[k], direction[k], used[k] = line, 1 if step > 0 else -1, now
            return goes_on
        if used[k] < used[oldest]:
            oldest = k
    last[oldest], direction[oldest], used[oldest] = line, 0, now
    return False


@kernel
def _is_next(line, instruction, last, direction):
    # Returns whether a line is next to the last two of an instruction.
    k = instruction % len(last)
    step = line - last[k]
    is_near = step != 0 and -STRIDE <= step <= STRIDE
    found = is_near and direction[k] * step > 0
    direction[k] = (1 if step > 0 else -1) if is_near else 0
    last[k] = line
    return found


@kernel
def _follow(addresses, instructions, shift, clock, counts, state):
    # counts: loads; then random lines and lines of a sequence for each level behind the first cache.
    first, first_used, second, second_used, third, third_used, last, direction, used, own, own_way = state
    now = clock[0]
    for k in range(len(addresses)):
        now += 1
        counts[0] += 1
        line = addresses[k] >> shift
        if _find(line, first, first_used, now):
            continue
        is_next = _is_next(line, instructions[k], own, own_way)
        kind = np.int64(_goes_on(line, last, direction, used, now) or is_next)
        if _find(line, second, second_used, now):
            counts[1 + kind] += 1
        elif _find(line, third, third_used, now if kind == 0 else now - FLEETING):
            counts[3 + kind] += 1
        else:
            counts[5 + kind] += 1
    clock[0] = now
