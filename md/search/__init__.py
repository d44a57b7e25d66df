"""Neighbour searches. A new one is its own file (pair) and a word here, or is added by `register`."""

from md import checks
from md.particles.capabilities import SearchCapabilities as Capabilities
from md.registry import Registry, require_name
from md.search.base import Search, SearchConfig
from md.search.bvh.lbvh import Lbvh
from md.search.bvh.reflexive import Reflexive
from md.search.bvh.wide_bvh import WideBvh
from md.search.grid.coherent import Coherent
from md.search.grid.linked import Linked
from md.search.grid.naive import Naive
from md.search.grid.scattered import Scattered
from md.search.grid.tensor import Tensor
from md.search.grid.tiles import Tiles
from md.search.lists.displacement_bound import DisplacementBound
from md.search.policy import EveryStep, EverySteps, RebuildPolicy, StepPlan
from md.search.verlet import Verlet
from md.search.verlet_tree import VerletTree

__all__ = [
    "SEARCHES",
    "Capabilities",
    "Coherent",
    "DisplacementBound",
    "EveryStep",
    "EverySteps",
    "Lbvh",
    "Linked",
    "Naive",
    "RebuildPolicy",
    "Reflexive",
    "Scattered",
    "Search",
    "SearchConfig",
    "StepPlan",
    "Tensor",
    "Tiles",
    "Verlet",
    "VerletTree",
    "WideBvh",
    "register",
    "search",
]

BUILT_IN = (Naive, Linked, Scattered, Coherent, Tiles, Tensor, Verlet, VerletTree, Lbvh, Reflexive, WideBvh)
SEARCHES: Registry[SearchConfig] = Registry(
    "search", SearchConfig, check=require_name, built_in={config.name: config for config in BUILT_IN}
)
register = SEARCHES.register


def search(choice: str | SearchConfig | Search) -> SearchConfig:
    """Return the search of a name with its defaults, a configured one as it is, or that of a search at work.

    Raises:
        TypeError: neither a name nor a search.
        ValueError: an unknown name; lists those known.
    """
    if isinstance(choice, Search):
        return choice.config
    if isinstance(choice, SearchConfig):
        return choice
    return SEARCHES[checks.word("search", choice, SEARCHES, "or a search, such as md.search.Verlet()")]()
