"""How fast does an order lose its value, once the particles move?

The particles are sorted once, and then move: freely, or in elastic or inelastic collisions. At growing
intervals the hit ratio of the search's reads is predicted, and with it the part that is left of the gain over
the same particles in shuffled memory. The half-life is the step at which that part crosses one half, in each
gas; a gas that keeps more has none. A stretched exponential is fitted to the median over gases as well, and
is drawn and listed only if it is within 0.02 of the gain of every observation.

A step lasts one time unit, so speeds are in d per step. Spheres are nearly hard: a contact lasts at most a
tenth of Enskog's time between two collisions of a particle, so that the spheres of a faster gas are stiffer.
With `--contact-steps` they are the same at every speed. A step is divided into as many integrator steps as
contacts need. Positions are float64 unless `--precision` is given, so that no freezing is numerical.
"""

import math
from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path
from textwrap import fill
from typing import Any, ClassVar

import matplotlib.pyplot as plt
import numpy as np
import pandas as pd

import md
import sfc
from experiments.core import Axis, Settings, figures, main, save_table, style, values
from experiments.core.terminal import FEW_PARTICLES
from experiments.prediction.cache_models import check_models, predicted
from experiments.prediction.half_life import (
    SMALL_RESIDUAL,
    crossing,
    fit,
    is_fitted,
    median_and_range,
    stretched_exponential,
)
from experiments.prediction.systems import GEOMETRIES, own_side
from experiments.results.answers import Answer, headline, percent, rounded, rows_of
from md.laws import SpringDashpot
from md.laws.spring_dashpot import LEAST_RESTITUTION, resolving_steps
from md.observe import kinetic_theory

INTERACTIONS = ("ideal", "elastic", "inelastic")
HARD = 0.1  # contact time over the time between two collisions of a particle, at most
DEEPEST = 0.15  # d: largest overlap of two particles of typical speed, head on
LEAST_STEPS = 20  # integrator steps in a contact
SHOWN = 320
_CASE = ["geometry", "size", "filling_fraction", "interaction", "speed", "ordering"]
_LINE = [*_CASE, "model", "cache_particles"]


@dataclass(frozen=True)
class Config(Settings):
    """Sweep of gases with an aging memory order."""

    TOGETHER: ClassVar[tuple[str, ...]] = ("cache", "model")

    geometry: Axis[str] = ("cubes",)
    """Geometries: squares (discs in a plane) or cubes."""
    size: Axis[int] = (32,)
    """Side of the system in boxes."""
    filling_fraction: Axis[float] = (0.1, 0.25, 0.5)
    """Volume of the spheres over that of the box."""
    interaction: Axis[str] = INTERACTIONS
    """Interactions of the particles: ideal (they fly through each other), elastic, inelastic."""
    speed: Axis[float] = (0.003, 0.01)
    """Root mean square speed of a particle at the start, in d per step."""
    ordering: Axis[str] = ("hilbert",)
    """Memory orders: orderings of `sfc`."""
    cache: tuple[int, ...] = (64, SHOWN, 1024, 4096, 33125)
    """Capacities of the cache in particles."""
    model: tuple[str, ...] = ("block", "lru")
    """Models of the cache; block is that of [thesis]."""
    steps: int = 2000
    """Number of steps after the reorder."""
    path: float = 0.0
    """Distance in d that a particle flies at the speed of the start after the reorder, instead of `--steps`:
    gases of any speed are observed at the same distances. 0 for `--steps`."""
    contact_steps: float = 0.0
    """Duration of a contact in steps at every speed: one kind of spheres at several temperatures. 0 for a
    tenth of the time between two collisions of a particle, which becomes shorter with speed."""
    observations: int = 30
    """Number of observations, at equal distances in the logarithm of the steps."""
    restitution: float = 0.8
    """Coefficient of restitution of inelastic collisions."""
    precision: str = "float64"
    """Precision of positions, velocities and forces."""

    def __post_init__(self):
        super().__post_init__()
        known = {
            "geometry": ("squares", "cubes"),
            "interaction": INTERACTIONS,
            "ordering": tuple(sorted({*sfc.orderings(2), *sfc.orderings(3)})),
            "precision": ("float64", "float32"),
        }
        self.check_known(known)
        check_models(self.model, self.cache)
        self.check_least({"size": 2, "steps": 1, "observations": 3})
        self.check("speed", above=0, high=1, unit="d per step")
        self.check("restitution", low=LEAST_RESTITUTION, below=1)
        self.check("path", low=0, unit="d")
        self.check("contact_steps", low=0, high=1e6, unit="steps")
        self.check_memory(f"--observations {self.observations}", self.observations, "observations")
        for kind in values(self.geometry):
            self.check("filling_fraction", above=0, high=GEOMETRIES[kind].densest, remedy=f"these are {kind}")
            for size in values(self.size):
                particles = GEOMETRIES[kind].particles(size, 1, self.highest("filling_fraction"))
                self.check_memory(f"--size {size} of {kind}", particles, "particles")


QUICK = {
    "size": (16,),
    "filling_fraction": (0.25,),
    "speed": (0.01,),
    "cache": (64, SHOWN),
    "steps": 400,
    "observations": 12,
}
MINUTES = 3.5  # CPU time of 3 of 18 cases, times the particles of the others


def measure(case: Config) -> Iterator[dict]:
    """Yield a row for each observation, model and capacity."""
    geometry = GEOMETRIES[case.geometry]
    if case.ordering not in sfc.orderings(geometry.ordered):
        return
    side = own_side(case.ordering, case.size, geometry.ordered)
    kind = "ideal" if case.interaction == "ideal" else "granular"  # with the positions of its equilibrium
    gas = geometry.gas(
        side, 1, case.filling_fraction, kind, case.speed**2 / geometry.dim, case.seed, case.backend
    )
    free = 1 / kinetic_theory.collision_rate(
        geometry.own_fraction(case.filling_fraction), case.speed**2 / geometry.dim, geometry.dim
    )
    law, contact, parts = _law(case, free)
    common: dict[str, Any] = {
        "nx": side,
        "ny": side,
        "nz": side if geometry.dim == 3 else 1,
        "particles": len(gas),
    }
    common |= {"contact_steps": contact, "free_steps": free, "integrator_steps_per_step": parts}
    sim = _simulation(case, geometry.in_order(gas, case.ordering, case.seed), law, parts)
    later = np.unique(np.rint(np.geomspace(1, _last(case), case.observations)).astype(int))
    generator = np.random.default_rng([case.seed, 3])
    for step in (0, *later.tolist()):
        sim.run(step * parts - sim.step, phases=False)
        state = sim.state
        speed = math.sqrt(2 * md.observe.kinetic_energy(state))
        unordered = _simulation(case, state.take(generator.permutation(len(state))), law, parts)
        shuffled = predicted(unordered.accesses(), case.model, case.cache)
        for row, other in zip(predicted(sim.accesses(), case.model, case.cache), shuffled, strict=True):
            yield common | {
                "step": step,
                "speed_d_per_step": speed,
                **row,
                "hit_ratio_shuffled": other["hit_ratio"],
            }


def _last(case: Config) -> int:
    """Return the number of steps after the reorder."""
    return max(1, math.ceil(case.path / case.speed)) if case.path else case.steps


def _law(case: Config, free: float) -> tuple[SpringDashpot, float, int]:
    """Return the law, the duration of a contact in steps, and the integrator steps per step."""
    if case.interaction == "ideal":
        return SpringDashpot(0.0, 0.0), 0.0, 1
    contact = case.contact_steps or min(HARD * free, DEEPEST * math.pi / case.speed)
    e = 1.0 if case.interaction == "elastic" else case.restitution
    law = SpringDashpot.from_restitution(e, contact_time=contact)
    return law, contact, max(1, math.ceil(max(LEAST_STEPS, resolving_steps(e)) / contact))


def _simulation(case: Config, state: md.State, law: SpringDashpot, parts: int) -> md.Simulation:
    return md.Simulation(
        state, law, search="linked", dt=1 / parts, backend=case.backend, precision=case.precision, fused=True
    )


def excess(rows: pd.DataFrame) -> pd.Series:
    """Compute the share of the gain over shuffled memory that is left; NaN if there was no gain."""
    more = rows["hit_ratio"] - rows["hit_ratio_shuffled"]
    keys = [rows[name] for name in (*_LINE, "repeat")]
    first = more.groupby(keys).transform("first")
    return more / first.where(first > 1e-3)  # of all reads


def half_lives(table: pd.DataFrame) -> pd.DataFrame:
    """List the half-lives of every case, model and capacity, with their range over gases.

    Args:
        table: rows of `measure`, with the column `left` of `excess`.

    Returns:
        Columns of a case; `gases`, and how many of them reached half within `last_step`; hit ratios (medians
        over gases); `half_life_crossing_*` in steps and in d flown since the reorder, as median, lowest and
        highest over gases, empty where that one was not reached; `fit`, "within 0.02" or "none", with the
        largest residual as a part of the gain, and `fit_scale_steps` and `fit_exponent` of
        2^-(steps / scale)^exponent if there is one. The scale may lie beyond `last_step`: it is no half-life.
    """
    summary = []
    for key, rows in table.groupby(_LINE, sort=False):
        gases = [gas for _, gas in rows.groupby("repeat")]
        steps = np.array([crossing(gas["step"].to_numpy(), gas["left"].to_numpy()) for gas in gases])
        flown = [flown_at(gas, step) for gas, step in zip(gases, steps, strict=True)]
        ends = rows[rows["step"] == rows["step"].max()]
        summary.append(
            dict(zip(_LINE, key, strict=True))
            | {
                "gases": len(gases),
                "gases_at_half": int(np.isfinite(steps).sum()),
                "last_step": int(rows["step"].max()),
                "hit_ratio_first": rows.loc[rows["step"] == 0, "hit_ratio"].median(),
                "hit_ratio_last": ends["hit_ratio"].median(),
                "hit_ratio_shuffled": rows["hit_ratio_shuffled"].median(),
                "left_last": ends["left"].median(),
            }
            | _spread("half_life_crossing_steps", steps)
            | _spread("half_life_crossing_flown_d", np.array(flown))
            | _fitted(rows)
        )
    return pd.DataFrame(summary)


def flown_at(gas: pd.DataFrame, step: float) -> float:
    """Return the distance in d flown until a step, at the root mean square speed; NaN for a step of NaN."""
    at, speed = gas["step"].to_numpy(), gas["speed_d_per_step"].to_numpy()
    flown = np.concatenate([[0.0], np.cumsum(np.diff(at) * (speed[1:] + speed[:-1]) / 2)])
    return float(np.interp(step, at, flown)) if np.isfinite(step) else math.nan


def _spread(name: str, values: np.ndarray) -> dict[str, float]:
    return dict(zip((name, f"{name}_low", f"{name}_high"), median_and_range(values), strict=True))


def _fitted(rows: pd.DataFrame) -> dict[str, Any]:
    """Return the columns of the fit to the median over gases."""
    middle = rows.groupby("step")["left"].median()
    scale, b, residual = fit(middle.index.to_numpy(), middle.to_numpy())
    near = is_fitted(residual)
    return {
        "fit": f"within {SMALL_RESIDUAL:g}" if near else "none",
        "fit_residual_largest": residual,
        "fit_scale_steps": scale if near else math.nan,
        "fit_exponent": b if near else math.nan,
    }


def draw(table: pd.DataFrame, out: Path) -> None:
    """Draw hit ratios over steps by speed, interaction, size and order; write the half-lives."""
    table = table.assign(left=excess(table))
    gains = table.loc[table["left"].notna(), "cache_particles"].unique()
    capacities = gains if len(gains) else table["cache_particles"].unique()
    capacity = capacities[np.abs(np.log(capacities / SHOWN)).argmin()]
    rows = table[(table["cache_particles"] == capacity) & (table["model"] == table["model"].iloc[0])]
    what = f"{rows['model'].iloc[0]} model, {capacity} particles"
    for column in ("speed", "interaction", "size", "ordering"):
        if rows[column].nunique() > 1:
            _by(rows, column, what, out)
    if all(rows[column].nunique() == 1 for column in ("speed", "interaction", "size", "ordering")):
        _by(rows, "filling_fraction", what, out)
    save_table(half_lives(table), out, "half_lives")


_STEPS = "steps after the reorder"
_FIRST_BEYOND = 1.5  # a line is drawn to a point beyond the end of its axis
_TITLES = {
    "speed": "speed (d per step)",
    "interaction": "interaction",
    "size": "boxes a side",
    "ordering": "memory order",
    "filling_fraction": "filling fraction",
}


def _by(rows: pd.DataFrame, column: str, what: str, out: Path) -> None:
    """Draw a figure for each geometry and each other setting, with a line for each value of the column."""
    others = [name for name in ("geometry", "speed", "interaction", "size", "ordering") if name != column]
    shown = rows.assign(line=[f"{value:g}" if column != "interaction" and column != "ordering" else value
                              for value in rows[column]])  # fmt: skip
    for key, part in shown.groupby(others, sort=False):
        if part["line"].nunique() < 2 and rows[column].nunique() > 1:
            continue
        fractions = [None] if column == "filling_fraction" else sorted(part["filling_fraction"].unique())
        figure, panels = plt.subplots(
            2,
            len(fractions),
            figsize=(2.9 * len(fractions) + 1.6, 5.0),
            squeeze=False,
            sharex="row" if column == "speed" else True,
            sharey="row",
        )
        look = _look(column, list(dict.fromkeys(part["line"]))) | {"markersize": 3.5}
        for (above, below), phi in zip(panels.T, fractions, strict=True):
            those = part if phi is None else part[part["filling_fraction"] == phi]
            last = phi == fractions[-1]
            figures.median_lines(above, those, "step", "hit_ratio", look)
            above.set(ylim=(0, 1), ylabel="predicted hit ratio")
            _left(below, those, look, over_path=column == "speed")
            above.set(xlim=(0, None), xscale="symlog", xlabel=_STEPS if column == "speed" else "")
            if phi is not None:
                above.set_title(f"{phi:.0%} filled", fontsize=9)
            if last:
                figures.name_lines(above, _TITLES[column])
        for panel in panels[:, 1:].flat:
            panel.set_ylabel("")
        title = f"{_in_words(dict(zip(others, key, strict=True)))}\n{what}; {_spread_in_words(part)}"
        name = figures.file_name(f"by_{column}", rows, others, key)
        figures.titled(figure, f"{title}; bars: half-life; dotted: fit", out, name, part)
        if column == "interaction":
            _linear(part, title, out, f"linear_{name}")


def _in_words(key: dict[str, Any]) -> str:
    """Describe the settings that all lines of a figure share."""
    words = [str(key["geometry"]) + (f" of {key['size']} boxes a side" if "size" in key else "")]
    words += [f"{key['interaction']} gas"] if "interaction" in key else []
    words += [f"{key['speed']:g} d per step"] if "speed" in key else []
    words += [f"order {key['ordering']}"] if "ordering" in key else []
    return ", ".join(words)


def _spread_in_words(rows: pd.DataFrame) -> str:
    gases = rows["repeat"].nunique()
    return f"median and range over {gases} gases" if gases > 1 else "one gas"


def _linear(rows: pd.DataFrame, title: str, out: Path, name: str) -> None:
    """Draw figures 5.10 and 5.11 of [thesis]: hits over steps on a linear axis, over a tenth and over all.

    Args:
        rows: of one case but for interaction and filling fraction, with a column `line`.
        title: of the figure.
        out: folder of the files.
        name: of the files, without an ending.
    """
    fractions, last = sorted(rows["filling_fraction"].unique()), rows["step"].max()
    size = (2.9 * len(fractions) + 1.6, 5.0)
    figure, grid = plt.subplots(2, len(fractions), figsize=size, squeeze=False, sharex="row", sharey=True)
    look = _look("interaction", list(dict.fromkeys(rows["line"]))) | {"markersize": 3.5}
    for panels, end in zip(grid, (last / 10, last), strict=True):
        for panel, phi in zip(panels, fractions, strict=True):
            own = rows[rows["filling_fraction"] == phi]
            figures.median_lines(panel, own[own["step"] <= _FIRST_BEYOND * end], "step", "hit_ratio", look)
            panel.set(xlim=(0, end), ylim=(0, 1), xlabel=_STEPS)
            panel.set_xticks(np.linspace(0, end, 5)[:-1])
            panel.xaxis.set_major_formatter("{x:,.0f}")
        panels[0].set_ylabel("predicted hit ratio")
    figures.legend_outside(grid[0][-1], _TITLES["interaction"])
    for panel, phi in zip(grid[0], fractions, strict=True):
        panel.set_title(f"{phi:.0%} filled", fontsize=9)
    figures.titled(figure, title, out, name, rows)


def _look(column: str, lines: list[str]) -> dict:
    """Return the look of the lines: of orders, of words, or of an ordered quantity."""
    looks = {"ordering": style.lines, "interaction": style.lines_in_turn}
    return looks.get(column, style.steps_in_turn)(lines, "line")


def _left(panel: plt.Axes, rows: pd.DataFrame, look: dict, over_path: bool) -> None:
    """Draw what is left of the gain, with half-lives, over steps or over steps times the first speed."""
    shown = rows
    if over_path:
        shown = rows[rows["step"] > 0]
        shown = shown.assign(path=shown["step"] * shown["speed"])
    figures.median_lines(panel, shown, "path" if over_path else "step", "left", look)
    _halves(panel, rows, look, over_path)
    panel.set(ylabel="left of the gain over shuffled")
    if over_path:
        panel.set(xscale="log", xlabel="path since the reorder (d)")
    else:
        panel.set(xlim=(0, None), xscale="symlog", xlabel=_STEPS)


def _halves(panel: plt.Axes, rows: pd.DataFrame, look: dict, over_path: bool) -> None:
    """Mark half-lives with their range over gases, and draw fits that are near; name lines without either."""
    for level in (0, 0.5):
        panel.axhline(level, color="0.6", linewidth=0.8, zorder=0)
    lives, without, later = half_lives(rows), [], []
    for line, (_, life) in zip(rows.groupby(_LINE, sort=False), lives.iterrows(), strict=True):
        name = line[1]["line"].iloc[0]
        colour = look["palette"][name]
        scale = life["speed"] if over_path else 1.0
        low, middle, high = (scale * life[f"half_life_crossing_steps{end}"] for end in ("_low", "", "_high"))
        if np.isfinite(middle):
            beyond = scale * life["last_step"] if np.isnan(high) else high
            panel.errorbar(
                middle, 0.5, xerr=[[middle - low], [beyond - middle]], color="black", marker="|",
                markersize=9, markerfacecolor=colour, capsize=3, elinewidth=1.4, zorder=4,
            )  # fmt: skip
        elif np.isfinite(life["left_last"]):
            later.append(f"{name} ({life['left_last']:.0%} left)")
        if np.isfinite(life["fit_scale_steps"]):
            steps = np.geomspace(1, life["last_step"], 200)
            curve = stretched_exponential(steps, life["fit_scale_steps"], life["fit_exponent"])
            panel.plot(scale * steps, curve, ":", color=colour, linewidth=2.2, alpha=0.7)
        elif np.isfinite(life["left_last"]):
            without.append(str(name))
    notes = (("half not reached", later), ("no fit", without))
    text = "\n".join(fill(f"{what}: {', '.join(names)}", 30) for what, names in notes if names)
    panel.text(0.03, 0.1, text, transform=panel.transAxes, fontsize=6, va="bottom")


def answer(table: pd.DataFrame) -> Answer:
    """Say after how many steps half of an order's gain over shuffled memory is lost."""
    rows = headline(table.assign(left=excess(table)), "model")
    capacities = rows.loc[rows["left"].notna(), "cache_particles"].unique()
    capacities = capacities if len(capacities) else rows["cache_particles"].unique()
    capacity = capacities[np.abs(np.log(capacities / SHOWN)).argmin()]
    lives = half_lives(rows[rows["cache_particles"] == capacity])
    cells = {
        "half-life (steps)": lambda row: _life(row, "steps"),
        "flown by then (d)": lambda row: _life(row, "flown_d"),
        "left at the end": lambda row: f"{percent(row['left_last'])} after {row['last_step']:,} steps",
    }
    first = lives.to_dict("records")[0]
    where = f"{first['gases']} gases, {percent(first['filling_fraction'])} filled, {first['interaction']}"
    where += f", {first['speed']:g} d a step"
    cache = f"{first['model']} model, cache of {capacity:,.0f} particles"
    sentence = f"{_loss(first)} ({where}; {cache})."
    reached = lives.loc[lives["gases_at_half"] == lives["gases"], "half_life_crossing_steps"]
    if len(lives) > 1 and len(reached):
        ends = " to ".join(dict.fromkeys((rounded(reached.min()), rounded(reached.max()))))
        sentence += f" {len(reached)} of {len(lives)} cases fall to one half, after {ends} steps."
    elif len(lives) > 1:
        sentence += f" In none of {len(lives)} cases do all gases reach one half."
    return Answer(rows_of(lives, _CASE, cells), sentence)


def _life(row: dict, unit: str) -> str:
    """Format the half-life of a case, with its range over gases."""
    name = f"half_life_crossing_{unit}"
    if not np.isfinite(row[name]):
        return "not reached"
    low, high = (row[f"{name}_{end}"] for end in ("low", "high"))
    return f"{rounded(row[name])} ({rounded(low)} to {rounded(high) if np.isfinite(high) else 'later'})"


def _loss(row: dict) -> str:
    """Say when half of the gain of a case is lost, or how much is left at the end."""
    gain = f"the gain of {row['ordering']} over shuffled memory"
    if not np.isfinite(row["left_last"]):
        return f"There is nothing to lose: {gain} is below 0.1 % of the reads"
    if np.isfinite(row["half_life_crossing_steps"]):
        steps, flown = _life(row, "steps"), _life(row, "flown_d")
        return f"Half of {gain} in hits is lost {steps} steps, or {flown} d flown, after the reorder"
    return (
        f"Of {gain} in hits, {percent(row['left_last'])} is left {row['last_step']:,} steps after the reorder"
    )


if __name__ == "__main__":
    main(Config, measure, draw, quick=QUICK, answer=answer, quick_limit=FEW_PARTICLES, minutes=MINUTES)
