"""Loads of a sparse matrix times a vector: those of a plain loop over the rows of each warp."""

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from scipy.sparse import csr_array

from experiments.loads.sparse import csr_loads
from sfc import cache
from sfc.cache.loads import ALIGNED, LANES


def matrix(rows: int, columns: int, density: float, seed: int, dtype: str = "float64") -> csr_array:
    random = np.random.default_rng(seed)
    return csr_array((random.random((rows, columns)) < density * random.random((rows, 1))).astype(dtype))


@given(st.integers(1, 90), st.integers(1, 60), st.sampled_from(["float32", "float64"]), st.integers(0, 2**32))
@settings(max_examples=40)
def test_loads_are_those_of_a_plain_loop(rows, columns, dtype, seed):
    a = matrix(rows, columns, 0.4, seed, dtype)
    size, entries = a.data.itemsize, len(a.data)
    starts, place = [], 0
    for count in (4 * (rows + 1), 4 * entries, size * entries, size * columns, 0):
        starts.append(place)
        place += -(-count // ALIGNED) * ALIGNED
    begin, index, value, x, y = starts
    expected = []
    for first in range(0, rows, LANES):
        own = range(first, min(rows, first + LANES))
        events = [([begin + 4 * i for i in own], True, 0), ([begin + 4 * (i + 1) for i in own], False, 0)]
        for k in range(max(a.indptr[i + 1] - a.indptr[i] for i in own)):
            entry = [int(a.indptr[i]) + k for i in own if a.indptr[i] + k < a.indptr[i + 1]]
            events.append(([index + 4 * e for e in entry], True, 0))
            events.append(([value + size * e for e in entry], False, 0))
            events.append(([x + size * int(a.indices[e]) for e in entry], True, 0))
        events.append(([y + size * i for i in own], True, 1))
        expected.append(events)
    stream = csr_loads(a)
    loads = stream.loads_of(np.arange(stream.warps))
    lanes = map(np.ndarray.tolist, np.split(loads.address, loads.start[1:-1]))
    events = [*zip(lanes, loads.waits.tolist(), loads.kind.tolist(), strict=True)]
    assert [events[i:j] for i, j in zip(loads.first, loads.first[1:], strict=False)] == expected


def test_an_order_of_rows_and_columns_decides_the_sectors():
    n = 2**12
    near = np.arange(n)[:, None] + np.arange(-2, 3)  # five neighbours on a line
    order = np.random.default_rng(0).permutation(n)
    ordered = csr_array((np.ones(5 * n), near.ravel() % n, np.arange(0, 5 * n + 1, 5)), shape=(n, n))
    shuffled = csr_array(ordered[order][:, order])
    found = [cache.warps(csr_loads(one)).read.mean for one in (ordered, shuffled)]
    assert 2.5 < found[1] - found[0] <= 3.75  # five numbers of x: up to 32 sectors a warp for 8


def test_other_matrices_are_told():
    with pytest.raises(TypeError, match="csr_array"):
        csr_loads(np.eye(3))
    with pytest.raises(ValueError, match="values of 1 bytes"):
        csr_loads(csr_array(np.eye(3, dtype=np.int8)))
    with pytest.raises(ValueError, match="items"):
        csr_loads(csr_array((0, 3)))
