"""Which drawbacks of a uniform grid are seen: memory at low density, long lists, far neighbours?

[lift] gives five restrictions of a grid. Three of them are counted here, in a gas at rest in a periodic cube
with a fixed number of particles; nothing is timed, and the answer does not depend on the machine.

- Memory at low density: `cells` and the share of them that is empty; `grid_bytes`, a start of 4 bytes a
  cell, and `tree_bytes`, the arrays of a bounding volume hierarchy, both per particle. A cube that encloses a
  particle far from the others is such a sparse box: a grid needs bounded coordinates, and its table grows
  with the volume.
- Long lists at high density: the largest number of particles in a cell, and the partners that a particle
  reads, in all cells within reach.
- Near cells far apart in memory: by how many particles the partners that are read are apart in memory, the
  median and the 90th percentile, with the particles in the order of their cells.

The other two, coordinates without bounds and lock-free structures on a device, need times: the axis `room` of
`experiments.mixture`, and the searches `linked` and `coherent` of `experiments.searches`.
"""

import math
from collections.abc import Iterator
from dataclasses import dataclass
from functools import lru_cache
from pathlib import Path

import matplotlib.pyplot as plt
import numpy as np
import pandas as pd

import md
from experiments.core import Axis, Settings, figures, main, save_table, style, values
from experiments.core.terminal import FEW_PARTICLES
from experiments.results.answers import Answer, headline, listed, percent, rounded, rows_of
from md.backend import Backend
from md.particles.cell_grid import CellGrid
from md.search import Coherent
from md.search.bvh.tree import Tree

START_BYTES = 4  # of a cell in the table of a grid: an int32
CELL_BYTES = 12  # of the table of ranks while it is made
_CASE = ["n", "filling_fraction", "order"]
_COUNTS = ["cells_per_particle", "empty_share", "grid_bytes", "tree_bytes", "most_in_a_cell"]
_COUNTS += ["reads_per_particle", "slots_apart_median", "slots_apart_90"]


@dataclass(frozen=True)
class Config(Settings):
    """Sweep of densities and orders of cells."""

    n: Axis[int] = (2**17,)
    """Number of particles. Figures show the largest."""
    filling_fraction: Axis[float] = (0.003, 0.01, 0.05, 0.1, 0.2, 0.3, 0.4, 0.5)
    """Volume of the spheres over that of the box, up to 0.5."""
    order: Axis[str] = ("row", "morton", "hilbert")
    """Orders of the cells in memory: 3D orderings that `md.search.Coherent` takes."""

    def __post_init__(self):
        super().__post_init__()
        self.check_known({"order": Coherent.cell_orders(3)})
        self.check_above_zero({"filling_fraction": 0.5})
        self.check_least({"n": 64})
        self.check_particles()
        for n in values(self.n):
            cells = n * math.pi / 6 / min(values(self.filling_fraction), default=1.0)
            self.check_memory(f"--n {n} at the least --filling-fraction", cells, "cells", CELL_BYTES)


QUICK = {"n": (2**13,), "filling_fraction": (0.01, 0.1, 0.4)}
MINUTES = 1  # CPU time of a smaller size, extrapolated


def measure(case: Config) -> Iterator[dict]:
    """Yield a row for each case."""
    state = _gas(case.n, case.filling_fraction, case.seed, case.backend)
    backend = md.backend.get(case.backend)
    sim = md.Simulation(state, md.scenes.SHARED_LAW, search=Coherent(case.order), backend=backend)
    stream = sim.accesses()
    grid = CellGrid(state.box, md.scenes.SHARED_LAW.cutoff, np.dtype(np.float32), backend)
    held = in_cells(state, grid)
    readers = np.arange(case.n) if stream.readers is None else np.asarray(stream.readers)
    apart = np.abs(np.repeat(readers, np.diff(stream.offsets)) - stream.reads)
    median, most = np.percentile(apart, [50, 90]) if len(apart) else (np.nan, np.nan)
    yield {
        "cells_per_particle": grid.size / case.n,
        "empty_share": 1 - len(held) / grid.size,
        "grid_bytes": START_BYTES * (grid.size + 1) / case.n,
        "tree_bytes": tree_bytes(case.n, grid, backend) / case.n,
        "most_in_a_cell": int(held.max()),
        "reads_per_particle": len(stream.reads) / case.n,
        "slots_apart_median": median,
        "slots_apart_90": most,
    }


@lru_cache(maxsize=1)
def _gas(n: int, filling_fraction: float, seed: int, backend: str) -> md.State:
    box = md.scenes.box_for(n, filling_fraction)
    return md.scenes.granular_gas(filling_fraction, box, seed=seed, backend=backend)


def in_cells(state: md.State, grid: CellGrid) -> np.ndarray:
    """Count the particles in each cell that holds some."""
    shape = np.array(grid.shape)
    cells = (state.pos / np.array(state.box.lengths) * shape).astype(np.int64)
    numbers = np.ravel_multi_index(tuple(np.clip(cells, 0, shape - 1).T), grid.shape)
    return np.unique(numbers, return_counts=True)[1]


def tree_bytes(n: int, grid: CellGrid, backend: Backend) -> int:
    """Return the bytes of the arrays of a tree over n particles that a traversal or a build needs."""
    tree = Tree(n, grid, backend)
    arrays = tree.nodes, tree.ropes, tree.parent, tree.other_end, tree.keys.keys, tree.keys.order
    return sum(array.nbytes for array in arrays)


def draw(table: pd.DataFrame, out: Path) -> None:
    """Draw memory, lists and distances in memory over the filling fraction; write the summary."""
    save_table(summary(table), out, "summary")
    table = table[table["n"] == table["n"].max()]
    titles = [
        "memory at low density",
        "lists at high density",
        "near cells in memory: median",
        "near cells in memory: 90th percentile",
    ]
    figure, grid = plt.subplots(2, 2, figsize=(7.0, 5.6), sharex=True)
    memory, lists, apart, far = grid.flat
    for panel, title in zip(grid.flat, titles, strict=True):
        panel.set_title(title, fontsize=9)
    one = table[table["order"] == table["order"].iloc[0]]
    _lines(memory, one, {"grid_bytes": "table of a grid", "tree_bytes": "a tree"})
    _lines(lists, one, {"reads_per_particle": "partners read", "most_in_a_cell": "most in a cell"})
    look = style.lines(list(dict.fromkeys(table["order"])), "order")
    figures.median_lines(apart, table, "filling_fraction", "slots_apart_median", look)
    figures.median_lines(far, table, "filling_fraction", "slots_apart_90", look)
    memory.set(ylabel="bytes per particle", yscale="log")
    lists.set(ylabel="particles", yscale="log")
    apart.set(ylabel="particles between, median", yscale="log")
    far.set(ylabel="particles between, 90th percentile", yscale="log")
    for panel in (memory, lists, apart, far):
        panel.set(xscale="log", xlabel="filling fraction" if panel in grid[1] else "")
        figures.plain_log_ticks(panel)
        panel.legend(title=None, fontsize=7)
    title = f"{table['n'].iloc[0]:,} particles; median and range over repeats"
    figures.titled(figure, title, out, "grid_limits")


def summary(table: pd.DataFrame) -> pd.DataFrame:
    """List the medians over repeats of each case."""
    return table.groupby(_CASE, sort=False)[_COUNTS].median().reset_index()


def _lines(panel: plt.Axes, rows: pd.DataFrame, names: dict[str, str]) -> None:
    """Draw columns over the filling fraction."""
    found = rows.melt("filling_fraction", list(names), "column", "value")
    found["column"] = found["column"].map(names)
    found = found[found["value"] > 0]  # the axis is logarithmic
    look = style.lines_in_turn(list(names.values()), "column")
    figures.median_lines(panel, found, "filling_fraction", "value", look)


def answer(table: pd.DataFrame) -> Answer:
    """Say where a grid takes more memory than a tree, how long its lists are, and how far neighbours lie."""
    found = headline(summary(table), "n").sort_values("filling_fraction", kind="stable")
    one = headline(found, "order")
    cells = {
        "bytes a particle": lambda row: rounded(row["grid_bytes"]),
        "of a tree": lambda row: rounded(row["tree_bytes"]),
        "most in a cell": lambda row: f"{row['most_in_a_cell']:.0f}",
    }
    larger = one.loc[one["grid_bytes"] > one["tree_bytes"], "filling_fraction"]
    memory = (
        f"more memory than a tree up to {percent(larger.max())} filled" if len(larger) else "less than a tree"
    )
    sparse, dense = one.iloc[0], one.iloc[-1]
    densest = table[table["filling_fraction"] == dense["filling_fraction"]]
    apart = densest.groupby("order", sort=False)["slots_apart_90"].median()
    far = listed(f"{slots:,.0f} along {name}" for name, slots in apart.items())
    sentence = (
        f"With {dense['n']:,} particles a grid takes {memory} ({rounded(sparse['grid_bytes'])} bytes a "
        f"particle against {rounded(sparse['tree_bytes'])} at {percent(sparse['filling_fraction'])}); at "
        f"{percent(dense['filling_fraction'])} a cell holds up to {dense['most_in_a_cell']:.0f}, and one in "
        f"ten partners is farther in memory than {far}."
    )
    return Answer(rows_of(one, ["filling_fraction"], cells), sentence)


if __name__ == "__main__":
    main(Config, measure, draw, quick=QUICK, answer=answer, quick_limit=FEW_PARTICLES, minutes=MINUTES)
