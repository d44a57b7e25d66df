"""Strategy "persistent": many steps in one CUDA launch, with the pressure on the chip.

Each block keeps a region of the pressure in registers and its velocities in shared memory. Regions overlap by
a halo; blocks exchange copies of it after as many sweeps as the halo allows (temporal blocking with
overlapped tiles; Holewinski, Pouchet and Sadayappan, 2012). A small cavity is the region of one block.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any, NamedTuple

import numpy as np

from md.backend import Backend, OnDevice
from md.cavity.base import Order, Strategy
from md.cavity.resident import ResidentSolver, at_rest
from md.cavity.scheme import Scheme
from md.errors import BackendUnavailableError

LANES = 32
BUFFERS = 2  # of each exchanged array, used in turns
TURNS = 2 * BUFFERS  # after so many steps buffers and marks of exchanges are the same again
EXCHANGED = ("pressure", "source", "velocity_u", "velocity_v")  # arrays that blocks exchange

advance = OnDevice("RESIDENT_THREADS", shared=lambda bytes: bytes, is_resident=True)


class Tile(NamedTuple):
    """Region of a block.

    Attributes:
        columns: points of a lane along x.
        rows: of a warp.
        warps: of a block.
        halo: layers of points of other blocks around those that a block owns; a multiple of `columns`.
    """

    columns: int
    rows: int
    warps: int
    halo: int = 8

    @property
    def width(self) -> int:
        """Points along x."""
        return LANES * self.columns

    @property
    def height(self) -> int:
        """Points along y."""
        return self.rows * self.warps


class Plan(NamedTuple):
    """Tile of a block, and the blocks along x and y."""

    tile: Tile
    along_x: int
    along_y: int

    @property
    def blocks(self) -> int:
        """Number of blocks."""
        return self.along_x * self.along_y


SINGLE = (Tile(2, 10, 4), Tile(2, 8, 8))  # for a cavity in one block; fewer warps where it has fewer rows
TILES = (Tile(2, 5, 8), Tile(4, 5, 8), Tile(4, 11, 8))  # the first with which the blocks are not too many


def plan_for(shape: tuple[int, int], most_blocks: int, most_bytes: int) -> Plan | None:
    """Choose the tile for a cavity.

    Args:
        shape: (ny, nx), boundary included.
        most_blocks: blocks that can be on the device at once.
        most_bytes: of shared memory that a block can have.

    Returns:
        The plan; None if the cavity does not fit.
    """
    inner_y, inner_x = shape[0] - 2, shape[1] - 2
    singles, tiles = ([t for t in some if shared_bytes(t, 8) <= most_bytes] for some in (SINGLE, TILES))
    for tile in singles:
        if inner_x <= tile.width and inner_y <= tile.height:
            return Plan(tile._replace(warps=-(-inner_y // tile.rows)), 1, 1)
    for tile in tiles:
        along_x = tiles_along(inner_x, tile.width, tile.halo)
        along_y = tiles_along(inner_y, tile.height, tile.halo)
        if along_y == 1:
            tile = tile._replace(warps=-(-inner_y // tile.rows))
        plan = Plan(tile, along_x, along_y)
        if plan.blocks <= most_blocks:
            return plan
    return None


def tiles_along(inner: int, extent: int, halo: int) -> int:
    """Return how many tiles cover an axis.

    Args:
        inner: points inside the boundary.
        extent: points of a tile.
        halo: layers of points around those that a tile owns; neighbouring tiles overlap by at least two.
    """
    if inner <= extent:
        return 1
    return 1 + -(-(inner - extent) // (extent - 2 * halo))


def exchanges_of(sweeps: int, halo: int) -> int:
    """Return how often blocks exchange the pressure in a step; see `persistent.cu`."""
    return 1 + (sweeps + 1) // halo


def constants_of(plan: Plan, shape: tuple[int, int], sweeps: int) -> dict[str, int]:
    """Return the constants for which the kernel is compiled."""
    tile = plan.tile
    return {
        "INNER_X": shape[1] - 2, "INNER_Y": shape[0] - 2, "SWEEPS": sweeps, "GRID_X": plan.along_x,
        "GRID_Y": plan.along_y, "COLUMNS": tile.columns, "ROWS": tile.rows, "WARPS": tile.warps,
        "HALO": tile.halo, "EXCHANGES": exchanges_of(sweeps, tile.halo),
        "RESIDENT_THREADS": LANES * tile.warps,
    }  # fmt: skip


def shared_bytes(tile: Tile, itemsize: int) -> int:
    """Return the bytes of shared memory of a block: velocities, and rows at the edges of warps."""
    velocities = (tile.height + 2) * (tile.width + 4) + 4
    edges = (2 * tile.warps + 1) * tile.width
    return itemsize * (2 * velocities + 2 * edges)


class Fields(NamedTuple):
    """Arrays of the kernel, and the speed of the lid.

    Attributes:
        u, v, p: (ny, nx).
        pressure, source, velocity_u, velocity_v: (2, inner points along y, pitch) numbers that blocks
            exchange; empty for one block.
        lid: speed of the top.
    """

    u: Any
    v: Any
    p: Any
    pressure: Any
    source: Any
    velocity_u: Any
    velocity_v: Any
    lid: np.floating


@dataclass(frozen=True)
class Persistent(Strategy):
    """Configuration of the CUDA strategy that keeps the pressure on the chip; for the default sides.

    In float32 it differs from the reference by at most 2e-6 of the largest value after 1000 steps of 41 x 41.
    """

    name = "persistent"
    tolerance = 1e-12
    work = 2**34
    backends = ("cuda",)
    any_sides = False

    @classmethod
    def allowed_shapes(cls, shape: tuple[int, int], backend: Backend) -> str:
        """Describe the shapes that fit on the device at once, if `shape` does not; see `Strategy`."""
        if plan_for(shape, backend.resident_blocks, backend.staging_memory) is not None:
            return ""
        fitting = [tile for tile in TILES if shared_bytes(tile, 8) <= backend.staging_memory]
        if not fitting:
            return f"none on this device: its blocks have {backend.staging_memory} bytes of shared memory"
        tile = fitting[-1]
        width, height = tile.width - 2 * tile.halo, tile.height - 2 * tile.halo
        return (
            f"up to {backend.resident_blocks} tiles of {height} x {width} points (ny x nx), one a "
            "multiprocessor"
        )

    def needed_bytes(self, scheme: Scheme, layout: str, order: Order, backend: Backend) -> int:
        """Return the bytes of the fields, and of the numbers that blocks exchange; see `Strategy`."""
        ny, nx = scheme.shape
        plan = plan_for(scheme.shape, backend.resident_blocks, backend.staging_memory)
        exchanged = (
            len(EXCHANGED) * BUFFERS * (ny - 2) * pitch_of(nx) if plan is not None and plan.blocks > 1 else 0
        )
        return scheme.dtype.itemsize * (3 * ny * nx + exchanged)

    def build(self, scheme: Scheme, layout: str, order: Order, backend: Backend) -> PersistentSolver:
        """Make the solver, with all fields 0."""
        return PersistentSolver(scheme, backend)


class PersistentSolver(ResidentSolver):
    """Fields in device memory between launches of `persistent.cu`."""

    def __init__(self, scheme: Scheme, backend: Backend):
        plan = plan_for(scheme.shape, backend.resident_blocks, backend.staging_memory)
        assert plan is not None
        constants = constants_of(plan, scheme.shape, scheme.sweeps)
        kernels = backend.kernels(__name__, constants=constants)
        threads = constants["RESIDENT_THREADS"] * plan.blocks
        super().__init__(scheme, backend, kernels, threads, shared_bytes(plan.tile, scheme.dtype.itemsize))
        self._plan, self._done, self._fields = plan, 0, make_fields(scheme, plan, backend)

    def advance(self, steps: int) -> int:
        """Take steps in one launch; see `Solver.advance`.

        Raises:
            BackendUnavailableError: blocks waited too long for each other.
        """
        taken, gave_up = self._launch(steps, self._done % 2**28)
        self._done += steps
        if gave_up:
            self._fields, self._done = make_fields(self.scheme, self._plan, self._backend), 0
            raise BackendUnavailableError(
                "strategy 'persistent': blocks waited too long for each other, as when another program uses "
                "the device; all fields and the number of steps are 0 again; take strategy='cuda'"
            )
        return taken

    def state_dict(self) -> dict[str, np.ndarray]:
        """Return the fields, and the turn of the exchanges, on which the last bits of copies depend."""
        return super().state_dict() | {"turn": np.array([self._done % TURNS])}

    def load_state(self, state: Mapping[str, np.ndarray]) -> None:
        """Restore what `state_dict` returned: the exchanged arrays have the marks of the last exchanges."""
        super().load_state(state)
        self._done = int(state["turn"][0])
        first = 2 + self._done * exchanges_of(self.scheme.sweeps, self._plan.tile.halo)
        marked = {}
        for name, turn in zip(EXCHANGED, (first, *3 * (2 + self._done,)), strict=True):
            words = np.zeros(getattr(self._fields, name).shape, f"u{self.scheme.dtype.itemsize}")
            for k in range(turn, turn + BUFFERS) if words.size else ():
                words[k % BUFFERS] = 1 - k // BUFFERS % 2  # not the mark of exchange k, which is awaited
            marked[name] = self._backend.upload(words.view(self.scheme.dtype))
        self._fields = self._fields._replace(**marked)


def pitch_of(nx: int) -> int:
    """Return the numbers of a row of an exchanged array, for nx points along x, boundary included."""
    return -(-(nx - 2) // 4) * 4


def make_fields(scheme: Scheme, plan: Plan, backend: Backend) -> Fields:
    """Allocate the arrays of the kernel, all 0."""
    exchanged = (BUFFERS, scheme.shape[0] - 2, pitch_of(scheme.shape[1])) if plan.blocks > 1 else (0,)
    arrays = {name: backend.zeros(exchanged, scheme.dtype) for name in EXCHANGED}
    return Fields(**at_rest(scheme, backend), **arrays)
