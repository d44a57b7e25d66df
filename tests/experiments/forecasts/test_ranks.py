"""Laws of work and halo are found again in tables that obey them, and forecasts follow from them."""

import numpy as np
import pandas as pd
import pytest

from experiments.forecasts.ranks import FEWEST, cube_ghosts, fit_laws, forecast

WORK = np.array([3e-5, 2e-5, 0.01, 0.3])  # ms of a particle, a ghost, a peer, a step
HALO = {"hilbert": (1.3, 0.02), "row": (0.7, 0.3)}
PEERS = {"hilbert": 14.0, "row": 2.0}
CELL, DENSITY = 2.6, 0.38


def table(noise: float = 0.0, ranks=(1, 2, 4, 8, 16)) -> pd.DataFrame:
    random, rows = np.random.default_rng(1), []
    for n in (2**15, 2**18):
        for count in ranks:
            for division, (factor, power) in HALO.items():
                owned = n / count
                ghosts = factor * count**power * cube_ghosts(owned, CELL, DENSITY)
                peers = PEERS[division] - 8 / count
                work = WORK @ [owned, ghosts, peers, 1] * np.exp(noise * random.normal())
                rows.append({
                    "n": n, "ranks": count, "division": division, "owned_mean": owned, "ghosts_mean": ghosts,
                    "peers_mean": peers, "messages": 1.1 * peers, "bytes": 20 * ghosts, "work_mean_ms": work,
                    "time_ms": 1.25 * work, "cell_d": CELL, "number_density": DENSITY,
                })  # fmt: skip
    return pd.DataFrame(rows)


def test_ghosts_of_a_cube_are_those_of_the_cells_around_it():
    assert cube_ghosts(8.0, 2.0, 1.0) == pytest.approx(6**3 - 2**3)


def test_laws_are_found_again():
    laws = fit_laws(table())
    assert laws.work_ms == pytest.approx(WORK, rel=1e-6)
    assert laws.work_error < 1e-6
    for division, (factor, power) in HALO.items():
        found = laws.halo[division]
        assert (found.factor, found.power) == pytest.approx((factor, power))
        assert found.error < 1e-9
    assert laws.like["row"]["imbalance"] == pytest.approx(1.25)
    assert laws.like["hilbert"]["peers"] == 13.5


def test_the_error_of_a_case_that_is_left_out_is_about_the_noise():
    assert 0.02 < fit_laws(table(noise=0.1)).work_error < 0.3


def test_few_ranks_and_second_measurements_are_not_fitted():
    rows = table()
    rows.loc[rows["ranks"] < FEWEST, "work_mean_ms"] *= 100
    again = rows.assign(division=rows["division"] + " again", work_mean_ms=1e9)
    assert fit_laws(pd.concat([rows, again])).work_ms == pytest.approx(WORK, rel=1e-6)


def test_too_few_cases_have_no_laws():
    assert fit_laws(table(ranks=(1, 2, 4))) is None
    assert fit_laws(table()[lambda rows: rows["division"] == "row"]) is None
    assert fit_laws(table(ranks=(1,))) is None


def test_a_forecast_is_the_laws_and_the_network():
    laws = fit_laws(table())
    rows = forecast(laws, 2**24, [64, 4096], latency_us=2.0, gb_per_s=20.0)
    assert set(rows["kind"]) == {"forecast"}
    assert list(zip(rows["division"], rows["ranks"], strict=True)) == [
        ("hilbert", 64), ("hilbert", 4096), ("row", 64), ("row", 4096)
    ]  # fmt: skip
    one = rows.iloc[1]
    owned, peers = 2**24 / 4096, 13.5
    ghosts = 1.3 * 4096**0.02 * cube_ghosts(owned, CELL, DENSITY)
    assert one["ghosts"] == pytest.approx(ghosts)
    assert one["work_ms"] == pytest.approx(1.25 * (WORK @ [owned, ghosts, peers, 1]))
    assert one["network_ms"] == pytest.approx(1e-3 * 2.0 * 1.1 * peers + 20 * ghosts / 20e9 * 1e3)
    assert one["time_ms"] == pytest.approx(one["work_ms"] + one["network_ms"])


def test_ghosts_are_no_more_than_the_particles_of_others():
    laws = fit_laws(table())
    rows = forecast(laws, 4096, [2048], 2.0, 20.0)
    assert (rows["ghosts"] <= 4096 - 2).all()
