"""The registry: curves and orderings by name, and those that a user registers."""

import math
import pickle

import numpy as np
import pytest

import sfc
from sfc.registry import ORDERINGS, Scan
from tests.sfc.automaton.test_grammar_file import COIL


@pytest.mark.quick
def test_an_unknown_curve_lists_those_known():
    with pytest.raises(
        ValueError, match=r"'hilbrt'; known in 3D: butz, compact, gray, harmonious, haverkort_a26"
    ):
        sfc.curve("hilbrt", 3)


def test_a_curve_unknown_in_this_dimension_says_where_it_exists():
    with pytest.raises(ValueError, match=r"'moore' exists in 2D and 3D, not in 4D; known in 4D: gray, "):
        sfc.curve("moore", 4)


@pytest.mark.parametrize("name", ["hilbert", "butz", "skilling", "morton", "gray"])
def test_a_curve_of_any_dim_is_there_as_long_as_a_key_has_a_bit_an_axis(name):
    for dim in range(2, 65):
        curve = sfc.curve(name, dim)
        assert (curve.dim, curve.base, curve.max_order) == (dim, 2, 64 // dim)
    with pytest.raises(ValueError, match=r"exists in (1|2)D to 64D, not in 65D; known in 65D: none"):
        sfc.curve(name, 65)


def test_dims_of_a_curve_are_listed_as_ranges():
    for name, dim, there in (("peano", 5, "2D to 4D"), ("moore", 5, "2D and 3D"), ("compact", 2, "3D")):
        with pytest.raises(ValueError, match=rf"'{name}' exists in {there}, not in {dim}D; known in "):
            sfc.curve(name, dim)
    assert sfc.curves(1) == ("gray", "morton")
    assert sfc.curves(64) == ("gray", "hilbert", "morton", "skilling")


def test_the_issue_s_curves_are_there():
    assert {"hilbert", "moore", "morton", "peano", "gray"} <= set(sfc.curves(2))
    assert {"hilbert", "butz", "compact", "moore", "morton", "peano", "gray"} <= set(sfc.curves(3))
    assert {"hilbert", "morton", "gray", "peano", "skilling"} <= set(sfc.curves(4))
    assert set(sfc.curves()) == {name for dim in (2, 3, 4) for name in sfc.curves(dim)}
    assert list(sfc.curves()) == sorted(sfc.curves())


def test_a_curve_is_the_same_object_at_every_call():
    assert sfc.curve("hilbert", 3) is sfc.curve(name="hilbert", dim=3)


@pytest.mark.quick
def test_a_registered_curve_is_known_wherever_a_built_in_one_is(tmp_path, monkeypatch):
    monkeypatch.setattr("sfc.registry._registered", {})
    (tmp_path / "coil.toml").write_text(COIL.format(name="coil"))
    curve = sfc.read_curve(tmp_path / "coil.toml")
    sfc.register(curve)
    sfc.register(sfc.read_curve(tmp_path / "coil.toml"))
    assert sfc.curve("coil", 2) is curve
    assert "coil" in sfc.curves(2)
    assert "coil" in sfc.orderings(2)
    assert "coil" not in sfc.orderings(3)
    sfc.testing.check_ordering(sfc.ordering("coil", (5, 7)))
    with pytest.raises(ValueError, match=r"'coil' exists in 2D, not in 3D"):
        sfc.curve("coil", 3)
    other = sfc.Curve("coil", 2, 2, np.arange(4)[None], np.zeros((1, 4), int))
    with pytest.raises(ValueError, match=r"'coil' in 2D: the name is taken"):
        sfc.register(other)


@pytest.mark.parametrize("name", ["hilbert", "row", "pancake", "butz"])
def test_a_name_that_is_taken_in_any_dimension_is_refused(name, monkeypatch):
    monkeypatch.setattr("sfc.registry._registered", {})
    curve = sfc.Curve(name, 2, 2, np.arange(4)[None], np.zeros((1, 4), int))
    with pytest.raises(ValueError, match=rf"'{name}' in 2D: the name is taken; choose another than"):
        sfc.register(curve)


def test_what_is_no_curve_is_not_registered():
    for wrong in ("hilbert", None, sfc.Curve):
        with pytest.raises(
            TypeError, match=r"curve = .*; allowed: an sfc.Curve; make one with sfc.read_curve"
        ):
            sfc.register(wrong)


def test_the_issue_s_orderings_are_there():
    for dim in (2, 3):
        assert {"row", "zigzag", "random", "tiled", "gilbert", *sfc.curves(dim)} <= set(sfc.orderings(dim))
    assert "pancake" in sfc.orderings(3)
    assert "pancake" not in sfc.orderings(2)
    assert list(sfc.orderings()) == sorted(sfc.orderings())


@pytest.mark.parametrize("dim", [2.0, "2", True, [2]])
def test_a_dim_of_names_that_is_no_integer_is_refused(dim):
    for names in (sfc.orderings, sfc.curves):
        with pytest.raises(TypeError, match=r"dim = .* of class .*; allowed: an integer of at least 1"):
            names(dim)
    assert sfc.orderings(np.uint8(3)) == sfc.orderings(3)


def test_the_rooms_and_the_functions_of_their_names_are_both_there():
    import sfc.curves.hilbert
    import sfc.orderings.gilbert
    from sfc.curves.hilbert import hilbert

    assert "hilbert" in sfc.curves(2)
    assert "gilbert" in sfc.orderings(2)
    assert np.array_equal(hilbert(2).rank, sfc.curve("hilbert", 2).rank)


def columns(shape, reverse=False):
    """Axis 0 slowest."""

    def rank(cells):
        found = np.ravel_multi_index(tuple(cells.T), shape)
        return (math.prod(shape) - 1 - found if reverse else found).astype(np.uint64)

    def cells(ranks):
        ranks = math.prod(shape) - 1 - ranks if reverse else ranks
        return np.column_stack(np.unravel_index(ranks, shape))

    return Scan(rank, cells)


def even(shape):
    return tuple(side + side % 2 for side in shape)


@pytest.fixture
def own_orderings(monkeypatch):
    """Forgets what a test registers; gives the orderings of the package."""
    monkeypatch.setattr("sfc.registry._registered", {})
    kept = dict(ORDERINGS)
    yield kept
    ORDERINGS.clear()
    ORDERINGS.update(kept)


@pytest.mark.quick
def test_a_registered_ordering_is_known_wherever_a_built_in_one_is(own_orderings):
    sfc.register_ordering("columns", columns, (2, 3))
    assert "columns" in sfc.orderings(2)
    assert "columns" not in sfc.orderings(4)
    ordering = sfc.ordering("columns", (4, 3))
    sfc.testing.check_ordering(ordering)
    assert ordering.traversal()[:4].tolist() == [[0, 0], [0, 1], [0, 2], [1, 0]]
    assert sfc.ordering("columns", (4, 3), reverse=True).traversal()[0].tolist() == [3, 2]
    assert np.array_equal(pickle.loads(pickle.dumps(ordering)).traversal(), ordering.traversal())
    with pytest.raises(ValueError, match=r"'columns' does not take \['seed'\]; allowed: reverse"):
        sfc.ordering("columns", (4, 3), seed=1)


def test_a_registered_ordering_covers_the_boxes_it_cannot_fill(own_orderings):
    sfc.register_ordering("columns", columns, (2,), covering=even)
    ordering = sfc.covering("columns", (3, 3))
    sfc.testing.check_ordering(ordering)
    assert ordering.traversal()[:4].tolist() == [[0, 0], [0, 1], [0, 2], [1, 0]]


def test_an_ordering_with_a_bad_name_or_of_a_wrong_class_is_not_registered(own_orderings):
    for name in ("row", "hilbert", "pancake"):
        with pytest.raises(ValueError, match=rf"ordering '{name}': the name is taken; choose another than"):
            sfc.register_ordering(name, columns, (2,))
    with pytest.raises(ValueError, match=r"ordering name 'a/b'; allowed: letters, digits, _ and -"):
        sfc.register_ordering("a/b", columns, (2,))
    for arguments in (
        (3, columns, (2,)),
        ("own", 3, (2,)),
        ("own", columns, (2.0,)),
        ("own", columns, (2,), 3),
    ):
        with pytest.raises(TypeError, match="; allowed: "):
            sfc.register_ordering(*arguments)
    assert own_orderings == ORDERINGS


def test_a_curve_may_not_take_the_name_of_a_registered_ordering(own_orderings):
    sfc.register_ordering("columns", columns, (3,))
    with pytest.raises(ValueError, match=r"curve 'columns' in 2D: the name is taken"):
        sfc.register(sfc.Curve("columns", 2, 2, np.arange(4)[None], np.zeros((1, 4), int)))


@pytest.mark.parametrize("alias", ["z", "zorder", "lebesgue"])
def test_other_names_of_a_curve_find_it(alias):
    assert sfc.curve(alias, 3) is sfc.curve("morton", 3)
    assert sfc.ordering(alias, (4, 4)).name == "morton"
    np.testing.assert_array_equal(sfc.keys([[1, 2]], alias), sfc.keys([[1, 2]], "morton"))
    assert alias not in sfc.orderings()
    taken = sfc.Curve(alias, 2, 2, [[0, 1, 2, 3]], [[0, 0, 0, 0]])
    with pytest.raises(ValueError, match="the name is taken"):
        sfc.register(taken)


def test_butz_and_skilling_are_curves_of_their_own_only_where_they_differ_from_hilbert():
    for name, dims in (("butz", (2, 4, 5, 9)), ("skilling", (2,))):
        for dim in dims:
            assert sfc.curve(name, dim) is sfc.curve("hilbert", dim)
            assert name not in sfc.orderings(dim)
    for name, dims in (("butz", (3,)), ("skilling", (3, 4, 5, 9))):
        for dim in dims:
            assert sfc.curve(name, dim) is not sfc.curve("hilbert", dim)
            assert name in sfc.orderings(dim)
