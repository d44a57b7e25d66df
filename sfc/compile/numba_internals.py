"""Numba's private interfaces, which may change with any version; no other file imports them.

Tried with Numba 0.61.2 and 0.68.1. With a version that lacks what the disk cache needs, kernels are
compiled in each process, after a warning (`sfc.compile.decorators`).
"""

from __future__ import annotations

import hashlib
from collections.abc import Callable
from typing import Any

from numba.core import cgutils, types
from numba.core.dispatcher import Dispatcher
from numba.core.registry import cpu_target
from numba.core.typing.templates import builtin_registry

missing: ImportError | None = None  # what the disk cache needs, and this version does not have
try:
    import numba.cpython.hashing  # noqa: F401 - adds symbols that stored kernels refer to
    from numba.core.caching import _Cache as Cache
    from numba.core.compiler import CompileResult
    from numba.core.compiler_lock import global_compiler_lock
    from numba.core.runtime import rtsys
    from numba.core.serialize import NumbaPickler
    from numba.misc.appdirs import user_cache_dir
except ImportError as error:
    missing = error

__all__ = [
    "Cache",
    "Dispatcher",
    "NumbaPickler",
    "builtin_registry",
    "cgutils",
    "global_compiler_lock",
    "load",
    "missing",
    "name_records_by_content",
    "processor",
    "replace_parts",
    "stored_parts",
    "user_cache_dir",
]


def processor() -> tuple[Any, ...]:
    """Return what Numba compiles for: triple, name of the processor, and its features."""
    return cpu_target.target_context.codegen().magic_tuple()


def stored_parts(result: Any) -> Any:
    """Return the parts of a `CompileResult` that can be pickled."""
    return result._reduce()


def load(target_context: Any, parts: tuple[Any, ...]) -> CompileResult:
    """Make a `CompileResult` of its parts.

    `target_context.refresh`, which Numba calls first, also fills tables for compiling, which takes 0.2 s.
    """
    rtsys.initialize(target_context)  # adds symbols that stored kernels refer to
    return CompileResult._rebuild(target_context, *parts)


def replace_parts(dispatcher: Any, cache: Any, wrap: Callable[[Callable], Callable]) -> None:
    """Give a dispatcher another disk cache, and wrap its compiler.

    Raises:
        AttributeError: a dispatcher without them.
    """
    compiler = dispatcher._compiler
    compiler.compile = wrap(compiler.compile)
    dispatcher._cache  # noqa: B018 - raises if there is none
    dispatcher._cache = cache


def _mangled(record: types.Record) -> tuple[str, tuple[int]]:
    """Return the parts of the name of a record type in machine code, the same in every process."""
    digest = hashlib.sha256(record.name.encode()).digest()
    return type(record).__name__, (int.from_bytes(digest[:7], "big"),)


def name_records_by_content() -> None:
    """Name record types in machine code by a hash of their fields, in place of a number of the process."""
    types.Record.mangling_args = property(_mangled)  # type: ignore[method-assign,assignment]
