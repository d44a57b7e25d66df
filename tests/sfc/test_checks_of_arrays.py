"""The checks of arrays, and of room in memory for them."""

from pathlib import PurePath

import numpy as np
import pytest

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
        "values", [[[np.timedelta64(1), 2]], [["1", "2"]], [[1.5, 2]], [[2**70, 1]], [[None, 1]]]
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
class TestRoom:
    def test_what_fits_is_allowed_and_a_byte_more_is_refused_with_the_remedy(self, monkeypatch):
        monkeypatch.setattr(checks, "memory", lambda: 1000)
        checks.room("a table", 1000, "take a smaller one")
        parts = ("a table: 1,001 bytes; allowed: up to 1,000 bytes, ", "; take a smaller one")
        refused(lambda: checks.room("a table", 1001, "take a smaller one"), ValueError, *parts)

    def test_memory_is_that_of_the_machine_or_less(self):
        assert 2**26 < checks.memory() <= 2**40

    def test_the_limit_of_a_container_counts(self, monkeypatch, tmp_path):
        whole = checks.memory()
        monkeypatch.setattr(checks, "CONTAINER", tmp_path / "memory.max")
        (tmp_path / "memory.max").write_text("1048576\n")
        assert checks.memory() == 2**20
        (tmp_path / "memory.max").write_text("max\n")
        assert checks.memory() >= whole

    def test_the_limit_of_the_address_space_counts(self, monkeypatch):
        if checks.resource is None:
            pytest.skip("no limits here")
        monkeypatch.setattr(checks.resource, "getrlimit", lambda kind: (2**20, -1))
        assert checks.memory() == 2**20
        monkeypatch.setattr(checks.resource, "getrlimit", lambda kind: (-1, -1))
        assert checks.memory() > 2**20

    def test_where_nothing_is_known_a_terabyte_is_allowed(self, monkeypatch, tmp_path):
        monkeypatch.setattr(checks, "CONTAINER", tmp_path / "none")
        monkeypatch.setattr(checks, "resource", None)
        monkeypatch.setattr(checks.os, "sysconf_names", {})
        assert checks.memory() == 2**40
