"""What is the state of the shaken box of [thesis]: its density, its temperature, and its balance of energy?

Spheres move between two walls that are shaken in phase, periodic sideways: figure 6.2 of [thesis], at any
size, with a contact time of 2e-4 at a frequency of 50. Once the gas is steady, each shake gives a profile
across the box and a balance: the work of the container against the losses in the dashpots of pairs and of
walls and the increase of stored energy. All quantities are in the frame of the container. The last shake is
filmed as a section through the box, in the frame of the laboratory.
"""

from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import matplotlib.pyplot as plt
import numpy as np
import pandas as pd

import md
from experiments.core import Axis, Settings, main, style
from experiments.core.terminal import FEW_PARTICLES
from experiments.drawing.discs import Discs
from experiments.drawing.film import film_or_say
from experiments.results.answers import Answer, percent, rounded, rows_of
from experiments.results.charts import LINES, Chart, Points, Scale, Table
from md.boundaries import ShakenWalls
from md.laws import SpringDashpot
from md.laws.spring_dashpot import require_resolved
from md.observe.profile import MOST_BINS
from md.simulation import PRECISIONS

LOOKS_A_CONTACT = 25  # observations of the balance
LOOKS_A_SHAKE = 20  # observations of the profile
_GROUP = ["amplitude", "filling_fraction"]
_FLOWS = {
    "energy_in": "comes in",
    "energy_lost_in_pairs": "lost in pairs",
    "energy_lost_at_walls": "lost at walls",
    "energy_missing": "missing",
}


@dataclass(frozen=True)
class Config(Settings):
    """Sweep of shaken boxes."""

    length: float = 64.0
    """Side of the box in d; 512 in [thesis]."""
    height: float = 10.0
    """Distance of the walls in d."""
    filling_fraction: Axis[float] = (0.2,)
    """Volume of the spheres over that of the box, up to 0.6."""
    amplitude: Axis[float] = (0.6, 1.2, 1.8)
    """Amplitude of the shaking, in d."""
    frequency: float = 50.0
    """Frequency of the shaking, per time unit."""
    restitution: float = 0.8
    """Coefficient of restitution of two spheres."""
    wall_restitution: float = 0.9
    """Coefficient of restitution of a sphere and a wall."""
    wall_damping: str = "relative"
    """Velocity in the dashpots of the walls: relative to the wall, or absolute as in the program of
    [thesis]."""
    contact_time: float = 2e-4
    """Contact time of two spheres, and of a sphere and a wall, in time units."""
    steps_per_contact: int = 50
    """Number of time steps in a contact, 20 or more."""
    shakes_before: int = 10
    """Number of shakes before the measurement, until the gas is steady."""
    shakes: int = 5
    """Number of shakes that are measured."""
    bins: int = 20
    """Number of slices across the box."""
    pictures: int = 48
    """Number of pictures of the last shake, for the film; 0 for none."""
    search: str = "verlet"
    """Neighbour search."""
    precision: str = "float64"
    """Precision of positions, velocities and forces."""

    def __post_init__(self):
        super().__post_init__()
        words = {"precision": PRECISIONS, "wall_damping": ("relative", "absolute")}
        self.check_known(words | {"search": tuple(md.search.SEARCHES)})
        for name in ("length", "amplitude", "frequency", "contact_time"):
            self.check(name, above=0)
        self.check("filling_fraction", above=0, high=0.6)
        self.check("bins", low=1, high=MOST_BINS)
        self.check_least({
            "height": 1, "steps_per_contact": 20, "shakes_before": 0, "shakes": 1, "pictures": 0,
        })  # fmt: skip
        require_resolved("--restitution", self.restitution, self.steps_per_contact)
        require_resolved("--wall-restitution", self.wall_restitution, self.steps_per_contact)
        self.check_box()
        if self.contact_time * self.frequency > 0.05:
            raise ValueError(
                f"--contact-time {self.contact_time} at --frequency {self.frequency}: a contact lasts more "
                "than a twentieth of a shake; lower one of them"
            )


QUICK = {"length": 12.0, "amplitude": (0.9, 1.8), "shakes_before": 1, "shakes": 1, "contact_time": 8e-4,
         "steps_per_contact": 20, "pictures": 12}  # fmt: skip
MINUTES = 2  # one of three cases, extrapolated


def measure(case: Config) -> Iterator[dict]:
    """Yield a row for each shake, for each slice in it, and for each disc of a section in the last shake."""
    law = SpringDashpot.from_restitution(case.restitution, case.contact_time)
    bounce: dict[str, Any] = {"restitution": case.wall_restitution, "wall_damping": case.wall_damping}
    walls = ShakenWalls(amplitude=case.amplitude, frequency=case.frequency, **bounce)
    dt = case.contact_time / case.steps_per_contact
    shake = round(1 / (case.frequency * dt))
    lengths, heat = (case.length, case.length, case.height), (0.2 * walls.speed) ** 2
    state = md.preparation.shaken_box(
        case.filling_fraction, lengths, heat, seed=case.seed, backend=case.backend
    )
    sim = md.Simulation(
        state, law, search=case.search, dt=dt, walls=walls, backend=case.backend, precision=case.precision,
        fused=md.search.search(case.search).capabilities.fusable,
    )  # fmt: skip
    sim.run(shake * case.shakes_before, phases=False)
    n = len(state)
    for k in range(case.shakes):
        balance = md.observe.EnergyBalance(max(1, case.steps_per_contact // LOOKS_A_CONTACT))
        observer = md.observe.Observer(max(1, shake // LOOKS_A_SHAKE), md.observe.Profile(2, case.bins))
        sections = _Sections(max(1, shake // max(1, case.pictures)), walls)
        filmed = [sections] if case.pictures and k == case.shakes - 1 else []
        balance.report(sim)
        sim.run(shake, phases=False, reporters=[balance, observer, *filmed])
        if sim.step % balance.interval:
            balance.report(sim)
        common = {"shake": k, "n": n, "wall_speed_squared": walls.speed**2}
        common |= {"length_d": case.length, "height_d": case.height}
        sums = {name: column[-1] / n for name, column in balance.table().items() if name in _FLOWS}
        warmth = observer.table()["temperature_about_local_mean"].mean()
        yield {"what": "shake", "temperature": warmth} | common | sums
        for number, rows in pd.DataFrame(observer.profile_table()).groupby("slice"):
            yield common | {"what": "slice", "slice": number} | _slice(rows)
        yield from (common | {"what": "disc"} | row for row in sections.rows)


class _Sections:
    """Reporter of vertical sections through the middle of the box."""

    def __init__(self, interval: int, walls: ShakenWalls):
        self.interval, self.walls = interval, walls
        self.rows: list[Any] = []

    def report(self, simulation: md.Simulation) -> None:
        cut, time = md.observe.section(simulation.state), simulation.time
        speed = np.linalg.norm(cut.vel + np.array([0, 0, self.walls.velocity(time)]), axis=1)
        found = pd.DataFrame(cut.centre, columns=["x_d", "z_d"])
        found = found.assign(radius_d=cut.radius, speed_over_walls=speed / self.walls.speed)
        common = {"time": time, "lift_d": self.walls.displacement(time)}
        self.rows += [common | row for row in found.to_dict("records")]


def _slice(rows: pd.DataFrame) -> dict:
    """Average the observations of a slice; the temperature is weighted by particles, and NaN without any."""
    heat, weight = (rows["temperature"] * rows["particles"]).sum(), rows["particles"].sum()
    filling = {"local_filling_fraction": rows["filling_fraction"].mean()}
    return {"centre_d": rows["centre_d"].iloc[0]} | filling | {"temperature": heat / (weight or np.nan)}


def summary(table: pd.DataFrame) -> pd.DataFrame:
    """List the medians over shakes of temperature and energies, and the largest share that is missing."""
    shakes = table[table["what"] == "shake"]
    share = shakes["energy_missing"].abs() / shakes["energy_in"]
    gases = shakes.assign(share=share).groupby(_GROUP, sort=False)
    found = gases[[*_FLOWS, "temperature", "wall_speed_squared"]].median()
    return found.assign(missing_over_in_most=gases["share"].max()).reset_index()


def _flows(table: pd.DataFrame) -> pd.DataFrame:
    """Return a row for each flow of energy of a shake, that which is missing among them."""
    shakes = table[table["what"] == "shake"]
    named = {words: shakes[name] for name, words in _FLOWS.items()}
    return shakes.assign(**named).melt(list(shakes), list(named), "flow", "energy")


def _sections(table: pd.DataFrame, out: Path) -> None:
    """Draw the last section of the first gas of each case as a figure, and all its sections as a film."""
    every = table[(table["what"] == "disc") & (table["repeat"] == table["repeat"].min())]
    several = every["filling_fraction"].nunique() > 1
    for (amplitude, filling), discs in every.groupby(_GROUP, sort=False):
        length, height = discs[["length_d", "height_d"]].iloc[0]
        upright = height + 2 * amplitude + 1
        inches = min(7.4 / length, 3.6 / upright)  # a d
        figure, panel = plt.subplots(figsize=(1.7 + inches * length, 1 + inches * upright), dpi=144)
        fastest = np.ceil(10 * discs["speed_over_walls"].quantile(0.98)) / 10
        shown = Discs(panel, length, height, fastest, swing=amplitude)
        bar = figure.colorbar(shown.scale, ax=panel, pad=0.02, shrink=0.8, extend="max")
        bar.set_label("speed over the walls'", fontsize=8)
        panel.set_title(f"section, seen from outside; amplitude {amplitude:g} d", fontsize=9)
        name = f"section_{amplitude:g}" + (f"_{filling:g}" if several else "")
        film_or_say(figure, _pictures(shown, discs), out / f"{name}.mp4")
        style.save(figure, out, name, discs)


def _pictures(shown: Discs, discs: pd.DataFrame) -> Iterator[None]:
    """Show the sections of a case one after the other."""
    for _, at in discs.groupby("time"):
        columns = at[["x_d", "z_d", "radius_d", "speed_over_walls"]].to_numpy().T
        shown.show(*columns, lift=at["lift_d"].iloc[0])  # type: ignore[misc]
        yield


def _with_densest(table: pd.DataFrame) -> pd.DataFrame:
    """Add the filling of the densest slice."""
    densest = table.groupby("filling_fraction")["local_filling_fraction"].transform("max")
    return table.assign(densest=densest.map(percent))


VIEWS = (
    Chart(
        "profiles", "A gas that fills {filling_fraction} of the box fills up to {densest} of a slice", LINES,
        (Points("local_filling_fraction", "what == 'slice'", repeated="shakes"),
         Points("temperature / wall_speed_squared", "what == 'slice'", repeated="shakes",
                values=Scale("temperature over square of the walls' speed"))),
        Scale("height over the lower wall (d)", "centre_d"), Scale("filling fraction of a slice"),
        "amplitude", "amplitude (d)", files=("filling_fraction",), gaps=False, prepare=_with_densest,
        note="shaken box, seen from the container",
    ),
    Chart(
        "balance", "At an amplitude of {amplitude} d an energy of {of_worst} {worst}, {value} is {best}",
        LINES,
        (Points("energy / wall_speed_squared", "flow != 'missing'", repeated="shakes"),
         Points("abs(energy) / energy_in", "flow == 'missing'", repeated="shakes",
                values=Scale("missing, over what comes in", log=10, line=1e-3))),
        Scale("amplitude (d)", "amplitude"),
        Scale("energy a shake and particle over square of the walls' speed"),
        "flow", files=("filling_fraction",), gaps=False, prepare=_flows,
        note="{filling_fraction} filled; line: 0.001",
    ),
    Table("summary", summary),
    _sections,
)  # fmt: skip


def answer(table: pd.DataFrame) -> Answer:
    """State the temperature over the walls' speed squared, and where the energy of a shake goes."""
    found = summary(table).sort_values("amplitude", ascending=False, kind="stable")
    cells = {
        "temperature over walls": lambda row: rounded(row["temperature"] / row["wall_speed_squared"]),
        "lost in pairs": lambda row: percent(row["energy_lost_in_pairs"] / row["energy_in"]),
        "lost at walls": lambda row: percent(row["energy_lost_at_walls"] / row["energy_in"]),
        "missing at most": lambda row: percent(row["missing_over_in_most"]),
    }
    row = found.iloc[0]
    warm, pairs, walls, missing = (cell(row) for cell in cells.values())
    sentence = (
        f"At {percent(row['filling_fraction'])} filled and an amplitude of {row['amplitude']:g} d the "
        f"temperature is {warm} of the walls' speed squared; pairs lose {pairs} of the work of a shake, "
        f"walls {walls}, and at most {missing} is missing."
    )
    return Answer(rows_of(found, _GROUP, cells), sentence)


if __name__ == "__main__":
    main(Config, measure, VIEWS, quick=QUICK, answer=answer, quick_limit=FEW_PARTICLES, minutes=MINUTES)
