"""Gains of a flock's searches over each other, over their own shuffled memory and over peers.

Contract. A table has the columns of `analysis.statistics` besides those of `FLOCK`, which identify a flock,
and `name`, that of a search in a memory order: "coherent", or "linked, shuffled".
"""

from itertools import pairwise

import pandas as pd

from experiments.results import gains as statistics
from experiments.results.baselines import SHUFFLED, again

FLOCK = ["n", "start", "rules", "precision", "age"]
RUNGS = ("naive", "scattered, shuffled", "coherent", "tiles")
TWICE = "coherent"  # measured twice: the difference is noise
PEERS = {"numpy": "numpy and cKDTree"}  # flag -> column `search` in tables
TARGET = 5  # gain over a peer


def rungs(table: pd.DataFrame) -> pd.DataFrame:
    """Compute the gain of each rung of B1 over the one before, in each flock.

    Args:
        table: with columns `run`, `round` and `name`.
    """
    found = []
    for before, rung in pairwise(RUNGS):
        gains = statistics.gains(table, FLOCK, "name", before)
        found.append(gains[gains["name"] == rung])
    return pd.concat([part for part in found if len(part)] or found[:1], ignore_index=True)


def over_peer(table: pd.DataFrame, peer: str) -> pd.DataFrame:
    """Compute the gain of each search over a peer in each flock: over the memory in which the peer is faster.

    Args:
        table: with columns `run`, `round`, `search` and `name`.
        peer: name in tables.

    Returns:
        Rows of `statistics.gains`, with the memory of the peer in `<peer> memory`.
    """
    own = table["search"] == peer
    names, found = set(table.loc[own, "name"]), []
    for _, flock in table.groupby(FLOCK, sort=False):
        times = flock[flock["search"] == peer].groupby("name")["time_ms"].median()
        if len(times):
            gains = statistics.gains(flock, FLOCK, "name", str(times.idxmin()))
            found.append(gains[~gains["name"].isin(names)])
    if not found:
        return statistics.gains(table.iloc[:0], FLOCK, "name", peer)
    return pd.concat(found, ignore_index=True)


def over_target(table: pd.DataFrame) -> list[str]:
    """Compare the fastest search of each flock with the faster memory of each peer in words.

    Args:
        table: with columns `run`, `round`, `search` and `name`.
    """
    lines = []
    for peer in PEERS.values():
        gains = over_peer(table, peer)
        if gains.empty:
            continue
        shown = with_state(gains.join(statistics.bounds(gains, "gain")))
        for (n, precision, state), rows in shown.groupby(["n", "precision", "state"], sort=False):
            best = rows.iloc[int(rows["centre"].to_numpy().argmax())]
            lines.append(
                f"{n:,} boids, {precision}, {state}: {best['name']} {_interval(best)} times as fast as "
                f"{best['over']} (target: {TARGET})"
            )
    return lines


def _interval(row: pd.Series) -> str:
    return f"{row['centre']:.3g} ({row['low']:.3g} to {row['high']:.3g})"


def memory_gains(table: pd.DataFrame) -> pd.DataFrame:
    """Compute the gain of each search in sorted memory over the same search in shuffled memory.

    Args:
        table: with columns `run`, `round` and `name`.

    Returns:
        Rows of `statistics.gains`, with the noise of `coherent`, which is measured twice.
    """
    of, found = table["name"].str.split(",").str[0], []
    for name in of.unique():
        gains = statistics.gains(
            table[of.isin([name, TWICE, again(TWICE)])], FLOCK, "name", f"{name}, {SHUFFLED}"
        )
        found.append(gains[gains["name"].str.split(",").str[0] == name])
    return pd.concat([part for part in found if len(part)] or found[:1], ignore_index=True)


def with_state(table: pd.DataFrame) -> pd.DataFrame:
    """Add the column `state`: start, rules and age of a flock, for legends."""
    several = table["rules"].nunique() > 1
    names = [
        f"{start}{f', {rules}' if several else ''}, {age} steps".replace("_", " ")
        for start, rules, age in zip(table["start"], table["rules"], table["age"], strict=True)
    ]
    return table.assign(state=names)
