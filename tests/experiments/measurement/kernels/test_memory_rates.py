"""Micro-benchmarks of a GPU's memory: their kernels on the host."""

import numpy as np
import pytest

from experiments.measurement.correctness import WrongResultError
from experiments.measurement.kernels import memory_rates
from experiments.measurement.kernels.memory_rates import drawn, load_time, sector_rate
from tests.md.cavity.strategies.emulated_cuda import EmulatedCuda
from tests.nvrtc import compile_cubin


class Timed(EmulatedCuda):
    """A device that takes a ms for a launch."""

    def stopwatch(self):
        return super(EmulatedCuda, self).stopwatch()

    def mark(self):
        self.marks = getattr(self, "marks", 0) + 1
        return self.marks

    def between(self, first, second):
        return float(second - first)


def test_sectors_are_drawn_evenly_and_as_numpy_draws_them():
    assert sector_rate(Timed(), 32 * 1000, threads=2048, each=3) == pytest.approx(2048 * 3 / 1e6)
    found = drawn(2**12, 100, 8, seed=2)
    assert 0 <= found.min()
    assert found.max() < 100
    counts = np.bincount(found.ravel(), minlength=100)
    assert np.std(counts) < 1.5 * np.sqrt(counts.mean())
    assert not np.array_equal(found, drawn(2**12, 100, 8, seed=3))


def test_a_chain_goes_on_where_the_last_launch_ended():
    device, ends = Timed(), []
    launch = device.between
    device.between = lambda first, second: ends.append(second) or launch(first, second) + 5 * (len(ends) > 6)
    assert load_time(device, 32 * 50, steps=131) == pytest.approx(5 / 130 * 1e6)


@pytest.mark.parametrize("measured", [lambda d: sector_rate(d, 3200, 64, 2), lambda d: load_time(d, 3200, 9)])
def test_a_wrong_result_is_not_recorded(monkeypatch, measured):
    class Wrong(Timed):
        def download(self, array):
            return super().download(array) + 1

    with pytest.raises(WrongResultError):
        measured(Wrong())


@pytest.mark.parametrize("call", [lambda: sector_rate(Timed(), 31), lambda: load_time(Timed(), 63)])
def test_a_size_without_sectors_is_told(call):
    with pytest.raises(ValueError, match="size"):
        call()


@pytest.mark.parametrize("kernel", ["random_sectors", "chain"])
def test_kernels_compile_for_a_device(kernel):
    class Compiling(EmulatedCuda):
        def _compile(self, text, code, name):
            assert compile_cubin(code).startswith(b"\x7fELF")
            return lambda *_, **__: None

    device = Compiling()
    words, kernels = device.zeros(64, np.int32), memory_rates._kernels(device)
    arguments = (4, words, 8, 2, 0, words) if kernel == "random_sectors" else (1, words, 3, words)
    getattr(kernels, kernel)(*arguments)


@pytest.mark.gpu
def test_a_device_serves_small_sizes_faster_than_large_ones(device):
    assert sector_rate(device, 2**23) > 1.5 * sector_rate(device, 2**31)
    near, second, far = (load_time(device, size) for size in (2**14, 2**23, 2**30))
    assert 0 < near < second < far
