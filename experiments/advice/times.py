"""Times of a use in candidate orders: each on two copies of its arrays, in rounds, by CPU time.

Where arrays lie changes times by several percent: two copies of the same order show by how much, and the
median over copies and rounds is what counts. Results are compared with those in the order of the file before.
"""

from __future__ import annotations

import time
from collections.abc import Iterator, Sequence
from typing import Any, NamedTuple

import numpy as np
import pandas as pd
import psutil

import md
from experiments.advice.candidates import orders_of
from experiments.advice.uses import Use, Work
from experiments.advice.verdict import CANNOT_TELL, judge
from experiments.core.settings import UsageError
from experiments.measurement.correctness import check_error
from experiments.measurement.rounds import Entry, take_rounds

COPIES, MOST_COPIES = 2, 8  # of each order; more if two do not tell
LEAST = 0.02  # s of a sample
LEAST_FREE = 0.05  # of the memory
TOLERANCE = 1e-9  # of a result over that in the order of the file


class Candidate(NamedTuple):
    """Order of memory that is timed.

    Attributes:
        name: of the order.
        order: permutation; None for the order of the file.
        keys_s: CPU time to make the permutation.
        copies: works on arrays of their own.
        works_s: CPU times of the first use of each copy.
        moves_s: CPU times to put the data into the order, with renumbered and sorted cells.
    """

    name: str
    order: Any
    keys_s: float
    copies: list[Work]
    works_s: list[float]
    moves_s: list[float]

    @property
    def cost_ms(self) -> float:
        """Return the CPU time of a reorder, with its permutation, in ms."""
        return 1e3 * (self.keys_s + min(self.moves_s))


def candidates(use: Use, seed: int, learnt: np.ndarray | None = None) -> list[Candidate]:
    """Put the items of a use into each candidate order, and check what comes out.

    Copies of all orders are allocated in turns and in random order, because where arrays lie changes times.

    Args:
        use: that is timed.
        seed: of the shuffled order, and of the order of allocation.
        learnt: part of a trace from which orders are learnt.

    Raises:
        UsageError: too little memory for all copies.
        WrongResultError: a result that differs from that in the order of the file.
    """
    found = [Candidate(*one, [], [], []) for one in orders_of(use, seed, learnt)]
    for copy in range(COPIES):
        add_copies(use, found, seed + copy)
    return found


def add_copies(use: Use, every: Sequence[Candidate], seed: int) -> None:
    """Allocate one more copy of each order, in random order, and check what it computes.

    Args:
        use: that is timed.
        every: the orders, that of the file first.
        seed: of the order of allocation.

    Raises:
        UsageError: too little memory.
        WrongResultError: a result that differs from that of the first copy in the order of the file.
    """
    turns = np.random.default_rng(seed).permutation(len(every))
    for k in turns if every[0].copies else [0, *turns[turns > 0]]:
        one = every[k]
        began = time.process_time()
        work = use.arrange(one.order)
        one.moves_s.append(time.process_time() - began)
        began = time.process_time()
        work.run()
        one.works_s.append(time.process_time() - began)
        one.copies.append(work)
        off = _difference(work.result(), every[0].copies[0].result())
        check_error(
            f"the result in order {one.name!r} differs from that in the order of the file by",
            off,
            TOLERANCE,
            "",
        )
        _check_memory(use, every)


def _difference(result: np.ndarray, right: np.ndarray) -> float:
    """Return the largest difference of results over the largest result."""
    most = max(float(np.abs(right).max(initial=0)), 1e-300)
    return float(np.abs(result - right).max(initial=0)) / most


def _check_memory(use: Use, every: Sequence[Candidate]) -> None:
    """Check that memory is left.

    Raises:
        UsageError: less than a share of it.
    """
    memory = psutil.virtual_memory()
    if memory.available < LEAST_FREE * memory.total:
        copies = sum(len(one.copies) for one in every)
        raise UsageError(
            f"{use.items:,} items in {copies} copies in {len(every)} orders leave {memory.available:,} bytes "
            f"of memory; allowed: {100 * LEAST_FREE:.0f} % of it; take --sample"
        )


def rounds_of(
    use: Use, every: Sequence[Candidate], rounds: int, seed: int, seconds: float, smallest_gain: float
) -> Iterator[list[dict]]:
    """Yield the rows of each round, in which all copies of all orders are timed in random order.

    If the times do not tell whether to reorder, and the seconds are not spent, further copies are timed.

    Args:
        use: that is timed.
        every: the orders.
        rounds: number of rounds; fewer if they would take more than the seconds, one at least.
        seed: of the order within them.
        seconds: CPU time of all rounds.
        smallest_gain: that is worth a reorder.

    Returns:
        Rows with `ordering`, `copy`, `time_ms` (CPU), `wall_ms` and `cost_ms` of a reorder, and the columns
        of `take_rounds`.
    """
    backend, taken, first = md.backend.get("cpu"), list[dict](), 0
    began, done = time.process_time(), 0
    while True:
        count = rounds_within(every, rounds, seconds)
        entries = [
            Entry({"ordering": one.name, "copy": k, "cost_ms": one.cost_ms}, _sampler(work), threads=1)
            for one in every for k, work in enumerate(one.copies) if k >= first
        ]  # fmt: skip
        for rows in take_rounds(entries, done + count, backend, seed=seed + first, begin=done, settle=0):
            taken += rows
            yield rows
        done += count
        first = len(every[0].copies)
        spent = time.process_time() - began
        is_clear = judge(pd.DataFrame(taken), smallest_gain).says != CANNOT_TELL
        if is_clear or first >= MOST_COPIES or 2 * spent > seconds:
            return
        for copy in range(COPIES):
            add_copies(use, every, seed + first + copy)


def rounds_within(every: Sequence[Candidate], rounds: int, seconds: float) -> int:
    """Return how many of some rounds take less than a time, one at least.

    Args:
        every: the orders.
        rounds: that are wanted.
        seconds: CPU time of all rounds.
    """
    round_s = sum(max(LEAST, one_s) for one in every for one_s in one.works_s[-1:] * COPIES)
    return max(1, min(rounds, int(seconds / round_s)))


def _sampler(work: Work) -> Any:
    """Return a function that times a work, repeated for `LEAST` seconds."""
    began = time.process_time()
    work.run()
    repeats = max(1, int(LEAST / max(time.process_time() - began, 1e-6)))

    def sample() -> Iterator[dict]:
        wall, began = time.perf_counter(), time.process_time()
        for _ in range(repeats):
            work.run()
        taken, passed = time.process_time() - began, time.perf_counter() - wall
        yield {
            "time_ms": 1e3 * taken / repeats, "wall_ms": 1e3 * passed / repeats, "sample_ms": 1e3 * taken,
        }  # fmt: skip

    return sample
