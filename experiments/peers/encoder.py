"""Interface of another package that encodes cells along a curve, on the CPU.

Contract. An encoder is created with cells, which it converts to the layout of its package then, so that this
takes no time of a call. `encode` and `decode` are calls of the package and nothing else, into arrays that are
given where the package takes them.
"""

from abc import ABC, abstractmethod
from collections.abc import Sequence
from importlib import import_module
from importlib.util import find_spec
from typing import Any, ClassVar

import numpy as np

from sfc import checks


class Encoder(ABC):
    """Cells, ready to be encoded by another package.

    Args:
        curve: one of `curves(dim, bits)`.
        cells: (n, dim) integers, 0 <= cell < 2**bits.
        bits: of a coordinate.
        key_dtype: of the keys, where the package lets one choose.
        threads: host threads, if `has_threads`.

    Attributes:
        name: of the package, as pip installs it.
        module: by which Python imports it.
        decodes: whether the package has the inverse.
        has_threads: whether the package has a parallel version.
        most_points: cells that are encoded in one call; None for any number.

    Raises:
        TypeError: an argument of a wrong class.
        ValueError: a curve that the package does not have in this grid, or cells of another dtype or shape.
        ImportError: the package is not installed.
    """

    name: ClassVar[str]
    module: ClassVar[str]
    decodes: ClassVar[bool] = True
    has_threads: ClassVar[bool] = False
    most_points: ClassVar[int | None] = None

    def __init__(
        self, curve: str, cells: np.ndarray, bits: int, key_dtype: Any = np.uint64, threads: int = 1
    ):
        cells = checks.array("cells", cells, "iu", checks.INTEGERS, ("n", "dim"))
        self.bits, self.threads = checks.integer("bits", bits), checks.integer("threads", threads)
        self.dim, self.key_dtype = cells.shape[1], np.dtype(key_dtype)
        self.curve = checks.word("curve", curve, self.curves(self.dim, self.bits), f"as {self.name} has them")
        self._package = import_module(self.module)
        self._prepare(cells)

    @classmethod
    def is_installed(cls) -> bool:
        """Return whether the package can be imported."""
        return find_spec(cls.module) is not None

    @classmethod
    @abstractmethod
    def curves(cls, dim: int, bits: int) -> tuple[str, ...]:
        """List the curves that the package has, by their names in `sfc`; empty for none in this grid.

        Args:
            dim: dimensions.
            bits: of a coordinate.
        """

    @abstractmethod
    def _prepare(self, cells: np.ndarray) -> None:
        """Convert cells to the layout of the package, and allocate results."""

    @abstractmethod
    def encode(self) -> np.ndarray:
        """Compute the (n,) keys of the cells."""

    def decode(self) -> Sequence[np.ndarray] | np.ndarray:
        """Compute the cells of the keys that `encode` returned last: (n,) coordinates of each axis.

        Raises:
            NotImplementedError: a package that does not decode.
        """
        raise NotImplementedError(f"{self.name} does not decode; take another package, or encode")
