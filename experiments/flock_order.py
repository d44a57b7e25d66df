"""Do boids form flocks, and since which step, and what does it look like?

Boids start at random positions with random headings, or in clusters that fly together. Along the way their
structure is measured: neighbours, the mean of all headings (order parameter), the agreement of headings of
near boids, the clustering of positions, and the distance to the nearest boid. The rules of [flock] are
compared with a weaker separation. The end is drawn, in 3D a slab at the densest place; in 2D the way there is
filmed. Each boid is coloured by its heading.

A step lasts 0.2 time units. All rules are increments of velocity a step.
"""

import math
from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path

import matplotlib.pyplot as plt
import numpy as np
import pandas as pd

from experiments.core import Axis, Settings, figures, main, save_table, style
from experiments.drawing.film import WITHOUT, can_film, film
from experiments.drawing.headings import Headings
from experiments.prediction.flocks import RULES, SOURCE_DENSITY, STARTS, Aging, Flock, densest, structure
from md import State
from md.simulation import PRECISIONS

ALIGNED = 0.5  # heading correlation from which near boids count as aligned
CLUSTERED = 2.0  # clustering from which positions count as clustered
RATE = 12.0  # pictures of the film a second
_CASE = ["dim", "rules", "start", "density", "n"]
_PANELS = {
    "neighbours_mean": "mean number of neighbours",
    "order_parameter": "order parameter",
    "heading_correlation": "heading correlation\nof near boids",
    "clustering": "clustering of positions\n(1: random)",
    "nearest_over_random": "distance to the nearest\n(1: random positions)",
}


@dataclass(frozen=True)
class Config(Settings):
    """Sweep of flocks."""

    n: Axis[int] = (10_000,)
    """Boids. Take 100000 on a GPU."""
    dim: Axis[int] = (3, 2)
    """Number of axes."""
    rules: Axis[str] = ("source", "weak_separation")
    """source (those of [flock]), weak_separation (flocks form)."""
    start: Axis[str] = ("uniform",)
    """uniform, clusters (of a thousand boids that fly together)."""
    density: Axis[float] = (SOURCE_DENSITY,)
    """Boids per unit of volume (in 2D of area); 1/8 in [flock]."""
    steps: int = 1000
    """Steps after the start. Take 20000 on a GPU."""
    looks: int = 25
    """Observations of the structure, at equal distances in the logarithm of the steps."""
    pictures: int = 60
    """Pictures of the film of each flock in 2D, at equal distances in steps; in 3D and with 1 the last one
    alone; 0 for none."""
    shown: int = 2500
    """Largest number of boids in a picture: in a larger box a part is shown."""
    precision: str = "float32"
    """float32, float64."""

    def __post_init__(self):
        super().__post_init__()
        self.check_known({"rules": tuple(RULES), "start": STARTS, "precision": PRECISIONS})
        self.check("dim", low=2, high=3)
        self.check_above_zero({"density": 1e3})
        self.check_least({"n": 1000, "steps": 1, "looks": 2, "pictures": 0, "shown": 10})
        self.check_particles()
        self.check_memory(f"--pictures {self.pictures}", self.pictures * self.shown, "boids in pictures")


QUICK = {"n": (3000,), "rules": ("weak_separation",), "steps": 300, "looks": 8, "pictures": 12}


def measure(case: Config) -> Iterator[dict]:
    """Yield a row for each observation, and for each boid of a picture."""
    flock = Flock(case.n, case.start, case.rules, case.seed, case.dim, case.density)
    aging, cutoff = Aging(flock, case.backend, case.precision), flock.law.cutoff
    looks = {0, *np.rint(np.geomspace(1, case.steps, case.looks)).astype(int).tolist()}
    films = set(np.rint(np.linspace(case.steps, 0, case.pictures)).astype(int).tolist())
    if case.dim == 3:
        films &= {case.steps}
    for step in sorted(looks | films):
        state = aging.at(step)
        if step in looks:
            yield {"what": "structure", "step": step} | structure(state, cutoff)._asdict()
        if step in films:
            yield from _picture(case, state, step, cutoff)


def _picture(case: Config, state: State, step: int, cutoff: float) -> Iterator[dict]:
    """Yield a row for each boid in a window of the plane, or of a slab a cutoff thick at the densest cell."""
    pos, lengths = state.pos, np.array(state.box.lengths)
    side = float(lengths[0])
    if case.dim == 3:
        pos = np.mod(pos + lengths / 2 - densest(state, cutoff), lengths)  # a periodic box has no middle
        pos = pos[:, :2] + np.where(np.abs(pos[:, 2:] - lengths[2] / 2) < cutoff / 2, 0, np.nan)
    near = int(np.isfinite(pos[:, 0]).sum())
    window = side * min(1.0, math.sqrt(case.shown / max(1, near)))
    at = pos - (0.0 if case.dim == 2 else (side - window) / 2)
    inside = ((at >= 0) & (at < window)).all(axis=1)  # false for NaN
    heading = np.degrees(np.arctan2(state.vel[inside, 1], state.vel[inside, 0]))
    for (x, y), angle in zip(at[inside], heading, strict=True):
        yield {"what": "boid", "step": step, "window": window, "x": round(float(x), 2),
               "y": round(float(y), 2), "heading": round(float(angle))}  # fmt: skip


def draw(table: pd.DataFrame, out: Path) -> None:
    """Draw the structure over time, and a still and a film of each flock."""
    seen = table[table["what"] == "structure"]
    found = summary(seen)
    save_table(found, out, "summary")
    _draw_structure(seen, found, out)
    boids = table[(table["what"] == "boid") & (table["repeat"] == table["repeat"].min())]
    if boids.empty:
        return
    parts = list(boids.groupby(_CASE, sort=False))
    figure, panels = figures.panels_in_a_row([_named(key, found) for key, _ in parts], 3.4, 3.9, margin=1.0)
    for panel, (_, rows) in zip(panels, parts, strict=True):
        shown = Headings(panel, rows["window"].iloc[0], rows["window"].iloc[0])
        _show(shown, rows[rows["step"] == rows["step"].max()])
    bar = figure.colorbar(shown.scale, ax=panels, pad=0.02, shrink=0.75, ticks=[-180, -90, 0, 90, 180])
    bar.set_label("heading (degrees)", fontsize=8)
    figures.titled(figure, f"after {boids['step'].max():,} steps", out, "still")
    films = [rows for _, rows in parts if rows["step"].nunique() > 1]
    for rows in films:
        _film(rows, out, figures.file_name("film", pd.concat(films), _CASE, tuple(rows[_CASE].iloc[0])))


def summary(seen: pd.DataFrame) -> pd.DataFrame:
    """List for each flock its structure at the end (median over repeats), and since when there are flocks.

    Args:
        seen: rows of observations.
    """
    rows = []
    for key, part in seen.groupby(_CASE, sort=False):
        middle = part.groupby("step")[[*_PANELS, "neighbours_largest", "speed_mean"]].median()
        aligned = middle["heading_correlation"] >= ALIGNED
        clustered = middle["clustering"] >= CLUSTERED
        rows.append(
            dict(zip(_CASE, key, strict=True))
            | {"steps": int(middle.index[-1]), "repeats": part["repeat"].nunique()}
            | {"is_aligned": bool(aligned.iloc[-1]), "is_clustered": bool(clustered.iloc[-1])}
            | {"aligned_from_step": aligned.idxmax() if aligned.any() else None}
            | {"clustered_from_step": clustered.idxmax() if clustered.any() else None}
            | {"neighbours_mean_start": middle["neighbours_mean"].iloc[0]}
            | middle.iloc[-1].to_dict()
        )
    return pd.DataFrame(rows)


def _named(key: tuple, found: pd.DataFrame) -> str:
    """Name a flock, and say whether its boids form flocks."""
    (row,) = found[(found[_CASE] == list(key)).all(axis=1)].to_dict("records")
    several = [column for column in ("start", "density", "n") if found[column].nunique() > 1]
    parts = [
        f"{row['dim']}D",
        row["rules"].replace("_", " "),
        *(f"{column} {row[column]}" for column in several),
    ]
    clusters = "clusters" if row["is_clustered"] else "no clusters"
    aligned = "aligned" if row["is_aligned"] else "not aligned"
    return f"{', '.join(parts)}:\n{clusters}, {aligned}"


def _draw_structure(seen: pd.DataFrame, found: pd.DataFrame, out: Path) -> None:
    """Draw each measure of the structure over the steps."""
    names = {key: _named(key, found).replace("\n", " ") for key, _ in seen.groupby(_CASE, sort=False)}
    lines = seen.assign(line=[names[key] for key in seen[_CASE].itertuples(index=False, name=None)])
    look = style.lines_in_turn(list(lines["line"].unique()), "line") | {"markersize": 4}
    figure, panels = figures.panels_in_a_row([""] * len(_PANELS), 2.7, 3.0, margin=2.2)
    for panel, (column, label) in zip(panels, _PANELS.items(), strict=True):
        figures.median_lines(panel, lines, "step", column, look, legend=panel is panels[-1])
        panel.set(xscale="symlog", xlabel="steps", ylabel=label, xlim=(0, None))
    panels[0].set(ylim=(0, None))
    panels[1].set(ylim=(0, 1))
    panels[2].axhline(ALIGNED, color="0.6", linewidth=0.8, linestyle=":", zorder=0)
    panels[3].axhline(CLUSTERED, color="0.6", linewidth=0.8, linestyle=":", zorder=0)
    panels[3].set(yscale="log")
    panels[4].set(ylim=(0, None))
    figures.legend_outside(panels[-1], "flock")
    title = f"{len(seen['n'].unique())} sizes" if seen["n"].nunique() > 1 else f"{seen['n'].iloc[0]:,} boids"
    figures.titled(figure, f"{title}; median and range over repeats", out, "structure")


def _show(shown: Headings, rows: pd.DataFrame) -> None:
    shown.show(rows["x"].to_numpy(), rows["y"].to_numpy(), rows["heading"].to_numpy())


def _film(boids: pd.DataFrame, out: Path, name: str) -> None:
    """Film a flock."""
    if not can_film():
        print(WITHOUT)
        return
    figure, panel = plt.subplots(figsize=(6.4, 5.6), dpi=110)
    shown = Headings(panel, boids["window"].iloc[0], boids["window"].iloc[0])
    bar = figure.colorbar(shown.scale, ax=panel, pad=0.02, shrink=0.8, ticks=[-180, -90, 0, 90, 180])
    bar.set_label("heading (degrees)", fontsize=8)
    first = boids.iloc[0]

    def pictures() -> Iterator[None]:
        for step, rows in boids.groupby("step"):
            _show(shown, rows)
            panel.set_title(f"{first['dim']}D, {first['rules']}, step {step}".replace("_", " "), fontsize=9)
            yield

    film(figure, pictures(), out / f"{name}.mp4", rate=RATE)


if __name__ == "__main__":
    main(Config, measure, draw, quick=QUICK, spreads=True)
