"""geopandas: the Hilbert distance of points in 2D, by a parallel prefix scan over bits in numpy."""

from typing import ClassVar

import numpy as np

from experiments.peers.encoder import Encoder

MOST_BITS = 16


class Geopandas(Encoder):
    """Points at the cells, encoded by `GeoSeries.hilbert_distance`, on one thread.

    The bounds of the points, which the call reads, are part of its time. https://geopandas.org
    """

    name: ClassVar[str] = "geopandas"
    module: ClassVar[str] = "geopandas"
    decodes: ClassVar[bool] = False

    @classmethod
    def curves(cls, dim: int, bits: int) -> tuple[str, ...]:
        """List the Hilbert curve, in 2D of up to 16 bits."""
        return ("hilbert",) if dim == 2 and bits <= MOST_BITS else ()

    def _prepare(self, cells: np.ndarray) -> None:
        self._points = self._package.GeoSeries.from_xy(*cells.T.astype(float))
        self._box = (0, 0, 2**self.bits - 1, 2**self.bits - 1)  # so that a coordinate is its cell

    def encode(self) -> np.ndarray:
        """Compute the keys."""
        return self._points.hilbert_distance(total_bounds=self._box, level=self.bits).to_numpy()
