"""Does the build of the tree race without the fence between a box and the flag that announces it?

The boxes of a tree are merged from the leaves up (`md/search/bvh/tree.cu`). Two threads arrive at a node, and
the second one merges the boxes of its children. An atomic flag tells a thread whether it is the second. It
does not order the memory around it: that the box of the sibling is visible then is ensured by a fence. [lift]
states that without the fence boxes race from Turing on.

A trial is a build of all boxes of a tree over random spheres. Before it, the boxes of inner nodes are set to
one that is larger than any, so that a box that is read too early makes all boxes above it wrong. `leaves`
merges every node through global memory, as [karras2012] does, and `blocks` only the nodes that span several
blocks of 256 leaves, as the search does; the others are merged in shared memory, behind barriers. Without the
fence the same kernel is compiled with NO_FENCE. The right boxes are computed on the host, as bounds of ranges
of leaves. A CPU merges the boxes above its parts in one thread, so that it has no race to find.

A row is a trial: `wrong_boxes`, and `races`, the wrong boxes with two right children after the build.
If no tree is wrong, the summary gives the largest share of wrong trees in agreement with that at 95 %.
"""

from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path

import matplotlib.pyplot as plt
import numpy as np
import pandas as pd
from scipy import stats

import md
from experiments.core import Axis, Settings, figures, main, save_table
from experiments.core.settings import UsageError
from experiments.core.terminal import FEW_TRIALS
from experiments.results.answers import Answer, headline, percent, rows_of
from md.backend import Backend
from md.particles.arrays import ParticleArrays
from md.particles.cell_grid import CellGrid
from md.search.bvh.tree import Tree

FENCES, STARTS = ("with", "without"), ("leaves", "blocks")
KERNELS = "md.search.bvh.tree"
FAR = 1e30  # d: corners of the boxes before a build
_CASE = ["n", "dim", "start", "fence"]


@dataclass(frozen=True)
class Config(Settings):
    """Sweep of builds."""

    n: Axis[int] = (2**20,)
    """Number of boxes at the leaves of a tree."""
    dim: Axis[int] = (3,)
    """Number of dimensions of the boxes, 2 or 3."""
    start: Axis[str] = STARTS
    """Nodes from which on merging goes through global memory: leaves (every node), blocks (nodes above blocks
    of 256 leaves, as in the search)."""
    fence: Axis[str] = FENCES
    """Builds with the fence, or without it, which needs a CUDA device."""
    scenes: int = 10
    """Number of random scenes, each with a tree of its own."""
    builds: int = 1000
    """Number of builds of all boxes of each tree."""

    def __post_init__(self):
        super().__post_init__()
        self.check_known({"start": STARTS, "fence": FENCES})
        self.check_least({"n": 2, "scenes": 1, "builds": 1})
        self.check("dim", low=2, high=3)
        self.check_particles()
        self.check_memory("--scenes x --builds", self.scenes * self.builds, "trials")


QUICK = {"n": (2**12,), "fence": ("with",), "scenes": 2, "builds": 5}
MINUTES = 20  # CPU time of 20 builds with the fence, extrapolated; a CPU refuses the cases without it


def measure(case: Config) -> Iterator[dict]:
    """Yield a row for each trial."""
    backend = md.backend.get(case.backend)
    if case.fence == "without" and backend.name != "cuda":
        raise UsageError(
            f"--fence without on {backend.name}; allowed: with, because the build on a CPU has no fence to "
            "leave out; take --fence with, or a machine with a CUDA device"
        )
    for scene in range(case.scenes):
        boxes = Boxes(case.n, case.dim, [case.seed, scene], backend)
        for trial in range(case.builds):
            boxes.build(case.start, case.fence == "with")
            wrong = boxes.wrong()
            yield {
                "scene": scene,
                "trial": trial,
                "boxes": case.n - 1,
                "wrong_boxes": len(wrong),
                "races": boxes.races(wrong),
            }


class Boxes:
    """Boxes of a tree over random spheres, which are built again and again.

    Args:
        n: number of spheres, at least 2.
        dim: 2 or 3.
        seed: of their positions and radii.
        backend: of the tree.

    Attributes:
        tree: with the right boxes, before the first `build`.
        right: (2 (n - 1), dim) lower and upper corner of each inner node, computed on the host.
    """

    def __init__(self, n: int, dim: int, seed: list[int], backend: Backend):
        generator, precision = np.random.default_rng(seed), np.dtype(np.float32)
        box = md.Box((n ** (1 / dim) + 4.0,) * dim)
        pos = generator.random((n, dim)) * box.lengths
        particles = ParticleArrays(md.State(pos, np.zeros_like(pos), box), precision, backend)
        self._n, self._dim, self._backend, self._pos = n, dim, backend, particles.pos
        self._radius = backend.upload(generator.uniform(0.1, 0.5, n).astype(precision))
        self._grid = CellGrid(box, 1.0, precision, backend)
        self.tree = Tree(n, self._grid, backend)
        self.tree.build(self._pos)
        self.tree.fit(self._pos, self.tree.keys.order, self._radius)
        self._visits, self._stopped = backend.empty(n - 1, np.int32), backend.empty(n, np.int32)
        self._leaves = backend.upload(np.arange(n - 1, 2 * n - 1, dtype=np.int32))
        host = backend.download(self.tree.nodes)[2 * (n - 1) :, :dim]
        first = np.arange(n - 1)
        end = backend.download(self.tree.other_end)
        self.right = bounds_of_ranges(host[::2], host[1::2], np.minimum(first, end), np.maximum(first, end))
        self._right = backend.upload(self.right)
        self._ropes = backend.download(self.tree.ropes)

    def build(self, start: str, fence: bool) -> None:
        """Compute the boxes of all inner nodes.

        Args:
            start: one of `STARTS`.
            fence: whether the kernel has its fences.
        """
        tree, inner = self.tree, 2 * (self._n - 1)
        tree.nodes[:inner:2], tree.nodes[1:inner:2] = -FAR, FAR
        self._backend.fill(self._visits, 0)
        stopped = self._leaves
        if start == "blocks":
            stopped = self._stopped
            spheres = self._pos, self._radius, np.float32(1), tree.keys.order
            links = tree.ropes, tree.other_end, tree.parent, self._visits
            kernels = self._backend.kernels(KERNELS)
            sizes = self._n, self._backend.workers, 1
            kernels.fit_parts(*sizes, *spheres, *links, self._grid.record, tree.nodes, stopped)
        kernels = self._backend.kernels(KERNELS, constants=None if fence else {"NO_FENCE": 1})
        above = tree.ropes, tree.parent, self._visits
        kernels.fit_spanning(self._n, self._pos, stopped, *above, tree.nodes)

    def wrong(self) -> np.ndarray:
        """Return the inner nodes with a wrong box, in ascending order."""
        inner = 2 * (self._n - 1)
        differ = self.tree.nodes[:inner, : self._dim] != self._right
        of_node = differ.reshape(self._n - 1, 2 * self._dim).any(axis=1)
        return np.flatnonzero(self._backend.download(of_node)) if bool(of_node.any()) else np.empty(0, int)

    def races(self, wrong: np.ndarray) -> int:
        """Count the wrong nodes with two right children."""
        left = self._ropes[2 * wrong]
        right = self._ropes[2 * left + 1]
        return int((~np.isin(left, wrong) & ~np.isin(right, wrong)).sum())


def bounds_of_ranges(low: np.ndarray, high: np.ndarray, first: np.ndarray, last: np.ndarray) -> np.ndarray:
    """Compute the bounds of the leaves first .. last of each inner node.

    Args:
        low: (n, dim) lower corners of the leaves' boxes.
        high: (n, dim) upper corners.
        first: (n - 1,) first leaf of each inner node.
        last: (n - 1,) last leaf, included.

    Returns:
        (2 (n - 1), dim) lower and upper corner of each.
    """
    found = np.empty((2 * len(first), low.shape[1]), low.dtype)
    ends = np.column_stack([first, last + 1]).ravel()
    for rows, corners, bound in ((found[::2], low, np.minimum), (found[1::2], high, np.maximum)):
        padded = np.vstack([corners, corners[-1:]])  # an end may be n, which `reduceat` does not take
        rows[:] = bound.reduceat(padded, ends)[::2]
    return found


def draw(table: pd.DataFrame, out: Path) -> None:
    """Draw the share of trees with a wrong box, with its interval; write the summary."""
    found = summary(table)
    save_table(found, out, "summary")
    figure, panel = plt.subplots(figsize=(6.0, 1.3 + 0.35 * len(found)))
    for place in range(len(found)):
        _mark(panel, place, found.iloc[place])
    names = [
        f"{row.n:,} boxes in {row.dim}D from {row.start}, {row.fence} fence" for row in found.itertuples()
    ]
    panel.set_yticks(range(len(found)), names)
    panel.set(xscale="log", xlabel="share of trees with a wrong box", ylim=(len(found) - 0.4, -0.6))
    figures.titled(
        figure,
        "share of all trees; hollow: none was wrong, at the largest share that agrees (95 %)",
        out,
        "fence",
    )


def _mark(panel: plt.Axes, place: int, row: pd.Series) -> None:
    """Draw a case: a dot with its interval, or a hollow dot at its upper end if no tree was wrong."""
    share, end = row["wrong_trees"] / row["trees"], row["share_high"]
    if share:
        bars = [[share - row["share_low"]], [end - share]]
        panel.errorbar(share, place, xerr=bars, fmt="o", color="C0", capsize=2)
    else:
        panel.plot(end, place, "o", color="C0", markerfacecolor="white")
    label = f"{row['wrong_trees']:,} of {row['trees']:,} trees"
    panel.annotate(label, (end, place), (8, 0), textcoords="offset points", va="center", fontsize=7)


def summary(table: pd.DataFrame) -> pd.DataFrame:
    """Count trials and wrong boxes of each case.

    Returns:
        For each case its trees, those with a wrong box and the 95 % interval of their share (Clopper and
        Pearson, Biometrika 26 (1934) 404), boxes, wrong boxes, and races.
    """
    found = []
    for key, rows in table.groupby(_CASE, sort=False):
        wrong = int((rows["wrong_boxes"] > 0).sum())
        ends = stats.binomtest(wrong, len(rows)).proportion_ci(0.95, "exact")
        found.append(
            dict(zip(_CASE, key, strict=True))
            | {
                "trees": len(rows),
                "wrong_trees": wrong,
                "share_low": ends.low,
                "share_high": ends.high,
                "boxes": rows["boxes"].sum(),
                "wrong_boxes": rows["wrong_boxes"].sum(),
                "races": rows["races"].sum(),
            }
        )
    return pd.DataFrame(found)


def answer(table: pd.DataFrame) -> Answer:
    """Say in which share of the trees a box was wrong, without the fence and with it."""
    every = headline(summary(table), "n", "dim")
    cells = {
        "wrong trees": lambda row: f"{row['wrong_trees']:,} of {row['trees']:,}",
        "95 % interval": lambda row: f"{percent(row['share_low'])} to {percent(row['share_high'])}",
        "races": lambda row: row["races"],
    }
    found = headline(every, "start")
    parts = [
        f"{row['fence']} the fence {row['wrong_trees']:,} of {row['trees']:,} trees have a wrong box "
        f"({percent(row['share_low'])} to {percent(row['share_high'])})"
        for row in found.to_dict("records")
    ]
    n, dim, start = (found[name].iloc[0] for name in ("n", "dim", "start"))
    return Answer(
        rows_of(every, _CASE, cells, most=4), f"At {n:,} boxes in {dim}D from {start}, {', '.join(parts)}."
    )


if __name__ == "__main__":
    main(Config, measure, draw, quick=QUICK, answer=answer, quick_limit=FEW_TRIALS, minutes=MINUTES)
