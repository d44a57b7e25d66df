"""Boxes that their curve, or their covering, does not fill: walked without what lies outside; and pickled."""

import itertools
import pickle
import tracemalloc

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

import sfc
from sfc.automaton import registers
from tests import tiers
from tests.strategies import ORDERINGS, shapes, shapes_filled_by
from tests.tiers import nightly

PICKLED = [(name, dim, {}) for name, dim in ORDERINGS]
PICKLED += [("random", 2, {"seed": 5}), ("tiled", 3, {"tile": 2}), ("hilbert", 3, {"axiom": "C"})]


def by_sorting(ordering: sfc.Ordering) -> np.ndarray:
    """The cells of a box by their ranks."""
    cells = np.stack([axis.ravel() for axis in np.indices(ordering.shape)], axis=1)
    return cells[np.argsort(ordering.rank(cells))]


@pytest.mark.parametrize(
    ("name", "shape"),
    [
        ("hilbert", (2**20 + 1, 1, 1)),
        nightly("moore", (2**20 + 1, 1, 1)),
        nightly("morton", (2**20 + 1, 1, 1)),
        *itertools.product(
            ["hilbert", "moore", "morton"], [(4096, 2, 2), (1, 2**14, 3), (1, 1, 700), (1, 1, 1)]
        ),
    ],
)
def test_a_box_far_thinner_than_its_cube_is_walked(name, shape, monkeypatch):
    """Of 2**36 to 2**63 cells; one by one they would take hours."""
    monkeypatch.setattr(registers, "FEWEST", 2**30)  # no kernel is compiled for this order alone
    ordering = sfc.ordering(name, shape)
    assert np.array_equal(ordering.traversal(), by_sorting(ordering))


@pytest.mark.quick
@pytest.mark.parametrize("name", ["hilbert", "peano", "gray"])
@tiers.examples(20)
@given(shape=shapes(4, 5), length=st.integers(1, 60))
def test_pieces_of_a_box_are_full_but_for_the_last(name, shape, length):
    curve = {"peano": lambda: sfc.curve("peano", 3)}.get(name, lambda: sfc.curve(name, 4))()
    ordering = sfc.ordering(curve, shape[: curve.dim])
    pieces = list(ordering.chunks(length))
    if not ordering.is_dense:
        assert {len(piece) for piece in pieces[:-1]} <= {length}
    assert np.array_equal(np.concatenate(pieces), by_sorting(ordering))


@pytest.mark.parametrize("name", ["hilbert", "row"])
def test_a_traversal_is_made_in_place(name):
    ordering = sfc.ordering(name, (1100, 5000))
    next(ordering.chunks(10))
    tracemalloc.start()
    try:
        made = ordering.traversal()
        peak = tracemalloc.get_traced_memory()[1]
    finally:
        tracemalloc.stop()
    assert peak < 1.9 * made.nbytes


def test_a_covering_s_pieces_are_made_one_at_a_time():
    """Sorted, the cells' ranks and numbers would be 16 bytes a cell."""
    ordering = sfc.covering("pancake", (500, 500, 14))
    next(ordering.chunks(1000))
    tracemalloc.start()
    try:
        pieces = ordering.chunks(1000)
        first = next(pieces)
        peak = tracemalloc.get_traced_memory()[1]
    finally:
        tracemalloc.stop()
    assert 0 < len(first) <= 1000
    assert peak < ordering.size


@pytest.mark.quick
@pytest.mark.parametrize("shape", [(100, 100, 9), (3, 2, 200), (1, 1, 1000)])
def test_a_covering_is_walked_or_sorted_to_the_same_end(shape):
    ordering = sfc.covering("pancake", shape)
    assert np.array_equal(ordering.traversal(), by_sorting(ordering))


@pytest.mark.parametrize(("name", "dim", "options"), PICKLED)
@tiers.examples(3)
@given(data=st.data())
def test_a_pickled_ordering_is_the_same_ordering(name, dim, options, data):
    for make in (sfc.ordering, sfc.covering):
        shape = data.draw(shapes_filled_by(name, dim) if make is sfc.ordering else shapes(dim, 5))
        ordering = make(name, shape, **options)
        again = pickle.loads(pickle.dumps(ordering))
        assert (again.name, again.shape, again.is_dense) == (ordering.name, shape, ordering.is_dense)
        assert np.array_equal(again.traversal(), ordering.traversal())
        assert np.array_equal(again.ranks(), ordering.ranks())
