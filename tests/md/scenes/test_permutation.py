"""The random permutation: a bijection of any n numbers, and as random as one."""

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from md.scenes import permutation
from sfc.compile import kernel
from tests.md.scenes.header_on_host import computed
from tests.tiers import full

KEYS = st.lists(st.integers(0, 2**32 - 1), min_size=8, max_size=8)


@kernel
def fill(first, n, bits, keys, found):
    """Fill with the entries from `first` on."""
    for k in range(len(found)):
        found[k] = permutation.permuted(first + k, n, bits, keys)


def entries(n: int, keys, first: int = 0, count: int | None = None) -> np.ndarray:
    found = np.empty(n if count is None else count, np.int64)
    fill(first, n, permutation.bits_of(n), np.array(keys, np.uint32), found)
    return found


@given(st.one_of(st.integers(1, 40), st.integers(1, 3000), st.sampled_from([2**k for k in range(12)])), KEYS)
def test_is_a_bijection(n, keys):
    assert np.array_equal(np.sort(entries(n, keys)), np.arange(n))


@given(st.integers(2**16, 2**31 - 1024), KEYS, st.data())
def test_entries_of_large_permutations_are_in_range_and_distinct(n, keys, data):
    found = entries(n, keys, data.draw(st.integers(0, n - 1000)), 1000)
    assert (found >= 0).all()
    assert (found < n).all()
    assert len(set(found.tolist())) == 1000


@pytest.mark.parametrize("n", [2, 3, 5, 8, 13])
def test_each_number_is_in_each_place_equally_often(n):
    generator = np.random.default_rng(3)
    counts = np.zeros((n, n))
    for _ in range(4000):
        counts[np.arange(n), entries(n, generator.integers(0, 2**32, 8))] += 1
    assert np.abs(counts - 4000 / n).max() < 5.5 * np.sqrt(4000 / n)


def test_neighbours_come_far_apart():
    n = 100_000
    found = entries(n, np.random.default_rng(1).integers(0, 2**32, 8))
    assert abs(np.abs(np.diff(found)).mean() / (n / 3) - 1) < 0.02  # n / 3 between two random numbers
    assert abs(np.corrcoef(found, np.arange(n))[0, 1]) < 0.015
    ascents = (np.diff(found) > 0).mean()
    assert abs(ascents - 0.5) < 0.01


@pytest.mark.parametrize("n", [2**20 + 1, full(2), full(999), full(2**31 - 1024)])
def test_cuda_gives_the_same_entries(tmp_path, n):
    keys = np.random.default_rng(n).integers(0, 2**32, 8)
    count = min(n, 5000)
    (tmp_path / "x.bin").write_bytes(np.arange(n - count, n, dtype=np.uint32).tobytes())
    listed = ", ".join(f"{key}u" for key in keys)
    call = f"permuted(x, {n}u, {permutation.bits_of(n)}, keys)"
    found = computed(tmp_path, "permutation.cuh", np.uint32, call, f"const unsigned keys[8] = {{{listed}}};")
    assert np.array_equal(found, entries(n, keys, n - count, count))
