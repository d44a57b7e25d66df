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
from functools import lru_cache

import numpy as np
import pandas as pd

import md
from experiments.core import Axis, Settings, main
from experiments.core.terminal import FEW_PARTICLES
from experiments.results.answers import Answer, percent, rounded, rows_of, spread
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
_HEADING = "filling fraction and gas"


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
    law = md.laws.SpringDashpot.from_restitution(e, contact_time)
    stepped = _stepped_restitution(e, case.steps_per_contact)
    state = _thermalised(case, contact_time, dt)
    sim = _simulation(state, law, dt, case.backend)
    start = md.observe.temperature(state)
    tau = kinetic_theory.cooling_time(phi, start, stepped)
    end = tau * (10 ** (case.decades / 2) - 1)
    times = tau * (np.geomspace(1, 1 + end / tau, case.observations) - 1)
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
        yield row | {"collision_rate": 2 * _touching_pairs(sim, case) / (case.n * contact_time)}


def _touching_pairs(sim: md.Simulation, case: Config) -> float:
    """Count the touching pairs some times, a contact time apart, and return the mean."""
    found = [len(sim.pairs())]
    for _ in range(case.contact_counts - 1):
        sim.run(case.steps_per_contact, phases=False)
        found.append(len(sim.pairs()))
    return float(np.mean(found))


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


def _simulation(state: md.State, law: md.laws.SpringDashpot, dt: float, backend: str) -> md.Simulation:
    return md.Simulation(state, law, search="verlet", dt=dt, backend=backend, fused=True)


def _thermalised(case: Config, contact_time: float, dt: float) -> md.State:
    """Create the gas in equilibrium at a temperature near 1."""
    state = md.scenes.cooling_gas(
        case.n, case.filling_fraction, temperature=1.0, seed=case.seed, backend=case.backend
    )
    law = md.laws.SpringDashpot.from_restitution(1.0, contact_time)
    sim = _simulation(state, law, dt, case.backend)
    duration = THERMALISING / kinetic_theory.collision_rate(case.filling_fraction, 1.0)
    sim.run(math.ceil(duration / dt), phases=False)
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


def _slope(rows: pd.DataFrame) -> float:
    """Return tau as the slope of time over (T(0) / T)^(1/2), by least squares, as verdict T13 takes it."""
    slowed = (rows["temperature_start"] / rows["temperature"]) ** 0.5
    return float(np.polyfit(slowed, rows["time"], 1)[0])


def by_decade(table: pd.DataFrame) -> pd.DataFrame:
    """Reduce the observations of each gas to a row for each decade of energy with three of them or more.

    Args:
        table: rows of `measure` with the columns of `_GROUP` and `repeat`.

    Returns:
        For each gas, repeat and decade (1 for the first; its end belongs to it) the columns of `MEASURES`,
        of which those of homogeneity are means, and are missing if the table has none; `observations`; and
        `touching_pairs`, the sum over observations of the mean number counted.
    """
    lost = np.log10((table["temperature_start"] / table["temperature"]).to_numpy(float))
    table = table.assign(decade=np.maximum(np.ceil(lost), 1).astype(int))
    found, keys = [], [*_GROUP, "repeat", "decade"]
    for key, hard in table[table["rate_times_contact_time"] < SOFTEST].groupby(keys, sort=False):
        if len(hard) < 3:
            continue
        tau = _slope(hard) / hard["cooling_time_theory"].iloc[0]
        rate = hard["collision_rate"].sum() / hard["collision_rate_theory"].sum()
        contact_time = hard["rate_times_contact_time"] / hard["collision_rate_theory"]
        values = {
            "observations": len(hard),
            "touching_pairs": (hard["collision_rate"] * contact_time * hard["n"] / 2).sum(),
            "tau_over_theory": tau,
            "rate_over_theory": rate,
            "tau_over_theory_of_rate": tau * rate,
        }
        values |= {name: hard[name].mean() for name in MEASURES if name in hard}
        found.append(dict(zip(keys, key, strict=True)) | values)
    return pd.DataFrame(found, columns=None if found else [*keys, *MEASURES])


def decades(table: pd.DataFrame) -> pd.DataFrame:
    """Return median, least and most over repeats of the measures of each gas and decade."""
    found = by_decade(table)
    measured = [name for name in MEASURES if name in found]
    averaged = found.groupby([*_GROUP, "decade"], sort=False)[measured].agg(["median", "min", "max"])
    averaged.columns = ["_".join(column) for column in averaged.columns]
    return averaged.reset_index()


def summary(table: pd.DataFrame) -> pd.DataFrame:
    """List the cooling time of each gas, over that of theory, and the decades of energy that it lost."""
    gases = table.assign(left=table["temperature"] / table["temperature_start"]).groupby([*_GROUP, "repeat"])
    found = gases[["cooling_time_theory"]].first().assign(tau=gases.apply(fit), left=gases["left"].min())
    found = found.assign(over_theory=found["tau"] / found["cooling_time_theory"])
    columns = {
        "repeats": ("tau", "size"), "cooling_time_median": ("tau", "median"),
        "over_theory_median": ("over_theory", "median"), "over_theory_least": ("over_theory", "min"),
        "over_theory_most": ("over_theory", "max"), "decades": ("left", lambda left: -np.log10(left.min())),
    }  # fmt: skip
    return found.groupby(_GROUP, sort=False).agg(**columns).reset_index()


def _by_gas(table: pd.DataFrame) -> pd.DataFrame:
    """Name the gas of each row by its filling fraction and by what else varies, the least restitution first.

    So it is drawn if there are too many gases.
    """
    table = table.sort_values("restitution", kind="stable")
    several, sizes = table["restitution"].nunique() > 1, table["n"].nunique() > 1
    names = [
        f"{phi:.3g}" + (f", e = {e:g}" if several else "") + (f", n = {n}" if sizes else "")
        for n, phi, e in zip(*(table[name] for name in _GROUP), strict=True)
    ]
    return table.assign(gas=names)


def _over_time(table: pd.DataFrame) -> pd.DataFrame:
    """Add time and temperature in units of theory and of the start, and the range of all cooling times.

    Each repeat has its own cooling time, so that its observations are at slightly different times: they
    are joined at the median.
    """
    ratios, table = summary(table), _by_gas(table)
    left = table["temperature"] / table["temperature_start"]
    passed = table["time"] / table["cooling_time_theory"]
    number = table.groupby(["gas", "repeat"]).cumcount()
    table = table.assign(left=left, over_law=left * (1 + passed) ** 2)
    table = table.assign(passed=passed.groupby([table["gas"], number]).transform("median"))
    ends = ratios["over_theory_least"].min(), ratios["over_theory_most"].max()
    return table[table["passed"] > 0].assign(ratios=" to ".join(dict.fromkeys(map(rounded, ends))))


def _over_decades(table: pd.DataFrame) -> pd.DataFrame:
    found = by_decade(table)
    return _by_gas(found.reindex(columns=list(dict.fromkeys([*found, *MEASURES]))))


_LAW = Scale("temperature over that at the start", log=10)
VIEWS = (
    Chart(
        "cooling", "Gases cool with {ratios} times the cooling time of theory", LINES,
        (Points("left", values=_LAW), Points("over_law")),
        Scale(r"time over $\tau$ of theory", "passed", log=10), Scale("temperature over Haff's law", line=1),
        "gas", _HEADING, gaps=False, bounds=(Points("(1 + passed) ** -2.0", statistic=MIDDLE, values=_LAW),),
        note="homogeneous cooling; dotted: Haff's law with Enskog's rate", prepare=_over_time,
    ),
    Chart(
        "decades",
        r"In decade {decade} $\tau$ over theory is {value} with {best}, {of_worst} with {worst}", LINES,
        tuple(Points(name, values=scale) for name, scale in MEASURES.items()),
        Scale("decade of energy", "decade"), Scale(""), "gas", _HEADING, gaps=False,
        prepare=_over_decades, note="free cooling by decades",
    ),
    Table("decades", decades),
    Table("summary", summary),
)  # fmt: skip


def answer(table: pd.DataFrame) -> Answer:
    """Compare the cooling times with those of theory."""
    found = summary(table)
    cells = {
        "cooling time over theory": _over_theory,
        "decades of energy": lambda row: rounded(row["decades"]),
        "gases": lambda row: row["repeats"],
    }
    row = found.to_dict("records")[0]
    off = (found["over_theory_median"] - 1).abs().max()
    sentence = (
        f"At {percent(row['filling_fraction'])} filled and restitution {row['restitution']:g}, {row['n']:,} "
        f"particles cool with {_over_theory(row)} times the cooling time of theory, over "
        f"{rounded(row['decades'])} decades of energy in {row['repeats']} gases; over all {len(found)} "
        f"cases the largest difference is {percent(off)}."
    )
    return Answer(rows_of(found, _GROUP, cells), sentence)


def _over_theory(row: dict) -> str:
    """Format a cooling time over that of theory, with its range over gases."""
    return spread(row[f"over_theory_{end}"] for end in ("median", "least", "most"))


if __name__ == "__main__":
    main(Config, measure, VIEWS, quick=QUICK, answer=answer, quick_limit=FEW_PARTICLES, minutes=MINUTES)
