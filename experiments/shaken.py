"""What is the state of the shaken box of [thesis]: its density, its temperature, and its balance of energy?

Spheres move between two walls that are shaken in phase, periodic sideways: figure 6.2 of [thesis], at any
size, with a contact time of 2e-4 at a frequency of 50. Once the gas is steady, each shake gives a profile
across the box and a balance: the work of the container against the losses in the dashpots of pairs and of
walls and the increase of stored energy. All quantities are in the frame of the container. The last shake is
filmed as a section through the box, in the frame of the laboratory.
"""

import sys
from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import matplotlib.pyplot as plt
import numpy as np
import pandas as pd

import md
from experiments.core import Axis, Settings, figures, main, save_table, style
from experiments.core.terminal import FEW_PARTICLES
from experiments.drawing.discs import Discs
from experiments.drawing.film import WITHOUT, can_film, film
from experiments.results.answers import Answer, percent, rounded, rows_of
from md.boundaries import ShakenWalls
from md.laws import SpringDashpot
from md.laws.spring_dashpot import require_resolved
from md.observe.profile import MOST_BINS
from md.simulation import PRECISIONS

LOOKS_A_CONTACT = 25  # observations of the balance
LOOKS_A_SHAKE = 20  # observations of the profile
_GROUP = ["amplitude", "filling_fraction"]
_SUMS = ("energy_in", "energy_lost_in_pairs", "energy_lost_at_walls", "energy_missing")
_FLOWS = {
    "energy_in": "comes in",
    "energy_lost_in_pairs": "lost in pairs",
    "energy_lost_at_walls": "lost at walls",
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
        self.check_known({
            "precision": PRECISIONS, "wall_damping": ("relative", "absolute"),
            "search": tuple(md.search.SEARCHES),
        })  # fmt: skip
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
    damping: Any = case.wall_damping  # one of two words, which the Config checks
    walls = ShakenWalls(
        amplitude=case.amplitude,
        frequency=case.frequency,
        restitution=case.wall_restitution,
        wall_damping=damping,
    )
    dt = case.contact_time / case.steps_per_contact
    shake = round(1 / (case.frequency * dt))
    lengths = (case.length, case.length, case.height)
    warm = (0.2 * walls.speed) ** 2
    state = md.scenes.shaken_box(
        case.filling_fraction, lengths, temperature=warm, seed=case.seed, backend=case.backend
    )
    sim = md.Simulation(
        state,
        law,
        search=case.search,
        dt=dt,
        walls=walls,
        backend=case.backend,
        precision=case.precision,
        fused=md.search.search(case.search).capabilities.fusable,
    )
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
        sums = {name: column[-1] / n for name, column in balance.table().items() if name in _SUMS}
        warmth = observer.table()["temperature_about_local_mean"].mean()
        yield {"what": "shake", "temperature": warmth} | common | sums
        for number, rows in pd.DataFrame(observer.profile_table()).groupby("slice"):
            yield common | {"what": "slice", "slice": number} | _slice(rows)
        for row in sections.rows:
            yield common | {"what": "disc"} | row


class _Sections:
    """Reporter of vertical sections through the middle of the box."""

    def __init__(self, interval: int, walls: ShakenWalls):
        self.interval, self.walls = interval, walls
        self.rows: list[dict] = []

    def report(self, simulation: md.Simulation) -> None:
        cut, time = md.observe.section(simulation.state), simulation.time
        speed = np.linalg.norm(cut.vel + np.array([0, 0, self.walls.velocity(time)]), axis=1)
        common = {"time": time, "lift_d": self.walls.displacement(time)}
        for (x, z), radius, fast in zip(cut.centre, cut.radius, speed / self.walls.speed, strict=True):
            here = {"x_d": x, "z_d": z, "radius_d": radius, "speed_over_walls": fast}
            self.rows.append(common | here)


def _slice(rows: pd.DataFrame) -> dict:
    """Average the observations of a slice; the temperature is weighted by particles."""
    weight = rows["particles"].sum()
    heat = (rows["temperature"].fillna(0) * rows["particles"]).sum()
    return {
        "centre_d": rows["centre_d"].iloc[0],
        "local_filling_fraction": rows["filling_fraction"].mean(),
        "temperature": heat / weight if weight else np.nan,
    }


def draw(table: pd.DataFrame, out: Path) -> None:
    """Draw profiles across the box, the energy of a shake, and sections; write the summary."""
    several = table["filling_fraction"].nunique() > 1
    table = table.assign(
        name=[
            f"{a:g} d" + (f", {phi:g}" if several else "")
            for a, phi in zip(table["amplitude"], table["filling_fraction"], strict=True)
        ],
        warmth=table["temperature"] / table["wall_speed_squared"],
    )
    slices, shakes = table[table["what"] == "slice"], table[table["what"] == "shake"]
    style.save(_profiles(slices), out, "profiles")
    for phi, those in shakes.groupby("filling_fraction", sort=False):
        style.save(_balance(those), out, "balance" + (f"_{phi:g}" if several else ""), those)
    save_table(summary(shakes), out, "summary")
    first = table[(table["what"] == "disc") & (table["repeat"] == table["repeat"].min())]
    for (amplitude, share_filled), discs in first.groupby(_GROUP, sort=False):
        _sections(discs, out, f"section_{amplitude:g}" + (f"_{share_filled:g}" if several else ""))


def summary(shakes: pd.DataFrame) -> pd.DataFrame:
    """List the medians over shakes of temperature and energies, and the largest share that is missing.

    Args:
        shakes: rows of shakes.
    """
    found = shakes.groupby(_GROUP, sort=False)[[*_FLOWS, "energy_missing", "temperature"]].median()
    share = shakes.assign(share=shakes["energy_missing"].abs() / shakes["energy_in"])
    return found.assign(missing_over_in_most=share.groupby(_GROUP)["share"].max()).reset_index()


def _profiles(slices: pd.DataFrame) -> plt.Figure:
    figure, (dense, hot) = figures.panels_in_a_row(["", ""], 3.7, margin=0)
    look = style.steps_in_turn(list(dict.fromkeys(slices["name"])), "name") | {"markersize": 3.5}
    figures.median_lines(dense, slices, "centre_d", "local_filling_fraction", look)
    figures.median_lines(hot, slices, "centre_d", "warmth", look)
    dense.set_ylabel("filling fraction of a slice")
    hot.set_ylabel("temperature over\nsquare of the walls' speed")
    for panel in (dense, hot):
        panel.set_xlabel("height over the lower wall (d)")
    figures.name_lines(hot, "amplitude")
    figure.suptitle("shaken box, seen from the container; median and range over shakes", fontsize=9)
    return figure


def _balance(shakes: pd.DataFrame) -> plt.Figure:
    figure, (flows, missing) = figures.panels_in_a_row(["", ""], 3.7, margin=0)
    scaled = shakes.assign(**{name: shakes[name] / shakes["wall_speed_squared"] for name in _FLOWS})
    long = scaled.melt(["amplitude", "shake"], list(_FLOWS), "flow", "energy").replace({"flow": _FLOWS})
    look = style.lines_in_turn(list(_FLOWS.values()), "flow")
    figures.median_lines(flows, long, "amplitude", "energy", look)
    flows.legend(title=None, fontsize=7)
    flows.set(xlabel="amplitude (d)", ylabel="energy a shake and particle over\nsquare of the walls' speed")
    share = shakes.assign(share=shakes["energy_missing"].abs() / shakes["energy_in"])
    found = share.groupby("amplitude")["share"].agg(["median", "min", "max"])
    missing.plot(found.index, found["median"], "ko-", markersize=4, linewidth=1.2)
    missing.fill_between(found.index, found["min"], found["max"], color="black", alpha=0.18, linewidth=0)
    missing.axhline(1e-3, color="0.5", linestyle=":", label="0.001")
    missing.set(xlabel="amplitude (d)", ylabel="missing in the balance,\nover what comes in", yscale="log")
    figures.plain_log_ticks(missing)
    missing.legend(title=None, fontsize=7)
    figure.suptitle("energy of a shake; median and range over shakes", fontsize=9)
    return figure


def _sections(discs: pd.DataFrame, out: Path, name: str) -> None:
    """Draw the last section of one gas as a figure, and all its sections as a film."""
    amplitude, length, height = discs[["amplitude", "length_d", "height_d"]].iloc[0]
    upright = height + 2 * amplitude + 1
    inches = min(7.4 / length, 3.6 / upright)  # a d
    figure, panel = plt.subplots(figsize=(1.7 + inches * length, 1 + inches * upright), dpi=144)
    fastest = np.ceil(10 * discs["speed_over_walls"].quantile(0.98)) / 10
    shown = Discs(panel, length, height, fastest, swing=amplitude)
    bar = figure.colorbar(shown.scale, ax=panel, pad=0.02, shrink=0.8, extend="max")
    bar.set_label("speed over the walls'", fontsize=8)
    panel.set_title(f"section, seen from outside; amplitude {amplitude:g} d", fontsize=9)

    def pictures() -> Iterator[None]:
        for _, at in discs.groupby("time"):
            x, z, radius, speed = (
                at[name].to_numpy() for name in ("x_d", "z_d", "radius_d", "speed_over_walls")
            )
            shown.show(x, z, radius, speed, lift=at["lift_d"].iloc[0])
            yield

    for _ in pictures():
        pass
    if can_film():
        film(figure, pictures(), out / f"{name}.mp4")
    else:
        print(WITHOUT, file=sys.stderr)
    style.save(figure, out, name, discs)


def answer(table: pd.DataFrame) -> Answer:
    """State the temperature over the walls' speed squared, and where the energy of a shake goes."""
    shakes = table[table["what"] == "shake"]
    found = summary(shakes)
    walls = shakes.groupby(_GROUP, sort=False)["wall_speed_squared"].median().reset_index()
    found = found.merge(walls, on=_GROUP).sort_values("amplitude", ascending=False, kind="stable")
    cells = {
        "temperature over walls": lambda row: rounded(row["temperature"] / row["wall_speed_squared"]),
        "lost in pairs": lambda row: percent(row["energy_lost_in_pairs"] / row["energy_in"]),
        "lost at walls": lambda row: percent(row["energy_lost_at_walls"] / row["energy_in"]),
        "missing at most": lambda row: percent(row["missing_over_in_most"]),
    }
    row = found.to_dict("records")[0]
    words = {name: cell(row) for name, cell in cells.items()}
    sentence = (
        f"At {percent(row['filling_fraction'])} filled and an amplitude of {row['amplitude']:g} d the "
        f"temperature is {words['temperature over walls']} of the walls' speed squared; pairs lose "
        f"{words['lost in pairs']} of the work of a shake, walls {words['lost at walls']}, and at most "
        f"{words['missing at most']} is missing."
    )
    return Answer(rows_of(found, _GROUP, cells), sentence)


if __name__ == "__main__":
    main(Config, measure, draw, quick=QUICK, answer=answer, quick_limit=FEW_PARTICLES, minutes=MINUTES)
