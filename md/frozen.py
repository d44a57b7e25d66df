"""When a run's precision is too coarse for how slow its particles are: they freeze without having stopped.

A step adds dt v to a coordinate. Where that is few units in the last place of the coordinate, it is rounded
by a good part of itself, and under half a unit the particle stands still: a gas in a large box seems to
freeze while its velocities say that it moves.
"""

import sys
import warnings
from pathlib import Path

import numpy as np

from md.particles.box import Box

FEWEST_ULP = 32  # a step's rounding, up to half a unit, is then 1.6 % of the step


class FrozenPrecision(UserWarning):
    """The typical particle moves by less than 32 units in the last place of the box's largest side a step.

    The typical particle has the root mean square speed. The units are those of the run's precision, as
    `numpy.spacing` has them at the side. A gas without any motion is at rest, not frozen.
    """


def least_stride(box: Box, precision: np.dtype) -> float:
    """What the typical particle has to move by in a step, in d: 32 units in the last place of the side."""
    return FEWEST_ULP * float(np.spacing(np.dtype(precision).type(max(box.lengths))))


def warn_if_frozen(step: int, stride: float, box: Box, precision: np.dtype) -> bool:
    """Warn with `FrozenPrecision` if the particles move by too little.

    Args:
        step: steps taken.
        stride: of the typical particle, in d per step.
        box: the box.
        precision: numpy dtype of the positions.

    Returns:
        Whether it has.
    """
    precision, least = np.dtype(precision), least_stride(box, precision)
    if not 0 < stride < least:
        return False
    finer = "precision='float64', " if precision == np.float32 else ""
    warnings.warn(
        f"step {step}: {precision} freezes the particles: the typical one moves by {stride:.3g} d a step in "
        f"a box of side {max(box.lengths):g} d; allowed: at least {least:.3g} d, {FEWEST_ULP} units in the "
        f"last place of the side; take {finer}a smaller box or a longer dt",
        FrozenPrecision,
        stacklevel=_levels_to_caller(),
    )
    return True


def _levels_to_caller() -> int:
    """How many calls lie between the function that asks and who called this package."""
    package, level, frame = str(Path(__file__).parent), 1, sys._getframe(1)
    while frame.f_back is not None and frame.f_code.co_filename.startswith(package):
        level, frame = level + 1, frame.f_back
    return level
