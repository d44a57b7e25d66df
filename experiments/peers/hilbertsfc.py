"""hilbertsfc: Hilbert and Morton curves in 2D and 3D by look-up tables, compiled by Numba."""

from typing import ClassVar

import numpy as np

from experiments.peers.encoder import Encoder

MOST_BITS = {2: 32, 3: 21}


class Hilbertsfc(Encoder):
    """Cells as separate coordinates, encoded by hilbertsfc into a given array.

    https://pypi.org/project/hilbertsfc, for Python 3.12 and above.
    """

    name: ClassVar[str] = "hilbertsfc"
    module: ClassVar[str] = "hilbertsfc"
    has_threads: ClassVar[bool] = True

    @classmethod
    def curves(cls, dim: int, bits: int) -> tuple[str, ...]:
        """List both curves in 2D of up to 32 bits and in 3D of up to 21."""
        return ("hilbert", "morton") if bits <= MOST_BITS.get(dim, 0) else ()

    def _prepare(self, cells: np.ndarray) -> None:
        self._cells = [np.ascontiguousarray(column) for column in cells.T]
        unsigned = np.dtype(f"u{cells.dtype.itemsize}")  # the package decodes to no other
        self._decoded = [np.empty(len(cells), unsigned) for _ in range(self.dim)]
        self._keys = np.empty(len(cells), self.key_dtype)
        calls = (f"{self.curve}_{way}_{self.dim}d" for way in ("encode", "decode"))
        self._encode, self._decode = (getattr(self._package, name) for name in calls)
        self._options = {"nbits": self.bits, "parallel": self.threads > 1}
        self._out = {f"out_{axis}": own for axis, own in zip("xyz", self._decoded, strict=False)}

    def encode(self) -> np.ndarray:
        """Compute the keys."""
        return self._encode(*self._cells, out=self._keys, **self._options)

    def decode(self) -> list[np.ndarray]:
        """Compute the cells of the keys."""
        self._decode(self._keys, **self._out, **self._options)
        return self._decoded
