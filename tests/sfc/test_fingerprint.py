"""What a compiled function can reach: an edit of it changes the fingerprint, and nothing else does."""

import importlib
import sys
from enum import IntEnum

import numpy as np
import pytest

from sfc.compile import callee, chosen_by, implement, kernel
from sfc.fingerprint import UnknownReachError, fingerprint

MODULE = '''"""A module."""
import math
import numpy as np
from {package} import constants
from {package}.constants import FACTOR

TABLE = np.array([1, 2, 3])
UNUSED = 5

def scaled(x):
    """Scale."""
    return FACTOR * x

def twice(x):
    return constants.SHIFT + 2 * scaled(x)

def outer(x):
    # a comment
    total = 0
    for k in range(3):
        total += TABLE[k] * twice(x) + math.sqrt(x)
    return total

def alone(x):
    return x
'''
CONSTANTS = "FACTOR = 3\nSHIFT = 1\nOTHER = 2\n"


@pytest.fixture
def of_module(tmp_path, monkeypatch):
    """The fingerprint of `outer` in a package of two modules, after some edits."""
    monkeypatch.syspath_prepend(tmp_path)

    def made(old: str = "", new: str = "", name: str = "outer") -> str:
        for module in [m for m in sys.modules if m.startswith("probe_reach")]:
            del sys.modules[module]
        package = tmp_path / "probe_reach"
        package.mkdir(exist_ok=True)
        texts = {"__init__": "", "constants": CONSTANTS, "code": MODULE.format(package="probe_reach")}
        assert not old or sum(text.count(old) for text in texts.values()) == 1
        for stem, text in texts.items():
            (package / f"{stem}.py").write_text(text.replace(old, new) if old else text)
        importlib.invalidate_caches()
        sys.dont_write_bytecode = True
        try:
            return fingerprint([getattr(importlib.import_module("probe_reach.code"), name)])
        finally:
            sys.dont_write_bytecode = False

    return made


@pytest.mark.parametrize(
    ("old", "new"),
    [
        ("# a comment", "# another\n\n"),
        ('"""Scale."""', '"""Scale by much."""'),
        ('    """Scale."""\n', ""),
        ("UNUSED = 5", "UNUSED = 6"),
        ("OTHER = 2", "OTHER = 3"),
        ("def alone(x):\n    return x", "def alone(x):\n    return -x"),
    ],
)
def test_what_is_not_reached_does_not_count(of_module, old, new):
    assert of_module(old, new) == of_module()


@pytest.mark.parametrize(
    ("old", "new"),
    [
        ("range(3)", "range(4)"),
        ("FACTOR * x", "FACTOR + x"),
        ("2 * scaled", "3 * scaled"),
        ("FACTOR = 3", "FACTOR = 4"),
        ("FACTOR = 3", "FACTOR = 3.0"),
        ("SHIFT = 1", "SHIFT = 2"),
        ("[1, 2, 3]", "[1, 2, 4]"),
        ("math.sqrt", "math.exp"),
        ("import math\n", "import cmath as math\n"),
    ],
)
def test_what_is_reached_counts(of_module, old, new):
    assert of_module(old, new) != of_module()


def test_functions_that_call_each_other_have_one(of_module):
    def even(n):
        return n == 0 or odd(n - 1)

    def odd(n):
        return n != 0 and even(n - 1)

    assert len(fingerprint([even])) == 64


def closing_over(value):
    def function(x):
        return value + x

    return function


class Colour(IntEnum):
    RED = 1
    BLUE = 2


def test_what_a_function_closes_over_counts():
    values = [
        1,
        1.0,
        "1",
        (1, 2),
        [1, 2],
        {1: 2},
        np.float32(1),
        np.arange(3),
        np.arange(4),
        Colour.RED,
        Colour.BLUE,
    ]
    values += [None, True, np.dtype("f4"), np.dtype("f8"), closing_over, Colour, np]
    found = [fingerprint([closing_over(value)]) for value in values]
    assert len(set(found)) == len(values)
    assert found == [fingerprint([closing_over(value)]) for value in values]


def test_what_stands_in_for_a_function_counts():
    @chosen_by("kind")
    def stub(kind):
        raise NotImplementedError

    def calls(x):
        return stub(x)

    stand_ins = stub, callee(len_of), closing_over(1)
    found = [fingerprint([calls], lambda asked, own=own: [own] if asked is stub else []) for own in stand_ins]
    assert len(set(found)) == 3
    implement(stub, tuple, len_of)
    with pytest.raises(ValueError, match="has its code already"):
        implement(stub, tuple, len_of)


def len_of(x):
    return len(x)


def test_options_of_the_compiler_count():
    assert fingerprint([kernel(len_of)]) != fingerprint([kernel(len_of, fastmath=True)])


def test_an_object_of_no_known_kind_has_none():
    class Odd:
        pass

    with pytest.raises(UnknownReachError, match="Odd"):
        fingerprint([closing_over(Odd())])


def test_a_constant_that_changes_in_a_process_has_none_any_more(monkeypatch):
    monkeypatch.setitem(globals(), "changing", 1)
    fingerprint([reads_changing])
    monkeypatch.setitem(globals(), "changing", 2)
    with pytest.raises(UnknownReachError, match=r"reads_changing.* has changed"):
        fingerprint([reads_changing])


def reads_changing():
    return changing  # noqa: F821 - set by the test
