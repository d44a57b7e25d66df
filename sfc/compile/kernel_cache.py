"""Disk cache of compiled kernels, addressed by a hash of their code and of everything else they depend on.

An entry is one file, named by the kernel's module and name and by a hash of all that decides its machine
code: the code and constants that it can call or read (`sfc.compile.fingerprint`), the types of its arguments,
the compiler's options, the versions of Python, Numba, llvmlite and numpy, and the processor. The path of the
sources is not in the hash, so a second checkout finds the kernels of the first. An entry is written to a
temporary file in its folder and renamed, so two processes that compile the same kernel leave one complete
entry. It holds a hash of its content, so a damaged entry is compiled again.

The machine code of a kernel contains its callees, under names made from the types of their arguments. Numba
numbers the types of records in the order in which a process makes them. Then kernels of two processes may
hold different callees of one name, and a third process that loads both would run one of them in place of the
other. So here the name of a record type is made from a hash of its fields.
"""

from __future__ import annotations

import contextlib
import hashlib
import io
import os
import pickle
import platform
import sys
import time
import uuid
import warnings
from collections.abc import Callable, Iterable
from pathlib import Path
from typing import Any, NamedTuple

import llvmlite
import numba
import numpy as np
from numba import types

from sfc.compile.fingerprint import UnhashableCodeError, described_options
from sfc.compile.forks import hold_across_forks
from sfc.compile.numba_internals import (
    Cache,
    NumbaPickler,
    global_compiler_lock,
    load,
    name_records_by_content,
    stored_parts,
    user_cache_dir,
)

MAGIC = b"spatial-locality kernel 2\n"
DIGEST = 32  # bytes of a hash
MOST_BYTES = 2**31  # of all entries; the least recently used are removed
ABANDONED = 3600.0  # seconds after which a file that was never renamed is removed
SUFFIX = ".kernel"
CONFIGURED = ("OPT", "LOOP_VECTORIZE", "SLP_VECTORIZE", "BOUNDSCHECK", "DEBUGINFO_DEFAULT", "USING_SVML")
BROKEN = (OSError, EOFError, ValueError, TypeError, KeyError, IndexError, AttributeError, ImportError,
          pickle.UnpicklingError, RuntimeError)  # fmt: skip


name_records_by_content()
hold_across_forks(global_compiler_lock)


class Counts(NamedTuple):
    """Kernels that this process has compiled, and those that it loaded from disk.

    Attributes:
        compiled: names of compiled kernels, one for each set of argument types.
        found: names of loaded kernels.
    """

    compiled: list[str]
    found: list[str]


counts = Counts([], [])


def cache_folder() -> Path:
    """Return the folder of the entries: in `NUMBA_CACHE_DIR` if that is set, else in the user's cache."""
    if configured := os.environ.get("NUMBA_CACHE_DIR"):
        return Path(configured) / "spatial-locality"
    return Path(user_cache_dir("spatial-locality")) / "kernels"


class KernelCache(Cache):
    """Cache entries of one kernel; replaces Numba's cache in a dispatcher.

    Args:
        function: the Python function.
        options: compiler options.
        dependencies: NamedTuple classes of the arguments -> fingerprint of the code and constants that the
            kernel can then call or read.
    """

    def __init__(
        self, function: Callable, options: dict[str, Any], dependencies: Callable[[Iterable[type]], str]
    ):
        self._name = f"{function.__module__}.{function.__qualname__}"
        self._options, self._dependencies = described_options(options), dependencies
        self._names: dict[Any, str | None] = {}

    @property
    def cache_path(self) -> str:
        """Return the folder of all kernels."""
        return str(cache_folder())

    def enable(self) -> None:
        """Do nothing: the cache is always on."""

    def disable(self) -> None:
        """Do nothing: the cache is always on."""

    def flush(self) -> None:
        """Do nothing: an outdated entry is never found."""

    def load_overload(self, sig: Any, target_context: Any) -> Any:
        """Load the kernel compiled for some argument types; None if there is none.

        Args:
            sig: argument types, or a signature.
            target_context: of the dispatcher.
        """
        path = self._path(sig, target_context.codegen())
        if path is None:
            return None
        try:
            data = path.read_bytes()
            content = data[len(MAGIC) + DIGEST :]
            if data[: len(MAGIC) + DIGEST] != MAGIC + hashlib.sha256(content).digest():
                return None
            classes = _classes(_types(sig))
            loaded = load(target_context, _Unpickler(io.BytesIO(content), classes).load())
        except BROKEN:
            return None
        with contextlib.suppress(OSError):
            os.utime(path)  # last used
        counts.found.append(self._name)
        return loaded

    def save_overload(self, sig: Any, data: Any) -> None:
        """Store a kernel that was just compiled.

        Args:
            sig: argument types, or a signature.
            data: Numba's `CompileResult`.
        """
        counts.compiled.append(self._name)
        path = self._path(sig, data.codegen)
        if path is None or data.lifted or data.library.has_dynamic_globals:
            return
        buffer = io.BytesIO()
        _Pickler(buffer, _classes(_types(sig))).dump(stored_parts(data))
        content = buffer.getvalue()
        _write(path, MAGIC + hashlib.sha256(content).digest() + content)

    def _path(self, sig: Any, codegen: Any) -> Path | None:
        """Return the path of the entry for some types; None for a kernel that cannot be hashed."""
        if sig not in self._names:
            kinds = _types(sig)
            classes = _classes(kinds)
            try:
                if any(isinstance(kind, types.Callable) for kind in kinds):
                    raise UnhashableCodeError("it is called with a function, which has no permanent name")
                code = self._dependencies(classes)
            except UnhashableCodeError as error:
                code = None
                warnings.warn(
                    f"{self._name} is not stored on disk, so that each process compiles it: {error}",
                    RuntimeWarning,
                    stacklevel=2,
                )
            settings = [getattr(numba.config, name, None) for name in CONFIGURED]
            packages = numba.__version__, llvmlite.__version__, np.__version__
            versions = sys.version, platform.machine(), *packages
            named = [f"{kind.__module__}.{kind.__qualname__}{kind._fields}" for kind in classes]
            of_kernel = self._name, self._options, code, str(sig), named
            parts = *of_kernel, settings, versions, codegen.magic_tuple()
            digest = hashlib.sha256(repr(parts).encode()).hexdigest()
            self._names[sig] = None if code is None else f"{digest[:40]}{SUFFIX}"
        name = self._names[sig]
        return None if name is None else cache_folder() / self._name / name


def _types(sig: Any) -> tuple[Any, ...]:
    """Return the argument types of a signature, or the types themselves."""
    return tuple(getattr(sig, "args", sig))


def _classes(kinds: Iterable[Any]) -> list[type[Any]]:
    """List the NamedTuple classes among some types and their fields, in their order."""
    found: list[type[Any]] = []
    for kind in kinds:
        if isinstance(kind, types.BaseNamedTuple):
            found.append(kind.instance_class)  # type: ignore[attr-defined]  # not in the stubs of Numba
        if isinstance(kind, types.BaseTuple):
            found += _classes(kind)  # type: ignore[arg-type]  # its subclasses are iterable
    return list(dict.fromkeys(found))


class _Pickler(NumbaPickler):
    """Pickler that writes NamedTuple classes of the arguments by number: they need not be importable."""

    def __init__(self, file: io.BytesIO, classes: list[type[Any]]):
        super().__init__(file, protocol=4)
        self._classes = classes

    def persistent_id(self, obj: object) -> int | None:
        return self._classes.index(obj) if isinstance(obj, type) and obj in self._classes else None


class _Unpickler(pickle.Unpickler):
    """Unpickler that reads class numbers as the classes of the present arguments."""

    def __init__(self, file: io.BytesIO, classes: list[type[Any]]):
        super().__init__(file)
        self._classes = classes

    def persistent_load(self, pid: int) -> type[Any]:
        return self._classes[pid]


_has_warned = _has_written = False


def _write(path: Path, data: bytes) -> None:
    """Write a file atomically; warn once per process if that fails."""
    global _has_warned, _has_written
    temporary = path.with_name(f"{path.name}.{os.getpid()}.{uuid.uuid4().hex[:8]}.tmp")
    try:
        path.parent.mkdir(parents=True, exist_ok=True)
        try:
            temporary.write_bytes(data)
            os.replace(temporary, path)
        finally:  # also if Ctrl-C ended the writing
            with contextlib.suppress(OSError):
                temporary.unlink()
        if not _has_written:
            _has_written = True
            remove_old(cache_folder())
    except OSError as error:
        if not _has_warned:
            _has_warned = True
            warnings.warn(
                f"compiled kernels cannot be stored in {cache_folder()} ({error.strerror or error}), so that "
                "each process compiles its own; set NUMBA_CACHE_DIR to a folder that can be written",
                RuntimeWarning,
                stacklevel=2,
            )


def remove_old(folder: Path, most_bytes: int = MOST_BYTES) -> None:
    """Remove the least recently used entries above a total size, and temporary files of killed processes.

    Args:
        folder: of the entries.
        most_bytes: total size of the entries that stay.
    """
    kept, now = [], time.time()
    for path in folder.glob("*/*"):
        with contextlib.suppress(OSError):
            status = path.stat()
            if path.suffix == ".tmp":
                if now - status.st_mtime > ABANDONED:
                    path.unlink()
            elif path.suffix == SUFFIX:
                kept.append((status.st_mtime, status.st_size, path))
    total = 0
    for _, size, path in sorted(kept, reverse=True):
        total += size
        if total > most_bytes:
            with contextlib.suppress(OSError):
                path.unlink()
