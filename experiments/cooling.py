"""Does the gas cool by Haff's law, and as fast as kinetic theory predicts?

A gas is brought to equilibrium by ten collisions per particle without loss. Then the dashpots act, and the
gas cools freely. Haff's law is T(t) = T(0) / (1 + t / tau)^2. A straight line fitted to T^(-1/2) over time
gives tau, which is compared with Enskog's for hard spheres. The spheres here are soft, so only measurements
with a collision rate times contact time below 0.02 are used; and their restitution is that of the time steps
taken, measured in collisions of pairs.

The law holds while the gas is homogeneous. Therefore tau is also fitted in each decade of energy, beside the
measured collision rate, and two measures on a grid of cells with about 32 particles each. One is the variance
of the number of particles in a cell over that of an ideal gas; it grows with clusters. The other is the
energy of the flow, that is of the mean velocities of the cells, over its value for the same energy in
velocities without correlation; it is 1 at first, and grows with the correlation. tau over that of theory
with the measured collision rate tells whether a slow decade has fewer collisions, or collisions that take
less energy. The rate is that of touching pairs, which has a bias of some percent, the same in all decades
(`md.observe.Observation.collision_rate_by_touching`): compare it with that of the first decade.
"""

import math
from collections.abc import Iterator
from dataclasses import dataclass
from functools import lru_cache, partial

import numpy as np
import pandas as pd

import md
from experiments.core import Axis, Settings, main
from experiments.core.terminal import FEW_PARTICLES
from experiments.results.answers import Answer, listed, percent, rounded, rows_of, spread
from experiments.results.charts import LINES, MIDDLE, Chart, Points, Scale, Table
from md.laws.spring_dashpot import LEAST_RESTITUTION
from md.observe import kinetic_theory

SOFTEST = 0.02  # largest collision rate times contact time of spheres that count as hard
THERMALISING = 10  # collisions of a particle before the dashpots act
IN_A_CELL = 32  # particles in a cell of the grid on which homogeneity is measured, on average
MEASURES = {  # columns of `by_decade`, and their axes
    "tau_over_theory": Scale(r"$\tau$ of a decade over theory", line=1),
    "rate_over_theory": Scale("collision rate over Enskog's", line=1),
    "tau_over_theory_of_rate": Scale(r"$\tau$ over theory with measured rate", line=1),
    "count_variance": Scale("variance of counts over ideal gas", line=1),
    "flow_energy": Scale("energy of flow over uncorrelated", log=10, line=1),
}
_GROUP = ["n", "filling_fraction", "restitution"]


@dataclass(frozen=True)
class Config(Settings):
    """Sweep of cooling gases."""

    n: Axis[int] = (4096,)
    """Number of particles. More than 16384 may cluster."""
    filling_fraction: Axis[float] = (0.05, 0.1)
    """Volume of the spheres over that of the box, up to 0.5."""
    restitution: Axis[float] = (0.8,)
    """Coefficient of restitution, from 0.01 and below 1."""
    decades: float = 3.0
    """Number of decades of energy that the gas loses."""
    observations: int = 60
    """Number of observations of each gas, at equal distances in the logarithm of time."""
    softness: float = 0.015
    """Collision rate times contact time at the start, at most 0.02."""
    steps_per_contact: int = 50
    """Number of time steps in a contact, 10 or more."""
    contact_counts: int = 4
    """Number of counts of the touching pairs in each observation, a contact time apart. Their mean is the
    measured collision rate."""

    def __post_init__(self):
        super().__post_init__()
        self.check_least({"n": 10, "observations": 5, "steps_per_contact": 10, "contact_counts": 1})
        self.check_above_zero({"filling_fraction": 0.5, "softness": SOFTEST, "decades": 8.0})
        self.check("restitution", low=LEAST_RESTITUTION, below=1, remedy="at 1 nothing cools")
        self.check_particles()
        self.check_memory(f"--observations {self.observations}", self.observations, "observations")


QUICK = {"n": (1024,), "filling_fraction": (0.1,), "decades": 1.0, "observations": 15,
         "steps_per_contact": 20, "contact_counts": 2}  # fmt: skip
MINUTES = 1  # CPU time of one of two cases, extrapolated


def measure(case: Config) -> Iterator[dict]:
    """Yield a row for each observation of the gas: temperature, collision rate and homogeneity."""
    phi, e = case.filling_fraction, case.restitution
    contact_time = case.softness / kinetic_theory.collision_rate(phi, 1.0)
    dt = contact_time / case.steps_per_contact
    law = partial(md.laws.SpringDashpot.from_restitution, contact_time=contact_time)
    simulate = partial(md.Simulation, search="verlet", dt=dt, backend=case.backend, fused=True)
    stepped = _stepped_restitution(e, case.steps_per_contact)
    gas = simulate(
        md.preparation.cooling_gas(case.n, phi, 1.0, seed=case.seed, backend=case.backend), law(1.0)
    )
    gas.run(math.ceil(THERMALISING / kinetic_theory.collision_rate(phi, 1.0) / dt), phases=False)
    state = gas.state
    del gas  # frees the device
    sim, start = simulate(state, law(e)), md.observe.temperature(state)
    tau = kinetic_theory.cooling_time(phi, start, stepped)
    times = tau * (np.geomspace(1, 10 ** (case.decades / 2), case.observations) - 1)
    for steps in np.unique(np.rint(times / dt).astype(np.int64)):
        if steps < sim.step:
            continue  # the contacts of the last observation were still counted
        sim.run(int(steps) - sim.step, phases=False)
        temperature = md.observe.temperature(sim.state)
        rate = kinetic_theory.collision_rate(phi, temperature)
        row = {
            "time": sim.time,
            "temperature": temperature,
            "temperature_start": start,
            "restitution_stepped": stepped,
            "cooling_time_theory": tau,
            "collision_rate_theory": rate,
            "rate_times_contact_time": rate * contact_time,
            **homogeneity(sim.state),
        }
        touching = [len(sim.pairs())]
        for _ in range(case.contact_counts - 1):
            sim.run(case.steps_per_contact, phases=False)
            touching.append(len(sim.pairs()))
        yield row | {"collision_rate": 2 * float(np.mean(touching)) / (case.n * contact_time)}


def homogeneity(state: md.State) -> dict[str, float]:
    """Measure how homogeneous a gas at rest is, on a grid of about `IN_A_CELL` particles in a cell.

    Args:
        state: periodic, of at least 2 particles.

    Returns:
        count_variance: of the number of particles in a cell over that of an ideal gas, n p (1 - p) with
        p = 1 / cells. flow_energy: sum of k |u|^2 over all cells, with k particles of mean velocity u, over
        its expectation for independent velocities of the same energy, which is (m - 1) / (n - 1) of the sum
        of v^2 with m cells that are not empty. flow_over_thermal: the same sum over the rest of the sum of
        v^2.
    """
    n, dim = state.pos.shape
    a_side = max(2, round((n / IN_A_CELL) ** (1 / dim)))
    at = np.minimum((state.pos / state.box.lengths * a_side).astype(np.int64), a_side - 1)
    cell, cells = at @ a_side ** np.arange(dim), a_side**dim
    count = np.bincount(cell, minlength=cells)
    vel = state.vel - state.vel.mean(axis=0)
    momentum = np.array([np.bincount(cell, vel[:, axis], cells) for axis in range(dim)])
    flow, whole = float((momentum**2).sum(axis=0) @ (1 / np.maximum(count, 1))), float((vel**2).sum())
    return {
        "count_variance": float(count.var() / (n / cells * (1 - 1 / cells))),
        "flow_energy": flow / (whole * (np.count_nonzero(count) - 1) / (n - 1)),
        "flow_over_thermal": flow / (whole - flow) if whole > flow else math.inf,
    }


@lru_cache
def _stepped_restitution(restitution: float, steps_per_contact: int) -> float:
    """Measure the restitution of head-on pairs with these steps, averaged over the offset of the contact."""
    pairs, speed, dt = 64, 0.05, 1.0 / steps_per_contact
    gap = 1 + 2 * speed * dt * (1 + np.arange(pairs) / pairs)
    sides = (np.column_stack([1 + side * gap, np.ones(pairs), 3.0 * np.arange(pairs)]) for side in (0, 1))
    vel = np.repeat([[speed, 0.0, 0.0], [-speed, 0.0, 0.0]], pairs, axis=0)
    state = md.State(np.vstack([*sides]), vel, md.Box((4.0, 4.0, 3.0 * pairs)))
    law = md.laws.SpringDashpot.from_restitution(restitution, 1.0)
    sim = md.Simulation(state, law, dt=dt, backend="cpu")
    sim.run(2 * steps_per_contact, phases=False)
    return float(np.abs(sim.state.by_id().vel[:, 0]).mean() / speed)


def fit(rows: pd.DataFrame) -> float:
    """Fit tau of a straight line through T^(-1/2), where spheres are hard; NaN for too few rows."""
    hard = rows[rows["rate_times_contact_time"] < SOFTEST]
    if len(hard) < 3:
        return float("nan")
    slope, _ = np.polyfit(hard["time"], hard["temperature"] ** -0.5, 1, w=hard["temperature"] ** 0.5)
    return float(rows["temperature_start"].iloc[0] ** -0.5 / slope)


def by_decade(table: pd.DataFrame) -> pd.DataFrame:
    """Reduce the observations of each gas to a row for each decade of energy with three of them or more.

    Args:
        table: rows of `measure` with the columns of `_GROUP` and `repeat`.

    Returns:
        For each gas, repeat and decade (1 for the first; its end belongs to it) the columns of `MEASURES`.
    """
    lost = np.log10((table["temperature_start"] / table["temperature"]).to_numpy(float))
    table = table.assign(decade=np.maximum(np.ceil(lost), 1).astype(int))
    hard, keys = table[table["rate_times_contact_time"] < SOFTEST], [*_GROUP, "repeat", "decade"]
    found = [
        dict(zip(keys, key, strict=True)) | _measures(rows)
        for key, rows in hard.groupby(keys, sort=False)
        if len(rows) >= 3
    ]
    return pd.DataFrame(found, columns=[*keys, *MEASURES])


def _measures(hard: pd.DataFrame) -> dict[str, float]:
    """Return the measures of some observations of a gas.

    tau is the slope of time over (T(0) / T)^(1/2), by least squares, as verdict T13 takes it. Those of
    homogeneity are means.
    """
    slowed = (hard["temperature_start"] / hard["temperature"]) ** 0.5
    tau = float(np.polyfit(slowed, hard["time"], 1)[0]) / hard["cooling_time_theory"].iloc[0]
    rate = hard["collision_rate"].sum() / hard["collision_rate_theory"].sum()
    ratios = {"tau_over_theory": tau, "rate_over_theory": rate, "tau_over_theory_of_rate": tau * rate}
    return ratios | {name: hard[name].mean() for name in MEASURES if name not in ratios}


def decades(table: pd.DataFrame) -> pd.DataFrame:
    """Return median, least and most over repeats of the measures of each gas and decade."""
    gases = by_decade(table).groupby([*_GROUP, "decade"], sort=False)
    found = gases[[*MEASURES]].agg(["median", "min", "max"])
    found.columns = found.columns.map("_".join)
    return found.reset_index()


def summary(table: pd.DataFrame) -> pd.DataFrame:
    """List the cooling time of each gas, over that of theory, and the decades of energy that it lost."""
    gases = table.groupby([*_GROUP, "repeat"])
    found = gases[["cooling_time_theory", "temperature_start", "temperature"]].min()
    found["tau"] = gases.apply(fit)
    found["over_theory"] = found["tau"] / found["cooling_time_theory"]
    found["decades"] = -np.log10(found["temperature"] / found["temperature_start"])
    columns = {
        "repeats": ("tau", "size"), "cooling_time_median": ("tau", "median"),
        "over_theory_median": ("over_theory", "median"), "over_theory_least": ("over_theory", "min"),
        "over_theory_most": ("over_theory", "max"), "decades": ("decades", "max"),
    }  # fmt: skip
    return found.groupby(_GROUP, sort=False).agg(**columns).reset_index()


def _by_gas(table: pd.DataFrame) -> pd.DataFrame:
    """Name the gas of each row by what varies, the least restitution first: drawn if there are too many."""
    table = table.sort_values("restitution", kind="stable")
    several = [name for name in _GROUP if table[name].nunique() > 1] or ["filling_fraction"]
    words = {name: f"{name.replace('_', ' ')} " + table[name].astype(str) for name in several}
    return table.assign(gas=pd.DataFrame(words).agg(listed, axis=1))


def _over_time(table: pd.DataFrame) -> pd.DataFrame:
    """Add time and temperature in units of theory and of the start, and the range of all cooling times.

    Each repeat has its own cooling time, so that its observations are at slightly different times: they
    are joined at the median.
    """
    found, table = summary(table), _by_gas(table)
    ends = found["over_theory_least"].min(), found["over_theory_most"].max()
    passed = table["time"] / table["cooling_time_theory"]
    number = table.groupby(["gas", "repeat"]).cumcount()
    joined = passed.groupby([table["gas"], number]).transform("median")
    table = table.assign(own=passed, passed=joined, ratios=" to ".join(dict.fromkeys(map(rounded, ends))))
    return table[joined > 0]


def _filled(rows: pd.DataFrame) -> str:
    return f"free cooling, {listed(map(percent, rows['filling_fraction'].unique()))} filled"


_LAW = Scale("temperature over that at the start", log=10)
_LEFT = "temperature / temperature_start"
VIEWS = (
    Chart(
        "cooling", "Gases cool with {ratios} times the cooling time of theory", LINES,
        (Points(_LEFT, values=_LAW), Points(f"{_LEFT} * (1 + own) ** 2")),
        Scale(r"time over $\tau$ of theory", "passed", log=10), Scale("temperature over Haff's law", line=1),
        "gas", "gas", gaps=False, bounds=(Points("(1 + passed) ** -2.0", statistic=MIDDLE, values=_LAW),),
        prepare=_over_time,
        note=lambda rows: f"{_filled(rows)}; dotted: Haff's law with Enskog's rate",
    ),
    Chart(
        "decades", "In decade {decade} the slowest gas, {worst}, takes {of_worst} times the time of theory",
        LINES, tuple(Points(name, values=scale) for name, scale in MEASURES.items()),
        Scale("decade of energy", "decade"), Scale(""), "gas", "gas", gaps=False,
        prepare=lambda table: _by_gas(by_decade(table)), note=lambda rows: f"{_filled(rows)}, by decades",
    ),
    Table("decades", decades),
    Table("summary", summary),
)  # fmt: skip


def answer(table: pd.DataFrame) -> Answer:
    """Compare the cooling times with those of theory."""
    found = summary(table)
    over = [f"over_theory_{end}" for end in ("median", "least", "most")]
    cells = {
        "cooling time over theory": lambda row: spread(map(row.get, over)),
        "decades of energy": lambda row: rounded(row["decades"]),
        "gases": lambda row: row["repeats"],
    }
    first = found.iloc[0]
    ratio, lost, gases = (cell(first) for cell in cells.values())
    off = (found["over_theory_median"] - 1).abs().max()
    sentence = (
        f"At {percent(first['filling_fraction'])} filled and restitution {first['restitution']:g}, "
        f"{first['n']:,.0f} particles cool with {ratio} times the cooling time of theory, over {lost} "
        f"decades of energy in {gases:.0f} gases; over all {len(found)} cases the largest difference is "
        f"{percent(off)}."
    )
    return Answer(rows_of(found, _GROUP, cells), sentence)


if __name__ == "__main__":
    main(Config, measure, VIEWS, quick=QUICK, answer=answer, quick_limit=FEW_PARTICLES, minutes=MINUTES)
