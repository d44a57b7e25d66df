"""Methods of a simulation that all ranks call: an error of one is heard by the others."""

from __future__ import annotations

from collections.abc import Callable
from contextlib import nullcontext
from functools import wraps
from typing import Any, ParamSpec, TypeVar

P = ParamSpec("P")
T = TypeVar("T")


def of_all_ranks(method: Callable[P, T]) -> Callable[P, T]:
    """Return a function of a simulation that notifies the other ranks of an error of this one.

    Args:
        method: its first argument is the simulation.
    """

    @wraps(method)
    def called(*given: P.args, **named: P.kwargs) -> T:
        simulation: Any = given[0] if given else named.get("simulation")
        domain = getattr(getattr(simulation, "system", None), "domain", None)
        with nullcontext() if domain is None else domain.communicator.together():
            return method(*given, **named)

    return called
