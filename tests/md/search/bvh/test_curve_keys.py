"""Sort keys of particles that do not overlap, which a device sorts by counting."""

import numpy as np
import pytest

import md
from md.particles.cell_grid import CellGrid
from md.search.bvh.curve_keys import BINS_EACH, LANES, PARTS, CurveKeys, bits_to_count, sampled
from tests import tiers
from tests.md.search.bvh.test_wide_bvh_on_host import Device, rows

CPU = md.backend.get("cpu")


def grid_of(lengths, periodic=True, open=False, precision=np.float64) -> CellGrid:
    return CellGrid(md.Box(lengths, periodic, open=open), 1.0, precision, CPU)


@pytest.mark.parametrize("dim", [2, 3])
@pytest.mark.parametrize("density", [0.01, 0.1, 0.5, 1.0])
def test_a_cell_is_no_wider_than_two_diameters_and_there_are_no_more_than_eight_a_particle(dim, density):
    n = 3000
    length = (n / density) ** (1 / dim)
    bits = bits_to_count(n, grid_of((length,) * dim), 1.0)
    cells, side = 2 ** (dim * bits), length / 2**bits
    assert bits == 0 or (side <= 2 and n <= cells <= BINS_EACH * n)
    assert (bits > 0) == (density >= 0.1)


def test_keys_are_not_counted_where_open_sides_let_particles_be_far_apart():
    lengths = (16.0,) * 3
    assert bits_to_count(1000, grid_of(lengths), 1.0)
    assert not bits_to_count(1000, grid_of(lengths, False, open=True), 1.0)


@pytest.mark.parametrize(
    ("dim", "curve", "precision"), [(3, "hilbert", np.float64), tiers.full(2, "morton", np.float32)]
)
def test_a_device_that_counts_finds_the_order_of_the_cpu(dim, curve, precision):
    n, device = 3000, Device()
    length = float(n) ** (1 / dim) * 1.2
    grid = grid_of((length,) * dim, precision=precision)
    pos = (np.random.default_rng(2).random((n, dim)) * length).astype(precision)
    on_cpu, on_device = (CurveKeys(n, grid, place, curve, 1.0) for place in (CPU, device))
    assert on_device.counts
    assert not on_cpu.counts
    on_cpu.sort(pos)
    on_device.sort(rows(pos))
    np.testing.assert_array_equal(on_device.extent.host, on_cpu.extent)
    np.testing.assert_array_equal(on_device.order.host, on_cpu.order)
    np.testing.assert_array_equal(on_device.keys.host[on_device.order.host], on_cpu.keys)
    np.testing.assert_array_equal(on_device.sample(100), on_cpu.sample(100))


def test_a_device_samples_the_extent_of_many_particles_as_the_cpu_does():
    n, device = 3 * PARTS * LANES + 5, Device()
    grid = grid_of((1000.0,) * 3, periodic=False)

    def by_numpy(keys, bits, order, scratch):  # the sort is tested by itself
        order.host[...] = np.argsort(keys.host, kind="stable")
        keys.host[...] = keys.host[order.host]

    device.radix_sort = by_numpy
    pos = np.random.default_rng(5).random((n, 3)) * 1000
    found = []
    for place, rows_of in ((CPU, np.asarray), (device, rows)):
        keys = CurveKeys(n, grid, place, "hilbert")
        keys.sort(rows_of(pos))
        found.append(keys)
    on_cpu, on_device = found
    slots = np.array([sampled(k, 3, n) for k in range(-(-n // 3))])
    assert (slots // 3 == np.arange(len(slots))).all()
    assert 0.3 < np.mean(slots % 3 == 1) < 0.37
    low, high = pos[slots].min(0), pos[slots].max(0)
    assert on_cpu.extent.tolist() == [end for ends in zip(low, high, strict=True) for end in ends]
    np.testing.assert_array_equal(on_device.extent.host, on_cpu.extent)
    np.testing.assert_array_equal(on_device.order.host, on_cpu.order)
    assert sorted(on_cpu.order) == list(range(n))
