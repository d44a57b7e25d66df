"""What the fuzz draws: an input's own generator, values of any class, and changes of a value that is valid.

Contract. An input is drawn from its family's name, the seed and its number alone, so that a kept input can be
drawn again, in any process, by these three.
"""

from __future__ import annotations

import array
import collections
import datetime
import functools
import itertools
import random
from collections.abc import Sequence
from decimal import Decimal
from fractions import Fraction
from pathlib import Path
from typing import Any

import numpy as np

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
INTEGER_TYPES = tuple(np.dtype(f"{kind}{size}").type for kind in "iu" for size in (1, 2, 4, 8))
FLOAT_TYPES = (np.float16, np.float32, np.float64, np.longdouble)
WORDS = (
    "", "1", "2.5", "nan", "no", "False", "auto", "hilbert", "row", "random", "cpu", "cuda", "float32", "A",
    "\x00", "\n", "é" * 5, "../x", "/", "x" * 5000, "{}", "%s", "__class__", "0x10", "\u0661", "data",
)
DTYPES = ("i1", "u1", "i2", "u2", "i4", "u4", "i8", "u8", "f2", "f4", "f8", "g", "?", "c8", "c16", "O", "U3",
          "S3", "M8[s]", "m8[s]", "V4")
SHAPES = ((), (0,), (1,), (2,), (3,), (7,), (0, 2), (0, 3), (1, 2), (5, 3), (3, 5), (4, 2), (2, 2, 2), (1, 0),
          (64, 64))
# fmt: on


class Draw(random.Random):
    """The generator of one input.

    Args:
        family: its name.
        seed: of the campaign.
        number: of the input.
    """

    def __init__(self, family: str, seed: int, number: int):
        super().__init__(f"{family}/{seed}/{number}")
        self.number = number

    @functools.cached_property
    def rng(self) -> np.random.Generator:
        """For arrays."""
        return np.random.default_rng(self.getrandbits(64))

    def chance(self, probability: float) -> bool:
        """True with a probability."""
        return self.random() < probability

    def some(self, values: Sequence, most: int = 3) -> tuple:
        """A few of some values, at least one, each once."""
        return tuple(self.sample(list(values), self.randint(1, min(most, len(values)))))


class Strange:
    """An object that answers some questions of numbers and sequences, and raises at others."""

    def __init__(self, **answers: Any):
        self.answers = answers

    def _ask(self, name: str) -> Any:
        answer = self.answers.get(name, TypeError(f"no {name} of a strange object"))
        if isinstance(answer, BaseException):
            raise answer
        return answer

    def __index__(self):
        return self._ask("index")

    def __float__(self):
        return self._ask("float")

    def __len__(self):
        return self._ask("len")

    def __bool__(self):
        return self._ask("bool")

    def __repr__(self):
        return self._ask("repr")


def strange(draw: Draw) -> Any:
    """A strange object."""
    return draw.choice(
        (
            lambda: Strange(index=3, repr="three"),
            lambda: Strange(index=2**70, float=1.0, repr="large"),
            lambda: Strange(float=0.5, repr="half"),
            lambda: Strange(len=2, repr="long"),
            lambda: Strange(repr=RuntimeError("no repr")),
            lambda: Strange(bool=ValueError("no truth"), repr="untrue"),
        )
    )()


def number(draw: Draw) -> Any:
    """A number of Python, numpy or the standard library, large or small."""
    kind = draw.randrange(8)
    if kind == 0:
        return draw.choice(INTEGERS)
    if kind == 1:
        return draw.randint(-3, 12)
    if kind == 2:
        return narrow(draw, draw.choice(INTEGERS))
    if kind == 3:
        return draw.choice(FLOATS)
    if kind == 4:
        with np.errstate(over="ignore"):
            return draw.choice(FLOAT_TYPES)(draw.choice(FLOATS))
    if kind == 5:
        return draw.choice((True, False, np.True_, np.False_))
    if kind == 6:
        return draw.choice(
            (
                1j,
                complex(2, 0),
                np.complex64(1),
                Decimal("2.5"),
                Decimal(3),
                Decimal("NaN"),
                Fraction(1, 3),
                Fraction(4),
                Fraction(10**400, 3),
            )
        )
    return draw.choice(
        (
            np.timedelta64(3, "s"),
            np.timedelta64("NaT", "s"),
            np.datetime64("2020-01-01"),
            np.datetime64("NaT", "s"),
            datetime.date(2020, 1, 1),
            datetime.timedelta(3),
        )
    )


def narrow(draw: Draw, value: int) -> np.integer:
    """An integer of numpy of some width, that number if it fits, else the nearest."""
    kind = draw.choice(INTEGER_TYPES)
    info = np.iinfo(kind)
    return kind(min(max(value, int(info.min)), int(info.max)))


def thing(draw: Draw) -> Any:
    """An object that is no number."""
    return draw.choice(
        (
            lambda: None,
            lambda: draw.choice(WORDS),
            lambda: np.str_(draw.choice(WORDS).rstrip("\x00")),
            lambda: draw.choice((b"", b"1", b"\xff\x00", bytearray(b"ab"), memoryview(b"abc"))),
            object,
            lambda: draw.choice((int, float, len, np.float64, type, print, Draw, np.ndarray, Exception)),
            lambda: lambda *_, **__: None,
            lambda: draw.choice((NotImplemented, Ellipsis, slice(1), range(3), Exception("x"), Path("."))),
            lambda: array.array("i", [1, 2, 3]),
            lambda: strange(draw),
            lambda: random,
        )
    )()


def collection(draw: Draw) -> Any:
    """A collection of a few values of any class."""

    def few() -> list:
        return [scalar(draw) for _ in range(draw.choice((0, 1, 2, 2, 3, 3, 5)))]

    def endless() -> list:
        looped: list = [1]
        looped.append(looped)
        return looped

    return draw.choice(
        (
            few,
            few,
            lambda: tuple(few()),
            lambda: [[1], [2, 3]],
            lambda: [few(), few()],
            lambda: draw.choice(([], (), {}, set(), [[]], [()], [None], frozenset(), "")),
            lambda: {1, 2, 3},
            lambda: {"a": 1, 2: "b"},
            lambda: collections.OrderedDict(a=1),
            lambda: iter([1, 2, 3]),
            lambda: (k for k in range(3)),
            lambda: zip([1, 2], [3, 4], strict=True),
            lambda: map(float, [1, 2]),
            lambda: itertools.count() if draw.chance(0.2) else range(0),
            endless,
            lambda: range(draw.choice((1, 3, 10**12))),
        )
    )()


def scalar(draw: Draw) -> Any:
    """A number, or an object that is none."""
    return number(draw) if draw.chance(0.75) else thing(draw)


def numbers_of(draw: Draw, dtype: np.dtype, shape: tuple[int, ...]) -> np.ndarray:
    """An array of a dtype with entries that it can hold: small ones, or those at its ends."""
    count = int(np.prod(shape, dtype=np.int64))
    if dtype.kind in "iu":
        info = np.iinfo(dtype)
        pool = [max(int(info.min), v) for v in (0, 1, 2, 3, 5, 7)]
        if draw.chance(0.4):
            pool += [int(info.max), int(info.min), int(info.max) - 1, max(-1, int(info.min))]
        found = [draw.choice(pool) for _ in range(count)]
        return np.array(found, dtype).reshape(shape)
    if dtype.kind == "f":
        found = draw.rng.random(count) * 5
        if draw.chance(0.3) and count:
            found[draw.randrange(count)] = draw.choice(FLOATS)
        with np.errstate(over="ignore"):
            return found.astype(dtype).reshape(shape)
    if dtype.kind == "O":
        found = np.empty(count, object)
        found[:] = [scalar(draw) if draw.chance(0.5) else draw.randint(0, 9) for _ in range(count)]
        return found.reshape(shape)
    if dtype.kind in "Mm":
        found = np.array([draw.choice((1, 2, 5)) for _ in range(count)], "i8").astype(dtype)
        if draw.chance(0.3) and count:
            found[draw.randrange(count)] = "NaT"
        return found.reshape(shape)
    if dtype.kind == "V":
        return np.zeros(shape, dtype)
    return draw.rng.integers(0, 5, count).astype(dtype).reshape(shape)


def some_array(draw: Draw) -> np.ndarray:
    """An array of any dtype, shape and layout."""
    if draw.chance(0.06):
        return draw.choice(
            (
                lambda: np.broadcast_to(np.int64(0), (2**40, 3)),
                lambda: np.broadcast_to(np.float64(1), (2**50,)),
                lambda: np.broadcast_to(np.uint8(1), (2**33, 2)),
                lambda: np.broadcast_to(np.float32(1), (2**40, 2)),
                lambda: np.zeros(3, [("x", "f8"), ("y", "i4")]),
                lambda: np.ma.masked_array([1, 2, 3], [False, True, False]),
                lambda: np.ma.masked_array(np.ones((4, 3)), np.eye(4, 3, dtype=bool)),
                lambda: np.matrix("1 2; 3 4"),
                lambda: np.empty((2, 0, 3)),
            )
        )()
    made = numbers_of(draw, np.dtype(draw.choice(DTYPES)), draw.choice(SHAPES))
    return laid(draw, made) if draw.chance(0.4) else made


def laid(draw: Draw, values: np.ndarray) -> np.ndarray:
    """The same entries in another layout: order of bytes, strides, alignment, read-only, masked."""
    kind = draw.randrange(8)
    if kind == 0 and values.dtype.kind in "iufcMm":
        return values.astype(values.dtype.newbyteorder(">"))
    if kind == 1:
        return np.asfortranarray(values)
    if kind == 2 and values.ndim:
        spread = np.empty((2 * len(values), *values.shape[1:]), values.dtype)
        spread[::2] = values
        return spread[::2]
    if kind == 3 and values.ndim:
        return np.ascontiguousarray(values[::-1])[::-1]
    if kind == 4 and values.dtype.kind in "iufb" and values.size:
        raw = np.empty(values.nbytes + 1, np.uint8)
        shifted = raw[1:].view(values.dtype)
        shifted[:] = values.ravel()
        return shifted.reshape(values.shape)
    if kind == 5:
        fixed = values.copy()
        fixed.flags.writeable = False
        return fixed
    if kind == 6 and values.dtype.kind in "iuf":
        return np.ma.masked_array(values, draw.chance(0.5))
    if kind == 7 and values.ndim:
        return values.view(type("Mine", (np.ndarray,), {}))
    return values


def hostile(draw: Draw) -> Any:
    """A value of any class."""
    kind = draw.random()
    if kind < 0.4:
        return number(draw)
    if kind < 0.6:
        return thing(draw)
    if kind < 0.75:
        return collection(draw)
    return some_array(draw)


def changed(draw: Draw, value: Any) -> Any:
    """A value like a valid one: of another class, width, layout or shape, or with one entry changed."""
    if isinstance(value, (bool, np.bool_)):
        return draw.choice((np.bool_(value), int(value), str(value), None, np.array(value), [bool(value)]))
    if isinstance(value, (int, np.integer)):
        return _changed_integer(draw, int(value))
    if isinstance(value, (float, np.floating)):
        return _changed_float(draw, float(value))
    if isinstance(value, str):
        return draw.choice(
            (
                value.upper(),
                np.str_(value),
                value.encode(),
                value + " ",
                value[:-1],
                [value],
                "not " + value,
                np.array(value),
                Path(value),
            )
        )
    if isinstance(value, (tuple, list)):
        return _changed_sequence(draw, value)
    if isinstance(value, np.ndarray):
        return _changed_array(draw, value)
    if isinstance(value, Path):
        return draw.choice(
            (
                str(value),
                str(value).encode(),
                value.parent,
                value / "none" / "there",
                Path(str(value) + "\x00"),
                Path("x" * 300),
                np.str_(value),
            )
        )
    return draw.choice((None, type(value), [value], (value, value), repr(value), vars))


def _changed_integer(draw: Draw, value: int) -> Any:
    kind = draw.randrange(12)
    if kind < 5:
        return narrow(draw, value)
    if kind < 7:
        return value + draw.choice((-1, 1, 2, -value, 10))
    if kind == 7:
        return draw.choice(INTEGERS)
    return draw.choice(
        (
            float(value),
            str(value),
            Fraction(value),
            np.array(value),
            np.array([value]),
            [value],
            bool(value),
            value + 0.5,
            np.float32(value),
            Decimal(value),
            np.timedelta64(value if abs(value) < 2**62 else 1, "s"),
            complex(value),
            -value,
        )
    )


def _changed_float(draw: Draw, value: float) -> Any:
    kind = draw.randrange(8)
    with np.errstate(over="ignore"):
        if kind < 3:
            return draw.choice(FLOAT_TYPES)(value)
        if kind == 3:
            return value * draw.choice((1e-12, 0.5, 2, 1e3, 1e12, -1))
        if kind == 4:
            return draw.choice(FLOATS)
    if kind == 5 and abs(value) < 2**62:
        return draw.choice((round(value), narrow(draw, round(value)), Fraction(value)))
    return draw.choice(
        (
            str(value),
            Decimal(value),
            complex(value),
            np.array(value),
            np.array([value]),
            [value],
            np.complex128(value),
        )
    )


def _changed_sequence(draw: Draw, value: Sequence) -> Any:
    kind = draw.randrange(10)
    if kind == 0:
        return draw.choice((list, tuple))(value)
    if kind == 1:
        try:
            return np.array(value)
        except ValueError:
            return [value]
    if kind == 2:
        return draw.choice(
            (
                lambda v: (x for x in v),
                iter,
                lambda v: dict.fromkeys(map(str, v)),
                str,
                lambda v: map(lambda x: x, v),
            )
        )(value)
    if kind == 3:
        return value[:-1]
    if kind == 4:
        return [*value, *value[-1:]]
    if not value:
        return [hostile(draw)]
    at = draw.randrange(len(value))
    new = changed(draw, value[at]) if draw.chance(0.6) else scalar(draw)
    return type(value)([*value[:at], new, *value[at + 1 :]]) if type(value) in (list, tuple) else [new]


def _changed_array(draw: Draw, value: np.ndarray) -> Any:
    kind = draw.randrange(10)
    if kind < 3:
        return laid(draw, value)
    if kind < 6:
        with np.errstate(all="ignore"):
            try:
                return value.astype(draw.choice(DTYPES))
            except (ValueError, TypeError):
                return value.astype(object)
    if kind == 6:
        return draw.choice(
            (
                lambda: value[None],
                lambda: value[..., None],
                lambda: value.T,
                lambda: value.ravel(),
                lambda: value[:-1] if value.ndim else value,
                lambda: value[..., :0] if value.ndim else value,
                lambda: np.concatenate([value, value]) if value.ndim else value,
            )
        )()
    if kind == 7:
        return draw.choice((list, tuple, lambda v: v.tolist(), iter))(value) if value.ndim else value.tolist()
    if not value.size or value.dtype.kind not in "iuf":
        return value.copy()
    other = value.copy()
    at = draw.randrange(value.size)
    if value.dtype.kind == "f":
        with np.errstate(over="ignore"):
            other.flat[at] = draw.choice(FLOATS)
    else:
        info = np.iinfo(value.dtype)
        other.flat[at] = min(max(draw.choice(INTEGERS), int(info.min)), int(info.max))
    return other
