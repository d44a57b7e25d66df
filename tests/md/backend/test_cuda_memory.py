"""Memory of a device: arrays of simulations that are no longer used are freed before memory is used up."""

import gc
from types import SimpleNamespace

import numpy as np
import pytest

from md.backend import Cuda, DeviceMemoryError

GIB = 2**30


class OutOfMemoryError(MemoryError):
    pass


class CUDARuntimeError(RuntimeError):
    status = 2


class Device:
    """A device of 10 GiB with arrays that are held by reference cycles."""

    def __init__(self):
        self.used, self.pooled = 0, 0
        self.cuda = SimpleNamespace(
            runtime=SimpleNamespace(
                memGetInfo=lambda: (10 * GIB - self.used - self.pooled, 10 * GIB),
                CUDARuntimeError=CUDARuntimeError,
            ),
            Memory=self.alone,
            MemoryPointer=lambda memory, begin: memory,
            memory=SimpleNamespace(OutOfMemoryError=OutOfMemoryError),
        )

    def get_default_memory_pool(self):
        return SimpleNamespace(free_bytes=lambda: self.pooled, free_all_blocks=self.free)

    def free(self):
        self.pooled = 0

    def alone(self, size):
        """Allocate outside the pool, which may hold free memory."""
        if size > 10 * GIB - self.used - self.pooled:
            raise CUDARuntimeError
        return Held(self, size)

    def ndarray(self, size, dtype, memory):
        return memory

    def empty(self, shape, dtype):
        if shape > 10 * GIB - self.used:
            raise OutOfMemoryError
        return Held(self, shape)


class Held:
    """Memory that is returned to the pool when the garbage collector finds the circle."""

    def __init__(self, device, size):
        self.device, self.size, self.circle = device, size, self
        device.used += size
        device.pooled -= min(size, device.pooled)

    def __del__(self):
        self.device.used -= self.size
        self.device.pooled += self.size


@pytest.fixture
def cuda():
    backend = Cuda.__new__(Cuda)
    backend._cupy = Device()
    gc.freeze()  # a collection looks at the arrays of the test alone
    gc.disable()  # it runs only where the backend calls it
    yield backend
    gc.enable()
    gc.unfreeze()


def test_memory_of_what_is_no_longer_used_counts_as_free(cuda):
    for size in (1, 3, 6):
        held = cuda.empty(size * GIB, "u1")
        assert cuda.free_memory() == (10 - size) * GIB  # still in use
        del held
        assert cuda.free_memory() == (10 if size == 6 else 10 - size) * GIB
        cuda._cupy = Device()


def test_an_array_gets_the_memory_of_what_is_no_longer_used(cuda):
    for _ in range(5):
        cuda.empty(6 * GIB, "u1")
    held = cuda.empty(6 * GIB, "u1")
    with pytest.raises(DeviceMemoryError, match=r"no room on the device for an array .* GiB are free"):
        cuda.empty(6 * GIB, "u1")
    assert held.size == 6 * GIB


def test_an_array_alone_gets_the_memory_that_the_pool_holds(cuda):
    first = cuda.empty(6 * GIB, np.uint8)
    del first
    held = cuda.alone(8 * GIB, np.uint8)
    assert held.size == 8 * GIB
    with pytest.raises(DeviceMemoryError, match="numbers of uint8 in one allocation"):
        cuda.alone(8 * GIB, np.uint8)
