"""Which cases of a test run every time, and which by night (`pytest -m nightly`)."""

from collections.abc import Callable, Iterable

import pytest

EVERY_TIME = ("linked", "verlet", "lbvh")  # of the searches: lists of cells, lists of particles, a tree


def by_night(*values):
    """A case that is left to the night."""
    return pytest.param(*values, marks=pytest.mark.nightly)


def quick(*values):
    """A case that is quick, of a test whose other cases are not."""
    return pytest.param(*values, marks=pytest.mark.quick)


def every_time(cases: Iterable, chosen: Callable[..., bool]) -> list:
    """All cases as parameters; those that are not chosen are left to the night.

    Args:
        cases: values, or tuples of them.
        chosen: of the values of a case, whether it runs every time.
    """
    found = []
    for case in cases:
        values = case if isinstance(case, tuple) else (case,)
        found.append(case if chosen(*values) else by_night(*values))
    return found


def searches(names: Iterable[str], every: Iterable[str] = EVERY_TIME) -> list:
    """Names of searches as parameters; those that are not among `every` are left to the night."""
    chosen = set(every)
    return every_time(sorted(names), lambda name: name in chosen)
