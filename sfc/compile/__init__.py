"""Compile kernels, and cache them on disk.

`@kernel` compiles a function that Python calls. `@inlined` and `@callee` mark plain functions that kernels
call: the code of an inlined function replaces each call, and for a callee the compiler decides. `@overload`
chooses the code of a function by the Numba types of its arguments. `@chosen_by` chooses it by the NamedTuple
class of one argument, and `implement` registers the code for one class, in the module that defines the class.

`sfc.compile.kernel_cache` stores compiled kernels on disk. `sfc.compile.fingerprint` hashes all code and
constants that a kernel can call or read, which decides whether a stored kernel is still valid. `numba` is
Numba, imported at its first use (`sfc.compile.lazy_module`). `in_threads` calls kernels side by side,
`in_parts` and `first_in_parts` with parts of a range, on `thread_count` threads: one in a child of a fork.
`sfc.compile.forks` holds locks across a fork.
"""

from sfc.compile.decorators import (
    Kernel,
    ThreadedKernel,
    callee,
    chosen_by,
    implement,
    implementations,
    inlined,
    kernel,
    overload,
)
from sfc.compile.lazy_module import LazyModule, numba
from sfc.compile.threads import first_in_parts, in_parts, in_threads, thread_count

__all__ = [
    "Kernel",
    "LazyModule",
    "ThreadedKernel",
    "callee",
    "chosen_by",
    "first_in_parts",
    "implement",
    "implementations",
    "in_parts",
    "in_threads",
    "inlined",
    "kernel",
    "numba",
    "overload",
    "thread_count",
]
