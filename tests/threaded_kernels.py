"""Work on kernels whose loops threads share: the same for two threads as for one, and on all of them."""

import importlib
import inspect
import pkgutil
import sys
from collections.abc import Callable, Iterable, Sequence
from threading import local
from types import CodeType, FunctionType

import numba
import numpy as np
import pytest

from sfc.compile import ThreadedKernel, threads

Work = Callable[[], Iterable[np.ndarray]]
SHARING = {"in_parts", "first_in_parts", "in_threads"}  # functions of `sfc.compile.threads`


def assert_two_threads_end_with_the_bits_of_one(work: Work) -> None:
    ends = []
    for count in (1, 2):
        numba.set_num_threads(count)
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

    def call(kernel: ThreadedKernel, *arguments):
        is_threaded = kernel.__module__ == stem and numba.get_num_threads() > 1
        return (kernel.threaded if is_threaded else kernel.alone)(*arguments)

    def limited() -> Iterable[np.ndarray]:
        with pytest.MonkeyPatch.context() as patch:
            patch.setattr(ThreadedKernel, "__call__", call)
            return list(work())

    return limited


def not_called_by(works: Iterable[Work], package: str) -> set[str]:
    """Parallel kernels of a package, and functions that share work among threads, that no such work shares.

    The works run the versions for one thread: no parallel version is compiled once more, in another process
    of the suite.
    """
    numba.set_num_threads(2)
    for module in pkgutil.walk_packages(importlib.import_module(package).__path__, f"{package}."):
        importlib.import_module(module.name)
    modules = {name: of for name, of in list(sys.modules.items()) if name.split(".")[0] == package}
    modules.pop(threads.__name__, None)
    kernels = {
        f"{name}.{kernel.__name__}": kernel
        for name, module in modules.items()
        for kernel in vars(module).values()
        if isinstance(kernel, ThreadedKernel) and kernel.__module__ == name
    }
    in_parts = {f"{name}.{function}" for name in modules for function in functions_in_parts(name)}
    assert kernels
    assert len(in_parts) > 5
    called: set[str] = set()
    with pytest.MonkeyPatch.context() as patch:
        for name, kernel in kernels.items():
            patch.setattr(kernel, "threaded", _noting(name, kernel.alone, called))
        splits = _InThreads(threads.in_threads)
        patch.setattr(threads, "in_threads", splits)
        for name, module in modules.items():
            for sharing in SHARING & vars(module).keys():
                call = splits if sharing == "in_threads" else getattr(threads, sharing)
                patch.setattr(module, sharing, _noting_parts(name, call, splits, called))
        for work in works:
            list(work())
    return (set(kernels) | in_parts) - called


def functions_in_parts(stem: str) -> set[str]:
    """Qualified names of the functions and methods of a module that share work among threads."""
    values = list(vars(sys.modules[stem]).values())
    values += [one for kind in values if isinstance(kind, type) for one in vars(kind).values()]
    functions = [inspect.unwrap(one) for one in values if isinstance(inspect.unwrap(one), FunctionType)]
    waiting = [function.__code__ for function in functions if function.__module__ == stem]
    for code in waiting:  # grows during the loop
        waiting += [inner for inner in code.co_consts if isinstance(inner, CodeType)]
    return {code.co_qualname for code in waiting if SHARING & set(code.co_names)}


def _noting(name: str, call: Callable, called: set[str]) -> Callable:
    def noted(*arguments):
        called.add(name)
        return call(*arguments)

    return noted


class _InThreads(local):
    """`in_threads` that says whether the last call of a thread had several items."""

    def __init__(self, call: Callable):
        self.call, self.seen = call, False

    def __call__(self, work: Callable, items: Sequence) -> list:
        self.seen |= len(items) > 1
        return self.call(work, items)


def _noting_parts(stem: str, call: Callable, splits: _InThreads, called: set[str]) -> Callable:
    def noted(*arguments, **named):
        splits.seen = False
        result = call(*arguments, **named)
        if splits.seen:
            called.add(f"{stem}.{sys._getframe(1).f_code.co_qualname}")
        return result

    return noted
