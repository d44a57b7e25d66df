"""Import of Numba at its first use, so that the import of a package with kernels does not wait for it.

Contract. A file with kernels has the line `from sfc.compile import kernel, numba`. There `numba` is a
`LazyModule`. Numba's compiler understands modules only, so before the first kernel of a file is compiled,
`load_modules` puts Numba in its place. A module that extends Numba, and so imports it, is a `LazyModule` in
those that use it.
"""

import importlib
from typing import Any

from sfc.compile.forks import starting


class LazyModule:
    """Stand-in for a module, which is imported when an attribute of it is first read.

    Args:
        name: of the module.
    """

    def __init__(self, name: str):
        self._name = name

    def __getattr__(self, name: str) -> Any:
        return getattr(self.load(), name)

    def load(self) -> Any:
        """Import the module, and return it. A fork waits for the import."""
        with starting:
            return importlib.import_module(self._name)


def load_modules(names: dict[str, Any]) -> None:
    """Put the module in the place of each `LazyModule` among the globals of a file."""
    for name, value in list(names.items()):
        if isinstance(value, LazyModule):
            names[name] = value.load()


numba: Any = LazyModule("numba")
