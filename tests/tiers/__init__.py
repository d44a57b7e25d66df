"""Which cases of a test are in which tier: the default one, `full` or `nightly`.

`tests/conftest.py` makes no case of a tier that was not asked for.
"""

import itertools
from collections.abc import Callable, Iterable

import pytest
from _pytest.mark import ParameterSet
from hypothesis import settings

BY_DEFAULT = ("linked", "verlet", "lbvh")  # of the searches: lists of cells, lists of particles, a tree


def nightly(*values):
    """A case of the nightly tier alone."""
    return pytest.param(*values, marks=pytest.mark.nightly)


def full(*values):
    """A case of the tier `full`."""
    return pytest.param(*values, marks=pytest.mark.full)


def quick(*values):
    """A quick case of a test whose other cases are not."""
    return pytest.param(*values, marks=pytest.mark.quick)


def by_default(cases: Iterable, keep: Callable[..., bool], others: Callable = nightly) -> list:
    """All cases as parameters; those that are not kept are of another tier.

    Args:
        cases: values, tuples of them, or parameters, which stay as they are.
        keep: of the values of a case, whether it is in the default tier.
        others: makes a parameter of another tier of the values: `nightly` or `full`.
    """
    found = []
    for case in cases:
        values = case if isinstance(case, tuple) else (case,)
        stays = isinstance(case, ParameterSet) or keep(*values)
        found.append(case if stays else others(*values))
    return found


def first(cases: Iterable, kept: int = 1) -> list:
    """All cases as parameters, the first of them in the default tier and the others in `full`."""
    every = list(cases)
    return [*every[:kept], *by_default(every[kept:], lambda *_: False, full)]


def searches(names: Iterable[str], kept: Iterable[str] = BY_DEFAULT, others: Callable = nightly) -> list:
    """Names of searches as parameters; those that are not kept are of another tier."""
    chosen = set(kept)
    return by_default(sorted(names), lambda name: name in chosen, others)


def product(rows: list, columns: list, every: int, others: Callable = nightly) -> list:
    """Cases of rows by columns, one in `every` by default: of each row, and of each column, some.

    Args:
        rows: tuples of values, or single values.
        columns: single values.
        every: no more than there are of either; 1 to keep all.
        others: makes a parameter of another tier of the other cases.
    """
    cases = []
    for (i, row), (j, column) in itertools.product(enumerate(rows), enumerate(columns)):
        values = (*(row if isinstance(row, tuple) else (row,)), column)
        cases.append(others(*values) if (i + j) % every else values)
    return cases


def examples(count: int) -> settings:
    """Settings of a property test that draws so many examples by default, and in the nightly tier 500."""
    nightly = settings.get_current_profile_name() == "nightly"
    return settings(max_examples=settings.default.max_examples if nightly else count)
