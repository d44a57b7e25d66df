"""Names of orders of points: where they are taken, where they are refused, and orders of one's own."""

import numpy as np
import pytest

import sfc
from sfc.registry import POINT_ORDERS, point_order, register_point_order

POINTS = np.random.default_rng(0).random((50, 2))
every_name = pytest.mark.parametrize("name", sfc.point_orders())


@pytest.mark.quick
def test_names_are_listed_apart_from_those_of_curves_and_orderings():
    assert {"str", "strided", "tiled_strided"} <= set(sfc.point_orders())
    assert list(sfc.point_orders()) == sorted(sfc.point_orders())
    assert not {*sfc.orderings(), *sfc.curves()} & set(sfc.point_orders())


@pytest.mark.quick
@every_name
def test_every_order_lists_each_point_once(name):
    for dim in (1, 2, 3, 7):
        points = np.random.default_rng(dim).integers(0, 3, (200, dim))
        order = sfc.argsort(points, name)
        assert order.dtype == np.int64
        assert sorted(order.tolist()) == [*range(200)]
        np.testing.assert_array_equal(order, sfc.argsort(points, name))


@pytest.mark.quick
@every_name
def test_where_cells_are_ranked_the_name_is_refused_with_the_remedy(name):
    for what, known, call in (
        ("curve", "hilbert", lambda: sfc.curve(name, 2)),
        ("curve", "hilbert", lambda: sfc.keys(POINTS, name)),
        ("ordering", "row", lambda: sfc.ordering(name, (3, 4))),
        ("ordering", "row", lambda: sfc.covering(name, (3, 4))),
    ):
        refused = rf"{what} '{name}'.*ranks points and not cells; allowed: .*{known}.*sfc.argsort or sfc.sort"
        with pytest.raises(ValueError, match=refused):
            call()


@pytest.mark.quick
def test_an_unknown_name_lists_the_orders_of_points_too():
    with pytest.raises(ValueError, match=r"unknown curve 'stridd'; known in 2D: .*; .*strided, tiled_str"):
        sfc.argsort(POINTS, "stridd")
    with pytest.raises(
        ValueError, match="unknown order of points 'hilbert'; allowed: one of str, strided, tiled_"
    ):
        point_order("hilbert")


def test_an_option_that_is_not_taken_is_refused():
    refused = r"'strided' does not take \['name', 'tile'\]; allowed: bits, box, clip, stretch, cells"
    with pytest.raises(ValueError, match=refused):
        sfc.argsort(POINTS, "strided", cells=3, tile=3, name=2)
    for curve in ("hilbert", sfc.curve("hilbert", 2)):
        for call in (sfc.argsort, sfc.sort):
            with pytest.raises(
                ValueError, match=r"curve 'hilbert' does not take \['cells'\]; allowed: bits, "
            ):
                call(POINTS, curve=curve, cells=3)


def backwards(points, box=None, first=0):
    return np.roll(np.arange(len(points))[::-1], first)


@pytest.fixture
def own_orders(monkeypatch):
    """Forgets what a test registers."""
    monkeypatch.setattr("sfc.registry.POINT_ORDERS", dict(POINT_ORDERS))


@pytest.mark.quick
def test_a_registered_order_is_known_wherever_a_built_in_one_is(own_orders):
    register_point_order("backwards", backwards)
    assert "backwards" in sfc.point_orders()
    assert sfc.argsort(POINTS, "backwards").tolist() == [*range(50)][::-1]
    assert sfc.argsort(POINTS, "backwards", box=(0, 1), first=1)[:2].tolist() == [0, 49]
    np.testing.assert_array_equal(sfc.sort(POINTS, curve="backwards"), POINTS[::-1])
    for wrong in ({"bits": 3}, {"clip": True}, {"stretch": True}, {"cells": 3}):
        with pytest.raises(ValueError, match=rf"'backwards' does not take {list(wrong)}".replace("[", r"\[")):
            sfc.argsort(POINTS, "backwards", **wrong)
    with pytest.raises(ValueError, match="curve 'backwards': this is an order of points"):
        sfc.keys(POINTS, "backwards")


def test_names_are_of_one_thing(own_orders):
    for name in ("hilbert", "row", "zorder", "strided"):
        with pytest.raises(ValueError, match=rf"order of points '{name}': the name is taken"):
            register_point_order(name, backwards)
    with pytest.raises(ValueError, match="order of points name 'a/b'; allowed: letters"):
        register_point_order("a/b", backwards)
    for arguments in ((3, backwards), ("own", 3)):
        with pytest.raises(TypeError, match="; allowed: "):
            register_point_order(*arguments)
    with pytest.raises(ValueError, match="ordering 'strided': the name is taken"):
        sfc.register_ordering("strided", lambda shape: None, (2,))
    with pytest.raises(ValueError, match="curve 'strided' in 2D: the name is taken"):
        sfc.register(sfc.Curve("strided", 2, 2, np.arange(4)[None], np.zeros((1, 4), int)))
