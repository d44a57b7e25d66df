"""Points that stand for geometries of the plane: their centroids, or the centres of their bounds.

No library of geometries is needed. A column of geometries, such as a GeoSeries, is read by its attributes
`isna`, `is_empty`, `centroid` and `bounds`, and a single geometry by those or by `__geo_interface__`, the
coordinates as in
GeoJSON: H. Butler et al., The GeoJSON Format, RFC 7946 (2016).
"""

import math
from collections.abc import Iterable, Iterator, Mapping
from typing import Any, NamedTuple

import numpy as np

from sfc import checks, device
from sfc.point_keys.grid import corners_of

POINT_OF = ("centroid", "bounds")
POSITIONS = "positions (x, y) of two numbers, or more for heights"
INTERFACE = "__geo_interface__"
KINDS = {  # of coordinates -> what they are, and how deep their parts are nested
    "Point": ("points", 0),
    "MultiPoint": ("points", 1),
    "LineString": ("line", 0),
    "LinearRing": ("line", 0),
    "MultiLineString": ("line", 1),
    "Polygon": ("polygon", 0),
    "MultiPolygon": ("polygon", 1),
}
Centre = tuple[float, float]


class Geometries(NamedTuple):
    """Points of a column of geometries.

    Attributes:
        points: (n, 2) float64, one for each geometry; where it is missing, one that changes no bounding box.
        is_missing: (n,) bool, whether there is no geometry, or an empty one.
    """

    points: np.ndarray
    is_missing: np.ndarray


def geometries_of(values: Any, at: str | None, box: Any) -> Geometries | None:
    """Return the points of a column of geometries; None for values that are no geometries.

    Args:
        values: any object. A column of geometries is a GeoSeries, an array of geometries, the table of a
            GeoDataFrame, a feature collection, or a list, an array of objects or a series with entries
            that are geometries, None or NaN.
        at: "centroid", or None for it; or "bounds" for the centre of the bounds.
        box: (low, high) that the points are for, or None.

    Raises:
        TypeError: an entry that is no geometry; `at` of another class.
        ValueError: another `at`, or any for values that are no geometries; a single geometry; a point that
            is not finite.
    """
    column = _column(values)
    if column is None:
        if at is not None:
            refused = "None beside points of numbers, which stand for themselves"
            raise checks.refuse_value("at", at, refused, f"give geometries for {' or '.join(POINT_OF)}")
        return None
    at = checks.word("at", "centroid" if at is None else at, POINT_OF)
    points, is_missing = _of_column(column, at) if not isinstance(column, list) else _of_entries(column, at)
    present = points[~is_missing]
    if not np.isfinite(present).all():
        row = int(np.flatnonzero(~is_missing)[(~np.isfinite(present).all(axis=1)).argmax()])
        where = f"{at} of points[{row}]"
        raise checks.refuse_value(where, points[row].tolist(), "finite numbers", "leave such geometries out")
    if is_missing.any():
        corner = present[0] if box is None and len(present) else np.zeros(2)
        points[is_missing] = corner if box is None else corners_of(box, 2)[0]
    return Geometries(points, is_missing)


def _column(values: Any) -> Any:
    """Return the column of geometries in an object: one with attributes of its own, or a list; else None."""
    if device.holds(values) or (isinstance(values, np.ndarray) and values.dtype.kind != "O"):
        return None
    if _has(values, "isna", "is_empty", "centroid", "bounds"):
        return getattr(values, "geometry", values)
    if _has(values, INTERFACE):
        found = getattr(values, INTERFACE)
        parts = found.get("features", found.get("geometries")) if isinstance(found, Mapping) else None
        if parts is None:
            allowed = "a column of geometries"
            raise checks.refuse_value("points", values, allowed, "put a single geometry into a list")
        return list(parts)
    is_object = getattr(getattr(values, "dtype", None), "kind", "") == "O" and getattr(values, "ndim", 0) == 1
    if not is_object and not isinstance(values, (list, tuple)):
        return None
    first = next((one for one in values if not _is_missing(one)), None)
    return list(values) if _is_geometry(first) else None


def _is_missing(one: Any) -> bool:
    is_nan = isinstance(one, (float, np.floating)) and math.isnan(one)
    return one is None or is_nan or type(one).__name__ in ("NAType", "NaTType")


def _is_geometry(one: Any) -> bool:
    return _has(one, INTERFACE) or _has(one, "centroid", "bounds")


def _has(one: object, *names: str) -> bool:
    """Return whether an object has attributes, without computing those that are properties."""
    own = getattr(one, "__dict__", {})
    return all(hasattr(type(one), name) or name in own for name in names)


def _of_column(column: Any, at: str) -> tuple[np.ndarray, np.ndarray]:
    """Return points and missing rows of a column with attributes of its own, NaN in the missing rows."""
    is_missing = np.asarray(column.isna(), bool) | np.asarray(column.is_empty, bool)
    points = np.full((len(is_missing), 2), np.nan)
    if is_missing.all():
        return points, is_missing
    present = column[~is_missing]
    if at == "bounds":
        bounds = np.asarray(present.bounds, np.float64)
        points[~is_missing] = bounds[:, :2] + (bounds[:, 2:] - bounds[:, :2]) / 2
    else:
        centres = present.centroid
        points[~is_missing] = np.column_stack([centres.x, centres.y])
    return points, is_missing


def _of_entries(entries: list[Any], at: str) -> tuple[np.ndarray, np.ndarray]:
    """Return points and missing rows of a list of geometries, NaN in the missing rows."""
    points = np.full((len(entries), 2), np.nan)
    is_missing = np.ones(len(entries), bool)
    for row, one in enumerate(entries):
        if _is_missing(one):
            continue
        if not _is_geometry(one) and not (isinstance(one, Mapping) and "type" in one):
            allowed = f"a geometry with {INTERFACE}, or with centroid and bounds; None for a missing one"
            raise checks.refuse_class(f"points[{row}]", one, allowed)
        centre = _centre(one, at, row)
        if centre is not None:
            points[row], is_missing[row] = centre, False
    return points, is_missing


def _centre(one: Any, at: str, row: int) -> Centre | None:
    """Return the point of a geometry; None for an empty one."""
    if getattr(one, "is_empty", False):
        return None
    if at == "bounds" and _has(one, "bounds"):
        ends = tuple(one.bounds)
        return _middle(*map(float, ends)) if len(ends) == 4 else None
    if at == "centroid" and _has(one, "centroid"):
        return float(one.centroid.x), float(one.centroid.y)
    parts = [(kind, part) for kind, part in _parts(getattr(one, INTERFACE, one), row) if part]
    everywhere = [
        _xy(ring) for kind, part in parts for ring in (part if kind == "polygon" else [part]) if ring
    ]
    if not everywhere:
        return None
    if at == "bounds":
        joined = np.concatenate(everywhere)
        return _middle(*joined.min(axis=0).tolist(), *joined.max(axis=0).tolist())
    return _centroid(parts, everywhere)


def _middle(x_low: float, y_low: float, x_high: float, y_high: float) -> Centre:
    return x_low + (x_high - x_low) / 2, y_low + (y_high - y_low) / 2


def _xy(positions: Iterable[Any]) -> np.ndarray:
    """Return positions as (m, 2) float64, without heights.

    Raises:
        ValueError: positions that are no pairs of numbers.
    """
    try:
        found = np.array([tuple(position)[:2] for position in positions], np.float64)
    except (TypeError, ValueError) as error:
        raise checks.refuse_value("coordinates of a geometry", positions, POSITIONS) from error
    if found.ndim != 2 or found.shape[1] != 2:
        raise checks.refuse_value("coordinates of a geometry", positions, POSITIONS)
    return found


def _parts(geometry: Any, row: int) -> Iterator[tuple[str, list[Any]]]:
    """List the points, lines and polygons of a geometry as in GeoJSON.

    Raises:
        ValueError: a geometry of another type, or without coordinates.
    """
    if geometry is None:
        return
    kind = geometry.get("type") if isinstance(geometry, Mapping) else None
    if kind == "Feature":
        yield from _parts(geometry.get("geometry"), row)
    elif kind == "GeometryCollection":
        for one in geometry.get("geometries", ()):
            yield from _parts(one, row)
    elif kind in KINDS and "coordinates" in geometry:
        what, depth = KINDS[kind]
        coordinates = list(geometry["coordinates"])
        if kind in ("Point", "MultiPoint"):
            yield what, [coordinates] if kind == "Point" and coordinates else coordinates
        else:
            yield from ((what, list(part)) for part in (coordinates if depth else [coordinates]))
    else:
        allowed = f"with coordinates, of a type of {', '.join(KINDS)}, GeometryCollection, Feature"
        raise checks.refuse_value(f"geometry of points[{row}]", geometry, allowed)


def _centroid(parts: list[tuple[str, list[Any]]], everywhere: list[np.ndarray]) -> Centre:
    """Return the centroid of the areas; without any, of the lines; without lengths, of the points."""
    origin = everywhere[0][0].copy()  # distances from it keep the digits of large coordinates
    area, moment = 0.0, np.zeros(2)
    lines = []
    for kind, part in parts:
        rings = [_xy(ring) - origin for ring in (part if kind == "polygon" else [part]) if ring]
        lines += rings if kind != "points" else []
        for place, ring in enumerate(rings if kind == "polygon" else ()):
            after = np.roll(ring, -1, axis=0)
            cross = ring[:, 0] * after[:, 1] - after[:, 0] * ring[:, 1]
            own, its = cross.sum() / 2, ((ring + after) * cross[:, None]).sum(axis=0) / 6
            sign = math.copysign(1.0, own) * (1 if place == 0 else -1)  # the first ring is around the holes
            area, moment = area + sign * own, moment + sign * its
    if area != 0:
        x, y = (origin + moment / area).tolist()
        return x, y
    length, moment = 0.0, np.zeros(2)
    for line in lines:
        steps = np.hypot(*np.diff(line, axis=0).T)
        length += steps.sum()
        moment = moment + ((line[1:] + line[:-1]) / 2 * steps[:, None]).sum(axis=0)
    joined = np.concatenate(everywhere) - origin
    x, y = (origin + (moment / length if length else joined.mean(axis=0))).tolist()
    return x, y
