"""Checks of arguments of `md`: those of `sfc.checks`, and what only particles need."""

import math
from collections.abc import Iterable
from pathlib import Path
from typing import Any

import psutil

from sfc import Curve
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
    "refuse_class",
    "refuse_value",
    "sequence",
    "shown",
    "text",
    "word",
]


LIMITS = Path("/sys/fs/cgroup/memory.max"), Path("/sys/fs/cgroup/memory/memory.limit_in_bytes")  # of groups


def host_memory() -> int:
    """Bytes of memory that this process may still ask the host for.

    What is free, or less where the address space or the memory of the process is limited.
    """
    free, used = psutil.virtual_memory().available, psutil.Process().memory_info()
    try:
        import resource

        limit, _ = resource.getrlimit(resource.RLIMIT_AS)
        if limit != resource.RLIM_INFINITY:
            free = min(free, limit - used.vms)
    except ImportError:  # a system without such limits
        pass
    for path in LIMITS:
        try:
            free = min(free, int(path.read_text()) - used.rss)
        except (OSError, ValueError):  # no such file, or "max"
            continue
    return max(free, 0)


def memory(name: str, needed: int, free: int, remedy: str) -> None:
    """Refuse to ask for more memory than there is, before it is asked for.

    Args:
        name: what needs it, in words.
        needed: bytes.
        free: bytes that there are: `host_memory`, or `Backend.free_memory` of a device.
        remedy: what to do instead.

    Raises:
        ValueError: more is needed than is free.
    """
    if needed > free:
        raise ValueError(
            f"{name}: {needed:,} bytes ({needed / 2**30:.3g} GiB) are needed; allowed: up to {free:,} "
            f"({free / 2**30:.3g} GiB), which are free; {remedy}"
        )


def order_of_cells(name: str, value: object) -> str | Curve:
    """The order of cells itself; whether there is one of that name depends on the box.

    Args:
        name: of the argument.
        value: a name of `sfc.orderings(dim)`, or a `sfc.Curve`.

    Raises:
        TypeError: neither.
    """
    return instance(name, value, (str, Curve), "a name of sfc.orderings(dim), or a sfc.Curve")


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
