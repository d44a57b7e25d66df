"""Clusters: the quarters or octants of a scene, moved apart in a wider box."""

import numpy as np

from md.checks import instance, number
from md.particles.box import Box
from md.particles.state import State

MOST = 1e6  # largest volume of the box over that of the clusters


def in_clusters(state: State, room: float) -> State:
    """Move the 4 quarters (2D) or 8 octants (3D) of a scene apart, in a wider box of the same shape.

    Args:
        state: particles in a box.
        room: volume of the new box over that of the old one, 1 to 10^6.

    Returns:
        The same particles in the same order: clusters around the quarter points of the new box, each as dense
        as before, with as much empty space between them along each axis.

    Raises:
        TypeError: an argument of another class.
        ValueError: a ratio outside its range.
    """
    instance("state", state, State, "an md.State")
    room = number("room of the clusters", room, 1, MOST)
    box, lengths = state.box, np.array(state.box.lengths)
    wider = lengths * room ** (1 / box.dim)
    is_upper = np.asarray(state.pos) >= lengths / 2
    pos = state.pos + (wider - lengths) / 4 + is_upper * ((wider - lengths) / 2)
    new_box = Box(tuple(map(float, wider)), box.periodic, open=box.open)
    return State(pos, state.vel, new_box, state.id, state.radius)
