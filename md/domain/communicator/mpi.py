"""Ranks that are processes under MPI, by mpi4py."""

from __future__ import annotations

import atexit
import os
import pickle
import socket
import sys
import time
from collections.abc import Callable, Collection, Mapping, Sequence
from functools import partial
from typing import Any, NoReturn

import numpy as np

from md import checks
from md.domain.communicator.base import Communicator
from md.domain.communicator.blocks import FOR_GOOD, TORN, Blocks

OF_OPEN_MPI = "OMPI_COMM_WORLD_SIZE"
SIZES = ("PMI_SIZE", OF_OPEN_MPI)  # variables of launchers with the number of processes
DEVICE = "SPATIAL_LOCALITY_DEVICE"  # variable that `md.backend.cuda` reads: a device for each rank of a host
ROWS, NOTICE = 0, 1  # tags of what ranks exchange, and of what one says that leaves
SMALL = 2048  # bytes that ranks exchange at once, so that most objects take one collective
LISTEN = 64  # tests of requests between two looks for notices
ABANDONED: list[Sequence[Any]] = []  # still active: MPI may write to their arrays at any time
PATIENCE = 60.0  # s in which all have left a block that one has left


def started() -> int:
    """Return the number of processes that a launcher has started."""
    return max(int(os.environ.get(name, 1)) for name in SIZES)


def other_mpi(mpi: Any) -> str:
    """Return the words for a launcher of another MPI library than that of mpi4py."""
    name = mpi.Get_library_version().partition(",")[0].partition("\n")[0].strip("\0 ")
    return (
        f"{name}: mpiexec is of another MPI library than mpi4py; take the mpiexec beside this python, or "
        "build mpi4py with that library"
    )


def library() -> Any:
    """Return `mpi4py.MPI`, initialised.

    Raises:
        ImportError: mpi4py is not installed, finds no MPI library, or another one than the launcher's.
    """
    try:
        import mpi4py

        was = mpi4py.rc.initialize
        mpi4py.rc.initialize = False  # with the launcher of another library it may end the process
        try:
            from mpi4py import MPI
        finally:
            mpi4py.rc.initialize = was
    except (ImportError, RuntimeError) as error:  # no package, or no library
        raise ImportError(
            f"several ranks need mpi4py: {error}; pip install '.[mpi]' in the checkout, then "
            "mpiexec -n 2 python script.py"
        ) from error
    if not MPI.Is_initialized():
        if int(os.environ.get(OF_OPEN_MPI, 1)) > 1 and "Open MPI" not in MPI.Get_library_version():
            raise ImportError(
                f"{started()} processes were started by Open MPI, and mpi4py is of {other_mpi(MPI)}"
            )
        MPI.Init_thread()
        atexit.register(_finalize, MPI)
    return MPI


def _finalize(mpi: Any) -> None:
    """Finalize MPI, which mpi4py does itself where it has initialised it."""
    if not mpi.Is_finalized():
        mpi.Finalize()


class MpiCommunicator(Communicator):
    """Communicator of processes under MPI, by mpi4py.

    Args:
        world: an `mpi4py.MPI.Comm`; None for all processes.

    Raises:
        ImportError: mpi4py is not installed, or finds no MPI library.
    """

    def __init__(self, world: Any = None):
        self._mpi = mpi = library()
        self._world = (mpi.COMM_WORLD if world is None else world).Dup()
        self.rank, self.size = self._world.Get_rank(), self._world.Get_size()
        if world is None and self.size == 1 < started():
            raise ImportError(f"{started()} processes were started, and each is alone under {other_mpi(mpi)}")
        if self.size > 1:
            on_host = self._world.Split_type(mpi.COMM_TYPE_SHARED)
            os.environ.setdefault(DEVICE, str(on_host.Get_rank()))
            on_host.Free()
        self._how = {"sum": mpi.SUM, "max": mpi.MAX, "min": mpi.MIN}
        self.blocks, self._sends, self._is_over = Blocks(self.rank, self.size), list[Any](), False
        sys.excepthook = partial(_end_all, self._world, sys.excepthook)

    def __repr__(self) -> str:
        where = f"process {os.getpid()} on {socket.gethostname()}"
        return f"<{type(self).__name__}, rank {self.rank} of {self.size}, {where}>"

    def _notify(self, block: int, calls: int, why: str) -> None:
        others = (rank for rank in range(self.size) if rank != self.rank)
        self._sends = [one for one in self._sends if not one.Test()]
        self._sends += [self._world.isend((block, calls, why), rank, NOTICE) for rank in others]

    def _receive(self) -> None:
        """Receive what other ranks say about blocks."""
        status = self._mpi.Status()
        while self._world.iprobe(tag=NOTICE, status=status):
            rank = status.Get_source()
            self.blocks.receive(rank, *self._world.recv(source=rank, tag=NOTICE))

    def _end(self, why: str) -> NoReturn:
        if not self._is_over:
            self._notify(FOR_GOOD, TORN, why)
        self._is_over = True
        raise self.blocks.end(why)

    def _settle(self) -> None:
        end = time.monotonic() + PATIENCE
        while not self.blocks.is_settled():
            self._receive()
            os.sched_yield()
            if self.blocks.ended or time.monotonic() > end:
                self._end(self.blocks.ended or self.blocks.alone())
        if self.blocks.ended:
            self._end(self.blocks.ended)

    def _wait(self, requests: Sequence[Any], awaited: Collection[int]) -> None:
        """Wait for messages, or for the notice that one will not come.

        Args:
            requests: active ones.
            awaited: ranks without which they do not end.

        Raises:
            RankFailedError: one of these has left, and takes no part.
        """
        tests = 0
        try:
            while not self._mpi.Request.Testall(requests):
                tests += 1
                if tests % LISTEN == 0:
                    os.sched_yield()
                    self._receive()
                    if why := self.blocks.absent(awaited):
                        self._end(why)
        except BaseException:
            ABANDONED.append(requests)
            raise

    def exchange(self, outgoing: Mapping[int, np.ndarray], incoming: Mapping[int, np.ndarray]) -> None:
        """Send an array to each of some ranks, and fill one from each; see `Communicator`."""
        with self._call():
            requests: list[Any] = []
            try:
                for rank, one in incoming.items():
                    requests.append(self._world.Irecv(_bytes_of(one), rank, ROWS))
                for rank, one in outgoing.items():
                    requests.append(self._world.Isend(_bytes_of(one), rank, ROWS))
            except BaseException:
                ABANDONED.append(requests)
                raise
            self._wait(requests, {*incoming, *outgoing})

    def reduce(self, values: Any, how: str) -> np.ndarray:
        """Return the sum, largest or least of the values of all ranks; see `Communicator`."""
        values = np.ascontiguousarray(values)
        found, operation = np.empty_like(values), self._how[checks.word("how", how, self._how)]
        with self._call():
            self._wait([self._world.Iallreduce(values, found, operation)], range(self.size))
        return found

    def gather(self, words: np.ndarray) -> np.ndarray:
        """Return the words of all ranks; see `Communicator`."""
        words = np.ascontiguousarray(words)
        found = np.empty((self.size, *words.shape), words.dtype)
        with self._call():
            given = _bytes_of(words), _bytes_of(found.reshape(-1))
            self._wait([self._world.Iallgather(*given)], range(self.size))
        return found

    def all_of(self, value: Any) -> list[Any]:
        """Return the values of all ranks; see `Communicator`."""
        own = np.frombuffer(pickle.dumps(value, pickle.HIGHEST_PROTOCOL), np.uint8)
        head = np.zeros(SMALL, np.uint8)  # length, and the object if it is small
        head[:8].view(np.int64)[0] = own.size
        head[8 : 8 + own.size] = own[: SMALL - 8]
        heads = self.gather(head)
        sizes = heads[:, :8].copy().view(np.int64)[:, 0]
        if sizes.max() <= SMALL - 8:
            return [pickle.loads(one[8:].tobytes()) for one in heads]
        with self._call():
            every = range(self.size)
            ends = np.cumsum(sizes)
            found = np.empty(ends[-1], np.uint8)
            into = [found, (sizes, ends - sizes), self._mpi.BYTE]
            self._wait([self._world.Iallgatherv([own, self._mpi.BYTE], into)], every)
        parts = (found[end - size : end] for end, size in zip(ends, sizes, strict=True))
        return [pickle.loads(part.tobytes()) for part in parts]


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
