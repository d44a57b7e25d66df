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
import sys
from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path
from textwrap import wrap

import matplotlib.pyplot as plt
import numpy as np
import pandas as pd

from experiments.core import Axis, Settings, figures, main, save_table, style
from experiments.core.terminal import FEW_PARTICLES
from experiments.drawing.film import WITHOUT, can_film, film
from experiments.drawing.headings import Headings
from experiments.prediction.flocks import RULES, SOURCE_DENSITY, STARTS, Aging, Flock, densest, structure
from experiments.results.answers import Answer, listed, rounded, rows_of
from md import State
from md.simulation import PRECISIONS

ALIGNED = 0.5  # heading correlation from which near boids count as aligned
CLUSTERED = 2.0  # clustering from which positions count as clustered
CLUMPED = 0.5  # nearest_over_random below which boids lie in clumps
LETTERS = 44  # in a line of a panel's title
ACROSS = 2  # panels in a row of the still
RATE = 12.0  # pictures of the film a second
_CASE = ["dim", "rules", "start", "density", "n"]
_PANELS = {
    "neighbours_mean": "mean number of neighbours",
    "order_parameter": "order parameter",
    "heading_correlation": "heading correlation\nof near boids",
    "clustering": "clustering of positions\n(1: random)",
    "nearest_over_random": "distance to the nearest\n(1: random positions)",
    "speed_mean": "mean speed",
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
    pos, lengths = state.pos, np.array(state.box.lengths)
    side, middle = float(lengths[0]), densest(state, cutoff)
    if case.dim == 3:
        pos = np.mod(pos + lengths / 2 - middle, lengths)  # a periodic box has no middle
        pos = pos[:, :2] + np.where(np.abs(pos[:, 2:] - lengths[2] / 2) < cutoff / 2, 0, np.nan)
    near = int(np.isfinite(pos[:, 0]).sum())
    window = side * min(1.0, math.sqrt(case.shown / max(1, near)))
    at = pos - (0.0 if case.dim == 2 else (side - window) / 2)
    inside = ((at >= 0) & (at < window)).all(axis=1)  # false for NaN
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


def draw(table: pd.DataFrame, out: Path) -> None:
    """Draw the structure over time, and a still and a film of each flock."""
    seen = table[table["what"] == "structure"]
    found = summary(seen)
    save_table(found, out, "summary")
    _draw_structure(seen, found, out)
    boids = table[(table["what"] == "boid") & (table["repeat"] == table["repeat"].min())]
    if boids.empty:
        return
    _draw_still(boids, found, out)
    films = [rows for _, rows in boids.groupby(_CASE, sort=False) if rows["step"].nunique() > 1]
    for rows in films:
        _film(rows, out, figures.file_name("film", pd.concat(films), _CASE, tuple(rows[_CASE].iloc[0])))


def _draw_still(boids: pd.DataFrame, found: pd.DataFrame, out: Path) -> None:
    """Draw the end of each flock, in rows of `ACROSS` panels."""
    parts = list(boids.groupby(_CASE, sort=False))
    across = min(ACROSS, len(parts))
    down = -(-len(parts) // across)
    size = (3.4 * across + 1.0, 4.1 * down + 0.6)
    figure, panels = plt.subplots(down, across, figsize=size, squeeze=False)
    for panel in panels.flat[len(parts) :]:
        panel.set_axis_off()
    for panel, (key, rows) in zip(panels.flat, parts, strict=False):
        panel.set_title(_named(key, found, with_speed=True), fontsize=8)
        shown = Headings(panel, rows["window"].iloc[0], rows["window"].iloc[0])
        _show(shown, rows[rows["step"] == rows["step"].max()])
        if rows["dim"].iloc[0] == 3:
            first = rows.iloc[0]
            places = {axis: f"{axis} - {first[f'corner_{axis}']:.1f} (units of length)" for axis in "xy"}
            panel.set(xlabel=places["x"], ylabel=places["y"])
    _heading_bar(figure, shown, panels.ravel().tolist(), boids)
    slab = boids["slab"].dropna()
    lines = [f"after {boids['step'].max():,} steps, one repeat", *_thresholds()]
    if len(slab):
        lines.append(
            f"3D: a slab {slab.iloc[0]:g} thick along z around the densest cell, moved to the middle"
        )
    figures.titled(figure, "\n".join(lines), out, "still")


def _heading_bar(figure: plt.Figure, shown: Headings, panels: list, boids: pd.DataFrame) -> None:
    """Draw the bar of colours; in 3D the heading is that in the plane of x and y."""
    bar = figure.colorbar(shown.scale, ax=panels, pad=0.02, shrink=0.75, ticks=[-180, -90, 0, 90, 180])
    plane = " in the plane of x and y" if (boids["dim"] == 3).any() else ""
    bar.set_label(f"heading{plane} (degrees from x)", fontsize=8)


def _thresholds() -> list[str]:
    """Describe the limits of the words in titles."""
    return [
        f"aligned: heading correlation of near boids from {ALIGNED:g}; clusters: variance over mean of boids "
        f"in cells of side 5 from {CLUSTERED:g};",
        f"clumps: distance to the nearest below {CLUMPED:g} of random positions",
    ]


def summary(seen: pd.DataFrame) -> pd.DataFrame:
    """List for each flock its structure at the end (median over repeats), and since when there are flocks.

    Args:
        seen: rows of observations.

    Returns:
        A row for each flock. `aligned_from_step`, `clustered_from_step` and `clumped_from_step` are the first
        observation from which on the condition holds to the end; None if it does not hold at the end.
        `<condition>_until_step` is the first observation from which on a condition that held before does not
        hold to the end; None if it holds at the end, or never held.
    """
    rows = []
    for key, part in seen.groupby(_CASE, sort=False):
        middle = part.groupby("step")[[*_PANELS, "neighbours_largest"]].median()
        conditions = {
            "aligned": middle["heading_correlation"] >= ALIGNED,
            "clustered": middle["clustering"] >= CLUSTERED,
            "clumped": middle["nearest_over_random"] < CLUMPED,
        }
        rows.append(
            dict(zip(_CASE, key, strict=True))
            | {"steps": int(middle.index[-1]), "repeats": part["repeat"].nunique()}
            | {f"is_{name}": bool(holds.iloc[-1]) for name, holds in conditions.items()}
            | {f"{name}_from_step": _since(holds) for name, holds in conditions.items()}
            | {
                f"{name}_until_step": _since(~holds) if holds.any() else None
                for name, holds in conditions.items()
            }
            | {"neighbours_mean_start": middle["neighbours_mean"].iloc[0]}
            | middle.iloc[-1].to_dict()
        )
    return pd.DataFrame(rows)


def _since(holds: pd.Series) -> int | None:
    """Return the first step from which on a condition holds to the end; None if it does not at the end."""
    fails = np.flatnonzero(~holds.to_numpy())
    first = int(fails[-1]) + 1 if len(fails) else 0
    return int(holds.index[first]) if first < len(holds) else None


def _named(key: tuple, found: pd.DataFrame, with_speed: bool = False) -> str:
    """Name a flock, and say whether its boids form flocks."""
    (row,) = found[(found[_CASE] == list(key)).all(axis=1)].to_dict("records")
    several = [column for column in ("start", "density", "n") if found[column].nunique() > 1]
    parts = [
        f"{row['dim']}D",
        row["rules"].replace("_", " "),
        *(
            f"{column} {row[column]:.3g}" if column == "density" else f"{column} {row[column]}"
            for column in several
        ),
    ]
    words = [
        "clusters" if row["is_clustered"] else "no clusters wider than the cutoff",
        *(["clumps"] if row["is_clumped"] else []),
        "aligned" if row["is_aligned"] else "not aligned",
        *([f"speed {row['speed_mean']:.2f}"] if with_speed else []),
    ]
    return "\n".join([f"{', '.join(parts)}:", *wrap(", ".join(words), LETTERS)])


def _draw_structure(seen: pd.DataFrame, found: pd.DataFrame, out: Path) -> None:
    """Draw each measure of the structure over the steps, a figure for each number of axes."""
    names = {key: _named(key, found).replace("\n", " ") for key, _ in seen.groupby(_CASE, sort=False)}
    named = seen.assign(line=[names[key] for key in seen[_CASE].itertuples(index=False, name=None)])
    for dim, lines in named.groupby("dim", sort=False):
        look = style.lines_in_turn(list(lines["line"].unique()), "line") | {"markersize": 4}
        figure, grid = plt.subplots(2, len(_PANELS) // 2, figsize=(8.8, 6.0), sharex=True)
        panels = list(grid.flat)
        for panel, (column, label) in zip(panels, _PANELS.items(), strict=True):
            figures.median_lines(panel, lines, "step", column, look)
            panel.set(xscale="symlog", xlabel="steps", ylabel=label, xlim=(0, None))
            if panel in panels[:3]:
                panel.set(xlabel="")
        for panel in (panels[0], panels[4], panels[5]):
            panel.set(ylim=(0, None))
        panels[1].set(ylim=(0, 1))
        for panel, limit in ((panels[2], ALIGNED), (panels[3], CLUSTERED), (panels[4], CLUMPED)):
            panel.axhline(limit, color="0.6", linewidth=0.8, linestyle=":", zorder=0)
        panels[3].set(yscale="log")
        figures.plain_log_ticks(panels[3])
        names_of_lines = panels[0].get_legend_handles_labels()
        figure.legend(*names_of_lines, loc="outside lower center", ncols=2, fontsize=8)
        sizes = ", ".join(f"{n:,}" for n in sorted(lines["n"].unique()))
        repeats = lines["repeat"].nunique()
        spread = f"median and range over {repeats} repeats" if repeats > 1 else "one repeat"
        title = "\n".join([f"{dim}D; {sizes} boids; {spread}; dotted: limits of the words", *_thresholds()])
        figures.titled(figure, title, out, figures.file_name("structure", seen, ["dim"], (dim,)), lines)


def _show(shown: Headings, rows: pd.DataFrame) -> None:
    shown.show(rows["x"].to_numpy(), rows["y"].to_numpy(), rows["heading"].to_numpy())


def _film(boids: pd.DataFrame, out: Path, name: str) -> None:
    """Film a flock."""
    if not can_film():
        print(WITHOUT, file=sys.stderr)
        return
    figure, panel = plt.subplots(figsize=(6.4, 5.6), dpi=110)
    shown = Headings(panel, boids["window"].iloc[0], boids["window"].iloc[0])
    _heading_bar(figure, shown, [panel], boids)
    first = boids.iloc[0]

    def pictures() -> Iterator[None]:
        for step, rows in boids.groupby("step"):
            _show(shown, rows)
            speed = rows["speed_mean"].iloc[0]
            words = f"{first['dim']}D, {first['rules']}, step {step}, mean speed {speed:.2f}"
            panel.set_title(words.replace("_", " "), fontsize=9)
            yield

    film(figure, pictures(), out / f"{name}.mp4", rate=RATE)


def answer(table: pd.DataFrame) -> Answer:
    """Say since which step boids are aligned, clustered and clumped."""
    found = summary(table[table["what"] == "structure"])
    cells = {
        "aligned": lambda row: _since_when(row, "aligned"),
        "clustered": lambda row: _since_when(row, "clustered"),
        "clumped": lambda row: _since_when(row, "clumped"),
        "neighbours": lambda row: rounded(row["neighbours_mean"]),
        "order parameter": lambda row: rounded(row["order_parameter"]),
    }
    row = found.to_dict("records")[0]
    times = {name: _since_when(row, name) for name in ("aligned", "clustered", "clumped")}
    states = [f"never {name}" if time == "never" else f"{name} {time}" for name, time in times.items()]
    flocks = int((found["is_aligned"] & found["is_clustered"]).sum())
    sentence = (
        f"In {row['dim']}D with the rules {row['rules']}, {row['n']:,} boids are {listed(states)}, in "
        f"{row['steps']:,} steps; {flocks} of {len(found)} cases end as flocks, both aligned and clustered."
    )
    return Answer(rows_of(found, _CASE, cells), sentence)


def _since_when(row: dict, name: str) -> str:
    """Say since which step a condition holds, until which it held, or that it never held."""
    if row[f"is_{name}"]:
        return f"from step {row[f'{name}_from_step']:,.0f} on"
    until = row[f"{name}_until_step"]
    return "never" if until is None or pd.isna(until) else f"until step {until:,.0f}"


if __name__ == "__main__":
    main(Config, measure, draw, quick=QUICK, answer=answer, quick_limit=FEW_PARTICLES, minutes=MINUTES)
