"""Numba compilation with a disk cache that no edit can leave stale.

Numba keys its cache by the file a kernel stands in, so a kernel that calls into another file keeps running
the old machine code after that file is edited. Here the cache folder is named by a hash of every source of
the packages a kernel may call into: an edit anywhere in them starts a fresh folder, and an unedited tree
finds all its kernels again from any process.

A kernel whose loops threads share takes more than twice as long to compile as the same kernel for one thread,
so that each is compiled when it is first called for.
"""

import hashlib
import os
import shutil
import tempfile
from collections.abc import Callable
from functools import update_wrapper
from importlib.util import find_spec
from pathlib import Path

import numba
from platformdirs import user_cache_path

KEPT_FOLDERS = 8  # caches of the most recent source states; older ones are removed


def source_hash(*packages: str) -> str:
    """Hash of every Python source of the named packages.

    Args:
        packages: importable package names; they are located, not imported.

    Returns:
        16 hexadecimal digits.

    Raises:
        ModuleNotFoundError: a package that cannot be found.
    """
    digest = hashlib.sha256()
    for package in packages:
        spec = find_spec(package)
        if spec is None or not spec.submodule_search_locations:
            raise ModuleNotFoundError(f"no package {package!r} to hash; is the project installed?")
        root = Path(next(iter(spec.submodule_search_locations)))
        for path in sorted(root.rglob("*.py")):
            digest.update(str(path.relative_to(root)).encode())
            digest.update(path.read_bytes())
    return digest.hexdigest()[:16]


def cache_folder(*packages: str) -> Path:
    """Folder for compiled kernels of the named packages in their present state, made if need be.

    It lies in `NUMBA_CACHE_DIR` where that is set, else in the user's cache; in a temporary folder where
    neither can be written.
    """
    configured = os.environ.get("NUMBA_CACHE_DIR")
    parent = Path(configured) if configured else user_cache_path("spatial-locality") / "kernels"
    folder = parent / ("-".join(packages) + "-" + source_hash(*packages))
    try:
        folder.mkdir(parents=True, exist_ok=True)
        tempfile.TemporaryFile(dir=folder).close()
        os.utime(folder)
        _remove_old(parent, "-".join(packages) + "-")
    except OSError:
        folder = Path(tempfile.mkdtemp(prefix="spatial-locality-"))
    return folder


def _remove_old(parent: Path, prefix: str) -> None:
    named = [p for p in parent.iterdir() if p.name.startswith(prefix) and len(p.name) == len(prefix) + 16]
    for stale in sorted(named, key=lambda p: p.stat().st_mtime, reverse=True)[KEPT_FOLDERS:]:
        shutil.rmtree(stale, ignore_errors=True)


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


def compiler(*packages: str) -> Callable:
    """A decorator `kernel` / `kernel(parallel=True)` that compiles with the cache of `packages`.

    Args:
        packages: every package whose functions the decorated kernels call, directly or through another.

    Returns:
        The decorator; with `parallel=True` it makes a `Shared`, and both of its kernels give the same bits if
        no sum of floats goes over a `prange` or a whole array: sum by parts, and the parts in a plain loop.
        Compiled kernels divide as numpy does (no exception at zero) and release the GIL.
    """
    folder = cache_folder(*packages)

    def compiled(function: Callable, place: Path, **options) -> Callable:
        outside = numba.config.CACHE_DIR
        numba.config.CACHE_DIR = str(place)  # one each, for `parallel` is in no key of Numba's cache
        try:
            return numba.njit(cache=True, error_model="numpy", nogil=True, **options)(function)
        finally:
            numba.config.CACHE_DIR = outside

    def kernel(function: Callable | None = None, *, parallel: bool = False, **options) -> Callable:
        def decorate(function: Callable) -> Callable:
            alone = compiled(function, folder, **options)
            if not parallel:
                return alone
            return Shared(alone, compiled(function, folder / "shared", parallel=True, **options))

        return decorate if function is None else decorate(function)

    return kernel
