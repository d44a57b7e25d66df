"""Forecast of a kernel on a core of a CPU that need not be there: lines, and time."""

from __future__ import annotations

from typing import NamedTuple

from sfc import checks
from sfc.cache.core.additions import time_of_additions
from sfc.cache.core.lines import CoreLines, lines
from sfc.cache.core.loads import CoreStream
from sfc.cache.core.processor import Processor


class CoreFitted(NamedTuple):
    """Numbers that `experiments.machine` does not measure.

    Attributes:
        load: time of a load that the first cache serves, with the work that belongs to it, over the latency
            of that cache; by kernel.
        waits: share of the latency of a line for which a core waits that branches on what it loads; the same
            for all kernels and CPUs, at most 1.
        added: time from an addition to the next to the same number in memory, to load it, to add and to store
            it, over the latency of the first cache; as measured on an EPYC (Zen 4).
        depth: additions that are under way at the same time at most; fitted there to sums of cells.
    """

    load: float = 1.3
    waits: float = 0.276
    added: float = 1.73
    depth: int = 14


class CoreForecast(NamedTuple):
    """What a kernel is foreseen to take for each item.

    Attributes:
        lines: that are loaded.
        time: in ns.
    """

    lines: CoreLines
    time: float


def foresee(stream: CoreStream, processor: Processor, fitted: CoreFitted, passes: int = 2) -> CoreForecast:
    """Foresee the lines that a kernel takes from each level of the memory of a CPU, and its time.

    The time of an item is that of its loads, if all were in the first cache, and of its lines. Those of a
    sequence from memory take the time of a sequence, and none from a cache. Of those in no order a core waits
    for many at a time, or, where it branches on what it loads, for a share of the latency of each. Additions
    to a number that was stored a moment ago wait for it (`time_of_additions`), as if all lines were in the
    first cache. Lines that go back to memory take no time of their own: where additions to numbers in no
    order were timed, a line of these took no longer than one that is only loaded.

    Args:
        stream: loads and stores of the kernel.
        processor: the CPU.
        fitted: numbers that were fitted to other kernels.
        passes: as those of `lines`: 1 for a kernel that finds the caches empty.

    Raises:
        TypeError: objects of other classes.
        ValueError: fewer items than threads, no pass, or a fitted number out of range.
    """
    checks.instance("fitted", fitted, CoreFitted, "an sfc.cache.core.CoreFitted", "make CoreFitted()")
    checks.number("load of CoreFitted", fitted.load, above=0)
    checks.number("waits of CoreFitted", fitted.waits, 0, 1)
    checks.number("added of CoreFitted", fitted.added, 0)
    checks.integer("depth of CoreFitted", fitted.depth, 1, unit="additions")
    found = lines(stream, processor, passes)
    time = time_of(found, stream.branches, processor, fitted)
    return CoreForecast(found, time + _waited(stream, found, processor, fitted))


def _waited(stream: CoreStream, found: CoreLines, processor: Processor, fitted: CoreFitted) -> float:
    """Return the time of an item for which additions wait for each other, in ns."""
    if stream.adds is None:
        return 0.0
    items = -(-stream.items // processor.threads)
    apart, added = found.loads * fitted.load * processor.l1_latency, fitted.added * processor.l1_latency
    taken = time_of_additions(stream, items, apart, added, fitted.depth)
    return max(0.0, taken / items - apart) / processor.threads


def time_of(found: CoreLines, branches: bool, processor: Processor, fitted: CoreFitted) -> float:
    """Foresee the time of an item, in ns, from its lines (`foresee`)."""
    time = found.loads * fitted.load * processor.l1_latency + found.memory.sequence * processor.sequence
    for level, served in (("l2", found.second), ("l3", found.last), ("memory", found.memory)):
        each = getattr(processor, f"{level}_line")
        if branches:
            each = max(each, fitted.waits * getattr(processor, f"{level}_latency"))
        time += served.random * each
    return time / processor.threads
