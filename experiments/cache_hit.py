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

With `--average tiles` the hits of squares are mapped, as in figure 5.13 of [thesis]: each tile of a map shows
the mean over its particles, so that particles that are cached together have one colour. The figure has
unordered memory, rows and Hilbert's curve, for a CPU's cache of 33125 particles and a GPU's of 256.

`--machine h200` also follows the warps of the force kernel through both caches of that chip (float32,
fused; see `experiments.foresee`), for linked and scattered: `machine_misses`, the share of sectors that its
first cache lacks, `machine_bytes` from and to memory for each particle, and `machine_us`, the time of a
launch. That model foresees times, which the hit ratios of the other models do not (T4).
"""

import itertools
from collections.abc import Callable, Iterable, Iterator
from dataclasses import dataclass
from functools import lru_cache
from pathlib import Path
from typing import Any, ClassVar

import matplotlib.pyplot as plt
import numpy as np
import pandas as pd

import md
import sfc
from experiments.core import Axis, Settings, figures, main, style, values
from experiments.core.settings import UsageError
from experiments.core.terminal import SMALL_SYSTEM
from experiments.drawing.systems import draw_system
from experiments.forecasts.predicted import forecasts
from experiments.loads import step_loads
from experiments.prediction.cache_models import MODELS, check_models, predicted
from experiments.prediction.systems import GASES, GEOMETRIES, UNORDERED, check_systems, own_side
from experiments.results.answers import Answer, grid, headline, listed, percent, rounded, spread
from experiments.results.baselines import SHUFFLED
from experiments.results.charts import (
    DOTS,
    FILLED,
    LINES,
    ORDERS,
    Chart,
    Points,
    Scale,
    Table,
    View,
    estimates,
)
from sfc.cache import Machine

CACHE = 320  # particles: the cache of [thesis], used in figures over other axes
CURVE = "hilbert"
NEAR = 1.5  # most misses over those of Hilbert's curve in the figure of that ratio
LEAST_FILLING = 0.05  # in figures over the filling fraction
SYSTEM, TILES = "system", "tiles"
ON_MACHINE = ("linked", "scattered")  # searches that leave the particles in their order
THESIS = ("squares", "cuboids", "cubes")  # geometries of [thesis]
_OWN = ["geometry", "search", "nx", "ny", "nz", "filling_fraction", "ordering", "model", "cache_particles"]
MAP_OF = ["filling_fraction", "ordering", "cache_particles"]
SHAPES = {name: geometry.shape for name, geometry in GEOMETRIES.items()}


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
    cache: tuple[int, ...] = (64, 128, 256, CACHE, 1024, 4096, 16384, 33125, 65536, 262144, 1048576)
    """Capacities of the cache in particles; 320 in [thesis]."""
    model: tuple[str, ...] = MODELS
    """Models of the cache; block is that of [thesis]."""
    gas: str = "granular"
    """Positions of the particles: granular (no overlaps) or ideal (random)."""
    height: int = 10
    """Height of the cuboids, in d."""
    average: str = SYSTEM
    """Particles over which hits are averaged: system (all), tiles (each tile of a map, of squares with the
    search linked and the model block)."""
    tiles: int = 128
    """Number of tiles of a map a side, at most as many as boxes."""
    miss_cost: float = 100.0
    """Time of a miss in units of a hit's."""
    machine: str = ""
    """Chip on which the force kernel is foreseen too: h100, h200, or a file that experiments.machine wrote;
    none if empty."""

    def __post_init__(self):
        super().__post_init__()
        self.check_known({
            "geometry": GEOMETRIES,
            "ordering": (*UNORDERED, *sorted({*sfc.orderings(2), *sfc.orderings(3)})),
            "search": [name for name in md.search.SEARCHES if name != "naive"],
            "gas": GASES,
            "average": (SYSTEM, TILES),
        })  # fmt: skip
        check_models(self.model, self.cache)
        self.check_least({"size": 2, "height": 2, "tiles": 1})
        self.check("miss_cost", above=0)
        self._check_machine()
        check_systems(self, self.height, is_packed=self.gas == "granular")
        if self.average == TILES:
            for name, allowed in {"geometry": "squares", "search": "linked", "model": "block"}.items():
                if {*values(getattr(self, name))} != {allowed}:
                    given = " ".join(values(getattr(self, name)))
                    raise UsageError(f"--{name} {given} beside --average tiles; allowed: {allowed}")
            most = min(values(self.size), default=self.tiles)
            self.check("tiles", low=1, high=most, remedy="at most as many as --size")

    def _check_machine(self) -> None:
        """Check that the machine is known, and that all searches are foreseen there.

        Raises:
            ValueError: no such machine, or another search.
        """
        if not self.machine:
            return
        Machine.read(self.machine)
        if others := {*values(self.search)} - {*ON_MACHINE}:
            raise UsageError(
                f"--machine {self.machine} beside --search {min(others)}; allowed: {', '.join(ON_MACHINE)}"
            )
        if self.average == TILES:
            raise UsageError(f"--machine {self.machine} beside --average tiles; allowed: --average system")


QUICK = {
    "size": (64,), "filling_fraction": (0.05, 0.2, 0.4), "cache": (64, 256, 320, 1024, 4096), "gas": "ideal",
    "tiles": 32,
}  # fmt: skip
MINUTES = 1.5  # CPU time of 92 of 147 cases, extrapolated


def measure(case: Config) -> Iterator[dict]:
    """Yield a row for each model and capacity, or for each capacity and tile."""
    geometry = GEOMETRIES[case.geometry]
    kind: Any = md.search.SEARCHES[case.search]
    known = {*sfc.orderings(geometry.ordered)}
    if kind.capabilities.moves_particles:
        known &= {*kind.cell_orders(geometry.ordered)}
    if case.ordering not in (*UNORDERED, *known):
        return
    side = own_side(case.ordering, case.size, geometry.ordered)
    state = _gas(geometry.shape, side, case.height, case.filling_fraction, case.gas, case.seed, case.backend)
    seen = geometry.seen(geometry.in_order(state, case.ordering, case.seed))
    search: Any = case.search
    if kind.capabilities.moves_particles:
        # sorted by the search's own cells, which are wider than a box if lists have a skin
        search = kind() if case.ordering in UNORDERED else kind(case.ordering)
    sim = md.Simulation(seen, md.scenes.BENCHMARK_LAW, search=search, backend=case.backend)
    stream = sim.accesses()
    nx, ny, nz = (*map(int, state.box.lengths), 1)[:3]
    common: dict[str, Any] = {"nx": nx, "ny": ny, "nz": nz, "particles": len(state)}
    hits = predicted(stream, case.model, case.cache, case.miss_cost)
    of_reads = {"reads_per_particle": len(stream.reads) / len(state)}
    if case.machine:
        common |= _on_machine(case, seen)
    for row in _tiles(case, seen, stream) if case.average == TILES else hits:
        yield common | of_reads | row


def _on_machine(case: Config, state: md.State) -> dict[str, Any]:
    """Foresee a launch of the force kernel on a chip, for particles in their memory order."""
    sim = md.Simulation(
        state, md.scenes.BENCHMARK_LAW, search=case.search, dt=md.scenes.BENCHMARK_DT, precision="float32",
        backend="cpu", fused=True, allow_overlap=True,
    )  # fmt: skip
    chips = {case.machine: Machine.read(case.machine)}
    ((name, found),) = forecasts(step_loads(sim), case.search, len(state), chips, case.seed)
    misses = found["missed"] / found["sectors"] if found["sectors"] else 0.0
    return {"machine": name, "machine_misses": misses, "machine_bytes": found["bytes"],
            "machine_us": found["time_us"]}  # fmt: skip


def _tiles(case: Config, state: md.State, stream: sfc.cache.AccessStream) -> Iterator[dict]:
    """Yield a row for each capacity and tile."""
    side = int(state.box.lengths[0])
    tiles = min(case.tiles, side)
    x, y = np.minimum((state.pos * (tiles / side)).astype(int), tiles - 1)[stream.readers].T
    reads = np.bincount(x + tiles * y, np.diff(stream.offsets), tiles**2)
    for capacity in case.cache:
        hits = np.bincount(x + tiles * y, sfc.cache.block_hits(stream, capacity), tiles**2)
        for k in range(tiles**2):
            yield {
                "model": "block",
                "cache_particles": capacity,
                "tile_x": k % tiles,
                "tile_y": k // tiles,
                "reads": int(reads[k]),
                "hit_ratio": hits[k] / reads[k] if reads[k] else float("nan"),
            }


@lru_cache(maxsize=4)
def _gas(
    shape: str, side: int, height: int, filling_fraction: float, gas: str, seed: int, backend: str
) -> md.State:
    return GEOMETRIES[shape].gas(side, height, filling_fraction, gas, 1.0, seed, backend)


def _nearest(wanted: float) -> Callable[[pd.Series], Any]:
    """Return a function that gives the value of a column nearest to a number, by their ratio."""
    return lambda column: min(sorted(column.unique()), key=lambda value: abs(np.log(value / wanted)))


# What figures over other axes show: of each geometry and search, the value of a column.
SHOWN: dict[str, Any] = {
    "size": "max", "model": "first", "cache_particles": _nearest(CACHE), "filling_fraction": _nearest(0.2)
}  # fmt: skip


def _at(rows: pd.DataFrame, columns: Iterable[str]) -> pd.DataFrame:
    """Select, of each geometry and search, the rows with the values of columns in `SHOWN`."""
    for name in columns:
        rows = rows[rows[name] == rows.groupby(["geometry", "search"])[name].transform(SHOWN[name])]
    return rows


def _sentence(rows: pd.DataFrame) -> str:
    """Say what is missed in the best and in the worst order that is drawn, where other figures show it."""
    rows = _at(rows, SHOWN)
    drawn = rows[rows["ordering"].isin(style.few(list(rows["ordering"].unique())))]
    found = estimates(drawn, Points("misses"), ["ordering"]).sort_values("value")
    ends = [f"{percent(row['value'])} in {row['ordering']} order" for row in found.to_dict("records")]
    at = rows.iloc[0]
    return (
        f"{at['geometry']} of about {at['size']:,} boxes a side, {percent(at['filling_fraction'])} filled: a "
        f"cache of {at['cache_particles']:,} particles (model {at['model']}) misses {ends[0]}, {ends[-1]}"
    )


def _shares_gas(table: pd.DataFrame) -> pd.Series:
    """Mark the rows of geometries that share their gas with another one in the table."""
    return table.groupby(table["geometry"].map(SHAPES))["geometry"].transform("nunique") > 1


def _rows(*columns: str, over: str = "", least: float = 0) -> Callable[[pd.DataFrame], pd.DataFrame]:
    """Return a function that selects the rows of a chart, and adds their misses.

    They are those of geometries that share their gas with no other one in the table, with the values of
    `columns` in `SHOWN`. There are none if a line over the column `over` would have fewer than three points.
    Fillings below `least` are left out if there are others.
    """

    def rows(table: pd.DataFrame) -> pd.DataFrame:
        table = _at(table[~_shares_gas(table)], columns)
        if over and table[over].nunique() < 3:
            return table[:0]
        dense = table[table["filling_fraction"] >= least]
        is_cut = 0 < len(dense) < len(table)
        note = f"; below {percent(least)} see the table: repeats differ" if is_cut else ""
        return _with_misses(dense if is_cut else table).assign(left_out=note)

    return rows


def _with_misses(rows: pd.DataFrame) -> pd.DataFrame:
    """Add the misses, and over them those of Hilbert's curve at the same repeat, for orders that come near.

    `over_hilbert` is known of orders that miss less than `NEAR` times as much at every filling.
    """
    rows = rows.assign(misses=1 - rows["hit_ratio"])
    case = ["geometry", "search", "size", "filling_fraction", "model", "cache_particles", "repeat"]
    of_hilbert = rows[rows["ordering"] == CURVE].groupby(case)["misses"].first().rename("of_hilbert")
    over = rows["misses"] / rows.join(of_hilbert, on=case)["of_hilbert"]
    at = over.groupby([rows[name] for name in (*case[:-1], "ordering")]).transform("median")
    most = at.groupby([rows[name] for name in ("geometry", "search", "ordering")]).transform("max")
    return rows.assign(over_hilbert=over.where(most < NEAR))


def _of_few(table: pd.DataFrame) -> pd.DataFrame:
    """Select the rows of fewer than three fillings, or of two sizes, which are too few for lines."""
    columns = ["cache_particles", "model"]
    if table["filling_fraction"].nunique() < 3:
        return _rows(*columns)(table)
    rows = _rows(*columns, "filling_fraction")(table)
    return rows if rows["size"].nunique() == 2 else rows[:0]


def _same_gas(table: pd.DataFrame) -> pd.DataFrame:
    """Select the rows of geometries that share their gas, at their largest size."""
    rows = table.assign(shape=table["geometry"].map(SHAPES))[_shares_gas(table)]
    rows = rows[rows["size"] == rows.groupby("shape")["size"].transform("max")]
    return rows[rows["search"] == rows.groupby("shape")["search"].transform("first")]


def _compared(table: pd.DataFrame) -> pd.DataFrame:
    """Select the rows of `_same_gas` at the capacity that is shown of each model; add the names of lines."""
    rows = _same_gas(table)
    if rows.empty:
        return rows
    shown = rows.groupby(["shape", "model"])["cache_particles"].transform(SHOWN["cache_particles"])
    rows = rows[rows["cache_particles"] == shown]
    kinds = rows["geometry"].map(GEOMETRIES)
    where = kinds.map(lambda kind: " in the plane" if kind.ordered == 2 else " in space")
    read = kinds.map(lambda kind: ", columns read" if kind.read < kind.dim else ", boxes read")
    order = rows["ordering"] + where.where(~rows["ordering"].isin(UNORDERED), "") + read
    models = rows["model"].str.replace("_", "-") + rows["cache_particles"].map(", {:,} particles".format)
    return rows.assign(order=order, cache=models)


def _box(rows: pd.DataFrame) -> str:
    return (
        "the same gas in a box of " + " x ".join(f"{rows[axis].max()}" for axis in ("nx", "ny", "nz")) + " d"
    )


def _summary(table: pd.DataFrame) -> pd.DataFrame:
    if "tile_x" in table:
        return _spreads(mean_hits(table), MAP_OF, "hit_ratio")
    rows = table.drop_duplicates([*_OWN, "particles", "repeat"])  # two sizes may give a curve the same grid
    rows = rows.assign(misses_per_particle=rows["reads_per_particle"] * (1 - rows["hit_ratio"]))
    return _spreads(rows, _OWN, "hit_ratio", "speed_up", "misses_per_particle")


def _spreads(table: pd.DataFrame, keys: list[str], *columns: str) -> pd.DataFrame:
    """Return median, least and most of columns."""
    found = table.groupby(keys, sort=False)[[*columns]].agg(["median", "min", "max"])
    return found.set_axis(["_".join(column) for column in found.columns], axis=1).reset_index()


def mean_hits(table: pd.DataFrame) -> pd.DataFrame:
    """Average the hit ratio over the tiles of each map, weighted by their reads.

    Args:
        table: rows of `measure` with tiles.
    """
    served = table.assign(hits=(table["hit_ratio"] * table["reads"]).fillna(0))
    sums = served.groupby([*MAP_OF, "repeat"], sort=False)[["hits", "reads"]].sum()
    return (sums["hits"] / sums["reads"]).rename("hit_ratio").reset_index()


def _maps(table: pd.DataFrame, out: Path) -> None:
    """Draw the maps of figure 5.13 of [thesis], with a row of panels for each capacity."""
    first = table[table["repeat"] == 0] if "tile_x" in table else table[:0]
    for phi, rows in first.groupby("filling_fraction", sort=False):
        means = mean_hits(rows).set_index(["cache_particles", "ordering"])["hit_ratio"]
        capacities, names = rows["cache_particles"].unique(), rows["ordering"].unique()
        size = (2.5 * len(names) + 0.9, 2.5 * len(capacities) + 0.6)
        figure, panels = plt.subplots(len(capacities), len(names), figsize=size, squeeze=False)
        for panel, at in zip(panels.flat, itertools.product(capacities, names), strict=True):
            part = rows[(rows["cache_particles"] == at[0]) & (rows["ordering"] == at[1])]
            picture = part.pivot(index="tile_y", columns="tile_x", values="hit_ratio")
            image = panel.imshow(
                picture.to_numpy(), "Blues", vmin=0, vmax=1, origin="lower", interpolation="nearest",
                extent=(0, part["nx"].iloc[0]) * 2,
            )  # fmt: skip
            panel.set_title(f"{at[1]}, cache {at[0]}: {means[at]:.0%}", fontsize=8)
            panel.set(xlabel="x (d)", ylabel="y (d)")
            panel.tick_params(labelsize=7)
            panel.spines[:].set_visible(True)
        bar = figure.colorbar(image, ax=panels, shrink=0.7, aspect=30)
        bar.set_label("predicted hit ratio (block model)", fontsize=8)
        n = f"{rows['particles'].iloc[0]:,} particles, {phi:.0%} filled"
        name = figures.file_name("map", first, ["filling_fraction"], [phi])
        figures.titled(figure, f"{n}; capacity in particles, mean over all reads", out, name, rows)


def _systems(table: pd.DataFrame, out: Path) -> None:
    """Draw figure 5.2 of [thesis], for one of several runs: that of squares."""
    if "tile_x" in table or "squares" not in set(table["geometry"]):
        return
    figure = plt.figure(figsize=(7.2, 3.0), layout="none")
    for place, (name, height) in enumerate({"squares": 1, "cuboids": 10, "cubes": 6}.items()):
        panel = figure.add_subplot(1, 3, place + 1, projection="3d")
        draw_system(panel, (6, 6, height), columns=name == "cuboids")
        panel.set_title(name, y=1.0)
    figure.subplots_adjust(left=0.0, right=1.0, bottom=0.0, top=0.88, wspace=0.0)
    style.save(figure, out, "systems")


_MISSES = "predicted misses, share of the reads"
_SHARES = Scale(_MISSES, log=10)
_SHARE = " a share of {value} of the reads misses in {best} order, {of_worst} in {worst} order"
_SPEED_UP = Scale("speed-up of the reads over no hits", log=10)
_CACHE = "model {model}, cache of {cache_particles} particles"
_FILLING, _SIDE = Scale("filling fraction", "filling_fraction"), Scale("boxes a side", "nx", log=2)
_OF: dict[str, Any] = {"files": ("search",), "needs": "speed_up"}
_ORDERS: dict[str, Any] = {"series": "ordering", "title_of_series": "memory order", **_OF}
VIEWS: tuple[View, ...] = (
    Chart(
        "filling_{geometry}",
        f"At {FILLED}{_SHARE}",
        LINES, (Points("misses"),
                Points("over_hilbert", values=Scale(f"misses over those of {CURVE}", line=1)),
                Points("speed_up", values=_SPEED_UP)),
        _FILLING, _SHARES, note="{geometry} of about {size} boxes a side, " + _CACHE + "{left_out}",
        prepare=_rows("cache_particles", "size", "model", over="filling_fraction", least=LEAST_FILLING),
        **_ORDERS,
    ),
    Chart(
        "size_{geometry}", "",
        LINES, Points("misses"), _SIDE, Scale(_MISSES, ends=(0, None)), gaps=False, note=_sentence,
        prepare=_rows("cache_particles", "model", "filling_fraction", over="size"), **_ORDERS,
    ),
    Chart(
        f"size_{{geometry}}_{CURVE}",
        f"With {{nx}} boxes a side a share of {{value}} of the reads misses along {CURVE} if {{best}} is "
        "filled, {of_worst} if {worst} is",
        LINES, Points("misses", f"ordering == '{CURVE}'"), _SIDE, Scale(_MISSES, ends=(0, None)),
        "filling_fraction", "filled", note="{geometry}, " + _CACHE + "{left_out}",
        prepare=_rows("cache_particles", "model", over="size", least=LEAST_FILLING), **_OF,
    ),
    Chart(
        "orders_{geometry}",
        f"With about {{size}} boxes a side, {FILLED},{_SHARE}",
        DOTS, (Points("misses"), Points("speed_up", values=_SPEED_UP)), ORDERS, _SHARES, "size",
        "boxes a side", panels="filling_fraction", heading=FILLED,
        note="{geometry}, " + _CACHE, prepare=_of_few, **_OF,
    ),
    Chart(
        "cache_{geometry}", "",
        LINES, Points("misses"), Scale("capacity (particles)", "cache_particles", log=10), _SHARES,
        panels="model", varying=("cache_particles",), words={"set_associative": "set-associative"},
        note=_sentence, prepare=_rows("filling_fraction", "size"), **_ORDERS,
    ),
    Chart(
        "misses_{shape}",
        f"At {FILLED} a particle has {{value}} misses at best ({{best}}), {{of_worst}} at worst",
        LINES, Points("(1 - hit_ratio) * reads_per_particle"), _FILLING,
        Scale("predicted misses per particle", log=10),
        "order", "memory order, and what is read", panels="cache", note=_box, prepare=_compared,
        needs="speed_up",
    ),
    _systems,
    _maps,
    Table("summary", _summary),
)  # fmt: skip


def answer(table: pd.DataFrame) -> Answer:
    """Say which share of the reads a cache should serve along each order, and what that is worth."""
    over, fixed, system = "filling_fraction", "cache_particles", "squares"
    heading: Callable = percent
    if "tile_x" in table:
        rows, over, fixed, heading = mean_hits(table), fixed, over, "cache of {:,}".format
    else:
        rows = headline(table, "geometry", "search", "model", "size")
        system = f"{rows['geometry'].iloc[0]} of {rows['size'].iloc[0]} boxes a side"
    rows = rows[rows[fixed] == SHOWN[fixed](rows[fixed])]
    at = rows[rows[over] == SHOWN[over](rows[over])]
    shown, orders = at.iloc[0], at.groupby("ordering", sort=False)
    middle = orders["hit_ratio"].median().sort_values(ascending=False)
    curves = sorted(middle.index.difference(list(UNORDERED), sort=False), key=lambda name: name != CURVE)
    second = ["row"] if "row" in curves[1:] else curves[1:][-1:]
    named = [*curves[:1], *second, *(name for name in UNORDERED[:1] if name in middle.index)]
    found = rows.groupby(["ordering", over])["hit_ratio"].agg(list).reindex(named, level="ordering")
    hits = {name: spread(own, percent) for name, own in orders["hit_ratio"]}
    words = {name: f"along {name}" for name in named} | {SHUFFLED: "in shuffled memory"}
    served = listed([f"{hits[name]} {words[name]}" for name in named] or ["none of a curve"])
    sentence = (
        f"Of the reads at {percent(shown['filling_fraction'])} filled, a cache of "
        f"{shown['cache_particles']:,} particles should serve {served} "
        f"({table['model'].iloc[0]} model, {system})"
    )
    if "speed_up" in rows and curves and SHUFFLED in named:
        faster = orders["speed_up"].median()
        gain = rounded(faster[curves[0]] / faster[SHUFFLED])
        sentence += "; by the formula of [thesis], which measured times refute (T4), "
        sentence += f"{curves[0]} would make reads {gain} times as fast"
    if "machine" in rows and curves and SHUFFLED in named:
        of_chip = orders[["machine_misses", "machine_us"]].median()
        misses, times = (of_chip[name][[curves[0], SHUFFLED]] for name in of_chip)
        sentence += (
            f"; on {shown['machine']} a launch along {curves[0]} is foreseen to be "
            f"{rounded(times.iloc[1] / times.iloc[0])} times as fast as in shuffled memory, its first cache "
            f"to lack {percent(misses.iloc[0])} of the sectors, not {percent(misses.iloc[1])}"
        )
    found = found.map(lambda ratios: spread(ratios, percent)).reset_index()
    shares = grid(found, "ordering", over, lambda row: row["hit_ratio"], "reads that hit", heading)
    return Answer(shares, f"{sentence}.")


if __name__ == "__main__":
    main(Config, measure, VIEWS, quick=QUICK, answer=answer, quick_limit=SMALL_SYSTEM, minutes=MINUTES)
