"""A kernel that takes a part of the second cache: where it runs, what it reads, and how it ends."""

import time

import numpy as np
import pytest

import md
from experiments.measurement.correctness import WrongResultError
from experiments.measurement.kernels import cache_occupier
from experiments.measurement.kernels.cache_occupier import LEAST, LINE, Occupier
from experiments.measurement.kernels.memory_rates import sector_rate
from tests.md.cavity.strategies.emulated_cuda import Compiling
from tests.nvrtc import compile_cubin


def test_sizes_and_backends_that_cannot_be_are_refused():
    with pytest.raises(ValueError, match="backend 'cpu'; allowed: 'cuda'"):
        Occupier(md.backend.get("cpu"), 1)
    with pytest.raises(TypeError, match="backend = 3"):
        Occupier(3, 1)  # type: ignore[arg-type]


def test_the_kernel_compiles_for_a_device():
    device = Compiling()
    with pytest.raises(WrongResultError), Occupier(device, 100 * LINE):  # nothing runs
        pass
    (source,) = device.sources.values()
    assert f"#define NUMBERS {LINE // 4}\n" in source
    assert compile_cubin(source).startswith(b"\x7fELF")


@pytest.fixture
def device():
    return md.backend.get("cuda")


@pytest.mark.gpu
def test_a_size_out_of_range_is_refused(device):
    with pytest.raises(ValueError, match="size = -1"):
        Occupier(device, -1)
    with pytest.raises(ValueError, match="blocks = 0; allowed"):
        Occupier(device, 1, blocks=0)


@pytest.mark.gpu
def test_other_work_runs_while_a_cache_is_occupied(device):
    with Occupier(device, 2**23) as one:
        began = time.perf_counter()
        array = device.upload(np.arange(1000))
        assert device.download(array).sum() == 499_500
        assert time.perf_counter() - began < cache_occupier.LONGEST / 2
        time.sleep(0.05)
    assert one.rate > 1
    with one:  # again
        time.sleep(0.01)
    assert one.rate > 1


@pytest.mark.gpu
def test_less_of_the_cache_is_left_to_sectors_in_no_order(device):
    half = md.backend.get("cuda").describe()["l2_MiB"] * 2**20 / 2
    rates = []
    sector_rate(device, int(half), each=64)  # loads its kernels
    for size in (LEAST, int(0.6 * half)):
        with Occupier(device, size):
            rates.append(sector_rate(device, int(half), each=64))
    assert rates[1] < 0.95 * rates[0]


@pytest.mark.gpu
def test_blocks_that_ended_by_themselves_and_wrong_sums_are_refused(device, monkeypatch):
    monkeypatch.setattr(cache_occupier, "LONGEST", 0.05)
    with pytest.raises(WrongResultError, match=r"0.05 s alone"), Occupier(device, 100 * LINE):
        time.sleep(0.3)
    monkeypatch.setattr(cache_occupier, "LONGEST", 20.0)
    one = Occupier(device, 100 * LINE)
    one._data = device.upload(np.zeros(len(one._data), np.int32))
    with pytest.raises(WrongResultError, match="sums"), one:
        time.sleep(0.01)
