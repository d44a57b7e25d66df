"""How long an order lasts: times after items have moved, and the interval between reorders that follows.

With C the time of a reorder and s the growth of the time of a use for each step since the last one, the best
interval is sqrt(2 C / s) steps. s is measured at several ages, over the same moved items in a new order: it
holds no change of the work, such as that of the number of neighbours. The range of what follows is the
answer. Items go on as they move in one step: where they collide, an order lasts longer.
"""

from __future__ import annotations

import math
from dataclasses import dataclass

import numpy as np
import scipy

import sfc
from experiments.advice.candidates import OF_POINTS
from experiments.advice.question import Question
from experiments.advice.times import paired
from experiments.advice.uses import CUTOFF, Use, wrapped
from experiments.advice.verdict import OF_MEDIAN, Verdict

AGES = (0.25, 0.5, 1.0, 2.0, 4.0)  # mean paths over the reach at which times are taken
ROUNDS = 5
WRONG = 0.05  # of all losses that are found, by chance


@dataclass(frozen=True)
class Lasting:
    """Interval between reorders.

    Attributes:
        low, high: steps between reorders; infinite if no loss was found.
        longest: steps to the greatest age that was timed.
        loss: by how much a use takes longer there, as a share.
    """

    low: float
    high: float
    longest: float
    loss: float


def lasting(
    asked: Question, order: np.ndarray, verdict: Verdict, reorder_ms: float, seconds: float, seed: int = 0
) -> Lasting | None:
    """Time an order at several ages of items that move.

    Args:
        asked: question about points that move.
        order: permutation that is advised, of the best candidate.
        verdict: on the fresh orders, with the name of the best.
        reorder_ms: time of a reorder.
        seconds: for all times; there are fewer rounds if they would take more, three at least.
        seed: of the order within rounds.

    Returns:
        The interval; None for items that do not move, or have no positions.
    """
    use = asked.use
    if asked.moves_by is None or use.points is None:
        return None
    path = float(np.linalg.norm(asked.moves_by, axis=1).mean())
    if not path:
        return None
    reach = use.reach if use.kind == CUTOFF else _spacing(use.points)
    name = verdict.best if verdict.best in OF_POINTS else OF_POINTS[0]
    found, loss, steps = [], 0.0, 0.0
    for age in AGES:
        steps = age * reach / path
        points = use.points + steps * asked.moves_by
        if use.lengths is not None:
            points = wrapped(points, use.lengths, use.periodic)
        moved = Use(use.kind, use.code, use.items, points=points, reach=use.reach, radii=use.radii,
                    lengths=use.lengths, periodic=use.periodic)  # fmt: skip
        times = paired(moved, (sfc.argsort(points, name), order), ROUNDS, seed, seconds / len(AGES))
        ratios = times[:, 1] / times[:, 0]
        loss = float(np.median(ratios)) - 1
        rounds = len(ratios)
        t = float(scipy.stats.t.ppf(1 - WRONG / len(AGES), rounds - 1))  # of a loss at any age, on one side
        if math.log1p(loss) > t * OF_MEDIAN * float(np.log(ratios).std(ddof=1)) / math.sqrt(rounds):
            found.append(math.sqrt(2 * reorder_ms * steps / (loss * np.median(times[:, 0]))))
    if not found:
        return Lasting(math.inf, math.inf, steps, loss)
    return Lasting(min(found), max(found), steps, loss)


def _spacing(points: np.ndarray) -> float:
    """Return the mean distance of points in the box of their middle 98 %."""
    low, high = np.quantile(points, [0.01, 0.99], axis=0)
    sides = (high - low)[high > low]
    return float((sides.prod() / len(points)) ** (1 / max(len(sides), 1)))
