"""The radix sort of a device, its kernels run on the host."""

import numpy as np
import pytest

from md.backend.cuda import RADIX_TILE
from tests.md.backend.kernels.test_source import source_of
from tests.md.cavity.strategies.emulated_cuda import HostArray
from tests.md.search.bvh.test_wide_bvh_on_host import Device
from tests.nvrtc import compile_cubin
from tests.tiers import full

TILE = RADIX_TILE // 4  # keys of 32 bits
RANDOM = np.random.default_rng(5)


@pytest.fixture(scope="module")
def device():
    return Device()


@pytest.mark.parametrize(
    ("n", "dtype", "bits"),
    [
        *((n, np.uint32, 24) for n in (1, 300, 2 * TILE + 77)),
        (300, np.uint64, 33),
        full(TILE, np.uint32, 24),
        *(full(n, np.uint32, 10) for n in (1, 300, TILE, 2 * TILE + 77)),
        *(full(n, np.uint64, 33) for n in (1, TILE, 2 * TILE + 77)),
    ],
)
def test_sort_is_stable_for_keys_in_any_order(device, n, dtype, bits):
    random = RANDOM.integers(0, 2**bits, n).astype(dtype)
    few = RANDOM.integers(0, 3, n).astype(dtype)
    nearly_sorted = np.sort(random)
    nearly_sorted[::7] = random[::7]
    for keys in random, few, nearly_sorted:
        sorted_keys, order = HostArray(keys.copy()), device.empty(n, np.int32)
        scratch = device.radix_scratch(sorted_keys)
        device.radix_sort(sorted_keys, bits, order, scratch)
        expected = np.argsort(keys, kind="stable")
        np.testing.assert_array_equal(order.host, expected)
        np.testing.assert_array_equal(sorted_keys.host, keys[expected])


@pytest.mark.parametrize("kernel", ["count_digits", "place_digits"])
def test_kernels_of_long_keys_fit_a_multiprocessor(kernel):
    source = source_of("md.backend.sorting.radix", kernel, 3, np.float32, "aos4", "spring_dashpot", "store")
    for definition in "", "#define WIDE_KEYS 1\n":
        assert compile_cubin(definition + source).startswith(b"\x7fELF")
