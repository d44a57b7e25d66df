"""Gains in flocks: over the faster memory of a peer."""

import pandas as pd
import pytest

from experiments.results import flock_gains


def table(times: dict, runs: int = 2, **flock) -> pd.DataFrame:
    """Make a table of times: a round of every run."""
    flock = {"n": 1000, "start": "uniform", "rules": "source", "precision": "float32", "age": 0} | flock
    return pd.DataFrame([
        flock | {"run": run, "round": 0, "name": name, "search": name.split(",")[0], "time_ms": ms}
        for run in range(runs) for name, ms in times.items()
    ])  # fmt: skip


GRIDS = {"scattered, shuffled": 4.0, "coherent": 2.0, "tiles": 2.5}


def test_a_gain_over_a_peer_is_over_its_faster_memory_in_each_flock():
    peers = {"numpy and cKDTree, shuffled": 20.0, "numpy and cKDTree, hilbert": 10.0}
    other = {"numpy and cKDTree, shuffled": 30.0, "numpy and cKDTree, hilbert": 40.0}
    both = pd.concat([table(GRIDS | peers), table(GRIDS | other, age=9), table(GRIDS, precision="float64")])
    found = flock_gains.over_peer(both, "numpy and cKDTree").set_index(["age", "name"])
    assert set(found.loc[0, "over"]) == {"numpy and cKDTree, hilbert"}
    assert set(found.loc[9, "over"]) == {"numpy and cKDTree, shuffled"}
    assert found.loc[(0, "coherent"), "gain"] == pytest.approx(5)
    assert found.loc[(9, "coherent"), "gain"] == pytest.approx(15)
    assert not found.index.get_level_values("name").str.contains("numpy").any()
    assert flock_gains.over_peer(table(GRIDS), "numpy and cKDTree").empty
