"""Laws of work and halo are found again in tables that obey them, and forecasts follow from them."""

import numpy as np
import pandas as pd
import pytest

from experiments.forecasts.ranks import fit_laws, forecast, ideal_ghosts
from experiments.prediction.divided.divisions import MANY_CELLS, MANY_RANKS, on_many_ranks

WORK = np.array([3e-5, 2e-5, 0.01, 0.3])  # ms of a particle, a ghost, a peer, a step
HALO = {"hilbert": 1.3, "row": 1.1}
PEERS = {"hilbert": 14.0, "row": 2.0}
CELL, DENSITY = 2.6, 0.38


def table(noise: float = 0.0, ranks=(1, 2, 4, 8, 16)) -> pd.DataFrame:
    random, rows = np.random.default_rng(1), []
    for n in (2**15, 2**18):
        for count in ranks:
            for division, factor in HALO.items():
                owned = n / count
                ghosts = factor * ideal_ghosts(division, n, count, CELL, DENSITY) if count > 1 else 0
                peers = PEERS[division] - 8 / count * (division == "hilbert")
                work = WORK @ [owned, ghosts, peers, 1] * np.exp(noise * random.normal())
                rows.append({
                    "n": n, "ranks": count, "division": division, "owned_mean": owned, "ghosts_mean": ghosts,
                    "peers_mean": peers, "messages": 1.1 * peers, "bytes": 20 * ghosts, "work_mean_ms": work,
                    "time_ms": 1.25 * work, "cell_d": CELL, "number_density": DENSITY, "peers_of_many": 20.0,
                })  # fmt: skip
    return pd.DataFrame(rows)


def test_ghosts_of_a_cube_are_those_of_the_cells_around_it():
    n = 512 * 4**3 * 8  # 512 ranks of 4 x 4 x 4 cells of 8 particles
    assert ideal_ghosts("hilbert", n, 512, 2.0, 1.0) == pytest.approx(8 * (6**3 - 4**3))


def test_ghosts_of_slabs_are_layers_or_rows():
    n = 32**3 * 8  # 32 layers of 32 rows of 32 cells
    assert ideal_ghosts("row", n, 16, 2.0, 1.0) == pytest.approx(8 * 2 * 32**2)
    assert ideal_ghosts("row", n, 512, 2.0, 1.0) == pytest.approx(8 * (3 * 4 - 2) * 32)  # two rows each
    assert ideal_ghosts("row", n, 2, 2.0, 1.0) == pytest.approx(8 * 2 * 32**2)


def test_there_are_no_more_ghosts_than_particles_of_others():
    assert ideal_ghosts("hilbert", 64, 2, 2.0, 1.0) == 32


@pytest.mark.parametrize(
    ("division", "factor"), [("bricks", 1.0), ("row", 1.0), ("hilbert", 1.3), ("gilbert", 1.2)]
)
def test_ghosts_on_512_ranks_are_counted_near_those_of_a_factor_for_few_ranks(division, factor):
    """The factors are those that were counted on 8 and 16 ranks of larger grids."""
    n = float(MANY_CELLS**3)  # a particle in each cell
    counted = on_many_ranks(division).ghosts * n / MANY_RANKS
    assert counted == pytest.approx(factor * ideal_ghosts(division, n, MANY_RANKS, 1.0, 1.0), rel=0.1)


def test_laws_are_found_again():
    laws = fit_laws(table())
    assert laws.work_ms == pytest.approx(WORK, rel=1e-6)
    assert laws.work_error < 1e-6
    for division, factor in HALO.items():
        assert laws.like[division]["halo"] == pytest.approx(factor)
        assert laws.like[division]["halo_error"] < 1e-9
    assert laws.like["row"]["imbalance"] == pytest.approx(1.25)
    assert laws.like["hilbert"]["peers"] == 20.0  # counted on many ranks


def test_the_error_of_a_case_that_is_left_out_is_about_the_noise():
    assert 0.02 < fit_laws(table(noise=0.1)).work_error < 0.3


def test_one_rank_and_second_measurements_are_not_fitted():
    rows = table()
    rows.loc[rows["ranks"] == 1, "work_mean_ms"] *= 100
    again = rows.assign(division=rows["division"] + " again", work_mean_ms=1e9)
    assert fit_laws(pd.concat([rows, again])).work_ms == pytest.approx(WORK, rel=1e-6)


def test_halos_of_few_ranks_are_not_fitted():
    rows = table()
    rows.loc[rows["ranks"] < 8, "ghosts_mean"] *= 0.5
    assert fit_laws(rows).like["hilbert"]["halo"] == pytest.approx(HALO["hilbert"])


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
    owned, messages = 2**24 / 4096, 20.0 * 1.1
    ghosts = 1.3 * ideal_ghosts("hilbert", 2**24, 4096, CELL, DENSITY)
    assert one["ghosts"] == pytest.approx(ghosts)
    assert one["work_ms"] == pytest.approx(1.25 * (WORK @ [owned, ghosts, 20.0, 1]))
    assert one["network_ms"] == pytest.approx(1e-3 * 2.0 * messages + 20 * ghosts / 20e9 * 1e3)
    assert one["time_ms"] == pytest.approx(one["work_ms"] + one["network_ms"])
