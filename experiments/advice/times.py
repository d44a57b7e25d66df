"""Times of a use in candidate orders, in rounds, each in memory of its own.

Where arrays lie changes times by several percent, up to a third. So each array of a round begins a random
multiple of 64 bytes into new memory, since an allocator gives few places in turn, and the arrays of each
order are copied into the same memory in turn and timed there: what the place of the memory does to a time is
the same for all orders, and is left out of their ratios. Results are compared with those in the order of the
file before anything is timed.
"""

from __future__ import annotations

import math
import time
from collections.abc import Callable, Iterator, Sequence
from typing import Any, NamedTuple

import numpy as np
import pandas as pd
import psutil

import md
from experiments.advice.candidates import AGAIN, GIVEN, orders_of
from experiments.advice.uses import MATRIX, OWN, Use, Work
from experiments.advice.verdict import CANNOT_TELL, LOOKS, judge
from experiments.core.settings import UsageError
from experiments.measurement.correctness import check_error
from experiments.measurement.rounds import Entry, take_rounds

LEAST_ROUNDS = 3
SHARE = 0.5  # of the time, before the first look
LEAST = 0.02  # s of a sample
PARTS = 3  # of a sample; its time is their median
PARTS_ON_GPU = 9  # the least of them counts: other work on the host can only lengthen a wall time
LONG = 0.1  # s of a use that is timed once, and is not warmed up
LINE, SPREAD = 64, 2**20  # bytes: an array begins a multiple of one, at most the other, into its memory
LEAST_FREE = 0.05  # of the memory
TOLERANCE = 1e-9  # of a result over that in the order of the file


class Candidate(NamedTuple):
    """Order of memory that is timed.

    Attributes:
        name: of the order.
        order: permutation; None for the order of the file.
        cost_ms: time of a reorder by `Use.clock`: of the permutation, and of the data that is put into it,
            with renumbered and sorted cells.
        work: arrays in this order.
        use_s: time of one use, by which rounds are planned.
        parts: of a sample.
    """

    name: str
    order: Any
    cost_ms: float
    work: Work
    use_s: float
    parts: int = PARTS

    @property
    def repeats(self) -> int:
        """Return the number of uses of each part of a sample."""
        return max(1, int(LEAST / self.parts / max(self.use_s, 1e-6)))

    @property
    def is_long(self) -> bool:
        """Return whether a sample is one use."""
        return self.use_s > LONG

    @property
    def sample_s(self) -> float:
        """Return the time of a sample, with its first use."""
        return self.use_s * (1 if self.is_long else 1 + self.parts * self.repeats)


class Memory:
    """Memory of its own for a round, into which the arrays of each order are copied.

    Args:
        arrays: of one order; all have the same shapes and dtypes.
        seed: of where in the memory they begin.
    """

    def __init__(self, arrays: Sequence[np.ndarray], seed: int):
        self._held: list[tuple[np.ndarray, ...]] = []
        self._random = np.random.default_rng(seed)
        self.renew(arrays)

    def renew(self, arrays: Sequence[np.ndarray]) -> None:
        """Take new memory, and give the old back only then, so that it is another."""
        self._held = self._held[-1:]
        self._held.append(tuple(map(self._taken, arrays)))

    def _taken(self, one: np.ndarray) -> np.ndarray:
        """Return an array like one, a random multiple of `LINE` into new memory.

        The memory is of the same type and at most twice as large: scipy copies arrays that are a small part
        of their memory whenever it makes a matrix of them.
        """
        line = math.lcm(LINE, one.itemsize) // one.itemsize
        lines = min(SPREAD // one.itemsize, one.size) // line
        begin = line * int(self._random.integers(lines + 1))
        memory = np.empty_like(one, shape=one.size + line * lines)  # where it lies
        return memory[begin : begin + one.size].reshape(one.shape)

    def hold(self, arrays: Sequence[np.ndarray]) -> tuple[np.ndarray, ...]:
        """Copy arrays into the memory, and return them there."""
        for place, one in zip(self._held[-1], arrays, strict=True):
            np.copyto(place, one)
        return self._held[-1]


def candidates(use: Use, seed: int, learnt: np.ndarray | None = None) -> list[Candidate]:
    """Put the items of a use into each candidate order, and check what comes out.

    Args:
        use: that is timed.
        seed: of the shuffled order.
        learnt: part of a trace from which orders are learnt.

    Raises:
        UsageError: too little memory for all orders.
        WrongResultError: a result that differs from that in the order of the file.
    """
    found: list[Candidate] = []
    right: Any = None
    for name, order, keys_s in orders_of(use, seed, learnt):
        work, moved_s = _arranged(use, order)
        arrays = tuple(np.copy(one) for one in work.arrays) if use.kind == OWN else work.arrays
        result = work.result(work.run(*arrays))  # compiles
        for k, (now, before) in enumerate(zip(arrays, work.arrays, strict=True)):
            if use.kind == OWN and now.tobytes() != before.tobytes():
                raise UsageError(f"your function changes its arrays[{k}]; allowed: none; copy them in it")
        right = result if right is None else right
        what = f"the result in order {name!r} differs from that in the order of the file by"
        check_error(what, _difference(result, right), TOLERANCE, "")
        _, use_s = timed(work.run, arrays, use)
        found.append(Candidate(name, order, 1e3 * (keys_s + moved_s), work, use_s, _parts(use)))
        _check_memory(use, found)
    return found


def _parts(use: Use) -> int:
    """Return the parts of a sample of a use."""
    return PARTS if use.backend is None else PARTS_ON_GPU


def _arranged(use: Use, order: np.ndarray | None) -> tuple[Work, float]:
    """Return the work of an order, and the time to put the data into it, by `Use.clock`.

    Of the first two times the shorter one if it is short, and on a GPU, where the first one may compile.
    """
    taken = LONG + 1
    there = order if order is None or use.kind == MATRIX else use.there(order)  # where it was made
    for _ in range(2):
        began = use.clock()
        work = use.arrange(there)
        taken = min(taken, use.clock() - began - work.search_s)
        if taken > LONG and use.backend is None:
            break
    return work, taken


def timed(
    run: Callable[..., Any], arrays: Sequence[np.ndarray], use: Use, repeats: int = 1
) -> tuple[float, float]:
    """Return the wall time of a use and the time by which orders are judged, in s.

    That is CPU time, which other work on the machine affects less. Of code on a GPU it is wall time to its
    end, and of a function of the user's, which may work on several threads or on a device, wall time.

    Args:
        run: works once.
        arrays: on which it works.
        use: that it is of.
        repeats: uses over which times are means.
    """
    began, wall = use.clock(), time.perf_counter()
    for _ in range(repeats):
        run(*arrays)
    taken, wall = (use.clock() - began) / repeats, (time.perf_counter() - wall) / repeats
    return wall, wall if use.kind == OWN else taken


def _difference(result: np.ndarray, right: np.ndarray) -> float:
    """Return the largest difference of results over the largest result."""
    most = max(float(np.abs(right).max(initial=0)), 1e-300)
    return float(np.abs(result - right).max(initial=0)) / most


def _check_memory(use: Use, every: Sequence[Candidate]) -> None:
    """Check that there is memory for two rounds beside the orders, where the code works.

    Raises:
        UsageError: less than that and a share of all of the host's.
    """
    memory, needed = psutil.virtual_memory(), 2 * sum(one.nbytes for one in every[0].work.arrays)
    free = memory.available if use.backend is None else use.backend.free_memory()
    needed += int(LEAST_FREE * memory.total) if use.backend is None else 0
    if free < needed:
        raise UsageError(
            f"{use.items:,} items in {len(every)} orders leave {free:,} bytes of memory; "
            f"allowed: {needed:,}; take --sample"
        )


def rounds_of(
    use: Use, every: Sequence[Candidate], rounds: int, seed: int, seconds: float, smallest_gain: float
) -> Iterator[list[dict]]:
    """Yield the rows of each round, in which all orders are timed in random order in the same memory.

    The order of the file is timed twice. If the times do not tell whether to reorder, and the seconds are not
    spent, there are further rounds, `LOOKS` times as many at most, of the orders that may still be the best.

    Args:
        use: that is timed.
        every: the orders, that of the file first.
        rounds: number of rounds before the first look; fewer if they would take more than `SHARE` of the
            seconds, `LEAST_ROUNDS` at least.
        seed: of the order within them.
        seconds: of all rounds, which copying and other work exceed.
        smallest_gain: that is worth a reorder.

    Returns:
        Rows with `ordering`, `time_ms` (of `timed`), `wall_ms`, `cost_ms` of a reorder, `looks` (planned at
        most), and the columns of `take_rounds`.
    """
    backend, taken = use.backend or md.backend.get("cpu"), list[dict]()
    memory = Memory(every[0].work.arrays, seed)
    again = every[0]._replace(name=AGAIN)
    left, done, spent = [*every, again], 0, 0.0
    round_s = sum(one.sample_s for one in left)
    count = max(LEAST_ROUNDS, min(rounds, int(SHARE * seconds / round_s)))
    looks = LOOKS if count * round_s < seconds else 1
    for _ in range(looks):
        columns = [{"ordering": one.name, "cost_ms": one.cost_ms, "looks": looks} for one in left]
        entries = [
            Entry(about, _sampler(use, one, memory), threads=1)
            for about, one in zip(columns, left, strict=True)
        ]
        round_s = sum(one.sample_s for one in left)
        more = count if not done else min(count, int((seconds - spent) / round_s))
        if not more:
            return
        for rows in take_rounds(entries, done + more, backend, seed=seed, begin=done, settle=0):
            taken += rows
            yield rows
            memory.renew(every[0].work.arrays)
        done, spent = done + more, spent + more * round_s
        verdict = judge(pd.DataFrame(taken), smallest_gain)
        if verdict.says != CANNOT_TELL:
            return
        may_be_best = {GIVEN, AGAIN, verdict.best, *verdict.equal}
        left = [one for one in left if one.name in may_be_best]


def _sampler(use: Use, one: Candidate, memory: Memory) -> Callable[[], Iterator[dict]]:
    """Return a function that times an order in the memory of the round."""

    def sample() -> Iterator[dict]:
        arrays = memory.hold(one.work.arrays)
        if not one.is_long:
            one.work.run(*arrays)
        count = 1 if one.is_long else one.parts
        parts = [timed(one.work.run, arrays, use, one.repeats) for _ in range(count)]
        wall, own = (np.median if use.backend is None else np.min)(parts, axis=0)
        yield {"time_ms": 1e3 * own, "wall_ms": 1e3 * wall, "sample_ms": 1e3 * sum(one for _, one in parts)}

    return sample


def paired(use: Use, orders: Sequence[np.ndarray], rounds: int, seed: int, seconds: float) -> np.ndarray:
    """Time a use in some orders, in random order in the same memory, with new memory for each round.

    Args:
        use: that is timed.
        orders: permutations.
        rounds: number of rounds.
        seed: of the order within them, and of the memory.
        seconds: for all; there are fewer rounds if they would take more, `LEAST_ROUNDS` at least.

    Returns:
        (rounds, orders) times in ms, as `timed`.

    Raises:
        UsageError: too little memory.
    """
    ready = []
    for order in orders:
        work = use.arrange(order)
        work.run(*work.arrays)  # compiles
        ready.append(Candidate("", order, 0, work, timed(work.run, work.arrays, use)[1], _parts(use)))
        _check_memory(use, ready)
    round_s = sum(one.sample_s for one in ready)
    random, found = np.random.default_rng(seed), []
    memory = Memory(ready[0].work.arrays, seed)
    samplers = [_sampler(use, one, memory) for one in ready]
    for _ in range(max(LEAST_ROUNDS, min(rounds, int(seconds / round_s)))):
        row = np.empty(len(ready))
        for k in random.permutation(len(ready)):
            row[k] = next(samplers[k]())["time_ms"]
        found.append(row)
        memory.renew(ready[0].work.arrays)
    return np.array(found)
