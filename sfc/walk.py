"""Walking an automaton on the host: tables of several levels at a look-up, and the loops over points.

Contract. A merged table of `levels` levels has, for each state and each block of that many levels, one
entry: `next_state * cells + code`, with `cells = base**(dim * levels)`. Blocks of cells are numbered with
axis 0 the least significant, `sum(block[k] * base**(levels * k))`. A walk takes the top `order % levels`
levels from a table of their own, then whole blocks. Every loop is compiled once for each dim: `axes` is a
tuple of that length, whose length the compiler knows.
"""

import numba
import numpy as np

from sfc.compile import compiler

kernel = compiler("sfc")
BITS = 9  # of a block's number, about; larger tables leave the L1 cache


def levels_at_once(dim: int, base: int, states: int) -> int:
    """How many levels to merge: tables of about 2**BITS entries a state, and 2**16 entries in all."""
    levels = 1
    while base ** (dim * (levels + 1)) <= 2**BITS and states * base ** (dim * (levels + 1)) <= 2**16:
        levels += 1
    return levels


def merged(cell: np.ndarray, succ: np.ndarray, dim: int, base: int, levels: int):
    """The merged tables of an automaton.

    Args:
        cell: (states, base**dim) cell digit of each position.
        succ: (states, base**dim) state inside each position.
        dim: dimensions.
        base: of a digit.
        levels: how many to merge, 0 or more.

    Returns:
        encode, decode: (states * base**(dim * levels),) uint32, entries of positions by cell block and
        of cell blocks by position.
    """
    states, width = cell.shape
    cells = width**levels
    position = np.tile(np.arange(cells, dtype=np.int64), states)
    origin = np.repeat(np.arange(states), cells)
    state, block = origin, np.zeros(states * cells, np.int64)
    for level in range(levels):
        step = position // width ** (levels - 1 - level) % width
        digit = cell[state, step].astype(np.int64)
        for k in range(dim):
            block += digit // base**k % base * base ** (levels * k + levels - 1 - level)
        state = succ[state, step].astype(np.int64)
    decode = state * cells + block
    encode = np.empty_like(decode)
    encode[origin * cells + block] = state * cells + position
    return encode.astype(np.uint32), decode.astype(np.uint32)


@kernel(parallel=True)
def encode_bits(cells, order, levels, first, table, axes, start, index):
    """Fill `index` for base 2; return the first row outside the grid, or the number of rows."""
    n, dim = len(cells), len(axes)
    bad = n
    rest = order % levels
    for i in numba.prange(n):
        any_bits = np.uint64(0)
        for k in range(dim):
            any_bits |= cells[i, k]
        if any_bits < np.uint64(1) << np.uint64(order):
            state, code, shift = np.uint32(start), np.uint64(0), np.uint64(order)
            for _ in range(rest > 0):
                shift -= np.uint64(rest)
                state, code = _gather(cells, i, axes, shift, rest, first, state, code)
            for _ in range(order // levels):
                shift -= np.uint64(levels)
                state, code = _gather(cells, i, axes, shift, levels, table, state, code)
            index[i] = code
        else:
            bad = min(bad, i)
    return bad


@kernel
def _gather(cells, i, axes, shift, levels, table, state, code):
    dim = len(axes)
    width = np.uint32(levels * dim)
    block = np.uint32(0)
    for k in range(dim):
        digits = (cells[i, k] >> shift) & np.uint64((1 << levels) - 1)
        block |= np.uint32(digits) << np.uint32(k * levels)
    entry = table[(state << width) | block]
    position = entry & np.uint32((1 << (levels * dim)) - 1)
    return entry >> width, (code << np.uint64(width)) | np.uint64(position)


@kernel(parallel=True)
def decode_bits(index, order, levels, last, first, table, axes, start, cells):
    """Fill `cells` for base 2; return the first row past the end of the curve, or the number of rows."""
    n, dim = len(index), len(axes)
    bad = n
    rest = order % levels
    for i in numba.prange(n):
        if index[i] <= last:
            state, shift = np.uint32(start), np.uint64(order * dim)
            for k in range(dim):
                cells[i, k] = 0
            for _ in range(rest > 0):
                shift -= np.uint64(rest * dim)
                state = _scatter(index[i] >> shift, cells, i, axes, rest, first, state)
            for _ in range(order // levels):
                shift -= np.uint64(levels * dim)
                state = _scatter(index[i] >> shift, cells, i, axes, levels, table, state)
        else:
            bad = min(bad, i)
    return bad


@kernel
def _scatter(code, cells, i, axes, levels, table, state):
    dim = len(axes)
    width = np.uint32(levels * dim)
    position = np.uint32(code & np.uint64((1 << (levels * dim)) - 1))
    entry = table[(state << width) | position]
    for k in range(dim):
        digits = (entry >> np.uint32(k * levels)) & np.uint32((1 << levels) - 1)
        cells[i, k] = (cells[i, k] << np.int64(levels)) | np.int64(digits)
    return entry >> width


@kernel(parallel=True)
def encode_digits(cells, side, order, base, levels, first, table, axes, start, index):
    """As `encode_bits`, for any base; `side` is base**order."""
    n, dim = len(cells), len(axes)
    bad = n
    block_side = np.uint64(base**levels)
    block_cells = np.uint64(base ** (levels * dim))
    rest = order % levels
    rest_side, rest_cells = np.uint64(base**rest), np.uint64(base ** (rest * dim))
    for i in numba.prange(n):
        inside = True
        for k in range(dim):
            inside &= cells[i, k] < side
        if inside:
            scale, code = side // rest_side, np.uint64(0)
            block = np.uint64(0)
            for k in range(dim - 1, -1, -1):
                block = block * rest_side + cells[i, k] // scale
            entry = np.uint64(first[np.uint64(start) * rest_cells + block])
            state, code = entry // rest_cells, entry % rest_cells
            for _ in range(order // levels):
                scale //= block_side
                block = np.uint64(0)
                for k in range(dim - 1, -1, -1):
                    block = block * block_side + cells[i, k] // scale % block_side
                entry = np.uint64(table[state * block_cells + block])
                state, code = entry // block_cells, code * block_cells + entry % block_cells
            index[i] = code
        else:
            bad = min(bad, i)
    return bad


@kernel(parallel=True)
def decode_digits(index, order, base, levels, last, first, table, axes, start, cells):
    """As `decode_bits`, for any base."""
    n, dim = len(index), len(axes)
    bad = n
    block_side = np.uint64(base**levels)
    block_cells = np.uint64(base ** (levels * dim))
    rest = order % levels
    rest_side, rest_cells = np.uint64(base**rest), np.uint64(base ** (rest * dim))
    for i in numba.prange(n):
        if index[i] <= last:
            scale = np.uint64(1)
            for _ in range(order // levels):
                scale *= block_cells
            code = index[i]
            entry = np.uint64(first[np.uint64(start) * rest_cells + code // scale])
            code %= scale
            state, block = entry // rest_cells, entry % rest_cells
            for k in range(dim):
                cells[i, k] = np.int64(block % rest_side)
                block //= rest_side
            for _ in range(order // levels):
                scale //= block_cells
                entry = np.uint64(table[state * block_cells + code // scale])
                code %= scale
                state, block = entry // block_cells, entry % block_cells
                for k in range(dim):
                    cells[i, k] = cells[i, k] * np.int64(block_side) + np.int64(block % block_side)
                    block //= block_side
        else:
            bad = min(bad, i)
    return bad
