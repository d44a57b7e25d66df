"""Geometries in place of points: by their centroids or the centres of their bounds, missing ones last."""

import numpy as np
import pandas as pd
import pytest
from hypothesis import given
from hypothesis import strategies as st

import sfc

LAST = 2**64 - 1
POINTS = np.random.default_rng(0).random((40, 2))
SHAPES = {  # GeoJSON -> its centroid, and the centre of its bounds
    "point": ({"type": "Point", "coordinates": (3, 4, 9)}, (3, 4), (3, 4)),
    "points": ({"type": "MultiPoint", "coordinates": [(0, 0), (6, 0), (0, 3)]}, (2, 1), (3, 1.5)),
    "line": ({"type": "LineString", "coordinates": [(0, 0), (4, 0), (4, 2)]}, (16 / 6, 2 / 6), (2, 1)),
    "lines": (
        {"type": "MultiLineString", "coordinates": [[(0, 0), (2, 0)], [(0, 4), (4, 4)]]},
        (10 / 6, 16 / 6),
        (2, 2),
    ),
    "triangle": ({"type": "Polygon", "coordinates": [[(0, 0), (6, 0), (0, 3), (0, 0)]]}, (2, 1), (3, 1.5)),
    "hole": (
        {
            "type": "Polygon",
            "coordinates": [
                [(0, 0), (4, 0), (4, 4), (0, 4), (0, 0)],
                [(0, 0), (2, 0), (2, 4), (0, 4), (0, 0)],  # in the same turn as the outer ring
            ],
        },
        (3, 2),
        (2, 2),
    ),
    "polygons": (
        {
            "type": "MultiPolygon",
            "coordinates": [
                [[(0, 0), (2, 0), (2, 2), (0, 2), (0, 0)]],
                [[(4, 0), (4, 4), (8, 4), (8, 0), (4, 0)]],  # in the other turn
            ],
        },
        (5, 1.8),
        (4, 2),
    ),
    "no area": ({"type": "Polygon", "coordinates": [[(0, 0), (4, 0), (0, 0)]]}, (2, 0), (2, 0)),
    "collection": (
        {
            "type": "GeometryCollection",
            "geometries": [
                {"type": "Point", "coordinates": (9, 9)},
                {"type": "Polygon", "coordinates": [[(0, 0), (2, 0), (2, 2), (0, 2), (0, 0)]]},
            ],
        },
        (1, 1),
        (4.5, 4.5),
    ),
    "feature": (
        {"type": "Feature", "geometry": {"type": "Point", "coordinates": (1, 2)}},
        (1, 2),
        (1, 2),
    ),
}
EMPTY = [
    {"type": "Point", "coordinates": ()},
    {"type": "MultiPolygon", "coordinates": ()},
    {"type": "Polygon", "coordinates": [[]]},
    {"type": "GeometryCollection", "geometries": []},
    {"type": "Feature", "geometry": None},
]


class Drawn:
    """A geometry that has its coordinates alone."""

    def __init__(self, interface):
        self.__geo_interface__ = interface


class Spot:
    """A point as libraries of geometries have it."""

    def __init__(self, x=0.0, y=0.0, is_empty=False):
        self.x, self.y, self.is_empty = x, y, is_empty

    @property
    def centroid(self):
        assert not self.is_empty
        return self

    @property
    def bounds(self):
        return (self.x - 1, self.y, self.x + 3, self.y + 2)


class Column:
    """A column of geometries as geopandas has it: attributes of all rows at once."""

    def __init__(self, spots):
        self.spots = np.array(spots, object)
        self.shape = self.spots.shape

    def __getitem__(self, rows):
        return Column(self.spots[rows])

    def __len__(self):
        return len(self.spots)

    def isna(self):
        return np.array([one is None for one in self.spots])

    @property
    def is_empty(self):
        return pd.Series([one is not None and one.is_empty for one in self.spots], dtype=bool)

    @property
    def centroid(self):
        assert not self.isna().any()
        assert not self.is_empty.any()
        return self

    x = property(lambda self: pd.Series([one.x for one in self.spots]))
    y = property(lambda self: pd.Series([one.y for one in self.spots]))
    bounds = property(lambda self: pd.DataFrame([one.bounds for one in self.spots]))


def in_every_column(spots):
    """The same geometries in all kinds of columns."""
    series = pd.Series(spots, dtype=object, index=range(7, 7 + len(spots)))
    return [list(spots), tuple(spots), np.array([*spots, None], object)[:-1], series, Column(spots)]


@pytest.mark.quick
@pytest.mark.parametrize("name", SHAPES)
def test_the_centroid_and_the_bounds_of_coordinates(name):
    interface, centroid, middle = SHAPES[name]
    far = Drawn({"type": "Point", "coordinates": (20, 20)})
    for at, where in ((None, centroid), ("centroid", centroid), ("bounds", middle)):
        expected = sfc.keys([where, (20, 20)], "morton", 20, box=(-1, 21))
        found = sfc.keys([Drawn(interface), far], "morton", 20, box=(-1, 21), at=at)
        cells = sfc.decode(np.array([expected, found]), 20, "morton", 2)
        assert np.abs(cells[0] - cells[1]).max() <= 1, (at, where)  # a sum may be rounded


@given(
    st.lists(st.tuples(*[st.integers(0, 50)] * 2), min_size=3, max_size=7),
    st.sampled_from([0, 1000, -(10**6)]),
)
def test_a_fan_of_triangles_has_the_centroid_of_their_areas(corners, shift):
    ring = np.array([*corners, corners[0]], float) + shift
    after = np.roll(ring[:-1], -1, axis=0)
    areas = ((ring[:-1] - shift) * (after[:, ::-1] - shift) * [1, -1]).sum(axis=1) / 2
    if not areas.sum():
        return
    expected = ((ring[:-1] + after + shift) / 3 * areas[:, None]).sum(axis=0) / areas.sum()
    box = (expected - 4.0, expected + 4.0)
    (key,) = sfc.keys([Drawn({"type": "Polygon", "coordinates": [ring.tolist()]})], "morton", 8, box)
    assert np.abs(sfc.decode(int(key), 8, "morton", 2) - 128).max() <= 1


@pytest.mark.parametrize("curve", ["hilbert", "peano", "row", "gilbert"])
def test_every_column_is_ordered_as_its_points(curve):
    spots = [Spot(*point) for point in POINTS.tolist()]
    bits = 31 if curve == "hilbert" else None
    for column in in_every_column(spots):
        np.testing.assert_array_equal(sfc.keys(column, curve), sfc.keys(POINTS, curve, bits))
        np.testing.assert_array_equal(sfc.argsort(column, curve), sfc.argsort(POINTS, curve, bits))
        np.testing.assert_array_equal(
            sfc.argsort(column, curve, at="bounds"), sfc.argsort(POINTS + 1, curve, bits)
        )


@given(data=st.data(), curve=st.sampled_from(["hilbert", "peano", "row", "str", "strided"]))
def test_missing_and_empty_geometries_are_last_and_change_no_other(data, curve):
    n = data.draw(st.integers(1, 30))
    gaps = data.draw(st.lists(st.booleans(), min_size=n, max_size=n))
    spots = [Spot(*point) for point in POINTS[:n].tolist()]
    for row in np.flatnonzero(gaps):
        spots[row] = data.draw(st.sampled_from([None, Spot(is_empty=True)]))
    present, missing = np.flatnonzero(~np.array(gaps)), np.flatnonzero(gaps)
    call = {"row": {"cells": 5}, "strided": {"cells": 5}, "hilbert": {"bits": 31}}.get(curve, {})
    if data.draw(st.booleans()) and curve != "str":
        call["box"] = (0, 1)
    expected = present[sfc.argsort(POINTS[present], curve, **call)] if len(present) else present
    column = Column(spots) if data.draw(st.booleans()) or not len(present) else spots
    assert sfc.argsort(column, curve, **call).tolist() == [*expected, *missing]
    if "str" not in curve:
        keys = sfc.keys(column, curve, **call)
        assert keys[missing].tolist() == [LAST] * len(missing)
        assert (keys[present] < LAST).all()
        np.testing.assert_array_equal(np.argsort(keys, kind="stable"), [*expected, *missing])


def test_coordinates_without_any_are_empty():
    column = [Drawn(one) for one in EMPTY] + [float("nan"), pd.NA, None, Drawn(SHAPES["point"][0])]
    for at in ("centroid", "bounds"):
        assert sfc.argsort(column, at=at).tolist() == [8, *range(8)]
    assert sfc.keys(Column([None, None])).tolist() == [LAST, LAST]


def test_a_feature_collection_is_a_column():
    features = [{"type": "Feature", "geometry": one} for one in (EMPTY[0], SHAPES["point"][0])]
    assert sfc.argsort(Drawn({"type": "FeatureCollection", "features": features})).tolist() == [1, 0]


def test_geometries_are_sorted_as_what_they_are():
    spots = [Spot(*point) for point in POINTS.tolist()]
    order = sfc.argsort(POINTS, bits=31)
    series = pd.Series(spots, index=range(5, 45))
    found, rows = sfc.sort(series, np.arange(40))
    pd.testing.assert_series_equal(found, series.iloc[order])
    np.testing.assert_array_equal(rows, order)
    assert type(sfc.sort(Column(spots))) is Column
    assert sfc.sort(spots).tolist() == [spots[row] for row in order]


def test_a_level_is_kept_free_for_the_missing():
    spots = [Spot(*point) for point in POINTS.tolist()]
    with pytest.raises(ValueError, match=r"bits of hilbert in 2D = 32; allowed: .* up to 31"):
        sfc.keys(spots, bits=32)
    np.testing.assert_array_equal(sfc.keys(spots), sfc.keys(spots, bits=31))


@pytest.mark.parametrize(
    ("points", "call", "error", "message"),
    [
        ([Spot(), 3], {}, TypeError, r"points\[1\] = 3 of class int; allowed: a geometry with __geo_interf"),
        ([None, Drawn({"type": "Sphere"})], {}, ValueError, r"geometry of points\[1\] = .* allowed: with"),
        ([Drawn({"type": "Point", "coordinates": "ab"})], {}, ValueError, "coordinates of a geometry = "),
        ([Drawn({"type": "Point", "coordinates": (1,)})], {}, ValueError, r"= \[\[1\]\]; allowed: positions"),
        (Drawn(SHAPES["line"][0]), {}, ValueError, "points = .*put a single geometry into a list"),
        ([Spot(1), None, Spot(np.nan)], {}, ValueError, r"centroid of points\[2\] = \[nan, 0.0\]; allowed:"),
        ([Spot()], {"at": "corner"}, ValueError, "unknown at 'corner'; allowed: one of centroid, bounds"),
        ([Spot()], {"at": 3}, TypeError, "at = 3"),
        ([[0.5, 0.5]], {"at": "bounds"}, ValueError, "at = 'bounds'; allowed: None beside points of numbers"),
        ([None, Spot(2.0)], {"box": (0, 1)}, ValueError, r"points\[1\] = \[2.0, 0.0\]; allowed: a point in"),
        ([None, Spot(2.0)], {"box": (0, 1), "curve": "strided", "cells": 2}, ValueError,
         r"points\[0\] = \[2.0, 0.0\].*; rows are counted without the 1 missing geometries"),
        ([Spot()], {"curve": sfc.curve("hilbert", 3)}, ValueError, "dim of the curve = 3; allowed: 2"),
        ([None, None], {}, ValueError, "points of dtype object; allowed: floats of 16"),
    ],
)  # fmt: skip
def test_what_is_refused(points, call, error, message):
    with pytest.raises(error, match=message):
        sfc.argsort(points, **call)


def test_a_warning_counts_the_geometries_outside_alone():
    column = [None, Spot(17.0, 9.5), Spot(9.5, 9.1)]
    with pytest.warns(UserWarning, match="1 of 3 points are outside") as caught:
        assert sfc.argsort(column, box=(9, 10), clip=True).tolist() == [1, 2, 0]
    assert caught[0].filename == __file__


def test_shapely():
    shapely = pytest.importorskip("shapely")
    shapes = [shapely.geometry.shape(one) for one, _, _ in SHAPES.values() if one["type"] != "Feature"]
    kept = [shape for shape in shapes if not shape.is_empty]
    for at in ("centroid", "bounds"):
        expected = sfc.keys([Drawn(one.__geo_interface__) for one in kept], bits=12, box=(-1, 21), at=at)
        np.testing.assert_array_equal(sfc.keys(kept, bits=12, box=(-1, 21), at=at), expected)
    array = np.array([None, shapely.Point(), *shapely.points(POINTS)], object)
    expected = sfc.argsort(POINTS, bits=31) + 2
    assert sfc.argsort(array).tolist() == [*expected, 0, 1]


def test_geopandas():
    geopandas = pytest.importorskip("geopandas")
    shapely = pytest.importorskip("shapely")
    series = geopandas.GeoSeries([None, shapely.Point(), *shapely.points(POINTS)])
    expected = [*(sfc.argsort(POINTS, bits=31) + 2), 0, 1]
    for column in (series, series.array, geopandas.GeoDataFrame(geometry=series), pd.Series(list(series))):
        assert sfc.argsort(column).tolist() == expected
    assert type(sfc.sort(series)) is type(series)
