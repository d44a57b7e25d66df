"""Tables in registers: their bytes on any host, and their kernels beside the walk where the host has them."""

import itertools

import numpy as np
import pytest

import sfc
from sfc.automaton import registers
from sfc.automaton.curve import Curve
from tests import tiers
from tests.strategies import CURVES

needs_registers = pytest.mark.skipif(not registers.instructions(), reason="a host without AVX2")
DTYPES = np.uint8, np.int16, np.uint16, np.int32, np.uint32, np.int64, np.uint64


def fitting() -> list[tuple[str, int]]:
    """Curves with tables that fit the registers of the host."""
    return [
        (name, dim)
        for name, dim in CURVES
        if sfc.curve(name, dim).base == 2
        and registers.levels_in_registers(dim, len(sfc.curve(name, dim).rank))
    ]


FITTING = fitting()


@pytest.fixture(params=registers.FEATURES)
def instructions(request, monkeypatch):
    """Let kernels be made of these instructions, if the host has them."""
    if registers.instructions() not in (request.param, registers.VBMI):
        pytest.skip(f"a host without {request.param}")
    monkeypatch.setattr(registers, "instructions", lambda: request.param)
    return request.param


def without_registers(curve: Curve) -> Curve:
    """The same curve, which encodes by tables in memory."""
    other = Curve(curve.name, curve.dim, curve.base, curve.rank, curve.next, curve.start)
    other._register_tables = dict.fromkeys(range(other.max_order + 1))
    return other


def tables_of(curve: Curve, order: int) -> registers.RegisterTables:
    found = registers.tables(curve.cell, curve.succ, curve.dim, curve.start, order)
    assert found is not None
    return found


def test_the_curves_that_fit(monkeypatch):
    monkeypatch.setattr(registers, "instructions", lambda: registers.VBMI)
    binary = {(name, dim) for name, dim in CURVES if sfc.curve(name, dim).base == 2}
    assert set(fitting()) == binary - {("skilling", 4)}  # 192 states
    cases = (2, 4), (2, 1), (3, 16), (3, 32), (3, 64), (3, 65), (4, 33), (7, 4), (8, 1), (8, 2), (9, 1)
    assert [registers.levels_in_registers(*case) for case in cases] == [2, 3, 1, 1, 1, 0, 0, 1, 1, 0, 0]
    monkeypatch.setattr(registers, "instructions", lambda: registers.AVX2)
    assert [registers.levels_in_registers(*case) for case in cases] == [2, 3, 1, 1, 0, 0, 0, 0, 1, 0, 0]


@pytest.mark.parametrize(("name", "dim"), FITTING)
def test_the_bytes_of_the_tables_walk_along_the_curve(name, dim):
    curve = sfc.curve(name, dim)
    for order in (1, 2, 3, 5, 7):
        check_bytes_of_tables(curve, dim, order)


def check_bytes_of_tables(curve: Curve, dim: int, order: int) -> None:
    """Walk along a curve by the bytes of its tables, both ways."""
    table = tables_of(curve, order)
    bits = dim * table.levels
    index = np.random.default_rng(order).integers(0, 2 ** (dim * order), 200, dtype=np.uint64)
    cells = without_registers(curve).decode(index, order)
    for is_encoding, bytes_of_table in ((True, table.encode), (False, table.decode)):
        state, level = np.full(200, table.start), order
        found = np.zeros((200, 1 if is_encoding else dim), int)
        while level:
            first = level == order and order % table.levels
            count = order % table.levels if first else table.levels
            level -= count
            mask = 2**count - 1
            if is_encoding:
                number = sum((cells[:, k] >> level & mask) << count * k for k in range(dim))
            else:
                number = index.astype(int) >> dim * level & (2 ** (dim * count) - 1)
            if len(curve.rank) << dim > registers.NARROW:
                number, half = number + (state << dim), 64 * table.registers // 2
                state, code = (bytes_of_table[64 + first + number].astype(int) for first in (0, half))
            else:
                entry = bytes_of_table[number if first else registers.POINTS + (state | number)].astype(int)
                state, code = entry >> bits << bits, entry & (2 ** (dim * count) - 1)
            if is_encoding:
                found[:, 0] = found[:, 0] << dim * count | code
            else:
                for k in range(dim):
                    found[:, k] = found[:, k] << count | (code >> count * k & mask)
        np.testing.assert_array_equal(found, index[:, None] if is_encoding else cells, f"order {order}")


def orders_of(curve: Curve, dtype: type) -> list[int]:
    bits = 8 * np.dtype(dtype).itemsize - (np.dtype(dtype).kind == "i")
    return sorted({1, 2, min(bits, curve.max_order), min(bits, curve.max_order) // 2 + 1})


BY_DEFAULT = {  # tables of 1, 2 and 16 registers; indices of 4 and of 8 bytes
    (registers.VBMI, "hilbert", 2, 9, np.uint16),
    (registers.VBMI, "hilbert", 3, 11, np.uint64),
    (registers.VBMI, "hilbert", 4, 9, np.uint16),
    (registers.AVX2, "hilbert", 2, 9, np.uint16),
}
IN_FULL = {
    (registers.AVX2, "butz", 3, 11, np.int64),
    (registers.VBMI, "hilbert", 2, 16, np.uint16),
    (registers.VBMI, "hilbert", 3, 21, np.uint32),
    (registers.VBMI, "butz", 3, 8, np.int16),
    (registers.VBMI, "gray", 4, 16, np.int64),
    (registers.VBMI, "morton", 3, 5, np.uint8),
    (registers.VBMI, "moore", 2, 1, np.int32),
    (registers.VBMI, "compact", 3, 17, np.uint32),
    (registers.VBMI, "hilbert", 4, 16, np.uint16),
    (registers.AVX2, "hilbert", 2, 16, np.uint16),
    (registers.AVX2, "gray", 4, 9, np.int64),
    (registers.AVX2, "moore", 2, 1, np.int32),
}


def kernel_cases() -> list:
    """Curves that fit, by instructions, dtype and order."""
    cases = [
        (instructions, name, dim, order, dtype)
        for instructions, (name, dim), dtype in itertools.product(registers.FEATURES, FITTING, DTYPES)
        for order in orders_of(sfc.curve(name, dim), dtype)
        if instructions == registers.VBMI or len(sfc.curve(name, dim).rank) << dim <= registers.NARROW
    ]
    by_default = tiers.by_default(cases, lambda *case: case in BY_DEFAULT | IN_FULL)
    return tiers.by_default(by_default, lambda *case: case in BY_DEFAULT, tiers.full)


@pytest.mark.parametrize(
    ("instructions", "name", "dim", "order", "dtype"),
    kernel_cases(),
    indirect=["instructions"],
)
def test_kernels_give_what_the_walk_gives(instructions, name, dim, order, dtype):
    curve = sfc.curve(name, dim)
    table, plain = tables_of(curve, order), without_registers(curve)
    cells = np.random.default_rng(1).integers(0, 2**order, (1000, dim), dtype=np.uint64).astype(dtype)
    cells[0], cells[1] = 0, 2**order - 1
    expected = plain.encode(cells, order)
    kinds = [kind for kind in (np.uint32, np.uint64) if dim * order <= 8 * np.dtype(kind).itemsize]
    for kind, n in ((kinds[0], 1000), (kinds[-1], 63), (kinds[-1], 0), (kinds[-1], 64)):
        index, found = np.full(n, 7, kind), np.full((n, dim), 7, dtype)
        assert registers.encode(cells[:n], order, table, index)
        np.testing.assert_array_equal(index, expected[:n])
        assert registers.decode(index, order, table, found)
        np.testing.assert_array_equal(found, cells[:n])


@pytest.mark.parametrize("dtype", [np.uint16, np.int16])
@pytest.mark.parametrize("row", [0, 100, 999])
def test_kernels_report_what_is_outside(instructions, dtype, row):
    curve, order = sfc.curve("hilbert", 2), 9
    table = tables_of(curve, order)
    cells, index = np.zeros((1000, 2), dtype), np.zeros(1000, np.uint32)
    assert registers.encode(cells, order, table, index)
    cells[row, 1] = 2**order
    assert not registers.encode(cells, order, table, index)
    cells[row, 1] = -1 if dtype is np.int16 else 2**15
    assert not registers.encode(cells, order, table, index)
    index[:] = 0
    assert registers.decode(index, order, table, cells)
    index[row] = 2 ** (2 * order)
    assert not registers.decode(index, order, table, cells)


@needs_registers
def test_a_negative_number_of_all_bits_is_outside():
    curve = sfc.curve("hilbert", 2)
    cells, index = np.zeros((100, 2), np.int8), np.zeros(100, np.uint64)
    cells[70, 0] = -1
    assert not registers.encode(cells, 8, tables_of(curve, 8), index)
    with pytest.raises(ValueError, match=r"row 70 is outside the grid"):
        sfc.curve("hilbert", 2).encode(np.tile(cells, (registers.FEWEST // 100 + 1, 1)), 8)


@pytest.mark.parametrize(
    ("instructions", "dim", "states"),
    tiers.by_default(
        [
            (instructions, *kind)
            for instructions in registers.FEATURES
            for kind in ((8, 1), (1, 3), (5, 16), (6, 8), (7, 3))
        ],
        lambda *case: case == (registers.instructions() or registers.VBMI, 8, 1),
        lambda *case: (tiers.nightly if case[1:] == (6, 8) else tiers.full)(*case),
    ),
    indirect=["instructions"],
)
def test_curves_of_any_tables_give_what_the_walk_gives(instructions, dim, states):
    rng, cells = np.random.default_rng(dim), 2**dim
    rank = np.stack([rng.permutation(cells) for _ in range(states)])
    curve = Curve("any", dim, 2, rank, rng.integers(0, states, (states, cells)), start=states - 1)
    order = 3
    if instructions == registers.AVX2 and states << dim > registers.NARROW:
        assert registers.tables(curve.cell, curve.succ, dim, curve.start, order) is None
        return
    points = rng.integers(0, 2**order, (200, dim)).astype(np.uint8)
    index, found = np.zeros(200, np.uint32), np.zeros((200, dim), np.uint8)
    assert registers.encode(points, order, tables_of(curve, order), index)
    np.testing.assert_array_equal(index, without_registers(curve).encode(points, order))
    assert registers.decode(index, order, tables_of(curve, order), found)
    np.testing.assert_array_equal(found, points)


def test_the_cells_of_an_error_are_those_given_even_if_out_overlaps():
    curve, cells = sfc.curve("hilbert", 2), np.zeros((20, 2), np.int64)
    cells[7] = 99, 3
    with pytest.raises(ValueError, match=r"cell \[99, 3\] in row 7"):
        curve.encode(cells, 5, out=cells[:, 0])
    cells[:, 0] = 1
    cells[4, 0] = -5
    with pytest.raises(ValueError, match="index -5 in row 4 is negative"):
        curve.decode(cells[:, 0], 5, out=cells)


@needs_registers
def test_a_call_of_many_points_takes_them_and_one_of_few_does_not(monkeypatch):
    curve, called = without_registers(sfc.curve("hilbert", 2)), []
    curve._register_tables = {}
    right = registers.encode
    monkeypatch.setattr(registers, "encode", lambda *given: called.append(len(given[0])) or right(*given))
    cells = np.random.default_rng(2).integers(0, 2**9, (registers.FEWEST, 2)).astype(np.uint16)
    expected = without_registers(curve).encode(cells, 9)
    np.testing.assert_array_equal(curve.encode(cells, 9), expected)
    np.testing.assert_array_equal(curve.encode(cells[:-1], 9), expected[:-1])
    assert called == [registers.FEWEST]


def test_the_environment_turns_them_off(monkeypatch):
    registers.instructions.cache_clear()
    monkeypatch.setenv("SFC_REGISTERS", "0")
    try:
        assert not registers.instructions()
    finally:
        registers.instructions.cache_clear()


@pytest.mark.parametrize(
    ("n", "order", "decoded"),
    [
        (50, 9, (np.uint32, np.int64)),
        (50, 32, (np.uint32, np.int64)),
        (registers.FEWEST + 5, 9, (np.uint16,)),
        tiers.full(registers.FEWEST + 5, 9, (np.uint32, np.int64)),
    ],
)
def test_results_go_to_any_array_that_holds_them(n, order, decoded):
    curve = sfc.curve("hilbert", 2)
    plain, rng = without_registers(curve), np.random.default_rng(3)
    cells = rng.integers(0, 2**order, (n, 2), dtype=np.uint64 if order > 16 else np.uint16)
    expected = plain.encode(cells, order)
    wide = np.zeros((n, 2), np.uint64)
    outs = [np.zeros(n, np.uint64), wide[:, 1], np.zeros(n, ">u8")]
    outs += [np.zeros(n, np.uint32), np.zeros(n, np.int64)] if order == 9 else []
    for out in outs:
        for given, right in (
            (cells, expected),
            (cells[::-1], expected[::-1]),
            (np.asfortranarray(cells), expected),
        ):
            assert curve.encode(given, order, out=out) is out
            np.testing.assert_array_equal(out, right)
    for kind in decoded:
        back = np.zeros((n, 2), kind)
        assert curve.decode(expected, order, out=back) is back
        np.testing.assert_array_equal(back, cells)
    overlapping = np.zeros((n, 2), np.uint64)
    overlapping[:] = cells
    curve.encode(overlapping, order, out=overlapping[:, 0])
    np.testing.assert_array_equal(overlapping[:, 0], expected)


def test_an_array_that_cannot_hold_the_result_is_refused():
    curve, cells = sfc.curve("hilbert", 2), np.zeros((5, 2), np.uint8)
    frozen = np.zeros(5, np.uint64)
    frozen.setflags(write=False)
    for out, message in (
        (np.zeros(5, np.uint16), "an integer dtype that holds 1048575, such as uint32"),
        (np.zeros(5, np.float64), "dtype float64; allowed: any integer dtype"),
        (np.zeros(4, np.uint64), r"out of shape \(4,\); allowed: \(5,\)"),
        (frozen, "a writeable one"),
        (np.ma.zeros(5, np.uint64), "a masked array'; allowed: an array of numpy; give .* out.data"),
    ):
        with pytest.raises(ValueError, match=message):
            curve.encode(cells, 10, out=out)
    with pytest.raises(TypeError, match="out = \\[0\\]"):
        curve.encode(cells, 10, out=[0])
    with pytest.raises(ValueError, match="holds 1023, such as uint16"):
        curve.decode(np.zeros(5, int), 10, out=np.zeros((5, 2), np.uint8))
    with pytest.raises(ValueError, match="a masked array"):
        curve.decode(np.zeros(5, int), 10, out=np.ma.zeros((5, 2), np.int64))
