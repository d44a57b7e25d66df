"""The checks of arrays, and of room in memory for them."""

from pathlib import PurePath
from types import SimpleNamespace

import numpy as np
import pytest
from hypothesis import given as drawn
from hypothesis import strategies as st

from sfc import checks
from tests.sfc.test_checks import refused
from tests.strategies import INTEGER_DTYPES


def cells(values, **more):
    return checks.array("cells", values, "iu", checks.INTEGERS, ("n", 2), "floor them", **more)


@pytest.mark.quick
class TestArrays:
    @pytest.mark.parametrize("dtype", [*INTEGER_DTYPES, np.dtype(">i4"), np.dtype(">u8")], ids=str)
    def test_an_integer_dtype_is_kept_in_native_byte_order(self, dtype):
        given = np.array([[1, 2], [3, 4]], dtype)
        found = cells(given)
        assert found.dtype == dtype.newbyteorder("=")
        assert found.tolist() == [[1, 2], [3, 4]]
        assert np.shares_memory(found, given) == dtype.isnative

    @pytest.mark.parametrize("order", ["C", "F"])
    def test_nothing_is_copied_that_need_not_be(self, order):
        given = np.array([[1, 2], [3, 4], [5, 6]], order=order)
        given.setflags(write=False)
        for values in (given, given[::2], np.ones((2**10, 2), int)[:, ::-1]):
            assert np.shares_memory(cells(values, low=0, high=9), values)

    def test_nested_sequences_make_an_array(self):
        assert cells([[1, 2], (3, 4)]).tolist() == [[1, 2], [3, 4]]

    @pytest.mark.parametrize("dtype", [float, np.float16, int])
    def test_no_entries_of_floats_are_no_entries_of_integers(self, dtype):
        found = cells(np.empty((0, 2), dtype))
        assert (found.shape, found.dtype) == ((0, 2), np.int64)
        assert checks.array("x", np.empty(0, np.float32), "f", "any float dtype", ("n",)).dtype == np.float32

    @pytest.mark.parametrize(
        "dtype",
        [float, bool, complex, "m8[s]", "M8[s]", "U1", "S1", "V3", object, np.dtype([("x", int)])],
        ids=str,
    )
    def test_another_dtype_is_refused_with_the_remedy(self, dtype):
        parts = (f"cells of dtype {np.dtype(dtype)}; allowed: any integer dtype; floor them",)
        refused(lambda: cells(np.zeros((1, 2), dtype)), ValueError, *parts)

    @pytest.mark.parametrize(
        "values", [[[np.timedelta64(1, "s"), 2]], [["1", "2"]], [[1.5, 2]], [[2**70, 1.5]], [[None, 1]]]
    )
    def test_entries_of_another_class_are_refused(self, values):
        refused(
            lambda: cells(values), ValueError, "cells of dtype ", "; allowed: any integer dtype; floor them"
        )

    @pytest.mark.parametrize("shape", [(2,), (2, 3), (1, 2, 2), (), (0,)])
    def test_another_shape_is_refused(self, shape):
        refused(lambda: cells(np.zeros(shape, int)), ValueError, f"cells of shape {shape}; allowed: (n, 2)")

    def test_a_row_is_had_by_flattening(self):
        parts = ("x of shape (1, 2); allowed: (n,); flatten with .ravel()",)
        refused(lambda: checks.array("x", [[1, 2]], "iu", "integers", ("n",)), ValueError, *parts)

    def test_a_letter_stands_for_any_side_and_a_number_for_itself(self):
        assert checks.array("x", np.zeros((2, 5), int), "iu", "integers", ("n", "m")).shape == (2, 5)
        refused(
            lambda: checks.array("x", [1, 2], "iu", "integers", (3,)), ValueError, "shape (2,); allowed: (3,)"
        )

    @pytest.mark.parametrize("masked", [np.ma.array([[1, 2]]), np.ma.array([[1, 2]], mask=True)])
    def test_a_mask_is_refused_with_the_remedy(self, masked):
        for values in (masked, [masked[0], masked[0]], (masked[0], [1, 2])):
            parts = (
                "cells is a masked array; allowed: an array without a mask, (n, 2); fill it with .filled()",
            )
            refused(lambda values=values: cells(values), ValueError, *parts)
        refused(
            lambda: checks.array("x", [1, np.ma.masked], "iu", "integers", ("n",)),
            ValueError,
            "x is a masked",
        )

    @pytest.mark.parametrize(
        "values", [None, "ab", b"ab", {}, {1, 2}, object(), iter([[1, 2]]), PurePath("a")]
    )
    def test_what_makes_no_array_is_a_type_error(self, values):
        parts = ("cells = ", "of class", "allowed: an array of any integer dtype, shape (n, 2); floor them")
        refused(lambda: cells(values), TypeError, *parts)

    def test_what_raises_a_type_error_on_its_way_to_an_array_is_one(self):
        class Device:
            def __array__(self, dtype=None, copy=None):
                raise TypeError("bring me to the host")

        refused(lambda: cells(Device()), TypeError, "cells = ", "allowed: an array of any integer dtype")

    @pytest.mark.parametrize(
        "values",
        [[[True, 2]], [(1, 2), [3, np.True_]], ([1, 2], (False, 0)), [True, 2], [[1, 2], False]],
        ids=str,
    )
    def test_truth_values_among_numbers_are_refused(self, values):
        parts = ("cells = ", " holds truth values; allowed: any integer dtype; floor them")
        refused(lambda: cells(values), ValueError, *parts)

    def test_truth_values_are_flags(self):
        assert checks.array("x", [True, np.False_], "b", "flags", ("n",)).tolist() == [True, False]

    @pytest.mark.parametrize("length", [10**12, 10**30])
    def test_a_range_that_no_memory_holds_is_refused_before_it_is_laid_out(self, length):
        for values in (range(length), range(length, 0, -1), [range(length)], (range(length), [1])):
            parts = (f"cells: {8 * length:,} bytes ", "are needed; allowed: up to ", "a part of the range")
            refused(lambda values=values: cells(values), ValueError, *parts)
        assert checks.array("x", range(3, 9, 2), "iu", "integers", ("n",)).tolist() == [3, 5, 7]

    def test_numbers_repeated_that_no_memory_holds_are_refused_before_one_is_looked_at(self):
        endless = np.broadcast_to(np.uint8(1), (2**40, 2))
        for bounds in ({}, {"low": 0, "high": 9}):
            parts = (f"cells: {2**44:,} bytes ", "are needed; allowed: up to ", "; give fewer at a time")
            refused(lambda bounds=bounds: cells(endless, **bounds), ValueError, *parts)
        assert cells(np.broadcast_to(np.uint8(1), (2**10, 2)), low=0).shape == (2**10, 2)

    @pytest.mark.parametrize(
        ("dtype", "value", "shown"),
        [(float, np.nan, "nan"), (np.float16, np.inf, "inf"), (np.float32, -np.inf, "-inf")]
        + [(np.longdouble, np.longdouble("1e400"), "inf")] * (np.finfo(np.longdouble).maxexp > 2**10),
    )
    def test_what_is_not_finite_is_refused_where_it_is_first(self, dtype, value, shown):
        given = np.ones((3, 2), dtype)
        taken = "fiu", "real numbers", ("n", 2)
        assert checks.array("x", given, *taken, finite=True) is given
        given[1:, 1] = value
        parts = (f"x[1, 1] = {shown}; allowed: finite numbers; scale",)
        refused(lambda: checks.array("x", given, *taken, finite=True, outside="scale"), ValueError, *parts)
        bounds = {"low": -9, "high": 9, "finite": True}
        parts = (f"x[1, 1] = {shown}; allowed: finite numbers of at least -9, up to 9",)
        refused(lambda: checks.array("x", given, *taken, **bounds), ValueError, *parts)

    @pytest.mark.parametrize("dtype", ["i8", "u8", ">i8", ">u8"])
    def test_integers_that_become_floats_are_refused_between_two_of_them(self, dtype):
        taken = "fiu", "real numbers", ("n", 2)
        for end in (2**53, np.iinfo(dtype).max, *([-(2**53)] if "i" in dtype else [])):
            given = np.array([[1, 2**53], [end + (1 if end == 2**53 else -1 if end < 0 else 0), end]], dtype)
            assert checks.array("x", given, *taken, whole=True).tolist() == given.tolist()
            parts = (f"x[1, 0] = {given[1, 0]}; allowed: numbers that a float64 holds", "; scale")
            refused(lambda given=given: checks.array("x", given, *taken, "scale"), ValueError, *parts)
        fair = np.array([[2**62, 2**53 - 1], [2**54 + 4, 2**55]], dtype)
        assert checks.array("x", fair, *taken).tolist() == fair.tolist()

    @drawn(data=st.data(), dtype=st.sampled_from(["i8", "u8", ">i8", ">u8"]))
    def test_the_first_integer_between_two_floats_is_named(self, data, dtype):
        ends = [int(end) for end in (np.iinfo(dtype).min, np.iinfo(dtype).max)]
        powers = st.builds(lambda k, sign: sign * 2**k, st.integers(0, 64), st.sampled_from([1, -1]))
        step = st.builds(int.__add__, powers, st.sampled_from([0, 1, -1, 2**10, -(2**10), 2**11]))
        entry = st.one_of(st.integers(*ends), step.map(lambda x: min(max(x, ends[0]), ends[1])))
        given = np.array(data.draw(st.lists(st.tuples(entry, entry), max_size=5)), dtype).reshape(-1, 2)
        given = given[::-1] if data.draw(st.booleans()) else np.broadcast_to(given[:, :1], given.shape)
        taken = "fiu", "real numbers", ("n", 2)
        rounded = [
            place for place in np.ndindex(given.shape) if int(float(given[place])) != int(given[place])
        ]
        if not rounded:
            assert checks.array("x", given, *taken).tolist() == given.tolist()
            return
        part = f"x[{rounded[0][0]}, {rounded[0][1]}] = {given[rounded[0]]}; allowed: numbers that a float64"
        refused(lambda: checks.array("x", given, *taken), ValueError, part)

    def test_an_integer_between_two_floats_is_found_in_many(self):
        given = np.arange(2**17).reshape(-1, 2) * 2**40
        assert checks.array("x", given, "fiu", "real numbers", ("n", 2)) is given
        given[2**15 + 3, 1] += 1
        refused(
            lambda: checks.array("x", given, "fiu", "real numbers", ("n", 2)), ValueError, "x[32771, 1] = "
        )

    def test_a_wide_integer_is_compared_with_a_bound_of_floats_as_it_is(self):
        given = np.array([2**53, 2**53 + 1, -(2**53) - 1])
        parts = (
            "x[1] = 9007199254740993; allowed: values of at least -9007199254740992, up to 9007199254740992",
        )
        bounds = {"low": -(2.0**53), "high": 2.0**53}
        refused(lambda: checks.array("x", given, "iu", "integers", ("n",), **bounds), ValueError, *parts)
        assert checks.array("x", given[:1], "iu", "integers", ("n",), low=0.5, high=2.0**53).size == 1

    def test_integers_in_a_list_are_kept_or_refused_never_rounded(self):
        rows = [[np.uint64(5), -1], [2, 3]]
        assert np.asarray(rows).dtype == float
        assert (cells(rows).dtype, cells(rows).tolist()) == (np.int64, [[5, -1], [2, 3]])
        parts = ("cells holds integers from -1 to 9223372036854775808; allowed: integers of one dtype: ",)
        refused(lambda: cells([[2**63, -1]]), ValueError, *parts)
        refused(lambda: cells([[2**70, 1]]), ValueError, f"cells holds integers from 1 to {2**70}; allowed: ")
        taken = "fiu", "real numbers", ("n",)
        parts = ("x[0] = 9007199254740993 beside floats; allowed: numbers that a float64 holds",)
        refused(lambda: checks.array("x", [2**53 + 1, 0.5], *taken, whole=True), ValueError, *parts)
        assert checks.array("x", [2**60, 1e300, 0.5], *taken).tolist() == [2.0**60, 1e300, 0.5]

    def test_a_narrow_float_is_compared_with_a_bound_as_it_is(self):
        given = np.array([1.0, 1e-9], np.float32)  # the second lies just below
        parts = ("x[1] = 9.99999", "allowed: values of at least 1e-09")
        refused(lambda: checks.array("x", given, "f", "floats", ("n",), low=1e-9), ValueError, *parts)

    def test_lists_within_lists_of_themselves_are_refused(self):
        endless = []
        endless.append(endless)
        refused(lambda: cells(endless), ValueError, "cells ", "allowed: ")

    def test_a_ragged_list_is_a_value_error(self):
        refused(
            lambda: cells([[1, 2], [3]]), ValueError, "cells = [[1, 2], [3]] makes no array: ", "allowed: "
        )

    @pytest.mark.parametrize("dtype", INTEGER_DTYPES, ids=str)
    def test_the_first_value_out_of_range_is_named_with_its_place(self, dtype):
        values = np.array([[1, 2], [9, 3], [4, 8]], dtype)
        parts = ("cells[1, 0] = 9; allowed: values of at least 1, up to 7; move it",)
        refused(lambda: cells(values, low=1, high=7, outside="move it"), ValueError, *parts)
        refused(lambda: cells(values, low=2), ValueError, "cells[0, 0] = 1; allowed: values of at least 2")
        refused(lambda: cells(values, high=2), ValueError, "cells[1, 0] = 9; allowed: values up to 2")
        assert cells(values, low=1, high=9).tolist() == values.tolist()
        assert cells(values, low=-(2**70), high=2**70).tolist() == values.tolist()

    def test_the_ends_of_64_bits_are_compared_exactly(self):
        most = np.array([[2**64 - 1, 0]], np.uint64)
        refused(
            lambda: cells(most, low=0, high=2**63 - 1), ValueError, f"cells[0, 0] = {2**64 - 1}; allowed: "
        )
        assert cells(most, high=2**64 - 1) is not None
        least = np.array([[0, -1]])
        refused(
            lambda: cells(least, low=0, high=2**64),
            ValueError,
            "cells[0, 1] = -1; allowed: values of at least 0",
        )

    def test_no_number_is_outside_every_range(self):
        for bounds in ({"low": 0}, {"high": 0}):
            call = lambda bounds=bounds: checks.array("x", [0.0, np.nan], "f", "floats", ("n",), **bounds)  # noqa: E731
            refused(call, ValueError, "x[1] = nan; allowed: values ")

    def test_an_array_of_a_device_is_judged_by_its_dtype_and_shape(self):
        class OnDevice:
            shape, dtype, size = (5, 2), np.dtype(np.int32), 10

        assert checks.fits("x", OnDevice, "iu", "integers", ("n", 2)) is None
        refused(
            lambda: checks.fits("x", OnDevice, "iu", "integers", ("n", 3)),
            ValueError,
            "x of shape (5, 2); allowed: (n, 3)",
        )
        refused(
            lambda: checks.fits("x", OnDevice, "f", "floats", ("n", 2), "cast"),
            ValueError,
            "x of dtype int32; allowed: floats; cast",
        )


@pytest.mark.quick
class TestMemory:
    def test_what_fits_is_allowed_and_a_byte_more_is_refused_with_the_remedy(self):
        checks.require_bytes("a table", 2**30, 2**30, "take a smaller one")
        parts = (
            "a table: 1,073,741,825 bytes (1 GiB) are needed; allowed: up to 1,073,741,824 bytes (1 GiB), ",
        )
        call = lambda: checks.require_bytes("a table", 2**30 + 1, 2**30, "take a smaller one")  # noqa: E731
        refused(call, ValueError, *parts, "which are free; take a smaller one")

    @pytest.mark.parametrize("power", [400, 4000, 40000])
    def test_more_bytes_than_a_float_counts_are_in_the_message_too(self, power):
        refused(
            lambda: checks.require_bytes("x", 2**power, 0, "less"),
            ValueError,
            "x: ",
            " bytes",
            "allowed: up to 0 bytes",
        )

    def test_room_is_judged_by_the_memory_of_the_host_where_it_is_no_trifle(self, monkeypatch):
        monkeypatch.setattr(checks, "host_memory", lambda: 2**25)
        checks.require_allocatable("a table", 2**25, "take a smaller one")
        parts = ("a table: 33,554,433 bytes", "allowed: up to 33,554,432 bytes", "; take a smaller one")
        refused(
            lambda: checks.require_allocatable("a table", 2**25 + 1, "take a smaller one"), ValueError, *parts
        )
        monkeypatch.setattr(checks, "host_memory", None)
        checks.require_allocatable("a table", checks.SMALL, "take a smaller one")


@pytest.mark.quick
class TestHostMemory:
    @pytest.fixture(autouse=True)
    def host(self, monkeypatch, tmp_path):
        """A host with 2**30 bytes free, and a process that has 2**22 bytes and holds 2**20 of them."""
        page = checks.os.sysconf("SC_PAGE_SIZE")
        (tmp_path / "statm").write_text(f"{2**22 // page} {2**20 // page} 3 4 5 6 7\n")
        (tmp_path / "meminfo").write_text("MemTotal:  9999999 kB\nMemAvailable:    1048576 kB\n")
        monkeypatch.setattr(checks, "PROCESS", tmp_path / "statm")
        monkeypatch.setattr(checks, "HOST", tmp_path / "meminfo")
        monkeypatch.setattr(checks, "CONTAINERS", (tmp_path / "none", tmp_path / "max"))
        monkeypatch.setattr(checks, "resource", None)
        return tmp_path

    def test_is_what_is_free(self):
        assert checks.host_memory() == 2**30

    @pytest.mark.parametrize(("limit", "most"), [("max\n", 2**30), (f"{2**24}\n", 2**24 - 2**20), ("1\n", 0)])
    def test_is_less_where_the_container_is_limited(self, host, limit, most):
        (host / "max").write_text(limit)
        assert checks.host_memory() == most

    @pytest.mark.parametrize(("limit", "most"), [(-1, 2**30), (2**24, 2**24 - 2**22), (1, 0)])
    def test_is_less_where_the_address_space_is_limited(self, monkeypatch, limit, most):
        limits = SimpleNamespace(RLIMIT_AS=9, RLIM_INFINITY=-1, getrlimit=lambda kind: (limit, -1))
        monkeypatch.setattr(checks, "resource", limits)
        assert checks.host_memory() == most

    def test_is_that_of_the_whole_host_where_this_does_not_say_what_is_free(self, host):
        (host / "meminfo").unlink()
        (host / "statm").unlink()
        whole = checks.os.sysconf("SC_PAGE_SIZE") * checks.os.sysconf("SC_PHYS_PAGES")
        assert checks.host_memory() == whole
        (host / "meminfo").write_text("of another system\n")
        assert checks.host_memory() == whole


def test_the_memory_of_this_host_is_found():
    assert 2**20 < checks.host_memory() < 2**50
