"""Where in the system do reads hit? A map of the hit ratio for each memory order, in small and large caches.

The systems are squares, as in figure 5.13 of [thesis]: discs in a plane, in unordered memory, in stripes
(rows), and along Hilbert's curve, for a CPU's cache of 33125 particles and a GPU's of 256. Each tile shows
the mean over its particles, so that particles that are cached together have one colour.
"""

from collections.abc import Iterator
from dataclasses import dataclass
from functools import lru_cache
from pathlib import Path
from typing import ClassVar

import matplotlib.pyplot as plt
import numpy as np
import pandas as pd

import md
import sfc
from experiments.core import Axis, Settings, main, save_table, style
from experiments.core.terminal import SMALL_SYSTEM
from experiments.prediction.cache_models import check_models
from experiments.prediction.systems import GASES, GEOMETRIES, UNORDERED, own_side
from experiments.results.answers import Answer, grid, listed, percent, spread

SQUARES = GEOMETRIES["squares"]
MAP = "Blues"
_CASE = ["filling_fraction", "ordering", "cache_particles"]


@dataclass(frozen=True)
class Config(Settings):
    """Sweep of gases, orderings and capacities of a cache."""

    TOGETHER: ClassVar[tuple[str, ...]] = ("cache",)

    ordering: Axis[str] = ("shuffled", "row", "hilbert")
    """Memory orders: shuffled, lattice, or a 2D ordering of `sfc`."""
    cache: tuple[int, ...] = (33125, 256)
    """Capacities of the cache in particles: those of a CPU and a GPU in [thesis]."""
    filling_fraction: Axis[float] = (0.4,)
    """Volume of the spheres over that of the boxes, 1 d high."""
    size: int = 512
    """Side of the system in boxes. A curve gets the nearest power of its base."""
    tiles: int = 128
    """Number of tiles of the map a side, at most as many as boxes."""
    gas: str = "granular"
    """Positions of the particles: granular (no overlaps) or ideal (random)."""

    def __post_init__(self):
        super().__post_init__()
        known = {"ordering": (*UNORDERED, *sfc.orderings(2)), "gas": GASES}
        self.check_known(known)
        check_models((), self.cache)
        most = SQUARES.densest if self.gas == "granular" else 1.0
        self.check("filling_fraction", above=0, high=most, remedy=f"this is a gas that is {self.gas}")
        self.check("size", low=2)
        self.check("tiles", low=1, high=self.size, remedy="at most as many as --size")
        particles = SQUARES.particles(self.size, 1, self.highest("filling_fraction"))
        self.check_memory(f"--size {self.size}", particles, "particles")


QUICK = {"size": 64, "tiles": 32, "cache": (2048, 64), "gas": "ideal"}
MINUTES = 0.5  # measured


def measure(case: Config) -> Iterator[dict]:
    """Yield a row for each capacity and tile."""
    side = own_side(case.ordering, case.size, 2)
    state = SQUARES.in_order(
        _gas(side, case.filling_fraction, case.gas, case.seed, case.backend), case.ordering, case.seed
    )
    sim = md.Simulation(state, md.scenes.SHARED_LAW, search="linked", backend=case.backend)
    stream = sim.accesses()
    tiles = min(case.tiles, side)
    tile = np.minimum((state.pos * (tiles / side)).astype(int), tiles - 1)[stream.readers]
    number = tile[:, 0] + tiles * tile[:, 1]
    reads = np.bincount(number, np.diff(stream.offsets), tiles**2)
    for capacity in case.cache:
        hits = np.bincount(number, sfc.cache.block_hits(stream, capacity), tiles**2)
        for k in range(tiles**2):
            yield {
                "nx": side,
                "ny": side,
                "nz": 1,
                "particles": len(state),
                "model": "block",
                "cache_particles": capacity,
                "tile_x": k % tiles,
                "tile_y": k // tiles,
                "reads": int(reads[k]),
                "hit_ratio": hits[k] / reads[k] if reads[k] else float("nan"),
            }


@lru_cache(maxsize=2)
def _gas(side: int, filling_fraction: float, kind: str, seed: int, backend: str) -> md.State:
    return SQUARES.gas(side, 1, filling_fraction, kind, 1.0, seed, backend)


def draw(table: pd.DataFrame, out: Path) -> None:
    """Draw the maps, with a row of panels for each capacity; write the means."""
    first = table[table["repeat"] == 0]
    for phi, rows in first.groupby("filling_fraction", sort=False):
        several = first["filling_fraction"].nunique() > 1
        style.save(_maps(rows), out, "map" + (f"_{phi:g}".replace(".", "_") if several else ""), rows)
    mean = mean_hits(table).groupby(_CASE, sort=False)["hit_ratio"].agg(["median", "min", "max"])
    save_table(mean.add_prefix("hit_ratio_").reset_index(), out, "summary")


def mean_hits(table: pd.DataFrame) -> pd.DataFrame:
    """Average the hit ratio over the tiles of each map, weighted by their reads.

    Args:
        table: rows of `measure`.
    """
    keys = [*_CASE, "repeat"]
    served = table.assign(hits=(table["hit_ratio"] * table["reads"]).fillna(0))
    sums = served.groupby(keys, sort=False)[["hits", "reads"]].sum()
    return (sums["hits"] / sums["reads"]).rename("hit_ratio").reset_index()


def _maps(rows: pd.DataFrame) -> plt.Figure:
    capacities, names = rows["cache_particles"].unique(), rows["ordering"].unique()
    figure, panels = plt.subplots(
        len(capacities),
        len(names),
        figsize=(2.5 * len(names) + 0.9, 2.5 * len(capacities) + 0.6),
        squeeze=False,
    )
    for (a, b), panel in np.ndenumerate(panels):
        part = rows[(rows["cache_particles"] == capacities[a]) & (rows["ordering"] == names[b])]
        side = int(part["nx"].iloc[0])
        picture = part.pivot(index="tile_y", columns="tile_x", values="hit_ratio").to_numpy()
        image = panel.imshow(
            picture,
            origin="lower",
            extent=(0, side, 0, side),
            cmap=MAP,
            vmin=0,
            vmax=1,
            interpolation="nearest",
        )
        reads = part["reads"].sum()
        mean = (part["hit_ratio"].fillna(0) * part["reads"]).sum() / reads if reads else np.nan
        panel.set_title(f"{names[b]}, cache {capacities[a]}: {mean:.0%}", fontsize=8)
        panel.set(xlabel="x (d)", ylabel="y (d)")
        panel.tick_params(labelsize=7)
        for spine in panel.spines.values():
            spine.set_visible(True)
    bar = figure.colorbar(image, ax=panels, shrink=0.7, aspect=30)
    bar.set_label("predicted hit ratio (block model)", fontsize=8)
    n, phi = rows["particles"].iloc[0], rows["filling_fraction"].iloc[0]
    figure.suptitle(
        f"{n:,} particles, {phi:.0%} filled; capacity in particles, mean over all reads", fontsize=9
    )
    return figure


def answer(table: pd.DataFrame) -> Answer:
    """Say which share of the reads each cache should serve along each order."""
    rows = mean_hits(table)
    rows = rows[rows["filling_fraction"] == rows["filling_fraction"].iloc[0]]
    found = rows.groupby(["ordering", "cache_particles"], sort=False)["hit_ratio"].agg(list).reset_index()
    keys = "ordering", "cache_particles"
    hits = grid(found, *keys, _share, "reads that hit", lambda capacity: f"cache of {capacity:,}")
    phi, model = rows["filling_fraction"].iloc[0], table["model"].iloc[0]
    small = listed(f"{share} along {name}" for name, share in hits.iloc[:, 0].items())
    sentence = (
        f"Of the reads at {percent(phi)} filled, a {hits.columns[0]} particles should serve {small} ({model} "
        "model)"
    )
    if hits.shape[1] > 1:
        large = listed(f"{share} along {name}" for name, share in hits.iloc[:, -1].items())
        sentence += f", one of {max(found['cache_particles']):,} {large}"
    return Answer(hits, f"{sentence}.")


def _share(row: dict) -> str:
    return spread(row["hit_ratio"], percent)


if __name__ == "__main__":
    main(Config, measure, draw, quick=QUICK, answer=answer, quick_limit=SMALL_SYSTEM, minutes=MINUTES)
