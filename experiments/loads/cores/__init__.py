"""Loads and stores of our kernels on a core of a CPU, item by item, for `sfc.cache.core`.

A kernel is a compiled walk through it, as in `experiments.loads`; arrays are in the layout "aos" of the CPU:
a row of a particle is dim numbers of the precision.
"""

from collections.abc import Callable

import md
from experiments.loads.cores.grid import coherent_stream, linked_stream, scattered_stream
from experiments.loads.cores.lists import verlet_stream
from md.search.sorted_copy import SortedCopySearch
from sfc.cache.core import CoreStream

OF_SEARCH: dict[str, Callable[[md.Simulation], CoreStream]] = {
    "coherent": coherent_stream,
    "linked": linked_stream,
    "scattered": scattered_stream,
    "verlet": verlet_stream,
}


def force_stream(simulation: md.Simulation) -> CoreStream:
    """Make the stream of the forces of a simulation on the CPU, at its present positions.

    The search is built, which moves the particles of one that sorts them.

    Args:
        simulation: of spheres of one size, with the work in memory order.

    Raises:
        ValueError: a search without a stream, cells that are divided, spheres of several sizes, a reorder of
            the work or of a copy, or another backend.
    """
    name = simulation.config.search.name
    if name not in OF_SEARCH or simulation.backend.name != "cpu":
        raise ValueError(
            f"search {name!r} on {simulation.backend.name!r}; allowed: {', '.join(OF_SEARCH)} on 'cpu'"
        )
    particles, division = simulation.system.particles, getattr(simulation.config.search, "division", None)
    is_plain = not (len(particles.work) or len(particles.radius) or division)
    if not is_plain or isinstance(simulation.search, SortedCopySearch):
        raise ValueError(
            f"a simulation by {name!r} with a reorder of threads or shadows, radii or divided cells; "
            "allowed: none of these, of which the loads are not known"
        )
    return OF_SEARCH[name](simulation)
