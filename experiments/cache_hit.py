"""How many reads should a cache serve just after a reorder, and how much faster should that make them?

The reads are those of a neighbour search, particle by particle in memory order. The models are those of
`sfc.cache`, at every capacity from one stream. The systems are those of [thesis]: squares, and cuboids 10 d
high, both ordered by a curve in the plane, and cubes ordered in space (`experiments/prediction/systems.py`
states how they were read). A curve gets its own grid, with the power of its base nearest to the given
size as its side.

Hit ratios compare orders of the same reads only: a search that reads whole columns makes many reads of
particles that lie beside each other in memory, so that both its hit ratio and its misses are high. Whether
cuboids need a curve in space is therefore judged by the misses per particle on the same gas: the figures
`misses_*`, drawn for geometries that share their gas, such as cuboids, cuboids_boxes and cuboids_space.
"""

from collections.abc import Iterator
from dataclasses import dataclass
from functools import lru_cache
from pathlib import Path
from typing import Any, ClassVar

import matplotlib.pyplot as plt
import numpy as np
import pandas as pd

import md
import sfc
from experiments.core import Axis, Settings, figures, main, save_table, style, values
from experiments.core.terminal import SMALL_SYSTEM
from experiments.drawing.systems import draw_system
from experiments.prediction.cache_models import MODELS, check_models, predicted
from experiments.prediction.systems import GASES, GEOMETRIES, UNORDERED, Geometry, own_side
from experiments.results.answers import Answer, grid, headline, listed, percent, rounded, spread
from experiments.results.baselines import SHUFFLED

SHOWN_FILLING, SHOWN_ORDER = 0.2, "hilbert"  # in figures over other axes
LEAST_FILLING = 0.05  # in figures over the filling fraction
SHOWN = 320  # particles: the cache of [thesis], used in figures over other axes
THESIS = ("squares", "cuboids", "cubes")  # geometries of [thesis]
_OWN = ["geometry", "search", "nx", "ny", "nz", "particles", "filling_fraction", "ordering", "model"]
_OWN += ["cache_particles"]


@dataclass(frozen=True)
class Config(Settings):
    """Sweep of systems, orderings and models of a cache."""

    TOGETHER: ClassVar[tuple[str, ...]] = ("cache", "model")

    geometry: Axis[str] = THESIS
    """Geometries: squares (discs in a plane), cuboids (columns of a flat box), cubes. With the gas of the
    cuboids: cuboids_boxes (ordered in the plane, boxes of 1 d are read), cuboids_space (ordered in space,
    boxes of 1 d are read). With the gas of the cubes: cubes_columns (ordered in the plane, columns are read),
    cubes_boxes (ordered in the plane, boxes of 1 d are read)."""
    size: Axis[int] = (64,)
    """Side of the system in boxes."""
    filling_fraction: Axis[float] = (0.01, 0.05, 0.1, 0.2, 0.3, 0.4, 0.5)
    """Volume of the spheres over that of the box."""
    ordering: Axis[str] = ("hilbert", "peano", "morton", "row", "zigzag", "gilbert", "shuffled")
    """Memory orders: orderings of `sfc`, each used if it exists in that dimension; shuffled; lattice, the
    order of the lattice sites of the initial state."""
    search: Axis[str] = ("linked",)
    """Neighbour searches; their reads are counted."""
    cache: tuple[int, ...] = (64, 128, 256, SHOWN, 1024, 4096, 16384, 33125, 65536, 262144, 1048576)
    """Capacities of the cache in particles; 320 in [thesis]."""
    model: tuple[str, ...] = MODELS
    """Models of the cache; block is that of [thesis]."""
    gas: str = "granular"
    """Positions of the particles: granular (no overlaps) or ideal (random)."""
    height: int = 10
    """Height of the cuboids, in d."""
    miss_cost: float = 100.0
    """Time of a miss in units of a hit's."""

    def __post_init__(self):
        super().__post_init__()
        known = {
            "geometry": tuple(GEOMETRIES),
            "ordering": (*UNORDERED, *sorted({*sfc.orderings(2), *sfc.orderings(3)})),
            "search": tuple(name for name in md.search.SEARCHES if name != "naive"),
            "gas": GASES,
        }
        self.check_known(known)
        check_models(self.model, self.cache)
        self.check_least({"size": 2, "height": 2})
        self.check("miss_cost", above=0)
        for kind in values(self.geometry):
            most = GEOMETRIES[kind].densest if self.gas == "granular" else 1.0
            self.check("filling_fraction", above=0, high=most, remedy=f"this is {self.gas} {kind}")
            for size in values(self.size):
                particles = GEOMETRIES[kind].particles(size, self.height, self.highest("filling_fraction"))
                self.check_memory(f"--size {size} of {kind}", particles, "particles")


QUICK = {
    "size": (64,),
    "filling_fraction": (0.05, 0.2, 0.4),
    "cache": (64, 256, 320, 1024, 4096),
    "gas": "ideal",
}
MINUTES = 1.5  # CPU time of 92 of 147 cases, extrapolated


def measure(case: Config) -> Iterator[dict]:
    """Yield a row for each model and capacity."""
    geometry = GEOMETRIES[case.geometry]
    if case.ordering not in (*UNORDERED, *sfc.orderings(geometry.ordered)):
        return
    kind: Any = md.search.SEARCHES[case.search]
    if kind.capabilities.moves_particles and case.ordering not in (
        *UNORDERED,
        *kind.cell_orders(geometry.ordered),
    ):
        return
    side = own_side(case.ordering, case.size, geometry.ordered)
    state = _gas(geometry.shape, side, case.height, case.filling_fraction, case.gas, case.seed, case.backend)
    seen = geometry.seen(geometry.in_order(state, case.ordering, case.seed))
    stream = _search(case, seen).accesses()
    nx, ny, nz = (*map(int, state.box.lengths), 1)[:3]
    common = {
        "nx": nx,
        "ny": ny,
        "nz": nz,
        "particles": len(state),
        "reads_per_particle": len(stream.reads) / len(state),
    }
    for row in predicted(stream, case.model, case.cache, case.miss_cost):
        yield common | row


@lru_cache(maxsize=4)
def _gas(
    shape: str, side: int, height: int, filling_fraction: float, gas: str, seed: int, backend: str
) -> md.State:
    return GEOMETRIES[shape].gas(side, height, filling_fraction, gas, 1.0, seed, backend)


def _search(case: Config, state: md.State) -> md.Simulation:
    search = case.search
    kind: Any = md.search.SEARCHES[search]
    if kind.capabilities.moves_particles:
        # sorted by the search's own cells, which are wider than a box if lists have a skin
        search = kind() if case.ordering in UNORDERED else kind(case.ordering)
    return md.Simulation(state, md.scenes.SHARED_LAW, search=search, backend=case.backend)


def draw(table: pd.DataFrame, out: Path) -> None:
    """Draw hits over filling fraction, size and capacity, misses, and the systems; write the tables."""
    if "squares" in set(table["geometry"]):  # so that one of several runs has the picture of all systems
        style.save(_systems(), out, "systems")
    shapes = table["geometry"].map({name: geometry.shape for name, geometry in GEOMETRIES.items()})
    for shape, rows in table.groupby(shapes, sort=False):
        if rows["geometry"].nunique() > 1:
            _misses(rows, out, f"misses_{shape}")
    alone = table[table.groupby(shapes)["geometry"].transform("nunique") == 1]
    for (kind, search), rows in alone.groupby(["geometry", "search"], sort=False):
        name = kind if table["search"].nunique() == 1 else f"{kind}_{search}"
        _over_filling(rows, out, f"filling_{name}")
        if rows["size"].nunique() > 1:
            _over_size(rows, out, f"size_{name}")
        if rows["cache_particles"].nunique() > 1:
            _over_cache(rows, out, f"cache_{name}")
    table = table.drop_duplicates([*_OWN, "repeat"])  # two sizes may give a curve the same grid
    keys = [name for name in _OWN if name != "particles"]
    summary = table.groupby(keys, sort=False)[["hit_ratio", "speed_up"]].agg(["median", "min", "max"])
    summary.columns = ["_".join(column) for column in summary.columns]
    save_table(summary.reset_index(), out, "summary")


def _nearest(column: pd.Series, wanted: float) -> float:
    found = np.sort(column.unique())
    return found[np.abs(np.log(found / wanted)).argmin()]


def _names(rows: pd.DataFrame) -> list[str]:
    return list(dict.fromkeys(rows["ordering"]))


def _over_filling(rows: pd.DataFrame, out: Path, name: str) -> None:
    """Draw figures 5.3 and 5.4, or 5.5 and 5.6, of [thesis]: misses and speed-up over the filling."""
    capacity, size = _nearest(rows["cache_particles"], SHOWN), rows["size"].max()
    model = rows["model"].iloc[0]
    rows = rows[(rows["cache_particles"] == capacity) & (rows["size"] == size) & (rows["model"] == model)]
    note = ""
    if (rows["filling_fraction"] >= LEAST_FILLING).any() and (rows["filling_fraction"] < LEAST_FILLING).any():
        rows = rows[rows["filling_fraction"] >= LEAST_FILLING]
        note = f"; below {LEAST_FILLING:.0%} in the table, for there repeats differ"
    every = _names(rows)
    names = style.few(every)
    rows = rows.assign(misses=1 - rows["hit_ratio"])
    figure, (missed, gain) = figures.panels_in_a_row(["", ""], 3.1, 3.3, 1.2)
    for panel, column in ((missed, "misses"), (gain, "speed_up")):
        figures.median_lines(panel, rows, "filling_fraction", column, style.lines(names), gaps=True)
        panel.set_xlabel("filling fraction")
        if (rows[column] > 0).any():  # a cache may hold all of a small system
            panel.set_yscale("log", nonpositive="mask")
            figures.plain_log_ticks(panel)
    missed.set_ylabel("predicted misses, share of the reads")
    gain.set_ylabel("speed-up of the reads over no hits")
    figures.name_lines(gain, "memory order", [missed, gain])
    left_out = style.left_out(every, names)
    title = f"{rows['geometry'].iloc[0]} of about {size} boxes a side, model {model}, cache of {capacity} "
    title += f"particles; {_over(rows)}{note}" + (f"\n{left_out}" if left_out else "")
    figures.titled(figure, title, out, name, rows)


def _misses(rows: pd.DataFrame, out: Path, name: str) -> None:
    """Draw the misses per particle of geometries with the same gas over filling fraction; write a table."""
    size, search = rows["size"].max(), rows["search"].iloc[0]
    rows = rows[(rows["size"] == size) & (rows["search"] == search)].copy()
    rows["misses_per_particle"] = rows["reads_per_particle"] * (1 - rows["hit_ratio"])
    keys = ["model", "cache_particles", "filling_fraction", "geometry", "ordering"]
    misses = rows.groupby(keys, sort=False)["misses_per_particle"].agg(["median", "min", "max"])
    save_table(misses.add_prefix("misses_per_particle_").reset_index(), out, name)
    rows["order"] = [
        order if order in UNORDERED else f"{order} in {_where(GEOMETRIES[kind])}"
        for kind, order in zip(rows["geometry"], rows["ordering"], strict=True)
    ]
    rows["order"] += [f", {_reads(GEOMETRIES[kind])} read" for kind in rows["geometry"]]
    parts = []
    for model, own in rows.groupby("model", sort=False):
        capacity = _nearest(own["cache_particles"], SHOWN)
        parts.append((f"{str(model).replace('_', '-')}, {capacity:,} particles", own, capacity))
    figure, panels = figures.panels_in_a_row([title for title, *_ in parts], 2.7, 3.4, 2.6, sharey=True)
    look = style.lines_in_turn(list(dict.fromkeys(rows["order"])), "order")
    for panel, (_, own, capacity) in zip(panels, parts, strict=True):
        own = own[own["cache_particles"] == capacity]
        figures.median_lines(panel, own, "filling_fraction", "misses_per_particle", look)
        panel.set(xlabel="filling fraction", ylabel="predicted misses per particle", yscale="log")
        figures.plain_log_ticks(panel)
    figures.name_lines(panels[-1], "memory order, and what is read", panels)
    lengths = " x ".join(f"{rows[axis].max()}" for axis in ("nx", "ny", "nz"))
    figures.titled(figure, f"the same gas in a box of {lengths} d; {_over(rows)}", out, name, rows)


def _where(geometry: Geometry) -> str:
    return "the plane" if geometry.ordered == 2 else "space"


def _reads(geometry: Geometry) -> str:
    return "columns" if geometry.read < geometry.dim else "boxes"


def _over_size(rows: pd.DataFrame, out: Path, name: str) -> None:
    """Draw figure 5.9 of [thesis], misses over size: of the orders at one filling, of one order at all."""
    capacity, model = _nearest(rows["cache_particles"], SHOWN), rows["model"].iloc[0]
    rows = rows[(rows["cache_particles"] == capacity) & (rows["model"] == model)]
    every, phi = _names(rows), _nearest(rows["filling_fraction"], SHOWN_FILLING)
    names = style.few(every)
    one = SHOWN_ORDER if SHOWN_ORDER in every else names[0]
    rows = rows.assign(misses=1 - rows["hit_ratio"], phi=[f"{100 * x:g} %" for x in rows["filling_fraction"]])
    titles = [f"{phi:.0%} filled", one]
    figure, panels = figures.panels_in_a_row(titles, 3.5, 3.3, 0.6, sharey=True)
    dense = rows[rows["filling_fraction"] >= LEAST_FILLING]
    fillings = list(dict.fromkeys(dense["phi"] if len(dense) else rows["phi"]))
    parts = [
        (rows[rows["filling_fraction"] == phi], style.lines(names), "memory order"),
        (rows[rows["ordering"] == one], style.steps_in_turn(fillings, "phi"), "filled"),
    ]
    for panel, (part, look, heading) in zip(panels, parts, strict=True):
        figures.median_lines(panel, part, "nx", "misses", look, gaps=look["hue"] == "phi")
        panel.set(ylim=(0, None), ylabel="predicted misses, share of the reads")
        figures.size_axis(panel, "boxes a side")
        figures.name_lines(panel, heading)
    left_out = style.left_out(every, names)
    title = f"{rows['geometry'].iloc[0]}, model {model}, cache of {capacity} particles; {_over(rows)}"
    title += f"\n{left_out}" if left_out else ""
    figures.titled(figure, title, out, name, rows)


def _over_cache(rows: pd.DataFrame, out: Path, name: str) -> None:
    """Draw misses over the capacity, with a panel for each model."""
    phi, size = _nearest(rows["filling_fraction"], SHOWN_FILLING), rows["size"].max()
    rows = rows[(rows["filling_fraction"] == phi) & (rows["size"] == size)]
    rows = rows.assign(misses=1 - rows["hit_ratio"])
    models, every = list(dict.fromkeys(rows["model"])), _names(rows)
    names = style.few(every)
    titles = [model.replace("_", "-") for model in models]
    figure, panels = figures.panels_in_a_row(titles, 2.7, 3.2, 1.2, sharey=True)
    for panel, model in zip(panels, models, strict=True):
        part = rows[rows["model"] == model]
        figures.median_lines(panel, part, "cache_particles", "misses", style.lines(names), gaps=True)
        panel.set(xscale="log", xlabel="capacity (particles)")
        panel.set_yscale("log", nonpositive="mask")
        figures.plain_log_ticks(panel, horizontal=True)
    panels[0].set_ylabel("predicted misses, share of the reads")
    figures.plain_log_ticks(panels[0])
    figures.name_lines(panels[-1], "memory order", panels)
    left_out = style.left_out(every, names)
    title = f"{rows['geometry'].iloc[0]} of about {size} boxes a side, {phi:.0%} filled; {_over(rows)}"
    title += f"\n{left_out}" if left_out else ""
    figures.titled(figure, title, out, name, rows)


def _over(rows: pd.DataFrame) -> str:
    """Return what the points and ranges of a figure are."""
    gases = rows["repeat"].nunique() if "repeat" in rows else 1
    return f"median and range over {gases} gases" if gases > 1 else "one gas"


def _systems() -> plt.Figure:
    """Draw figure 5.2 of [thesis]."""
    figure = plt.figure(figsize=(7.2, 3.0), layout="none")
    for place, (name, side, height) in enumerate((("squares", 6, 1), ("cuboids", 6, 10), ("cubes", 6, 6))):
        panel = figure.add_subplot(1, 3, place + 1, projection="3d")
        draw_system(panel, (side, side, height), columns=name == "cuboids")
        panel.set_title(name, y=1.0)
    figure.subplots_adjust(left=0.0, right=1.0, bottom=0.0, top=0.88, wspace=0.0)
    return figure


def answer(table: pd.DataFrame) -> Answer:
    """Say which share of the reads a cache should serve along each order, and what that is worth."""
    rows = headline(table, "geometry", "search", "model", "size")
    rows = rows[rows["cache_particles"] == _nearest(rows["cache_particles"], SHOWN)]
    phi = _nearest(rows["filling_fraction"], 0.2)
    at = rows[rows["filling_fraction"] == phi].groupby("ordering", sort=False)
    middle = at[["hit_ratio", "speed_up"]].median().sort_values("hit_ratio", ascending=False)
    curves = sorted(middle.index.difference(list(UNORDERED), sort=False), key=lambda name: name != "hilbert")
    second = ["row"] if "row" in curves[1:] else curves[1:][-1:]
    named = [*curves[:1], *second, *(name for name in UNORDERED[:1] if name in middle.index)]
    keys = "ordering", "filling_fraction"
    found = rows.groupby([*keys])["hit_ratio"].agg(list).reindex(named, level="ordering").reset_index()
    shares = {name: spread(own, percent) for name, own in at["hit_ratio"]}
    parts = [
        f"{shares[name]} {'in shuffled memory' if name == SHUFFLED else f'along {name}'}" for name in named
    ]
    first, served = rows.iloc[0], listed(parts or ["none of a curve"])
    sentence = (
        f"Of the reads at {percent(phi)} filled, a cache of {first['cache_particles']:,} particles should "
        f"serve {served} ({first['model']} model, {first['geometry']} of {first['size']} boxes a side)"
    )
    if curves and SHUFFLED in named:
        gain = middle.loc[curves[0], "speed_up"] / middle.loc[SHUFFLED, "speed_up"]
        sentence += f"; by the formula of [thesis], which measured times refute (T4), {curves[0]} would make "
        sentence += f"reads {rounded(gain)} times as fast"
    return Answer(grid(found, *keys, _share, "reads that hit", percent), f"{sentence}.")


def _share(row: dict) -> str:
    return spread(row["hit_ratio"], percent)


if __name__ == "__main__":
    main(Config, measure, draw, quick=QUICK, answer=answer, quick_limit=SMALL_SYSTEM, minutes=MINUTES)
