"""Decorators of compiled functions: `@kernel` for calls from Python, the others for calls from kernels.

Compiled kernels are stored on disk (`sfc.compile.kernel_cache`), each under a hash of the code and constants
that it can call or read (`sfc.compile.fingerprint`): never stale after an edit, never compiled again without
an edit.

A parallel kernel takes more than twice as long to compile as the same kernel for one thread, so each of the
two is compiled at its first call.
"""

from __future__ import annotations

import inspect
from collections.abc import Callable, Iterable
from functools import update_wrapper

import numba
from numba import extending
from numba.core import types

from sfc.compile.fingerprint import fingerprint
from sfc.compile.kernel_cache import KernelCache

_by_class: dict[Callable, dict[type, Callable]] = {}  # of each function, what chooses its code for a class


class Shared:
    """A kernel whose loops threads share, and the same kernel for one thread alone.

    Only Python can call it, by position; a kernel that other kernels call has no loops to share. Where
    there is more than one, the first call starts Numba's threads: a process had better not fork after it.

    Args:
        alone: compiled for one thread.
        shared: compiled with `parallel=True`.

    Attributes:
        alone, shared: as given; each compiles when it is first called.
        py_func: what both are compiled from.
    """

    def __init__(self, alone: Callable, shared: Callable):
        self.alone, self.shared, self.py_func = alone, shared, shared.py_func
        update_wrapper(self, shared.py_func)

    def __call__(self, *arguments):
        """Run on as many threads as `numba.get_num_threads` says."""
        threads = numba.config.NUMBA_NUM_THREADS
        alone = threads == 1 or numba.get_num_threads() == 1
        return (self.alone if alone else self.shared)(*arguments)

    def __reduce__(self) -> str:
        return self.__qualname__


def kernel(function: Callable | None = None, *, parallel: bool = False, **options) -> Callable:
    """Compile a function for the types it is called with, once for all processes.

    Args:
        function: the function; without it the decorator of those options.
        parallel: make a `Shared`, both of whose kernels give the same bits if no sum of floats goes over a
            `prange` or a whole array: sum by parts, and the parts in a plain loop.
        options: further ones of `numba.njit`.

    Returns:
        The compiled function. It divides as numpy does (no exception at zero) and releases the GIL.
    """

    def compiled(function: Callable, **options) -> Callable:
        options = {"error_model": "numpy", "nogil": True} | options
        dispatcher = numba.njit(**options)(function)
        dispatcher._cache = KernelCache(function, options, lambda kinds: _reach(function, kinds))
        return dispatcher

    def decorate(function: Callable) -> Callable:
        alone = compiled(function, **options)
        return Shared(alone, compiled(function, parallel=True, **options)) if parallel else alone

    return decorate if function is None else decorate(function)


def inlined(function: Callable) -> Callable:
    """Let kernels call a plain function; its code is put in the place of each call."""
    return extending.register_jitable(forceinline=True)(function)


def callee(function: Callable) -> Callable:
    """Let kernels call a plain function; the compiler decides whether to inline it."""
    return extending.register_jitable(function)


def overload(stub: Callable) -> Callable:
    """Decorator of a function that chooses the code which takes the place of a call of `stub` in a kernel.

    Args:
        stub: a function of the same module.

    Returns:
        The decorator of a function that takes the Numba types of the arguments, by the names that `stub` has,
        and returns a function of those names to compile, or None where it has none for such types.
    """
    return extending.overload(stub, jit_options={"forceinline": True})


def chosen_by(argument: str, default: Callable | None = None) -> Callable:
    """Decorator of a function whose code in a kernel follows from the NamedTuple class of one argument.

    `implement` gives the code for a class, in the module that defines the class.

    Args:
        argument: name of the argument.
        default: takes the Numba types of the arguments and returns the function to compile, or None, where
            the argument is of a class without an implementation.
    """

    def decorate(stub: Callable) -> Callable:
        names = [
            p.replace(annotation=inspect.Parameter.empty) for p in inspect.signature(stub).parameters.values()
        ]
        place = [p.name for p in names].index(argument)
        own = _by_class[stub] = {}

        def choose(*kinds):
            kind = kinds[place]
            known = own.get(kind.instance_class) if isinstance(kind, types.BaseNamedTuple) else None
            known = known or default
            return known and known(*kinds)

        choose.__signature__ = inspect.Signature(names)  # which Numba compares with that of the code
        choose.by_class, choose.default = True, default  # for `sfc.compile.fingerprint`
        extending.overload(stub, jit_options={"forceinline": True})(choose)
        return stub

    return decorate


def implement(stub: Callable, kind: type, choose: Callable) -> None:
    """Give the code of a function (`chosen_by`) for a NamedTuple class.

    Args:
        stub: the function.
        kind: the class.
        choose: takes the Numba types of the arguments, and returns the function to compile.

    Raises:
        ValueError: the class has one already.
    """
    if kind in _by_class[stub]:
        raise ValueError(
            f"{stub.__name__} of {kind.__qualname__} has its code already; allowed: one for each class; give "
            "another class its own"
        )
    _by_class[stub][kind] = choose


def implementations(kind: type) -> list[tuple[str, Callable]]:
    """List what `implement` was given for a NamedTuple class, each with the name of the function, sorted.

    Args:
        kind: the class. If it has an attribute `parts`, classes of which kernels make objects, what was given
            for those comes after it.
    """
    own = sorted(
        (
            (f"{stub.__module__}.{stub.__qualname__}", given)
            for stub, given in _by_class.items()
            if kind in given
        ),
        key=lambda named: named[0],
    )
    parts = [one for part in getattr(kind, "parts", ()) for one in implementations(part)]
    return [(name, given[kind]) for name, given in own] + parts


def _reach(function: Callable, kinds: Iterable[type]) -> str:
    """Hash what a kernel can reach with arguments of some NamedTuple classes."""
    named = [one for kind in kinds for one in implementations(kind)]
    return f"{[name for name, _ in named]} {fingerprint([function, *(given for _, given in named)])}"
