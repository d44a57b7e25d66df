"""Ranks that take turns, as threads of one process: without MPI, and without ranks at work at once."""

from __future__ import annotations

import threading
from collections import deque
from collections.abc import Callable, Collection, Mapping
from functools import partial
from typing import Any, NoReturn

import numpy as np

from md import checks
from md.domain.communicator.base import HOW, Communicator
from md.domain.communicator.blocks import FOR_GOOD, TORN, Blocks
from md.errors import RankFailedError

PATIENCE = 600.0  # s that ranks in turn wait for each other


class _Shared:
    """What ranks that take turns share: mailboxes and values, under one lock that the rank at work holds."""

    def __init__(self, size: int):
        self.size, self.turn = size, threading.Condition()
        self.boxes: dict[tuple[int, int], deque[np.ndarray]] = {
            (a, b): deque() for a in range(size) for b in range(size)
        }
        self.values: dict[int, dict[int, Any]] = {}  # number of the call -> rank -> value
        self.blocks = [Blocks(rank, size) for rank in range(size)]


class InTurn(Communicator):
    """Communicator of ranks that are threads of one process, of which one works at a time (`in_turn`)."""

    is_one_process = True

    def __init__(self, rank: int, shared: _Shared):
        self.rank, self.size, self._shared, self._calls = rank, shared.size, shared, 0
        self.blocks = shared.blocks[rank]

    def _notify(self, block: int, calls: int, why: str) -> None:
        for rank, blocks in enumerate(self._shared.blocks):
            if rank != self.rank:
                blocks.receive(self.rank, block, calls, why)
        self._shared.turn.notify_all()

    def _end(self, why: str) -> NoReturn:
        self._notify(FOR_GOOD, TORN, why)
        raise self.blocks.end(why)

    def _settle(self) -> None:
        self._shared.turn.wait_for(lambda: self.blocks.is_settled() or bool(self.blocks.ended), PATIENCE)
        if self.blocks.ended or not self.blocks.is_settled():
            self._end(self.blocks.ended or self.blocks.alone())

    def _wait_for(self, is_there: Callable[[], bool], awaited: Collection[int]) -> None:
        def why() -> str:
            return self.blocks.absent(awaited)

        if not self._shared.turn.wait_for(lambda: is_there() or bool(why()), PATIENCE):
            raise TimeoutError(f"rank {self.rank} waited {PATIENCE:g} s for another one")
        if not is_there():
            self._end(why())

    def exchange(self, outgoing: Mapping[int, np.ndarray], incoming: Mapping[int, np.ndarray]) -> None:
        """Send an array to each of some ranks, and fill one from each; see `Communicator`."""
        boxes = self._shared.boxes
        with self._call():
            for rank, one in outgoing.items():
                boxes[self.rank, rank].append(one.copy())
            self._shared.turn.notify_all()
            for rank, one in incoming.items():
                box = boxes[rank, self.rank]
                self._wait_for(partial(bool, box), (rank,))
                one[...] = box.popleft()

    def reduce(self, values: Any, how: str) -> np.ndarray:
        """Return the sum, largest or least of the values of all ranks; see `Communicator`."""
        combine, (first, *others) = HOW[checks.word("how", how, HOW)], self.all_of(np.asarray(values))
        for one in others:
            first = combine(first, one)
        return first

    def gather(self, words: np.ndarray) -> np.ndarray:
        """Return the words of all ranks; see `Communicator`."""
        return np.stack(self.all_of(words.copy()))

    def all_of(self, value: Any) -> list[Any]:
        """Return the values of all ranks; see `Communicator`."""
        with self._call():
            values = self._shared.values.setdefault(self._calls, {})
            self._calls += 1
            values[self.rank] = value
            self._shared.turn.notify_all()
            self._wait_for(lambda: len(values) == self.size, range(self.size))
            self._shared.values.pop(self._calls - 2, None)  # of a call that all have left
        return [values[rank] for rank in range(self.size)]


def in_turn(size: int, work: Callable[[Communicator], Any]) -> list[Any]:
    """Do the work of several ranks in one process, one at a time, and return what each returned.

    Each rank works until it waits for another. So a program is tested without MPI, and without ranks at work
    at once.

    Args:
        size: number of ranks.
        work: called for each with its communicator.

    Raises:
        Exception: the first that the work of a rank has raised, but for those of ranks that waited for it.
    """
    shared = _Shared(checks.integer("size", size, 1))
    found: list[Any] = [None] * size
    errors: list[BaseException] = []

    def rank_of(rank: int) -> None:
        with shared.turn:
            try:
                found[rank] = work(InTurn(rank, shared))
            except BaseException as error:
                errors.append(error)
                why = shared.blocks[rank].ended or f"rank {rank} has ended: {type(error).__name__}: {error}"
                for blocks in shared.blocks:
                    blocks.receive(rank, FOR_GOOD, TORN, why)
            shared.turn.notify_all()

    threads = [threading.Thread(target=rank_of, args=(rank,), daemon=True) for rank in range(size)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    if errors:
        raise next((one for one in errors if not isinstance(one, RankFailedError)), errors[0])
    return found
