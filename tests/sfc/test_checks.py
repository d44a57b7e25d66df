"""Each check of an argument: what it takes and returns, what it refuses, and what the refusal says."""

import datetime
import math
import re
from decimal import Decimal
from fractions import Fraction
from pathlib import Path, PurePath

import numpy as np
import pytest

from sfc import checks
from tests.strategies import INTEGER_DTYPES

NO_INTEGERS = [2.0, True, np.True_, "2", b"2", None, 2j, Decimal(2), Fraction(2), [2], {}, np.float64(2)]
NO_INTEGERS += [
    np.timedelta64(2, "s"),
    np.timedelta64("NaT", "s"),
    datetime.timedelta(2),
    np.array(2),
    float("nan"),
]
NO_NUMBERS = [True, np.False_, "2", None, 2j, np.complex64(2), Decimal(2), [2.0], {}, np.timedelta64(2, "s")]
NO_NUMBERS += [datetime.date(2020, 1, 1), np.datetime64("2020"), np.array(2.0)]


def name_of(value: object) -> str:
    """The name of a case, the same in every process."""
    return re.sub(r" at 0x\w+", "", repr(value))


NO_SEQUENCES = [3, 2.5, None, "345", b"345", {3: 4}, {3, 4}, iter([3, 4]), True]


def refused(call, error, *parts):
    """Check that a call raises exactly this class, with these parts of the message in turn."""
    with pytest.raises(error) as refusal:
        call()
    assert refusal.type is error
    message, place = str(refusal.value), 0
    for part in parts:
        assert part in message[place:], message
        place = message.index(part, place) + len(part)


@pytest.mark.quick
class TestIntegers:
    @pytest.mark.parametrize("dtype", INTEGER_DTYPES, ids=str)
    def test_an_integer_of_any_width_comes_back_as_python_s(self, dtype):
        found = checks.integer("steps", dtype.type(100))
        assert (found, type(found)) == (100, int)
        assert found * found * found == 10**6
        many = checks.integers("cells", np.full(3, 100, dtype))
        assert math.prod(many) == 10**6
        assert {type(one) for one in many} == {int}

    @pytest.mark.parametrize("value", NO_INTEGERS, ids=repr)
    def test_another_class_is_a_type_error(self, value):
        parts = (
            "steps = ",
            f"of class {type(value).__name__}; allowed: an integer of at least 1 (steps); wait",
        )
        refused(lambda: checks.integer("steps", value, unit="steps", remedy="wait"), TypeError, *parts)
        assert not checks.is_integer(value)

    @pytest.mark.parametrize(
        ("value", "low", "high", "allowed"),
        [
            (0, 1, math.inf, "an integer of at least 1"),
            (-1, 0, math.inf, "an integer of at least 0"),
            (4, -math.inf, 3, "an integer up to 3"),
            (7, 2, 5, "an integer of at least 2, up to 5"),
            (2**70, 1, 2**63 - 1, f"an integer of at least 1, up to {2**63 - 1}"),
            (np.uint64(2**64 - 1), 1, 2**63 - 1, f"an integer of at least 1, up to {2**63 - 1}"),
        ],
    )
    def test_out_of_range_is_a_value_error(self, value, low, high, allowed):
        parts = (f"n = {value!r}; allowed: {allowed}; take another",)
        refused(lambda: checks.integer("n", value, low, high, remedy="take another"), ValueError, *parts)

    def test_the_bounds_themselves_are_allowed_and_there_need_be_none(self):
        assert [checks.integer("n", value, 2, 5) for value in (2, 5)] == [2, 5]
        assert checks.integer("n", -(10**40), -math.inf) == -(10**40)
        assert checks.integer("n", 10**40) == 10**40

    @pytest.mark.parametrize("values", [[3, 4], (3, 4), range(3, 5), np.array([3, 4])])
    def test_a_sequence_of_integers_is_a_tuple(self, values):
        assert checks.integers("cells", values) == checks.integers("cells", values, 3, 4, count=2) == (3, 4)
        assert checks.integers("cells", []) == ()

    @pytest.mark.parametrize("values", NO_SEQUENCES, ids=name_of)
    def test_no_sequence_is_a_type_error(self, values):
        refused(
            lambda: checks.integers("cells", values), TypeError, "cells = ", "allowed: a sequence of integers"
        )

    @pytest.mark.parametrize("value", NO_INTEGERS, ids=repr)
    def test_an_entry_of_another_class_is_named(self, value):
        parts = ("cells[1] = ", f"of class {type(value).__name__}; allowed: an integer of at least 1")
        refused(lambda: checks.integers("cells", [3, value]), TypeError, *parts)

    def test_an_entry_out_of_range_and_another_number_of_them_are_named(self):
        refused(
            lambda: checks.integers("c", (3, 0)), ValueError, "c[1] = 0; allowed: an integer of at least 1"
        )
        parts = ("c = (3, 4) has 2 entries; allowed: a sequence of 3 integers; one for each axis",)
        refused(lambda: checks.integers("c", (3, 4), count=3, remedy="one for each axis"), ValueError, *parts)

    @pytest.mark.parametrize("dtype", INTEGER_DTYPES, ids=str)
    def test_one_for_all_axes_or_one_for_each(self, dtype):
        one, each = (
            checks.per_axis("tile", dtype.type(3), 2),
            checks.per_axis("tile", np.array([3, 4], dtype), 2),
        )
        assert (one, each) == ((3, 3), (3, 4))
        assert {type(side) for side in one + each} == {int}

    @pytest.mark.parametrize("value", [2.0, True, "22", None, {}, np.timedelta64(2, "s"), {2, 3}], ids=repr)
    def test_neither_one_nor_one_for_each_is_a_type_error(self, value):
        parts = ("tile = ", "allowed: an integer of at least 1, or 2 of them; as 4")
        refused(lambda: checks.per_axis("tile", value, 2, remedy="as 4"), TypeError, *parts)

    def test_a_side_out_of_range_and_another_number_of_sides_are_named(self):
        refused(
            lambda: checks.per_axis("tile", 0, 2), ValueError, "tile = 0; allowed: an integer of at least 1"
        )
        refused(lambda: checks.per_axis("tile", (3, 9), 2, 1, 8), ValueError, "tile[1] = 9; ", "up to 8")
        refused(lambda: checks.per_axis("tile", (3, 3.0), 2), TypeError, "tile[1] = 3.0 of class float")
        refused(
            lambda: checks.per_axis("tile", (3,), 2), ValueError, "has 1 entries; allowed: ", "2 integers"
        )


@pytest.mark.quick
class TestNumbers:
    @pytest.mark.parametrize(
        "kind", [int, float, Fraction, np.float16, np.float32, np.longdouble, np.int8, np.uint8]
    )
    def test_a_number_of_any_width_comes_back_as_python_s(self, kind):
        found = checks.number("length", kind(3))
        assert (found, type(found)) == (3.0, float)
        assert checks.numbers("lengths", [kind(3), 4]) == (3.0, 4.0)
        assert checks.is_number(kind(3))

    @pytest.mark.parametrize("end", [2**53, 2**60, 2**63, 2**64])
    @pytest.mark.parametrize("kind", [int, Fraction, np.int64, np.uint64, np.longdouble])
    def test_an_integer_between_two_floats_is_refused(self, end, kind):
        for value in (end - 1, end, end + 1, 1 - end, -end, -end - 1):
            try:
                given = kind(value)
            except OverflowError:  # not of this width
                continue
            if int(given) != value:  # nor a long double
                continue
            if int(float(value)) == value:
                assert checks.number("length", given) == value
            else:
                assert checks.exact_number("corner", given) == value
                parts = ("length = ", str(value), "; allowed: numbers that a float64 holds", "; scale")
                refused(
                    lambda given=given: checks.number("length", given, remedy="scale"), ValueError, *parts
                )

    @pytest.mark.skipif(np.finfo(np.longdouble).maxexp == 1024, reason="as long as a double")
    @pytest.mark.parametrize("finite", [True, False])
    def test_a_long_double_beyond_floats_does_not_become_infinite(self, finite):
        value = np.longdouble(2) ** 16000
        part = "length = np.longdouble('3.01946933"
        refused(lambda: checks.number("length", value, finite=finite), ValueError, part)

    @pytest.mark.parametrize("value", NO_NUMBERS, ids=repr)
    def test_another_class_is_a_type_error(self, value):
        parts = (
            "dt = ",
            f"of class {type(value).__name__}; allowed: a finite number above 0 (seconds); as 1e-3",
        )
        call = lambda: checks.number("dt", value, above=0, unit="seconds", remedy="as 1e-3")  # noqa: E731
        refused(call, TypeError, *parts)
        refused(lambda: checks.numbers("ts", [1, value]), TypeError, "ts[1] = ", "allowed: a finite number")
        assert not checks.is_number(value)

    @pytest.mark.parametrize(
        ("value", "bounds", "allowed"),
        [
            (math.nan, {}, "a finite number"),
            (math.inf, {}, "a finite number"),
            (-math.inf, {"high": 3}, "a finite number up to 3"),
            (math.nan, {"finite": False}, "a number"),
            (10**400, {}, "a finite number"),
            (-0.5, {"low": 0}, "a finite number of at least 0"),
            (0.0, {"above": 0}, "a finite number above 0"),
            (1, {"low": 0, "below": 1}, "a finite number of at least 0, below 1"),
            (1.5, {"low": 0, "high": 1}, "a finite number of at least 0, up to 1"),
            (1, {"low": 1, "above": 1}, "a finite number above 1"),
        ],
    )
    def test_out_of_range_is_a_value_error(self, value, bounds, allowed):
        refused(lambda: checks.number("x", value, **bounds), ValueError, "x = ", f"; allowed: {allowed}")

    def test_the_bounds_themselves_are_allowed_where_they_are_said_to_be(self):
        assert [checks.number("x", value, 0, 1) for value in (0, 1)] == [0.0, 1.0]
        assert checks.number("x", math.inf, finite=False) == math.inf
        assert checks.number("x", 5e-324, above=0) > 0

    @pytest.mark.parametrize("values", NO_SEQUENCES, ids=name_of)
    def test_no_sequence_is_a_type_error(self, values):
        refused(lambda: checks.numbers("ls", values), TypeError, "ls = ", "allowed: a sequence of numbers")

    def test_another_number_of_entries_is_refused(self):
        refused(
            lambda: checks.numbers("ls", (3, 4), 3),
            ValueError,
            "has 2 entries; allowed: a sequence of 3 numbers",
        )


@pytest.mark.quick
class TestFlagsAndWords:
    @pytest.mark.parametrize("value", [True, False, np.True_, np.False_])
    def test_a_flag_comes_back_as_python_s(self, value):
        found = checks.flag("fused", value)
        assert (found, type(found)) == (bool(value), bool)

    @pytest.mark.parametrize(
        "value", [0, 1, None, "no", "True", 0.0, [], np.array(True), np.int8(1)], ids=repr
    )
    def test_what_is_no_flag_is_a_type_error(self, value):
        parts = ("fused = ", "allowed: True or False; leave it out")
        refused(lambda: checks.flag("fused", value, "leave it out"), TypeError, *parts)

    def test_a_word_known_comes_back_as_a_str(self):
        found = checks.word("layout", np.str_("soa"), ("soa", "aos"))
        assert (found, type(found)) == ("soa", str)
        assert checks.word("layout", "b", {"b": 1, "a": 2}) == "b"

    def test_another_word_lists_those_known(self):
        parts = ("unknown layout 'aso'; allowed: one of soa, aos; see addresses",)
        refused(
            lambda: checks.word("layout", "aso", iter(("soa", "aos")), "see addresses"), ValueError, *parts
        )

    @pytest.mark.parametrize("value", [None, 3, b"soa", ["soa"], np.array(["soa"]), True], ids=repr)
    def test_no_word_is_a_type_error(self, value):
        refused(lambda: checks.word("layout", value, ("soa",)), TypeError, "layout = ", "allowed: one of soa")
        refused(lambda: checks.text("name", value, "as 'a'"), TypeError, "name = ", "allowed: a str; as 'a'")

    def test_a_text_has_a_character(self):
        assert checks.text("name", "a") == "a"
        assert type(checks.text("name", np.str_("a"))) is str
        refused(
            lambda: checks.text("name", ""), ValueError, "name = ''; allowed: a str of at least one character"
        )


@pytest.mark.quick
class TestObjects:
    def test_an_object_of_a_class_comes_back_itself(self):
        value = Fraction(3)
        assert checks.instance("x", value, Fraction, "a Fraction") is value
        assert checks.instance("x", value, (int, Fraction), "a Fraction or an int") is value
        assert checks.function("f", math.sqrt, "a function of a number") is math.sqrt

    @pytest.mark.parametrize("value", [None, 3, "x", Fraction])
    def test_another_class_is_a_type_error(self, value):
        parts = ("x = ", f"of class {type(value).__name__}; allowed: a Fraction; make one")
        refused(lambda: checks.instance("x", value, Fraction, "a Fraction", "make one"), TypeError, *parts)

    @pytest.mark.parametrize("value", [None, 3, "f"])
    def test_what_cannot_be_called_is_a_type_error(self, value):
        parts = ("f = ", "allowed: a function of cells; give one")
        refused(lambda: checks.function("f", value, "a function of cells", "give one"), TypeError, *parts)

    @pytest.mark.parametrize("value", ["a/b.toml", Path("a/b.toml"), PurePath("a/b.toml")])
    def test_a_path_comes_back_as_one(self, value):
        assert checks.path("file", value) == Path("a/b.toml")

    @pytest.mark.parametrize("value", [0, 1, True, None, b"a", ["a"], 2.5], ids=repr)
    def test_no_path_is_a_type_error(self, value):
        parts = ("file = ", "allowed: a path, as a str or a pathlib.Path; as 'a.toml'")
        refused(lambda: checks.path("file", value, "as 'a.toml'"), TypeError, *parts)

    @pytest.mark.parametrize("value", ["", "a\0b"])
    def test_a_path_of_no_file_is_a_value_error(self, value):
        refused(
            lambda: checks.path("file", value),
            ValueError,
            f"file = {value!r}; allowed: a path of at least one",
        )

    def test_a_value_is_shown_short_and_whatever_its_class_raises(self):
        class Odd:
            def __repr__(self):
                raise RuntimeError

        assert checks.shown("a" * 200) == repr("a" * 200)[:77] + "..."
        assert checks.shown(np.zeros((3, 4))) == "an array of dtype float64 and shape (3, 4)"
        assert checks.shown(np.array([1, 2])) == "array([1, 2])"
        assert checks.shown(Odd()) == "an object of class Odd"
        assert checks.shown(10**5000) == "an object of class int"

    def test_a_remedy_is_in_the_message_if_there_is_one(self):
        assert str(checks.refuse_value("x", 3, "2")) == "x = 3; allowed: 2"
        assert (
            str(checks.refuse_class("x", 3, "a str", "quote it"))
            == "x = 3 of class int; allowed: a str; quote it"
        )


@pytest.mark.quick
class TestSequences:
    @pytest.mark.parametrize("values", [["a", 2], ("a", 2), np.array(["a", 2], object)])
    def test_a_sequence_comes_back_as_a_tuple(self, values):
        assert checks.sequence("ws", values, "words") == checks.sequence("ws", values, "words", 2) == ("a", 2)

    @pytest.mark.parametrize("values", NO_SEQUENCES, ids=name_of)
    def test_another_class_is_a_type_error(self, values):
        parts = ("ws = ", f"of class {type(values).__name__}; allowed: a sequence of 2 words; list them")
        refused(lambda: checks.sequence("ws", values, "words", 2, "list them"), TypeError, *parts)

    @pytest.mark.parametrize(
        ("values", "message"),
        [
            (np.zeros((2, 2)), "ws of shape (2, 2); allowed: a sequence of words"),
            (np.array(3), "ws of shape (); allowed: a sequence of words"),
            (
                np.ma.array([1, 2]),
                "ws is a masked array; allowed: a sequence of words; fill it with .filled()",
            ),
            (range(2**40), f"ws has {2**40} entries; allowed: a sequence of words, up to {2**20}"),
            (range(2**70), f"ws has {2**70} entries; allowed: a sequence of words, up to {2**20}"),
        ],
        ids=["square", "number", "masked", "long", "longer than ssize_t"],
    )
    def test_another_shape_or_too_many_are_a_value_error(self, values, message):
        refused(lambda: checks.sequence("ws", values, "words"), ValueError, message)


def test_no_other_file_of_sfc_asks_for_a_class_by_itself():
    """General checks stand in `checks.py` alone."""
    folder = Path(checks.__file__).parent
    pattern = re.compile(r"np\.integer\b|np\.bool_\b|issubdtype|is_integer\(")
    found = [
        f"{path.name}: {line.strip()}"
        for path in sorted(folder.rglob("*.py"))
        if path.name != "checks.py" and path.parent.name != "compile"
        for line in path.read_text().splitlines()
        if pattern.search(line)
    ]
    assert found == []
