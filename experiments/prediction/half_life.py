"""Half-life of a memory order: the step at which half of its gain is left, read off the curve.

Contract. A curve is `left` over `steps`: the part of a gain that is left, 1 at the first observation. Its
half-life is where the curve crosses one half, not the parameter of a fitted law: decays are seldom of one
form over all their steps. A stretched exponential is fitted as well, and counts as a description of the curve
only if it is near every observation.
"""

import math

import numpy as np
import pandas as pd

from experiments.results.answers import percent, rounded

FITTED = (0.02, 0.98)  # range of what is left in the fit
SMALL_RESIDUAL = 0.02  # of the gain: largest distance of a fit from any observation


def crossing(steps: np.ndarray, left: np.ndarray, level: float = 0.5) -> float:
    """Return the step at which a curve first falls below a level; NaN if it does not.

    Between two observations the curve is interpolated over the logarithm of the steps, in which observations
    are equally far apart; from step 0 on, over the steps.

    Args:
        steps: (m,) growing, at least 0.
        left: (m,) values, which may be NaN.
        level: to be reached.
    """
    below = np.flatnonzero(left < level)
    if not len(below) or below[0] == 0:
        return math.nan
    before, after = steps[below[0] - 1], steps[below[0]]
    high, low = left[below[0] - 1], left[below[0]]
    share = (high - level) / (high - low)
    if before <= 0:
        return float(before + share * (after - before))
    return float(before * (after / before) ** share)


def crossings(rows: pd.DataFrame, repeat: str, steps: str) -> np.ndarray:
    """Return the half-life of each repeat of a case, NaN for those not reached: (repeats,).

    Args:
        rows: columns `left`, `repeat` and `steps`.
        repeat: column that tells curves apart.
        steps: column of the steps since the reorder, which grow in each repeat.
    """
    curves = [curve for _, curve in rows.groupby(repeat)]
    return np.array([crossing(curve[steps].to_numpy(), curve["left"].to_numpy()) for curve in curves])


def stretched_exponential(steps: np.ndarray, scale: float, exponent: float) -> np.ndarray:
    """Compute 2^-(steps / scale)^exponent: (m,)."""
    return np.exp2(-((steps / scale) ** exponent))


def fit(steps: np.ndarray, left: np.ndarray) -> tuple[float, float, float]:
    """Fit a stretched exponential to a curve.

    Args:
        steps: (m,) since the reorder.
        left: (m,) values.

    Returns:
        Scale in steps, exponent b, and the residual: the largest distance of 2^-(steps / scale)^b from an
        observation, as a part of the gain. NaN below three observations, or for a curve that grows; scale and
        exponent also if the residual is above `SMALL_RESIDUAL`. The scale is that of the fitted law, which
        need not reach one half within the observations.

    Kohlrausch's stretched exponential, by least squares in log(-log(left)) over log(steps).
    """
    use = (steps > 0) & (left > FITTED[0]) & (left < FITTED[1])
    if use.sum() < 3:
        return math.nan, math.nan, math.nan
    b, offset = np.polyfit(np.log(steps[use]), np.log(-np.log2(left[use])), 1)
    if not b > 0:
        return math.nan, math.nan, math.nan
    scale = float(np.exp(-offset / b))
    residual = float(np.nanmax(np.abs(stretched_exponential(steps, scale, b) - left)))
    return (scale, float(b), residual) if residual <= SMALL_RESIDUAL else (math.nan, math.nan, residual)


def with_range(name: str, values: np.ndarray) -> dict[str, float]:
    """Return median, lowest and highest of half-lives as columns: name, name_low, name_high.

    A half-life that was not reached lies beyond the last step, so it counts as later than all others. A
    median or an end that falls on one is NaN.

    Args:
        name: of the columns.
        values: (gases,) half-lives, of which those not reached are NaN.
    """
    found = np.where(np.isnan(values), np.inf, values)
    ends = (np.median(found), found.min(), found.max()) if len(found) else (math.nan,) * 3
    names = name, f"{name}_low", f"{name}_high"
    return {name: float(end) if np.isfinite(end) else math.nan for name, end in zip(names, ends, strict=True)}


def in_words(row: dict, name: str) -> str:
    """Format a half-life with its range: "120 (110 to later)", or "not reached".

    Args:
        row: columns of `with_range`.
        name: of the columns.
    """
    half, low, high = (rounded(row[name + end]) for end in ("", "_low", "_high"))
    if not np.isfinite(row[name]):
        return "not reached"
    return half if low in ("-", high) else f"{half} ({low} to {high.replace('-', 'later')})"


def lasts(row: dict, half: str, last: str) -> str:
    """Say after how many steps half of a gain is left, and what is left at the end, or that there is none.

    Args:
        row: columns of `with_range`, of `last`, and `left_last`, NaN without a gain.
        half: name of the columns of the half-life in steps.
        last: column of the last step.
    """
    if not np.isfinite(row["left_last"]):
        return "there is none to lose"
    rest = f"{percent(row['left_last'])} is left after {row[last]:,.0f} steps"
    return f"half is left after {in_words(row, half)} steps, {rest}" if np.isfinite(row[half]) else rest
