"""Record of a figure of matplotlib: its texts and, of each panel, every drawn point in data coordinates.

A panel has two records. `marks` has each artist with its label, look and coordinates. `drawn` has the
different points of lines, markers, bars and ends of intervals alone, whatever draws them, so that the chart
of another library can be compared.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Callable, Iterable, Iterator
from dataclasses import dataclass, field
from typing import Any

import numpy as np
from matplotlib.artist import Artist
from matplotlib.axes import Axes
from matplotlib.axis import Axis
from matplotlib.collections import Collection, EllipseCollection, LineCollection, PathCollection, QuadMesh
from matplotlib.colors import to_hex
from matplotlib.container import BarContainer, Container
from matplotlib.contour import QuadContourSet
from matplotlib.figure import Figure
from matplotlib.image import AxesImage
from matplotlib.legend import Legend
from matplotlib.lines import Line2D
from matplotlib.patches import FancyArrowPatch, Patch
from matplotlib.quiver import Quiver
from matplotlib.spines import Spine
from matplotlib.text import Annotation, Text
from matplotlib.ticker import FixedLocator

from tests.shown.arrays import node, plain, points

ARROWHEAD = "_clipped"  # label of the marks at a frame where an interval leaves it
MOST_COLOURS = 12  # of an artist that are written out


@dataclass
class Mark:
    """Artist as it is recorded.

    Args:
        name: of its class.
        label: of it or of its container; empty for none.
        look: colour, marker, line style.
        data: name -> array, number or text.
        drawn: (n, 2) points of the coarse record.
        cells: numbers of a picture or map.
    """

    name: str
    label: str = ""
    look: dict[str, Any] = field(default_factory=dict)
    data: dict[str, Any] = field(default_factory=dict)
    drawn: np.ndarray = field(default_factory=lambda: np.empty((0, 2)))
    cells: np.ndarray | None = None


class UnknownArtistError(Exception):
    """An artist that has no record yet."""


def record(figure: Figure) -> dict[str, Any]:
    """Return the record of a figure.

    Args:
        figure: as it is to be saved.

    Raises:
        UnknownArtistError: an artist whose points cannot be read.
    """
    headings = {figure.get_suptitle(), figure.get_supxlabel(), figure.get_supylabel()}
    panels = [panel for axes in figure.axes for panel in _with_insets(axes)]
    return {
        "title": figure.get_suptitle(),
        "labels": [figure.get_supxlabel(), figure.get_supylabel()],
        "texts": [text.get_text() for text in figure.texts if text.get_text() not in headings],
        "legends": [_legend(legend) for legend in figure.legends],
        "panels": {f"panel {number}": _panel(axes) for number, axes in enumerate(panels, 1)},
    }


def _with_insets(axes: Axes) -> Iterator[Axes]:
    yield axes
    for inset in axes.child_axes:
        yield from _with_insets(inset)


def _legend(legend: Legend) -> dict[str, Any]:
    return {
        "title": legend.get_title().get_text(),
        "labels": [text.get_text() for text in legend.get_texts()],
        "looks": [_look_of_handle(handle) for handle in legend.legend_handles],
    }


def _look_of_handle(handle: Any) -> dict[str, Any]:
    for kind, read in _LOOKS:
        if isinstance(handle, kind):
            return read(handle)
    return {}


def _panel(axes: Axes) -> dict[str, Any]:
    """Return the record of a panel."""
    axis_names = [name for name in ("x", "y", "z") if hasattr(axes, f"{name}axis")]
    marks = list(_marks(axes))
    legend = axes.get_legend()
    cells = [mark.cells for mark in marks if mark.cells is not None]
    drawn = [_named(mark.drawn, axes) for mark in marks if mark.label != ARROWHEAD and len(mark.drawn)]
    return {
        "title": [axes.get_title(side) for side in ("left", "center", "right")],
        **{name: _axis(axes, getattr(axes, f"{name}axis"), name) for name in axis_names},
        "is_shown": axes.get_visible() and axes.axison,
        "legend": _legend(legend) if legend else None,
        "marks": _keyed(marks),
        "drawn": {
            "points": _merged(drawn),
            "cells": [node(np.sort(array.reshape(-1))) for array in cells],
        },
    }


def _axis(axes: Axes, axis: Axis, name: str) -> dict[str, Any]:
    """Return label, scale, limits, the ticks if they are fixed, and else the form of numbers."""
    return {
        "label": axis.get_label_text(),
        "scale": axis.get_scale(),
        "limits": plain(list(getattr(axes, f"get_{name}lim")())),
        "ticks": _fixed_ticks(axis),
        "written": _written(axis),
    }


def _fixed_ticks(axis: Axis) -> list[list[Any]] | None:
    """Return position and text of ticks that do not follow from the size of the panel."""
    locator = axis.get_major_locator()
    if not isinstance(locator, FixedLocator) and type(locator).__name__ != "StrCategoryLocator":
        return None
    places = np.atleast_1d(locator())
    return plain(list(zip(places.tolist(), axis.get_major_formatter().format_ticks(places), strict=True)))


def _written(axis: Axis) -> str | None:
    """Return how a quarter would be written at an axis without fixed ticks, such as "25%"."""
    return None if _fixed_ticks(axis) is not None else axis.get_major_formatter().format_data(0.25)


def _keyed(marks: Iterable[Mark]) -> dict[str, Any]:
    """Return the records of marks by class and label or colour, numbered where they are the same."""
    counts: Counter = Counter()
    keyed = {}
    for mark in marks:
        key = f"{mark.name} {mark.label or mark.look.get('colour', '')}".strip()
        counts[key] += 1
        name = key if counts[key] == 1 else f"{key} ({counts[key]})"
        arrays = {k: node(v) if isinstance(v, np.ndarray) else plain(v) for k, v in mark.data.items()}
        keyed[name] = {"label": mark.label, "look": plain(mark.look), **arrays}
    return keyed


def _named(drawn: np.ndarray, axes: Axes) -> list[list[Any]]:
    """Return points, with the names of their places along an axis of names instead of numbers."""
    columns: list[list[Any]] = []
    for number, axis in enumerate((axes.xaxis, axes.yaxis)):
        values = drawn[:, number].tolist()
        ticks = _fixed_ticks(axis) or []
        whole = [abs(place) for place, _ in ticks] == list(range(len(ticks)))
        if ticks and whole and any(text and not _is_number(text) for _, text in ticks):
            places = np.array([place for place, _ in ticks], float)
            values = [ticks[int(np.abs(places - value).argmin())][1] for value in values]
        columns.append(values)
    return [list(pair) for pair in zip(*columns, strict=True)]


def _is_number(text: str) -> bool:
    try:
        float(text.replace(",", ""))
    except ValueError:
        return False
    return True


def _merged(drawn: list[list[list[Any]]]) -> Any:
    """Return the different points of all marks: an array, or pairs with names."""
    every = [pair for part in drawn for pair in part]
    if all(isinstance(value, float) for pair in every for value in pair):
        return node(points(every)) if every else node(np.empty((0, 2)))
    pairs = {tuple(value + 0.0 if isinstance(value, float) else value for value in pair) for pair in every}
    return plain([list(pair) for pair in sorted(pairs, key=lambda pair: [str(value) for value in pair])])


def _marks(axes: Axes) -> Iterator[Mark]:
    """Yield the marks of a panel in the order in which they were added."""
    owners = _owners(axes.containers)
    titles = {axes.title, getattr(axes, "_left_title", None), getattr(axes, "_right_title", None)}
    apart = (Spine, Axis, Legend, Axes)
    for artist in axes.get_children():
        if isinstance(artist, apart) or artist is axes.patch or artist in titles or not artist.get_visible():
            continue
        mark = _read(artist, axes)
        label = str(artist.get_label())
        owner = owners.get(artist)
        if mark.label == "":
            mark.label = "" if label.startswith("_") and label != ARROWHEAD else label
        if owner is not None:
            label = str(owner.get_label())
            mark.label = mark.label or ("" if label.startswith("_") else label)
            if isinstance(owner, BarContainer) and isinstance(artist, Patch):
                mark.drawn = _end_of_bar(artist, owner)
        yield mark


def _owners(containers: Iterable[Container]) -> dict[Artist, Container]:
    return {artist: container for container in containers for artist in container.get_children()}


def _end_of_bar(bar: Any, owner: BarContainer) -> np.ndarray:
    x, y, width, height = bar.get_x(), bar.get_y(), bar.get_width(), bar.get_height()
    upright = owner.orientation != "horizontal"
    return np.array([[x + width / 2, y + height] if upright else [x + width, y + height / 2]])


def _read(artist: Artist, axes: Axes) -> Mark:
    """Return the mark of an artist.

    Raises:
        UnknownArtistError: of a class that is not in `_READERS`.
    """
    for kind, read in _READERS:
        if isinstance(artist, kind):
            return read(artist, axes)
    raise UnknownArtistError(f"no record of {type(artist).__name__}; add one to _READERS in {__name__}")


def _space(transform: Any, axes: Axes) -> str:
    """Return which coordinates are those of the data: "data", "x", "y", or "paper" for none."""
    flags = transform.contains_branch_seperately(axes.transData)
    return {(True, True): "data", (True, False): "x", (False, True): "y"}.get(tuple(flags), "paper")


def _line(line: Any, axes: Axes) -> Mark:
    if hasattr(line, "get_data_3d"):
        data = np.column_stack([np.asarray(part, float) for part in line.get_data_3d()])
        return Mark("line", look=_look_of_line(line), data={"points": data}, drawn=data[:, :2])
    data = np.column_stack(
        [np.ma.filled(np.ma.asarray(part, float), np.nan) for part in line.get_data(False)]
    )
    space = _space(line.get_transform(), axes)
    drawn = data if space == "data" else np.empty((0, 2))
    return Mark("line", look=_look_of_line(line), data={"space": space, "points": data}, drawn=drawn)


def _look_of_line(line: Line2D) -> dict[str, Any]:
    return {
        "colour": to_hex(line.get_color(), keep_alpha=True),
        "marker": line.get_marker(),
        "style": line.get_linestyle(),
    }


def _colours(rgba: Any) -> list[str]:
    colours = list(dict.fromkeys(to_hex(colour, keep_alpha=True) for colour in np.atleast_2d(rgba)))
    return colours if len(colours) <= MOST_COLOURS else [f"{len(colours)} colours", *colours[:MOST_COLOURS]]


def _look_of_collection(artist: Collection) -> dict[str, Any]:
    if artist.get_array() is not None:
        return {"map": artist.get_cmap().name, "limits": list(artist.get_clim())}
    faces, edges = artist.get_facecolor(), artist.get_edgecolor()
    return {"colour": ", ".join(_colours(faces if len(faces) else edges) if len(faces) + len(edges) else [])}


def _values(artist: Any) -> dict[str, Any]:
    values = artist.get_array()
    return {} if values is None else {"values": np.ma.filled(np.ma.asarray(values, float), np.nan)}


def _map(values: dict[str, np.ndarray]) -> np.ndarray | None:
    """Return the numbers of a map; None for a picture, which has colours."""
    array = values.get("values")
    return array if array is not None and array.ndim == 2 else None


def _markers(artist: PathCollection, axes: Axes) -> Mark:
    if hasattr(artist, "_offsets3d"):  # matplotlib has no public name for it
        data = np.column_stack([np.asarray(part, float) for part in artist._offsets3d])
        return Mark("markers", look=_look_of_collection(artist), data={"points": data} | _values(artist))
    data = np.ma.filled(np.ma.asarray(artist.get_offsets(), float), np.nan)
    space = _space(artist.get_offset_transform(), axes)
    return Mark(
        "markers",
        look=_look_of_collection(artist),
        data={"space": space, "points": data} | _values(artist),
        drawn=data if space == "data" else np.empty((0, 2)),
    )


def _paths(artist: Collection, axes: Axes) -> Mark:
    """Segments of lines, ends of intervals, bands and polygons."""
    name = "segments" if isinstance(artist, LineCollection) else "areas"
    segments = getattr(artist, "_segments3d", None)
    if segments is None:
        segments = getattr(artist, "_vec", None)
        if segments is not None:
            return Mark(name, look=_look_of_collection(artist), data={"points": np.asarray(segments)[:3].T})
        vertices = [path.vertices for path in artist.get_paths()]
    else:
        vertices = [np.asarray(part, float) for part in segments]
    data = np.concatenate(vertices) if vertices else np.empty((0, 2))
    space = "data" if data.shape[1] == 3 else _space(artist.get_transform(), axes)
    lengths = [len(part) for part in vertices]
    sizes = lengths[0] if len(set(lengths)) == 1 else np.array(lengths, float)
    offsets = np.ma.filled(np.ma.asarray(artist.get_offsets(), float), np.nan)
    recorded = {"space": space, "lengths": sizes, "points": data} | _values(artist)
    if offsets.any():
        recorded["offsets"] = offsets
    drawn = data if space == "data" and data.shape[1] == 2 else np.empty((0, 2))
    return Mark(name, look=_look_of_collection(artist), data=recorded, drawn=drawn)


def _ellipses(artist: EllipseCollection, axes: Axes) -> Mark:
    widths = np.asarray(artist._widths, float)  # matplotlib below 3.9 has no public name for it
    data = np.ma.filled(np.ma.asarray(artist.get_offsets(), float), np.nan)
    return Mark(
        "discs",
        look=_look_of_collection(artist),
        data={"points": data, "half": widths} | _values(artist),
        drawn=data,
    )


def _contours(artist: QuadContourSet, axes: Axes) -> Mark:
    data = np.concatenate([path.vertices for path in artist.get_paths()])
    return Mark(
        "contours", look={"map": artist.get_cmap().name}, data={"levels": list(artist.levels), "points": data}
    )


def _arrows(artist: Quiver, axes: Axes) -> Mark:
    data = np.column_stack([artist.XY, np.ma.filled(artist.U, np.nan), np.ma.filled(artist.V, np.nan)])
    return Mark("arrows", look=_look_of_collection(artist), data={"points": data} | _values(artist))


def _mesh(artist: QuadMesh, axes: Axes) -> Mark:
    values = _values(artist)
    data = values | {"corners": np.asarray(artist.get_coordinates(), float)}
    return Mark("mesh", look=_look_of_collection(artist), data=data, cells=_map(values))


def _picture(artist: AxesImage, axes: Axes) -> Mark:
    values = _values(artist)
    look = {"map": artist.get_cmap().name, "limits": list(artist.get_clim()), "origin": artist.origin}
    extent = [float(x) for x in artist.get_extent()]
    return Mark("picture", look=look, data=values | {"extent": extent}, cells=_map(values))


def _patch(artist: Patch, axes: Axes) -> Mark:
    if isinstance(artist, FancyArrowPatch):
        return Mark(
            "arrow", look=_look_of_patch(artist), data={"points": np.asarray(artist.get_path().vertices)}
        )
    vertices = artist.get_patch_transform().transform_path(artist.get_path()).vertices
    space = _space(artist.get_transform(), axes)
    return Mark("area", look=_look_of_patch(artist), data={"space": space, "points": np.asarray(vertices)})


def _look_of_patch(artist: Patch) -> dict[str, Any]:
    face = artist.get_facecolor() if artist.get_fill() else artist.get_edgecolor()
    return {"colour": to_hex(face, keep_alpha=True), "hatch": artist.get_hatch()}


def _text(artist: Text, axes: Axes) -> Mark:
    recorded: dict[str, Any] = {}
    if isinstance(artist, Annotation):
        system = artist.xycoords  # of labels of bars a function, whose text holds its address
        shown = getattr(system, "__name__", str(system))
        recorded = {"of": list(artist.xy) if system == "data" else shown}
        if artist.anncoords == "data":
            recorded["at"] = list(artist.xyann)
    elif (space := _space(artist.get_transform(), axes)) != "paper":
        recorded = {"space": space, "at": list(artist.get_position())}
    look = {"colour": to_hex(artist.get_color(), keep_alpha=True)}
    return Mark("text", label=artist.get_text(), look=look, data=recorded)


_READERS: tuple[tuple[type, Callable[[Any, Axes], Mark]], ...] = (
    (Text, _text),
    (Line2D, _line),
    (Quiver, _arrows),
    (QuadMesh, _mesh),
    (PathCollection, _markers),
    (EllipseCollection, _ellipses),
    (QuadContourSet, _contours),
    (Collection, _paths),
    (AxesImage, _picture),
    (Patch, _patch),
)
_LOOKS: tuple[tuple[type, Callable[[Any], dict[str, Any]]], ...] = (
    (Line2D, _look_of_line),
    (Collection, _look_of_collection),
    (Patch, _look_of_patch),
)
