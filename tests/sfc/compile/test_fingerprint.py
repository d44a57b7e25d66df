"""What a compiled function can reach: an edit of it changes the fingerprint, and nothing else does."""

import importlib
import os
import subprocess
import sys
from collections import namedtuple
from enum import IntEnum
from functools import wraps
from types import FunctionType

import numpy as np
import pytest
from numba import extending, float32, float64, njit, vectorize
from numba.experimental import jitclass

from sfc.compile import callee, chosen_by, implement, inlined, kernel
from sfc.compile.fingerprint import UnhashableCodeError, fingerprint

MODULE = '''"""A module."""
import math
import numpy as np
from {package} import constants
from {package}.constants import FACTOR
import {package}.deep

TABLE = np.array([1, 2, 3])
UNUSED = 5

def scaled(x):
    """Scale."""
    return FACTOR * x

def twice(x):
    return constants.SHIFT + 2 * scaled(x) + {package}.deep.deep(x)

def outer(x):
    # a comment
    total = 0
    for k in range(3):
        total += TABLE[k] * twice(x) + math.sqrt(x)
    return total

def alone(x):
    return x
'''
DEEP = "def deep(x):\n    return 4 * x\n"
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
        texts = {
            "__init__": "",
            "constants": CONSTANTS,
            "deep": DEEP,
            "code": MODULE.format(package="probe_reach"),
        }
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
        ("return 4 * x", "return 5 * x"),
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


def stub_of(choose, **options):
    """A function that calls another, for which Numba compiles what `choose` returns."""

    def stub(x):
        raise NotImplementedError

    extending.overload(stub, **options)(choose)

    def calls(x):
        return stub(x)

    return calls


def test_what_is_compiled_in_place_of_a_function_counts():
    choosers = lambda x: len_of, lambda x: twice_of
    found = [fingerprint([stub_of(choose)]) for choose in choosers]
    found += [fingerprint([stub_of(choosers[0], jit_options={"forceinline": True})])]
    assert len(set(found)) == 3
    assert found[0] == fingerprint([stub_of(choosers[0])])


def test_what_an_intrinsic_builds_counts():
    def adding(constant, argument=0):
        @extending.intrinsic
        def added(context, x):
            def build(context, builder, signature, arguments):
                return builder.add(arguments[argument], arguments[0].type(constant))

            return x(x), build

        return lambda x: added(x)

    found = [fingerprint([adding(*given)]) for given in ((1,), (2,), (1, 1))]
    assert len(set(found)) == 3
    assert found[0] == fingerprint([adding(1)])


def test_whether_a_function_is_inlined_counts():
    def calling(marked):
        return lambda x: marked(x)

    def plain(x):
        return x

    plain_too = FunctionType(plain.__code__, plain.__globals__)
    assert fingerprint([calling(callee(plain))]) != fingerprint([calling(inlined(plain_too))])


def test_a_class_has_one_code_of_a_function():
    @chosen_by("kind")
    def stub(kind):
        raise NotImplementedError

    implement(stub, tuple, len_of)
    with pytest.raises(ValueError, match="has its code already"):
        implement(stub, tuple, len_of)


def test_which_of_two_closures_is_called_where_counts():
    one, ten = closing_over(1), closing_over(10)

    def difference(a, b):
        return lambda x: a(x) - b(x)

    assert fingerprint([difference(one, ten)]) != fingerprint([difference(ten, one)])
    assert fingerprint([one, ten]) != fingerprint([ten, one])


def test_fields_of_named_tuples_and_of_records_count():
    orders = ("a", "b"), ("b", "a")
    tuples = [namedtuple("Pair", names)(1, 2) for names in orders]
    records = [np.zeros(2, [(name, np.int64) for name in names]) for names in orders]
    for values in (tuples, records):
        assert fingerprint([closing_over(values[0])]) != fingerprint([closing_over(values[1])])


def test_what_an_exception_leads_to_counts():
    def inside(x):
        try:
            x = x + 1
            x = len(x)
        except TypeError:
            x = 0
        return x

    def outside(x):
        try:
            x = x + 1
        except TypeError:
            x = 0
        else:
            x = len(x)
        return x

    outside.__qualname__ = inside.__qualname__
    assert fingerprint([inside]) != fingerprint([outside])


def test_a_module_with_a_name_of_the_standard_library_is_read(tmp_path, monkeypatch):
    found = []
    for factor in (2, 3):
        monkeypatch.syspath_prepend(tmp_path)
        monkeypatch.delitem(sys.modules, "turtle", raising=False)
        (tmp_path / "turtle.py").write_text(f"def walk(x):\n    return {factor} * x\n")
        monkeypatch.setattr(sys, "dont_write_bytecode", True)
        importlib.invalidate_caches()
        found.append(fingerprint([importlib.import_module("turtle").walk]))
    monkeypatch.delitem(sys.modules, "turtle")
    assert len(set(found)) == 2


def executed(body: str):
    """A function without a module."""
    made = {}
    exec(f"def function(x):\n    return {body}", made)
    return made["function"]


def disguised(factor):
    """A function that gives itself out as one of numpy's."""

    @wraps(np.linalg.norm)
    def function(x):
        return factor * x

    return function


def with_local_types(kind):
    return njit(locals={"y": kind})(len_of)


@pytest.mark.parametrize(
    ("made", "first", "second"),
    [
        (executed, "x + 1", "x + 2"),
        (disguised, 2, 3),
        (with_local_types, float32, float64),
        (lambda signature: njit(signature)(twice_of), "f4(f4[:])", "f8(f8[:])"),
    ],
)
def test_however_a_function_is_made_its_code_and_options_count(made, first, second):
    assert fingerprint([closing_over(made(first))]) != fingerprint([closing_over(made(second))])


def test_what_is_added_to_a_function_of_numpy_counts_for_kernels():
    script = (
        "from sfc.compile.fingerprint import *; from numba import extending; import numpy as np; "
        "f = lambda x: x; "
    )
    script += "before = [fingerprint([f], extended) for extended in (True, False)]; "
    script += "extending.overload(np.busday_count)(lambda begin, end: lambda begin, end: 1); "
    script += "print([fingerprint([f], k == 0) == old for k, old in enumerate(before)])"
    environment = os.environ | {"PYTHONPATH": os.pathsep.join(sys.path)}
    done = subprocess.run([sys.executable, "-c", script], env=environment, capture_output=True, text=True)
    assert (done.stdout, done.stderr) == ("[False, True]\n", "")


def test_options_are_described_alike_in_every_process():
    script = "from sfc.compile.fingerprint import *; from numba import njit; import md.laws.pair as p; "
    script += "f = njit(fastmath={'nnan', 'nsz', 'ninf', 'contract'})(lambda x: p.pair_size(x, 0, 1)); "
    script += "print(fingerprint([f]), described_options({'fastmath': {'nnan', 'nsz', 'ninf'}}))"
    found = {
        subprocess.run(
            [sys.executable, "-c", script],
            env=os.environ | {"PYTHONHASHSEED": seed, "PYTHONPATH": os.pathsep.join(sys.path)},
            capture_output=True,
            text=True,
            check=True,
        ).stdout
        for seed in ("1", "2")
    }
    assert len(found) == 1
    assert len(found.pop()) > 64


@jitclass([("a", float64)])
class Compiled:
    """A class with methods that Numba compiles."""

    def __init__(self):
        self.a = 1.0


def without_a_value():
    def function(x):
        return later + x

    if len(sys.argv) < 0:
        later = 1
    return function


HOLDS_ITSELF = []
HOLDS_ITSELF.append(HOLDS_ITSELF)


@pytest.mark.parametrize(
    "value",
    [
        vectorize(lambda x: x),
        np.array([object()]),
        object(),
        Compiled,
        without_a_value(),
        HOLDS_ITSELF,
    ],
    ids=lambda value: type(value).__name__,
)
def test_code_and_objects_that_cannot_be_read_have_none(value):
    with pytest.raises(UnhashableCodeError):
        fingerprint([closing_over(value)])


def twice_of(x):
    return 2 * len(x)


def len_of(x):
    return len(x)


def test_options_of_the_compiler_count():
    assert fingerprint([kernel(len_of)]) != fingerprint([kernel(len_of, fastmath=True)])


def test_an_object_of_no_known_kind_has_none():
    class Odd:
        pass

    with pytest.raises(UnhashableCodeError, match="Odd"):
        fingerprint([closing_over(Odd())])


def test_a_constant_that_changes_in_a_process_has_none_any_more(monkeypatch):
    monkeypatch.setitem(globals(), "changing", 1)
    fingerprint([reads_changing])
    monkeypatch.setitem(globals(), "changing", 2)
    with pytest.raises(UnhashableCodeError, match=r"reads_changing.* has changed"):
        fingerprint([reads_changing])


def reads_changing():
    return changing  # noqa: F821 - set by the test
