"""Decorators of compiled functions: `@kernel` for calls from Python, the others for calls from kernels.

Compiled kernels are stored on disk (`sfc.compile.kernel_cache`), each under a hash of the code and constants
that it can call or read (`sfc.compile.fingerprint`): never stale after an edit, never compiled again without
an edit. Numba is imported at the first call of a kernel; the other decorators import it at once.

A parallel kernel takes more than twice as long to compile as the same kernel for one thread, so each of the
two is compiled at its first call.
"""

from __future__ import annotations

import gc
import inspect
import warnings
from collections.abc import Callable, Iterable
from functools import cache, update_wrapper, wraps
from threading import RLock
from typing import Any, TypeVar

from sfc.compile import threads
from sfc.compile.forks import starting
from sfc.compile.lazy_module import load_modules, numba

Function = TypeVar("Function", bound=Callable)
CALLED = {"no_cfunc_wrapper": True}  # no kernel takes another as a value, and C calls none
BARE = {"no_cpython_wrapper": True, **CALLED}  # for functions that only kernels call
_sharing = RLock()
_stores = True  # whether kernels are stored on disk
_by_class: dict[Callable, dict[type, Callable]] = {}  # function -> class -> chooser of the code


class Kernel:
    """Compiled function, for calls from Python and from other kernels.

    Args:
        function: the function.
        options: of `numba.njit`.

    Attributes:
        py_func: the Python function.
        options: as given.
        dispatcher: Numba's, made at the first use. It compiles, or loads from the disk cache, at a call.
    """

    __qualname__: str  # of `py_func`
    dispatcher: Any

    def __init__(self, function: Callable, options: dict[str, Any]):
        self.py_func, self.options = function, options
        update_wrapper(self, function)

    def __getattr__(self, name: str) -> Any:
        """Make the dispatcher. Below Python 3.12 a `cached_property` has a lock, which no fork waits for."""
        if name != "dispatcher":
            raise AttributeError(f"{type(self).__name__!r} object has no attribute {name!r}")
        with starting:
            return vars(self).get(name) or self._dispatcher()  # another thread may have made it

    def _dispatcher(self) -> Any:
        load_modules(self.py_func.__globals__)
        load_modules(vars(threads))  # `thread_count` reads Numba at every call
        dispatcher = numba.njit(**self.options)(self.py_func)
        _store_on_disk(dispatcher, self)
        vars(self)["dispatcher"] = dispatcher
        return dispatcher

    @property
    def _numba_type_(self) -> Any:
        """Type of the dispatcher: what Numba reads of an object that a kernel names."""
        return numba.types.Dispatcher(self.dispatcher)

    def __call__(self, *arguments: Any, **named: Any) -> Any:
        """Run the compiled code for the types of the arguments."""
        return self.dispatcher(*arguments, **named)

    def __reduce__(self) -> str:
        return self.__qualname__


class ThreadedKernel:
    """Parallel kernel in two versions: one with loops shared by threads, one for a single thread.

    Only Python can call it, with positional arguments; a kernel that other kernels call has no parallel
    loops. Several Python threads may call it; where Numba has no other threads than those of its layer
    `workqueue`, which ends a process that enters two parallel loops at once, one call waits for the other.

    Args:
        alone: the version for one thread.
        threaded: the version compiled with `parallel=True`.

    Attributes:
        alone, threaded: as given; each is compiled at its first call.
        py_func: the Python function of both.
    """

    __qualname__: str  # of `py_func`

    def __init__(self, alone: Kernel, threaded: Kernel):
        self.alone, self.threaded, self.py_func = alone, threaded, threaded.py_func
        update_wrapper(self, threaded.py_func)

    def __call__(self, *arguments: Any) -> Any:
        """Run on `thread_count()` threads: on one in a child of a fork."""
        if threads.thread_count() == 1:
            return self.alone(*arguments)
        if _allows_one_loop():
            with _sharing:
                return self.threaded(*arguments)
        return self.threaded(*arguments)

    def __reduce__(self) -> str:
        return self.__qualname__


@cache
def _allows_one_loop() -> bool:
    """Return whether the threading layer of Numba, which has started, runs one parallel loop at a time."""
    return numba.threading_layer() == "workqueue"


def kernel(function: Callable | None = None, *, parallel: bool = False, **options: Any) -> Any:
    """Compile a function for the types of its arguments at the first call, or load it from the disk cache.

    Args:
        function: the function; None to return the decorator of the options.
        parallel: make a `ThreadedKernel`. Its two versions give the same bits if no sum of floats is over a
            `prange` or a whole array: sum by parts, and then the parts in a plain loop.
        options: further options of `numba.njit`; `no_cfunc_wrapper=False` for a kernel that C is to call.

    Returns:
        A `Kernel`, or a `ThreadedKernel`. It divides as numpy does (no exception at zero) and releases the
        GIL.
    """
    options = {"error_model": "numpy", "nogil": True, **CALLED, **options}

    def decorate(function: Callable) -> Any:
        alone = Kernel(function, options)
        return ThreadedKernel(alone, Kernel(function, {**options, "parallel": True})) if parallel else alone

    return decorate if function is None else decorate(function)


def inlined(function: Function) -> Function:
    """Let kernels call a plain function; its code replaces each call."""
    load_modules(function.__globals__)
    return numba.extending.register_jitable(forceinline=True, **BARE)(function)


def callee(function: Function) -> Function:
    """Let kernels call a plain function; the compiler decides whether to inline it."""
    load_modules(function.__globals__)
    return numba.extending.register_jitable(**BARE)(function)


def overload(stub: Callable) -> Callable[[Function], Function]:
    """Choose the code of calls of `stub` in kernels by the Numba types of the arguments.

    Args:
        stub: a function of the same module.

    Returns:
        A decorator. The decorated function takes the Numba types of the arguments, with the parameter names
        of `stub`, and returns a function with those names to compile, or None if it has none for such types.
    """
    return numba.extending.overload(stub, jit_options={"forceinline": True, **BARE})


def chosen_by(argument: str, default: Callable | None = None) -> Callable[[Function], Function]:
    """Choose the code of a function in kernels by the NamedTuple class of one argument.

    `implement` registers the code for a class, in the module that defines the class.

    Args:
        argument: name of the argument.
        default: takes the Numba types of the arguments and returns the function to compile, or None; called
            for an argument of a class without an implementation.

    Returns:
        A decorator, which returns the function unchanged.
    """

    def decorate(stub: Function) -> Function:
        names = [
            p.replace(annotation=inspect.Parameter.empty) for p in inspect.signature(stub).parameters.values()
        ]
        place = [p.name for p in names].index(argument)
        own = _by_class[stub] = {}

        def choose(*kinds: Any) -> Callable | None:
            named = isinstance(kinds[place], numba.types.BaseNamedTuple)
            known = own.get(kinds[place].instance_class) if named else None
            known = known or default
            return known and known(*kinds)

        attributes = vars(choose)
        attributes["__signature__"] = inspect.Signature(names)  # Numba compares it with that of the code
        attributes |= {"by_class": True, "default": default}  # for `sfc.compile.fingerprint`
        numba.extending.overload(stub, jit_options={"forceinline": True, **BARE})(choose)
        return stub

    return decorate


def implement(stub: Callable, kind: type, choose: Callable) -> None:
    """Register the code of a function marked by `chosen_by` for a NamedTuple class.

    Args:
        stub: the function.
        kind: the class.
        choose: takes the Numba types of the arguments, and returns the function to compile.

    Raises:
        ValueError: the class has code for this function already.
    """
    if kind in _by_class[stub]:
        raise ValueError(
            f"{stub.__name__} of {kind.__qualname__} has its code already; allowed: one for each class; "
            "define another class"
        )
    _by_class[stub][kind] = choose


def implementations(kind: type) -> list[tuple[str, Callable]]:
    """List the code that `implement` registered for a NamedTuple class.

    Args:
        kind: the class. Its attribute `parts`, if any, lists classes of objects that kernels create; their
            code follows that of the class.

    Returns:
        (name of the function, chooser of its code), sorted by name for each class.
    """
    own = [
        (f"{s.__module__}.{s.__qualname__}", given[kind]) for s, given in _by_class.items() if kind in given
    ]
    parts = [one for part in getattr(kind, "parts", ()) for one in implementations(part)]
    return sorted(own, key=lambda named: named[0]) + parts


def _without_collection(work: Function) -> Function:
    """Return a function that works without garbage collection, a sixth of the time of a compilation."""

    @wraps(work)
    def done(*arguments: Any, **named: Any) -> Any:
        if not gc.isenabled():
            return work(*arguments, **named)
        gc.disable()
        try:
            return work(*arguments, **named)
        finally:
            gc.enable()

    return done  # type: ignore[return-value]  # of the same signature


def _store_on_disk(dispatcher: Any, kernel: Kernel) -> None:
    """Let a dispatcher store its machine code; warn once if this version of Numba has no place for that."""
    global _stores
    if not _stores:
        return
    from sfc.compile import numba_internals

    try:
        if numba_internals.missing:
            raise numba_internals.missing
        from sfc.compile.kernel_cache import KernelCache

        function = kernel.py_func
        cache = KernelCache(function, kernel.options, lambda kinds: _dependencies(function, kinds))
        numba_internals.replace_parts(dispatcher, cache, _without_collection)
    except (ImportError, AttributeError) as error:
        _stores = False
        warnings.warn(
            f"compiled kernels cannot be stored with Numba {numba.__version__} ({error}), so that each "
            "process compiles its own; install a version named in sfc/compile/numba_internals.py",
            RuntimeWarning,
            stacklevel=2,
        )


def _dependencies(function: Callable, kinds: Iterable[type]) -> str:
    """Hash the code and constants that a kernel can call or read, for some classes of its arguments."""
    from sfc.compile.fingerprint import fingerprint  # imports Numba

    named = [one for kind in kinds for one in implementations(kind)]
    return f"{[name for name, _ in named]} {fingerprint([function, *(given for _, given in named)])}"
