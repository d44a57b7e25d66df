"""Loads and stores of the kernel of a GPU: those of each warp, one instruction after the other.

The lanes of a warp take the same instruction at the same time. What it costs is the number of different
sectors that its lanes address, so that a stream of single readers (`AccessStream`) does not foresee it.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass
from functools import partial
from itertools import groupby
from typing import NamedTuple

import numpy as np

from sfc import checks

LANES = 32  # of a warp
READ, WRITTEN, ADDED = 0, 1, 2  # kinds of an instruction; `ADDED` by an atomic operation
KINDS = {"read": READ, "written": WRITTEN, "added": ADDED}
MOST_BYTES = 2**47  # addresses of a device
ALIGNED = 512  # bytes: an array begins at a multiple, as those that a device allocates


class WarpLoads(NamedTuple):
    """Loads and stores of some warps.

    An event is an instruction of a warp. A lane that takes no part in it has no address.

    Attributes:
        first: (w + 1,) int64; the events of warp k are first[k] .. first[k + 1] - 1, in their order.
        start: (e + 1,) int64; the lanes of event k are start[k] .. start[k + 1] - 1, one or more.
        address: (lanes of all events,) int64, bytes; what a lane takes lies within a sector.
        waits: (e,) bool; whether the warp waits for the events before, as an address depends on them. Events
            from one that waits to the next are a round: they are issued without a pause.
        kind: (e,) uint8; `READ`, `WRITTEN` or `ADDED`.
    """

    first: np.ndarray
    start: np.ndarray
    address: np.ndarray
    waits: np.ndarray
    kind: np.ndarray

    @classmethod
    def of(cls, address: np.ndarray, waits: Sequence[bool], kind: Sequence[int]) -> WarpLoads:
        """Make the loads of warps that all come by the same instructions.

        Args:
            address: (w, e, lanes) int64, in bytes, of what a lane takes by an instruction; negative for
                nothing. An instruction by which no lane takes anything is no event of the warp.
            waits: (e,) of each instruction.
            kind: (e,) of each instruction.
        """
        lanes = (address >= 0).sum(axis=2)
        happens = lanes > 0
        first = np.concatenate([[0], np.cumsum(happens.sum(axis=1))])
        start = np.concatenate([[0], np.cumsum(lanes[happens])])
        waiting = np.broadcast_to(np.array(waits, bool), lanes.shape)[happens]
        kinds = np.broadcast_to(np.array(kind, np.uint8), lanes.shape)[happens]
        return cls(first, start, address[address >= 0], waiting, kinds)


@dataclass(frozen=True)
class LoadStream:
    """Loads and stores of a kernel with a thread for each item, given for any of its warps.

    Attributes:
        items: number of threads that work, at least 1.
        block: threads of a block, a multiple of 32.
        loads_of: takes (w,) int64 numbers of warps, ascending, and returns their `WarpLoads`.
        registers: of a thread, as the compiler prints them.
        shared: bytes of shared memory of a block.

    Raises:
        TypeError: a number that is no integer, or no function.
        ValueError: no item; a block that is no multiple of 32 threads, or has more than 1024; or registers or
            bytes that no block can have.
    """

    items: int
    block: int
    loads_of: Callable[[np.ndarray], WarpLoads]
    registers: int = 32
    shared: int = 0

    def __post_init__(self) -> None:
        object.__setattr__(self, "items", checks.integer("items", self.items, 1, unit="threads"))
        block = checks.integer("block", self.block, LANES, 1024, unit="threads")
        if block % LANES:
            raise ValueError(f"block = {block} threads; allowed: a multiple of {LANES}, the lanes of a warp")
        object.__setattr__(self, "block", block)
        for name, least, most, unit in (("registers", 1, 255, ""), ("shared", 0, 2**20, "bytes")):
            object.__setattr__(self, name, checks.integer(name, getattr(self, name), least, most, unit=unit))
        checks.function("loads_of", self.loads_of, "a function of numbers of warps that returns WarpLoads")

    @property
    def warps(self) -> int:
        """Number of warps; the last one may have fewer items than lanes."""
        return -(-self.items // LANES)

    @property
    def blocks(self) -> int:
        """Number of blocks."""
        return -(-self.items // self.block)

    @classmethod
    def of(
        cls, accesses: Sequence[Access], block: int = 256, registers: int = 32, shared: int = 0
    ) -> LoadStream:
        """Make the stream of a kernel from the elements that its threads take.

        Consecutive accesses with as many columns are a loop: the first column of each, then the second. The
        columns of a loop do not wait for those before; an access waits if it says so.

        Args:
            accesses: in the order of the instructions, with an element for each thread.
            block: threads of a block.
            registers: of a thread.
            shared: bytes of shared memory of a block.

        Raises:
            TypeError: no accesses.
            ValueError: none, elements of different numbers of threads, or arrays beyond the addresses of a
                device.

        Example: sectors for each item of y[i] = x[element[i]], with rows of 16 bytes.

            >>> import sfc.cache
            >>> rows = np.arange(2**14)
            >>> for element in (rows, np.random.default_rng(0).permutation(rows)):
            ...     read = Access("element", rows, 4), Access("x", element, 16, waits=True)
            ...     stream = LoadStream.of([*read, Access("y", rows, 16, "written", waits=True)])
            ...     print(round(sfc.cache.warps(stream).read.mean, 2))
            0.62
            1.12
        """
        allowed = "Access tuples, one for each load and store of a thread"
        found = [_checked(one) for one in checks.sequence("accesses", accesses, allowed)]
        lengths = {len(index) for _, index in found}
        if len(lengths) != 1 or not all(index.size for _, index in found):
            raise ValueError(
                f"accesses of {sorted(lengths) or 'no'} threads; allowed: one or more accesses, all with an "
                "element for each of as many threads"
            )
        base = _placed(found)
        instructions = [*_instructions(found, base)]
        of = partial(_of_arrays, instructions)
        return cls(lengths.pop(), block, of, registers, shared)


class Access(NamedTuple):
    """Elements of one array that the threads of a kernel take in an instruction, or in several.

    Attributes:
        array: name of the array; accesses of the same name take from the same array.
        element: (n,) or (n, k) integers: number of the element that each thread takes, or of the k that it
            takes in turn; negative for none.
        itemsize: bytes of an element, which a thread takes at once: 1, 2, 4, 8 or 16.
        kind: "read", "written", or "added" by an atomic operation.
        waits: whether the number was read by an instruction before, for which the warp waits.
    """

    array: str
    element: np.ndarray
    itemsize: int
    kind: str = "read"
    waits: bool = False


class Instruction(NamedTuple):
    """One instruction of all threads.

    Attributes:
        address: (n,) int64, in bytes, of what each thread takes; negative for nothing.
        kind: `READ`, `WRITTEN` or `ADDED`.
        waits: whether the warp waits for the instructions before.
    """

    address: np.ndarray
    kind: int
    waits: bool


def _checked(access: Access) -> tuple[Access, np.ndarray]:
    """Check an access, and return it with its elements as (n, k) int64."""
    remedy = "make sfc.cache.Access(array, element, itemsize)"
    checks.instance("accesses", access, Access, "Access tuples", remedy)
    name = checks.text("array of an Access", access.array)
    index = np.asarray(access.element)
    shape = ("n", "k") if index.ndim == 2 else ("n",)
    index = checks.array(f"element of {name}", index, "iu", checks.INTEGERS, shape)
    size = checks.integer(f"itemsize of {name}", access.itemsize, 1, 16, unit="bytes")
    if size & (size - 1):
        raise ValueError(f"itemsize of {name} = {size} bytes; allowed: 1, 2, 4, 8 or 16; take more accesses")
    checks.word(f"kind of {name}", access.kind, KINDS)
    most = int(index.max(initial=0))
    if most >= MOST_BYTES // size:
        raise ValueError(f"element of {name} up to {most}; allowed: below {MOST_BYTES // size}, in the array")
    checks.flag(f"waits of {name}", access.waits)
    return access._replace(itemsize=size), np.atleast_2d(index.astype(np.int64).T).T


def _placed(found: Sequence[tuple[Access, np.ndarray]]) -> dict[str, int]:
    """Return the address of each array; they follow each other in the order of their names' first use."""
    extent: dict[str, int] = {}
    for access, index in found:
        end = (int(index.max(initial=-1)) + 1) * access.itemsize
        extent[access.array] = max(extent.get(access.array, 0), end)
    sizes = [-(-size // ALIGNED) * ALIGNED for size in extent.values()]
    starts = np.concatenate([[0], np.cumsum(sizes, dtype=np.int64)])
    return {name: int(start) for name, start in zip(extent, starts, strict=False)}


def _instructions(found: Sequence[tuple[Access, np.ndarray]], base: dict[str, int]) -> Iterator[Instruction]:
    """Yield the instructions of a thread, loop by loop."""
    for columns, loop in groupby(found, key=lambda one: one[1].shape[1]):
        together = [*loop]
        for k in range(columns):
            for access, index in together:
                one = index[:, k]
                address = np.where(one < 0, -1, base[access.array] + access.itemsize * one)
                yield Instruction(address, KINDS[access.kind], access.waits)


def _of_arrays(instructions: Sequence[Instruction], warps: np.ndarray) -> WarpLoads:
    """Return the loads of some warps of a kernel that is given by arrays."""
    items = warps[:, None] * LANES + np.arange(LANES)
    is_there = items < len(instructions[0].address)
    items = np.where(is_there, items, 0)
    address = np.stack([np.where(is_there, one.address[items], -1) for one in instructions], axis=1)
    return WarpLoads.of(address, [one.waits for one in instructions], [one.kind for one in instructions])
