"""Communicators: what the ranks of a divided simulation say to each other.

A rank is one of several processes (or, in turn, threads) that simulate one system. All ranks call the same
methods in the same order. Arrays are of numpy, in C order. A rank that ends with an error within a block of
`together` says so; those that wait for it then raise `md.RankFailedError`, and the communicator is of no use
any more. An error that all ranks have come to, each by itself, is raised on each, and they may go on.
"""

from __future__ import annotations

import os
from abc import ABC, abstractmethod
from collections.abc import Callable, Iterator, Mapping
from contextlib import contextmanager
from importlib import import_module
from typing import Any, NoReturn

import numpy as np

from md import checks
from md.domain.communicator.blocks import TORN, Blocks
from md.errors import RankFailedError

HOW: dict[str, Callable[..., Any]] = {"sum": np.add, "max": np.maximum, "min": np.minimum}
LAUNCHED = (  # variables that launchers set for the processes that they start
    "PMI_RANK", "PMI_SIZE", "PMIX_RANK", "OMPI_COMM_WORLD_RANK", "MPI_LOCALNRANKS",
)  # fmt: skip


class Communicator(ABC):
    """Communicator of `size` ranks, of which this is number `rank`."""

    rank: int
    size: int
    blocks: Blocks
    is_one_process = False  # whether all ranks are in this process, so that they share addresses

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
            derived = import_module("md.domain.communicator.mpi")  # its class derives from this one
            return derived.MpiCommunicator(world)
        except ImportError:
            if any(name in os.environ for name in LAUNCHED):
                raise
            return Alone()

    @contextmanager
    def together(self) -> Iterator[None]:
        """Tell the other ranks if the block ends with an error here; all ranks enter the same blocks."""
        self._settle()
        self.blocks.now += 1
        try:
            yield
        except RankFailedError:
            raise
        except BaseException as error:
            self._notify(*self.blocks.leave(f"rank {self.rank} has ended: {type(error).__name__}: {error}"))
            raise

    @contextmanager
    def _call(self) -> Iterator[None]:
        """Begin a call: all ranks begin the same ones, and an error within one ends them for good."""
        self._settle()
        if self.blocks.calls == TORN:
            self._end(f"rank {self.rank} was stopped within a call")
        self.blocks.calls += 1
        try:
            yield
        except BaseException:
            self.blocks.calls = TORN
            raise

    @abstractmethod
    def _notify(self, block: int, calls: int, why: str) -> None:
        """Notify the other ranks that this one has left a block, and why; do not wait for them."""

    @abstractmethod
    def _end(self, why: str) -> NoReturn:
        """End for good, notify the other ranks, and raise `RankFailedError`."""

    @abstractmethod
    def _settle(self) -> None:
        """Wait until all have left the blocks that this rank has left with an error, if it has.

        Raises:
            RankFailedError: another one has not, or after other calls.
        """

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
            how: "sum", "max" or "min"; a sum of floats is right to rounding, in an order of MPI's.
        """

    @abstractmethod
    def gather(self, words: np.ndarray) -> np.ndarray:
        """Return the words of all ranks: (ranks, k), of (k,) numbers of one dtype on all ranks."""

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

    def __init__(self) -> None:
        self.blocks = Blocks(0, 1)

    def _notify(self, block: int, calls: int, why: str) -> None:
        pass

    def _end(self, why: str) -> NoReturn:
        raise self.blocks.end(why)

    def _settle(self) -> None:
        pass

    def exchange(self, outgoing: Mapping[int, np.ndarray], incoming: Mapping[int, np.ndarray]) -> None:
        """Copy what the rank sends to itself; see `Communicator`."""
        for rank, one in incoming.items():
            one[...] = outgoing[rank]

    def reduce(self, values: Any, how: str) -> np.ndarray:
        """Return the values; see `Communicator`."""
        checks.word("how", how, HOW)
        return np.array(values)

    def gather(self, words: np.ndarray) -> np.ndarray:
        """Return the words; see `Communicator`."""
        return words[None].copy()

    def all_of(self, value: Any) -> list[Any]:
        """Return the value; see `Communicator`."""
        return [value]
