"""Every published dilation is that of the curve of its name; a wrong digit is seen."""

import math

import pandas as pd
import pytest

import sfc
from experiments.results.published_dilation import LIMITS, PUBLISHED, SOURCES, beside_published, is_equal


def table_of(*curves: tuple[str, int]) -> pd.DataFrame:
    norms = dict(zip(LIMITS.values(), (1, 2, math.inf), strict=True))
    rows = [
        {"name": name, "dim": dim}
        | {column: sfc.locality.limit_dilation(sfc.curve(name, dim), norm) for column, norm in norms.items()}
        for name, dim in curves
    ]
    return pd.DataFrame(rows)


def test_every_published_value_is_the_computed_one_to_its_digits():
    compared = beside_published(table_of(*PUBLISHED))
    assert len(compared) == 3 * len(PUBLISHED)
    known = compared[compared["published"] != ""]
    assert known["equal"].all()
    assert set(known["source"]) == set(SOURCES.values())
    assert compared.loc[compared["published"] == "", "equal"].isna().all()


def test_a_curve_is_compared_once_and_an_ordering_without_a_limit_is_left_out():
    table = table_of(("hilbert", 2), ("hilbert", 2), ("morton", 2))
    scan = {"name": "row", "dim": 2} | dict.fromkeys(LIMITS.values(), math.nan)
    compared = beside_published(pd.concat([table, pd.DataFrame([scan])]))
    assert compared["name"].tolist() == 3 * ["hilbert"] + 3 * ["morton"]
    assert compared["norm"].tolist() == 2 * ["1", "2", "max"]
    assert compared["equal"].tolist() == 3 * [True] + 3 * [None]
    assert (compared["computed"][3:] == math.inf).all()


@pytest.mark.parametrize(
    ("computed", "published", "equal"),
    [
        (6.0, "6", True),
        (6.0001, "6", False),
        (5.9999999, "6", True),
        (6.0465116, "260/43", True),
        (6.047, "260/43", False),
        (18.5662, "18.6", True),
        (18.5662, "18.57", True),
        (18.5662, "18.5", False),
        (math.inf, "6", False),
    ],
)
def test_equal_means_the_digits_printed(computed, published, equal):
    assert is_equal(computed, published) == equal


def test_a_table_without_the_columns_is_refused():
    with pytest.raises(ValueError, match=r"no column .*'limit_dilation_1'"):
        beside_published(pd.DataFrame({"name": ["hilbert"], "dim": [2]}))
    with pytest.raises(TypeError, match=r"table = .*; allowed: a pandas.DataFrame"):
        beside_published([1])
