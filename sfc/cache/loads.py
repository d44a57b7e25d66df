"""Loads and stores of a GPU kernel: those of each warp, one instruction after the other.

The lanes of a warp take the same instruction at the same time. What it costs is the number of different
sectors that its lanes address, so that a stream of single readers (`AccessStream`) does not foresee it.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping, Sequence
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


class Draw(NamedTuple):
    """Pages of memory that are drawn by a hash: those of which the hash and `mask` have no bit in common.

    Attributes:
        shift: binary logarithm of the bytes of a page.
        seed: added to the number of a page before it is hashed (`sfc.bitwise.bits.mixed`).
        mask: one less than the number of pages to each that is drawn, which is a power of two.
    """

    shift: int
    seed: int
    mask: int


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
        place: (e,) int64; of the instruction in the program, ascending in each warp: warps that are at work
            at the same time are about as far.
    """

    first: np.ndarray
    start: np.ndarray
    address: np.ndarray
    waits: np.ndarray
    kind: np.ndarray
    place: np.ndarray

    @classmethod
    def of(cls, address: np.ndarray, waits: Sequence[bool], kind: Sequence[int]) -> WarpLoads:
        """Make the loads of warps that all execute the same instructions.

        Args:
            address: (w, e, lanes) int64, in bytes, of what a lane takes in an instruction; negative for
                nothing. An instruction in which no lane takes anything is no event of the warp.
            waits: (e,) of each instruction.
            kind: (e,) of each instruction.
        """
        lanes = (address >= 0).sum(axis=2)
        happens = lanes > 0
        first = np.concatenate([[0], np.cumsum(happens.sum(axis=1))])
        start = np.concatenate([[0], np.cumsum(lanes[happens])])
        waiting = np.broadcast_to(np.array(waits, bool), lanes.shape)[happens]
        kinds = np.broadcast_to(np.array(kind, np.uint8), lanes.shape)[happens]
        place = np.broadcast_to(np.arange(lanes.shape[1]), lanes.shape)[happens]
        return cls(first, start, address[address >= 0], waiting, kinds, place)


@dataclass(frozen=True)
class LoadStream:
    """Loads and stores of a kernel with a thread for each item, given for any of its warps.

    Attributes:
        items: number of threads that work, at least 1.
        block: threads of a block, a multiple of 32.
        loads_of: takes (w,) int64 numbers of warps, ascending, and returns their `WarpLoads`.
        registers: of a thread, as the compiler prints them.
        shared: bytes of shared memory of a block.
        drawn_of: takes numbers of warps and a `Draw`, named `draw`, and returns their `WarpLoads` of pages
            that are drawn, in less time than `loads_of`; None if there is no such function.

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
    drawn_of: Callable[..., WarpLoads] | None = None

    def __post_init__(self) -> None:
        object.__setattr__(self, "items", checks.integer("items", self.items, 1, unit="threads"))
        block = checks.integer("block", self.block, LANES, 1024, unit="threads")
        if block % LANES:
            raise ValueError(f"block = {block} threads; allowed: a multiple of {LANES}, the lanes of a warp")
        object.__setattr__(self, "block", block)
        for name, least, most, unit in (("registers", 1, 255, ""), ("shared", 0, 2**20, "bytes")):
            object.__setattr__(self, name, checks.integer(name, getattr(self, name), least, most, unit=unit))
        for name in ("loads_of", "drawn_of"):
            if getattr(self, name) is not None or name == "loads_of":
                allowed = "a function of numbers of warps that returns WarpLoads"
                checks.function(name, getattr(self, name), allowed)

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
        cls,
        accesses: Sequence[Access],
        block: int = 256,
        registers: int = 32,
        shared: int = 0,
        arrays: Mapping[str, int] | None = None,
    ) -> LoadStream:
        """Make the stream of a kernel from the elements that its threads take.

        Neighbouring accesses with as many columns are one loop: the first column of each, in the order of the
        accesses, then the second column of each.

        Args:
            accesses: in the order of the instructions, with an element for each thread. Their arrays are read
                when the stream is.
            block: threads of a block.
            registers: of a thread.
            shared: bytes of shared memory of a block.
            arrays: bytes of each array, in the order in which they are in memory, so that kernels with the
                same arrays can be followed one after the other (`l2`). None for the arrays of the accesses,
                in the order of their first use, as long as the accesses need.

        Raises:
            TypeError: no accesses, or bytes that are no integer.
            ValueError: none, elements of different numbers of threads, or elements beyond their array or the
                addresses of a device.

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
        lengths = {len(one.element) for one in found}
        if len(lengths) != 1 or not all(one.element.size for one in found):
            raise ValueError(
                f"accesses of {sorted(lengths) or 'no'} threads; allowed: one or more accesses, all with an "
                "element for each of as many threads"
            )
        instructions = [*_instructions(found, _placed(found, arrays))]
        return cls(lengths.pop(), block, partial(_of_arrays, instructions), registers, shared)


class Access(NamedTuple):
    """Elements of one array that the threads of a kernel take in an instruction, or in several.

    Attributes:
        array: name of the array; accesses of the same name take from the same array.
        element: (n,) or (n, k) integers: number of the element that each thread takes, or of the k that it
            takes in turn; negative for none.
        itemsize: bytes of an element, which a thread takes at once: 1, 2, 4, 8 or 16.
        kind: "read", "written", or "added" by an atomic operation.
        waits: whether the warp waits for the accesses before, as they give the element, or what is stored.
    """

    array: str
    element: np.ndarray
    itemsize: int
    kind: str = "read"
    waits: bool = False


class Instruction(NamedTuple):
    """One instruction of all threads.

    Attributes:
        element: (n, k) integers, of which each thread takes one column; negative for nothing.
        column: number of the column.
        base: address of the array, in bytes.
        itemsize: bytes of an element.
        kind: `READ`, `WRITTEN` or `ADDED`.
        waits: whether the warp waits for the instructions before.
    """

    element: np.ndarray
    column: int
    base: int
    itemsize: int
    kind: int
    waits: bool


def _checked(access: Access) -> Access:
    """Check an access, and return it with its elements as (n, k)."""
    remedy = "make sfc.cache.Access(array, element, itemsize)"
    checks.instance("accesses", access, Access, "Access tuples", remedy)
    name = checks.text("array of an Access", access.array)
    element = np.asarray(access.element)
    shape = ("n", "k") if element.ndim == 2 else ("n",)
    element = checks.array(f"element of {name}", element, "iu", checks.INTEGERS, shape)
    size = checks.integer(f"itemsize of {name}", access.itemsize, 1, 16, unit="bytes")
    if size & (size - 1):
        raise ValueError(f"itemsize of {name} = {size} bytes; allowed: 1, 2, 4, 8 or 16; take more accesses")
    checks.word(f"kind of {name}", access.kind, KINDS)
    most = int(element.max(initial=0))
    if most >= MOST_BYTES // size:
        raise ValueError(f"element of {name} up to {most}; allowed: below {MOST_BYTES // size}, in the array")
    checks.flag(f"waits of {name}", access.waits)
    return access._replace(itemsize=size, element=np.atleast_2d(element.T).T)


def _placed(found: Sequence[Access], arrays: Mapping[str, int] | None) -> dict[str, int]:
    """Return the address of each array."""
    needed: dict[str, int] = {}
    for one in found:
        end = (int(one.element.max(initial=-1)) + 1) * one.itemsize
        needed[one.array] = max(needed.get(one.array, 0), end)
    extents = dict(needed if arrays is None else arrays)
    for name, end in needed.items():
        if name not in extents:
            known = ", ".join(extents) or "none"
            raise ValueError(f"array {name!r}; allowed: {known}; add its bytes to arrays")
        extents[name] = checks.integer(f"bytes of {name}", extents[name], end, MOST_BYTES, unit="bytes")
    return dict(zip(extents, starts_of([*extents.values()]).tolist(), strict=True))


def starts_of(sizes: Sequence[int]) -> np.ndarray:
    """Return the addresses of arrays that follow each other in memory, for their bytes: (arrays,) int64."""
    aligned = -(-np.array(sizes, np.int64) // ALIGNED) * ALIGNED
    return np.cumsum(aligned) - aligned


def _instructions(found: Sequence[Access], base: Mapping[str, int]) -> Iterator[Instruction]:
    """Yield the instructions of a thread, loop by loop."""
    for columns, loop in groupby(found, key=lambda one: one.element.shape[1]):
        together = [*loop]
        for k in range(columns):
            for one in together:
                place = base[one.array], one.itemsize
                yield Instruction(one.element, k, *place, KINDS[one.kind], one.waits)


def _of_arrays(instructions: Sequence[Instruction], warps: np.ndarray) -> WarpLoads:
    """Return the loads of some warps of a kernel that is given by arrays."""
    items = warps[:, None] * LANES + np.arange(LANES)
    is_there = items < len(instructions[0].element)
    items = np.where(is_there, items, 0)
    address = np.empty((len(warps), len(instructions), LANES), np.int64)
    for k, one in enumerate(instructions):
        element = one.element[items, one.column].astype(np.int64)
        address[:, k] = np.where(is_there & (element >= 0), one.base + one.itemsize * element, -1)
    return WarpLoads.of(address, [one.waits for one in instructions], [one.kind for one in instructions])
