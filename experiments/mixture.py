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
from pathlib import Path
from typing import Any, ClassVar

import pandas as pd

import md
from experiments.core import Axis, TimedSettings, figures, main, save_table, statistics, style
from experiments.core.terminal import FITS_CACHE
from experiments.measurement.correctness import check_pairs
from experiments.measurement.hardware_caches import working_set
from experiments.measurement.rounds import Entry, take_rounds
from experiments.measurement.step_times import whole_steps
from experiments.results.answers import Answer, compared, headline
from experiments.results.baselines import again, is_again, original
from md.backend import Backend
from md.scenes.clusters import MOST
from md.simulation import PRECISIONS

TREES = ("lbvh", "reflexive", "wide_bvh", "verlet_tree")
AXES = {"widest": "diameter of the large spheres (d)", "room": "volume of the box over that of the clusters"}
_CASE = [*AXES, "search"]


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
    entries, twice = [], _baseline(case.search)
    for search in case.search:
        names = (search, again(search)) if search == twice else (search,)
        entries += [_entry(case, place, name) for name in names]
    yield from take_rounds(entries, case.rounds, place, seed=case.seed, begin=begin)


def _baseline(searches: Sequence[str]) -> str:
    """Return the first search on a grid, or else the first search."""
    return next((name for name in searches if name not in (*TREES, "naive")), searches[0])


def _entry(case: Config, place: Backend, name: str) -> Entry:
    """Create a simulation with a search, check it, and return it ready to be sampled."""
    search, state = original(name), _start(case)
    options: dict[str, Any] = {"dt": md.scenes.SHARED_DT, "backend": place, "precision": case.precision}
    kind: Any = md.search.SEARCHES[search]
    fused = kind.capabilities.fusable
    sim = md.Simulation(state, md.scenes.SHARED_LAW, search=search, fused=fused, **options)
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
        "temperature_start": md.observe.temperature(sim.state),
        **working_set(len(sim), 3, case.precision, place),
    }

    def sample() -> Iterator[dict]:
        sim.run(1, phases=False)  # loads the caches again after other cases
        ms = whole_steps(sim, case.steps)
        yield {"time_ms": ms / case.steps, "sample_ms": ms}

    return Entry(columns, sample, lambda: {"temperature_end": md.observe.temperature(sim.state)})


@lru_cache(maxsize=1)
def _start(case: Config) -> md.State:
    """Make the mixture of a case in shuffled memory."""
    state = _gas(case.n, case.filling_fraction, case.seed, case.backend)
    if case.widest > 1:
        state = md.scenes.with_large_spheres(state, case.share, case.widest, case.seed, case.backend)
    return md.scenes.in_memory_order(md.scenes.in_clusters(state, case.room), "shuffled", case.seed)


@lru_cache(maxsize=1)
def _gas(n: int, filling_fraction: float, seed: int, backend: str) -> md.State:
    return md.scenes.shared_gas(n, filling_fraction, seed=seed, backend=backend)


def draw(table: pd.DataFrame, out: Path) -> None:
    """Draw time, gain over a grid and partners read; write the summary.

    The horizontal axis is the large diameter, or the room of the clusters if that alone has several values.
    If both have, there is a figure for each room.
    """
    table = statistics.with_rounds(_with_room(table), _CASE)
    save_table(summary(table), out, "summary")
    axis = "room" if table["widest"].nunique() == 1 < table["room"].nunique() else "widest"
    if axis == "room" or table["room"].nunique() == 1:
        _draw(table, axis, out, "mixture")
        return
    for room, part in table.groupby("room"):
        _draw(part, axis, out, f"mixture_room_{room:g}")


def _with_room(table: pd.DataFrame) -> pd.DataFrame:
    """Return a table with the column `room`, which those of older runs lack."""
    return table if "room" in table else table.assign(room=1.0)


def _draw(table: pd.DataFrame, axis: str, out: Path, name: str) -> None:
    """Draw a figure over an axis of `AXES`."""
    found, gains, baseline = summary(table), _gains(table), _baseline(list(table["search"].unique()))
    look = style.lines_in_turn(list(found["search"].unique()), "search")
    if found[axis].nunique() == 1:
        _draw_dots(found, gains, axis, out, name)
        return
    count = 3 - gains.empty
    figure, panels = figures.panels_in_a_row([""] * count, 3.2, margin=1)
    figures.lines(panels[0], found, axis, "time_ms", look, scale=1e6 / found["spheres"], log=True)
    figures.whole_centres_on_log(panels[0], found, "time_ms", 1e6 / found["spheres"])
    panels[0].set(ylabel="time per sphere and step (ns)")
    if not gains.empty:
        figures.lines(panels[1], gains, axis, "gain", look, log=True)
        figures.noise_band(panels[1], gains)
        figures.gain_axis(panels[1], gains)
        panels[1].set(ylabel=f"gain of a step over {baseline}")
    for search in look["hue_order"]:
        part = found[found["search"] == search].sort_values(axis)
        mark = {"color": look["palette"][search], "marker": look["markers"][search], "label": search}
        panels[-1].plot(part[axis], part["partners_read"], markersize=4.5, linewidth=1.2, **mark)
    panels[-1].set(ylabel="partners read by a sphere", yscale="log")
    for panel in panels:
        figures.size_axis(panel, AXES[axis])
    figures.plain_log_ticks(panels[-1])
    figures.name_lines(panels[-1], "search")
    figures.titled(figure, _title(found, gains), out, name)


def _draw_dots(found: pd.DataFrame, gains: pd.DataFrame, axis: str, out: Path, name: str) -> None:
    """Draw a row of dots for each search, where the axis has a single value."""
    names, each = list(found["search"].unique()), 1e6 / found["spheres"].iloc[0]
    look = {"hue_order": [""], "palette": {"": style.TURNS[0]}, "markers": {"": "o"}}
    reads = {f"partners_read_{end}": found["partners_read"] for end in ("low", "high")}
    shown = [
        (found, "time_ms", each, "time per sphere\nand step (ns)"),
        (gains, "gain", 1.0, f"gain of a step\nover {_baseline(names)}"),
        (found.assign(**reads), "partners_read", 1.0, "partners read\nby a sphere"),
    ]
    shown = [one for one in shown if not one[0].empty]
    figure, panels = figures.panels_in_a_row([""] * len(shown), 2.3, 1.6 + 0.25 * len(names), sharey=True)
    for panel, (rows, value, scale, label) in zip(panels, shown, strict=True):
        figures.dots_by_name(panel, rows.assign(name=rows["search"], state=""), names, look, value, scale)
        figures.plain_log_axis(panel, rows, value, scale, label)
        if value == "gain":
            figures.noise_band(panel, rows, horizontal=True)
            figures.gain_axis(panel, rows, horizontal=True)
    at = f"{AXES[axis]}: {found[axis].iloc[0]:g}"
    figures.titled(figure, f"{at}; {_title(found, gains)}", out, name)


def _title(found: pd.DataFrame, gains: pd.DataFrame) -> str:
    """Describe the spheres, and what dots and bars are."""
    share = found["large"].max() / found["spheres"].max()
    sizes = f"up to {share:.2%} of the spheres large" if share else "equal spheres"
    sizes += "" if found["room"].max() == 1 else ", in 8 clusters"
    noise = "; grey: noise (one case measured twice)" if gains["noise_floor"].notna().any() else ""
    return f"{sizes}\n{statistics.caption(found)}{noise}"


def summary(table: pd.DataFrame) -> pd.DataFrame:
    """Average over runs each search in each mixture: its time, and its gain over the baseline.

    Args:
        table: with columns `run`, `round` and `room`.
    """
    found = statistics.over_runs(table, _CASE, "time_ms")
    medians = table.groupby(_CASE, sort=False)[["partners_read", "spheres", "large"]].median().reset_index()
    found = found.merge(medians, on=_CASE)
    found["ns_per_sphere"] = 1e6 * statistics.bounds(found, "time_ms")["centre"] / found["spheres"]
    gains = _gains(table)
    if not gains.empty:
        over = statistics.named(gains, _baseline(list(table["search"].unique())))
        found = found.merge(over, on=_CASE, how="left")
    return found[~found["search"].map(is_again)]


def _gains(table: pd.DataFrame) -> pd.DataFrame:
    return statistics.gains(table, list(AXES), "search", _baseline(list(table["search"].unique())))


def answer(table: pd.DataFrame) -> Answer:
    """Compare the fastest searches with the first one on a grid, over the axis that varies."""
    rows = statistics.with_rounds(_with_room(table), _CASE)
    axis = "room" if rows["widest"].nunique() == 1 < rows["room"].nunique() else "widest"
    rows = headline(rows, next(name for name in AXES if name != axis))
    rows = rows.sort_values(axis, ascending=False, kind="stable")
    spheres, widest, room = (rows[name].iloc[0] for name in ("spheres", "widest", "room"))
    where = f"With large spheres of {widest:g} d and room {room:g} ({spheres:,} spheres)"
    baseline = _baseline(list(rows["search"].unique()))
    return compared(rows, "search", [baseline], axis, where, lambda value: f"{axis} {value:g}")


if __name__ == "__main__":
    main(Config, measure, draw, quick=QUICK, answer=answer, quick_limit=FITS_CACHE, minutes=MINUTES)
