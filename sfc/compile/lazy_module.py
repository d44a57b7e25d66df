"""Import of Numba at its first use, so that the import of a package with kernels does not wait for it.

Contract. A file with kernels has the line `from sfc.compile import kernel, numba`. There `numba` is a
`LazyModule`. Numba's compiler understands its own module only, so `load_modules` puts that in the place of
the `LazyModule` among the globals of a file before the first kernel of the file is compiled. A module that
extends Numba, and so imports it, is a `LazyModule` in those that use it.
"""

import importlib
from collections.abc import Callable
from types import ModuleType
from typing import Any


class LazyModule(ModuleType):
    """Module that is imported when an attribute of it is first read.

    Args:
        name: of the module.
    """

    def __getattr__(self, name: str) -> Any:
        return getattr(importlib.import_module(self.__name__), name)


def load_modules(function: Callable) -> None:
    """Replace each `LazyModule` in the globals of a function by the module."""
    for name, value in list(function.__globals__.items()):
        if isinstance(value, LazyModule):
            function.__globals__[name] = importlib.import_module(value.__name__)


numba: Any = LazyModule("numba")
