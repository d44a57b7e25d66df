"""Communicators: what the ranks of a divided simulation say to each other.

A rank is one of several processes (or, in turn, threads) that simulate one system. All ranks call the same
methods in the same order. Arrays are of numpy, in C order.
"""

from __future__ import annotations

import os
import sys
import threading
from abc import ABC, abstractmethod
from collections import deque
from collections.abc import Callable, Mapping
from functools import partial
from typing import Any

import numpy as np

from md import checks

HOW: dict[str, Callable[..., Any]] = {"sum": np.add, "max": np.maximum, "min": np.minimum}
LAUNCHED = (  # variables that launchers set for the processes that they start
    "PMI_RANK", "PMI_SIZE", "PMIX_RANK", "OMPI_COMM_WORLD_RANK", "MPI_LOCALNRANKS",
)  # fmt: skip
SIZES = ("PMI_SIZE", "OMPI_COMM_WORLD_SIZE")  # of these, those with the number of processes
PATIENCE = 600.0  # s that ranks in turn wait for each other


class RankFailedError(RuntimeError):
    """Another rank has ended with an error."""


class Communicator(ABC):
    """Communicator of `size` ranks, of which this is number `rank`."""

    rank: int
    size: int

    def __repr__(self) -> str:
        return f"<{type(self).__name__}, rank {self.rank} of {self.size}>"

    @staticmethod
    def mpi(world: Any = None) -> Communicator:
        """Return the communicator of the processes that `mpiexec` has started; of one rank without it.

        Args:
            world: an `mpi4py.MPI.Comm`; None for all processes.

        Raises:
            ImportError: a launcher has started several processes, and mpi4py is not installed, or has no MPI
                library or another one.
        """
        try:
            return MpiCommunicator(world)
        except ImportError:
            if any(name in os.environ for name in LAUNCHED):
                raise
            return Alone()

    @abstractmethod
    def exchange(self, outgoing: Mapping[int, np.ndarray], incoming: Mapping[int, np.ndarray]) -> None:
        """Send an array to each of some ranks, and fill one from each.

        Args:
            outgoing: rank -> array; not changed before all is received.
            incoming: rank -> array, filled; of the shape and dtype of what that rank sends.
        """

    @abstractmethod
    def reduce(self, values: Any, how: str) -> np.ndarray:
        """Return the sum, largest or least of the values of all ranks, entry by entry.

        Args:
            values: array, of one shape and dtype on all ranks.
            how: "sum", "max" or "min"; a sum is in the order of ranks.
        """

    @abstractmethod
    def all_of(self, value: Any) -> list[Any]:
        """Return the values of all ranks, which may be any objects that can be pickled."""

    def concatenated(self, *arrays: np.ndarray) -> tuple[np.ndarray, ...]:
        """Return the rows of all ranks, rank by rank, of each of some arrays."""
        return tuple(np.concatenate(parts) for parts in zip(*self.all_of(arrays), strict=True))

    def require_equal(self, what: str, value: Any) -> None:
        """Raise an error on all ranks if they have different values.

        Args:
            what: names the value, for the message.
            value: that all ranks should have; it can be pickled and compared.

        Raises:
            ValueError: they differ.
        """
        every = self.all_of(value)
        other = next((rank for rank, one in enumerate(every) if one != every[0]), None)
        if other is not None:
            raise ValueError(
                f"ranks 0 and {other} differ in {what}: {every[0]} and {every[other]}; allowed: the same on "
                "all; run one script, with one version of it"
            )

    def send_rows(self, rows: Mapping[int, np.ndarray]) -> dict[int, np.ndarray]:
        """Send rows to any ranks, and return those that other ranks have sent, by rank.

        Args:
            rows: rank -> (m,) records or (m, k) numbers; of one dtype and k on all ranks.
        """
        counts = self.all_of({rank: len(one) for rank, one in rows.items() if len(one)})
        like = next(iter(rows.values()), None)
        if like is None:
            raise ValueError("no rows, not even of length 0; allowed: those of one rank or more")
        incoming = {
            rank: np.empty((found[self.rank], *like.shape[1:]), like.dtype)
            for rank, found in enumerate(counts) if self.rank in found
        }  # fmt: skip
        self.exchange({rank: one for rank, one in rows.items() if len(one)}, incoming)
        return incoming


class Alone(Communicator):
    """Communicator of one rank, without MPI."""

    rank, size = 0, 1

    def exchange(self, outgoing: Mapping[int, np.ndarray], incoming: Mapping[int, np.ndarray]) -> None:
        """Copy what the rank sends to itself; see `Communicator`."""
        for rank, one in incoming.items():
            one[...] = outgoing[rank]

    def reduce(self, values: Any, how: str) -> np.ndarray:
        """Return the values; see `Communicator`."""
        checks.word("how", how, HOW)
        return np.array(values)

    def all_of(self, value: Any) -> list[Any]:
        """Return the value; see `Communicator`."""
        return [value]


class MpiCommunicator(Communicator):
    """Communicator of processes under MPI, by mpi4py.

    Args:
        world: an `mpi4py.MPI.Comm`; None for all processes.

    Raises:
        ImportError: mpi4py is not installed, or finds no MPI library.
    """

    def __init__(self, world: Any = None):
        try:
            from mpi4py import MPI
        except (ImportError, RuntimeError) as error:  # no package, or no library
            raise ImportError(
                f"several ranks need mpi4py: {error}; pip install '.[mpi]' in the checkout, then "
                "mpiexec -n 2 python script.py"
            ) from error
        self._mpi = MPI
        self._world = (MPI.COMM_WORLD if world is None else world).Dup()
        self.rank, self.size = self._world.Get_rank(), self._world.Get_size()
        started = max(int(os.environ.get(name, 1)) for name in SIZES)
        if world is None and self.size == 1 < started:
            raise ImportError(
                f"{started} processes were started, and each is alone under "
                f"{MPI.Get_library_version().strip()}: mpiexec is of another MPI library than mpi4py; take "
                "the mpiexec beside this python, or build mpi4py with that library"
            )
        self._how = {"sum": MPI.SUM, "max": MPI.MAX, "min": MPI.MIN}
        sys.excepthook = partial(_end_all, self._world, sys.excepthook)

    def exchange(self, outgoing: Mapping[int, np.ndarray], incoming: Mapping[int, np.ndarray]) -> None:
        """Send an array to each of some ranks, and fill one from each; see `Communicator`."""
        requests = [self._world.Irecv(_bytes_of(one), rank) for rank, one in incoming.items()]
        requests += [self._world.Isend(_bytes_of(one), rank) for rank, one in outgoing.items()]
        self._mpi.Request.Waitall(requests)

    def reduce(self, values: Any, how: str) -> np.ndarray:
        """Return the sum, largest or least of the values of all ranks; see `Communicator`."""
        values = np.ascontiguousarray(values)
        found = np.empty_like(values)
        self._world.Allreduce(values, found, self._how[checks.word("how", how, HOW)])
        return found

    def all_of(self, value: Any) -> list[Any]:
        """Return the values of all ranks; see `Communicator`."""
        return self._world.allgather(value)


def _end_all(world: Any, report: Callable[..., None], kind: type, error: Any, trace: Any) -> None:
    """Report an exception that ends this process, and end all ranks, which would wait for it."""
    report(kind, error, trace)
    sys.stdout.flush()
    sys.stderr.flush()
    if world.Get_size() > 1:
        world.Abort(130 if issubclass(kind, KeyboardInterrupt) else 1)


def _bytes_of(array: np.ndarray) -> np.ndarray:
    """Return a view of the bytes of an array in C order."""
    return array.reshape(-1).view(np.uint8)


class _Shared:
    """What ranks that take turns share: mailboxes and values, under one lock that the rank at work holds."""

    def __init__(self, size: int):
        self.size, self.turn = size, threading.Condition()
        self.boxes: dict[tuple[int, int], deque[np.ndarray]] = {
            (a, b): deque() for a in range(size) for b in range(size)
        }
        self.values: dict[int, dict[int, Any]] = {}  # number of the call -> rank -> value
        self.has_failed = False


class InTurn(Communicator):
    """Communicator of ranks that are threads of one process, of which one works at a time (`in_turn`)."""

    def __init__(self, rank: int, shared: _Shared):
        self.rank, self.size, self._shared, self._calls = rank, shared.size, shared, 0

    def _wait_for(self, is_there: Callable[[], bool]) -> None:
        shared = self._shared
        if not shared.turn.wait_for(lambda: shared.has_failed or is_there(), PATIENCE):
            raise TimeoutError(f"rank {self.rank} waited {PATIENCE:g} s for another one")
        if shared.has_failed:
            raise RankFailedError("another rank has ended with an error")

    def exchange(self, outgoing: Mapping[int, np.ndarray], incoming: Mapping[int, np.ndarray]) -> None:
        """Send an array to each of some ranks, and fill one from each; see `Communicator`."""
        boxes = self._shared.boxes
        for rank, one in outgoing.items():
            boxes[self.rank, rank].append(one.copy())
        self._shared.turn.notify_all()
        for rank, one in incoming.items():
            box = boxes[rank, self.rank]
            self._wait_for(partial(bool, box))
            one[...] = box.popleft()

    def reduce(self, values: Any, how: str) -> np.ndarray:
        """Return the sum, largest or least of the values of all ranks; see `Communicator`."""
        combine, (first, *others) = HOW[checks.word("how", how, HOW)], self.all_of(np.asarray(values))
        for one in others:
            first = combine(first, one)
        return first

    def all_of(self, value: Any) -> list[Any]:
        """Return the values of all ranks; see `Communicator`."""
        values = self._shared.values.setdefault(self._calls, {})
        self._calls += 1
        values[self.rank] = value
        self._shared.turn.notify_all()
        self._wait_for(lambda: len(values) == self.size)
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
        Exception: the first that the work of a rank has raised.
    """
    shared = _Shared(checks.integer("size", size, 1))
    found: list[Any] = [None] * size
    errors: list[BaseException] = []

    def rank_of(rank: int) -> None:
        with shared.turn:
            try:
                found[rank] = work(InTurn(rank, shared))
            except BaseException as error:
                if not shared.has_failed:
                    errors.append(error)
                shared.has_failed = True
            shared.turn.notify_all()

    threads = [threading.Thread(target=rank_of, args=(rank,), daemon=True) for rank in range(size)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    if errors:
        raise errors[0]
    return found
