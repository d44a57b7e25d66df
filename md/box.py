"""The simulation box: lengths, periodicity, volume."""

from dataclasses import dataclass

import numpy as np


@dataclass(frozen=True)
class Box:
    """A rectangular box with one corner at the origin.

    Args:
        lengths: side along each axis in particle diameters; two or three of them.
        periodic: one flag for every axis, or one flag each.

    Raises:
        ValueError: another number of axes, a side that is not positive and finite, or flags that do not
            match.
    """

    lengths: tuple[float, ...]
    periodic: tuple[bool, ...] = (True,)

    def __post_init__(self):
        lengths = tuple(float(side) for side in np.atleast_1d(np.asarray(self.lengths, dtype=np.float64)))
        if len(lengths) not in (2, 3):
            raise ValueError(f"box lengths {lengths}; allowed: two or three axes")
        if not all(np.isfinite(side) and side > 0 for side in lengths):
            raise ValueError(f"box lengths {lengths}; allowed: positive and finite, in particle diameters")
        flags = (self.periodic,) if isinstance(self.periodic, (bool, np.bool_)) else tuple(self.periodic)
        flags = flags * len(lengths) if len(flags) == 1 else flags
        if len(flags) != len(lengths):
            raise ValueError(
                f"periodic = {self.periodic} for {len(lengths)} axes; allowed: one flag, or one an axis"
            )
        object.__setattr__(self, "lengths", lengths)
        object.__setattr__(self, "periodic", tuple(bool(flag) for flag in flags))

    @property
    def dim(self) -> int:
        """Number of axes, 2 or 3."""
        return len(self.lengths)

    @property
    def volume(self) -> float:
        """Volume in d^3, or area in d^2 in two dimensions."""
        return float(np.prod(self.lengths))

    def wrap(self, pos) -> np.ndarray:
        """Positions moved by whole box lengths into [0, length) along the periodic axes.

        Args:
            pos: (n, dim) positions in d.

        Returns:
            (n, dim), a copy; other axes as they were.
        """
        pos = np.array(pos, dtype=np.result_type(pos, np.float32))
        for axis, (length, periodic) in enumerate(zip(self.lengths, self.periodic, strict=True)):
            if periodic:
                side = pos.dtype.type(length)
                wrapped = pos[:, axis] - side * np.floor(pos[:, axis] / side)
                pos[:, axis] = np.where(wrapped >= side, 0, wrapped)
        return pos

    def nearest(self, apart: np.ndarray) -> np.ndarray:
        """Differences of positions between the nearest periodic images: (p, dim) float64.

        Args:
            apart: (p, dim) in d, of positions inside the box.
        """
        apart = np.asarray(apart, np.float64)
        return apart - np.where(self.periodic, np.round(apart / self.lengths) * self.lengths, 0)

    def outside(self, pos: np.ndarray) -> np.ndarray:
        """Whether each particle is outside the box.

        (n,) bool. A periodic axis holds [0, length), another [0, length].
        """
        sides = np.array(self.lengths, pos.dtype)
        over = np.where(self.periodic, pos >= sides, pos > sides)
        return ((pos < 0) | over).any(axis=1)
