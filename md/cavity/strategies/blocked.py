"""Strategy "blocked": several sweeps in one pass over memory, while the rows are in a core's cache."""

from __future__ import annotations

from dataclasses import dataclass

from md import checks
from md.backend.base import Backend
from md.cavity.base import Order, Solver, Strategy
from md.cavity.compiled import CompiledSolver
from md.cavity.scheme import Scheme

CACHE = 2**20  # bytes of a core's cache that the pressure and its right-hand side may take
DEEPEST = 10  # sweeps of a pass: with more of them, the rate of memory no longer limits a sweep
HALO = 8  # rows of a block for each sweep of a pass: a block computes an eighth of its rows twice at most


@dataclass(frozen=True)
class Blocked(Strategy):
    """Configuration of sweeps by temporal blocking.

    A pass takes up to `depth` sweeps: sweep s computes row r - s right after sweep s - 1 has computed row
    r - s + 1, and three rows of each sweep are kept in a ring. Each thread has a block of rows, and computes
    the rows of its neighbours again where it needs them (overlapped halos), so that threads wait for each
    other once a pass. A grid that fits into a core's cache is one block, swept as a whole.

    Args:
        depth: most sweeps of a pass; None for up to ten, as many as fit into the cache of a core.

    Raises:
        TypeError: a depth that is neither an integer nor None.
        ValueError: a depth below 1.

    Time skewing: Wonnacott (2000); overlapped tiles: Krishnamoorthy et al. (2007).
    """

    depth: int | None = None
    name = "blocked"

    def __post_init__(self) -> None:
        if self.depth is not None:
            object.__setattr__(self, "depth", checks.integer("depth", self.depth, 1, unit="sweeps a pass"))

    def needed_bytes(self, scheme: Scheme, layout: str, order: Order, backend: Backend) -> int:
        """Return the bytes of the fields and of the rings of the blocks; see `Strategy`."""
        depth, parts = self._plan(scheme, backend)
        ring = 3 * (depth - 1) * scheme.shape[1] * scheme.dtype.itemsize
        return super().needed_bytes(scheme, layout, order, backend) + parts * ring

    def build(self, scheme: Scheme, layout: str, order: Order, backend: Backend) -> Solver:
        """Make the solver, with all fields 0."""
        depth, parts = self._plan(scheme, backend)
        return CompiledSolver(scheme, layout, order, parts, depth)

    def _plan(self, scheme: Scheme, backend: Backend) -> tuple[int, int]:
        """Return the most sweeps of a pass, 1 for a grid swept as a whole, and the number of blocks."""
        ny, nx = scheme.shape
        if self.depth is None and 3 * ny * nx * scheme.dtype.itemsize <= CACHE:
            return 1, 1
        parts = max(1, min(backend.workers, ny - 2))
        return min(self.depth or _depth(scheme, parts), scheme.sweeps), parts


def _depth(scheme: Scheme, parts: int) -> int:
    """Return the sweeps of a pass: up to `DEEPEST`, as the cache of a core and the halos of blocks allow."""
    (ny, nx), sweeps = scheme.shape, scheme.sweeps
    # Of each sweep three rows, and one of the right-hand side.
    most = min(DEEPEST, CACHE // (4 * nx * scheme.dtype.itemsize))
    if parts > 1:
        most = min(most, (ny - 2) // parts // HALO)
    passes = -(-sweeps // max(1, most))
    return -(-sweeps // passes)
