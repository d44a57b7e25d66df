"""Loads and stores of our kernels on a core of a CPU, item by item, for `sfc.cache.core`.

A kernel is a compiled walk through it, as in `experiments.loads`; arrays are in the layout "aos" of the CPU:
a row of a particle is dim numbers of the precision.
"""

from collections.abc import Callable

import md
from experiments.loads.cores.grid import coherent_stream, linked_stream, scattered_stream
from experiments.loads.cores.lists import verlet_stream
from sfc.cache.core import CoreStream

OF_SEARCH: dict[str, Callable[[md.Simulation], CoreStream]] = {
    "coherent": coherent_stream,
    "linked": linked_stream,
    "scattered": scattered_stream,
    "verlet": verlet_stream,
}


def force_stream(simulation: md.Simulation) -> CoreStream:
    """Make the stream of the forces of a simulation on the CPU, at its present positions.

    Raises:
        ValueError: a search without a stream, or another backend.
    """
    name = simulation.config.search.name
    if name not in OF_SEARCH or simulation.backend.name != "cpu":
        raise ValueError(
            f"search {name!r} on {simulation.backend.name!r}; allowed: {', '.join(OF_SEARCH)} on 'cpu'"
        )
    return OF_SEARCH[name](simulation)
