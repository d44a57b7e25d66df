"""Laws of divided gases, fitted to measured ranks in turn, and forecasts to more ranks than were measured.

Work of a rank in a step: a * owned + b * ghosts + c * peers + d, with one a, b, c, d for all divisions.
Ghosts of a rank: k times those of an ideal domain of as many cells, with a k of each division. The ideal
domain is a cube, or for slabs whole layers of cells, or the rows of cells of a part of a layer. Many ranks
have the peers that were counted on 512 ranks. The network is not measured: it has a latency a message and a
bandwidth.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from functools import partial
from typing import Any, NamedTuple

import numpy as np
import pandas as pd
from scipy.optimize import nnls

from experiments.results.baselines import is_again

SLABS = "row"
FEWEST = 8  # ranks from which on a domain has others on all sides
TERMS = ("owned_mean", "ghosts_mean", "peers_mean")  # and a constant
COEFFICIENTS = ("ns_per_particle", "ns_per_ghost", "ns_per_peer", "ns_per_step")
CASE = ["n", "ranks", "division"]
LAWS = ("owned_mean", "ghosts_mean", "peers_mean", "messages", "bytes", "work_mean_ms", "time_ms", "cell_d",
        "number_density", "peers_of_many")  # fmt: skip


class Laws(NamedTuple):
    """Laws of one table.

    Attributes:
        work_ms: (4,) ms of an owned particle, a ghost, a peer and a step.
        work_error: mean relative error of a case that is left out of the fit.
        like: division -> `halo`, ghosts over those of an ideal domain, and `halo_error`, that of a case that
            is left out; `peers` of many ranks; at the most ranks of the largest gas: `messages` a peer,
            `bytes` a ghost, and `imbalance`, the largest work over the mean.
        cell_d: width of a cell, in d.
        number_density: particles in d^3.
    """

    work_ms: np.ndarray
    work_error: float
    like: dict[str, dict[str, float]]
    cell_d: float
    number_density: float


def ideal_ghosts(division: str, n: Any, ranks: Any, cell_d: Any, number_density: float) -> Any:
    """Return the number of ghosts around an ideal domain: those within a cell of it.

    Args:
        division: of slabs, or another one, which has cubes.
        n: number of particles of all ranks; a number or an array, as are the others.
        ranks: number of ranks.
        cell_d: width of a cell, in d.
        number_density: particles in d^3.
    """
    side = np.cbrt(n / number_density) / cell_d  # of the box, in cells
    if division == SLABS:
        rows = side**2 / ranks  # of cells, of which a layer has as many as it has cells a side
        cells = np.where(rows >= side, 2 * side**2, ((rows + 2) * 3 - rows) * side)
    else:
        own = side / np.cbrt(ranks)
        cells = (own + 2) ** 3 - own**3
    return np.minimum(cells * cell_d**3 * number_density, n - n / ranks)


def fit_laws(table: pd.DataFrame) -> Laws | None:
    """Fit the laws to a table of a uniform gas at one filling.

    Args:
        table: rows of `experiments.scaling` with the columns `CASE` and `LAWS`.

    Returns:
        The laws; None if fewer than two divisions have two cases of `FEWEST` ranks or more.
    """
    rows = table[(table["ranks"] > 1) & ~table["division"].map(is_again)]
    cases = rows.groupby(CASE, sort=False)[[*LAWS]].median().reset_index()
    many = cases[cases["ranks"] >= FEWEST]
    many = many[many.groupby("division")["n"].transform("size") > 1]
    if many["division"].nunique() < 2 or len(cases) < len(TERMS) + 2:
        return None
    like = {}
    for division, own in many.groupby("division", sort=False):
        name = str(division)
        last = own.sort_values(["n", "ranks"]).iloc[-1]
        (factor,) = _halo(name, own)
        like[name] = {
            "halo": float(factor),
            "halo_error": left_out(own, "ghosts_mean", partial(_halo, name), partial(_ghosts, name)),
            "peers": max(last["peers_mean"], last["peers_of_many"]),
            "messages": last["messages"] / last["peers_mean"], "bytes": last["bytes"] / last["ghosts_mean"],
            "imbalance": last["time_ms"] / last["work_mean_ms"],
        }  # fmt: skip
    error = left_out(cases, "work_mean_ms", _work_law, _work)
    largest = cases[cases["n"] == cases["n"].max()].iloc[0]
    return Laws(_work_law(cases), error, like, float(largest["cell_d"]), float(largest["number_density"]))


def _ideal(division: str, cases: pd.DataFrame) -> np.ndarray:
    n, ranks, cell = (cases[name].to_numpy(float) for name in ("n", "ranks", "cell_d"))
    return np.asarray(ideal_ghosts(division, n, ranks, cell, float(cases["number_density"].iloc[0])))


def _halo(division: str, cases: pd.DataFrame) -> np.ndarray:
    """Fit the factor of the ghosts, (1,), as the geometric mean of the cases."""
    return np.exp([np.log(cases["ghosts_mean"].to_numpy(float) / _ideal(division, cases)).mean()])


def _ghosts(division: str, law: np.ndarray, cases: pd.DataFrame) -> np.ndarray:
    return law[0] * _ideal(division, cases)


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
    for division, like in laws.like.items():
        for count in ranks:
            owned = n / count
            ideal = float(ideal_ghosts(division, n, count, laws.cell_d, laws.number_density))
            ghosts = min(like["halo"] * ideal, n - owned)
            work = float(laws.work_ms @ [owned, ghosts, like["peers"], 1.0]) * like["imbalance"]
            sent = like["peers"] * like["messages"], like["bytes"] * ghosts
            network = 1e-3 * latency_us * sent[0] + 1e-6 * sent[1] / gb_per_s
            rows.append({
                "kind": "forecast", "division": division, "n": n, "ranks": count, "owned": owned,
                "ghosts": ghosts, "peers": like["peers"], "work_ms": work, "network_ms": network,
                "time_ms": work + network, "halo_factor": like["halo"],
                "halo_law_error": like["halo_error"], "work_law_error": laws.work_error,
                **dict(zip(COEFFICIENTS, 1e6 * laws.work_ms, strict=True)),
            })  # fmt: skip
    return pd.DataFrame(rows)
