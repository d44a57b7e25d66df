"""Which cases of a test are in the default tier, and which are left to the nightly one."""

import itertools
from collections.abc import Callable, Iterable

import pytest
from hypothesis import settings

BY_DEFAULT = ("linked", "verlet", "lbvh")  # of the searches: lists of cells, lists of particles, a tree


def nightly(*values):
    """A case of the nightly tier alone."""
    return pytest.param(*values, marks=pytest.mark.nightly)


def quick(*values):
    """A quick case of a test whose other cases are not."""
    return pytest.param(*values, marks=pytest.mark.quick)


def by_default(cases: Iterable, keep: Callable[..., bool]) -> list:
    """All cases as parameters; those that are not kept are nightly.

    Args:
        cases: values, or tuples of them.
        keep: of the values of a case, whether it is in the default tier.
    """
    found = []
    for case in cases:
        values = case if isinstance(case, tuple) else (case,)
        found.append(case if keep(*values) else nightly(*values))
    return found


def searches(names: Iterable[str], kept: Iterable[str] = BY_DEFAULT) -> list:
    """Names of searches as parameters; those that are not kept are nightly."""
    chosen = set(kept)
    return by_default(sorted(names), lambda name: name in chosen)


def product(rows: list, columns: list, every: int) -> list:
    """Cases of rows by columns, one in `every` by default: of each row, and of each column, some.

    Args:
        rows: tuples of values, or single values.
        columns: single values.
        every: no more than there are of either; 1 to keep all.
    """
    cases = []
    for (i, row), (j, column) in itertools.product(enumerate(rows), enumerate(columns)):
        values = (*(row if isinstance(row, tuple) else (row,)), column)
        cases.append(nightly(*values) if (i + j) % every else values)
    return cases


def examples(count: int) -> settings:
    """Settings of a property test that draws so many examples by default, and in the nightly tier 500."""
    nightly = settings.get_current_profile_name() == "nightly"
    return settings(max_examples=settings.default.max_examples if nightly else count)
