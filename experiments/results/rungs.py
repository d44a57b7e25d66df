"""Times and gains of the rungs of a ladder: over the first rung, and over the one that each changes.

A rung is one variant of a code, a ladder all of them. Tables have the columns `n`, `rung`, `run`, `round` and
`time_ms`. A ladder is a mapping of the name of each rung, in order, to the name of the rung that it is
compared with (None for none).
"""

from collections.abc import Mapping

import pandas as pd

from experiments.results import gains as statistics
from experiments.results.answers import Answer, compared, headline, largest_gain, pair_in_words, quoted
from experiments.results.baselines import is_again

CASE = ["n", "rung"]


def summary(table: pd.DataFrame, ladder: Mapping[str, str | None]) -> pd.DataFrame:
    """Average over runs each rung of each size: its time, its gains over the first and over its own rung.

    Args:
        table: of times; also with `crowded_share`, if it was measured.
        ladder: name of a rung -> name of the rung that it is compared with.

    Returns:
        A row for each size and rung, without second measurements: the columns of `statistics.over_runs` for
        `time_ms`, those of `statistics.named` for gains over the first rung, and those of
        `gains_over_compared`.

    Raises:
        TypeError: an argument of a wrong class.
        ValueError: a column that is missing.
    """
    found = statistics.over_runs(table, CASE, "time_ms")
    if "crowded_share" in table:  # of particles with more contacts than lists have room for
        crowded = table.groupby(CASE, sort=False)["crowded_share"].median().reset_index()
        found = found.merge(crowded, on=CASE, how="left")
    first = table["rung"].iloc[0]
    gains = statistics.gains(table, ["n"], "rung", first)
    if not gains.empty:
        over_first = statistics.named(gains, first.replace(" ", "_"))
        found = found.merge(over_first, on=CASE, how="left")
    compared = gains_over_compared(table, ladder)
    if not compared.empty:
        found = found.merge(compared.drop(columns=["runs", "rounds"]), on=CASE, how="left")
    return found[~found["rung"].map(is_again)].reset_index(drop=True)


def gains_over_compared(table: pd.DataFrame, ladder: Mapping[str, str | None]) -> pd.DataFrame:
    """Compute the gain of each rung over the rung that it is compared with, given in column `over`.

    Args:
        table: of times.
        ladder: name of a rung -> name of the rung that it is compared with.

    Returns:
        Rows of `statistics.gains`; none for a rung if it or its own rung was not measured.

    Raises:
        TypeError: an argument of a wrong class.
        ValueError: a column that is missing.
    """
    names, found = set(table["rung"]), []
    for over in ladder:
        compared = [name for name in ladder if ladder[name] == over and name in names]
        if compared and over in names:
            gains = statistics.gains(table, ["n"], "rung", over)
            found.append(gains[gains["rung"].isin(compared)])
    return pd.concat(found, ignore_index=True) if found else pd.DataFrame()


def answer(table: pd.DataFrame, ladder: Mapping[str, str | None], what: str) -> Answer:
    """Compare the fastest rungs with the first one, and name the largest single gain, at the largest size.

    Args:
        table: of times.
        ladder: name of a rung -> name of the rung that it is compared with.
        what: name of the particles: "discs".

    Raises:
        TypeError: an argument of a wrong class.
        ValueError: a column that is missing.
    """
    rows = table.sort_values("n", ascending=False, kind="stable")
    steps, more = gains_over_compared(headline(rows, "n"), ladder), ""
    if not steps.empty:
        largest = largest_gain(steps)
        names = quoted(largest["rung"]), quoted(largest["over"])
        more = f"the largest step is {pair_in_words(largest, *names)}"
    where, first = f"At {rows['n'].iloc[0]:,} {what}", table["rung"].iloc[0]
    return compared(rows, "rung", [first], "n", where, lambda count: f"n {count:,}", more=more)
