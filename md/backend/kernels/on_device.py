"""Blocks of CUDA kernels: declared in the module of a stem, beside the kernels of the CPU.

Contract. `OnDevice` declares the kernel of one name in the .cu file beside the module: a decorator of the
function of that name, or a value under that name if the CPU has no such kernel. The launcher reads the
declaration, and sources get the threads as BLOCK_THREADS. A kernel without a declaration has blocks of
`THREADS` threads and no dynamic shared memory.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from importlib import import_module
from typing import Any, TypeVar

from md import checks

Function = TypeVar("Function", bound=Callable)
THREADS = 256  # of a block
MOST_THREADS = 1024  # that a device allows


@dataclass(frozen=True)
class OnDevice:
    """Threads of a block of a CUDA kernel, and its shared memory.

    `@OnDevice(threads=128)` before a function declares the CUDA kernel of the same name, and
    `list_partners = OnDevice(threads=128)` one without a function on the CPU.

    Args:
        threads: of a block: 1 to 1024, or the name of one of the constants of `Backend.kernels`.
        shared: function that returns the bytes of `extern __shared__` memory of a block. Its parameters are
            parameters of the kernel, by name, and it gets the arguments of each launch. None for no bytes.
        is_resident: whether all blocks have to be on the device at once, so that they can wait for each
            other.
        registers: of a thread in float32 and in float64, for compute capability 9.0, in a fused step of
            spheres in 3D in layout aos4, or as the module says: models of memory read them. None if no model
            does.
        of_boids: registers of a thread in a fused step of a flock, as those of spheres.
        static: bytes of `__shared__` arrays of a block in float32 and in float64, for models of memory too.

    Raises:
        TypeError: threads that are neither an integer nor a name.
        ValueError: threads out of range.
    """

    threads: int | str = THREADS
    shared: Callable[..., int] | None = None
    is_resident: bool = False
    registers: tuple[int, int] | None = None
    of_boids: tuple[int, int] | None = None
    static: tuple[int, int] = (0, 0)

    def __post_init__(self):
        if not isinstance(self.threads, str):
            checks.integer("threads of OnDevice", self.threads, 1, MOST_THREADS)

    def __call__(self, function: Function) -> Function:
        """Declare the CUDA kernel of the same name as a function, which is returned unchanged."""
        vars(function)["on_device"] = self
        return function


def declared(stem: str, kernel: str) -> OnDevice | None:
    """Return the declaration of a kernel in the module of its stem, or None."""
    twin: Any = vars(import_module(stem)).get(kernel)
    return twin if isinstance(twin, OnDevice) else getattr(twin, "on_device", None)
