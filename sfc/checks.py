"""Checks of arguments: integers, flags, numbers, words, classes, paths, arrays, free memory.

Contract. A value of a wrong class is a TypeError, a value of the right class that is not allowed a
ValueError; arrays of a wrong dtype or shape are a ValueError. Every message names the argument, the value,
what is allowed and, if there is one, the remedy. A check returns a plain Python value, or an array of native
byte order: numpy's integers of any width become Python integers, so that no product of them wraps. Booleans,
`timedelta64` and masked arrays are no integers.
"""

import math
import os
import re
from collections.abc import Callable, Iterable
from itertools import chain
from numbers import Rational
from pathlib import Path
from typing import Any, TypeGuard

import numpy as np
from numpy.ma import MaskedArray  # numpy imports it late: a fork meanwhile would leave its lock to no thread

try:
    import resource
except ImportError:  # not on Windows
    resource = None  # type: ignore[assignment]  # a module or None

__all__ = [  # those that `md.checks` has too
    "array", "bytes_shown", "fits", "flag", "function", "host_memory", "instance", "integer", "integers",
    "is_integer", "is_number", "number", "numbers", "path", "per_axis", "refuse_class", "refuse_value",
    "require_allocatable", "require_bytes", "sequence", "shown", "text", "word",
]  # fmt: skip
SHOWN = 80  # characters of a value in a message
INTEGERS = "any integer dtype"
HELD = "numbers that a float64 holds, as all integers up to 2**53"
ONE_DTYPE = "integers of one dtype: from -2**63 to 2**63 - 1, or from 0 to 2**64 - 1"
LONGEST = 2**20  # entries of a short sequence
UNMASK = "fill it with .filled()"
SMALL = 2**24  # bytes
PART = 2**16  # entries of an array that are checked at a time
MOST_EXACT = 2**53  # magnitude up to which a float64 holds every integer
PROCESS, HOST = Path("/proc/self/statm"), Path("/proc/meminfo")
CONTAINERS = Path("/sys/fs/cgroup/memory.max"), Path("/sys/fs/cgroup/memory/memory.limit_in_bytes")


def shown(value: object) -> str:
    """Format a value for a message: its repr, cut to 80 characters; arrays by dtype and shape."""
    if isinstance(value, np.ndarray) and value.size > 8:
        return f"an array of dtype {value.dtype} and shape {value.shape}"
    try:
        text = repr(value)
    except Exception:  # the `__repr__` of any class may raise
        text = f"an object of class {type(value).__name__}"
    return text if len(text) <= SHOWN else text[: SHOWN - 3] + "..."


def refuse_class(name: str, value: object, allowed: str, remedy: str = "") -> TypeError:
    """Return the TypeError for a value of a wrong class.

    Args:
        name: of the argument.
        value: its value.
        allowed: what is allowed, in words.
        remedy: what to do instead; may be empty.
    """
    return TypeError(_message(f"{name} = {shown(value)} of class {type(value).__name__}", allowed, remedy))


def refuse_value(name: str, value: object, allowed: str, remedy: str = "") -> ValueError:
    """Return the ValueError for a value that is not allowed; arguments as those of `refuse_class`."""
    return ValueError(_message(f"{name} = {shown(value)}", allowed, remedy))


def is_integer(value: object) -> TypeGuard[int | np.integer]:
    """Return whether a value is an integer of Python or numpy; booleans and `timedelta64` are not."""
    return isinstance(value, (int, np.integer)) and not isinstance(value, (bool, np.timedelta64))


def integer(
    name: str, value: object, low: float = 1, high: float = math.inf, *, unit: str = "", remedy: str = ""
) -> int:
    """Check an integer; return it as a Python integer.

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
    if is_integer(value) and low <= int(value) <= high:
        return int(value)
    allowed = f"an integer{_range(low, high)}" + (f" ({unit})" if unit else "")
    refuse = refuse_value if is_integer(value) else refuse_class
    raise refuse(name, value, allowed, remedy)


def integers(
    name: str,
    values: object,
    low: float = 1,
    high: float = math.inf,
    *,
    count: int | None = None,
    **words: str,
) -> tuple[int, ...]:
    """Check a short sequence of integers, such as cells along each axis; return a tuple of Python integers.

    Args:
        name: of the argument.
        values: a sequence or an array of Python or numpy integers.
        low: lowest allowed.
        high: highest allowed.
        count: how many there must be; None for any number.
        words: `unit` and `remedy` of `integer`.

    Raises:
        TypeError: no sequence, or an entry that is no integer.
        ValueError: another number of entries, or one out of range.
    """
    entries = sequence(name, values, "integers", count, words.get("remedy", ""))
    return tuple(integer(f"{name}[{k}]", value, low, high, **words) for k, value in enumerate(entries))


def per_axis(
    name: str, value: object, axes: int, low: float = 1, high: float = math.inf, *, remedy: str = ""
) -> tuple[int, ...]:
    """Check one integer for all axes, or one for each; return a tuple of Python integers.

    Args:
        name: of the argument.
        value: an integer, or a sequence or array of `axes` integers.
        axes: number of axes.
        low: lowest allowed.
        high: highest allowed.
        remedy: what to do instead.

    Raises:
        TypeError: another class, or an entry that is no integer.
        ValueError: another number of entries, or one out of range.
    """
    if is_integer(value):
        return (integer(name, value, low, high, remedy=remedy),) * axes
    if not isinstance(value, (list, tuple, range, np.ndarray)):
        raise refuse_class(name, value, f"an integer{_range(low, high)}, or {axes} of them", remedy)
    return integers(name, value, low, high, count=axes, remedy=remedy)


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
    """Check a number; return it as a Python float.

    Args:
        name: of the argument.
        value: a number of Python, numpy (of any width) or `fractions`; an integer, of these classes or a long
            double, only if a float64 holds the number, as one up to 2**53 in magnitude is.
        low: lowest allowed.
        high: highest allowed.
        above: exclusive lower bound.
        below: exclusive upper bound.
        finite: whether infinities are not allowed; NaN never is.
        unit: for the message.
        remedy: what to do instead.

    Raises:
        TypeError: a boolean, text, `timedelta64`, a complex number, or another class.
        ValueError: out of range, not finite, too large for a float, or an integer between two floats.
    """
    kind = "a finite number" if finite else "a number"
    allowed = kind + _range(low, high, above, below) + (f" ({unit})" if unit else "")
    if not is_number(value):
        raise refuse_class(name, value, allowed, remedy)
    try:
        found = float(value)
    except OverflowError as error:
        raise refuse_value(name, value, allowed, remedy) from error
    if (whole := _whole(value)) is not None and found != whole:
        raise refuse_value(name, whole if math.isfinite(found) else value, HELD, remedy)
    inside = low <= found <= high and (found > above or above == -math.inf)
    inside = inside and (found < below or below == math.inf)
    if not inside or (finite and not math.isfinite(found)):
        raise refuse_value(name, value, allowed, remedy)
    return found


def exact_number(name: str, value: object) -> int | float:
    """Check a finite number; return an integer as a Python integer of any size, another number as a float.

    Raises:
        TypeError, ValueError: as `number`.
    """
    whole = _whole(value) if is_number(value) else None
    return number(name, value) if whole is None else whole


def _whole(value: Any) -> int | None:
    """Return the integer that a number is; None for another, and for a float that a float64 holds."""
    if isinstance(value, Rational):
        return int(value.numerator) if value.denominator == 1 else None
    return int(value) if isinstance(value, np.longdouble) and value.is_integer() else None


def is_number(value: object) -> TypeGuard[float | np.integer | np.floating | Rational]:
    """Return whether a value is a real number of Python, numpy or `fractions`; booleans are not."""
    real = isinstance(value, (int, float, np.integer, np.floating, Rational))
    return real and not isinstance(value, (bool, np.timedelta64))


def numbers(
    name: str, values: object, count: int | None = None, *, remedy: str = "", **bounds: Any
) -> tuple[float, ...]:
    """Check a short sequence of numbers, such as lengths of a box; return a tuple of Python floats.

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
    entries = sequence(name, values, "numbers", count, remedy)
    return tuple(number(f"{name}[{k}]", value, remedy=remedy, **bounds) for k, value in enumerate(entries))


def flag(name: str, value: object, remedy: str = "") -> bool:
    """Check a flag; return it as a Python bool.

    Args:
        name: of the argument.
        value: True or False, Python's or numpy's.
        remedy: what to do instead.

    Raises:
        TypeError: any other value, also 0, 1, None and words.
    """
    if not isinstance(value, (bool, np.bool_)):
        raise refuse_class(name, value, "True or False", remedy)
    return bool(value)


def word(name: str, value: object, known: Iterable[str], remedy: str = "") -> str:
    """Check that a value is one of some words; return it as a str.

    Args:
        name: of the argument.
        value: a str.
        known: words allowed, in the order of the message.
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
    """Check that a value is a str of at least one character; return it.

    Raises:
        TypeError: no str.
        ValueError: an empty str.
    """
    if not instance(name, value, str, "a str", remedy):
        raise refuse_value(name, value, "a str of at least one character", remedy)
    return str(value)


def path(name: str, value: object, remedy: str = "") -> Path:
    """Check a path; return it as a `Path`.

    Raises:
        TypeError: neither a str nor an `os.PathLike` of one; also numbers, which `open` takes as descriptors.
        ValueError: an empty path, or one with a zero byte.
    """
    found = os.fspath(value) if isinstance(value, (str, os.PathLike)) else None
    if not isinstance(found, str):
        raise refuse_class(name, value, "a path, as a str or a pathlib.Path", remedy)
    if not found or "\0" in found:
        raise refuse_value(name, value, "a path of at least one character, without a zero byte", remedy)
    return Path(found)


def instance(name: str, value: Any, kinds: type | tuple[type, ...], allowed: str, remedy: str = "") -> Any:
    """Check that a value is an object of one of some classes; return it.

    Args:
        name: of the argument.
        value: its value.
        kinds: classes allowed.
        allowed: the classes in words: "an md.Box".
        remedy: what to do instead.

    Raises:
        TypeError: an object of another class.
    """
    if not isinstance(value, kinds):
        raise refuse_class(name, value, allowed, remedy)
    return value


def function(name: str, value: Any, allowed: str, remedy: str = "") -> Any:
    """Check that a value is callable; return it.

    Raises:
        TypeError: an object that is not callable.
    """
    if not callable(value):
        raise refuse_class(name, value, allowed, remedy)
    return value


def sequence(
    name: str, values: object, what: str, count: int | None = None, remedy: str = ""
) -> tuple[Any, ...]:
    """Check a short sequence; return it as a tuple. Text, mappings and sets are not allowed.

    Args:
        name: of the argument.
        values: a list, tuple, range or one-dimensional array.
        what: its entries, in words.
        count: how many there must be; None for any number up to `LONGEST`.
        remedy: what to do instead.

    Raises:
        TypeError: no such sequence.
        ValueError: another number of entries, or a masked array.
    """
    allowed = f"a sequence of {'' if count is None else f'{count} '}{what}"
    if isinstance(values, np.ndarray):
        if isinstance(values, MaskedArray):
            raise ValueError(_message(f"{name} is a masked array", allowed, remedy or UNMASK))
        if values.ndim != 1:
            raise ValueError(_message(f"{name} of shape {values.shape}", allowed, remedy))
    elif not isinstance(values, (list, tuple, range)):
        raise refuse_class(name, values, allowed, remedy)
    found = _length(values) if isinstance(values, range) else len(values)
    if count is not None and found != count:
        raise ValueError(_message(f"{name} = {shown(values)} has {found} entries", allowed, remedy))
    if found > LONGEST:
        raise ValueError(_message(f"{name} has {found} entries", f"{allowed}, up to {LONGEST}", remedy))
    return tuple(values)


def array(
    name: str,
    values: object,
    kinds: str,
    allowed: str,
    shape: tuple[int | str, ...],
    remedy: str = "",
    *,
    low: float | None = None,
    high: float | None = None,
    finite: bool = False,
    outside: str = "",
    whole: bool = False,
) -> np.ndarray:
    """Check an array; return it in native byte order, as a copy only if needed.

    Args:
        name: of the argument.
        values: an array, or nested sequences that make one.
        kinds: letters of `numpy.dtype.kind` allowed: "iu", "fiu". An empty array may also be of floats, as
            numpy's default ones are; it is returned as int64 if only integers are allowed.
        allowed: the dtypes, in words: "any integer dtype".
        shape: sides, each a number, or a letter for any number: ("n", 3).
        remedy: what to do if the dtype is wrong.
        low: lowest value allowed; None for no bound. NaN is outside every bound.
        high: highest value allowed; None for no bound.
        finite: whether NaN, infinities, and values that are infinite as a float64 are not allowed.
        outside: what to do if a value is out of range.
        whole: whether integers stay integers where floats are allowed too; else they become floats later, so
            that integers between two floats are not allowed.

    Raises:
        TypeError: text, and objects that make no array.
        ValueError: a masked array, another dtype, another shape, or a value out of range (the message names
            the first); integers that numpy rounds to convert them to one dtype; a range, or a broadcast
            array, too large to copy into memory.
    """
    listed = _classes(values, len(shape))
    if isinstance(values, MaskedArray) or any(issubclass(one, MaskedArray) for one in listed):
        unmasked = f"an array without a mask, {_shape(shape)}"
        raise ValueError(_message(f"{name} is a masked array", unmasked, UNMASK))
    truths = listed & {bool, np.bool_}  # numpy converts them to 0 and 1 in a list with numbers
    if truths and "b" not in kinds and listed - truths - {list, tuple}:
        raise ValueError(_message(f"{name} = {shown(values)} holds truth values", allowed, remedy))
    if isinstance(values, range) or range in listed:
        given: Any = values if listed else (values,)
        entries = sum(_length(one) for one in given if isinstance(one, range))
        require_allocatable(name, 8 * entries, "take a part of the range")
    try:
        found = np.asarray(values)
    except TypeError as error:
        raise refuse_class(name, values, f"an array of {allowed}, shape {_shape(shape)}", remedy) from error
    except (ValueError, OverflowError, MemoryError, RuntimeError) as error:
        # such as ragged lists, a list of long ranges, or a tensor that requires grad
        makes = f"{name} = {shown(values)} makes no array: {error}"
        raise ValueError(_message(makes, f"{allowed} of shape {_shape(shape)}", remedy)) from error
    if found.ndim == 0 and found.dtype.kind in "OUS":
        raise refuse_class(name, values, f"an array of {allowed}, shape {_shape(shape)}", remedy)
    if ("i" in kinds or "f" in kinds) and not hasattr(values, "dtype"):
        found = kept(name, values, found)
    fits(name, found, kinds, allowed, shape, remedy)
    if 0 in found.strides:  # a broadcast array, which takes no memory until it is copied
        require_allocatable(name, 8 * found.size, "give fewer at a time")
    if "f" in kinds and not whole:
        _require_floats(name, found, remedy)
    if found.size == 0 and found.dtype.kind not in kinds and "i" in kinds:
        return found.astype(np.int64)
    if found.size and (finite or low is not None or high is not None):
        _require_between(name, found, low, high, finite, outside)
    return found if found.dtype.isnative else found.astype(found.dtype.newbyteorder("="))


def kept(name: str, values: Any, found: np.ndarray) -> np.ndarray:
    """Return the array of a list or table, as int64 where numpy made floats of integers alone.

    Args:
        name: of the argument.
        values: list or table.
        found: its array.

    Raises:
        ValueError: integers that no dtype holds, or that numpy rounded because floats are beside them.
    """
    if found.dtype.kind not in "fO" or not found.size or not _has_integers(values, found.ndim):
        return found
    given = np.asarray(values.astype(object) if hasattr(values, "dtypes") else values, object)
    if given.shape != found.shape:
        return found
    if all(map(is_integer, given.flat)):
        ends = min(map(int, given.flat)), max(map(int, given.flat))
        if ends[0] < -(2**63) or ends[1] >= 2**63:
            raise ValueError(_message(f"{name} holds integers from {ends[0]} to {ends[1]}", ONE_DTYPE))
        return given.astype(np.int64)
    if found.dtype.kind == "f":
        for place in np.argwhere(np.abs(found) >= MOST_EXACT):
            value = given[tuple(place)]
            if is_integer(value) and int(found[tuple(place)]) != int(value):
                remedy = "subtract the smallest of the integers first"
                raise ValueError(_message(f"{_entry(name, place)} = {value} beside floats", HELD, remedy))
    return found


def _has_integers(values: Any, depth: int) -> bool:
    """Return whether entries of a list, arrays in it, or columns of a table are integers."""
    kinds, listed = list(getattr(values, "dtypes", ())), _classes(values, depth)
    if any(hasattr(one, "dtype") for one in listed):
        kinds = [getattr(one, "dtype", None) for one in values]
    is_listed = any(issubclass(one, (int, np.integer)) for one in listed - {bool})
    return is_listed or any(getattr(kind, "kind", "") in ("i", "u") for kind in kinds)


def _entry(name: str, place: Iterable[int]) -> str:
    """Format an entry of an array for a message: "points[3, 0]"."""
    return f"{name}[{', '.join(str(k) for k in place)}]"


def _require_floats(name: str, values: np.ndarray, remedy: str) -> None:
    """Check that a float64 holds each value of an array of integers."""
    if values.dtype.kind not in "iu" or values.dtype.itemsize < 8:
        return
    if not values.size or (values.min() >= -MOST_EXACT and values.max() <= MOST_EXACT):
        return
    kind, done = values.dtype.newbyteorder("="), 0
    parts: Any = np.nditer(
        values, ["buffered", "external_loop"], order="C", op_dtypes=[kind], buffersize=PART
    )
    for part in parts:  # in little memory
        near = part.astype(np.float64)
        inside = near < 2.0 ** (63 if kind.kind == "i" else 64)
        held = np.where(inside, near, 0).astype(kind) == part
        if not held.all():
            place = np.unravel_index(done + int(held.argmin()), values.shape)
            raise ValueError(_message(f"{_entry(name, map(int, place))} = {values[place]}", HELD, remedy))
        done += part.size


def _require_between(
    name: str, values: np.ndarray, low: float | None, high: float | None, finite: bool, remedy: str
) -> None:
    low, high = -math.inf if low is None else low, math.inf if high is None else high
    least, most = values.min().item(), values.max().item()
    if low <= least <= most <= high and not (finite and (math.isinf(least) or math.isinf(most))):
        return
    wide = values
    if values.dtype.kind == "f":  # a float32 would be compared with the bound as a float32
        with np.errstate(over="ignore"):
            wide = values.astype(np.float64)
    else:  # an int64 would be compared with a bound of floats as a float64
        low = low if math.isinf(low) else math.ceil(low)
        high = high if math.isinf(high) else math.floor(high)
    good = (wide >= low) & (wide <= high)
    if finite:
        good &= np.isfinite(wide)
    bad = np.unravel_index(int(np.argmin(good)), values.shape)
    allowed = ("finite numbers" if finite else "values") + _range(low, high)
    raise ValueError(_message(f"{_entry(name, map(int, bad))} = {values[bad].item()}", allowed, remedy))


def fits(
    name: str, values: Any, kinds: str, allowed: str, shape: tuple[int | str, ...], remedy: str = ""
) -> None:
    """Check the dtype and the shape of an array in host or device memory.

    Args:
        name: of the argument.
        values: an array with the attributes `dtype`, `shape` and `size`.
        kinds: as in `array`.
        allowed: the dtypes, in words.
        shape: as in `array`.
        remedy: what to do if the dtype is wrong.

    Raises:
        ValueError: another dtype or another shape.
    """
    kind, found = values.dtype.kind, values.shape
    if kind not in kinds and (kind != "f" or values.size):
        raise ValueError(_message(f"{name} of dtype {values.dtype}", allowed, remedy))
    same = len(found) == len(shape)
    for side, have in zip(shape, found, strict=False):
        same = same and (have == side or isinstance(side, str))
    if not same:
        flat = "flatten with .ravel()" if len(shape) == 1 else ""
        raise ValueError(_message(f"{name} of shape {tuple(found)}", _shape(shape), flat))


def require_allocatable(name: str, needed: int, remedy: str, free: Callable[[], int] | None = None) -> None:
    """Check that an array fits in memory, before it is allocated.

    Args:
        name: what is to be allocated, in words.
        needed: its bytes; up to `SMALL` are allowed without reading the free memory.
        remedy: what to do instead.
        free: function that returns the free bytes; None for `host_memory`.

    Raises:
        ValueError: more bytes than are free.
    """
    if needed > SMALL:
        require_bytes(name, needed, (free or host_memory)(), remedy)


def require_bytes(name: str, needed: int, free: int, remedy: str) -> None:
    """Check that some bytes are free, before they are allocated.

    Args:
        name: what needs it, in words.
        needed: bytes.
        free: free bytes: `host_memory`, or those of a device.
        remedy: what to do instead.

    Raises:
        ValueError: more is needed than is free.
    """
    if needed > free:
        found = f"{name}: {bytes_shown(needed)} are needed"
        raise ValueError(_message(found, f"up to {bytes_shown(free)}, which are free", remedy))


def host_memory() -> int:
    """Return the bytes of memory that this process may still allocate on the host.

    The free memory (all memory, if the host does not report it), or less if the address space of the process
    or the memory of its container is limited.
    """
    page = os.sysconf("SC_PAGE_SIZE") if hasattr(os, "sysconf") else 2**12
    pages = _content(PROCESS).split() or (0, 0)
    space, resident = (page * int(count) for count in pages[:2])
    if found := re.search(r"^MemAvailable: *(\d+) kB", _content(HOST), re.MULTILINE):
        free = 2**10 * int(found[1])
    else:
        free = page * os.sysconf("SC_PHYS_PAGES") if hasattr(os, "sysconf") else 2**40
    # a container without a limit has "max" in place of a number
    limits = [int(text) - resident for text in map(_content, CONTAINERS) if text.strip().isdecimal()]
    if resource and (most := resource.getrlimit(resource.RLIMIT_AS)[0]) != resource.RLIM_INFINITY:
        limits.append(most - space)
    return max(0, min([free, *limits]))


def _content(path: Path) -> str:
    """Read a file of the system; return an empty text if there is none, as on other systems than Linux."""
    try:
        return path.read_text()
    except OSError:
        return ""


def bytes_shown(count: int) -> str:
    """Format a number of bytes for a message: in full, or as a power of 2 if that is too long."""
    if count >= 2**500:
        return f"more than 2**{count.bit_length() - 1} bytes"
    return f"{count:,} bytes ({count / 2**30:.3g} GiB)"


def _classes(values: object, depth: int) -> set[type]:
    """Collect the classes of the entries of nested lists and tuples; none for another object.

    Args:
        values: any object.
        depth: of nesting, down to which entries are read.
    """
    found: set[type] = set()
    while depth and isinstance(values, (list, tuple)):
        here = set(map(type, values))
        found |= here
        nested = here & {list, tuple}
        if not nested:
            break
        inner = values if nested == here else (value for value in values if type(value) in nested)
        values, depth = list(chain.from_iterable(inner)), depth - 1
    return found


def _length(values: range) -> int:
    """Count the entries of a range; `len` raises if a C integer overflows."""
    return max(0, -((values.start - values.stop) // values.step))


def _shape(shape: tuple[int | str, ...]) -> str:
    return "(" + ", ".join(map(str, shape)) + ("," if len(shape) == 1 else "") + ")"


def _range(low: float, high: float, above: float = -math.inf, below: float = math.inf) -> str:
    """Format the bounds, with a leading space; empty if there are none."""
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
