"""Sides of a cavity: what they prescribe, what contradicts, and the tables of the boundary."""

import re

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

import md
from md.cavity import Inlet, Outlet, Sides, Wall
from md.cavity.boundary import apply, boundary_table
from md.cavity.scheme import Scheme
from md.cavity.sides import checked_sides, driven, from_plain

SHAPE = (4, 6)
CELLS = {"bottom": 6, "top": 6, "left": 4, "right": 4}
NUMBERS = st.floats(-3, 3)


def profiles(cells: int, numbers=NUMBERS):
    return st.one_of(numbers, st.lists(numbers, min_size=cells, max_size=cells).map(tuple))


def any_side(cells: int):
    dirichlet = st.fixed_dictionaries({"pressure": st.just("dirichlet"), "value": profiles(cells)})
    pressure = st.one_of(st.just({}), dirichlet)
    return st.one_of(
        st.builds(lambda speed, more: Wall(speed, **more), profiles(cells), pressure),
        st.builds(lambda speed, more: Inlet(speed, **more), st.floats(0.1, 3), pressure),
        st.builds(Outlet, profiles(cells)),
    )


ANY = st.fixed_dictionaries({name: any_side(cells) for name, cells in CELLS.items()}).filter(
    lambda found: any(isinstance(side, Outlet) for side in found.values())
)


@given(ANY)
def test_tables_hold_what_the_sides_prescribe_in_turn(found):
    scheme = Scheme(SHAPE, 0.1, 0.1, 1.0, 0.01, 1, Sides(**found))
    for name in "uvp":
        expected = np.random.default_rng(0).normal(size=SHAPE)
        flat = expected.ravel().copy()
        apply(expected, name, scheme.conditions)
        table = boundary_table(scheme, name)
        assert len(table.points) == 2 * sum(SHAPE) - 4
        inner = np.arange(24).reshape(SHAPE)[1:-1, 1:-1]
        assert np.isin(table.sources[table.sources >= 0], inner).all()
        flat[table.points] = np.where(table.sources >= 0, flat[table.sources], table.values)
        np.testing.assert_array_equal(flat.reshape(SHAPE), expected)


@given(ANY)
def test_plain_data_make_the_same_sides(found):
    sides = Sides(**found)
    plain = sides.to_plain()
    for side in plain.values():  # as JSON returns tuples
        side.update({key: list(value) for key, value in side.items() if isinstance(value, tuple)})
    assert from_plain(plain) == sides


@pytest.mark.quick
def test_what_each_side_prescribes():
    sides = Sides(
        top=Wall(2.0, "dirichlet", 0.5), left=Inlet((0, 1, 3, 0)), right=Outlet(0.25), bottom=Wall(-1.0)
    )
    found = sides.conditions(SHAPE)
    top, left, right, bottom = (found[name] for name in ("top", "left", "right", "bottom"))
    assert (top.u.tolist(), top.v.tolist(), top.p.tolist()) == ([2.0] * 6, [0.0] * 6, [0.5] * 6)
    assert (left.u.tolist(), left.v.tolist(), left.p) == ([0, 1, 3, 0], [0.0] * 4, None)
    assert (right.u, right.v, right.p.tolist()) == (None, None, [0.25] * 4)
    assert (bottom.u.tolist(), bottom.v.tolist(), bottom.p) == ([-1.0] * 6, [0.0] * 6, None)
    assert sides.fastest == 3.0


@pytest.mark.quick
def test_an_inlet_points_into_the_cavity_at_each_side():
    inward = {"bottom": ("v", 1), "top": ("v", -1), "left": ("u", 1), "right": ("u", -1)}
    for name, (field, sign) in inward.items():
        found = Inlet(0.5).conditions(name, 3)
        other = "u" if field == "v" else "v"
        assert getattr(found, field).tolist() == [0.5 * sign] * 3
        assert getattr(found, other).tolist() == [0.0] * 3


@pytest.mark.quick
def test_a_wall_at_the_left_moves_along_itself():
    found = Wall((1.0, 2.0, 3.0)).conditions("left", 3)
    assert (found.u.tolist(), found.v.tolist()) == ([0.0] * 3, [1.0, 2.0, 3.0])


@pytest.mark.quick
def test_without_sides_the_lid_moves_with_a_pressure_of_0():
    assert driven(1.5) == Sides(top=Wall(1.5, "dirichlet", 0.0))
    assert checked_sides({"top": Wall(1.0)}, SHAPE) == Sides(top=Wall(1.0))


BAD = [
    (lambda: Wall("fast"), TypeError, "speed of Wall = 'fast'"),
    (lambda: Wall(np.inf), ValueError, "speed of Wall = inf; allowed: a finite number"),
    (lambda: Wall([0.0, np.nan]), ValueError, r"speed of Wall\[1\] = nan"),
    (lambda: Wall(()), ValueError, r"speed of Wall = \(\); allowed: a number, or one for each point"),
    (
        lambda: Wall(0.0, "robin"),
        ValueError,
        "unknown pressure of Wall 'robin'; allowed: one of neumann",
    ),
    (
        lambda: Wall(0.0, value=1.0),
        ValueError,
        "value of Wall = 1.0 beside pressure 'neumann'; .*dirichlet",
    ),
    (lambda: Inlet(-1.0), ValueError, "speed of Inlet = -1.0; allowed: .* at least 0.*; take an Outlet"),
    (lambda: Inlet(0.0), ValueError, "speed of Inlet = 0.0; allowed: a number above 0 .*; take a Wall"),
    (lambda: Outlet(np.nan), ValueError, "value of Outlet = nan"),
    (lambda: Sides(top=1.0), TypeError, r"sides\['top'\] = 1.0 .*; allowed: a Wall, an Inlet or an Outlet"),
    (lambda: Sides(left=Inlet()), ValueError, "an inlet at left and no outlet; .* another side an Outlet"),
    (lambda: checked_sides(3, SHAPE), TypeError, "sides = 3 of class int; allowed: None, Sides, or a dict"),
    (
        lambda: checked_sides({"lid": Wall()}, SHAPE),
        ValueError,
        "unknown name of a side 'lid'; .*bottom",
    ),
    (
        lambda: checked_sides({"top": Wall((1.0, 2.0))}, SHAPE),
        ValueError,
        "speed of top has 2 values; allowed: a number, or 6 of them",
    ),
    (
        lambda: checked_sides({"left": Outlet((1.0,) * 6)}, SHAPE),
        ValueError,
        "value of left has 6 values; allowed: a number, or 4 of them",
    ),
    (
        lambda: md.Cavity(SHAPE, viscosity=0.1, lid=2.0, sides={"top": Wall(2.0)}, backend="cpu"),
        ValueError,
        r"lid = 2.0 beside sides; allowed: one of them; give .*Wall\(2.0, 'dirichlet'\)",
    ),
]


@pytest.mark.quick
@pytest.mark.parametrize(("make", "kind", "message"), BAD, ids=[re.sub(r"\W+", "_", m)[:40] for *_, m in BAD])
def test_what_is_no_side_is_refused(make, kind, message):
    with pytest.raises(kind, match=message):
        make()
