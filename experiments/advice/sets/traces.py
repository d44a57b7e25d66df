"""Traces of programs: which entries of a table are read, in turn.

Every function takes the number of entries and a seed, and returns the same arrays for the same two. `values`
is the table, (n, 2) float64, and `trace` the entries read. Entries have no coordinates.
"""

import numpy as np

from experiments.advice.sets.data import SetData


def hash_probes(n: int, seed: int, probes: int = 2) -> SetData:
    """Make probes of a hash table, of which every entry is equally likely.

    Args:
        n: entries.
        seed: of the table and the probes.
        probes: per entry.

    Returns:
        `values` and `trace`.
    """
    rng = np.random.default_rng(seed)
    return SetData(values=rng.random((n, 2)), trace=rng.integers(0, n, probes * n))


def zipf_probes(n: int, seed: int, probes: int = 2, exponent: float = 1.0) -> SetData:
    """Make probes of which some entries are far more likely than others, and lie anywhere in the table.

    Args:
        n: entries.
        seed: of the table, the probes and the places of the likely entries.
        probes: per entry.
        exponent: by which the probability of an entry falls with its rank.

    Returns:
        `values` and `trace`.
    """
    rng = np.random.default_rng(seed)
    likely = np.cumsum(np.arange(1.0, n + 1) ** -exponent)
    rank = np.searchsorted(likely[:-1], rng.random(probes * n) * likely[-1])
    return SetData(values=rng.random((n, 2)), trace=rng.permutation(n)[rank])


def tree_search(n: int, seed: int, share: float = 0.1) -> SetData:
    """Make binary searches of random keys in a sorted table: the tree lies in memory in order of its keys.

    Args:
        n: entries.
        seed: of the table and the keys.
        share: searches per entry.

    Returns:
        `values` and `trace`, the entries that a search compares with, one search after the other.
    """
    rng = np.random.default_rng(seed)
    key = rng.integers(0, n, max(1, int(share * n)))
    low, high, read = np.zeros_like(key), np.full_like(key, n - 1), []
    is_open = np.ones(len(key), bool)
    while is_open.any():
        middle = (low + high) // 2
        read.append(np.where(is_open, middle, -1))
        is_open &= middle != key
        low, high = np.where(middle < key, middle + 1, low), np.where(middle > key, middle - 1, high)
    trace = np.stack(read, axis=1).ravel()
    return SetData(values=rng.random((n, 2)), trace=trace[trace >= 0])


def merged_streams(n: int, seed: int, streams: int = 16) -> SetData:
    """Make a merge of sorted streams, one after the other in memory: each is read from its front.

    Args:
        n: entries of all streams, each of which is read once.
        seed: of the table and of the keys.
        streams: number of streams.

    Returns:
        `values` and `trace`.
    """
    rng = np.random.default_rng(seed)
    stream = np.arange(n) * streams // n
    keys = rng.random(n)
    keys = keys[np.lexsort((keys, stream))]  # sorted in each stream
    return SetData(values=rng.random((n, 2)), trace=np.argsort(keys, kind="stable"))
