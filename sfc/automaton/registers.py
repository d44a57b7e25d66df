"""Encoding and decoding on hosts with AVX-512 VBMI or AVX2: tables in registers, 64 points at a time.

Contract. A table of a curve of base 2 merges `levels` levels, as in `sfc.automaton.walk`, but an entry is one
byte: the next state shifted left by `dim * levels`, and below it the code, the position along the curve or,
to decode, the bits of the coordinates. It is addressed by the state of the entry before and the next code.
A table of up to 256 entries fits four registers of 64 bytes; one instruction of AVX-512 VBMI looks up 64
entries in two of them. One of AVX2 looks up 32 entries in 16 bytes, so that a table takes one for each of
its slices of 16 bytes, and a selection by the upper bits. With AVX-512 VBMI a table of up to 512 entries is
stored as two, of states and of codes, because an entry has more than eight bits. A point's coordinates and
its index are byte planes: vectors of one byte of each of 64 points.

Kernels are compiled for one `Layout`, passed as tuples of these lengths: lengths are constants for the
compiler. Bytes are addressed as on x86-64, lowest first.
"""

from __future__ import annotations

import os
from collections.abc import Sequence
from functools import cache, reduce
from typing import Any, NamedTuple

import numpy as np
from llvmlite import ir
from numba import types
from numba.extending import intrinsic

from sfc.automaton import walk
from sfc.compile import in_threads, kernel, thread_count
from sfc.compile.numba_internals import cgutils, processor

POINTS = 64  # of a block: one byte of each fills a register
NARROW, MOST_ENTRIES = 256, 512  # entries of a table of one byte each, and of any: 4 and 16 registers
BANK_BITS = 7
BANK = 1 << BANK_BITS  # entries in two registers
SWITCH = "SFC_REGISTERS"  # environment variable: 0 for no tables in registers
VBMI, AVX2 = "AVX-512 VBMI", "AVX2"
FEATURES = {VBMI: ("avx512f", "avx512bw", "avx512vbmi"), AVX2: ("avx2",)}
SLICE = 16  # bytes of a table in which an instruction of AVX2 looks up
FEWEST = 2**20  # points of a call that uses them: a kernel for an order and a dtype compiles for a second


@cache
def instructions() -> str | None:
    """Return the best of `FEATURES` that Numba compiles for; None without one, or if `SFC_REGISTERS` is 0."""
    features = processor()[2].split(",")
    if os.environ.get(SWITCH, "1") == "0":
        return None
    return next((name for name, its in FEATURES.items() if all(f"+{one}" in features for one in its)), None)


def levels_in_registers(dim: int, states: int) -> int:
    """Return the levels of a table in registers; 0 if none fits.

    As many as one register holds; or else one level, in up to sixteen registers, or in up to four of AVX2.
    """
    levels = 1
    while states << dim * (levels + 1) <= POINTS:
        levels += 1
    is_narrow = dim * levels > BANK_BITS or instructions() == AVX2
    return levels if states << dim * levels <= (NARROW if is_narrow else MOST_ENTRIES) else 0


class Layout(NamedTuple):
    """Numbers for which a kernel is compiled.

    Attributes:
        dim: dimensions.
        size: bytes of a coordinate in memory.
        width: bytes of an index in memory.
        order: of the curve.
        levels: of a look-up; the first one has `order % levels`, if that is not 0.
        registers: of 64 bytes that hold the table: 1, 2 or 4; of more than 256 entries, 4 for each `BANK`.
        checked: bits of a coordinate, or of an index to decode, that may be set.
        window: bytes of a table in which one instruction looks up: 64 of AVX-512 VBMI, 16 of AVX2.
    """

    dim: int
    size: int
    width: int
    order: int
    levels: int
    registers: int
    checked: int
    window: int


class RegisterTables(NamedTuple):
    """Tables of a curve for one order.

    Attributes:
        levels: of a look-up.
        registers: of 64 bytes that hold the table.
        start: state of the whole cube; of a table of up to 256 entries shifted left by `dim * levels`.
        encode: (64 + 64 registers,) uint8: first table, then that of `levels` levels; of more than 256
            entries, half of it states and half codes.
        decode: the same to decode.
    """

    levels: int
    registers: int
    start: int
    encode: np.ndarray
    decode: np.ndarray


def tables(cell: np.ndarray, succ: np.ndarray, dim: int, start: int, order: int) -> RegisterTables | None:
    """Make the tables of a curve of base 2; None if they do not fit.

    Args:
        cell: (states, 2**dim) cell digit of each position.
        succ: (states, 2**dim) state inside each position.
        dim: dimensions.
        start: the state of the whole cube.
        order: of the curve.
    """
    states = len(cell)
    levels = levels_in_registers(dim, states)
    if levels == 0:
        return None
    bits, rest = dim * levels, dim * (order % levels)
    entries = states << bits
    banks = -(-entries // BANK)
    registers = 1 if entries <= POINTS else 2 * banks if entries <= NARROW else 4 * banks
    made = []
    for first, table in zip(
        walk.merged(cell, succ, dim, 2, order % levels), walk.merged(cell, succ, dim, 2, levels), strict=True
    ):
        both = np.zeros(POINTS * (1 + registers), np.uint8)
        own = first[start << rest : (start + 1) << rest].astype(np.int64)
        if entries <= NARROW:
            both[: 1 << rest] = (own >> rest << bits) | (own & ((1 << rest) - 1))
            both[POINTS : POINTS + entries] = table
        else:
            both[POINTS : POINTS + entries] = table >> bits
            both[POINTS + BANK * banks :][:entries] = table & ((1 << bits) - 1)
        made.append(both)
    return RegisterTables(levels, registers, start << bits if entries <= NARROW else start, *made)


def encode(cells: np.ndarray, order: int, curve: RegisterTables, index: np.ndarray) -> bool:
    """Compute the index of each cell along the curve.

    Args:
        cells: (n, dim) contiguous integers.
        order: of the curve, above 0.
        curve: its tables for that order.
        index: (n,) contiguous integers of dim * order bits or more, filled.

    Returns:
        Whether all cells are in the grid.
    """
    sizes = cells.shape[1], cells.itemsize, index.itemsize, order
    return _in_blocks(encode_blocks, cells, order, index, sizes, curve, curve.encode)


def decode(index: np.ndarray, order: int, curve: RegisterTables, cells: np.ndarray) -> bool:
    """Compute the cell at each index along the curve.

    Args:
        index: (n,) contiguous integers.
        order: of the curve, above 0.
        curve: its tables for that order.
        cells: (n, dim) contiguous integers of `order` bits or more, filled.

    Returns:
        Whether all indices are below the length of the curve.
    """
    sizes = cells.shape[1], cells.itemsize, index.itemsize, order
    return _in_blocks(decode_blocks, index, cells.shape[1] * order, cells, sizes, curve, curve.decode)


def _in_blocks(
    blocks: Any,
    given: np.ndarray,
    bits: int,
    out: np.ndarray,
    sizes: tuple[int, int, int, int],
    curve: RegisterTables,
    table: np.ndarray,
) -> bool:
    """Run a kernel over whole blocks, and over the rest in a block of its own.

    Args:
        blocks: the kernel.
        given: cells or indices.
        bits: of a number given that may be set; its sign may not.
        out: indices or cells, filled.
        sizes: the first four numbers of a `Layout`.
        curve: its tables.
        table: the one for this kernel.
    """
    n = len(given)
    if n == 0:
        return True
    checked = min(bits, 8 * given.itemsize - (given.dtype.kind == "i"))
    window = SLICE if instructions() == AVX2 else POINTS
    layout = Layout(*sizes, curve.levels, curve.registers, checked, window)
    whole, start, lengths = n // POINTS, np.uint8(curve.start), tuple((0,) * number for number in layout)
    if not given.flags.writeable:
        given = given.copy()  # Numba compiles a second version for read-only arrays
    given, out = (values.view(np.uint8).reshape(n, -1) for values in (given, out))
    flat = given[: POINTS * whole].reshape(-1), out[: POINTS * whole].reshape(-1)
    parts = thread_count()

    def run(part: int) -> int:
        first, last = part * whole // parts, (part + 1) * whole // parts
        return blocks(*flat, table, start, first, last, lengths)

    is_good = not any(in_threads(run, range(parts if whole else 0)))
    if n % POINTS:
        last = [np.zeros((POINTS, values.shape[1]), np.uint8) for values in (given, out)]
        last[0][: n % POINTS] = given[POINTS * whole :]
        seen = blocks(*(values.reshape(-1) for values in last), table, start, 0, 1, lengths)
        out[POINTS * whole :] = last[1][: n % POINTS]
        is_good = is_good and not seen
    return is_good


@kernel
def encode_blocks(cells, index, table, start, first, last, layout):
    """Encode a range of blocks of 64 cells.

    Args:
        cells: bytes of the cells.
        index: bytes of the indices, filled.
        table: `RegisterTables.encode`.
        start: uint8, `RegisterTables.start`.
        first: first block.
        last: the block after the last one.
        layout: for each number of a `Layout`, a tuple of that length.

    Returns:
        int64, not 0 if a cell of the range is outside the grid.
    """
    return encode_range(cells, index, table, start, first, last, layout)


@kernel
def decode_blocks(index, cells, table, start, first, last, layout):
    """Decode a range of blocks of 64 indices; arguments as for `encode_blocks`."""
    return decode_range(index, cells, table, start, first, last, layout)


@intrinsic
def encode_range(typing, cells, index, table, start, first, last, layout):
    """Encode the blocks first .. last - 1; return a number that is not 0 if a cell is outside the grid."""
    return _over_blocks(_encode_block, cells, index, table, start, first, last, layout)


@intrinsic
def decode_range(typing, index, cells, table, start, first, last, layout):
    """Decode the blocks first .. last - 1; return a number that is not 0 if an index is past the end."""
    return _over_blocks(_decode_block, index, cells, table, start, first, last, layout)


def _over_blocks(work: Any, *kinds: Any) -> tuple[Any, Any]:
    """Return the signature and the code of a loop over blocks; a block's code is made by `work`."""
    numbers = Layout(*(kind.count for kind in kinds[6]))
    word = ir.IntType(64)

    def generate(context: Any, builder: Any, signature: Any, arguments: Any) -> Any:
        given, out, table = (
            builder.bitcast(
                context.make_array(kind)(context, builder, value).data, ir.IntType(8).as_pointer()
            )
            for kind, value in zip(signature.args[:3], arguments[:3], strict=True)
        )
        tables = [load(builder, table, word(POINTS * k)) for k in range(1 + numbers.registers)]
        start = repeated(builder, arguments[3])
        seen = cgutils.alloca_once_value(builder, constant([0] * POINTS))
        with cgutils.for_range_slice(builder, arguments[4], arguments[5], word(1)) as (block, _):
            flags = work(builder, numbers, given, out, block, tables, start)
            builder.store(builder.or_(builder.load(seen), flags), seen)
        are_set = builder.icmp_unsigned("!=", builder.load(seen), constant([0] * POINTS))
        return builder.bitcast(are_set, word)

    return types.int64(*kinds), generate


def _steps(n: Layout) -> list[tuple[int, int]]:
    """List the look-ups from the top: the levels below each, and those in it."""
    return [(level, min(n.levels, n.order - level)) for level in reversed(range(0, n.order, n.levels))]


def _encode_block(
    builder: Any, n: Layout, given: Any, out: Any, block: Any, tables: list[Any], state: Any
) -> Any:
    """Make the code that encodes a block; return the bits that no cell of the grid has."""
    rows = [load(builder, given, place(builder, block, n.dim * n.size, k)) for k in range(n.dim * n.size)]
    bytes_of_axis = range(min(-(-n.order // 8), n.size))
    planes = [
        [gathered(builder, n, rows, n.dim * n.size, n.size * axis + byte) for byte in bytes_of_axis]
        for axis in range(n.dim)
    ]
    codes = []
    for level, count in _steps(n):
        digits = (shifted(builder, field(builder, planes[k], level, count), count * k) for k in range(n.dim))
        number = reduce(builder.or_, digits)
        code, state = stepped(builder, n, tables, None if count < n.levels else state, number)
        codes.append((n.dim * level, n.dim * count, code))
    places = [gathered_bits(builder, codes, 8 * byte) for byte in range(n.width)]
    scatter(builder, n, places, out, block)
    return beyond(builder, rows, n.size, n.checked)


def _decode_block(
    builder: Any, n: Layout, given: Any, out: Any, block: Any, tables: list[Any], state: Any
) -> Any:
    """Make the code that decodes a block; return the bits that no index of the curve has."""
    rows = [load(builder, given, place(builder, block, n.width, k)) for k in range(n.width)]
    bits = n.dim * n.order
    planes = [gathered(builder, n, rows, n.width, byte) for byte in range(min(-(-bits // 8), n.width))]
    codes: list[list[Any]] = [[] for _ in range(n.dim)]
    for level, count in _steps(n):
        number = field(builder, planes, n.dim * level, n.dim * count)
        code, state = stepped(builder, n, tables, None if count < n.levels else state, number)
        for axis in range(n.dim):
            codes[axis].append((level, count, shifted(builder, code, -count * axis)))
    places = [gathered_bits(builder, own, 8 * byte) for own in codes for byte in range(n.size)]
    scatter(builder, n, places, out, block)
    return beyond(builder, rows, n.width, n.checked)


def stepped(builder: Any, n: Layout, tables: list[Any], state: Any, number: Any) -> tuple[Any, Any]:
    """Return the code and the state after a step.

    Args:
        builder: LLVM's builder.
        n: the layout.
        tables: all registers, that of the first table first.
        state: before the step; None for a first step of fewer levels.
        number: of the block of cells, or the position along the curve. Bits of the code above those that
            count are those of the state.
    """
    bits = n.dim * n.levels
    if state is None:
        entry = looked_up(builder, n, tables[:1], number)
    elif POINTS * n.registers <= NARROW:
        entry = looked_up(builder, n, tables[1:], builder.or_(number, state))
    else:
        number = builder.or_(number, masked(builder, shifted(builder, state, bits), BANK - 1))
        half, bank = n.registers // 2, shifted(builder, state, bits - BANK_BITS)
        after, code = (
            looked_up_in_banks(builder, tables[1 + first : 1 + first + half], number, bank)
            for first in (0, half)
        )
        return code, after
    return entry, masked(builder, entry, 256 - (1 << bits))


def looked_up_in_banks(builder: Any, table: list[Any], number: Any, bank: Any) -> Any:
    """Return entries of a table of several banks, by the number in a bank and the number of the bank."""
    found = of_two(builder, table[0], table[1], number)
    for k in range(1, len(table) // 2):
        is_here = builder.icmp_unsigned("==", bank, constant([k] * POINTS))
        found = builder.select(is_here, of_two(builder, table[2 * k], table[2 * k + 1], number), found)
    return found


def _plane() -> ir.VectorType:
    """Return the type of a register: a byte of each point."""
    return ir.VectorType(ir.IntType(8), POINTS)


def constant(values: Sequence[int]) -> ir.Constant:
    """Return a plane of constants."""
    return ir.Constant(_plane(), [ir.Constant(ir.IntType(8), value & 255) for value in values])


def repeated(builder: Any, value: Any) -> Any:
    """Return a plane with the same byte for each point."""
    zero = ir.Constant(ir.IntType(32), 0)
    one = builder.insert_element(ir.Constant(_plane(), ir.Undefined), value, zero)
    every = ir.Constant(ir.VectorType(ir.IntType(32), POINTS), [zero] * POINTS)
    return builder.shuffle_vector(one, ir.Constant(_plane(), ir.Undefined), every)


def place(builder: Any, block: Any, registers: int, k: int) -> Any:
    """Return the number of the first byte of register k of a block of so many registers."""
    word = ir.IntType(64)
    return builder.add(builder.mul(block, word(POINTS * registers)), word(POINTS * k))


def load(builder: Any, data: Any, place: Any) -> Any:
    """Load a register from any address."""
    found = builder.load(builder.bitcast(builder.gep(data, [place]), _plane().as_pointer()))
    found.align = 1
    return found


def masked(builder: Any, plane: Any, mask: int) -> Any:
    """Return the bits of a plane under a mask."""
    return builder.and_(plane, constant([mask] * POINTS))


def shifted(builder: Any, plane: Any, bits: int) -> Any:
    """Shift each byte to the left, or to the right by a negative number of bits."""
    if bits == 0:
        return plane
    shift = builder.shl if bits > 0 else builder.lshr
    return shift(plane, constant([abs(bits)] * POINTS))


def field(builder: Any, planes: list[Any], low: int, count: int) -> Any:
    """Return bits low .. low + count - 1 of numbers of several planes; those beyond the planes are 0."""
    byte, bit = divmod(low, 8)
    if byte >= len(planes):
        return constant([0] * POINTS)
    found = shifted(builder, planes[byte], -bit)
    if bit + count > 8 and byte + 1 < len(planes):
        found = builder.or_(found, shifted(builder, planes[byte + 1], 8 - bit))
    return masked(builder, found, (1 << count) - 1)


def gathered_bits(builder: Any, codes: list[Any], low: int) -> Any | None:
    """Return bits low .. low + 7 of numbers made of (lowest bit, bits, plane); None if all are 0."""
    inside = [code for code in codes if code[0] < low + 8 and code[0] + code[1] > low]
    parts = (
        shifted(builder, masked(builder, plane, (1 << count) - 1), first - low)
        for first, count, plane in inside
    )  # a generator: each is combined at once, which takes fewer registers
    return reduce(builder.or_, parts) if inside else None


def looked_up(builder: Any, n: Layout, table: list[Any], number: Any) -> Any:
    """Return the entries of a table of one, two or four registers."""
    if n.window == SLICE:
        return looked_up_in_slices(builder, table, number)
    if len(table) == 1:
        return _call(builder, "llvm.x86.avx512.permvar.qi.512", table[0], number)
    low = of_two(builder, table[0], table[1], number)
    if len(table) == 2:
        return low
    high = of_two(builder, table[2], table[3], number)
    return builder.select(has_bit(builder, number, 7), high, low)


def of_two(builder: Any, one: Any, other: Any, number: Any) -> Any:
    """Return bytes of two registers, by their numbers modulo 128, with AVX-512 VBMI."""
    return _call(builder, "llvm.x86.avx512.vpermi2var.qi.512", one, number, other)


def looked_up_in_slices(builder: Any, table: list[Any], number: Any) -> Any:
    """Return the entries of a table of one, two or four registers, with a look-up in each slice of it."""
    in_slice = masked(builder, number, SLICE - 1)
    found = [
        _in_slice(builder, _part(builder, register, SLICE * k, SLICE), in_slice)
        for register in table
        for k in range(POINTS // SLICE)
    ]
    bit = SLICE.bit_length() - 1
    while len(found) > 1:
        is_upper = has_bit(builder, number, bit)
        found = [builder.select(is_upper, b, a) for a, b in zip(found[::2], found[1::2], strict=True)]
        bit += 1
    return found[0]


def _in_slice(builder: Any, entries: Any, number: Any) -> Any:
    """Look up each byte of a plane in 16 bytes, by an instruction for each half of the plane."""
    half = POINTS // 2
    twice = builder.shuffle_vector(entries, entries, _numbers([*range(SLICE)] * (half // SLICE)))
    halves = [
        _call(builder, "llvm.x86.avx2.pshuf.b", twice, _part(builder, number, first, half))
        for first in (0, half)
    ]
    return builder.shuffle_vector(*halves, _numbers(range(POINTS)))


def _part(builder: Any, plane: Any, first: int, count: int) -> Any:
    """Return bytes first .. first + count - 1 of a plane."""
    return builder.shuffle_vector(plane, plane, _numbers(range(first, first + count)))


def _numbers(values: Sequence[int]) -> ir.Constant:
    """Return the constant places of a shuffle."""
    word = ir.IntType(32)
    return ir.Constant(ir.VectorType(word, len(values)), [ir.Constant(word, value) for value in values])


def has_bit(builder: Any, plane: Any, bit: int) -> Any:
    """Return which bytes have a bit."""
    return builder.icmp_signed("<", shifted(builder, plane, 7 - bit), constant([0] * POINTS))


def of_two_in_order(builder: Any, n: Layout, one: Any, other: Any, numbers: Sequence[int]) -> Any:
    """Return bytes of two registers, by constant numbers below 128."""
    if n.window == SLICE:
        return builder.shuffle_vector(one, other, _numbers(numbers))
    return of_two(builder, one, other, constant(numbers))


def _call(builder: Any, name: str, *planes: Any) -> Any:
    kind = ir.FunctionType(planes[0].type, [planes[0].type] * len(planes))
    return builder.call(cgutils.get_or_insert_function(builder.module, kind, name), planes)


def merged(builder: Any, found: Any, new: Any, is_new: Sequence[bool]) -> Any:
    """Take the bytes of `new` where constants say so; all of them if nothing was found before."""
    if found is None:
        return new
    bit = ir.IntType(1)
    mask = ir.Constant(ir.VectorType(bit, POINTS), [ir.Constant(bit, int(one)) for one in is_new])
    return builder.select(mask, new, found)


def gathered(builder: Any, n: Layout, rows: list[Any], stride: int, offset: int) -> Any:
    """Return the plane of the bytes offset, offset + stride, ... of successive registers."""
    places, found = [stride * point + offset for point in range(POINTS)], None
    for k in range(0, len(rows), 2):
        inside = [POINTS * k <= place < POINTS * (k + 2) for place in places]
        numbers = [place - POINTS * k if own else 0 for place, own in zip(places, inside, strict=True)]
        if any(inside):
            new = of_two_in_order(builder, n, rows[k], rows[min(k + 1, len(rows) - 1)], numbers)
            found = merged(builder, found, new, inside)
    return found


def scatter(builder: Any, n: Layout, planes: list[Any], out: Any, block: Any) -> None:
    """Store planes as successive bytes of each point; a plane that is None has zeros."""
    stride, zeros = len(planes), constant([0] * POINTS)
    for k in range(stride):
        places = [divmod(POINTS * k + byte, stride) for byte in range(POINTS)]
        found = zeros
        for first in range(0, stride, 2):
            two = planes[first : first + 2]
            if all(plane is None for plane in two):
                continue
            inside = [plane in (first, first + 1) for _, plane in places]
            numbers = [
                point + POINTS * (plane - first) if own else 0
                for (point, plane), own in zip(places, inside, strict=True)
            ]
            given = [zeros if plane is None else plane for plane in two]
            new = of_two_in_order(builder, n, given[0], given[-1], numbers)
            found = merged(builder, None if all(inside) else found, new, inside)
        pointer = builder.gep(out, [place(builder, block, stride, k)])
        builder.store(found, builder.bitcast(pointer, _plane().as_pointer())).align = 1


def beyond(builder: Any, rows: list[Any], size: int, checked: int) -> Any:
    """Return the bits of numbers of `size` bytes that may not be set."""
    mask = ((1 << 8 * size) - (1 << checked)).to_bytes(size, "little")
    if not any(mask):
        return constant([0] * POINTS)
    return builder.and_(reduce(builder.or_, rows), constant(list(mask) * (POINTS // size)))
