"""Work on kernels whose loops threads share: the same for two threads as for one, and on all of them."""

import importlib
import pkgutil
import sys
from collections.abc import Callable, Iterable
from types import FunctionType

import numba
import numpy as np
import pytest

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


def in_parallel_only(stem: str, work: Work) -> Work:
    """The work, with parallel kernels of one module; those of other modules run their version for one thread.

    So no version is compiled that another work tests.
    """

    def call(kernel: Shared, *arguments):
        is_shared = kernel.__module__ == stem and numba.get_num_threads() > 1
        return (kernel.shared if is_shared else kernel.alone)(*arguments)

    def limited() -> Iterable[np.ndarray]:
        with pytest.MonkeyPatch.context() as patch:
            patch.setattr(Shared, "__call__", call)
            return list(work())

    return limited


def not_called_by(works: Iterable[Work], package: str) -> set[str]:
    """Parallel kernels of a package, and functions that call one in parts, that no such work shares.

    The works run the versions for one thread: no parallel version is compiled once more, in another process
    of the suite.
    """
    numba.set_num_threads(2)
    for module in pkgutil.walk_packages(importlib.import_module(package).__path__, f"{package}."):
        importlib.import_module(module.name)
    modules = {name: of for name, of in list(sys.modules.items()) if name.split(".")[0] == package}
    kernels = {
        f"{name}.{kernel.__name__}": kernel
        for name, module in modules.items()
        for kernel in vars(module).values()
        if isinstance(kernel, Shared) and kernel.__module__ == name
    }
    in_parts = {f"{name}.{function}" for name in modules for function in functions_in_parts(name)}
    assert kernels
    assert in_parts
    called: set[str] = set()
    with pytest.MonkeyPatch.context() as patch:
        for name, kernel in kernels.items():
            patch.setattr(kernel, "shared", _noting(name, kernel.alone, called))
        for name in {function.rpartition(".")[0] for function in in_parts}:
            patch.setattr(modules[name], "in_parts", _noting_parts(name, modules[name].in_parts, called))
        for work in works:
            list(work())
    return (set(kernels) | in_parts) - called


def functions_in_parts(stem: str) -> set[str]:
    """Names of the functions of a module that call a kernel in parts (`sfc.compile.in_parts`)."""
    return {
        name
        for name, value in vars(sys.modules[stem]).items()
        if isinstance(value, FunctionType)
        and value.__module__ == stem
        and "in_parts" in value.__code__.co_names
    }


def _noting(name: str, call: Callable, called: set[str]) -> Callable:
    def noted(*arguments):
        called.add(name)
        return call(*arguments)

    return noted


def _noting_parts(stem: str, call: Callable, called: set[str]) -> Callable:
    def noted(*arguments, **named):
        results = call(*arguments, **named)
        if len(results) > 1:
            called.add(f"{stem}.{sys._getframe(1).f_code.co_name}")
        return results

    return noted
