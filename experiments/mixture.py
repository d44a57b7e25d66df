"""Where spheres differ in size, or are in clusters far apart, what does a grid cost, and what a tree?

The cells of a grid are as wide as the widest spheres, so that small spheres test more and more partners, and
they cover the space between clusters too. A tree uses each sphere's own radius, and has no cells. In a gas of
small spheres some have grown, and the spheres that would overlap with them are removed. With `room` above 1
the octants of the gas are moved apart. The gas starts in shuffled memory; `coherent`, `tiles`, `verlet`,
`verlet_tree` and the trees sort it themselves. Before anything is timed, touching pairs are compared with
those that another search finds.

All searches of a case are sampled once a round, in random order: a step that is not timed, and `steps` timed
steps. The baseline of the gains is the first search on a grid. It is measured twice: the difference of the
two is noise.
"""

from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from functools import lru_cache
from typing import ClassVar

import pandas as pd

import md
from experiments.core import Axis, TimedSettings, main
from experiments.core.terminal import FITS_CACHE
from experiments.measurement.correctness import check_pairs
from experiments.measurement.rounds import Entry, take_rounds
from experiments.measurement.step_times import benchmark_simulation, entry_of, sample_of_steps
from experiments.results.answers import Answer, Comparison, percent
from experiments.results.baselines import again, original
from experiments.results.charts import GAINS, LINES, MIDDLE, Chart, Points, Scale, Summary
from md.backend import Backend
from md.scenes.clusters import MOST
from md.simulation import PRECISIONS

TREES = ("lbvh", "reflexive", "wide_bvh", "verlet_tree")
AXES = {"widest": "diameter of the large spheres (d)", "room": "volume of the box over that of the clusters"}


@dataclass(frozen=True)
class Config(TimedSettings):
    """Sweep of mixtures. All searches of a case are in memory at once."""

    TOGETHER: ClassVar[tuple[str, ...]] = ("search",)

    n: int = 2**16
    """Number of spheres before some grow. Take 2097152 on a GPU."""
    filling_fraction: float = 0.2
    """Volume of the spheres over that of the box before some grow, up to 0.5."""
    widest: Axis[float] = (1.0, 2.0, 4.0, 8.0)
    """Diameter of the spheres that grow, in d."""
    room: Axis[float] = (1.0,)
    """Volume of the box over that of the gas: above 1 the gas is in 8 clusters far apart."""
    share: float = 0.002
    """Share of the spheres that grow."""
    search: tuple[str, ...] = ("coherent", "tiles", "verlet", "lbvh", "wide_bvh", "verlet_tree")
    """Neighbour searches. The first one on a grid is the baseline of the gains."""
    precision: str = "float32"
    """Precision of positions, velocities and forces."""
    steps: int = 10
    """Number of steps in a sample. Take 100 on a GPU."""
    warmup: int = 10
    """Number of steps before the checks. Untimed rounds follow, until nothing is compiled or recorded."""

    def __post_init__(self):
        super().__post_init__()
        self.check_known({"search": tuple(md.search.SEARCHES), "precision": PRECISIONS})
        self.check_above_zero({"filling_fraction": 0.5, "share": 1.0})
        self.check_least({"n": 100, "widest": 1, "room": 1, "steps": 1, "warmup": 1})
        self.check_particles(len(self.search) + 1)
        side = md.scenes.box_for(self.n, self.filling_fraction).lengths[0]
        self.check("room", high=MOST)
        self.check("widest", high=side / 2, unit="d, half the box", remedy="take more spheres with --n")


QUICK = {"n": 2**13, "widest": (1.0, 4.0), "runs": 1}
MINUTES = 6  # CPU time of one case and two rounds of a smaller size, extrapolated


def measure(case: Config, begin: int = 0) -> Iterator[list[dict]]:
    """Yield the rounds from `begin` on: the mean time of a sample's steps."""
    place = md.backend.get(case.backend)  # one backend for all: its count of recorded graphs covers all
    names = [*case.search]
    names.insert(names.index(twice := _baseline(names)) + 1, again(twice))
    entries = [_entry(case, place, name) for name in names]
    yield from take_rounds(entries, case.rounds, place, seed=case.seed, begin=begin)


def _baseline(searches: Sequence[str]) -> str:
    """Return the first search on a grid, or else the first search."""
    return next((name for name in searches if name not in (*TREES, "naive")), searches[0])


def _entry(case: Config, place: Backend, name: str) -> Entry:
    """Create a simulation with a search, check it, and return it ready to be sampled."""
    search, state = original(name), _start(case)
    fused = md.search.search(search).capabilities.fusable
    sim = benchmark_simulation(state, case, search, backend=place, fused=fused)
    sim.run(case.warmup, phases=False)
    on_grid = any(name not in TREES for name in case.search)
    reference = "linked" if on_grid and search != "linked" else "reflexive" if search == "lbvh" else "lbvh"
    touching = check_pairs(sim, search, reference, case.precision, allow_overlap=True)
    columns = {
        "search": name,
        "spheres": len(sim),
        "large": 0 if state.radius is None else int((state.radius > 0.5).sum()),
        "touching_pairs": touching,
        "partners_read": sim.access_count() / len(sim),
    }
    return entry_of(sim, columns, lambda: [sample_of_steps(sim, case.steps)])


@lru_cache(maxsize=1)
def _start(case: Config) -> md.State:
    """Make the mixture of a case in shuffled memory."""
    state = md.scenes.benchmark_gas(case.n, case.filling_fraction, seed=case.seed, backend=case.backend)
    if case.widest > 1:
        state = md.preparation.with_large_spheres(state, case.share, case.widest, case.seed, case.backend)
    return md.scenes.in_memory_order(md.scenes.in_clusters(state, case.room), "shuffled", case.seed)


def _baselines(table: pd.DataFrame) -> list[str]:
    return [_baseline(list(table["search"].unique()))]


def _note(table: pd.DataFrame) -> str:
    """Describe the spheres."""
    share = (table["large"] / table["spheres"]).max()
    sizes = f"up to {percent(share)} of the spheres large" if share else "equal spheres"
    return sizes + ("" if table["room"].max() == 1 else ", in 8 clusters")


def _chart(name: str, column: str, where: str, varying: tuple[str, ...], single: tuple[str, ...]) -> Chart:
    """Return the chart over an axis of `AXES`."""
    return Chart(
        name, f"With {where}, a sphere and step takes {{value}} ns by {{best}}, {{of_worst}} ns by {{worst}}",
        LINES, (Points("time_ms", scale="1e6 / spheres"),
                Points("time_ms", over=_baselines, compared="search", values=GAINS),
                Points("partners_read", statistic=MIDDLE, values=Scale("partners read by a sphere", log=10))),
        Scale(AXES[column], column, log=2), Scale("time per sphere and step (ns)", log=10),
        "search", "search", note=_note, varying=varying, single=single,
    )  # fmt: skip


VIEWS = (
    _chart("mixture", "widest", "large spheres of {widest} d", (), ("room",)),
    _chart("mixture_room_{room}", "widest", "large spheres of {widest} d", ("room", "widest"), ()),
    _chart("mixture", "room", "a room of {room}", ("room",), ("widest",)),
    Summary(
        tuple(AXES), "search", _baselines,
        more={"partners_read": "median", "spheres": "median", "large": "median",
              "ns_per_sphere": "1e6 * value / spheres"},
    ),
)  # fmt: skip


def answer(table: pd.DataFrame) -> Answer:
    """Compare the fastest searches with the first one on a grid, over the axis that varies."""
    axis, other = ("room", "widest") if table["widest"].nunique() == 1 < table["room"].nunique() else AXES
    compared = Comparison(
        "search", _baselines, axis, "With large spheres of {widest} d and room {room} ({spheres} spheres)",
        fixed=(other,), heading=lambda value: f"{axis} {value:g}",
        prepare=lambda rows: rows.sort_values(axis, ascending=False, kind="stable"),
    )  # fmt: skip
    return compared(table)


if __name__ == "__main__":
    main(Config, measure, VIEWS, quick=QUICK, answer=answer, quick_limit=FITS_CACHE, minutes=MINUTES)
