"""numpy-hilbert-curve: Skilling's Hilbert curve in any dimension, on arrays with a byte for each bit."""

from typing import ClassVar

import numpy as np

from experiments.peers.encoder import Encoder


class NumpyHilbertCurve(Encoder):
    """Cells, encoded by numpy-hilbert-curve into a new array, on one thread.

    https://pypi.org/project/numpy-hilbert-curve; Skilling, AIP Conference Proceedings 707 (2004) 381.
    """

    name: ClassVar[str] = "numpy-hilbert-curve"
    module: ClassVar[str] = "hilbert"
    most_points: ClassVar[int | None] = 2**16  # which take a tenth of a second or more

    @classmethod
    def curves(cls, dim: int, bits: int) -> tuple[str, ...]:
        """List Skilling's curve, which in 2D is `hilbert`, if its keys fit 64 bits."""
        return ("hilbert" if dim == 2 else "skilling",) if dim * bits <= 64 else ()

    def _prepare(self, cells: np.ndarray) -> None:
        self._cells = cells.astype(np.uint64)
        self._keys = np.empty(0, np.uint64)

    def encode(self) -> np.ndarray:
        """Compute the keys."""
        self._keys = self._package.encode(self._cells, self.dim, self.bits)
        return self._keys

    def decode(self) -> np.ndarray:
        """Compute the cells of the keys."""
        return self._package.decode(self._keys, self.dim, self.bits).T
