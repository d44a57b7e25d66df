"""Does the gas cool by Haff's law, and as fast as kinetic theory predicts?

A gas is brought to equilibrium by ten collisions per particle without loss. Then the dashpots act, and the
gas cools freely. Haff's law is T(t) = T(0) / (1 + t / tau)^2. A straight line fitted to T^(-1/2) over time
gives tau, which is compared with Enskog's for hard spheres. The spheres here are soft, so only measurements
with a collision rate times contact time below 0.02 are used; and their restitution is that of the time steps
taken, measured in collisions of pairs.
"""

import math
from collections.abc import Iterator
from dataclasses import dataclass
from functools import lru_cache
from pathlib import Path
from typing import Any

import matplotlib.pyplot as plt
import numpy as np
import pandas as pd

import md
from experiments.core import Axis, Settings, figures, main, save_table, style
from md.observe import kinetic_theory

SOFTEST = 0.02  # largest collision rate times contact time of spheres that count as hard
THERMALISING = 10  # collisions of a particle before the dashpots act
_GROUP = ["n", "filling_fraction", "restitution"]


@dataclass(frozen=True)
class Config(Settings):
    """Sweep of cooling gases."""

    n: Axis[int] = (4096,)
    """Particles. More than 16384 may cluster."""
    filling_fraction: Axis[float] = (0.05, 0.1)
    """Volume of the spheres over that of the box, up to 0.5."""
    restitution: Axis[float] = (0.8,)
    """Coefficient of restitution, above 0 and below 1."""
    decades: float = 3.0
    """Decades of energy that the gas loses."""
    observations: int = 60
    """Observations of each gas, at equal distances in the logarithm of time."""
    softness: float = 0.015
    """Collision rate times contact time at the start, at most 0.02."""
    steps_per_contact: int = 50
    """Time steps in a contact, 10 or more."""

    def __post_init__(self):
        super().__post_init__()
        self.check_least({"n": 10, "observations": 5, "steps_per_contact": 10})
        self.check_above_zero({"filling_fraction": 0.5, "softness": SOFTEST, "decades": 8.0})
        self.check("restitution", above=0, below=1, remedy="at 1 nothing cools")
        self.check_particles()
        self.check_memory(f"--observations {self.observations}", self.observations, "looks")


QUICK = {
    "n": (1024,),
    "filling_fraction": (0.1,),
    "decades": 1.0,
    "observations": 30,
    "steps_per_contact": 30,
}


def measure(case: Config) -> Iterator[dict]:
    """Yield a row for each observation of the gas: its temperature, and that of theory."""
    phi, e = case.filling_fraction, case.restitution
    contact_time = case.softness / kinetic_theory.collision_rate(phi, 1.0)
    dt = contact_time / case.steps_per_contact
    law = md.laws.SpringDashpot.from_restitution(e, contact_time)
    stepped = _stepped_restitution(e, case.steps_per_contact)
    state = _thermalised(case, contact_time, dt)
    sim = _simulation(state, law, dt, case.backend)
    start = md.observe.temperature(state)
    tau = kinetic_theory.cooling_time(phi, start, stepped)
    end = tau * (10 ** (case.decades / 2) - 1)
    times = tau * (np.geomspace(1, 1 + end / tau, case.observations) - 1)
    for steps in np.unique(np.rint(times / dt).astype(np.int64)):
        sim.run(int(steps) - sim.step, phases=False)
        temperature = md.observe.temperature(sim.state)
        rate = kinetic_theory.collision_rate(phi, temperature)
        yield {
            "time": sim.time,
            "temperature": temperature,
            "temperature_start": start,
            "restitution_stepped": stepped,
            "cooling_time_theory": tau,
            "collision_rate_theory": rate,
            "collision_rate": 2 * len(sim.pairs()) / (case.n * contact_time),
            "rate_times_contact_time": rate * contact_time,
        }


def _simulation(state: md.State, law: md.laws.SpringDashpot, dt: float, backend: str) -> md.Simulation:
    return md.Simulation(state, law, search="verlet", dt=dt, backend=backend, fused=True)


def _thermalised(case: Config, contact_time: float, dt: float) -> md.State:
    """Create the gas in equilibrium at a temperature near 1."""
    state = md.scenes.cooling_gas(
        case.n, case.filling_fraction, temperature=1.0, seed=case.seed, backend=case.backend
    )
    law = md.laws.SpringDashpot.from_restitution(1.0, contact_time)
    sim = _simulation(state, law, dt, case.backend)
    sim.run(
        math.ceil(THERMALISING / kinetic_theory.collision_rate(case.filling_fraction, 1.0) / dt), phases=False
    )
    return sim.state


@lru_cache
def _stepped_restitution(restitution: float, steps_per_contact: int) -> float:
    """Measure the restitution of head-on pairs with these steps, averaged over the offset of the contact."""
    pairs, law = 64, md.laws.SpringDashpot.from_restitution(restitution, 1.0)
    dt, speed = 1.0 / steps_per_contact, 0.05
    box = md.Box((4.0, 4.0, 3.0 * pairs))
    z = 3.0 * np.arange(pairs)
    gap = 1 + 2 * speed * dt * (1 + np.arange(pairs) / pairs)
    left, right = (np.column_stack([1 + side * gap, np.ones(pairs), z]) for side in (0, 1))
    vel = np.zeros((2 * pairs, 3))
    vel[:pairs, 0], vel[pairs:, 0] = speed, -speed
    sim = md.Simulation(md.State(np.vstack([left, right]), vel, box), law, dt=dt, backend="cpu")
    sim.run(2 * steps_per_contact, phases=False)
    return float(np.abs(sim.state.by_id().vel[:, 0]).mean() / speed)


def fit(rows: pd.DataFrame) -> float:
    """Fit tau of a straight line through T^(-1/2), where spheres are hard; NaN for too few rows."""
    hard = rows[rows["rate_times_contact_time"] < SOFTEST]
    if len(hard) < 3:
        return float("nan")
    slope, _ = np.polyfit(hard["time"], hard["temperature"] ** -0.5, 1, w=hard["temperature"] ** 0.5)
    return float(rows["temperature_start"].iloc[0] ** -0.5 / slope)


def draw(table: pd.DataFrame, out: Path) -> None:
    """Draw the temperature and T^(-1/2) over time with theory; write the cooling times."""
    table = table.assign(
        passed=table["time"] / table["cooling_time_theory"],
        left=table["temperature"] / table["temperature_start"],
    )
    table["slowed"] = table["left"] ** -0.5
    several, sizes = table["restitution"].nunique() > 1, table["n"].nunique() > 1
    table["gas"] = [
        f"{phi:.3g}" + (f", e = {e:g}" if several else "") + (f", n = {n}" if sizes else "")
        for n, phi, e in zip(*(table[name] for name in _GROUP), strict=True)
    ]
    style.save(_cooling(table), out, "cooling")
    rows = []
    for key, gases in table.groupby(_GROUP, sort=False):
        times = [fit(gas) for _, gas in gases.groupby("repeat")]
        ratios = np.array(times) / gases.groupby("repeat")["cooling_time_theory"].first().to_numpy()
        rows.append(
            dict(zip(_GROUP, key, strict=True))
            | {
                "repeats": len(times),
                "cooling_time_median": np.median(times),
                "over_theory_median": np.median(ratios),
                "over_theory_least": ratios.min(),
                "over_theory_most": ratios.max(),
                "decades": -np.log10(gases["left"].min()),
            }
        )
    save_table(pd.DataFrame(rows), out, "summary")


def _cooling(table: pd.DataFrame) -> plt.Figure:
    figure, (falls, line) = figures.panels_in_a_row(["", ""], 3.8, margin=0)
    names = list(dict.fromkeys(table["gas"]))
    look = style.lines_in_turn(names, "gas") | {"markersize": 4}
    # Each repeat has its own cooling time, so that its observations are at slightly different times.
    looks = table.groupby(["gas", "n", "repeat"]).cumcount()
    joined = table.assign(passed=table.groupby(["gas", "n", looks])["passed"].transform("median"))
    figures.median_lines(falls, joined, "passed", "left", look, legend=True)
    figures.median_lines(line, joined, "passed", "slowed", look)
    first = table.loc[table["passed"] > 0, "passed"].min()
    passed = np.geomspace(max(first, 1e-3), table["passed"].max(), 200)
    theory: dict[str, Any] = {"color": "black", "linestyle": "--"}
    falls.plot(passed, (1 + passed) ** -2.0, label="Haff's law, Enskog's rate", **theory)
    line.plot(passed, 1 + passed, **theory)
    falls.set(xscale="log", yscale="log", ylabel="temperature over that at the start")
    line.set(ylabel=r"$(T / T_0)^{-1/2}$")
    for panel in (falls, line):
        panel.set_xlabel(r"time over $\tau$ of theory")
    falls.legend(title="filling fraction", fontsize=7)
    figure.suptitle("homogeneous cooling; median and range over repeats", fontsize=9)
    return figure


if __name__ == "__main__":
    main(Config, measure, draw, quick=QUICK, spreads=True)
