"""Checks of arguments, each once: integers, flags, numbers, words, classes, arrays.

Contract. A value of a wrong class is a TypeError, a value of the right class that is not allowed a
ValueError; arrays of a wrong dtype or shape are a ValueError. Every message names the argument, the value,
what is allowed and, where one is given, the remedy. What is returned is a plain Python value, or an array of
native byte order: numpy's integers of any width come back as Python's, so that no product of them wraps.
Truth values, `timedelta64` and masked arrays are no integers.
"""

import math
from collections.abc import Iterable
from fractions import Fraction
from typing import Any

import numpy as np

SHOWN = 80  # characters of a value in a message


def shown(value: object) -> str:
    """A value as it stands in a message: its repr, cut to 80 characters; arrays by dtype and shape."""
    if isinstance(value, np.ndarray) and value.size > 8:
        return f"an array of dtype {value.dtype} and shape {value.shape}"
    try:
        text = repr(value)
    except Exception:  # a class of the caller may raise anything
        text = f"an object of class {type(value).__name__}"
    return text if len(text) <= SHOWN else text[: SHOWN - 3] + "..."


def refuse_class(name: str, value: object, allowed: str, remedy: str = "") -> TypeError:
    """The TypeError for a value of a wrong class.

    Args:
        name: of the argument.
        value: what was given.
        allowed: what is, in words.
        remedy: what to do; may be left out.
    """
    return TypeError(_message(f"{name} = {shown(value)} of class {type(value).__name__}", allowed, remedy))


def refuse_value(name: str, value: object, allowed: str, remedy: str = "") -> ValueError:
    """The ValueError for a value that is not allowed; arguments as those of `refuse_class`."""
    return ValueError(_message(f"{name} = {shown(value)}", allowed, remedy))


def is_integer(value: object) -> bool:
    """Whether a value is an integer of Python or numpy; truth values and `timedelta64` are none."""
    return isinstance(value, (int, np.integer)) and not isinstance(value, (bool, np.timedelta64))


def integer(
    name: str, value: object, low: float = 1, high: float = math.inf, *, unit: str = "", remedy: str = ""
) -> int:
    """The value as a Python integer.

    Args:
        name: of the argument, for the message.
        value: a Python or a numpy integer of any width.
        low: lowest allowed; -inf for no bound.
        high: highest allowed.
        unit: what is counted, for the message: "steps".
        remedy: what to do instead.

    Raises:
        TypeError: a boolean, a float, or another class.
        ValueError: out of range.
    """
    allowed = f"an integer{_range(low, high)}" + (f" ({unit})" if unit else "")
    if not is_integer(value):
        raise refuse_class(name, value, allowed, remedy)
    if not low <= int(value) <= high:
        raise refuse_value(name, value, allowed, remedy)
    return int(value)


def integers(
    name: str,
    values: object,
    low: float = 1,
    high: float = math.inf,
    *,
    count: int | None = None,
    unit: str = "",
    remedy: str = "",
) -> tuple[int, ...]:
    """A short sequence of integers as a tuple of Python integers, such as a number of cells an axis.

    Args:
        name: of the argument.
        values: a sequence or an array of Python or numpy integers.
        low: lowest allowed.
        high: highest allowed.
        count: how many there must be; None for any number.
        unit: what is counted.
        remedy: what to do instead.

    Raises:
        TypeError: no sequence, or an entry that is no integer.
        ValueError: another number of entries, or one out of range.
    """
    return tuple(
        integer(f"{name}[{k}]", value, low, high, unit=unit, remedy=remedy)
        for k, value in enumerate(sequence(name, values, "integers", count, remedy))
    )


def number(
    name: str,
    value: object,
    low: float = -math.inf,
    high: float = math.inf,
    *,
    above: float = -math.inf,
    below: float = math.inf,
    finite: bool = True,
    unit: str = "",
    remedy: str = "",
) -> float:
    """The value as a Python float.

    Args:
        name: of the argument.
        value: a number of Python, numpy (of any width) or `fractions`.
        low: lowest allowed.
        high: highest allowed.
        above: bound that itself is not allowed.
        below: bound that itself is not allowed.
        finite: whether infinities are refused; NaN always is.
        unit: for the message.
        remedy: what to do instead.

    Raises:
        TypeError: a boolean, text, `timedelta64`, a complex number, or another class.
        ValueError: out of range, not finite, or too large for a float.
    """
    kind = "a finite number" if finite else "a number"
    allowed = kind + _range(low, high, above, below) + (f" ({unit})" if unit else "")
    if not is_number(value):
        raise refuse_class(name, value, allowed, remedy)
    try:
        found = float(value)
    except OverflowError as error:
        raise refuse_value(name, value, allowed, remedy) from error
    inside = low <= found <= high and (found > above or above == -math.inf)
    inside = inside and (found < below or below == math.inf)
    if not inside or (finite and not math.isfinite(found)):
        raise refuse_value(name, value, allowed, remedy)
    return found


def is_number(value: object) -> bool:
    """Whether a value is a real number of Python, numpy or `fractions`; truth values are none."""
    real = isinstance(value, (int, float, np.integer, np.floating, Fraction))
    return real and not isinstance(value, (bool, np.timedelta64))


def numbers(
    name: str, values: object, count: int | None = None, *, remedy: str = "", **bounds: Any
) -> tuple[float, ...]:
    """A short sequence of numbers as a tuple of Python floats, such as lengths of a box.

    Args:
        name: of the argument.
        values: a sequence or an array of numbers.
        count: how many there must be; None for any number.
        remedy: what to do instead.
        bounds: `low`, `high`, `above`, `below`, `finite`, `unit` of `number`.

    Raises:
        TypeError: no sequence, or an entry that is no number.
        ValueError: another number of entries, or one out of range.
    """
    return tuple(
        number(f"{name}[{k}]", value, remedy=remedy, **bounds)
        for k, value in enumerate(sequence(name, values, "numbers", count, remedy))
    )


def flag(name: str, value: object, remedy: str = "") -> bool:
    """The value as a Python bool.

    Args:
        name: of the argument.
        value: True or False, Python's or numpy's.
        remedy: what to do instead.

    Raises:
        TypeError: anything else; 0, 1, None and words are no flags.
    """
    if not isinstance(value, (bool, np.bool_)):
        raise refuse_class(name, value, "True or False", remedy)
    return bool(value)


def word(name: str, value: object, known: Iterable[str], remedy: str = "") -> str:
    """The value, which must be one of the words known.

    Args:
        name: of the argument.
        value: a str.
        known: words allowed, in the order in which the message lists them.
        remedy: what to do instead.

    Raises:
        TypeError: no str.
        ValueError: another word.
    """
    known = tuple(known)
    if not isinstance(value, str):
        raise refuse_class(name, value, f"one of {', '.join(known)}", remedy)
    if value not in known:
        raise ValueError(_message(f"unknown {name} {shown(value)}", f"one of {', '.join(known)}", remedy))
    return str(value)


def text(name: str, value: object, remedy: str = "") -> str:
    """The value, which must be a str of at least one character.

    Raises:
        TypeError: no str.
        ValueError: an empty one.
    """
    if not isinstance(value, str):
        raise refuse_class(name, value, "a str", remedy)
    if not value:
        raise refuse_value(name, value, "a str of at least one character", remedy)
    return str(value)


def instance(name: str, value: Any, kinds: type | tuple[type, ...], allowed: str, remedy: str = "") -> Any:
    """The value itself, which must be an object of one of some classes.

    Args:
        name: of the argument.
        value: what was given.
        kinds: classes allowed.
        allowed: the classes in words: "an md.Box".
        remedy: what to do instead.

    Raises:
        TypeError: of another class.
    """
    if not isinstance(value, kinds):
        raise refuse_class(name, value, allowed, remedy)
    return value


def function(name: str, value: Any, allowed: str, remedy: str = "") -> Any:
    """The value itself, which must be callable.

    Raises:
        TypeError: it is not.
    """
    if not callable(value):
        raise refuse_class(name, value, allowed, remedy)
    return value


def sequence(
    name: str, values: object, what: str, count: int | None = None, remedy: str = ""
) -> tuple[Any, ...]:
    """A finite sequence as a tuple; text, mappings and sets are none.

    Args:
        name: of the argument.
        values: a list, tuple, range or one-dimensional array.
        what: its entries in words.
        count: how many there must be; None for any number.
        remedy: what to do instead.

    Raises:
        TypeError: no such sequence.
        ValueError: another number of entries.
    """
    allowed = f"a sequence of {'' if count is None else f'{count} '}{what}"
    if isinstance(values, np.ndarray):
        if isinstance(values, np.ma.MaskedArray):
            raise ValueError(
                _message(f"{name} is a masked array", allowed, remedy or "fill it with .filled()")
            )
        if values.ndim != 1:
            raise ValueError(_message(f"{name} of shape {values.shape}", allowed, remedy))
        values = tuple(values)
    elif not isinstance(values, (list, tuple, range)):
        raise refuse_class(name, values, allowed, remedy)
    if count is not None and len(values) != count:
        raise ValueError(_message(f"{name} = {shown(values)} has {len(values)} entries", allowed, remedy))
    return tuple(values)


def array(
    name: str, values: object, kinds: str, allowed: str, shape: tuple[int | str, ...], remedy: str = ""
) -> np.ndarray:
    """The values as an array of native byte order; a copy only where one is needed.

    Args:
        name: of the argument.
        values: an array, or nested sequences that make one.
        kinds: letters of `numpy.dtype.kind` allowed: "iu", "fiu". An array without entries may be of floats
            too, as numpy's own empty ones are.
        allowed: the dtypes in words: "any integer dtype".
        shape: sides, each a number or a letter for any: ("n", 3).
        remedy: what to do where the dtype is wrong.

    Raises:
        TypeError: objects that make no array.
        ValueError: a masked array, another dtype, or another shape.
    """
    wanted = "(" + ", ".join(map(str, shape)) + ("," if len(shape) == 1 else "") + ")"
    if isinstance(values, np.ma.MaskedArray):
        raise ValueError(
            _message(
                f"{name} is a masked array", f"an array without a mask, {wanted}", "fill it with .filled()"
            )
        )
    try:
        found = np.asarray(values)
    except (ValueError, TypeError, OverflowError) as error:  # ragged, say
        raise ValueError(
            _message(
                f"{name} = {shown(values)} makes no array: {error}", f"{allowed} of shape {wanted}", remedy
            )
        ) from error
    if found.dtype == object and found.ndim == 0:
        raise refuse_class(name, values, f"an array of {allowed}, shape {wanted}", remedy)
    empty = found.size == 0 and found.dtype.kind == "f"
    if found.dtype.kind not in kinds and not empty:
        raise ValueError(_message(f"{name} of dtype {found.dtype}", allowed, remedy))
    same = found.ndim == len(shape) and all(
        isinstance(side, str) or side == have for side, have in zip(shape, found.shape, strict=True)
    )
    if not same:
        raise ValueError(_message(f"{name} of shape {found.shape}", wanted))
    return found.astype(found.dtype.newbyteorder("="), copy=False)


def _range(low: float, high: float, above: float = -math.inf, below: float = math.inf) -> str:
    """The bounds in words, beginning with a space; empty where there are none."""
    parts = []
    if above > low or (above == low != -math.inf):
        parts.append(f"above {above:g}")
    elif low != -math.inf:
        parts.append(f"of at least {_plain(low)}")
    if below < high:
        parts.append(f"below {below:g}")
    elif high != math.inf:
        parts.append(f"up to {_plain(high)}")
    return " " + ", ".join(parts) if parts else ""


def _plain(bound: float) -> str:
    return str(bound) if isinstance(bound, int) else f"{bound:g}"


def _message(found: str, allowed: str, remedy: str = "") -> str:
    return f"{found}; allowed: {allowed}" + (f"; {remedy}" if remedy else "")
