"""Do boids form flocks, and since which step, and what does it look like?

Boids start at random positions with random headings, or in clusters that fly together. Along the way their
structure is measured: neighbours, the mean of all headings (order parameter), the agreement of headings of
near boids, the clustering of positions, the distance to the nearest boid, and the speed. The rules of [flock]
are compared with a weaker separation: 0.02 up to a distance of 1.5 instead of 0.1 up to 3. The end is drawn,
in 3D a slab as thick as the cutoff around the densest cell; in 2D the way there is filmed. Each boid is
coloured by its heading. Arrows have one length at any speed; titles have the mean speed.

Boids are called aligned from a heading correlation of 0.5, clusters (wider than the cutoff of 5) from a
variance over mean of 2 of the boids in a cell of side 5, and clumps (within the cutoff) below half the
distance to the nearest boid of random positions. The variance over mean grows with the density: flocks of
another density or number of axes have another scale.

A step lasts 0.2 time units. All rules are increments of velocity a step.
"""

import math
from collections.abc import Iterator
from dataclasses import dataclass
from functools import partial
from pathlib import Path
from textwrap import wrap
from typing import Any

import matplotlib.pyplot as plt
import numpy as np
import pandas as pd

from experiments.core import Axis, Settings, figures, main
from experiments.core.terminal import FEW_PARTICLES
from experiments.drawing.film import film_or_say
from experiments.drawing.headings import Headings
from experiments.prediction.flocks import RULES, SOURCE_DENSITY, STARTS, Aging, Flock, densest, structure
from experiments.results.answers import Answer, case_in_words, listed, rounded, rows_of
from experiments.results.charts import LINES, Chart, Points, Scale, Table, View
from md import State
from md.simulation import PRECISIONS

ALIGNED = 0.5  # heading correlation from which near boids count as aligned
CLUSTERED = 2.0  # clustering from which positions count as clustered
CLUMPED = 0.5  # nearest_over_random below which boids lie in clumps
THRESHOLDS = (
    f"aligned: heading correlation of near boids from {ALIGNED:g}; clusters: variance over mean of boids in "
    f"cells of side 5 from {CLUSTERED:g};\n"
    f"clumps: distance to the nearest below {CLUMPED:g} of random positions"
)
LETTERS = 44  # in a line of a panel's title
ACROSS = 2  # panels in a row of the still
RATE = 12.0  # pictures of the film a second
CONDITIONS = {
    "aligned": f"heading_correlation >= {ALIGNED}",
    "clustered": f"clustering >= {CLUSTERED}",
    "clumped": f"nearest_over_random < {CLUMPED}",
}
_CASE = ["dim", "rules", "start", "density", "n"]
_MEASURES = {
    "neighbours_mean": Scale("mean number of neighbours", ends=(0, None)),
    "order_parameter": Scale("order parameter", ends=(0, 1)),
    "heading_correlation": Scale("heading correlation of near boids", line=ALIGNED),
    "clustering": Scale("clustering of positions (1: random)", log=10, line=CLUSTERED),
    "nearest_over_random": Scale("distance to the nearest (1: random)", ends=(0, None), line=CLUMPED),
    "speed_mean": Scale("mean speed", ends=(0, None)),
}


@dataclass(frozen=True)
class Config(Settings):
    """Sweep of flocks."""

    n: Axis[int] = (10_000,)
    """Number of boids. Take 100000 on a GPU."""
    dim: Axis[int] = (3, 2)
    """Number of axes."""
    rules: Axis[str] = ("source", "weak_separation")
    """Rules of the flock: source (those of [flock]: cohesion 0.01 and alignment 0.1 up to 5, separation 0.1
    up to 3), weak_separation (separation 0.02 up to 1.5, else the same: flocks form)."""
    start: Axis[str] = ("uniform",)
    """Positions at the start: uniform, or clusters (of a thousand boids that fly together)."""
    density: Axis[float] = (SOURCE_DENSITY,)
    """Number of boids per unit of volume (in 2D of area); 1/8 in [flock]."""
    steps: int = 1000
    """Number of steps of 0.2 time units after the start. Take 20000 on a GPU."""
    observations: int = 25
    """Number of observations of the structure besides the start, at equal distances in the logarithm of the
    steps; fewer where these are closer than a step."""
    pictures: int = 60
    """Number of pictures of the film of each flock in 2D, from the start to the end at equal distances of
    steps / (pictures - 1) steps; in 3D and with 1 the last one alone; 0 for none."""
    shown: int = 2500
    """Largest number of boids in a picture: in a larger box a part is shown."""
    precision: str = "float32"
    """Precision of positions, velocities and forces."""

    def __post_init__(self):
        super().__post_init__()
        self.check_known({"rules": tuple(RULES), "start": STARTS, "precision": PRECISIONS})
        self.check("dim", low=2, high=3)
        self.check_above_zero({"density": 1e3})
        self.check_least({"n": 1000, "steps": 1, "observations": 2, "pictures": 0, "shown": 10})
        self.check_particles()
        self.check_memory(f"--pictures {self.pictures}", self.pictures * self.shown, "boids in pictures")


QUICK = {"n": (3000,), "rules": ("weak_separation",), "steps": 300, "observations": 8, "pictures": 12}
MINUTES = 1.5  # CPU time of one of four cases, extrapolated


def measure(case: Config) -> Iterator[dict]:
    """Yield a row for each observation, and for each boid of a picture."""
    flock = Flock(case.n, case.start, case.rules, case.seed, case.dim, case.density)
    aging, cutoff = Aging(flock, case.backend, case.precision), flock.law.cutoff
    observed = {0, *np.rint(np.geomspace(1, case.steps, case.observations)).astype(int).tolist()}
    films = set(np.rint(np.linspace(case.steps, 0, case.pictures)).astype(int).tolist())
    if case.dim == 3:
        films &= {case.steps}
    for step in sorted(observed | films):
        state = aging.at(step)
        if step in observed:
            yield {"what": "structure", "step": step} | structure(state, cutoff)._asdict()
        if step in films:
            yield from _picture(case, state, step, cutoff)


def _picture(case: Config, state: State, step: int, cutoff: float) -> Iterator[dict]:
    """Yield a row for each boid in a window of the plane, or of a slab a cutoff thick at the densest cell."""
    pos, lengths, middle = state.pos, np.array(state.box.lengths), densest(state, cutoff)
    side, is_near = float(lengths[0]), np.full(len(pos), True)
    if case.dim == 3:
        pos = np.mod(pos + lengths / 2 - middle, lengths)  # a periodic box has no middle
        is_near = np.abs(pos[:, 2] - lengths[2] / 2) < cutoff / 2
    window = side * min(1.0, math.sqrt(case.shown / max(1, int(is_near.sum()))))
    at = pos if case.dim == 2 else pos[:, :2] - (side - window) / 2
    inside = is_near & ((at >= 0) & (at < window)).all(axis=1)
    corner = np.mod(middle[:2] - window / 2, side) if case.dim == 3 else np.zeros(2)
    picture = {
        "window": window,
        "corner_x": float(corner[0]),
        "corner_y": float(corner[1]),
        "slab": cutoff if case.dim == 3 else None,
        "speed_mean": float(np.linalg.norm(state.vel, axis=1).mean()),  # of all boids
    }
    heading = np.degrees(np.arctan2(state.vel[inside, 1], state.vel[inside, 0]))
    for (x, y), angle in zip(at[inside], heading, strict=True):
        at_boid = {"x": round(float(x), 2), "y": round(float(y), 2), "heading": round(float(angle))}
        yield {"what": "boid", "step": step} | at_boid | picture


def summary(table: pd.DataFrame) -> pd.DataFrame:
    """List for each flock its structure at the end (median over repeats), and since when there are flocks.

    Args:
        table: with rows of observations.

    Returns:
        A row for each flock. `is_aligned`, `is_clustered` and `is_clumped` tell whether a condition holds at
        the end; `aligned_since_step`, `clustered_since_step` and `clumped_since_step` are the first
        observation from which on it is as at the end; None if it never held.
    """
    rows = []
    for key, part in table[table["what"] == "structure"].groupby(_CASE, sort=False):
        middle = part.groupby("step")[[*_MEASURES, "neighbours_largest"]].median()
        row = dict(zip(_CASE, key, strict=True))
        row |= {"steps": int(middle.index[-1]), "repeats": part["repeat"].nunique()}
        for name, condition in CONDITIONS.items():
            holds: Any = middle.eval(condition)
            other = np.flatnonzero(holds != holds.iloc[-1])
            since = int(holds.index[other[-1] + 1 if len(other) else 0])
            row |= {f"is_{name}": bool(holds.iloc[-1]), f"{name}_since_step": since if holds.any() else None}
        row["neighbours_mean_start"] = middle["neighbours_mean"].iloc[0]
        rows.append(row | middle.iloc[-1].to_dict())
    return pd.DataFrame(rows)


def _named(table: pd.DataFrame, what: str) -> pd.DataFrame:
    """Return some rows with `line`, the name of the flock, and `words`, what its boids form at the end."""
    found = summary(table)
    several = [column for column in ("start", "density", "n") if found[column].nunique() > 1]
    every: list[Any] = found.to_dict("records")
    lines = []
    for row in every:
        words = ["clusters" if row["is_clustered"] else "no clusters wider than the cutoff"]
        words += [*["clumps"] * row["is_clumped"], "aligned" if row["is_aligned"] else "not aligned"]
        lines.append((case_in_words(row, ["rules", *several]).replace("_", " "), ", ".join(words)))
    found[["line", "words"]] = lines
    return table[table["what"] == what].merge(found[[*_CASE, "line", "words"]], on=_CASE)


def _boids(table: pd.DataFrame) -> pd.DataFrame:
    """Return the boids of the pictures, which are those of the first repeat."""
    return _named(table[table["repeat"] == table["repeat"].min()], "boid")


def _stills(table: pd.DataFrame, out: Path) -> None:
    """Draw the end of each flock, in rows of `ACROSS` panels."""
    boids = _boids(table)
    parts = [rows for _, rows in boids.groupby(_CASE, sort=False)]
    if not parts:
        return
    across, down = min(ACROSS, len(parts)), -(-len(parts) // ACROSS)
    size = (3.4 * across + 1.0, 4.1 * down + 0.6)
    figure, panels = plt.subplots(down, across, figsize=size, squeeze=False)
    for panel in panels.flat[len(parts) :]:
        panel.set_axis_off()
    for panel, rows in zip(panels.flat, parts, strict=False):
        last = rows[rows["step"] == rows["step"].max()]
        first = last.iloc[0]
        words = wrap(f"{first['words']}, speed {first['speed_mean']:.2f}", LETTERS)
        panel.set_title("\n".join([f"{first['dim']}D, {first['line']}:", *words]), fontsize=8)
        shown = Headings(panel, first["window"], first["window"])
        _show(shown, last)
        if first["dim"] == 3:
            x, y = (f"{axis} - {first[f'corner_{axis}']:.1f} (units of length)" for axis in "xy")
            panel.set(xlabel=x, ylabel=y)
    _heading_bar(figure, shown, panels.ravel().tolist(), boids)
    lines = [f"after {boids['step'].max():,} steps, one repeat", THRESHOLDS]
    for slab in boids["slab"].dropna().unique():
        lines.append(f"3D: a slab {slab:g} thick along z around the densest cell, moved to the middle")
    figures.titled(figure, "\n".join(lines), out, "still")


def _show(shown: Headings, rows: pd.DataFrame) -> None:
    shown.show(*(rows[name].to_numpy() for name in ("x", "y", "heading")))


def _heading_bar(figure: plt.Figure, shown: Headings, panels: list, boids: pd.DataFrame) -> None:
    """Draw the bar of colours; in 3D the heading is that in the plane of x and y."""
    bar = figure.colorbar(shown.scale, ax=panels, pad=0.02, shrink=0.75, ticks=[-180, -90, 0, 90, 180])
    plane = " in the plane of x and y" if (boids["dim"] == 3).any() else ""
    bar.set_label(f"heading{plane} (degrees from x)", fontsize=8)


def _films(table: pd.DataFrame, out: Path) -> None:
    """Film the flocks that have several pictures."""
    boids = _boids(table)
    flocks = boids[boids.groupby(_CASE)["step"].transform("nunique") > 1]
    for key, rows in flocks.groupby(_CASE, sort=False):
        figure, panel = plt.subplots(figsize=(6.4, 5.6), dpi=110)
        shown = Headings(panel, *rows[["window", "window"]].iloc[0])
        _heading_bar(figure, shown, [panel], rows)
        name = figures.file_name("film", flocks, _CASE, key)
        film_or_say(figure, _pictures(panel, shown, rows), out / f"{name}.mp4", rate=RATE)


def _pictures(panel: plt.Axes, shown: Headings, boids: pd.DataFrame) -> Iterator[None]:
    """Show one picture of a film after the other."""
    for step, rows in boids.groupby("step"):
        _show(shown, rows)
        first = rows.iloc[0]
        words = f"{first['dim']}D, {first['rules']}, step {step}, mean speed {first['speed_mean']:.2f}"
        panel.set_title(words.replace("_", " "), fontsize=9)
        yield


VIEWS: tuple[View, ...] = (
    Table("summary", summary),
    Chart(
        "structure", "{dim}D, {n} boids: after {step} steps a boid has {of_worst} neighbours, {worst}", LINES,
        tuple(Points(name, values=scale, repeated="repeats") for name, scale in _MEASURES.items()),
        Scale("steps", "step", log=10, from_zero=True), _MEASURES["neighbours_mean"], "line", files=("dim",),
        note=lambda rows: "\n".join([
            *(rows["line"] + ": " + rows["words"]).unique(), f"grey: limits of the words; {THRESHOLDS}",
        ]),
        gaps=False, prepare=lambda table: _named(table, "structure"),
    ),
    _stills,
    _films,
)  # fmt: skip


def answer(table: pd.DataFrame) -> Answer:
    """Say since which step boids are aligned, clustered and clumped."""
    found = summary(table)
    cells = {name: partial(_since_when, name) for name in CONDITIONS} | {
        "neighbours": lambda row: rounded(row["neighbours_mean"]),
        "order parameter": lambda row: rounded(row["order_parameter"]),
    }
    row = found.to_dict("records")[0]
    times = {name: _since_when(name, row) for name in CONDITIONS}
    states = [f"never {name}" if time == "never" else f"{name} {time}" for name, time in times.items()]
    flocks = int((found["is_aligned"] & found["is_clustered"]).sum())
    sentence = (
        f"In {row['dim']}D with the rules {row['rules']}, {row['n']:,} boids are {listed(states)}, in "
        f"{row['steps']:,} steps; {flocks} of {len(found)} cases end as flocks, both aligned and clustered."
    )
    return Answer(rows_of(found, _CASE, cells), sentence)


def _since_when(name: str, row: dict) -> str:
    """Say since which step a condition holds, until which it held, or that it never held."""
    since = row[f"{name}_since_step"]
    if since is None or pd.isna(since):
        return "never"
    return f"from step {since:,.0f} on" if row[f"is_{name}"] else f"until step {since:,.0f}"


if __name__ == "__main__":
    main(Config, measure, VIEWS, quick=QUICK, answer=answer, quick_limit=FEW_PARTICLES, minutes=MINUTES)
