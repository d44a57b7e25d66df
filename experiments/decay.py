"""How fast does an order lose its value, once the particles move?

The particles are sorted once, and then move: freely, or in elastic or inelastic collisions. At growing
intervals the hit ratio of the search's reads is predicted. The part that is left of the gain over the same
particles in shuffled memory falls as exp(-ln 2 (t / t_half)^b); a straight line through log(-log(excess))
over log(steps) gives the half-life and b. A step lasts one time unit, so speeds are in d per step. Spheres
are nearly hard: a contact lasts at most a tenth of Enskog's time between two collisions of a particle, and a
step is divided into as many integrator steps as that needs. Positions are float64 unless `--precision` is
given, so that no freezing is numerical.
"""

import math
from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path
from typing import Any, ClassVar

import matplotlib.pyplot as plt
import numpy as np
import pandas as pd

import md
import sfc
from experiments.core import Axis, Settings, figures, main, save_table, style, values
from experiments.prediction.cache_models import check_models, predicted
from experiments.prediction.systems import GEOMETRIES, own_side
from md.laws import SpringDashpot
from md.observe import kinetic_theory

INTERACTIONS = ("ideal", "elastic", "inelastic")
HARD = 0.1  # contact time over the time between two collisions of a particle, at most
DEEPEST = 0.15  # d: largest overlap of two particles of typical speed, head on
LEAST_STEPS = 20  # integrator steps in a contact
SHOWN = 320
FITTED = (0.02, 0.98)  # range of the excess in the fit
_CASE = ["geometry", "size", "filling_fraction", "interaction", "speed", "ordering", "repeat"]


@dataclass(frozen=True)
class Config(Settings):
    """Sweep of gases with an aging memory order."""

    TOGETHER: ClassVar[tuple[str, ...]] = ("cache", "model")

    geometry: Axis[str] = ("cubes",)
    """squares (discs in a plane), cubes."""
    size: Axis[int] = (32,)
    """Boxes a side."""
    filling_fraction: Axis[float] = (0.1, 0.25, 0.5)
    """Volume of the spheres over that of the box."""
    interaction: Axis[str] = INTERACTIONS
    """ideal (particles fly through each other), elastic, inelastic."""
    speed: Axis[float] = (0.003, 0.01)
    """Root mean square speed of a particle at the start, in d per step."""
    ordering: Axis[str] = ("hilbert",)
    """Memory orders: any ordering of `sfc`."""
    cache: tuple[int, ...] = (64, SHOWN, 1024, 4096, 33125)
    """Capacities in particles."""
    model: tuple[str, ...] = ("block", "lru")
    """block (that of [thesis]), lru, set_associative."""
    steps: int = 2000
    """Steps after the reorder."""
    looks: int = 30
    """Observations, at equal distances in the logarithm of the steps."""
    restitution: float = 0.8
    """Coefficient of restitution of inelastic collisions."""
    precision: str = "float64"
    """float64, float32."""

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
        self.check_least({"size": 2, "steps": 1, "looks": 3})
        self.check("speed", above=0, high=1, unit="d per step")
        self.check("restitution", above=0, below=1)
        self.check_memory(f"--looks {self.looks}", self.looks, "looks")
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
    "looks": 12,
}


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
    looks = np.unique(np.rint(np.geomspace(1, case.steps, case.looks)).astype(int))
    generator = np.random.default_rng([case.seed, 3])
    for step in (0, *looks.tolist()):
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


def _law(case: Config, free: float) -> tuple[SpringDashpot, float, int]:
    """Return the law, the duration of a contact in steps, and the integrator steps per step."""
    if case.interaction == "ideal":
        return SpringDashpot(0.0, 0.0), 0.0, 1
    contact = min(HARD * free, DEEPEST * math.pi / case.speed)
    e = 1.0 if case.interaction == "elastic" else case.restitution
    law = SpringDashpot.from_restitution(e, contact_time=contact)
    return law, contact, max(1, math.ceil(LEAST_STEPS / contact))


def _simulation(case: Config, state: md.State, law: SpringDashpot, parts: int) -> md.Simulation:
    return md.Simulation(
        state, law, search="linked", dt=1 / parts, backend=case.backend, precision=case.precision, fused=True
    )


def excess(rows: pd.DataFrame) -> pd.Series:
    """Compute the share of the gain over shuffled memory that is left; NaN if there was no gain."""
    more = rows["hit_ratio"] - rows["hit_ratio_shuffled"]
    keys = [rows[name] for name in (*_CASE, "model", "cache_particles")]
    first = more.groupby(keys).transform("first")
    return more / first.where(first > 1e-3)  # of all reads


def fit(steps: np.ndarray, left: np.ndarray) -> tuple[float, float]:
    """Fit half-life in steps and exponent b of exp(-ln 2 (t / t_half)^b); NaN below three observations.

    Args:
        steps: (m,) since the reorder.
        left: (m,) of the excess.

    Kohlrausch's stretched exponential, fitted by least squares in log(-log(left)) over log(steps).
    """
    use = (steps > 0) & (left > FITTED[0]) & (left < FITTED[1])
    if use.sum() < 3:
        return math.nan, math.nan
    b, offset = np.polyfit(np.log(steps[use]), np.log(-np.log2(left[use])), 1)
    return float(np.exp(-offset / b)), float(b)


def half_lives(table: pd.DataFrame) -> pd.DataFrame:
    """Fit half-life and exponent of every case, model and capacity."""
    table = table.assign(left=excess(table))
    rows = []
    for key, looks in table.groupby([*_CASE, "model", "cache_particles"], sort=False):
        half, b = fit(looks["step"].to_numpy(), looks["left"].to_numpy())
        rows.append(
            dict(zip([*_CASE, "model", "cache_particles"], key, strict=True))
            | {
                "hit_ratio_first": looks["hit_ratio"].iloc[0],
                "hit_ratio_last": looks["hit_ratio"].iloc[-1],
                "hit_ratio_shuffled": looks["hit_ratio_shuffled"].median(),
                "left_last": looks["left"].iloc[-1],
                "half_life_steps": half,
                "is_extrapolated": None if math.isnan(half) else bool(half > looks["step"].iloc[-1]),
                "exponent": b,
                "half_life_path_d": half * looks["speed_d_per_step"].iloc[0],
            }
        )
    return pd.DataFrame(rows)


def draw(table: pd.DataFrame, out: Path) -> None:
    """Draw hit ratios over steps by speed, interaction and size; write the half-lives."""
    table = table.assign(left=excess(table))
    gains = table.loc[table["left"].notna(), "cache_particles"].unique()
    capacities = gains if len(gains) else table["cache_particles"].unique()
    capacity = capacities[np.abs(np.log(capacities / SHOWN)).argmin()]
    rows = table[(table["cache_particles"] == capacity) & (table["model"] == table["model"].iloc[0])]
    what = f"model {rows['model'].iloc[0]}, cache of {capacity} particles"
    for column in ("speed", "interaction", "size", "ordering"):
        if rows[column].nunique() > 1:
            _by(rows, column, what, out)
    if all(rows[column].nunique() == 1 for column in ("speed", "interaction", "size", "ordering")):
        _by(rows, "filling_fraction", what, out)
    save_table(half_lives(table), out, "half_lives")


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
            sharex=True,
            sharey="row",
        )
        look = style.lines_in_turn(list(dict.fromkeys(part["line"])), "line") | {"markersize": 4}
        for (above, below), phi in zip(panels.T, fractions, strict=True):
            those = part if phi is None else part[part["filling_fraction"] == phi]
            last = phi == fractions[-1]
            figures.median_lines(above, those, "step", "hit_ratio", look, legend=last)
            figures.median_lines(below, those, "step", "left", look)
            above.set(ylim=(0, 1), ylabel="predicted hit ratio")
            below.set(
                xlim=(0, None),
                xscale="symlog",
                ylabel="left of the gain over shuffled",
                xlabel="steps after the reorder",
            )
            below.axhline(0, color="0.6", linewidth=0.8, zorder=0)
            if phi is not None:
                above.set_title(f"{phi:.0%} filled", fontsize=9)
            if last:
                figures.legend_outside(above, _TITLES[column])
        title = ", ".join(
            f"{_TITLES.get(name, name)} {value}" if name not in ("geometry", "interaction") else str(value)
            for name, value in zip(others, key, strict=True)
        )
        name = figures.file_name(f"by_{column}", rows, others, key)
        figures.titled(figure, f"{title}\n{what}; median and range over repeats", out, name)


if __name__ == "__main__":
    main(Config, measure, draw, quick=QUICK, spreads=True)
