"""Free flight on the CPU: the moves of a block of particles as if none had a partner, in vector instructions.

Few particles of a gas are in contact at a time. To move all of a block freely, and then those in contact
again, takes a fraction of the time of moving each by itself. The loops are over the numbers of all rows, one
after another, so that the compiler makes vector instructions of them.
"""

from typing import Any, NamedTuple

import numpy as np

from sfc.compile import chosen_by, inlined

at = np.uint64  # unsigned index: Numba tests a signed one for being negative at each access


class FreeFlight(NamedTuple):
    """Arrays for the free flight of blocks.

    Attributes:
        pos, vel: (dim n,) numbers of the rows.
        new_pos, new_vel: (dim n,), filled; not those of `pos` and `vel`.
        drift: time of the flight.
        corner: vector of the lengths of the box, in d.
        upper: (dim most,) these lengths again and again, for blocks of up to `most` particles.
        squares: (dim most,) largest squares of speeds of the particles at the same place of their blocks, at
            every dim-th place; the numbers between have no meaning.
    """

    pos: Any
    vel: Any
    new_pos: Any
    new_vel: Any
    drift: Any
    corner: Any
    upper: Any
    squares: Any


def _none(out, grid, law, pos, vel, most):
    return lambda out, grid, law, pos, vel, most: None


@chosen_by("out", default=_none)
def free_flight(out, grid, law, pos, vel, most):
    """Return the `FreeFlight` for an output that moves particles, or None if `finish` has to move each.

    Args:
        out: of `finish`.
        grid: record of the box.
        law: parameters of the law.
        pos: (n, dim) positions.
        vel: (n, dim) velocities.
        most: largest number of particles of a block.
    """
    raise NotImplementedError("only in a kernel, where Numba compiles the code of the output instead")


def kick_drift_flight(out, grid, law, pos, vel, most):
    """Return the code of `free_flight` for `md.integrate.fused.KickDrift` without an external field."""
    if not all(array.layout == "C" for array in (pos, vel, *out.types[:2])):
        return _none(out, grid, law, pos, vel, most)
    dim = grid.fields["length"].type.shape[0]

    def make(out, grid, law, pos, vel, most):
        length = grid.length
        corner = (length[0], length[1]) if dim == 2 else (length[0], length[1], length[2])
        upper, squares = np.empty(dim * most, pos.dtype), np.zeros(dim * most, pos.dtype)
        for k in range(dim * most):
            upper[k] = length[k % dim]
        new_pos, new_vel = out.pos.reshape(out.pos.size), out.vel.reshape(out.vel.size)
        return FreeFlight(
            pos.reshape(pos.size), vel.reshape(vel.size), new_pos, new_vel, out.drift, corner, upper, squares
        )

    return make


@inlined
def move(flight, begin, size):
    """Move the rows from number `begin` on, and return whether all are well inside the box then."""
    for k in range(size):
        flight.new_vel[at(begin + k)] = flight.vel[at(begin + k)]
    beyond = 0
    for k in range(size):
        r = flight.pos[at(begin + k)] + flight.drift * flight.vel[at(begin + k)]
        flight.new_pos[at(begin + k)] = r
        beyond |= not ((r >= 0) & (r < flight.upper[at(k)]))  # not a number is beyond
    return beyond == 0


@inlined
def fly(flight, lowest, highest):
    """Move the particles of a block, from `lowest` to the one before `highest`, as if they had no partners.

    Returns:
        Whether they were moved. If not, because one would leave the box or because `flight` is None, their
        new rows have no meaning.
    """
    if flight is None:
        return False
    dim, vel, squares = len(flight.corner), flight.vel, flight.squares
    begin, size = dim * lowest, dim * (highest - lowest)
    if not move(flight, begin, size):
        return False
    for k in range(size - dim + 1):
        square = vel[at(begin + k)] * vel[at(begin + k)]
        for axis in range(1, dim):
            square += vel[at(begin + k + axis)] * vel[at(begin + k + axis)]
        squares[at(k)] = square if square > squares[at(k)] else squares[at(k)]
    return True


@inlined
def fastest_of(flight):
    """Return the square of the largest speed of all that flew, in d^2 per time unit^2; 0 for None."""
    if flight is None:
        return 0.0
    largest = 0.0
    for k in range(0, len(flight.squares), len(flight.corner)):
        largest = max(largest, float(flight.squares[k]))
    return largest
