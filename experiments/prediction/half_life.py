"""Half-life of a memory order: the step at which half of its gain is left, read off the curve.

Contract. A curve is `left` over `steps`: the part of a gain that is left, 1 at the first observation. Its
half-life is where the curve crosses one half, not the parameter of a fitted law: decays are seldom of one
form over all their steps. A stretched exponential is fitted as well, and counts as a description of the curve
only if it is near every observation.
"""

import math

import numpy as np

from sfc import checks

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

    Raises:
        TypeError: an argument of a wrong class.
        ValueError: steps and left of different lengths.
    """
    steps, left = _curve(steps, left)
    below = np.flatnonzero(left < level)
    if not len(below) or below[0] == 0:
        return math.nan
    before, after = steps[below[0] - 1], steps[below[0]]
    high, low = left[below[0] - 1], left[below[0]]
    share = (high - level) / (high - low)
    if before <= 0:
        return float(before + share * (after - before))
    return float(before * (after / before) ** share)


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
        observation, as a part of the gain. NaN below three observations, or for a curve that grows. The scale
        is that of the fitted law, which need not reach one half within the observations.

    Raises:
        TypeError: an argument of a wrong class.
        ValueError: steps and left of different lengths.

    Kohlrausch's stretched exponential, by least squares in log(-log(left)) over log(steps).
    """
    steps, left = _curve(steps, left)
    use = (steps > 0) & (left > FITTED[0]) & (left < FITTED[1])
    if use.sum() < 3:
        return math.nan, math.nan, math.nan
    b, offset = np.polyfit(np.log(steps[use]), np.log(-np.log2(left[use])), 1)
    if not b > 0:
        return math.nan, math.nan, math.nan
    scale = float(np.exp(-offset / b))
    return scale, float(b), float(np.nanmax(np.abs(stretched_exponential(steps, scale, b) - left)))


def is_fitted(residual: float) -> bool:
    """Return whether a fit with this residual describes its curve."""
    return residual <= SMALL_RESIDUAL


def median_and_range(values: np.ndarray) -> tuple[float, float, float]:
    """Return median, lowest and highest of half-lives, of which those not reached are NaN.

    A half-life that was not reached lies beyond the last step, so it counts as later than all others. A
    median or an end that falls on one is NaN.

    Args:
        values: (gases,) half-lives.

    Raises:
        TypeError: values that form no array of numbers.
        ValueError: another shape.
    """
    found = checks.array("values", values, "fiu", "numbers", ("gases",)).astype(float)
    found = np.sort(np.where(np.isnan(found), np.inf, found))
    if not len(found):
        return math.nan, math.nan, math.nan
    middle, low, high = np.median(found), found[0], found[-1]
    ends = (float(one) if np.isfinite(one) else math.nan for one in (middle, low, high))
    return next(ends), next(ends), next(ends)


def with_range(name: str, values: np.ndarray) -> dict[str, float]:
    """Return `median_and_range` as columns: name, name_low, name_high."""
    return dict(zip((name, f"{name}_low", f"{name}_high"), median_and_range(values), strict=True))


def _curve(steps: np.ndarray, left: np.ndarray) -> tuple[np.ndarray, np.ndarray]:
    steps = checks.array("steps", steps, "fiu", "numbers", ("m",)).astype(float)
    left = checks.array("left", left, "fiu", "numbers", ("m",)).astype(float)
    if len(steps) != len(left):
        raise ValueError(f"{len(steps)} steps and {len(left)} values of left; allowed: one value for a step")
    return steps, left
