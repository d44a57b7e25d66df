"""What limits an array of fixed size: of contacts, of the boxes of a tree, of the cells of a grid?

`--array` chooses the array. Nothing is timed. Counts are the same on any machine, but for those of a device:
of races, of nodes, and of additions that it makes, which depend on how lanes diverge and threads run.

contacts: In the case of [lift] a disc visits its partners of later leaves, and adds the force of each pair to
both of them: to its own once, and to that of each partner at the visit, atomically. Contacts are counted at
some steps of the flow, in the tree's order of the leaves, which is that of memory and of the threads. An
addition is one of a vector, of two numbers.

- `plain`: an addition for each contact, as in the rung `shared stack` of `experiments.ladder`.
- `aggregated`: lanes that visit the same partner at the same time sum first (`match_any`), as in the rung
  `aggregated atomics`. Counted as if all lanes of a warp made their first visits together, their second ones,
  and so on. Lanes that diverge make more additions.
- `least`: one addition for each partner of a warp, whenever its lanes visit it. No aggregation within a warp
  makes fewer.

On a device the additions that the kernels of these two rungs make are counted too, `made_plain` and
`made_aggregated`: kernels that add one instead of each force (`md.search.bvh.reflexive`), from a copy in the
order of the leaves as in the rungs.

Each disc also adds its own sum once, in any case (`own`), which is no part of the others. `requests` is the
number of plain additions by instructions of a warp instead of lanes. Lists of contacts hold `room` partners;
the discs of `overflow_share` have more, and traverse the tree a second time.

boxes: The boxes of a tree are merged from the leaves up (`md/search/bvh/tree.cu`). Two threads arrive at a
node, and the second one merges the boxes of its children. An atomic flag tells a thread whether it is the
second. It does not order the memory around it: that the box of the sibling is visible then is ensured by a
fence. [lift] states that without the fence boxes race from Turing on. A trial is a build of all boxes of a
tree over random spheres. Before it, the boxes of inner nodes are set to one that is larger than any, so that
a box that is read too early makes all boxes above it wrong. `leaves` merges every node through global memory,
as [karras2012] does, and `blocks` only the nodes that span several blocks of 256 leaves, as the search does;
the others are merged in shared memory, behind barriers. Without the fence the same kernel is compiled with
NO_FENCE. The right boxes are computed on the host, as bounds of ranges of leaves. A CPU merges the boxes
above its parts in one thread, so that it has no race to find. A row is a trial: `wrong_boxes`, and `races`,
the wrong boxes with two right children after the build. If no tree is wrong, the summary gives the largest
share of wrong trees in agreement with that at 95 %.

nodes: [lift] states that some structures without locks fail on a GPU. Three are tried: `lists`, linked cells,
which a step of the search `linked` links by atomic exchanges; `pool`, a free list of nodes from which 4096
threads take a node and return it, 16 times each, by compare-and-swap; `counted pool`, the same with a count
of the changes beside the head (`experiments.measurement.kernels.free_list`). A row is a trial, which has a
step or a pool of its own: `wrong_nodes`, of particles or nodes that are in no list, or in lists more than
once, and `taken_twice`, how often a thread took a node that another one held. A CPU uses a pool by one
thread, and its parts link lists of their own: it has no race to find.

cells: [lift] gives five restrictions of a grid. Four of them are counted in a gas at rest in a periodic cube
with a fixed number of particles.

- Memory at low density: `cells` and the share of them that is empty; `grid_bytes`, a start of 4 bytes a
  cell, and `tree_bytes`, the arrays of a bounding volume hierarchy, both per particle. A cube that encloses a
  particle far from the others is such a sparse box: a grid needs bounded coordinates, and its table grows
  with the volume.
- Long lists at high density: the largest number of particles in a cell, and the partners that a particle
  reads, in all cells within reach.
- Near cells far apart in memory: by how many particles the partners that are read are apart in memory, the
  median and the 90th percentile, with the particles in the order of their cells.

What empty cells cost in time is measured by the axis `room` of `experiments.mixture`.
"""

import math
from collections.abc import Callable, Iterator
from dataclasses import dataclass
from functools import lru_cache
from typing import Any, ClassVar

import numpy as np
import pandas as pd
import scipy  # its `stats` is loaded when first used

import md
from experiments.core import Axis, Settings, main, values
from experiments.core.plan import plan_lines
from experiments.core.settings import Scene, UsageError
from experiments.core.terminal import FEW_COUNTS
from experiments.measurement.kernels.free_list import FreeList, not_once
from experiments.measurement.kernels.tree_boxes import STARTS, Boxes
from experiments.prediction.flocks import cells
from experiments.results.answers import Answer, headline, listed, percent, rounded, rows_of
from experiments.results.charts import DOTS, LINES, Chart, Points, Scale, Table
from md.particles.cell_grid import CellGrid
from md.search import Coherent, Reflexive
from md.search.bvh.curve_keys import halving
from md.search.bvh.tree import Tree
from sfc.cache import AccessStream

WARP = 32  # lanes
KINDS = {
    "plain": "one a contact",
    "aggregated": "lanes at the same visit",
    "least": "one a partner of a warp",
}
FENCES = ("with", "without")
STRUCTURES = ("lists", "pool", "counted pool")
SHARED = 0.2  # filling fraction of the particles in lists
START_BYTES = 4  # of a cell in the table of a grid: an int32
CELL_BYTES = 12  # of the table of ranks while it is made
CASES = {  # the columns that identify a row of the summary
    "contacts": ["n", "curve", "step"],
    "boxes": ["n", "dim", "start", "fence"],
    "nodes": ["n", "structure"],
    "cells": ["n", "filling_fraction", "order"],
}
TRIALS = {  # of an array: names of all trials, of the wrong ones, and the counts of a trial
    "boxes": ("trees", "wrong_trees", "boxes", "wrong_boxes", "races"),
    "nodes": ("trials", "wrong_trials", "wrong_nodes", "taken_twice"),
}
FAULTS = {"boxes": ["wrong_boxes"], "nodes": ["wrong_nodes", "taken_twice"]}  # of a wrong trial
_LEAST = {"contacts": 100, "boxes": 2, "nodes": 64, "cells": 64}
MADE = ("plain", "aggregated")  # kinds of additions that a device makes
_PER_DISC = [*KINDS, "requests", "contacts", "own", *(f"made_{kind}" for kind in MADE)]
_NEEDS = {
    "contacts": "plain",
    "boxes": "wrong_boxes",
    "nodes": "wrong_nodes",
    "cells": "grid_bytes",
}  # a column of its rows

_NODES: dict[str, Any] = {"array": "nodes", "n": (2**14,), "scenes": 5, "builds": 12}


@dataclass(frozen=True)
class Config(Settings):
    """Sweep of an array: flows, builds or gases."""

    TOGETHER: ClassVar[tuple[str, ...]] = ("curve", "step", "room")
    SCENE: ClassVar[str] = "array"
    SCENES: ClassVar[dict[str, Scene]] = {"nodes": Scene(defaults=_NODES)}

    array: str = "contacts"
    """Array of which limits are counted: contacts (additions to partners, and lists that overflow), boxes (of
    a tree: races without a fence), nodes (of structures without locks: nodes that are lost), cells (of a
    grid: memory, lists, distances in memory)."""
    n: Axis[int] = (2**14, 2**17)
    """Number of discs, of boxes at the leaves of a tree (1048576 are enough for races on an H100), of
    nodes (for these 16384), or of particles. Figures show the largest."""
    curve: tuple[str, ...] = ("morton", "hilbert")
    """Of contacts: curves along which the leaves are ordered: 2D curves of base 2 with tables."""
    step: tuple[int, ...] = (10, 300, 600)
    """Of contacts: steps at which contacts are counted. 131072 discs meet the wing at about step 336."""
    room: tuple[int, ...] = (4, 8, 12, 16, 20, 24, 28, 32, 40, 48)
    """Of contacts: capacities of a list, in partners; 32 in `md.search.Reflexive`."""
    dim: Axis[int] = (3,)
    """Of boxes: number of dimensions, 2 or 3."""
    start: Axis[str] = STARTS
    """Of boxes: nodes from which on merging goes through global memory: leaves (every node), blocks (nodes
    above blocks of 256 leaves, as in the search)."""
    fence: Axis[str] = FENCES
    """Of boxes: builds with the fence, or without it, which needs a CUDA device."""
    structure: Axis[str] = STRUCTURES
    """Of nodes: lists (cells linked by exchanges), pool (nodes taken and returned by compare-and-swap),
    counted pool (the same with a count of the changes)."""
    scenes: int = 10
    """Of boxes and nodes: number of random scenes, each with a tree or particles of its own; 5 of nodes."""
    builds: int = 1000
    """Of boxes and nodes: number of trials of each scene; 12 of nodes, each downloads them all."""
    filling_fraction: Axis[float] = (0.003, 0.01, 0.05, 0.1, 0.2, 0.3, 0.4, 0.5)
    """Of cells: volume of the spheres over that of the box, up to 0.5."""
    order: Axis[str] = ("row", "morton", "hilbert")
    """Of cells: orders in memory: 3D orderings that `md.search.Coherent` takes."""

    def __post_init__(self):
        others = [name for array, case in CASES.items() if array != self.array for name in case[1:]]
        object.__setattr__(self, "TOGETHER", (*self.TOGETHER, *others))  # swept for their own array alone
        super().__post_init__()
        orders = {"curve": halving(2), "order": Coherent.cell_orders(3)}
        self.check_known({"array": CASES, "start": STARTS, "fence": FENCES, "structure": STRUCTURES} | orders)
        self.check_least({"n": _LEAST[self.array], "step": 0, "room": 1, "scenes": 1, "builds": 1})
        self.check("dim", low=2, high=3)
        self.check_above_zero({"filling_fraction": 0.5})
        self.check_particles(1 + (self.array == "contacts"))
        self.check_memory("--scenes x --builds", self.scenes * self.builds, "trials")
        for n in values(self.n) if self.array == "cells" else ():
            cells = n * math.pi / 6 / min(values(self.filling_fraction), default=1.0)
            self.check_memory(f"--n {n} at the least --filling-fraction", cells, "cells", CELL_BYTES)


QUICK = {
    "n": (2**12,),
    "curve": ("morton",),
    "step": (10, 50),
    "fence": ("with",),
    "scenes": 2,
    "builds": 5,
    "filling_fraction": (0.01, 0.1, 0.4),
}
MINUTES, MINUTES_OF_NODES = 1.5, 0.2  # CPU times of the smaller size, extrapolated, and of nodes


def plan(config: Config) -> str:
    """Say what is counted and about how long that takes."""
    return " ".join(plan_lines(config, MINUTES_OF_NODES if config.array == "nodes" else MINUTES))


def measure(case: Config) -> Iterator[dict]:
    """Yield the rows of a case, of its array."""
    rows = {"contacts": _contacts, "boxes": _boxes, "nodes": _nodes, "cells": _cells}
    yield from rows[case.array](case)


def _contacts(case: Config) -> Iterator[dict]:
    """Yield a row for each step, curve and room."""
    lift = md.preparation.newtonian_lift(case.n, seed=case.seed)
    options: dict[str, Any] = lift.options | {"backend": case.backend}
    sim = md.Simulation(lift.state, lift.law, search="coherent", **options)
    for step in sorted(case.step):
        sim.run(step - sim.step, phases=False)
        for curve in case.curve:
            search = Reflexive(curve, data="sorted")
            stream = contacts_of(md.Simulation(sim.state, lift.law, search=search, **options))
            partners = np.diff(stream.offsets)
            counts = {"contacts": len(stream.reads), "own": case.n, "most_partners": int(partners.max())}
            common = {"curve": curve, "step": step} | counts | additions(stream)
            common |= made(sim.state, lift.law, curve, options)
            for room in case.room:
                yield common | {"room": room, "overflow_share": float((partners > room).mean())}


def made(state: md.State, law: md.laws.PairLaw, curve: str, options: dict[str, Any]) -> dict[str, int]:
    """Count the atomic additions to partners that a device makes in one computation of the forces.

    Args:
        state: the discs.
        law: between them.
        curve: along which the leaves are ordered.
        options: of the simulation.

    Returns:
        `made_<kind>` for each of `MADE`; nothing on the CPU, which adds without atomics.
    """
    found = {}
    for kind in MADE if is_device(options["backend"]) else ():
        search = Reflexive(curve, atomics=kind, data="shadow")
        sim = md.Simulation(state, law, search=search, **options)
        sim.forces()  # builds the tree
        bound: Any = sim.search
        found[f"made_{kind}"] = bound.additions(law) - len(state)
    return found


def is_device(backend: str) -> bool:
    """Return whether simulations on a backend of this name run on a device."""
    return md.backend.get(backend).runs_ahead


def contacts_of(sim: md.Simulation) -> AccessStream:
    """Return the touching partners of later leaves of each disc, in the order of its visits.

    Args:
        sim: of discs in an open box, with a `Reflexive` search that moves them to the order of the leaves.
            The traversal also reads leaves that do not touch; these are left out.
    """
    stream, n, pos = sim.accesses(), len(sim), sim.state.pos
    reader = np.arange(n) if stream.readers is None else np.asarray(stream.readers)
    reader = np.repeat(reader, np.diff(stream.offsets))
    touches = np.linalg.norm(pos[reader] - pos[stream.reads], axis=1) < 1.0  # d
    partners = np.bincount(reader[touches], minlength=n)
    return AccessStream(np.concatenate([[0], np.cumsum(partners)]), stream.reads[touches])


def additions(stream: AccessStream) -> dict[str, int]:
    """Count the atomic additions to partners.

    Args:
        stream: the partners of each disc that it visits, disc by disc in the order of threads.

    Returns:
        The number for each of `KINDS`, and `requests`, the instructions of warps for the plain ones.
    """
    partners = np.diff(stream.offsets)
    reader = np.repeat(np.arange(len(partners), dtype=np.int64), partners)
    visit = np.arange(len(reader)) - np.repeat(stream.offsets[:-1], partners)
    warp, slots = reader // WARP, int(stream.reads.max(initial=0)) + 1
    together = warp * (int(partners.max(initial=0)) + 1) + visit
    return {
        "plain": len(reader),
        "aggregated": len(np.unique(together * slots + stream.reads)),
        "least": len(np.unique(warp * slots + stream.reads)),
        "requests": len(np.unique(together)),
    }


def _boxes(case: Config) -> Iterator[dict]:
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
            counts = {"boxes": case.n - 1, "wrong_boxes": len(wrong), "races": boxes.races(wrong)}
            yield {"scene": scene, "trial": trial} | counts


def _nodes(case: Config) -> Iterator[dict]:
    """Yield a row for each trial."""
    trials = _of_lists if case.structure == "lists" else _of_pools
    for scene in range(case.scenes):
        for trial, counts in enumerate(trials(case, scene)):
            yield {"scene": scene, "trial": trial} | counts


def _of_lists(case: Config, scene: int) -> Iterator[dict]:
    """Count the particles of a scene that are not once in the lists of their cells, after each step."""
    gas = md.scenes.benchmark_gas(case.n, SHARED, seed=case.seed + scene, backend=case.backend)
    law, dt = md.scenes.BENCHMARK_LAW, md.scenes.BENCHMARK_DT
    sim = md.Simulation(gas, law, search="linked", dt=dt, backend=case.backend)
    search: Any = sim.search
    for _ in range(case.builds):
        sim.run(1, phases=False)
        head, following = map(sim.backend.download, search.structure())
        yield {"wrong_nodes": not_once(head, following), "taken_twice": 0}


def _of_pools(case: Config, scene: int) -> Iterator[dict]:
    """Count the nodes that are not once in a pool after its use, and those taken twice."""
    backend = md.backend.get(case.backend)
    for _ in range(case.builds):
        pool = FreeList(case.n, backend)
        twice = pool.use(counted=case.structure == "counted pool")
        yield {"wrong_nodes": pool.lost(), "taken_twice": twice}


def _cells(case: Config) -> Iterator[dict]:
    """Yield a row for each case."""
    state = _gas(case.n, case.filling_fraction, case.seed, case.backend)
    backend = md.backend.get(case.backend)
    sim = md.Simulation(state, md.scenes.BENCHMARK_LAW, search=Coherent(case.order), backend=backend)
    stream = sim.accesses()
    grid = CellGrid(state.box, md.scenes.BENCHMARK_LAW.cutoff, np.dtype(np.float32), backend)
    held = np.unique(cells(state, np.array(grid.shape)), axis=0, return_counts=True)[1]
    tree = Tree(case.n, grid, backend)
    of_tree = tree.nodes, tree.ropes, tree.parent, tree.other_end, tree.keys.keys, tree.keys.order
    readers = np.arange(case.n) if stream.readers is None else np.asarray(stream.readers)
    apart = np.abs(np.repeat(readers, np.diff(stream.offsets)) - stream.reads)
    median, most = np.percentile(apart, [50, 90]) if len(apart) else (np.nan, np.nan)
    yield {
        "cells_per_particle": grid.size / case.n,
        "empty_share": 1 - len(held) / grid.size,
        "grid_bytes": START_BYTES * (grid.size + 1) / case.n,
        "tree_bytes": sum(array.nbytes for array in of_tree) / case.n,  # of a traversal or a build
        "most_in_a_cell": int(held.max()),
        "reads_per_particle": len(stream.reads) / case.n,
        **on_torus(state.pos, float(grid.box.lengths[0] / grid.shape[0])),
        "slots_apart_median": median,
        "slots_apart_90": most,
    }


def on_torus(pos: np.ndarray, width: float) -> dict[str, float]:
    """Count memory and reads of a grid with about as many cells as particles, which is wrapped onto a torus.

    Args:
        pos: (n, dim) positions of any size, in d; the space is open.
        width: of a cell, in d; partners are in the same cell and in those around it.

    Returns:
        torus_bytes: of the table. torus_reads_per_particle: partners read.
    """
    n, dim = pos.shape
    side = max(3, math.ceil(n ** (1 / dim)))  # of fewer cells, two around a cell have one number
    held = np.zeros((side,) * dim, np.int64)
    np.add.at(held, tuple(cells_on_torus(pos, width, side).T), 1)
    near = held
    for axis in range(dim):
        near = near + np.roll(near, 1, axis) + np.roll(near, -1, axis)
    reads = float((held * near).sum()) / n - 1  # itself is not read
    return {"torus_bytes": START_BYTES * (side**dim + 1) / n, "torus_reads_per_particle": reads}


def cells_on_torus(pos: np.ndarray, width: float, side: int) -> np.ndarray:
    """Number the cells of a grid modulo the sides of a table: (n, dim) int64.

    Args:
        pos: (n, dim) positions of any size, in d.
        width: of a cell, in d.
        side: cells of the table along each axis.
    """
    return np.floor(pos / width).astype(np.int64) % side


@lru_cache(maxsize=1)
def _gas(n: int, filling_fraction: float, seed: int, backend: str) -> md.State:
    box = md.scenes.box_for(n, filling_fraction)
    return md.preparation.granular_gas(filling_fraction, box, seed=seed, backend=backend)


def _lines_of(names: dict[str, str], case: list[str]) -> Callable[[pd.DataFrame], pd.DataFrame]:
    """Return a function that puts columns below each other, named in the column `line`.

    Args:
        names: column -> its name there.
        case: columns that identify a row.
    """

    def lines(table: pd.DataFrame) -> pd.DataFrame:
        rows = headline(table, "n", *({"order"} & {*table}))
        return rows.rename(columns=names).melt([*case, "n", "repeat"], list(names.values()), "line")

    return lines


_MEMORY = {"grid_bytes": "the table of a grid", "tree_bytes": "a tree"}
_LISTS = {"reads_per_particle": "partners read", "most_in_a_cell": "most in a cell"}


def _of_scenes(table: pd.DataFrame) -> pd.DataFrame:
    """Count the wrong trees of each scene."""
    rows = headline(table, "n").assign(wrong=table["wrong_boxes"] > 0, trees=1)
    found = rows.groupby([*CASES["boxes"], "repeat", "scene"], sort=False)[["wrong", "trees"]].sum()
    found = found.reset_index()
    build = "from " + found["start"] + ", " + found["fence"] + " fence"
    return found.assign(build=build, repeat=found.groupby(CASES["boxes"]).cumcount())


def _intervals(rows: pd.DataFrame) -> str:
    """Describe the trees of a figure, and the shares of wrong trees that agree with those of all scenes."""
    counts = rows.groupby("build", sort=False)[["wrong", "trees"]].sum().drop_duplicates()
    shares = [f"{wrong:,} of {trees:,} ({_agreeing(wrong, trees)})" for wrong, trees in counts.to_numpy()]
    sizes = f"{rows['n'].iloc[0]:,} boxes of random spheres in {rows['dim'].iloc[0]}D"
    return f"{sizes}\nwrong trees, 95 % interval: {listed(shares)}"


def interval(wrong: int, trees: int) -> tuple[float, float]:
    """Return the 95 % interval of a share of trees (Clopper and Pearson, Biometrika 26 (1934) 404)."""
    ends = scipy.stats.binomtest(int(wrong), int(trees)).proportion_ci(0.95, "exact")
    return ends.low, ends.high


def _agreeing(wrong: int, trees: int) -> str:
    return " to ".join(map(percent, interval(wrong, trees)))


def _array_of(table: pd.DataFrame) -> str:
    return next(array for array, column in _NEEDS.items() if column in table)


def summary(table: pd.DataFrame) -> pd.DataFrame:
    """Summarise the rows of each case of an array.

    Returns:
        Of contacts, medians over repeats: additions per disc, and the partners in the longest list. Of boxes
        and nodes: trees or trials, the wrong ones and the 95 % interval of their share, and sums of the
        counts. Of cells: the median over repeats of each count.
    """
    array = _array_of(table)
    case = CASES[array]
    if array == "cells":
        of_cells = [*table.loc[:, "cells_per_particle":"slots_apart_90"]]
        return table.groupby(case, sort=False)[of_cells].median().reset_index()
    if array in TRIALS:
        every, wrong, *sums = TRIALS[array]
        trials = table.copy()
        trials[every], trials[wrong] = 1, (table[FAULTS[array]] > 0).any(axis=1)
        found = trials.groupby(case, sort=False)[[every, wrong, *sums]].sum().reset_index()
        ends = np.array([*map(interval, found[wrong], found[every])]).T
        found = found.assign(share_low=ends[0], share_high=ends[1])
        return found[[*case, every, wrong, "share_low", "share_high", *sums]]
    given = [name for name in _PER_DISC if name in table]  # a CPU makes no additions that can be counted
    counts = [f"{name}_per_disc" for name in given]
    per_disc = table[given].div(table["n"], axis=0).set_axis(counts, axis=1)
    found = table.join(per_disc).groupby(case, sort=False)[[*counts, "most_partners"]].median().reset_index()
    for kind in ("aggregated", "least"):
        found[f"{kind}_over_plain"] = found[f"{kind}_per_disc"] / found["plain_per_disc"]
    return found


_FILLING = Scale("filling fraction", "filling_fraction", log=10)
VIEWS = (
    Chart(
        "contacts",
        "At step {step} of {n} discs along {curve}, {of_worst} additions a disc are {value} at least",
        LINES, Points("value / n"), Scale("step of the flow", "step"),
        Scale("additions to partners per disc", ends=(0, None)), "line", "atomic additions", panels="curve",
        heading="leaves along {curve}", prepare=_lines_of(KINDS, ["curve", "step"]), needs="plain",
    ),
    Chart(
        "lists",
        "Of {n} discs along {curve}, a share of {value} to {of_worst} has more than {room} partners",
        LINES, Points("overflow_share", "overflow_share > 0"), Scale("room of a list (partners)", "room"),
        Scale("share of discs with more", log=10), "step", "step",
        prepare=lambda table: headline(table, "n", "curve"), needs="room",
    ),
    Chart(
        "fence",
        "A share of up to {of_worst} of the trees has a wrong box",
        DOTS, Points("wrong / trees", repeated="scenes"), Scale("", "build"),
        Scale("share of wrong trees in a scene", ends=(-0.03, 1.03)), files=("dim",), note=_intervals,
        prepare=_of_scenes, needs="wrong_boxes",
    ),
    Chart(
        "grid_limits",
        "At {filling_fraction} filled a particle takes {value} bytes in {best}, {of_worst} bytes in {worst}",
        LINES, (Points("value", f"line in {[*_MEMORY.values()]}", values=Scale("bytes per particle", log=10)),
                Points("value", f"line in {[*_LISTS.values()]} and value > 0")),
        _FILLING, Scale("particles", log=10), "line", note="{n} particles",
        prepare=_lines_of(_MEMORY | _LISTS, ["filling_fraction"]), needs="grid_bytes",
    ),
    Chart(
        "grid_distances",
        "At {filling_fraction} filled half of the partners read are within {value} particles in memory along "
        "{best}, {of_worst} along {worst}",
        LINES, (Points("slots_apart_median", values=Scale("particles between, median", log=10)),
                Points("slots_apart_90")),
        _FILLING, Scale("particles between, 90th percentile", log=10), "ordering", "order of the cells",
        note="{n} particles", needs="grid_bytes",
        prepare=lambda table: headline(table, "n").rename(columns={"order": "ordering"}),
    ),
    Table("summary", summary),
)  # fmt: skip


def answer(table: pd.DataFrame) -> Answer:
    """Say what limits the array of a table."""
    answers = {"contacts": _of_contacts, "boxes": _of_boxes, "nodes": _of_nodes, "cells": _of_cells}
    return answers[_array_of(table)](headline(summary(table), "n"))


def _of_contacts(found: pd.DataFrame) -> Answer:
    """Say which share of the atomic additions aggregation leaves, and how long lists are."""
    found = headline(found, "curve")
    shown = {
        "contacts a disc": lambda row: rounded(row["contacts_per_disc"]),
        "additions left": lambda row: percent(row["aggregated_over_plain"]),
        "least possible": lambda row: percent(row["least_over_plain"]),
    }
    row = headline(found, "step").iloc[0]
    sentence = (
        f"At step {row['step']} of {row['n']:,} discs along {row['curve']}, aggregation leaves "
        f"{percent(row['aggregated_over_plain'])} of {rounded(row['plain_per_disc'])} atomic additions a "
        f"disc, where {percent(row['least_over_plain'])} is the least in a warp; the longest list has "
        f"{row['most_partners']:.0f} partners."
    )
    return Answer(rows_of(found, CASES["contacts"], shown), sentence)


def _of_boxes(found: pd.DataFrame) -> Answer:
    """Say in which share of the trees a box was wrong, without the fence and with it."""
    every = headline(found, "dim")
    shown = {
        "wrong trees": lambda row: f"{row['wrong_trees']:,} of {row['trees']:,}",
        "95 % interval": lambda row: _agreeing(row["wrong_trees"], row["trees"]),
        "races": lambda row: row["races"],
    }
    found = headline(every, "start")
    parts = [
        f"{row['fence']} the fence {row['wrong_trees']:,} of {row['trees']:,} trees have a wrong box "
        f"({_agreeing(row['wrong_trees'], row['trees'])})"
        for row in found.to_dict("records")
    ]
    n, dim, start = found[["n", "dim", "start"]].iloc[0]
    sentence = f"At {n:,} boxes in {dim}D from {start}, {', '.join(parts)}."
    return Answer(rows_of(every, CASES["boxes"], shown, most=4), sentence)


def _of_nodes(found: pd.DataFrame) -> Answer:
    """Say in which share of the trials a node was lost or taken twice, of each structure."""
    shown = {
        "wrong trials": lambda row: f"{row['wrong_trials']:,} of {row['trials']:,}",
        "95 % interval": lambda row: _agreeing(row["wrong_trials"], row["trials"]),
        "nodes": lambda row: row["wrong_nodes"],
    }
    parts = [
        f"{row['wrong_trials']:,} of {row['trials']:,} trials of the {row['structure']}"
        for row in found.to_dict("records")
    ]
    sentence = f"With {found['n'].iloc[0]:,} nodes {listed(parts)} lost a node or gave it to two threads."
    return Answer(rows_of(found, CASES["nodes"], shown), sentence)


def _of_cells(found: pd.DataFrame) -> Answer:
    """Say what memory a grid and a tree take, how long lists are, and how far neighbours lie in memory."""
    found = found.sort_values("filling_fraction", kind="stable")
    one = headline(found, "order")
    shown = {
        "bytes a particle": lambda row: rounded(row["grid_bytes"]),
        "of a tree": lambda row: rounded(row["tree_bytes"]),
        "most in a cell": lambda row: f"{row['most_in_a_cell']:.0f}",
    }
    sparse, dense = one.iloc[0], one.iloc[-1]
    apart = headline(found, "filling_fraction").set_index("order")["slots_apart_90"]
    far = listed(f"{slots:,.0f} along {name}" for name, slots in apart.items())
    sentence = (
        f"With {dense['n']:,} particles a grid takes {rounded(sparse['grid_bytes'])} bytes a particle at "
        f"{percent(sparse['filling_fraction'])}, {rounded(dense['grid_bytes'])} at "
        f"{percent(dense['filling_fraction'])}, and a tree {rounded(dense['tree_bytes'])}; there a cell "
        f"holds up to {dense['most_in_a_cell']:.0f}, and one in ten partners is farther in memory than {far}."
    )
    return Answer(rows_of(one, ["filling_fraction"], shown), sentence)


if __name__ == "__main__":
    main(Config, measure, VIEWS, quick=QUICK, answer=answer, quick_limit=FEW_COUNTS, plan=plan)
