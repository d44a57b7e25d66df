"""Work on kernels whose loops threads share: the same for two threads as for one, and on all of them."""

import importlib
import pkgutil
import sys
from collections.abc import Callable, Iterable

import numba
import numpy as np

from sfc.compile import Shared

Work = Callable[[], Iterable[np.ndarray]]


def assert_two_threads_end_with_the_bits_of_one(work: Work) -> None:
    ends = []
    for threads in (1, 2):
        numba.set_num_threads(threads)
        ends.append(list(work()))
    assert len(ends[0]) == len(ends[1]) > 0
    for one, two in zip(*ends, strict=True):
        assert (one.dtype, one.shape) == (two.dtype, two.shape)
        assert one.size > 0
        assert one.tobytes() == two.tobytes()


def not_called_by(works: Iterable[Work], package: str) -> set[str]:
    """Parallel kernels of a package that no such work calls, by module and name.

    The works run the versions for one thread: no parallel version is compiled once more, in another process
    of the suite.
    """
    numba.set_num_threads(2)
    for module in pkgutil.walk_packages(importlib.import_module(package).__path__, f"{package}."):
        importlib.import_module(module.name)
    kernels = {
        f"{name}.{kernel.__name__}": kernel
        for name, module in list(sys.modules.items())
        if name.split(".")[0] == package
        for kernel in vars(module).values()
        if isinstance(kernel, Shared) and kernel.__module__ == name
    }
    assert kernels
    called, calls = set(), {name: kernel.shared for name, kernel in kernels.items()}
    for name, kernel in kernels.items():
        kernel.shared = _noting(name, kernel.alone, called)
    try:
        for work in works:
            list(work())
    finally:
        for name, kernel in kernels.items():
            kernel.shared = calls[name]
    return set(kernels) - called


def _noting(name: str, call: Callable, called: set[str]) -> Callable:
    def noted(*arguments):
        called.add(name)
        return call(*arguments)

    return noted
