"""Laws of divided gases, fitted to measured ranks in turn, and forecasts to more ranks than were measured.

Work of a rank in a step: a * owned + b * ghosts + c * peers + d, with one a, b, c, d for all divisions.
Ghosts of a rank: those of a cube of as many particles, times k * ranks**g, with a k and g of each division.
The network is not measured: it has a latency a message and a bandwidth.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Sequence
from typing import Any, NamedTuple

import numpy as np
import pandas as pd
from scipy.optimize import nnls

FEWEST = 4  # ranks from which on a division has faces on all sides
TERMS = ("owned_mean", "ghosts_mean", "peers_mean")  # and a constant
COEFFICIENTS = ("ns_per_particle", "ns_per_ghost", "ns_per_peer", "ns_per_step")
CASE = ["n", "ranks", "division"]
LAWS = ("owned_mean", "ghosts_mean", "peers_mean", "messages", "bytes", "work_mean_ms", "time_ms", "cell_d",
        "number_density")  # fmt: skip


class Halo(NamedTuple):
    """Law of the ghosts of a division.

    Attributes:
        factor: ghosts over those of a cube, of one rank.
        power: of the ranks, by which the factor grows.
        error: mean relative error of a case that is left out of the fit.
    """

    factor: float
    power: float
    error: float


class Laws(NamedTuple):
    """Laws of one table.

    Attributes:
        work_ms: (4,) ms of an owned particle, a ghost, a peer and a step.
        work_error: mean relative error of a case that is left out of the fit.
        halo: by division.
        like: by division, measured at the most ranks of the largest gas: peers, messages a peer, bytes a
            ghost, and the largest work over the mean.
        cell_d: width of a cell, in d.
        number_density: particles in d^3.
    """

    work_ms: np.ndarray
    work_error: float
    halo: dict[str, Halo]
    like: dict[str, dict[str, float]]
    cell_d: float
    number_density: float


def cube_ghosts(owned: Any, cell_d: float, number_density: float) -> Any:
    """Return the number of ghosts around a cube of particles, within a cell.

    Args:
        owned: number of particles in the cube; a number or an array.
        cell_d: width of a cell, in d.
        number_density: particles in d^3.
    """
    side = np.cbrt(owned / number_density)
    return number_density * ((side + 2 * cell_d) ** 3 - side**3)


def fit_laws(table: pd.DataFrame) -> Laws | None:
    """Fit the laws to a table of a uniform gas at one filling.

    Args:
        table: rows of `experiments.scaling` with the columns `CASE` and `LAWS`.

    Returns:
        The laws; None if fewer cases were measured than laws have numbers.
    """
    rows = table[(table["ranks"] >= FEWEST) & ~table["division"].str.endswith(" again")]
    cases = rows.groupby(CASE, sort=False)[[*LAWS]].median().reset_index()
    several = cases.groupby("division").size()
    if len(cases) < len(TERMS) + 2 or cases["division"].nunique() < 2 or several.min() < 3:
        return None
    cell, density = float(cases["cell_d"].median()), float(cases["number_density"].iloc[0])

    def halo_of(own: pd.DataFrame) -> np.ndarray:
        cubes = cube_ghosts(own["owned_mean"], cell, density)
        return np.polyfit(np.log(own["ranks"]), np.log(own["ghosts_mean"] / cubes), 1)

    def ghosts(law: np.ndarray, own: pd.DataFrame) -> np.ndarray:
        cubes = cube_ghosts(own["owned_mean"], cell, density)
        return np.asarray(cubes * np.exp(law[1]) * own["ranks"] ** law[0])

    halo = {}
    for division, own in cases.groupby("division", sort=False):
        power, factor = halo_of(own)
        error = left_out(own, "ghosts_mean", halo_of, ghosts)
        halo[str(division)] = Halo(math.exp(factor), float(power), error)
    error = left_out(cases, "work_mean_ms", _work_law, _work)
    most = cases[cases["ranks"] == cases["ranks"].max()]
    most = most[most["n"] == most["n"].max()].set_index("division")
    like = {
        str(division): {
            "peers": row["peers_mean"], "messages": row["messages"] / row["peers_mean"],
            "bytes": row["bytes"] / row["ghosts_mean"], "imbalance": row["time_ms"] / row["work_mean_ms"],
        }
        for division, row in most.iterrows()
    }  # fmt: skip
    return Laws(_work_law(cases), error, halo, like, cell, density)


def _terms(cases: pd.DataFrame) -> np.ndarray:
    return np.column_stack([cases[[*TERMS]].to_numpy(float), np.ones(len(cases))])


def _work_law(cases: pd.DataFrame) -> np.ndarray:
    """Fit the work by least squares of relative errors, with no negative term."""
    weight = 1 / cases["work_mean_ms"].to_numpy(float)
    return nnls(_terms(cases) * weight[:, None], np.ones(len(cases)))[0]


def _work(law: np.ndarray, cases: pd.DataFrame) -> np.ndarray:
    return _terms(cases) @ law


def left_out(
    cases: pd.DataFrame,
    value: str,
    fit: Callable[[pd.DataFrame], np.ndarray],
    law: Callable[[np.ndarray, pd.DataFrame], np.ndarray],
) -> float:
    """Return the mean relative error of the cases of a size and number of ranks, which the fit has not seen.

    Args:
        cases: a row of each case.
        value: column that the law gives.
        fit: returns the numbers of a law from cases.
        law: returns the values of cases by these numbers.
    """
    errors = []
    for _, out in cases.groupby(["n", "ranks"]):
        found = law(fit(cases.drop(out.index)), out)
        errors.extend(np.abs(found / out[value].to_numpy() - 1))
    return float(np.mean(errors))


def forecast(laws: Laws, n: int, ranks: Sequence[int], latency_us: float, gb_per_s: float) -> pd.DataFrame:
    """Forecast the time of a step of a larger gas on more ranks.

    Args:
        laws: fitted.
        n: number of particles.
        ranks: numbers of ranks.
        latency_us: of a message.
        gb_per_s: bandwidth of a rank.

    Returns:
        A row for each division and number of ranks: `owned`, `ghosts`, `peers`, `work_ms` of the largest
        rank, `network_ms`, and their sum `time_ms`; the numbers of the laws, and their errors.
    """
    rows = []
    for division, halo in laws.halo.items():
        if division not in laws.like:
            continue
        like = laws.like[division]
        for count in ranks:
            owned = n / count
            ghosts = cube_ghosts(owned, laws.cell_d, laws.number_density) * halo.factor * count**halo.power
            ghosts = min(ghosts, n - owned)
            work = float(laws.work_ms @ [owned, ghosts, like["peers"], 1.0]) * like["imbalance"]
            network = (
                1e-3 * latency_us * like["peers"] * like["messages"]
                + 1e-6 * like["bytes"] * ghosts / gb_per_s
            )
            rows.append({
                "kind": "forecast", "division": division, "n": n, "ranks": count, "owned": owned,
                "ghosts": ghosts, "peers": like["peers"], "work_ms": work, "network_ms": network,
                "time_ms": work + network, "halo_factor": halo.factor, "halo_power": halo.power,
                "halo_law_error": halo.error, "work_law_error": laws.work_error,
                **dict(zip(COEFFICIENTS, 1e6 * laws.work_ms, strict=True)),
            })  # fmt: skip
    return pd.DataFrame(rows)
