"""What lifts a wing in a stream of colliding discs: where is the pressure, and how large are lift and drag?

This is the case of [lift], with numbers: colliding discs fly at an airfoil between two walls, and a disc that
leaves behind it enters again as fresh stream. After the stream has passed some chords, the momentum given to
the wing in blocks of time is its lift and drag, and fields on a grid show the shock in front of the nose and
the pressure below and above. The last steps are filmed. Successive blocks are not quite independent, so that
the standard errors are somewhat too small. Coefficients use the initial density of the tunnel; the shock
keeps some of that density from the stream.

Speeds are in units of the stream's speed, lengths in d. A Mach number M is over the sound speed of discs so
thin that they are an ideal gas of two dimensions, sqrt(2 T / m).
"""

import math
from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import matplotlib.pyplot as plt
import numpy as np
import pandas as pd

import md
from experiments.core import Axis, Settings, main, style, values
from experiments.core.terminal import FEW_PARTICLES
from experiments.drawing.film import film_or_say
from experiments.drawing.flow import Flow
from experiments.results.answers import Answer, rounded, rows_of
from experiments.results.charts import FIRST, LINES, MEAN, Chart, Points, Scale, Table
from md.boundaries import Walls
from md.laws import SpringDashpot
from md.laws.spring_dashpot import require_resolved
from md.simulation import PRECISIONS

SPEED = 1.0  # of the stream, in d per time unit
LENGTH, HEIGHT, AHEAD = 4.0, 2.5, 1.25  # of the tunnel, and position of the quarter chord in it, in chords
FIELDS = 16  # samples of the fields, in all
BINS = 20  # of the pressure along the chord
_GROUP = ["airfoil", "mach", "filling_fraction"]


@dataclass(frozen=True)
class Config(Settings):
    """Sweep of angles and streams."""

    airfoil: Axis[str] = ("0012",)
    """Airfoils: four digits of a NACA section, or a coordinate file in Selig's or Lednicer's format."""
    angle: Axis[float] = (-10.0, -5.0, 0.0, 5.0, 10.0, 20.0)
    """Angle of attack in degrees; positive is nose up."""
    mach: Axis[float] = (5.0,)
    """Mach number of the stream."""
    filling_fraction: Axis[float] = (0.1,)
    """Area of the discs over that of the tunnel, up to 0.5."""
    chord: float = 100.0
    """Chord of the wing in d; the tunnel is 4 chords long and 2.5 high."""
    restitution: float = 1.0
    """Coefficient of restitution of two discs; wing and walls are elastic."""
    contact_time: float = 0.3
    """Contact time of two discs, and of a disc with wing or wall; unit: time of the stream for one
    diameter."""
    steps_per_contact: int = 12
    """Number of steps per contact, at the longest step; 8 or more."""
    chords_before: float = 5.0
    """Distance of the stream before the measurement, in chords."""
    chords: float = 8.0
    """Distance of the stream during the measurement, in chords."""
    blocks: int = 16
    """Number of blocks of time, each with a mean of lift and drag."""
    cells: int = 160
    """Number of cells of the map along the tunnel."""
    frames: int = 48
    """Number of pictures of the film, 16 steps apart; 0 for none."""
    search: str = "lbvh"
    """Neighbour search; on a GPU `linked` is faster than the tree in a thin stream."""
    integrator: str = "velocity_verlet"
    """Integrator; adaptive_euler is that of [lift]."""
    precision: str = "float64"
    """Precision of positions, velocities and forces."""

    def __post_init__(self):
        super().__post_init__()
        self.check_known({
            "search": tuple(md.search.SEARCHES), "precision": PRECISIONS,
            "integrator": ("velocity_verlet", "adaptive_euler"),
        })  # fmt: skip
        self.check_above_zero({"filling_fraction": 0.5, "mach": 100.0, "contact_time": 1.0, "chords": 1e4})
        self.check_least({
            "chord": 10, "steps_per_contact": 8, "chords_before": 0, "blocks": 2, "cells": 8, "frames": 0,
        })  # fmt: skip
        require_resolved("--restitution", self.restitution, self.steps_per_contact)
        self.check("angle", low=-45, high=45, unit="degrees")
        tunnel = LENGTH * HEIGHT * min(self.chord, 1e100) ** 2
        discs = tunnel * self.highest("filling_fraction") / (math.pi / 4)
        self.check_memory(f"--chord {self.chord:g}", discs, "discs")
        rows = self.cells**2 * (4 + self.frames) // 8
        self.check_memory(f"--cells {self.cells} --frames {self.frames}", rows, "rows of pictures")
        for name in values(self.airfoil):
            _airfoil(name)


QUICK = {"chord": 20.0, "angle": (0.0, 15.0), "chords_before": 1.0, "chords": 2.0, "blocks": 8,
         "cells": 40, "frames": 6}  # fmt: skip
MINUTES = 40  # CPU time of one angle of a smaller chord, extrapolated


def measure(case: Config) -> Iterator[dict]:
    """Yield a row for each block of time, segment of the outline, cell of the map, and cell of a picture."""
    sim, wing = _simulation(case)
    body: Any = sim.surroundings[0]  # has the momentum given to each segment so far: (m, 2)
    common = {"n": len(sim), "length_d": LENGTH * case.chord, "height_d": HEIGHT * case.chord}
    chord_steps = case.chord / (SPEED * sim.dt)
    sim.run(max(1, round(case.chords_before * chord_steps)), phases=False)
    steps = max(FIELDS, round(case.chords * chord_steps / case.blocks))
    every, cells = max(1, steps * case.blocks // FIELDS), (case.cells, round(case.cells * HEIGHT / LENGTH))
    fields, start, started = md.observe.Fields(every, cells), body.momentum, sim.time
    given, earlier = start, started
    for block in range(case.blocks):
        sim.run(steps, phases=False, reporters=[fields])
        force = (body.momentum - given).sum(axis=0) / (sim.time - earlier)
        given, earlier = body.momentum, sim.time
        drag, lift = (force / _pressure_of_stream(case) / case.chord).tolist()
        yield common | {"what": "block", "block": block, "lift_coefficient": lift, "drag_coefficient": drag}
    force = (given - start) / (sim.time - started)
    yield from _rows(common | {"what": "segment"} | _surface(case, wing, force))
    yield from _rows(common | {"what": "cell"} | _cells(case, fields.mean()))
    for number in range(case.frames):
        sim.run(16, phases=False)
        seen = md.observe.field(sim, (case.cells // 2, round(case.cells // 2 * HEIGHT / LENGTH)))
        columns = {"what": "frame", "frame": number, "time": sim.time}
        yield from _rows(common | columns | _cells(case, seen))


def _rows(columns: dict[str, Any]) -> list[Any]:
    return pd.DataFrame(columns).to_dict("records")


def _simulation(case: Config) -> tuple[md.Simulation, md.Wing]:
    box = md.Box((LENGTH * case.chord, HEIGHT * case.chord), periodic=(True, False))
    at, stiffness = (AHEAD * case.chord, box.lengths[1] / 2), (math.pi / case.contact_time) ** 2
    airfoil = _airfoil(case.airfoil)
    wing = md.Wing(airfoil=airfoil, chord=case.chord, angle=case.angle, at=at, stiffness=stiffness)
    stream, temperature = (SPEED, 0.0), (SPEED / case.mach) ** 2 / 2
    start = md.preparation.wing_tunnel(
        case.filling_fraction, box, wing, stream, temperature, case.seed, case.backend
    )
    inflow = md.Inflow(velocity=stream, temperature=temperature, seed=case.seed)
    sim = md.Simulation(
        start, SpringDashpot.from_restitution(case.restitution, case.contact_time),
        dt=case.contact_time / case.steps_per_contact, walls=Walls(contact_time=case.contact_time),
        surroundings=[wing, inflow], search=case.search, integrator=case.integrator, backend=case.backend,
        precision=case.precision,
    )  # fmt: skip
    return sim, wing


def _airfoil(name: str) -> md.Airfoil:
    """Create a NACA section from its digits, or read a section from a file."""
    try:
        return md.naca(name) if len(name) == 4 and name.isdigit() else md.read_airfoil(name)
    except (ValueError, OSError) as error:
        raise ValueError(f"--airfoil {name}: {error}") from error


def _pressure_of_stream(case: Config) -> float:
    """Return the dynamic pressure of the stream, m n u^2 / 2, in m / time^2."""
    return case.filling_fraction / (math.pi / 4) * SPEED**2 / 2


def _cells(case: Config, seen: md.observe.Field) -> dict[str, np.ndarray]:
    """Return density over the stream's and pressure over the stream's dynamic pressure, of each cell."""
    x, y = np.meshgrid(*seen.centres, indexing="ij")
    density = seen.number_density / (case.filling_fraction / (math.pi / 4))
    columns = {"x_d": x, "y_d": y, "density_over_stream": density}
    columns["pressure_coefficient"] = seen.pressure / _pressure_of_stream(case)
    return {name: values.ravel() for name, values in columns.items()}


def _surface(case: Config, wing: md.Wing, force: np.ndarray) -> dict[str, np.ndarray]:
    """Return the pressure on each segment of the outline, and its position along the chord."""
    segments, x = wing.segments(), wing.airfoil.outline[:, 0]
    following, length = np.roll(x, -1), np.sqrt(segments[:, 7])
    pressure = -(force * segments[:, 4:6]).sum(axis=1) / length / _pressure_of_stream(case)
    return {
        "segment": np.arange(len(x)),
        "x_chords": (x + following) / 2,
        "side": np.where(following < x, "upper", "lower"),
        "length_d": length,
        "surface_pressure_coefficient": pressure,
    }


def summary(table: pd.DataFrame) -> pd.DataFrame:
    """Average each case: lift and drag with standard errors over blocks.

    Density before the nose is the largest of a cell, as the mean over the gases.
    """
    keys = [*_GROUP, "angle"]
    blocks = table[table["what"] == "block"].groupby(keys, sort=False)
    found = blocks[["lift_coefficient", "drag_coefficient"]].agg(["mean", "sem"])
    found.columns = found.columns.map("_".join)
    ahead = table[(table["what"] == "cell") & (table["x_d"] < table["length_d"] * AHEAD / LENGTH)]
    cells = ahead.groupby([*keys, "y_d", "x_d"], sort=False)["density_over_stream"].mean()
    found["density_at_nose_over_stream"] = cells.groupby(keys, sort=False).max()
    found["particles"] = blocks["n"].first()
    return found.reset_index()


def _named(airfoil: str) -> str:
    return f"NACA {airfoil}" if airfoil.isdigit() else Path(airfoil).stem


def _polar(table: pd.DataFrame) -> pd.DataFrame:
    """Name the stream of each block, and add the coefficients of a plate.

    Discs that lose their velocity along the normal push it as Newton says, those that rebound twice as much.
    """
    blocks = table[table["what"] == "block"]
    several = [name for name in _GROUP if blocks[name].nunique() > 1]
    names = blocks[several].astype(str).agg(", ".join, axis=1) if several else blocks["airfoil"].map(_named)
    angles = np.linspace(blocks["angle"].min(), blocks["angle"].max(), 101)
    turned = np.radians(angles)
    push = 2 * np.sin(turned) * np.abs(np.sin(turned))
    sides = {"lift_of_plate": push * np.cos(turned), "drag_of_plate": push * np.sin(turned)}
    plate = pd.DataFrame({"angle": angles, "repeat": 0, "stream": names.iloc[0]} | sides)
    return pd.concat([blocks.assign(stream=names), plate], ignore_index=True)


def _surface_of(table: pd.DataFrame) -> pd.DataFrame:
    """Average the pressure along the chord of each side, in bins of the chord, by the lengths of segments.

    A symmetric airfoil at a negative angle is that at the positive one with its sides exchanged, so that
    negative angles are left out if all of them have their counterpart.
    """
    segments = table[table["what"] == "segment"]
    number = np.clip((segments["x_chords"] * BINS).astype(int), 0, BINS - 1)
    push = segments["surface_pressure_coefficient"] * segments["length_d"]
    keys = [*_GROUP, "side", "angle", "x"]
    sums = segments.assign(x=(number + 0.5) / BINS, push=push).groupby(keys)[["push", "length_d"]].sum()
    found = sums.assign(pressure=sums["push"] / sums["length_d"]).reset_index()
    angles = set(found["angle"])
    is_twice = {-angle for angle in angles if angle < 0} <= angles
    found = found[found["angle"] >= 0] if is_twice else found
    most = found.groupby(_GROUP)["pressure"].transform("max").map(rounded)
    note = "; negative angles in the table" if is_twice and min(angles) < 0 else ""
    return found.assign(repeat=0, most=most, note=note, named=found["airfoil"].map(_named))


def _map(rows: pd.DataFrame, every: pd.DataFrame) -> tuple[plt.Figure, Flow]:
    """Draw the pressure of the cells around the wing, with the colour scale of `every` row to be compared."""
    place = rows.iloc[0]
    length, height = place["length_d"], place["height_d"]
    figure, panel = plt.subplots(figsize=(6.8, 1.1 + 5.2 * height / length), dpi=144)
    chord = length / LENGTH
    outline = _airfoil(place["airfoil"]).placed(chord, place["angle"], (AHEAD * chord, height / 2))
    most = np.ceil(10 * every["pressure_coefficient"].quantile(0.995)) / 10
    shown = Flow(panel, length, height, outline, most)
    shown.show(_grid(rows))
    bar = figure.colorbar(shown.scale, ax=panel, pad=0.02, shrink=0.8, extend="max")
    bar.set_label("pressure over the stream's dynamic pressure", fontsize=8)
    panel.set_title(
        f"{_named(place['airfoil'])} at {place['angle']:g} degrees, Mach {place['mach']:g}, "
        f"{place['n']:,.0f} discs, {place['filling_fraction']:.0%} filled",
        fontsize=9,
    )
    return figure, shown


def _grid(rows: pd.DataFrame) -> np.ndarray:
    """Return the pressure of the cells, (rows, columns), as the mean over the gases."""
    return rows.pivot_table("pressure_coefficient", index="y_d", columns="x_d", dropna=False).to_numpy()


def _maps(table: pd.DataFrame, out: Path) -> None:
    """Draw a map for each angle; all angles of a stream are on one colour scale."""
    for (airfoil, mach, phi), every in table[table["what"] == "cell"].groupby(_GROUP, sort=False):
        for angle, rows in every.groupby("angle", sort=False):
            if rows["n"].iloc[0] < len(rows[["x_d", "y_d"]].drop_duplicates()):
                continue  # of fewer discs than cells it is noise
            name = f"map_{Path(str(airfoil)).stem}_{mach:g}_{phi:g}_{angle:g}".replace(".", "p")
            style.save(_map(rows, every)[0], out, name, rows)


def _film(table: pd.DataFrame, out: Path) -> None:
    """Film the pictures of the last case, 16 steps apart."""
    frames = table[table["what"] == "frame"]
    frames = frames[frames["case"] == frames["case"].max()]
    if not frames.empty:
        figure, shown = _map(frames[frames["frame"] == 0], frames)
        grids = (_grid(rows) for _, rows in frames.groupby("frame"))
        film_or_say(figure, map(shown.show, grids), out / "film.mp4")


_LIFT, _DRAG = Scale("lift coefficient", line=0), Scale("drag coefficient", line=0)
VIEWS = (
    Chart(
        "lift_and_drag", "At {angle} degrees {worst} has a lift coefficient of {of_worst}", LINES,
        (Points("lift_coefficient", statistic=MEAN, values=_LIFT, repeated="blocks of time"),
         Points("drag_coefficient", statistic=MEAN, values=_DRAG, repeated="blocks of time")),
        Scale("angle of attack (degrees)", "angle"), _LIFT, "stream", prepare=_polar,
        bounds=tuple(Points(f"{factor} * {what}_of_plate", statistic=FIRST, values=values, label=label)
                     for factor, label in ((1, "plate, Newton"), (2, "plate, rebound"))
                     for what, values in (("lift", _LIFT), ("drag", _DRAG))),
    ),
    Chart(
        "surface", "The pressure on the surface is up to {most} of the stream's dynamic pressure", LINES,
        Points("pressure", statistic=FIRST), Scale("along the chord (chords)", "x"),
        Scale("pressure over the stream's dynamic pressure"), "angle", "angle of attack (degrees)", "side",
        "{side} side", files=tuple(_GROUP), prepare=_surface_of,
        note="{named}, Mach {mach}; means over the run, no spread recorded{note}",
    ),
    Table("summary", summary),
    _maps,
    _film,
)  # fmt: skip


def answer(table: pd.DataFrame) -> Answer:
    """State lift and drag with their standard errors, at the largest angle first."""
    found = summary(table).sort_values("angle", ascending=False, kind="stable")
    cells = {
        "lift": lambda row: _with_error(row, "lift_coefficient"),
        "drag": lambda row: _with_error(row, "drag_coefficient"),
        "lift over drag": lambda row: rounded(row["lift_coefficient_mean"] / row["drag_coefficient_mean"]),
    }
    row = found.iloc[0]
    lift, drag, ratio = (cell(row) for cell in cells.values())
    sentence = (
        f"At {row['angle']:g} degrees and Mach {row['mach']:g} ({row['particles']:,.0f} discs) the wing has "
        f"a lift of {lift} and a drag of {drag} (coefficients, with standard errors over blocks of time), "
        f"lift over drag {ratio}; before the nose the density is "
        f"{rounded(row['density_at_nose_over_stream'])} times that of the stream."
    )
    return Answer(rows_of(found, [*_GROUP, "angle"], cells), sentence)


def _with_error(row: dict, name: str) -> str:
    return f"{rounded(row[f'{name}_mean'])} +- {rounded(row[f'{name}_sem'])}"


if __name__ == "__main__":
    main(Config, measure, VIEWS, quick=QUICK, answer=answer, quick_limit=FEW_PARTICLES, minutes=MINUTES)
