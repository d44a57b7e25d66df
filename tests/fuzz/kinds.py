"""What an argument may be, stated a second time: valid values to draw, and which others must be taken."""

from __future__ import annotations

import dataclasses
import inspect
import math
import os
from collections.abc import Callable, Mapping, Sequence
from fractions import Fraction
from pathlib import Path
from typing import Any

import numpy as np
from hypothesis import strategies as st
from hypothesis.strategies import SearchStrategy, booleans, integers, just, sampled_from

from tests.fuzz.drawing import among

LARGE = 10**6  # entries of an array that is not looked at


@dataclasses.dataclass(frozen=True)
class Kind:
    """An argument.

    Attributes:
        valid: draws a value that is allowed; or such a value.
        admits: True for a value that has to be taken as far as this argument goes, False for one that has to
            be refused, None where neither is said.
        plain: what an admitted value means, for references.
        too_large: whether a value is allowed, and would take more time or memory than an input may.
    """

    valid: Any = None
    admits: Callable[[Any], bool | None] = lambda value: None
    plain: Callable[[Any], Any] = lambda value: value
    too_large: Callable[[Any], bool] = lambda value: False

    @property
    def strategy(self) -> SearchStrategy:
        """Of valid values."""
        return self.valid if isinstance(self.valid, SearchStrategy) else just(self.valid)

    def but(self, **changes: Any) -> Kind:
        """The same but for some attributes."""
        return dataclasses.replace(self, **changes)


def is_integer(value: Any) -> bool:
    """Whether it is an integer of Python or numpy."""
    return isinstance(value, (int, np.integer)) and not isinstance(value, (bool, np.timedelta64))


def integer(low=1, high=math.inf, usual=(1, 8), most=math.inf) -> Kind:
    """An integer from `low` to `high`; valid ones are drawn from `usual`, those above `most` not at all."""

    def admits(value: Any) -> bool:
        return is_integer(value) and low <= int(value) <= high

    return Kind(integers(*usual), admits, int, lambda value: admits(value) and int(value) > most)


def number(
    low=-math.inf, high=math.inf, above=-math.inf, below=math.inf, usual=(0.1, 3.0), most=math.inf
) -> Kind:
    """A finite number in a range; `usual` has two ends or more numbers to choose from, `most` as above."""

    def admits(value: Any) -> bool:
        if not (is_integer(value) or isinstance(value, (float, np.floating, Fraction))):
            return False
        try:
            found = float(value)
        except OverflowError:
            return False
        return math.isfinite(found) and low <= found <= high and above < found < below

    valid = sampled_from(usual) if len(usual) > 2 else uniform(*usual)
    return Kind(valid, admits, float, lambda value: admits(value) and float(value) > most)


def uniform(low: float, high: float) -> SearchStrategy[float]:
    """A number between two, ends included, of few digits."""
    return integers(0, 2**24).map(lambda drawn: low + (high - low) * drawn / 2**24)


def flag() -> Kind:
    """True or False."""
    return Kind(booleans(), lambda value: isinstance(value, (bool, np.bool_)), bool)


def word(*words: str) -> Kind:
    """One of some words."""
    return Kind(sampled_from(words), lambda value: isinstance(value, str) and str(value) in words, str)


def text(valid: Any) -> Kind:
    """Any str of at least a character."""
    return Kind(valid, lambda value: None if isinstance(value, str) else False, str)


def on_cpu() -> Kind:
    """The name of the CPU's backend; of "auto", which takes what there is, nothing is said."""
    named = word("cpu")
    return named.but(admits=lambda v: None if isinstance(v, str) and str(v) == "auto" else named.admits(v))


def an(classes: type | tuple[type, ...], valid: Any) -> Kind:
    """An object of some classes; of another than the valid one nothing is said."""
    return Kind(valid, lambda value: None if isinstance(value, classes) else False)


def path(valid: Any) -> Kind:
    """A path: str or `os.PathLike`; nothing more is said of it."""
    return Kind(valid, lambda value: None if isinstance(value, (str, os.PathLike)) else False, Path)


def maybe(kind: Kind, share: float = 0.4) -> Kind:
    """None, or what another kind allows."""
    of_ten = round(share * 20)
    return Kind(
        among(*[None] * of_ten, *[kind.strategy] * (20 - of_ten)),
        lambda value: True if value is None else kind.admits(value),
        lambda value: None if value is None else kind.plain(value),
        lambda value: value is not None and kind.too_large(value),
    )


def either(*kinds: Kind) -> Kind:
    """What one of some kinds allows."""

    def admits(value: Any) -> bool | None:
        found = [kind.admits(value) for kind in kinds]
        return True if True in found else (None if None in found else False)

    return Kind(
        among(*[kind.strategy for kind in kinds]),
        admits,
        lambda value: next((kind.plain(value) for kind in kinds if kind.admits(value) is not False), value),
        lambda value: any(kind.too_large(value) for kind in kinds),
    )


def few(
    kind: Kind, count: Sequence[int] | None, valid: Any = None, most: float = math.inf, end: float = math.inf
) -> Kind:
    """A short sequence: a list, a tuple, a range or an array of one axis.

    Args:
        kind: of its entries.
        count: how many; a tuple of numbers allowed, or None for any.
        valid: as of `Kind`; None for entries as the kind draws them.
        most: product of the entries above which it is too large for an input.
        end: product above which it is refused, so that it may be drawn again.
    """

    def admits(value: Any) -> bool | None:
        if isinstance(value, np.ndarray):
            if isinstance(value, np.ma.MaskedArray) or value.ndim != 1:
                return False
        elif not isinstance(value, (list, tuple, range)):
            return False
        if len(value) > 1000 or (count is not None and len(value) not in count):
            return False
        found = [kind.admits(entry) for entry in value]
        return False if False in found else (None if None in found else True)

    def plain(value: Any) -> tuple:
        return tuple(kind.plain(entry) for entry in value)

    def too_large(value: Any) -> bool:
        if not isinstance(value, (list, tuple, range, np.ndarray)) or admits(value) is False:
            return False
        whole = most < math.inf and most < math.prod(plain(value)) <= end
        return whole or any(kind.too_large(entry) for entry in value)

    if valid is None:
        counts = sampled_from(count or (1, 2, 3, 4))
        valid = counts.flatmap(lambda n: st.tuples(*[kind.strategy] * n))
    return Kind(valid, admits, plain, too_large)


def as_array(value: Any) -> np.ndarray | None:
    """The array of a value that is one or makes one; None where it does not, or is too large."""
    if isinstance(value, (np.ma.MaskedArray, str, bytes)):
        return None
    try:
        found = np.asarray(value)
    except Exception:  # a class of the fuzz raises what it likes
        return None
    return None if found.size > LARGE else found


def array(
    valid: Any,
    kinds: str,
    shape: tuple[int | None, ...],
    entries: Callable[[np.ndarray], bool | None] = lambda _: True,
) -> Kind:
    """An array, or nested sequences that make one.

    Args:
        valid: as of `Kind`.
        kinds: of dtypes allowed, as in `numpy.dtype.kind`.
        shape: sides, None for any.
        entries: whether numbers are allowed, asked where all else is good.
    """

    def admits(value: Any) -> bool | None:
        found = as_array(value)
        if found is None:
            return None if isinstance(value, np.ndarray) and value.size > LARGE else False
        if len(found.shape) != len(shape):
            return False
        if any(side not in (None, have) for side, have in zip(shape, found.shape, strict=True)):
            return False
        if found.dtype.kind not in kinds:
            return None if found.size == 0 and found.dtype.kind == "f" else False
        if holds_truth(value):  # numpy makes numbers of them beside numbers
            return False
        good = entries(found)
        return good if good is False or isinstance(value, (list, tuple, np.ndarray)) else None

    return Kind(valid, admits, usual)


def usual(value: Any) -> np.ndarray:
    """The array of a value, in the usual layout; integers have 64 bits, and signs where all fit."""
    found = np.asarray(value)
    if found.size > LARGE:
        return found
    if found.dtype.kind in "iu":
        return found.astype(np.uint64 if found.max(initial=0) > np.iinfo(np.int64).max else np.int64)
    return np.ascontiguousarray(found, found.dtype.newbyteorder("=")).reshape(found.shape)


def of(call: Callable, table: Mapping[str, Kind]) -> dict[str, Kind]:
    """The kinds of a table, by name, that a call has parameters for."""
    return {name: table[name] for name in inspect.signature(call).parameters if name in table}


def holds_truth(value: Any) -> bool:
    """Whether nested lists hold a truth value."""
    if isinstance(value, (list, tuple)):
        return any(holds_truth(entry) for entry in value)
    return isinstance(value, (bool, np.bool_))
