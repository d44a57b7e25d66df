"""A kernel that takes a part of a GPU's second cache from others, which run at the same time.

Blocks read a number of each line of some bytes again and again. What they read stays in the cache, in both of
its halves, as far as they read it more often than others replace it: few blocks lose much of it beside a gas
that reads each of its lines every 3 us. Over few bytes they take no room, and all else is the same: their
loads, and their multiprocessors.

A device loads a kernel at its first launch, and waits for all others then. So what runs beside has run
before, and the blocks are ended by a memset, which needs no kernel.
"""

from __future__ import annotations

import time
from types import TracebackType

import numpy as np

from experiments.measurement.correctness import WrongResultError
from md.backend import Backend, OnDevice
from sfc import checks
from sfc.compile import kernel

LINE, NUMBERS = 128, 32  # bytes of a line, and numbers of 4 bytes in it
THREADS = 1024  # of a block
BLOCKS, MOST_BLOCKS = 48, 128  # each on a multiprocessor: a line a clock; 16 lost a part to a gas
EACH = 256  # loads of a thread between two looks at the time
LEAST = 2**18  # bytes that are read at least
MOST = 2**31 - 1  # bytes
ENDED = -1  # that a memset writes
LONGEST = 20.0  # s after which the blocks end by themselves


class Occupier:
    """Context in which a part of the second cache is read again and again, beside all other work.

    Args:
        backend: a device; nothing is read on the CPU.
        size: bytes that are read, from 0 on; at least `LEAST`, 2**18, are read of smaller sizes too. Few for
            loads that take no room.
        blocks: that read, from 1 to `MOST_BLOCKS`, 128, each on a multiprocessor.

    Attributes:
        rate: lines that were read in the last context, in 10^9 a second.

    Raises:
        TypeError: a size or a number of blocks that is no integer, or no backend.
        ValueError: a size or a number of blocks out of range, or a CPU.
    """

    def __init__(self, backend: Backend, size: int, blocks: int = BLOCKS):
        checks.instance("backend", backend, Backend, "an md.backend.Backend", "md.backend.get makes one")
        if backend.name != "cuda":
            raise ValueError(
                "a cache is occupied on backend 'cpu'; allowed: 'cuda', on which kernels overlap"
            )
        lines = max(checks.integer("size", size, 0, MOST, unit="bytes"), LEAST) // LINE
        self._threads = THREADS * checks.integer("blocks", blocks, 1, MOST_BLOCKS)
        self._backend, self._lines, self.rate = backend, lines, 0.0
        self._kernels = backend.kernels(__name__, constants={"EACH": EACH, "NUMBERS": NUMBERS})
        self._data = backend.upload(np.ones(NUMBERS * lines, np.int32))
        self._ended, self._late = (backend.zeros(1, np.int32) for _ in range(2))
        self._taken, self._sums = (backend.zeros(self._threads, np.int64) for _ in range(2))
        self._began, self._wait = 0.0, lambda: None

    def __enter__(self) -> Occupier:
        self._backend.fill(self._ended, 0)
        self._backend.fill(self._late, 0)
        self._backend.download(self._ended)  # waits for all earlier work
        self._began = time.perf_counter()
        with self._backend.beside() as self._wait:
            self._kernels.occupy(
                self._threads, self._data, self._lines, round(1e3 * LONGEST), self._ended, self._late,
                self._taken, self._sums,
            )  # fmt: skip
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        """End the reading after the work before, and check it.

        Raises:
            WrongResultError: blocks that ended by themselves, or sums that are wrong.
        """
        self._backend.fill(self._ended, ENDED)
        self._wait()
        lasted = time.perf_counter() - self._began
        if error is not None:
            return
        if self._backend.download(self._late)[0]:
            raise WrongResultError(
                f"the cache was occupied for {LONGEST:g} s alone, and not to the end; not recorded"
            )
        taken, sums = (self._backend.download(one) for one in (self._taken, self._sums))
        if not taken.min() or not np.array_equal(taken, sums):
            raise WrongResultError("sums of the numbers that occupy a cache are wrong; not recorded")
        self.rate = taken.sum() / lasted / 1e9


@OnDevice(threads=THREADS)
@kernel
def occupy(n, data, lines, most, ended, late, taken, sums):
    """Load a number of each line once; on a CPU nothing runs beside it."""
    for i in range(n):
        taken[i] = 1
        sums[i] = data[(i % lines) * (len(data) // lines)]
