"""What a pair law is.

Contract. A search visits, for each particle i, every particle j that could interact with it and folds

    acc = interact(law, vel, i, j, r2, dr, vi, acc)

over them, where `law` is what the law's `parameters` returned, `dr = r_i - r_j` between nearest images,
`r2 = dr . dr` and `vi` is the velocity of i. `acc` starts at zero and is written to the output row of i. The
law tests the distance itself and loads the partner's velocity only where it needs it. A law registers its own
overload of `interact` for the type of its parameters, in its own file, beside the CUDA functor of that stem.
"""

from typing import Any, Protocol

import numpy as np
from numba import types
from numba.extending import register_jitable


def interact(law, vel, i, j, r2, dr, vi, acc):
    """The accumulator of particle i after meeting particle j; see the module's contract."""
    raise NotImplementedError("only inside a kernel, where Numba puts a law's overload in its place")


def potential(law, r):
    """Energy of a pair at distance r, less than the cutoff; `law` is what `parameters` returned."""
    raise NotImplementedError("only inside a kernel, where Numba puts a law's overload in its place")


def is_record_of(law, fields: tuple[str, ...]) -> bool:
    """Whether the Numba type of a law is an array of records with these fields and no others."""
    return (
        isinstance(law, types.Array)
        and isinstance(law.dtype, types.Record)
        and set(law.dtype.fields) == set(fields)
    )


@register_jitable(forceinline=True)
def pair_size(radius, i, j):
    """Sum of the radii of two particles, in d, the distance at which they touch; 1 without radii."""
    return radius[i] + radius[j] if len(radius) else radius.dtype.type(1)


class PairLaw(Protocol):
    """What a search needs to know of a law.

    A law that nothing drives may have two attributes more, for `md.watch`: `potential(distance)`, the energy
    of a pair, and `closest_start`, the distance in d that no two centres of a start go below. One with the
    method registers an overload of the function `potential` too, and has it in its CUDA functor: `md.observe`
    sums the energy where the particles are.

    All of it is about two particles whose radii are a half; what follows for others, `md.laws.sized` says.

    One that takes down what pairs amount to, instead of pushing, has `looks` true: it must meet each pair
    from either side.

    Attributes:
        cutoff: no interaction at this distance or beyond, in d.
    """

    cutoff: float

    def parameters(self, precision: np.dtype) -> Any:
        """What kernels take as `law`."""
