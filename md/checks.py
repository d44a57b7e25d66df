"""Checks of arguments of `md`: those of `sfc.checks`, and what only particles need."""

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
    "numbers",
    "refuse_class",
    "refuse_value",
    "sequence",
    "shown",
    "text",
    "word",
]
