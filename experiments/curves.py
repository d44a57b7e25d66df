"""Which ordering keeps neighbours together, by which measure, and what does each look like?

The first orders of each curve are drawn in 2D as the path through its grid (figures 4.1 to 4.3 of [thesis])
and in 3D as a tube (4.5); a 2D grammar as the boxes that it replaces (4.4); the Hilbert pancake as a tube,
whole and with gaps between its cubes (4.6); every ordering of a box on one sheet. A row of the table is one
ordering at one size, with the measures of `sfc.locality`, which heat maps compare. `dilation.csv` has the
dilation of each curve's limit beside the published one.
"""

import math
import sys
from collections.abc import Iterator
from dataclasses import dataclass, field
from functools import cache
from pathlib import Path
from typing import Any

import matplotlib.pyplot as plt
import numpy as np
import pandas as pd

import sfc
from experiments.core import Axis, Settings, main, style, values
from experiments.core.terminal import SMALL_BOXES
from experiments.drawing import heat, layer, plane, solid, tubes, turtle
from experiments.results.answers import Answer, listed, rounded
from experiments.results.charts import Table
from experiments.results.published_dilation import LIMITS, TOLERANCE, beside_published
from sfc import locality

DIMS = (2, 3, 4)
LIMIT_DIMS = (2, 3)  # in which the dilation of a limit takes seconds at most
ORDERS = ("1", "2", "3", "4")  # of the curves, by default
MAX_CELLS = 2**20  # of an ordering that is measured
ORDER_CELLS = {2: 2**12, 3: 2**12}  # dim -> cells of a curve's order that is drawn
SHEET_CELLS = 1100  # of a box that is drawn
NORMS = {"1": 1, "2": 2, "max": math.inf}  # name in columns -> norm of the dilation
WINDOWS = (2, 4)
PIECES = 8
COMPARED = {  # columns of the heat map; less is better in each
    "dilation_2_mean": "dilation (2-norm), mean",
    "dilation_2_worst": "dilation (2-norm), worst",
    "bounding_box_mean": "bounding box, mean",
    "bounding_box_worst": "bounding box, worst",
    "clusters_2_mean": "clusters, window of 2",
    "clusters_4_mean": "clusters, window of 4",
    "edge_stretch_mean_cells": "edge stretch, mean (cells)",
    "edge_stretch_worst_cells": "edge stretch, worst (cells)",
    f"partition_cut_{PIECES}_share": f"share cut by {PIECES} pieces",
}
_MEANS = {  # measures that the answer compares
    "dilation_2_mean": "dilation",
    "bounding_box_mean": "bounding box",
    "clusters_2_mean": "clusters",
    "edge_stretch_mean_cells": "edge stretch",
}


def known() -> tuple[str, ...]:
    """List every ordering of `sfc` in 2D, 3D and 4D, as name-2d, name-3d, name-4d."""
    return tuple(f"{name}-{dim}d" for dim in DIMS for name in sfc.orderings(dim))


def measurable() -> tuple[str, ...]:
    """List those of `known` that have no more than `MAX_CELLS` at the largest of `ORDERS`."""
    return tuple(name for name in known() if math.prod(shape_of(name, ORDERS[-1]) or ()) <= MAX_CELLS)


@dataclass(frozen=True)
class Config(Settings):
    """Orderings and sizes to measure and draw; combinations that do not exist are left out."""

    backend: str = "cpu"
    """Device, accepted as in every experiment; this one simulates nothing."""
    ordering: Axis[str] = field(default_factory=measurable)
    """Curves and other orderings, as name-2d, name-3d or name-4d; by default those of few enough cells."""
    size: Axis[str] = (
        *ORDERS,
        *("16x16", "15x10", "64x64", "8x8x8", "9x7x5", "16x16x16", "64x64x8", "8x8x8x8"),
    )
    """Sizes. A number is an order of the curves, with base**order cells a side. AxB, AxBxC or AxBxCxD is a
    box for every ordering of that dimension. Limits: 1,048,576 cells to be measured; to be drawn, 1,100 in a
    box, and 4,096 for the order of a curve."""

    def __post_init__(self):
        super().__post_init__()
        self.check_known({"ordering": known()})
        for size in values(self.size):
            sides = size.split("x")
            whole = all(side.isdecimal() and len(side) < 20 and int(side) for side in sides)
            if not whole or len(sides) > max(DIMS):
                raise ValueError(
                    f"--size {size}; allowed: an order from 1, or a box of 2 to 4 sides, as 16x16 or 64x64x8"
                )
            for name in values(self.ordering):
                if (cells := math.prod(shape_of(name, size) or ())) > MAX_CELLS:
                    raise ValueError(
                        f"--size {size} of {name} has {cells:,} cells; allowed: up to {MAX_CELLS:,}; take a "
                        "smaller size, or fewer orderings with --ordering"
                    )


QUICK = {
    "ordering": ("hilbert-2d", "peano-2d", "gilbert-2d", "row-2d", "hilbert-3d", "pancake-3d", "row-3d"),
    "size": ("1", "2", "3", "15x10", "8x8x8", "16x16x4"),
}
MINUTES = 1  # CPU time of 386 of 468 cases, extrapolated


def shape_of(ordering: str, size: str) -> tuple[int, ...] | None:
    """Return the cells along each axis; None for a box of another dimension, or an order of a scan."""
    name, dim = _parsed(ordering)
    if "x" in size:
        shape = tuple(map(int, size.split("x")))
        return shape if len(shape) == dim else None
    return (sfc.curve(name, dim).side(int(size)),) * dim if name in sfc.curves(dim) else None


def _parsed(ordering: str) -> tuple[str, int]:
    name, _, dim = ordering.rpartition("-")
    return name, int(dim[0])


def _ordering(name: str, shape: tuple[int, ...], seed: int) -> sfc.Ordering:
    return sfc.covering(name, shape, **({"seed": seed} if name == "random" else {}))


def measure(case: Config) -> Iterator[dict]:
    """Yield one row: size, steps, automaton of a curve, measures of locality."""
    shape = shape_of(case.ordering, case.size)
    if shape is None:
        return
    name, dim = _parsed(case.ordering)
    ordering = _ordering(name, shape, case.seed)
    curve = sfc.curve(name, dim) if name in sfc.curves(dim) else None
    path = ordering.traversal()
    step = np.abs(np.diff(path, axis=0)).sum(axis=1)
    yield {
        "name": name,
        "dim": dim,
        "order": None if "x" in case.size else int(case.size),
        **dict(zip(("nx", "ny", "nz", "nw"), (*shape, 1, 1), strict=False)),
        "cells": len(path),
        "seed": case.seed,
        "base": curve and curve.base,
        "states": len(curve.rank) if isinstance(curve, sfc.Curve) else None,
        "is_continuous": bool((step == 1).all()),
        "is_closed": len(path) > 2 and int(np.abs(path[-1] - path[0]).sum()) == 1,
        "mean_step_cells": float(step.mean()) if len(step) else 0.0,
        "longest_step_cells": int(step.max(initial=0)),
        **_limits(curve),
        **_locality(ordering, case.seed),
    }


@cache
def _limits(curve: sfc.AnyCurve | None) -> dict[str, float | None]:
    """Compute the dilation of a curve's limit in each norm; None for an ordering without tables."""
    if not isinstance(curve, sfc.Curve) or curve.dim not in LIMIT_DIMS:
        return dict.fromkeys(LIMITS.values())
    return {column: locality.limit_dilation(curve, NORMS[norm], TOLERANCE) for norm, column in LIMITS.items()}


def _locality(ordering: sfc.Ordering, seed: int) -> dict:
    """Compute every measure, its standard error and whether it is exact; NaN if the box is too small."""
    found: dict[str, Any] = {}
    for name, norm in NORMS.items():
        found |= _columns(f"dilation_{name}", locality.dilation(ordering, norm, seed=seed))
    found |= _columns("bounding_box", locality.bounding_box(ordering, seed=seed))
    for window in WINDOWS:
        fits = min(ordering.shape) >= window
        found |= _columns(
            f"clusters_{window}", locality.clusters(ordering, window, seed=seed) if fits else None
        )
    found |= _columns("edge_stretch", locality.edge_stretch(ordering, seed=seed), "_cells")
    names = ("cut_faces", "share", "surface", "share_error", "exact")
    parts: tuple = (math.nan, math.nan, math.nan, math.nan, True)
    if ordering.size >= PIECES:
        cut = locality.partition_cut(ordering, PIECES, seed=seed)
        parts = (cut.cut, cut.share, cut.surface, cut.error, cut.exact)
    return found | dict(zip((f"partition_cut_{PIECES}_{name}" for name in names), parts, strict=True))


def _columns(name: str, found: locality.Measure | None, unit: str = "") -> dict:
    return {
        f"{name}_mean{unit}": found.mean if found else math.nan,
        f"{name}_mean_error{unit}": found.error if found else math.nan,
        f"{name}_worst{unit}": float(found.worst) if found else math.nan,
        f"{name}_exact": found.exact if found else True,
    }


def _draw_curves(table: pd.DataFrame, out: Path) -> None:
    """Draw each curve over its orders, and each grammar; say which rows of the table are not drawn."""
    is_order = table["order"].notna()
    most = table["dim"].map(ORDER_CELLS).where(is_order, SHEET_CELLS).where(table["dim"] < 4, 0)
    for row in _rows(table[table["cells"] > most]):
        print(f"measured, not drawn: {row.ordering}, size {row.size}, {row.cells:,} cells", file=sys.stderr)
    for ordering, rows in table[is_order & (table["cells"] <= most)].groupby("ordering", sort=False):
        style.save(_iterations(rows.sort_values("order")), out, str(ordering))
    for name in table.loc[table["dim"] == 2, "name"].unique():
        if name in sfc.curves(2) and (grammar := sfc.curve(name, 2).grammar):
            style.save(turtle.draw_grammar(f"{name}, 2D", *grammar), out, f"grammar_{name}-2d")


def _draw_boxes(table: pd.DataFrame, out: Path) -> None:
    """Draw all orderings of each box, and the layers of the pancake where they are whole cubes."""
    for size, rows in table[table["order"].isna() & table["dim"].isin((2, 3))].groupby("size", sort=False):
        if rows["cells"].iloc[0] <= SHEET_CELLS:
            style.save(_sheet(rows), out, f"orderings_{size}")
        for row in _rows(rows[rows["name"] == "pancake"]):
            if row.nz < min(row.nx, row.ny) and row.nx % row.nz == row.ny % row.nz == 0:
                figure = layer.draw_layer("pancake", _path(row), (row.nx, row.ny, row.nz))
                style.save(figure, out, f"pancake_{size}")


def _rows(table: pd.DataFrame) -> Iterator[Any]:
    """Yield the rows of a table, with a column as each attribute."""
    yield from table.itertuples()


def _shape(row: Any) -> tuple[int, ...]:
    return tuple(int(side) for side in (row.nx, row.ny, row.nz, row.nw)[: row.dim])


def _path(row: Any) -> np.ndarray:
    return _ordering(row.name, _shape(row), int(row.seed)).traversal()


def _iterations(rows: pd.DataFrame) -> plt.Figure:
    """Draw the orders of one curve."""
    dim, name = int(rows["dim"].iloc[0]), rows["name"].iloc[0]
    across, inches = (4, 2.4) if dim == 2 else (3 if len(rows) == 3 else 2, 3.2)
    titles = [f"order {int(row.order)}, {row.cells:,} cells" for row in _rows(rows)]
    return _paths(f"{name}, {dim}D", rows, titles, across, inches)[0]


def _sheet(rows: pd.DataFrame) -> plt.Figure:
    """Draw every ordering of one box; in 2D only the outer panels have names of axes."""
    first, count = next(_rows(rows)), len(rows)
    tall = min(max(first.ny / first.nx, 0.3), 3) if first.dim == 2 else 1
    across = min(count, min((5, 4), key=lambda columns: -count % columns))
    jumps = ["" if row.is_continuous else f", steps up to {row.longest_step_cells}" for row in _rows(rows)]
    title = f"orderings of {first.size.replace('x', ' x ')} cells"
    figure, panels = _paths(title, rows, list(rows["name"] + jumps), across, 2.2, tall)
    for place, panel in enumerate(panels):
        if place % across:
            panel.set(ylabel="", yticklabels=[])
        if place + across < count:
            panel.set(xlabel="", xticklabels=[])
    return figure


def _paths(
    title: str, rows: pd.DataFrame, titles: list[str], across: int, inches: float, tall: float = 1
) -> tuple[plt.Figure, list[plt.Axes]]:
    """Draw a panel of some inches for the path of each row; `tall` is its height over its width."""
    columns, dim = min(len(rows), across), rows["dim"].iloc[0]
    lines = -(-len(rows) // columns)
    size = (inches * columns + 1.0, (inches * tall + 0.2) * lines + 0.5)
    figure, grid = plt.subplots(lines, columns, figsize=size, squeeze=False)
    panels = list(grid.flat[: len(rows)])
    for panel in grid.flat[len(rows) :]:
        panel.remove()
    for panel, row, name in zip(panels, _rows(rows), titles, strict=True):
        path = _path(row)
        if dim == 2:
            plane.draw_path(panel, path, (row.nx, row.ny), inches)
        else:
            fine = {"sides": 32, "pieces": 12} if row.cells <= 100 else {}
            solid.draw_mesh(panel, tubes.path_mesh(path + 0.5, **fine), _shape(row), inches=inches)
        panel.set_title(name, fontsize=9)
    plane.position_bar(figure, panels, marks=dim == 2)
    figure.suptitle(title, fontsize=10)
    return figure, panels


def _draw_heat_maps(table: pd.DataFrame, out: Path) -> None:
    """Draw the largest cube of each dimension in one figure, all other boxes in another."""
    boxes = table[table["order"].isna()]
    sides = boxes[["nx", "ny", "nz", "nw"]].to_numpy()
    used = np.arange(4) < boxes["dim"].to_numpy()[:, None]
    is_cube = pd.Series(((sides == sides[:, :1]) | ~used).all(axis=1), index=boxes.index)
    largest = boxes["cells"] == boxes[is_cube].groupby("dim")["cells"].max().reindex(boxes["dim"]).to_numpy()
    for name, part in (("measures", boxes[is_cube & largest]), ("measures_boxes", boxes[~is_cube])):
        if len(part):
            style.save(_heat_maps([rows for _, rows in part.groupby(["dim", "cells", "size"])]), out, name)


def _heat_maps(boxes: list[pd.DataFrame]) -> plt.Figure:
    """Draw a panel for each box, with the best ordering on top."""
    heights = [len(rows) + 0.5 for rows in boxes]
    size = (7.5, max(0.25 * sum(heights) + 1.25 * len(heights) + 0.3, 4))
    figure, panels = plt.subplots(len(boxes), 1, squeeze=False, figsize=size, height_ratios=heights)
    for panel, rows in zip(panels[:, 0], boxes, strict=True):
        numbers = rows.set_index("name")[list(COMPARED)]
        signs = pd.DataFrame({name: _signs(rows, name) for name in COMPARED}, index=numbers.index)
        order = heat.from_best_to_worst(numbers)
        heat.draw_heat(panel, numbers.loc[order], list(COMPARED.values()), signs.loc[order])
        panel.set_title(
            f"{rows['dim'].iloc[0]}D, {rows['size'].iloc[0].replace('x', ' x ')} cells", fontsize=9
        )
    heat.heat_bar(figure, list(panels[:, 0]))
    figure.suptitle("measures of locality: less is better; best of a column bold; ≈, ≥ sampled", fontsize=10)
    return figure


def _signs(rows: pd.DataFrame, column: str) -> list[str]:
    """Return the sign before each number: a sampled mean is near the true one, a sampled worst a bound."""
    stem, _, kind = column.removesuffix("_cells").rpartition("_")
    return ["" if exact else heat.BOUND if kind == "worst" else "≈" for exact in rows[f"{stem}_exact"]]


_BOXES = ["ordering", "size", "nx", "ny", "nz", "nw", *COMPARED]
VIEWS = (
    _draw_curves, _draw_boxes, _draw_heat_maps,
    Table("measures", lambda table: table.loc[table["order"].isna(), _BOXES]),
    Table("dilation", beside_published),
)  # fmt: skip


def answer(table: pd.DataFrame) -> Answer:
    """Name the best ordering by each mean, in the largest box, a cube and of 3D if there is one."""
    boxes = table[table["order"].isna()] if table["order"].isna().any() else table
    boxes = boxes[boxes["dim"] == (3 if 3 in set(boxes["dim"]) else boxes["dim"].max())]
    cubes = boxes[[len(set(_shape(row))) == 1 for row in _rows(boxes)]]
    boxes = boxes if cubes.empty else cubes
    rows = boxes[boxes["cells"] == boxes["cells"].max()].drop_duplicates("name").set_index("name")
    numbers = rows[[*_MEANS]].rename(columns=_MEANS).dropna(axis="columns", how="all")
    parts = [f"{own.idxmin()} has the least {name} ({rounded(own.min())})" for name, own in numbers.items()]
    cells, dim = rows["cells"].iloc[0], rows["dim"].iloc[0]
    sentence = f"Of {len(rows)} orderings of {cells:,} cells in {dim}D, {listed(parts)}, all as means."
    return Answer(numbers.loc[heat.from_best_to_worst(numbers)].rename_axis(columns="means"), sentence)


if __name__ == "__main__":
    main(Config, measure, VIEWS, quick=QUICK, answer=answer, quick_limit=SMALL_BOXES, minutes=MINUTES)
