"""Loads and stores of our GPU kernels, warp by warp, for the model of memory in `sfc.cache`.

A kernel is a file here: a compiled walk through it as one thread takes it (`sfc.cache.in_lockstep`), or the
elements of arrays that its threads take (`sfc.cache.LoadStream.of`).
"""

from collections.abc import Callable

import md
from experiments.loads.force import StepLoads
from experiments.loads.linked import linked_loads
from experiments.loads.lists import verlet_loads
from experiments.loads.sorted_cells import coherent_loads, scattered_loads
from experiments.loads.wide_tree import wide_tree_loads
from md.search import Verlet


def _sorted_lists(simulation: md.Simulation) -> StepLoads:
    search = simulation.config.search
    assert isinstance(search, Verlet)
    return verlet_loads(simulation, cell_order=search.cell_order or "tiled")  # as a build on a device sorts


OF_SEARCH: dict[str, Callable[[md.Simulation], StepLoads]] = {
    "coherent": coherent_loads,
    "linked": linked_loads,
    "scattered": scattered_loads,
    "verlet": _sorted_lists,
    "wide_bvh": wide_tree_loads,
}


def step_loads(simulation: md.Simulation) -> StepLoads:
    """Make the streams of a step of a simulation on the CPU, by the search that it has.

    Raises:
        ValueError: a search without streams.
    """
    name = simulation.config.search.name
    if name not in OF_SEARCH:
        raise ValueError(f"search {name!r}; allowed: {', '.join(OF_SEARCH)}, of which loads are known")
    return OF_SEARCH[name](simulation)
