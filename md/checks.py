"""Checks of arguments of `md`: those of `sfc.checks`, and what only particles need."""

import math
from collections.abc import Iterable
from typing import Any

from sfc import Curve
from sfc.checks import (
    array,
    bytes_shown,
    fits,
    flag,
    function,
    host_memory,
    instance,
    integer,
    integers,
    is_integer,
    is_number,
    memory,
    number,
    numbers,
    path,
    per_axis,
    refuse_class,
    refuse_value,
    room,
    sequence,
    shown,
    text,
    word,
)

__all__ = [
    "array",
    "bytes_shown",
    "fits",
    "flag",
    "function",
    "host_memory",
    "instance",
    "integer",
    "integers",
    "is_integer",
    "is_number",
    "memory",
    "number",
    "number_or_word",
    "numbers",
    "order_of_cells",
    "path",
    "per_axis",
    "refuse_class",
    "refuse_value",
    "room",
    "sequence",
    "shown",
    "text",
    "word",
]


def order_of_cells(name: str, value: object) -> str | Curve:
    """The order of cells, a name as a plain str; whether there is one of that name depends on the box.

    Args:
        name: of the argument.
        value: a name of `sfc.orderings(dim)`, or a `sfc.Curve`.

    Raises:
        TypeError: neither.
    """
    found = instance(name, value, (str, Curve), "a name of sfc.orderings(dim), or a sfc.Curve")
    return str(found) if isinstance(found, str) else found


def number_or_word(
    name: str, value: object, words: Iterable[str], low: float = -math.inf, **bounds: Any
) -> float | str:
    """The value as a Python float, or one of the words that stand for a number to be found.

    Args:
        name: of the argument.
        value: a number, or a str.
        words: allowed, such as "auto".
        low: lowest number allowed.
        bounds: `high`, `above`, `below`, `finite`, `unit`, `remedy` of `number`.

    Raises:
        TypeError: neither a number nor a str.
        ValueError: a number out of range, or another word.
    """
    words = tuple(words)
    if isinstance(value, str) and value in words:
        return str(value)
    either, remedy = "or " + ", ".join(map(repr, words)), bounds.pop("remedy", "")
    if isinstance(value, str):
        raise refuse_value(name, value, f"a number, {either}", remedy)
    return number(name, value, low, remedy="; ".join(filter(None, (either, remedy))), **bounds)
