"""Claims of [cavity] on its strategies, each judged by the gain of one way of computing over another.

Contract. A table has the columns of `analysis.statistics` besides those of `CAVITY`, which identify a cavity,
and `name`, that of a strategy with its layout, if it has several, and its memory order, if it is not rows:
"numpy", "serial, structs", "serial, arrays, hilbert".
"""

from typing import NamedTuple

import pandas as pd

from experiments.results import gains as statistics
from experiments.results.baselines import again

CAVITY = ["n", "precision"]
TWICE = ("serial, arrays", "cuda, arrays")  # measured twice: the difference is noise of the CPU, the device
DEVICE = ("cuda", "tiled")  # strategies of the claims that run on a device
SMALL, LARGE = 41, 1000  # points a side in the claims
ROW = "row"
ONE_RUN = "no verdict from one run (take --runs 3 or more)"


class Claim(NamedTuple):
    """Claim that one way of computing is faster or slower than another.

    Attributes:
        claim: F1, F2 or F3.
        n: points a side; None for both sizes.
        name, over: names of the two ways.
        expected: "faster" or "slower".
        source: gain that the source measured on its machine; None where it gives an order only.
    """

    claim: str
    n: int | None
    name: str
    over: str
    expected: str
    source: float | None = None


CLAIMS = (
    Claim("F1", SMALL, "serial, structs", "numpy", statistics.FASTER, 2.5),
    Claim("F1", SMALL, "threads, structs", "serial, structs", statistics.SLOWER),
    Claim("F1", SMALL, "cuda, structs", "serial, structs", statistics.SLOWER),
    Claim("F2", LARGE, "threads, structs", "serial, structs", statistics.FASTER, 1.09),
    Claim("F2", LARGE, "cuda, structs", "serial, structs", statistics.FASTER, 10.0),
    Claim("F2", LARGE, "tiled", "cuda, arrays", statistics.SLOWER),
    *(
        Claim("F3", None, f"{name}, arrays", f"{name}, structs", statistics.FASTER)
        for name in ("serial", "threads", "cuda")
    ),
)


def judged(table: pd.DataFrame) -> pd.DataFrame:
    """Compute the gain of each claim in each cavity of its size.

    Args:
        table: with columns `run`, `round` and `name`.

    Returns:
        Rows of `statistics.gains` with the columns `claim`, `expected` and `source_gain` (NaN where the
        source gives none).
    """
    found = []
    for claim in CLAIMS:
        rows = table[table["n"].isin([SMALL, LARGE] if claim.n is None else [claim.n])]
        gains = statistics.gains(_with_noise_of(rows, claim.name, claim.over), CAVITY, "name", claim.over)
        gains = gains[gains["name"] == claim.name]
        source = float("nan") if claim.source is None else claim.source
        found.append(gains.assign(claim=claim.claim, expected=claim.expected, source_gain=source))
    return pd.concat([part for part in found if len(part)] or found[:1], ignore_index=True)


def _with_noise_of(table: pd.DataFrame, *names: str) -> pd.DataFrame:
    """Leave out second measurements but those of the device, or of the CPU if one of the ways runs there."""
    cpu, device = (again(name) for name in TWICE)
    other = cpu if all(name.split(", ")[0] in DEVICE for name in names) else device
    return table[table["name"] != other]


def with_verdicts(found: pd.DataFrame) -> pd.DataFrame:
    """Add the column `verdict`: "confirmed", "refuted", "no difference", or `ONE_RUN`.

    Args:
        found: rows of `judged`.
    """
    measured = found["difference"] if "difference" in found else pd.Series("", found.index)
    verdicts = [_word(*pair) for pair in zip(measured, found["expected"], strict=True)]
    return found.assign(verdict=pd.Series(verdicts, found.index, dtype=object))


def _word(difference: object, expected: str) -> str:
    """Return the verdict on a claim, by the difference that was measured and the one expected."""
    if difference == expected:
        return "confirmed"
    if difference == statistics.NO_DIFFERENCE:
        return "no difference"
    return "refuted" if difference in (statistics.FASTER, statistics.SLOWER) else ONE_RUN


def order_gains(table: pd.DataFrame) -> pd.DataFrame:
    """Compute the gain of each memory order over rows, for each strategy in each layout.

    Args:
        table: with columns `run`, `round`, `name`, `strategy`, `layout` and `order`.

    Returns:
        Rows of `statistics.gains`, with the noise of `TWICE`.
    """
    found = []
    twice = table["name"].isin([*TWICE, *map(again, TWICE)])
    for (strategy, layout), rows in table.groupby(["strategy", "layout"], sort=False):
        if rows["order"].nunique() < 2:
            continue
        name = f"{strategy}, {layout}"
        others = table[twice & ~table["name"].isin(rows["name"])]
        gains = statistics.gains(_with_noise_of(pd.concat([rows, others]), name), CAVITY, "name", name)
        found.append(gains[gains["name"].str.startswith(f"{name}, ")])
    return pd.concat([part for part in found if len(part)] or [table.iloc[:0]], ignore_index=True)
