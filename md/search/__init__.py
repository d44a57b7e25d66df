"""Neighbour searches. A new one is its own file (pair) and one line here."""

from md import checks
from md.search.base import Search, StepPlan
from md.search.bvh.lbvh import Lbvh
from md.search.bvh.reflexive import Reflexive
from md.search.coherent import Coherent
from md.search.linked import Linked
from md.search.naive import Naive
from md.search.scattered import Scattered
from md.search.tiles import Tiles
from md.search.verlet import Verlet

__all__ = [
    "SEARCHES",
    "Coherent",
    "Lbvh",
    "Linked",
    "Naive",
    "Reflexive",
    "Scattered",
    "Search",
    "StepPlan",
    "Tiles",
    "Verlet",
    "search",
]

SEARCHES: dict[str, type[Search]] = {
    "naive": Naive,
    "linked": Linked,
    "scattered": Scattered,
    "coherent": Coherent,
    "tiles": Tiles,
    "verlet": Verlet,
    "lbvh": Lbvh,
    "reflexive": Reflexive,
}


def search(choice: str | Search) -> Search:
    """A search by name, or a configured one as it is.

    Raises:
        TypeError: neither a name nor a search.
        ValueError: an unknown name; lists those known.
    """
    if isinstance(choice, Search):
        return choice
    return SEARCHES[checks.word("search", choice, SEARCHES, "or a search, such as md.search.Verlet()")]()
