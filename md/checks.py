"""Checks of arguments of `md`: those of `sfc.checks`, and those that only particles need."""

import math
from collections.abc import Iterable
from typing import Any

from sfc import Curve
from sfc.checks import *  # noqa: F403 - each of them is a check of md too
from sfc.checks import instance, number, refuse_value


def set_fields(config: object, **fields: Any) -> None:
    """Store the checked fields of a frozen dataclass, in its `__post_init__`."""
    for name, value in fields.items():
        object.__setattr__(config, name, value)


def order_of_cells(name: str, value: object) -> str | Curve:
    """Check an order of cells: a curve, or a name, which depends on the box and is not checked here.

    Args:
        name: of the argument.
        value: a name of `sfc.orderings(dim)`, or a `sfc.Curve`.

    Returns:
        The curve, or the name as a plain str.

    Raises:
        TypeError: neither a str nor a curve.
    """
    found = instance(name, value, (str, Curve), "a name of sfc.orderings(dim), or a sfc.Curve")
    return str(found) if isinstance(found, str) else found


def number_or_word(
    name: str, value: object, words: Iterable[str], low: float = -math.inf, **bounds: Any
) -> float | str:
    """Check a number, or one of the words that stand for an automatic number.

    Args:
        name: of the argument.
        value: a number, or a str.
        words: allowed words, such as "auto".
        low: lowest number allowed.
        bounds: `high`, `above`, `below`, `finite`, `unit`, `remedy` of `number`.

    Returns:
        The number as a Python float, or the word.

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
