"""What the force kernels of all searches load and store alike: rows of particles, in layout aos4."""

from __future__ import annotations

from typing import NamedTuple

import numpy as np

import md
from md.backend import OnDevice
from md.backend.kernels.on_device import declared
from md.backend.prelude import displacement, dot, load
from md.laws import Boids, PairLaw
from sfc.cache import LoadStream, note_row, starts_of
from sfc.cache.loads import READ, WRITTEN
from sfc.compile import callee

PART = 16  # bytes that a lane loads at once
LAST = 2**61  # place of the stores at the end of a kernel: behind all loads


class StepLoads(NamedTuple):
    """Loads and stores of a step on a GPU.

    Attributes:
        force: of the kernel that computes the forces, and moves the particles.
        before: of the launches before it, one after the other, of which the first may find an empty cache.
    """

    force: LoadStream
    before: list[LoadStream]


class Rows(NamedTuple):
    """Rows of particles, as a walk through a kernel needs them.

    Attributes:
        n: number of particles.
        pos: (n, 4) positions of the simulation, by slot.
        grid: (1,) record of the cells.
        reach2: square of the distance below which a kernel loads a partner's velocity, of the precision of
            `pos`.
        pieces: of 16 bytes of a row.
        base: addresses of the arrays: positions, velocities, moved positions, moved velocities, and those
            that a search adds.
    """

    n: int
    pos: np.ndarray
    grid: np.ndarray
    reach2: np.floating
    pieces: int
    base: np.ndarray

    def swapped(self) -> Rows:
        """Return the same with the arrays in the roles of the step before: the moved ones are read."""
        return self._replace(base=np.concatenate([self.base[[2, 3, 0, 1]], self.base[4:]]))


def rows_of(simulation: md.Simulation, search: str, *more: int) -> Rows:
    """Return the rows of a simulation, of which the search is built at the present positions.

    Args:
        simulation: on the CPU, with that search, in layout aos4.
        search: name of the search.
        more: bytes of the arrays that the search adds.

    Raises:
        ValueError: another search or backend.
    """
    name, place = simulation.config.search.name, simulation.backend.name
    if name != search or place != "cpu":
        raise ValueError(
            f"search {name!r} on {place!r}; allowed: {search!r} on 'cpu', as its arrays are read"
        )
    system, law = simulation.system, simulation.law
    particles = system.particles
    pieces = 4 * particles.pos.itemsize // PART
    rows = PART * pieces * particles.n
    reach = law.alignment_radius if isinstance(law, Boids) else law.cutoff
    base = starts_of([rows, rows, rows, rows, *more])
    reach2 = np.square(particles.pos.dtype.type(reach))
    return Rows(particles.n, particles.pos, system.grid.record, reach2, pieces, base)


def block_of(stem: str, name: str, dtype: np.dtype, law: PairLaw | None = None) -> dict[str, int]:
    """Return threads and shared memory of a block, and registers of a thread, as a module declares them.

    Args:
        stem: of the module beside the .cu file, as "md.search.grid.linked".
        name: of the kernel, with registers declared (`md.backend.OnDevice`).
        dtype: of the positions.
        law: of the force; None for a kernel that computes none.

    Raises:
        ValueError: a flock, and a kernel without registers declared for one.
    """
    found = declared(stem, name) or OnDevice()
    assert found.registers, f"{stem}.{name} declares no registers"
    registers = found.of_boids if isinstance(law, Boids) else found.registers
    if registers is None:
        raise ValueError(
            f"law Boids in {name!r} of {stem}; allowed: kernels with registers of a flock declared; count "
            "them as the compiler prints them, and give them as of_boids to OnDevice"
        )
    k = int(dtype.itemsize == 8)
    return {"block": int(found.threads), "registers": registers[k], "shared": found.static[k]}


@callee
def note_own(noted, rows, i):
    """Note position and velocity of the particle of a thread, in places 0 to 2 * pieces - 1."""
    width = 16 * rows.pieces
    note_row(noted, 0, rows.base[0] + width * i, rows.pieces, READ, True)
    note_row(noted, rows.pieces, rows.base[1] + width * i, rows.pieces, READ, False)


@callee
def note_partner(noted, rows, place, i, j, waits):
    """Note the position of a partner, and its velocity if it is in reach, in 2 * pieces places."""
    width = 16 * rows.pieces
    note_row(noted, place, rows.base[0] + width * j, rows.pieces, READ, waits)
    g = rows.grid[0]
    dr = displacement(g, load(rows.pos, i, g), load(rows.pos, j, g))
    if dot(dr, dr) < rows.reach2:
        note_row(noted, place + rows.pieces, rows.base[1] + width * j, rows.pieces, READ, True)


@callee
def note_moved(noted, rows, i):
    """Note the stores of the moved position and velocity, in the last places."""
    width = 16 * rows.pieces
    note_row(noted, LAST, rows.base[2] + width * i, rows.pieces, WRITTEN, True)
    note_row(noted, LAST + rows.pieces, rows.base[3] + width * i, rows.pieces, WRITTEN, False)
