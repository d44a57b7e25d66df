"""Simulation box: lengths, periodic and open axes, volume."""

from dataclasses import dataclass
from typing import Any

import numpy as np
from numpy.typing import ArrayLike

from md import checks

FARTHEST = 1000.0  # distance allowed beyond an open side, in lengths of the box along that axis


@dataclass(frozen=True)
class Box:
    """A rectangular box with one corner at the origin.

    Args:
        lengths: side along each axis in particle diameters, two or three.
        periodic: one flag for all axes, or one flag an axis.
        open: one flag for all axes, or one flag an axis; particles may leave through both sides of an open
            axis, by up to 1000 lengths.

    Raises:
        TypeError: sides that are not numbers, or flags that are neither True nor False.
        ValueError: another number of axes, a side that is not positive and finite, another number of flags,
            or an axis that is both periodic and open.
    """

    lengths: tuple[float, ...]
    periodic: tuple[bool, ...] = (True,)
    open: tuple[bool, ...] = (False,)

    def __post_init__(self) -> None:
        lengths = checks.numbers("lengths", self.lengths, above=0, unit="particle diameters")
        if len(lengths) not in (2, 3):
            raise checks.refuse_value("lengths", lengths, "two or three axes, in particle diameters")
        periodic = _flags("periodic", self.periodic, len(lengths))
        open_ = _flags("open", self.open, len(lengths))
        if any(map(all, zip(periodic, open_, strict=True))):
            raise ValueError(
                f"open = {open_} where periodic = {periodic}; allowed: an axis that is periodic, open or "
                "neither; give the open one periodic=False"
            )
        vars(self).update(lengths=lengths, periodic=periodic, open=open_)  # the dataclass refuses assignments

    @property
    def dim(self) -> int:
        """Number of axes, 2 or 3."""
        return len(self.lengths)

    @property
    def volume(self) -> float:
        """Volume in d^3, or area in d^2 in two dimensions."""
        return float(np.prod(self.lengths))

    def wrap(self, pos: ArrayLike) -> np.ndarray:
        """Wrap positions by whole box lengths into [0, length) along the periodic axes.

        Args:
            pos: (n, dim) positions in d.

        Returns:
            (n, dim), a copy; other axes unchanged.

        Raises:
            TypeError: positions that cannot be converted to an array.
            ValueError: another shape, or positions that are not numbers.
        """
        pos = np.array(self._vectors("pos", pos))
        for axis, (length, periodic) in enumerate(zip(self.lengths, self.periodic, strict=True)):
            if periodic:
                side = pos.dtype.type(length)
                wrapped = pos[:, axis] - side * np.floor(pos[:, axis] / side)
                pos[:, axis] = np.where(wrapped >= side, 0, wrapped)
        return pos

    def nearest(self, apart: np.ndarray) -> np.ndarray:
        """Convert differences of positions to those of the nearest periodic images.

        Args:
            apart: (p, dim) differences in d, of positions inside the box.

        Returns:
            (p, dim) float64.

        Raises:
            TypeError: differences that cannot be converted to an array.
            ValueError: another shape, or differences that are not numbers.
        """
        apart = self._vectors("apart", apart).astype(np.float64)
        return apart - np.where(self.periodic, np.round(apart / self.lengths) * self.lengths, 0)

    def outside(self, pos: np.ndarray) -> np.ndarray:
        """Check for each position whether it is outside the box.

        Allowed are [0, length) on a periodic axis, [0, length] on another, and 1000 lengths more at both ends
        of an open axis.

        Args:
            pos: (n, dim) positions in d.

        Returns:
            (n,) bool.

        Raises:
            TypeError: positions that cannot be converted to an array.
            ValueError: another shape, or positions that are not numbers.
        """
        pos = self._vectors("pos", pos)
        lowest, highest = (np.array(ends, pos.dtype) for ends in zip(*self.ends, strict=True))
        over = np.where(self.periodic, pos >= highest, pos > highest)
        return np.any((pos < lowest) | over, axis=1)

    def _vectors(self, name: str, values: ArrayLike) -> np.ndarray:
        """Convert values to an (n, dim) array of floats, integers to float64; without a copy if possible."""
        array = checks.array(name, values, "fiu", "real numbers", ("n", self.dim))
        least = np.float32 if array.dtype.kind == "f" else np.float64
        return array.astype(np.result_type(array, least), copy=False)

    @property
    def ends(self) -> tuple[tuple[float, float], ...]:
        """Least and largest allowed coordinate of a particle along each axis, in d."""
        return tuple(
            (-FARTHEST * side, (1 + FARTHEST) * side) if is_open else (0.0, side)
            for side, is_open in zip(self.lengths, self.open, strict=True)
        )


def _flags(name: str, given: Any, dim: int) -> tuple[bool, ...]:
    """Convert one flag, or one an axis, to a tuple of flags."""
    if isinstance(given, (bool, np.bool_)):
        return (bool(given),) * dim
    flags = checks.sequence(name, given, "flags, or one flag")
    if len(flags) not in (1, dim):
        raise ValueError(f"{name} = {given} for {dim} axes; allowed: one flag, or one an axis")
    each = tuple(checks.flag(f"{name}[{k}]", flag) for k, flag in enumerate(flags))
    return each * dim if len(each) == 1 else each
