"""What the default tier draws of a product of cases; all of it is for the nightly one."""

import itertools

import pytest
from hypothesis import settings


def fewer(part: int) -> settings:
    """Settings of a test whose examples are slow: one in `part` of those of the profile."""
    return settings(max_examples=max(1, settings.default.max_examples // part))


def nightly(*values):
    """A case of the nightly tier alone."""
    return pytest.param(*values, marks=pytest.mark.nightly)


def thinned(rows: list, columns: list, every: int) -> list:
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
