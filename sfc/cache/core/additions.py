"""Additions to numbers in memory: a core waits for the one before to the same number.

The load of an addition gets what the one before stored from the core's queue of stores, by store-to-load
forwarding.
"""

from __future__ import annotations

import numpy as np

from sfc import checks
from sfc.cache.core.lines import PART
from sfc.cache.core.loads import CoreStream
from sfc.compile import kernel


def time_of_additions(stream: CoreStream, items: int, apart: float, added: float, depth: int) -> float:
    """Follow the additions of the first items of a kernel, and return their time.

    An addition loads a number and stores it at the same address. Additions begin in their order, some time
    apart at least, and so many are under way at the same time at most. One to a number that another one under
    way adds to begins when that has ended: its load waits for the store before, which is forwarded to it.
    Additions leave in their order.

    Args:
        stream: loads and stores of the kernel, with an instruction that adds.
        items: number of items, the first of the stream.
        apart: least time from an addition to the next, in ns.
        added: time from an addition to one that waits for it, with the forwarding of the sum, in ns.
        depth: additions that are under way at the same time at most.

    Returns:
        Time to the end of the last addition, in ns, from `apart` before the first one: each has the time of
        its item. 0 without items.

    Raises:
        TypeError: an argument of a wrong class.
        ValueError: a stream without an instruction that adds, a number of items that is not one of the
            stream, a negative time, or no addition under way.
    """
    checks.instance("stream", stream, CoreStream, "an sfc.cache.core.CoreStream")
    if stream.adds is None:
        raise checks.refuse_value("adds of the stream", None, "the number of an instruction that adds")
    items = checks.integer("items", items, 0, stream.items)
    apart, added = checks.number("apart", apart, 0, unit="ns"), checks.number("added", added, 0, unit="ns")
    depth = checks.integer("depth", depth, 1, unit="additions")
    recent = np.full(depth, -1, np.int64)
    ended, left, last = np.zeros(depth), np.zeros(depth), np.zeros(3)
    for first in range(0, items, PART):
        addresses, instructions = stream.loads_of(first, min(first + PART, items))
        _follow(addresses[instructions == stream.adds], apart, added, recent, ended, left, last)
    return float(last[1])


@kernel
def _follow(addresses, apart, added, recent, ended, left, last):
    # recent, ended, left: of the additions under way: address, end, and time at which all before have ended.
    # last: begin and left of the last addition, number of additions.
    depth, begin, out, number = len(recent), last[0], last[1], int(last[2])
    for address in addresses:
        k = number % depth
        begin = max(begin + apart, left[k])
        start = begin
        for j in range(depth):
            if recent[j] == address:
                start = max(start, ended[j])
        recent[k], ended[k] = address, start + added
        out = max(out, ended[k])
        left[k] = out
        number += 1
    last[0], last[1], last[2] = begin, out, number
