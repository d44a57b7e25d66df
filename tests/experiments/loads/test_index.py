"""Loads of kernels that take elements by an index: those of a plain loop over the lanes of each warp."""

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st
from scipy.sparse import csr_array

from experiments.loads.index import gather_loads, scatter_loads, spmv_loads
from experiments.loads.sparse import csr_loads
from experiments.measurement.kernels.index_kernels import BLOCK, REGISTERS
from sfc import cache
from sfc.cache.loads import ADDED, ALIGNED, LANES, READ, WRITTEN, LoadStream

SEEDS = st.integers(0, 2**32)


def events_of(stream: LoadStream) -> list[list[tuple]]:
    """Addresses, whether the warp waits, and kind, of each event of each warp."""
    loads = stream.loads_of(np.arange(stream.warps))
    lanes = map(np.ndarray.tolist, np.split(loads.address, loads.start[1:-1]))
    events = [*zip(lanes, loads.waits.tolist(), loads.kind.tolist(), strict=True)]
    return [events[i:j] for i, j in zip(loads.first, loads.first[1:], strict=False)]


def starts(*sizes: int) -> list[int]:
    found, place = [], 0
    for size in sizes:
        found.append(place)
        place += -(-size // ALIGNED) * ALIGNED
    return found


def lanes_of(n: int) -> list[range]:
    return [range(first, min(n, first + LANES)) for first in range(0, n, LANES)]


@given(st.integers(1, 90), st.integers(1, 5), st.integers(1, 500), st.sampled_from([4, 8, 16]), SEEDS)
def test_a_gather_loads_an_entry_and_its_row_in_turn(n, reads, rows, size, seed):
    index = np.random.default_rng(seed).integers(0, rows, (n, reads))
    entry, x, y = starts(4 * n * reads, size * (int(index.max()) + 1), 0)
    expected = []
    for own in lanes_of(n):
        events = []
        for k in range(reads):
            events.append(([entry + 4 * (k * n + i) for i in own], True, READ))
            events.append(([x + size * int(index[i, k]) for i in own], True, READ))
        expected.append([*events, ([y + size * i for i in own], True, WRITTEN)])
    assert events_of(gather_loads(index, size)) == expected


@given(st.integers(1, 90), st.integers(1, 500), st.sampled_from([4, 8]), SEEDS)
def test_a_scatter_loads_entry_and_value_together_and_adds(n, cells, size, seed):
    index = np.random.default_rng(seed).integers(0, cells, n)
    entry, value, total = starts(4 * n, size * n, 0)
    expected = [
        [
            ([entry + 4 * i for i in own], False, READ),
            ([value + size * i for i in own], False, READ),
            ([total + size * int(index[i]) for i in own], True, ADDED),
        ]
        for own in lanes_of(n)
    ]
    assert events_of(scatter_loads(index, size)) == expected


@pytest.mark.parametrize("dtype", ["float32", "float64"])
def test_a_product_has_the_loads_of_the_scalar_kernel(dtype):
    there = np.random.default_rng(0).random((70, 30)) < 0.2
    matrix = csr_array(there.astype(dtype))
    found = spmv_loads(matrix)
    assert events_of(found) == events_of(csr_loads(matrix))
    assert (found.block, found.registers) == (BLOCK, REGISTERS["spmv"][matrix.dtype.itemsize])


def test_blocks_and_registers_are_those_of_the_kernels():
    for size, registers in REGISTERS["gather"].items():
        found = gather_loads([[0]], size)
        assert (found.block, found.registers, found.shared) == (BLOCK, registers, 0)
    for size, registers in REGISTERS["scatter"].items():
        assert (scatter_loads([0], size).block, scatter_loads([0], size).registers) == (BLOCK, registers)


def test_sectors_of_an_index_in_order_and_in_none():
    n, reads = 2**12, 4
    order = np.random.default_rng(0).permutation(n)
    near = (np.arange(n)[:, None] + np.arange(reads)) % n
    ordered, shuffled = (cache.warps(gather_loads(one, 16)) for one in (near, order[near]))
    assert ordered.read.mean == (4 * 4 + 16 + 17 + 16 + 17) / 32  # rows of an odd k begin within a sector
    assert 4 * 4 / 32 + 3.9 < shuffled.read.mean <= 4 * 4 / 32 + 4
    assert cache.warps(scatter_loads(np.arange(n))).rounds.mean == 2


@pytest.mark.parametrize(
    ("call", "message"),
    [
        (lambda: gather_loads([[0]], 2), "row_bytes = 2 bytes; allowed: 4, 8, 16; split or pad it"),
        (lambda: gather_loads([[-3]]), r"index\[0, 0\] = -3; allowed: .* at least 0.*from 0 on"),
        (lambda: gather_loads([0]), r"index of shape \(1,\); allowed: \(n, k\)"),
        (lambda: scatter_loads([0], 16), "size = 16 bytes; allowed: 4, 8"),
        (lambda: scatter_loads([0.5]), "index of dtype float64; allowed: an array of integers"),
        (lambda: scatter_loads([]), "entries of index = 0; allowed: .* at least 1"),
        (lambda: spmv_loads(csr_array(np.eye(3, dtype=np.int16))), "values of 2 bytes; allowed: .*4 or 8"),
    ],
)
def test_bad_input_is_named_with_what_is_allowed(call, message):
    with pytest.raises(ValueError, match=message):
        call()


def test_a_matrix_of_another_class_is_refused():
    with pytest.raises(TypeError, match="csr_array"):
        spmv_loads(np.eye(3))
