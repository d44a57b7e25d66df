"""What Hypothesis draws for the fuzz: values of any class, and changes of a value that is valid."""

from __future__ import annotations

import array
import collections
import datetime
import itertools
import math
import random
from collections.abc import Callable, Sequence
from decimal import Decimal
from fractions import Fraction
from pathlib import Path
from typing import Any

import numpy as np
from hypothesis import strategies as st
from hypothesis.strategies import SearchStrategy, builds, integers, just, sampled_from

from tests.strategies import INTEGER_DTYPES

# fmt: off
INTEGERS = (
    0, 1, -1, 2, 3, 7, 8, 100, 127, 128, 255, 256, 257, -128, -129, 32767, 32768, 65535, 65536,
    2**31 - 1, 2**31, 2**32 - 1, 2**32, 2**53 + 1, 2**62, 2**63 - 1, 2**63, 2**64 - 1, 2**64, 2**70, 10**30,
    10**400, -(2**31), -(2**31) - 1, -(2**63), -(2**63) - 1, -(10**30),
)
FLOATS = (
    0.0, -0.0, 0.5, 1.0, 2.5, -1.5, 3.0, 1e-320, 5e-324, 1e-160, 1e-9, 1e9, 2.0**31, 2.0**53, 2.0**63, 1e20,
    1e154, 1e308, -1e308, float("inf"), float("-inf"), float("nan"),
)
FLOAT_TYPES = (np.float16, np.float32, np.float64, np.longdouble)
WORDS = (
    "", "1", "2.5", "nan", "no", "False", "auto", "hilbert", "row", "random", "cpu", "cuda", "float32", "A",
    "\x00", "\n", "é" * 5, "../x", "/", "x" * 5000, "{}", "%s", "__class__", "0x10", "\u0661", "data",
)
OTHERS = ("f2", "f4", "f8", "g", "?", "c8", "c16", "O", "U3", "S3", "M8[s]", "m8[s]", "V4")
DTYPES = (*INTEGER_DTYPES, *map(np.dtype, OTHERS))
SHAPES = ((), (0,), (1,), (2,), (3,), (7,), (0, 2), (0, 3), (1, 2), (5, 3), (3, 5), (4, 2), (2, 2, 2), (1, 0),
          (64, 64))
ODD = (
    1j, complex(2, 0), np.complex64(1), Decimal("2.5"), Decimal(3), Decimal("NaN"), Fraction(1, 3),
    Fraction(4), Fraction(10**400, 3),
)
TIMES = (
    np.timedelta64(3, "s"), np.timedelta64("NaT", "s"), np.datetime64("2020-01-01"), datetime.timedelta(3),
    np.datetime64("NaT", "s"), datetime.date(2020, 1, 1),
)
# fmt: on
RNG = integers(0, 2**32 - 1).map(np.random.default_rng)


def among(*ways: Any) -> SearchStrategy:
    """One of some strategies or values, each as likely as it is often named; `one_of` joins equal ones."""
    choices = [way if isinstance(way, SearchStrategy) else just(way) for way in ways]
    return integers(0, len(choices) - 1).flatmap(choices.__getitem__)


def calls(*makers: Callable[[], Any]) -> SearchStrategy:
    """What one of some functions makes for each input."""
    return sampled_from(makers).map(lambda make: make())


def chance(probability: float) -> SearchStrategy[bool]:
    """True with a probability."""
    return integers(1, 1000).map(lambda drawn: drawn > 1000 * (1 - probability))


def some(values: Sequence, most: int = 3) -> SearchStrategy[tuple]:
    """A few of some values, at least one, each once."""
    few = st.lists(sampled_from(values), min_size=1, max_size=min(most, len(values)), unique=True)
    return few.map(tuple)


def strange(**answers: Any) -> Callable[[], Any]:
    """Makes an object that answers some questions of numbers and sequences, and has or raises no others."""

    def asked(answer: Any) -> Any:
        if isinstance(answer, BaseException):
            raise answer
        return answer

    asks = {f"__{name}__": lambda self, answer=answer: asked(answer) for name, answer in answers.items()}
    return type("Strange", (), asks)


def fitted(value: int, dtype: np.dtype) -> np.integer:
    """The number of a dtype of integers that is nearest to one."""
    info = np.iinfo(dtype)
    return dtype.type(min(max(value, int(info.min)), int(info.max)))


def narrow(value: int) -> SearchStrategy[np.integer]:
    """An integer of numpy of some width, that number if it fits, else the nearest."""
    return sampled_from(INTEGER_DTYPES).map(lambda dtype: fitted(value, dtype))


@np.errstate(all="ignore")
def attempted(way: Callable[[Any], Any], value: Any) -> Any:
    """What a way makes of a value; a list of it where it makes nothing."""
    try:
        return way(value)
    except Exception:
        return [value]


def ways_of(value: Any, *ways: Callable[[Any], Any]) -> SearchStrategy:
    """A value, made into another in one of some ways."""
    return sampled_from(ways).map(lambda way: attempted(way, value))


NUMBERS = among(
    sampled_from(INTEGERS), integers(-3, 12), sampled_from(INTEGERS).flatmap(narrow), sampled_from(FLOATS),
    sampled_from(FLOATS).flatmap(lambda v: ways_of(v, *FLOAT_TYPES)), sampled_from(TIMES), sampled_from(ODD),
    sampled_from((True, False, np.True_, np.False_)),
)  # fmt: skip
THINGS = among(
    None, sampled_from(WORDS), sampled_from(WORDS).map(lambda word: np.str_(word.rstrip("\x00"))),
    sampled_from((b"", b"1", b"\xff\x00", bytearray(b"ab"), memoryview(b"abc"))), builds(object),
    sampled_from((int, float, len, np.float64, type, print, SearchStrategy, np.ndarray, Exception)),
    sampled_from((NotImplemented, Ellipsis, slice(1), range(3), Exception("x"), Path("."))),
    just(lambda *_, **__: None), builds(lambda: array.array("i", [1, 2, 3])), just(random),
    calls(
        strange(index=3, repr="three"), strange(index=2**70, float=1.0, repr="large"),
        strange(float=0.5, repr="half"), strange(len=2, repr="long"), strange(repr=RuntimeError("no repr")),
        strange(bool=ValueError("no truth"), repr="untrue"),
    ),
)  # fmt: skip
SCALARS = among(NUMBERS, NUMBERS, NUMBERS, THINGS)
FEW = st.lists(SCALARS, max_size=5)


def endless() -> list:
    """A list that holds itself."""
    looped: list = [1]
    looped.append(looped)
    return looped


COLLECTIONS = among(
    FEW, FEW, FEW.map(tuple), st.tuples(FEW, FEW).map(list), builds(endless),
    sampled_from(([[1], [2, 3]], [], (), {}, set(), [[]], [()], [None], frozenset(), "")),
    sampled_from(({1, 2, 3}, {"a": 1, 2: "b"}, collections.OrderedDict(a=1), *map(range, (0, 3, 10**12)))),
    calls(
        lambda: iter([1, 2, 3]), lambda: (k for k in range(3)), lambda: zip([1, 2], [3, 4], strict=True),
        lambda: map(float, [1, 2]), itertools.count,
    ),
)  # fmt: skip


@st.composite
def with_an_end(draw, values: np.ndarray) -> np.ndarray:
    """The same entries but for one, at the ends of what the dtype holds."""
    found, kind = values.copy(), values.dtype.kind
    if found.size and kind in "iufMm":
        end = draw(sampled_from(INTEGERS if kind in "iu" else FLOATS if kind == "f" else ("NaT",)))
        with np.errstate(over="ignore"):
            found.flat[draw(integers(0, found.size - 1))] = fitted(end, found.dtype) if kind in "iu" else end
    return found


@st.composite
def arrays(draw, dtypes: Sequence[np.dtype] = DTYPES) -> np.ndarray:
    """An array of any dtype and shape, of small entries, one of them perhaps at an end."""
    dtype, shape = draw(sampled_from(dtypes)), draw(sampled_from(SHAPES))
    found = np.zeros(shape, dtype)
    if dtype.kind == "O":
        entries, found = itertools.cycle(draw(st.lists(SCALARS, min_size=1, max_size=6))), found.ravel()
        for k in range(len(found)):
            found[k] = next(entries)
        found = found.reshape(shape)
    elif dtype.kind != "V":
        found[...] = draw(RNG).integers(0, 8, shape) * (0.7 if dtype.kind == "f" else 1)
    return draw(with_an_end(found)) if draw(chance(0.35)) else found


LARGE_OR_ODD = calls(
    lambda: np.broadcast_to(np.int64(0), (2**40, 3)), lambda: np.broadcast_to(np.float64(1), (2**50,)),
    lambda: np.broadcast_to(np.uint8(1), (2**33, 2)), lambda: np.broadcast_to(np.float32(1), (2**40, 2)),
    lambda: np.zeros(3, [("x", "f8"), ("y", "i4")]), lambda: np.ma.masked_array([1, 2, 3], [0, 1, 0]),
    lambda: np.ma.masked_array(np.ones((4, 3)), np.eye(4, 3, dtype=bool)), lambda: np.matrix("1 2; 3 4"),
    lambda: np.empty((2, 0, 3)),
)  # fmt: skip


def _spread(values: np.ndarray) -> np.ndarray:
    found = np.empty((2 * len(values), *values.shape[1:]), values.dtype)
    found[::2] = values
    return found[::2]


def _unaligned(values: np.ndarray) -> np.ndarray:
    found = np.frombuffer(bytearray(1 + values.nbytes), np.uint8)[1:].view(values.dtype).reshape(values.shape)
    found[...] = values
    return found


def _fixed(values: np.ndarray) -> np.ndarray:
    found = values.copy()
    found.flags.writeable = False
    return found


def laid(values: np.ndarray) -> SearchStrategy[np.ndarray]:
    """The same entries in another layout: order of bytes, strides, alignment, read-only, masked."""
    ways = [np.asfortranarray, _fixed]
    if values.dtype.kind in "iufcMm":
        ways.append(lambda v: v.astype(v.dtype.newbyteorder(">")))
    if values.dtype.kind in "iuf":
        ways += [lambda v: np.ma.masked_array(v, False), lambda v: np.ma.masked_array(v, True)]
    if values.ndim:
        ways += [_spread, lambda v: np.ascontiguousarray(v[::-1])[::-1]]
        ways.append(lambda v: v.view(type("Mine", (np.ndarray,), {})))
        if values.size and values.dtype.kind in "iufb":
            ways.append(_unaligned)
    return sampled_from(ways).map(lambda way: way(values))


ARRAYS = among(*[arrays()] * 9, *[arrays().flatmap(laid)] * 6, LARGE_OR_ODD)
HOSTILE = among(*[NUMBERS] * 8, *[THINGS] * 4, *[COLLECTIONS] * 3, *[ARRAYS] * 5)
AS_NUMBERS = (
    int, float, bool, np.bool_, complex, Decimal, Fraction, *FLOAT_TYPES, np.complex128, round, str, np.array,
    lambda v: [v], lambda v: np.array([v]), lambda v: np.timedelta64(int(v), "s"),
    lambda v: v - 1, lambda v: v + 1, lambda v: v + 10, lambda v: v + 0.5, lambda v: -v, lambda v: v * 2,
    lambda v: v * 0, lambda v: v * 1e-12, lambda v: v * 0.5, lambda v: v * 1e3, lambda v: v * 1e12,
)  # fmt: skip
AS_TEXT = (
    str.upper, np.str_, str.encode, np.array, Path, lambda v: [v], lambda v: v + " ", lambda v: v[:-1],
    lambda v: "not " + v,
)  # fmt: skip
AS_SEQUENCES = (
    list, tuple, np.array, np.array, iter, str, lambda v: (x for x in v),
    lambda v: dict.fromkeys(map(str, v)), lambda v: map(lambda x: x, v),
    *[lambda v: v[:-1]] * 3, *[lambda v: [*v, *v[-1:]]] * 3,
)  # fmt: skip
AS_ARRAYS = (
    lambda v: v[None], lambda v: v[..., None], lambda v: v.T, lambda v: v.ravel(), lambda v: v[:-1],
    lambda v: v[..., :0], lambda v: np.concatenate([v, v]), list, tuple, iter, lambda v: v.tolist(),
)  # fmt: skip
AS_PATHS = (
    str, bytes, np.str_, lambda v: v.parent, lambda v: v / "none" / "there", lambda v: Path(f"{v}\x00"),
    lambda v: Path("x" * 300),
)  # fmt: skip


def changed(value: Any) -> SearchStrategy:
    """A value like a valid one: of another class, width, layout or shape, or with one entry changed."""
    if isinstance(value, (int, float, np.number, np.bool_)) and math.isfinite(value):
        value = value.item() if isinstance(value, np.generic) else value
        ends = sampled_from((*INTEGERS, *FLOATS))
        return among(*[ways_of(value, *AS_NUMBERS)] * 8, *[narrow(round(value))] * 4, ends)
    if isinstance(value, str):
        return ways_of(value, *AS_TEXT)
    if isinstance(value, (tuple, list)):

        def replaced(at: int) -> SearchStrategy:
            new = among(changed(value[at]), SCALARS)
            return new.map(lambda entry: type(value)([*value[:at], entry, *value[at + 1 :]]))

        entry = integers(0, len(value) - 1).flatmap(replaced) if value else HOSTILE.map(lambda v: [v])
        return among(ways_of(value, *AS_SEQUENCES), entry)
    if isinstance(value, np.ndarray):
        casts = sampled_from(DTYPES).map(lambda dtype: attempted(lambda v: v.astype(dtype), value))
        ways = ways_of(value, *AS_ARRAYS)
        return among(*[laid(value)] * 3, *[casts] * 3, ways, ways, *[with_an_end(value)] * 2)
    if isinstance(value, Path):
        return ways_of(value, *AS_PATHS)
    return sampled_from((None, type(value), [value], (value, value), repr(value), vars))


@st.composite
def stored(draw, values: list, highest: int, width: int | None = None) -> np.ndarray | list:
    """Integers as a list or as an array of some dtype that holds all below a number, in some layout.

    Args:
        draw: of Hypothesis.
        values: to store, or rows of them.
        highest: above all that the dtype has to hold.
        width: of rows; None for numbers.
    """
    if values and draw(chance(0.15)):
        return values
    fits = [dtype for dtype in INTEGER_DTYPES if np.iinfo(dtype).max >= highest - 1]
    found = np.array(values, draw(sampled_from(fits))).reshape(-1, *([width] if width else []))
    other = draw(laid(found)) if draw(chance(0.3)) else found
    return found if isinstance(other, np.ma.MaskedArray) else other
