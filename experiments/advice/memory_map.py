"""Map of a user's data in memory, in the order given and in another: where lies what is used together.

Points are drawn where they are, in the colour of their place in memory: smooth where neighbours lie together,
noise where they do not. An entry of a matrix, and two items of a cell, are a dot at the places of both; a
read of a trace is a dot at its number and the place that it reads. Places are shares of memory, from 0 to 1.

A run records the rows of `rows_of_map` in its table, beside its times; `draw` draws them from it alone.
"""

from __future__ import annotations

from pathlib import Path
from typing import TYPE_CHECKING, Any, NamedTuple

import numpy as np
import pandas as pd
import scipy.sparse
from scipy.spatial import cKDTree

from experiments.advice.candidates import GIVEN
from experiments.advice.uses import CELLS, MATRIX, TRACE, Use
from experiments.core import figures
from experiments.results.answers import rounded
from sfc import checks

if TYPE_CHECKING:
    from matplotlib.axes import Axes

MAP = "map"  # in the column `what`, and name of the file
MOST = 3000  # dots of a panel
SEED = 0  # of the items that are drawn
AS_THIN = 1.2  # times the thinnest side: one looks along y if it is so thin, or along the thinnest side
FLAT = 0.25  # of the widest side: of a thinner cloud all points may be drawn, of another those of a slab
ENDS = (0.02, 0.98)  # quantiles of the points between which a side is
MARGIN = 0.03  # of a side
POINTS, READS = "points", "reads"  # forms beside CELLS and MATRIX
COLOURS, INK = "viridis", "#0072B2"  # Okabe and Ito (2008)
PLACE = "place in memory (share)"
TOGETHER = {  # form -> what is used together
    POINTS: "A point and its nearest neighbour", CELLS: "Two items of a cell",
    MATRIX: "The row and the column of an entry", READS: "The items of two reads in turn",
}  # fmt: skip
AXES = {  # form -> axis to the right, upwards
    CELLS: ("item of a cell: " + PLACE, "another item of it: " + PLACE),
    MATRIX: ("column: " + PLACE, "row: " + PLACE), READS: ("number of the read", PLACE),
}  # fmt: skip
_WIDE, _LOW, _HIGH = 3.0, 1.2, 4.5  # inches: width of a panel, and least and largest height
_DOT = 0.6  # share of a panel that the dots of evenly spread points fill


class _Sample(NamedTuple):
    """Items to be drawn: where, if not at places in memory, and each with one that is used together with it.

    Attributes:
        form: of the map.
        items, others: (m,) pairs of items.
        x, y: (m,) coordinates; None for the place of the other, and for that of the item.
        axes: names of the axes.
    """

    form: str
    items: np.ndarray
    others: np.ndarray
    x: np.ndarray | None
    y: np.ndarray | None
    axes: tuple[str, str]


def rows_of_map(use: Use, name: str, order: np.ndarray) -> list[dict[str, Any]]:
    """List the dots of a map, in the order of the file and in another.

    Args:
        use: its points, cells, matrix or trace decide what is drawn.
        name: of the other order.
        order: (items,) permutation: item `order[i]` lies at place i.

    Returns:
        Rows with `what`, `form` of the map, `order` by name, `x`, `y`, `place` (share of memory), `across`
        and `up` (names of the axes of x and y), and `apart`, the median distance in memory of what is used
        together, in items. At most `MOST` for each order, of the same items; none if nothing is used
        together.

    Raises:
        ValueError: an order of another length, or the name of that of the file.
    """
    if name == GIVEN:
        raise checks.refuse_value("name", name, "the name of an order other than that of the file")
    if len(order) != use.items:
        raise ValueError(f"order of {len(order):,} items; allowed: a permutation of all {use.items:,}")
    sample = _sample(use)
    if sample is None or not len(sample.items):
        return []
    places = np.empty(use.items, np.int64)
    places[order] = np.arange(use.items)
    rows: list[dict[str, Any]] = []
    for one, at in ((GIVEN, np.arange(use.items)), (name, places)):
        place, other = (np.round(at[items] / use.items, 6) for items in (sample.items, sample.others))
        x, y = other if sample.x is None else sample.x, place if sample.y is None else sample.y
        common = {
            "what": MAP, "form": sample.form, "order": one, "across": sample.axes[0], "up": sample.axes[1],
            "apart": float(np.median(np.abs(at[sample.items] - at[sample.others]))),
        }  # fmt: skip
        dots = zip(x.tolist(), y.tolist(), place.tolist(), strict=True)
        rows += [common | dict(zip(("x", "y", "place"), dot, strict=True)) for dot in dots]
    return rows


def without_map(table: pd.DataFrame) -> pd.DataFrame:
    """Return the rows of a table that are not of its map: the times.

    Args:
        table: of a run, also of one that recorded no map.
    """
    return table[table["what"] != MAP] if "what" in table else table


def _sample(use: Use) -> _Sample | None:
    """Choose what is drawn; the same for equal data."""
    random = np.random.default_rng(SEED)
    if use.kind == MATRIX:
        matrix = scipy.sparse.coo_array(use.matrix)
        chosen = _some(matrix.nnz, random)
        rows, columns = (axis[chosen].astype(np.int64) for axis in matrix.coords)
        return _Sample(MATRIX, rows, columns, None, None, AXES[MATRIX])
    if use.kind == CELLS:
        if use.cells.shape[1] < 2:
            return None
        cells = use.cells[_some(len(use.cells), random)]
        first, second = random.permuted(np.tile(np.arange(cells.shape[1]), (len(cells), 1)), axis=1).T[:2]
        every = np.arange(len(cells))
        return _Sample(CELLS, cells[every, first], cells[every, second], None, None, AXES[CELLS])
    if use.kind == TRACE:
        turns = _some(len(use.trace) - 1, random)
        return _Sample(READS, use.trace[turns], use.trace[turns + 1], turns, None, AXES[READS])
    return None if use.points is None else _sample_of_points(use.points, random)


def _some(count: int, random: np.random.Generator) -> np.ndarray:
    """Return at most `MOST` numbers below a count, sorted."""
    return np.sort(random.choice(max(count, 0), min(max(count, 0), MOST), replace=False))


def _sample_of_points(points: np.ndarray, random: np.random.Generator) -> _Sample:
    """Choose points that are as near to each other as they look: of a slab around the middle, if not flat."""
    low, high = np.quantile(points, ENDS, axis=0)
    sides, axes = high - low, np.arange(points.shape[1])
    chosen = _some(len(points), random)
    if len(axes) == 3:
        # along y in a cube: a slab across the first or last axis is one piece of memory in order of rows
        thin = 1 if sides[1] <= AS_THIN * sides.min() else int(sides.argmin())
        axes = axes[axes != thin]
        if sides[thin] > FLAT * sides.max():
            off = np.abs(points[:, thin] - np.median(points[:, thin]))
            chosen = np.sort(np.argsort(off, kind="stable")[:MOST])
    tree = cKDTree(points, compact_nodes=False, balanced_tree=False)
    near = np.asarray(tree.query(points[chosen], 2)[1])
    others = np.where(near[:, 0] == chosen, near[:, 1], near[:, 0])
    x, y = points[chosen][:, axes].T
    names = [f"{'xyz'[axis]} (unit of the data)" for axis in axes]
    return _Sample(POINTS, chosen, others, x, y, (names[0], names[1]))


def draw(table: pd.DataFrame, out: Path) -> None:
    """Draw the map of the first run of a table that holds one.

    Args:
        table: with the rows of `rows_of_map`; it may hold others, and no map.
        out: folder of the picture.

    Raises:
        OSError: the picture cannot be written.
    """
    rows = table[table["what"] == MAP] if "what" in table else table.iloc[:0]
    if rows.empty:
        return
    if "run" in rows:
        rows = rows[rows["run"] == rows["run"].min()]
    import matplotlib.pyplot as plt  # here, as in style

    first = rows.iloc[0]
    is_plane = first["form"] == POINTS
    sides = [_side(rows[name]) if is_plane else (0.0, 1.0) for name in ("x", "y")]
    (left, right), (low, high) = sides
    tall = float(np.clip(_WIDE * (high - low) / (right - left), _LOW, _HIGH)) if is_plane else _WIDE
    size = 2 * _WIDE + 1.4, tall + 1.1
    figure, panels = plt.subplots(1, 2, figsize=size, sharex=True, sharey=True, layout="compressed")
    for panel, (name, dots) in zip(panels, rows.groupby("order", sort=False), strict=True):
        panel.set_title(_in_words(str(name)))
        panel.set_xlabel(first["across"])
        (_plane if is_plane else _places)(panel, dots)
    panels[0].set_ylabel(first["up"])
    if is_plane:
        panels[0].set(xlim=(left, right), ylim=(low, high))
        bar = figure.colorbar(panels[1].collections[0], ax=list(panels), aspect=25, pad=0.02)
        bar.set_label(PLACE)
        bar.outline.set_visible(False)
    figures.titled(figure, title_of(rows), out, MAP, rows)


def title_of(rows: pd.DataFrame) -> str:
    """Say how far apart in memory lies what is used together, before and after.

    Args:
        rows: of a map.
    """
    apart = rows.groupby("order", sort=False)["apart"].first()
    before, *after = (
        f"{rounded(items).removesuffix('.00')}{{}} {_in_words(str(name))}" for name, items in apart.items()
    )
    items = " item apart" if apart.iloc[0] == 1 else " items apart"
    said = ", ".join([before.format(items), *(one.format("") for one in after)])
    return f"{TOGETHER[rows['form'].iloc[0]]} lie {said} (median)"


def _in_words(order: str) -> str:
    return "as given" if order == GIVEN else f"along {order}"


def _side(values: pd.Series) -> tuple[float, float]:
    """Return the ends of an axis, which stray points leave; those of equal values are 1 apart."""
    low, high = values.quantile(ENDS)
    margin = MARGIN * (high - low) or 0.5
    return low - margin, high + margin


def _plane(panel: Axes, dots: pd.DataFrame) -> None:
    """Draw points where they are, in the colour of their place in memory."""
    size = _DOT * (72 * _WIDE) ** 2 / max(len(dots), 1)  # points^2 of a dot
    panel.scatter(dots["x"], dots["y"], s=size, c=dots["place"], cmap=COLOURS, vmin=0, vmax=1,
                  linewidths=0, rasterized=True)  # fmt: skip
    panel.set_aspect("equal")


def _places(panel: Axes, dots: pd.DataFrame) -> None:
    """Draw what is used together at both places, rows downwards; or places over the reads."""
    panel.scatter(dots["x"], dots["y"], s=2, color=INK, alpha=0.6, linewidths=0, rasterized=True)
    is_read = dots["form"].iloc[0] == READS
    panel.set(ylim=(0, 1) if is_read else (1, 0))
    if is_read:
        panel.xaxis.set_major_formatter("{x:,.0f}")
        panel.locator_params(axis="x", nbins=4)
    else:
        panel.set(xlim=(0, 1), aspect="equal")
