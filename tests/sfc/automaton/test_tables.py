"""What is no automaton is refused; the tables of a curve cannot be written, and travel with it."""

import pickle

import numpy as np
import pytest

import sfc
from sfc.automaton.tables import MOST
from tests.strategies import CURVES

ONE = [[0, 1, 2, 3]], [[0, 0, 0, 0]]  # Morton's tables in 2D


@pytest.mark.parametrize(
    ("dim", "base", "tables", "start", "message"),
    [
        (2, 1, ([[0]], [[0]]), 0, "base = 1; allowed: an integer of at least 2, up to 64"),
        (2, 0, ([[0]], [[0]]), 0, "base = 0; allowed: an integer of at least 2, up to 64"),
        (0, 2, ([[0]], [[0]]), 0, "dim = 0; allowed: an integer of at least 1"),
        (10**9, 2, ONE, 0, r"base 2 in 1000000000D; allowed: base\*\*dim up to 65536; take a smaller base"),
        (1, 257, ONE, 0, "base = 257; allowed: an integer of at least 2, up to 64"),
        (3, 41, ONE, 0, r"base 41 in 3D; allowed: base\*\*dim up to 65536; take a smaller base"),
        (2, 2, (np.empty((0, 4), int),) * 2, 0, "0 states; allowed: 1 to 65536; merge"),
        (1, 2, (np.tile([0, 1], (MOST + 1, 1)),) * 2, 0, "65537 states; allowed: 1 to 65536; merge"),
        (2, 2, (np.array(ONE[0], float), ONE[1]), 0, "table `rank` of dtype float64; allowed: .*astype"),
        (2, 2, (ONE[0], np.array(ONE[1], float)), 0, "table `next` of dtype float64; allowed: .*astype"),
        (
            2,
            2,
            (ONE[0], [[0, 0, 0, -1]]),
            0,
            r"table `next`\[0, 3\] = -1; allowed: values of at least 0, up to 0; .* rows",
        ),
        (2, 2, ONE, 1, "start = 1; allowed: an integer of at least 0, up to 0; a state is a row"),
    ],
)
def test_what_is_no_automaton_is_refused(dim, base, tables, start, message):
    with pytest.raises(ValueError, match=f"curve 'broken': {message}"):
        sfc.Curve("broken", dim, base, *tables, start)


@pytest.mark.parametrize(
    ("dim", "base", "tables", "start", "message"),
    [
        (2, 2.0, ONE, 0, r"base = 2\.0 of class float; allowed: an integer of at least 2, up to 64"),
        ("2", 2, ONE, 0, "dim = '2' of class str; allowed: an integer of at least 1"),
        (2, 2, ONE, 0.7, r"start = 0\.7 of class float; allowed: an integer"),
        (2, 2, ONE, True, "start = True of class bool; allowed: an integer"),
        (2, 2, (None, ONE[1]), 0, "table `rank` = None of class NoneType; allowed: an array of any integer"),
        (2, 2, (ONE[0], {}), 0, "table `next` = {} of class dict; allowed: an array of any integer"),
    ],
)
def test_a_wrong_class_is_refused(dim, base, tables, start, message):
    with pytest.raises(TypeError, match=f"curve 'broken': {message}"):
        sfc.Curve("broken", dim, base, *tables, start)


@pytest.mark.quick
def test_the_widest_base_there_may_be_is_a_curve():
    square = sfc.Curve("square", 2, 64, np.arange(4096)[None], np.zeros((1, 4096), int))
    assert square.max_order == 5
    index = np.array([0, 63, 64, 4095, 4096, 4096**5 - 1], np.uint64)
    cells = square.decode(index, 5)
    assert cells.tolist() == [[0, 0], [63, 0], [0, 1], [63, 63], [64, 0], [2**30 - 1, 2**30 - 1]]
    assert np.array_equal(square.encode(cells, 5), index)


@pytest.mark.quick
@pytest.mark.parametrize("table", ["rank", "next", "cell", "succ"])
def test_a_table_cannot_be_written(table):
    curve = sfc.curve("hilbert", 2)
    with pytest.raises(ValueError, match="read-only"):
        getattr(curve, table)[0, 0] = 3


def test_the_arrays_a_curve_is_made_of_stay_the_caller_s():
    rank, next = np.arange(4, dtype=np.uint16)[None], np.zeros((1, 4), np.uint16)
    curve = sfc.Curve("own", 2, 2, rank, next)
    rank[0] = 0
    assert curve.rank.tolist() == [[0, 1, 2, 3]]


@pytest.mark.parametrize(("name", "dim"), CURVES)
def test_a_pickled_curve_is_the_same_curve(name, dim):
    curve = sfc.curve(name, dim)
    curve.traversal(2)
    again = pickle.loads(pickle.dumps(curve))
    assert np.array_equal(again.traversal(2), curve.traversal(2))
    assert (again.name, again.grammar) == (curve.name, curve.grammar)
    for table in ("rank", "next", "cell", "succ"):
        assert not getattr(again, table).flags.writeable
