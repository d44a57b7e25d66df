"""Memory of a CUDA device that other processes open: arrays that are alone in their allocation."""

from __future__ import annotations

from typing import Any

import numpy as np
from numpy.typing import DTypeLike

from md.backend.base import Array


class Allocations:
    """Allocations of one device, and those of other processes that are open here.

    Args:
        cupy: the module.
    """

    def __init__(self, cupy: Any):
        self._cupy = cupy

    def alone(self, size: int, dtype: DTypeLike) -> Array:
        """Allocate an array by an allocation of its own, outside the memory pool."""
        memory = self._cupy.cuda.Memory(max(1, size) * np.dtype(dtype).itemsize)
        return self._cupy.ndarray(size, dtype, self._cupy.cuda.MemoryPointer(memory, 0))

    def handle_of(self, array: Array) -> tuple[bytes, int]:
        """Return the handle of the allocation of an array, and where the array begins in it, in bytes."""
        begin = array.data.mem.ptr
        return self._cupy.cuda.runtime.ipcGetMemHandle(begin), array.data.ptr - begin

    def open(self, handle: bytes) -> int:
        """Return the address, here, of an allocation of another process."""
        return int(self._cupy.cuda.runtime.ipcOpenMemHandle(handle))

    def close(self, address: int) -> None:
        """Close an allocation of another process."""
        self._cupy.cuda.runtime.ipcCloseMemHandle(address)

    def copy(self, array: Array, address: int) -> None:
        """Fill an array from memory of another process, on the current stream."""
        cuda = self._cupy.cuda
        kind, stream = cuda.runtime.memcpyDefault, cuda.get_current_stream().ptr
        cuda.runtime.memcpyAsync(array.data.ptr, address, array.nbytes, kind, stream)
