"""What an argument may be, stated a second time: valid values to draw, and which others must be taken.

Contract. `admits` is True for a value that has to be taken as far as this argument goes, False for one that
has to be refused, None where neither is said. `plain` is what an admitted value means, for references.
"""

from __future__ import annotations

import math
import os
from collections.abc import Callable, Sequence
from fractions import Fraction
from pathlib import Path
from typing import Any

import numpy as np

from tests.fuzz.drawing import Draw


class Kind:
    """An argument that may be anything.

    Args:
        valid: makes a valid value; or such a value.
    """

    def __init__(self, valid: Any = None):
        self._valid = valid

    def valid(self, draw: Draw) -> Any:
        """A value that is allowed."""
        return self._valid(draw) if callable(self._valid) else self._valid

    def admits(self, value: Any) -> bool | None:
        """Whether a value has to be taken."""
        return None

    def plain(self, value: Any) -> Any:
        """What it means."""
        return value

    def too_large(self, value: Any) -> bool:
        """Whether it is allowed, and would take more time or memory than an input may."""
        return False


def is_integer(value: Any) -> bool:
    """Whether it is an integer of Python or numpy."""
    return isinstance(value, (int, np.integer)) and not isinstance(value, (bool, np.timedelta64))


def is_number(value: Any) -> bool:
    """Whether it is a real number of Python, numpy or `fractions`."""
    return is_integer(value) or isinstance(value, (float, np.floating, Fraction))


class Integer(Kind):
    """An integer in a range.

    Args:
        low: lowest allowed.
        high: highest allowed.
        usual: from which to which valid ones are drawn.
        most: above it one is allowed, but too large for an input; those above `high` are drawn again.
    """

    def __init__(self, low=1, high=math.inf, usual=(1, 8), most=math.inf):
        self.low, self.high, self.usual, self.most = low, high, usual, most

    def valid(self, draw: Draw) -> int:
        """As the base."""
        return draw.randint(*self.usual)

    def admits(self, value: Any) -> bool:
        """As the base."""
        return is_integer(value) and self.low <= int(value) <= self.high

    def plain(self, value: Any) -> int:
        """As the base."""
        return int(value)

    def too_large(self, value: Any) -> bool:
        """As the base."""
        return self.admits(value) and int(value) > self.most


class Number(Kind):
    """A finite number in a range.

    Args:
        low: lowest allowed.
        high: highest allowed.
        above: bound that is not allowed itself.
        below: likewise.
        usual: from which to which valid ones are drawn; or a tuple of more than two to choose from.
        most: above it one is allowed, but too large for an input.
    """

    def __init__(
        self, low=-math.inf, high=math.inf, above=-math.inf, below=math.inf, usual=(0.1, 3.0), most=math.inf
    ):
        self.low, self.high, self.above, self.below, self.usual = low, high, above, below, usual
        self.most = most

    def valid(self, draw: Draw) -> float:
        """As the base."""
        return draw.choice(self.usual) if len(self.usual) > 2 else draw.uniform(*self.usual)

    def admits(self, value: Any) -> bool:
        """As the base."""
        if not is_number(value):
            return False
        try:
            found = float(value)
        except OverflowError:
            return False
        return math.isfinite(found) and self.low <= found <= self.high and self.above < found < self.below

    def plain(self, value: Any) -> float:
        """As the base."""
        return float(value)

    def too_large(self, value: Any) -> bool:
        """As the base."""
        return self.admits(value) and float(value) > self.most


class Flag(Kind):
    """True or False."""

    def valid(self, draw: Draw) -> bool:
        """As the base."""
        return draw.chance(0.5)

    def admits(self, value: Any) -> bool:
        """As the base."""
        return isinstance(value, (bool, np.bool_))

    def plain(self, value: Any) -> bool:
        """As the base."""
        return bool(value)


class Word(Kind):
    """One of some words."""

    def __init__(self, *words: str):
        self.words = words

    def valid(self, draw: Draw) -> str:
        """As the base."""
        return draw.choice(self.words)

    def admits(self, value: Any) -> bool:
        """As the base."""
        return isinstance(value, str) and str(value) in self.words

    def plain(self, value: Any) -> str:
        """As the base."""
        return str(value)


class Text(Kind):
    """Any str of at least a character."""

    def admits(self, value: Any) -> bool | None:
        """As the base."""
        return None if isinstance(value, str) else False

    def plain(self, value: Any) -> str:
        """As the base."""
        return str(value)


class Is(Kind):
    """An object of some classes.

    Args:
        classes: allowed.
        valid: as of the base.
    """

    def __init__(self, classes: type | tuple[type, ...], valid: Any):
        super().__init__(valid)
        self.classes = classes

    def admits(self, value: Any) -> bool | None:
        """As the base; of another object of the class nothing is said."""
        return None if isinstance(value, self.classes) else False


class Maybe(Kind):
    """None, or what another kind allows."""

    def __init__(self, kind: Kind, share: float = 0.4):
        self.kind, self.share = kind, share

    def valid(self, draw: Draw) -> Any:
        """As the base."""
        return None if draw.chance(self.share) else self.kind.valid(draw)

    def admits(self, value: Any) -> bool | None:
        """As the base."""
        return True if value is None else self.kind.admits(value)

    def plain(self, value: Any) -> Any:
        """As the base."""
        return None if value is None else self.kind.plain(value)

    def too_large(self, value: Any) -> bool:
        """As the base."""
        return value is not None and self.kind.too_large(value)


class Either(Kind):
    """What one of some kinds allows."""

    def __init__(self, *kinds: Kind):
        self.kinds = kinds

    def valid(self, draw: Draw) -> Any:
        """As the base."""
        return draw.choice(self.kinds).valid(draw)

    def admits(self, value: Any) -> bool | None:
        """As the base."""
        found = [kind.admits(value) for kind in self.kinds]
        return True if True in found else (None if None in found else False)

    def plain(self, value: Any) -> Any:
        """As the base."""
        return next((kind.plain(value) for kind in self.kinds if kind.admits(value) is not False), value)

    def too_large(self, value: Any) -> bool:
        """As the base."""
        return any(kind.too_large(value) for kind in self.kinds)


class Few(Kind):
    """A short sequence: a list, a tuple, a range or an array of one axis.

    Args:
        kind: of its entries.
        count: how many; a tuple of numbers allowed, or None for any.
        valid: as of the base; None for entries as the kind draws them.
        most: product of the entries above which it is too large for an input.
        end: product above which it is refused, so that it may be drawn again.
    """

    def __init__(
        self,
        kind: Kind,
        count: Sequence[int] | None,
        valid: Any = None,
        most: float = math.inf,
        end: float = math.inf,
    ):
        super().__init__(valid)
        self.kind, self.count, self.most, self.end = kind, count, most, end

    def valid(self, draw: Draw) -> Any:
        """As the base."""
        if self._valid is not None:
            return super().valid(draw)
        count = draw.choice(self.count) if self.count is not None else draw.randint(1, 4)
        return tuple(self.kind.valid(draw) for _ in range(count))

    def admits(self, value: Any) -> bool | None:
        """As the base."""
        if isinstance(value, np.ndarray):
            if isinstance(value, np.ma.MaskedArray) or value.ndim != 1 or value.size > 1000:
                return False
        elif not isinstance(value, (list, tuple, range)) or len(value) > 1000:
            return False
        if self.count is not None and len(value) not in self.count:
            return False
        found = [self.kind.admits(entry) for entry in value]
        return False if False in found else (None if None in found else True)

    def plain(self, value: Any) -> tuple:
        """As the base."""
        return tuple(self.kind.plain(entry) for entry in value)

    def too_large(self, value: Any) -> bool:
        """As the base."""
        if not isinstance(value, (list, tuple, range, np.ndarray)) or self.admits(value) is False:
            return False
        if any(self.kind.too_large(entry) for entry in value):
            return True
        return self.most < math.inf and self.most < math.prod(self.plain(value)) <= self.end


class Array(Kind):
    """An array, or nested sequences that make one.

    Args:
        valid: as of the base.
        kinds: of dtypes allowed, as in `numpy.dtype.kind`.
        shape: sides, None for any.
    """

    def __init__(self, valid: Any, kinds: str, shape: tuple[int | None, ...]):
        super().__init__(valid)
        self.kinds, self.shape = kinds, shape

    def _made(self, value: Any) -> np.ndarray | None:
        if isinstance(value, (np.ma.MaskedArray, str, bytes)):
            return None
        try:
            found = np.asarray(value)
        except Exception:  # a class of the fuzz raises what it likes
            return None
        return None if found.size > 10**6 else found

    def admits(self, value: Any) -> bool | None:
        """As the base; nothing is said of values that are no array, or of an array of another class."""
        found = self._made(value)
        if found is None:
            return None if isinstance(value, np.ndarray) and value.size > 10**6 else False
        if len(found.shape) != len(self.shape):
            return False
        if any(side not in (None, have) for side, have in zip(self.shape, found.shape, strict=True)):
            return False
        if found.dtype.kind not in self.kinds:
            return None if found.size == 0 and found.dtype.kind == "f" else False
        if holds_truth(value):  # numpy makes numbers of them beside numbers
            return False
        return True if isinstance(value, (list, tuple, np.ndarray)) else None

    def plain(self, value: Any) -> np.ndarray:
        """As the base."""
        return np.asarray(value)


def holds_truth(value: Any) -> bool:
    """Whether nested lists hold a truth value."""
    if isinstance(value, (list, tuple)):
        return any(holds_truth(entry) for entry in value)
    return isinstance(value, (bool, np.bool_))


class AnyPath(Kind):
    """A path: str or `os.PathLike`."""

    def admits(self, value: Any) -> bool | None:
        """As the base; of a path nothing more is said."""
        return None if isinstance(value, (str, os.PathLike)) else False

    def plain(self, value: Any) -> Path:
        """As the base."""
        return Path(value)


class Function(Kind):
    """A function.

    Args:
        valid: the function itself.
    """

    def __init__(self, valid: Callable):
        super().__init__(lambda _: valid)

    def admits(self, value: Any) -> bool | None:
        """As the base; of another function nothing is said."""
        return None if callable(value) else False
