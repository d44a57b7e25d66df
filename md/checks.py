"""Checks of arguments of `md`: those of `sfc.checks`, and what only particles need."""

import math
from collections.abc import Iterable
from typing import Any

from sfc.checks import (
    array,
    flag,
    function,
    instance,
    integer,
    integers,
    is_integer,
    is_number,
    number,
    numbers,
    refuse_class,
    refuse_value,
    sequence,
    shown,
    text,
    word,
)

__all__ = [
    "array",
    "flag",
    "function",
    "instance",
    "integer",
    "integers",
    "is_integer",
    "is_number",
    "number",
    "number_or_word",
    "numbers",
    "refuse_class",
    "refuse_value",
    "sequence",
    "shown",
    "text",
    "word",
]


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
