"""Published worst-case dilations of curves, beside those computed.

Contract. A published value is text. A whole number or a fraction is exact. A number with a point has the
digits printed, or the first of an irrational number; the computed one, rounded to as many, must read equal.
A table has a row for each ordering, with its `name`, its `dim` and the columns of `LIMITS`.
"""

import math
from fractions import Fraction
from typing import NamedTuple

import pandas as pd

from experiments.results.tables import table_of

LIMITS = {"1": "limit_dilation_1", "2": "limit_dilation_2", "max": "limit_dilation_max"}  # norm -> column
TOLERANCE = 1e-6  # relative, of the computed values


class Published(NamedTuple):
    """Published worst-case dilations of a curve.

    Attributes:
        one: in the 1-norm, as text; "" if unknown.
        two: in the 2-norm.
        max: in the max norm.
        source: key of `SOURCES`; "" if all are unknown.
    """

    one: str = ""
    two: str = ""
    max: str = ""
    source: str = ""


SOURCES = {
    "plane": "Haverkort and van Walderveen (2010); as fractions, github.com/malykhin-yuri/peano",
    "space": "Haverkort, arXiv:1109.2323 (2011); as fractions, github.com/malykhin-yuri/peano",
    "tokarev": "Korneev and Shchepin (2018), of Tokarev's curve, which is Butz's",
}
PUBLISHED = {
    ("hilbert", 2): Published("9", "6", "6", "plane"),
    ("betaomega", 2): Published("9", "5", "5", "plane"),
    ("ar2w2", 2): Published("12", "260/43", "27/5", "plane"),
    ("meander", 2): Published("32/3", "20/3", "20/3", "plane"),
    ("peano", 2): Published("32/3", "8", "8", "plane"),
    ("haverkort_a26", 3): Published("896/9", "", "112/9", "space"),
    ("haverkort_f", 3): Published("89.8", "18.6", "14", "space"),
    ("butz", 3): Published("", "26.232", "896/37", "tokarev"),
}


def beside_published(table: pd.DataFrame) -> pd.DataFrame:
    """Compare the dilation of each curve's limit with the published one.

    Args:
        table: with the columns `name`, `dim` and those of `LIMITS`; rows of a curve are equal, and those
            without a limit are left out.

    Returns:
        A row for each curve and norm: `name`, `dim`, `norm`, `computed`, `published` and `source` (both empty
        if unknown), and `equal` (None if unknown).

    Raises:
        TypeError: no table.
        ValueError: missing columns.
    """
    table = table_of("table", table, ("name", "dim", *LIMITS.values()))
    curves = table.dropna(subset=list(LIMITS.values())).drop_duplicates(["name", "dim"])
    rows = []
    for curve in curves.sort_values(["dim", "name"]).to_dict("records"):
        published = PUBLISHED.get((curve["name"], curve["dim"]), Published())
        for (norm, column), text in zip(LIMITS.items(), published, strict=False):
            computed = float(curve[column])
            equal = is_equal(computed, text) if text else None
            source = SOURCES[published.source] if text else ""
            rows.append((curve["name"], curve["dim"], norm, computed, text, equal, source))
    columns = ["name", "dim", "norm", "computed", "published", "equal", "source"]
    return pd.DataFrame(rows, columns=columns)


def is_equal(computed: float, published: str) -> bool:
    """Return whether a computed number is the published one, to its digits."""
    if "." in published:
        digits = len(published.partition(".")[2])
        return f"{computed:.{digits}f}" == published
    return math.isclose(computed, Fraction(published), rel_tol=2 * TOLERANCE)
