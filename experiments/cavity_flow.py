"""How true is the flow in the lid-driven cavity, by the scheme of [cavity] and on a staggered grid?

Each cavity runs from rest to its steady state, with the solution of the pressure's equation in place of
sweeps. The extremes of the velocities along the centre lines and the stream function at the centre of the
vortex are compared with published values: those of Ghia, Ghia and Shin (1982), and where these are off by
more than 2 %, those of Marchi, Suero and Araki (2009) and of Botella and Peyret (1998). The scheme of
[cavity] has p = 0 along its lid; it is measured with zero gradient there too. A smaller time step shows
whether the steady state depends on it, and spacings halved twice show the order of convergence. Pressure,
arrows and streamlines of the steady states are drawn, and the start from rest is filmed.

Lengths are in units of the side, velocities in units of the lid's speed, times in units of side over speed.
"""

import sys
from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import matplotlib.pyplot as plt
import numpy as np
import pandas as pd

from experiments.core import Axis, Settings, figures, main, save_table
from experiments.core.terminal import COARSE_GRID
from experiments.drawing.film import film_or_say
from experiments.results.answers import Answer, rounded, rows_of
from experiments.results.charts import FIRST, HOLLOW, LINES, Chart, Layer, Marks, Points, Scale, Table
from md.cavity import Cavity, Sides, Wall
from md.cavity.scheme import SAFETY, largest_dt, spacing
from md.cavity.validation.centre_lines import centre_lines, deviation
from md.cavity.validation.convergence import observed_order
from md.cavity.validation.references import BOTELLA_PEYRET, GHIA, HELD_TO
from md.cavity.validation.steady import errors_of, steady_cavity
from md.errors import NonFiniteField, NotSteady

SCHEMES = {
    "staggered": "staggered grid",
    "collocated": "[cavity], p = 0 at the lid",
    "collocated_closed": "[cavity], zero gradient at the lid",
}
QUANTITIES = {
    "u_min": "smallest u at x = 0.5",
    "v_max": "largest v at y = 0.5",
    "v_min": "smallest v at y = 0.5",
    "psi": "psi at the vortex centre",
}
TOLERANCE = 2.0  # per cent, within which a value counts as true
_CASE = ["scheme", "reynolds", "n"]
_OF_A_FLOW = ("quantity", "value", "reference", "source", "at", "u_rms", "u_largest", "v_rms", "v_largest",
              "dt", "time", "steps", "fault")  # fmt: skip
_DRAWN, _FILMED = 64, 32  # most cells a side of a field, and of a picture of the film
_ARROWS = 16  # along a side
_RATE = 12.0  # pictures of the film a second
_FASTEST = 0.6  # speed of the brightest colour of the film; the lid is faster


@dataclass(frozen=True)
class Config(Settings):
    """Sweep of cavities."""

    scheme: Axis[str] = tuple(SCHEMES)
    """Schemes: staggered (velocities on the faces of cells), collocated (the scheme of [cavity], with p = 0
    along the lid), collocated_closed (the same with zero gradient of p along the lid)."""
    reynolds: Axis[int] = (100, 400, 1000)
    """Reynolds numbers: 100, 400 or 1000."""
    n: Axis[int] = (33, 65, 129)
    """Number of points a side."""
    dt_factor: Axis[float] = (1.0, 0.5)
    """Time step over that of `md.Cavity`."""
    largest_halved: int = 65
    """Largest number of points a side of the collocated schemes with a dt-factor below 1: these take minutes
    at 129 points."""
    settled: float = 1e-5
    """Change of the velocities in a unit of time from which a flow counts as steady."""
    drawn: int = 129
    """Number of points a side of the cases with drawn fields."""
    film_reynolds: int = 1000
    """Reynolds number of the film."""
    film_n: int = 65
    """Number of points a side of the film, which is of the staggered grid."""
    film_time: float = 20.0
    """Time from rest to the end of the film, in units of side over lid speed."""
    pictures: int = 61
    """Number of pictures of the film, at equal distances of time; 0 for none."""

    def __post_init__(self):
        super().__post_init__()
        self.check_known({"scheme": tuple(SCHEMES)})
        for name in ("reynolds", "film_reynolds"):
            for value in np.atleast_1d(getattr(self, name)).tolist():
                if value not in HELD_TO:
                    raise ValueError(f"--{name.replace('_', '-')} {value}; allowed: 100, 400, 1000")
        self.check_least({"n": 9, "largest_halved": 0, "drawn": 9, "film_n": 9, "pictures": 0})
        self.check_above_zero({"dt_factor": 1.0, "settled": 0.1, "film_time": 1e3})
        n = int(self.highest("n"))
        self.check_memory(f"--n {n}", n * n, "points")
        self.check_memory(f"--pictures {self.pictures}", self.pictures * _FILMED**2, "points of pictures")


QUICK = {"reynolds": (100,), "n": (17, 33), "drawn": 33, "film_reynolds": 100, "film_n": 33,
         "film_time": 6.0, "pictures": 13}  # fmt: skip
MINUTES = 2  # 15 of 54 cases, extrapolated


def measure(case: Config) -> Iterator[dict]:
    """Yield a row for each extreme, point of a centre line, point of a field, and point of a picture.

    A case without a steady state has one row with its fault.
    """
    first = case.dt_factor == 1.0
    if not first and case.scheme != "staggered" and case.n > case.largest_halved:
        return
    stable = SAFETY * largest_dt(spacing((case.n, case.n), 1.0), 1 / case.reynolds, 1.0)
    options: dict[str, Any] = {"dt": case.dt_factor * stable, "tolerance": case.settled}
    if case.scheme == "collocated_closed":
        options["sides"] = Sides(top=Wall(1.0))
    try:
        cavity = steady_cavity(case.scheme.partition("_")[0], case.reynolds, case.n, **options)
    except (NonFiniteField, NotSteady) as fault:
        yield {"what": "fault", "fault": str(fault)}
        return
    run = {"dt": cavity.scheme.dt, "time": cavity.time, "steps": cavity.step}
    for error in errors_of(cavity, case.reynolds):
        kept = dict(list(error._asdict().items())[3:])  # without its grid, which is that of the case
        yield {"what": "extreme"} | kept | run
    yield {"what": "deviation"} | deviation(cavity, GHIA[case.reynolds])._asdict() | run
    if not first:
        return
    along = centre_lines(cavity)
    for name, at, values in (("u", along.y, along.u), ("v", along.x, along.v)):
        for place, value in zip(at.tolist(), values.tolist(), strict=True):
            yield {"what": "line", "quantity": name, "at": round(place, 6), "value": round(value, 6)}
    if case.n == case.drawn:
        yield from _points(cavity, "field", _DRAWN, {"p": cavity.p})
    if (case.scheme, case.reynolds, case.n) == ("staggered", case.film_reynolds, case.film_n):
        yield from _start(case)


def _start(case: Config) -> Iterator[dict]:
    """Yield a row for each point of each picture of the start from rest."""
    cavity = Cavity(
        (case.n, case.n), viscosity=1 / case.reynolds, grid="staggered", pressure="converged", backend="cpu"
    )
    for time in np.linspace(0, case.film_time, case.pictures):
        cavity.run(round(time / cavity.scheme.dt) - cavity.step)
        for row in _points(cavity, "film", _FILMED, {}, digits=3):
            yield row | {"time": round(cavity.time, 4)}


def _points(
    cavity: Cavity, what: str, cells: int, fields: dict[str, np.ndarray], digits: int = 5
) -> Iterator[dict]:
    """Yield a row for each point of a field, every so many points that there are at most `cells` a side."""
    n = cavity.scheme.shape[0]
    apart = -(-(n - 1) // cells)
    found = {"u": cavity.u, "v": cavity.v} | fields
    place = np.linspace(0, 1, n).round(6)
    for j in range(0, n, apart):
        for i in range(0, n, apart):
            values = {name: round(float(field[j, i]), digits) for name, field in found.items()}
            yield {"what": what, "x": float(place[i]), "y": float(place[j])} | values


def _first(table: pd.DataFrame) -> pd.DataFrame:
    """Select the first repeat, with all columns also if no case has a steady state."""
    columns = dict.fromkeys([*table, *_CASE, *_OF_A_FLOW])
    return table[table["repeat"] == table["repeat"].min()].reindex(columns=list(columns))


def _report_faults(table: pd.DataFrame, out: Path) -> None:
    """Print and save the cases that have no steady state, and why."""
    faults = _first(table).query("what == 'fault'")
    if faults.empty:
        return
    save_table(faults[[*_CASE, "dt_factor", "fault"]], out, "faults")
    for row in faults.to_dict("records"):
        case = ", ".join(f"{name} {row[name]:g}" for name in ("reynolds", "n", "dt_factor"))
        print(f"no steady state: {SCHEMES[row['scheme']]}, {case}: {row['fault']}", file=sys.stderr)


def summary(table: pd.DataFrame) -> pd.DataFrame:
    """List the extremes of each case beside their references.

    Args:
        table: rows of `measure`; those of the first repeat count.

    Returns:
        A row for each scheme, Reynolds number, n, time step and extreme. `error_percent` is (value -
        reference) / |reference|. `dt_change_percent` is the change of the value from that at the largest time
        step of the same case, over its magnitude; None for the largest. `order` is the observed order of
        convergence from this n and those with twice and four times the spacing; None without them, or if
        the values do not approach a limit from one side.
    """
    table = _first(table)
    extremes = table[table["what"] == "extreme"]
    keys = [*_CASE, "dt_factor", "quantity"]
    found = extremes[[*keys, "value", "reference", "source"]].reset_index(drop=True)
    values: dict[Any, float] = found.set_index(keys)["value"].to_dict()
    largest = max(found["dt_factor"], default=1.0)
    changes: list[Any] = []
    orders: list[Any] = []
    for (scheme, reynolds, n, factor, quantity), value in values.items():
        base = values.get((scheme, reynolds, n, largest, quantity))
        changes.append(None if factor == largest or base is None else 100 * (value - base) / abs(base))
        sizes = (n - 1) / 4 + 1, (n - 1) / 2 + 1, n
        orders.append(_order([values.get((scheme, reynolds, size, factor, quantity)) for size in sizes]))
    relative = (found["value"] - found["reference"]) / found["reference"].abs()
    return found.assign(error_percent=100 * relative, dt_change_percent=changes, order=orders)


def deviations(table: pd.DataFrame) -> pd.DataFrame:
    """List for each case how far its centre lines are from those of Ghia et al., and its net flow.

    Args:
        table: rows of `measure`; those of the first repeat count.

    Returns:
        A row for each scheme, Reynolds number, n and time step: root mean squares and largest magnitudes of
        the deviations of u and v, time step, time and steps to the steady state. `net_flow` is the integral
        of u over x = 0.5, 0 for a fluid that keeps its mass; None for a smaller time step.
    """
    columns = [*_CASE, "dt_factor", "u_rms", "u_largest", "v_rms", "v_largest", "dt", "time", "steps"]
    table = _first(table)
    lines = table[(table["what"] == "line") & (table["quantity"] == "u")]
    flow: dict[Any, Any] = {
        (*key, 1.0): float(np.trapezoid(rows["value"], rows["at"])) for key, rows in lines.groupby(_CASE)
    }
    found = table.loc[table["what"] == "deviation", columns].reset_index(drop=True)
    keys = found[[*_CASE, "dt_factor"]].itertuples(index=False, name=None)
    net: list[Any] = [flow.get(key) for key in keys]
    return found.assign(net_flow=net)


def _order(values: list[float | None]) -> float | None:
    """Return the observed order of convergence of three values; None if there is none."""
    if any(value is None for value in values):
        return None
    try:
        return observed_order(*values)  # type: ignore[arg-type]  # none is None
    except ValueError:
        return None


def largest_errors(found: pd.DataFrame) -> pd.DataFrame:
    """List for each scheme, at its largest n, the extreme that is farthest from its reference.

    Args:
        found: rows of `summary`; those of the largest time step count.

    Returns:
        Rows of `summary` with the columns `smallest_error_percent`, and `is_within`: whether all extremes are
        within `TOLERANCE` of their references.
    """
    found = found[found["dt_factor"] == found["dt_factor"].max()]
    found = found[found["n"] == found.groupby("scheme")["n"].transform("max")]
    errors = found["error_percent"].abs().groupby(found["scheme"], sort=False)
    within = errors.max().le(TOLERANCE).to_list()
    return found.loc[errors.idxmax()].assign(smallest_error_percent=errors.min().to_list(), is_within=within)


def _errors(table: pd.DataFrame) -> pd.DataFrame:
    """Name scheme and extreme of each row of `summary`, and say whether its time step is a smaller one."""
    found = summary(table)
    is_smaller = found["dt_factor"] < found["dt_factor"].max()
    names = {name: found[name].map(words) for name, words in (("scheme", SCHEMES), ("quantity", QUANTITIES))}
    return found.assign(repeat=0, is_smaller=is_smaller, **names)


def _lines(table: pd.DataFrame) -> pd.DataFrame:
    """Select the velocities along the centre lines at the largest n of each scheme and Reynolds number."""
    lines = _first(table).query("what == 'line'")
    lines = lines[lines["n"] == lines.groupby(["scheme", "reynolds", "quantity"])["n"].transform("max")]
    names = [f"{SCHEMES[scheme]}, n = {n}" for scheme, n in zip(lines["scheme"], lines["n"], strict=True)]
    return lines.assign(flow=names)


def _published(sources: dict[int, Any], label: str) -> Marks:
    """Return the points of published tables; those that contradict their neighbours are left out."""
    parts = []
    for number, reference in sources.items():
        for quantity, at in zip("uv", "yx", strict=True):
            columns = {"at": getattr(reference, at), "value": getattr(reference, quantity)}
            rows = pd.DataFrame({"reynolds": number, "quantity": quantity} | columns)
            parts.append(rows[~rows["at"].isin(reference.doubtful)] if quantity == "v" else rows)
    return Marks(label, pd.concat(parts), "value")


def _draw_flows(table: pd.DataFrame, out: Path) -> None:
    for reynolds, rows in _first(table).query("what == 'field'").groupby("reynolds"):
        _draw_fields(rows, out, f"flow_{reynolds}")


def _draw_fields(rows: pd.DataFrame, out: Path, name: str) -> None:
    """Draw pressure and arrows, and below streamlines, of each scheme at one Reynolds number."""
    schemes = [scheme for scheme in SCHEMES if (rows["scheme"] == scheme).any()]
    size = (2.4 * len(schemes) + 1.3, 5.4)
    figure, grid = plt.subplots(2, len(schemes), figsize=size, squeeze=False, sharex=True, sharey=True)
    fields = {scheme: _grids(rows[rows["scheme"] == scheme]) for scheme in schemes}
    pressures = {scheme: one["p"] - one["p"].mean() for scheme, one in fields.items()}
    most = max(float(np.quantile(np.abs(p[1:-1, 1:-1]), 0.98)) for p in pressures.values())
    levels = np.linspace(-most, most, 21)
    between = max(1, len(fields[schemes[0]]["x"]) // _ARROWS)
    every = slice(between, -1, between)
    for (above, below), (scheme, field) in zip(grid.T, fields.items(), strict=True):
        places = field["x"], field["y"]
        shown = above.contourf(*places, pressures[scheme], levels, cmap="RdBu_r", extend="both")
        above.quiver(places[0][every], places[1][every], field["u"][every, every], field["v"][every, every],
                     scale=5.0, width=0.004, color="black")  # fmt: skip
        below.streamplot(*places, field["u"], field["v"], color="#0072B2", density=1.2, linewidth=0.7,
                         arrowsize=0.6)  # fmt: skip
        below.set(xticks=(0, 0.5, 1))
        above.set_title(SCHEMES[scheme].replace(", ", ",\n"), fontsize=9)
        below.set_xlabel("x (sides)")
        for panel in (above, below):
            panel.set(aspect="equal", xlim=(0, 1), ylim=(0, 1))
    for panel in grid[:, 0]:
        panel.set_ylabel("y (sides)")
    label = "p - mean (density x lid's speed squared)"
    ticks = np.linspace(-most, most, 5)
    bar = figure.colorbar(
        shown, ax=grid.ravel().tolist(), shrink=0.45, anchor=(0, 0.95), format="%.2g", ticks=ticks
    )
    bar.set_label(label, fontsize=8)
    number, n = rows["reynolds"].iloc[0], rows["n"].iloc[0]
    figures.titled(figure, f"steady flow, Re {number}, {n} x {n} points", out, name, rows)


def _grids(rows: pd.DataFrame) -> dict[str, np.ndarray]:
    """Return the fields of a picture as (ny, nx) arrays, and the positions x and y of columns and rows."""
    columns = [name for name in ("u", "v", "p") if rows[name].notna().any()]
    found = {name: rows.pivot(index="y", columns="x", values=name) for name in columns}
    return {name: field.to_numpy() for name, field in found.items()} | {
        "x": found["u"].columns.to_numpy(float),
        "y": found["u"].index.to_numpy(float),
    }


def _film(table: pd.DataFrame, out: Path) -> None:
    """Film the start from rest: colours for the speed, arrows for the direction and speed."""
    rows = _first(table).query("what == 'film'")
    if rows.empty:
        return
    figure, panel = plt.subplots(figsize=(5.6, 4.8), dpi=100)
    between = max(1, rows["x"].nunique() // _ARROWS)
    every, image, arrows = slice(between, -1, between), None, None
    title = f"staggered grid, Re {rows['reynolds'].iloc[0]}, {rows['n'].iloc[0]} x {rows['n'].iloc[0]} points"

    def pictures() -> Iterator[None]:
        nonlocal image, arrows
        for time, one in rows.groupby("time"):
            field = _grids(one)
            speed, u, v = np.hypot(field["u"], field["v"]), field["u"][every, every], field["v"][every, every]
            if image is None or arrows is None:
                half = (field["x"][1] - field["x"][0]) / 2  # points are at the middles of pixels
                image = panel.imshow(speed, origin="lower", extent=(-half, 1 + half, -half, 1 + half), vmin=0,
                                     vmax=_FASTEST, cmap="viridis", interpolation="bilinear")  # fmt: skip
                arrows = panel.quiver(field["x"][every], field["y"][every], u, v, color="white", scale=10.0,
                                      width=0.004)  # fmt: skip
                bar = figure.colorbar(image, ax=panel, extend="max")
                bar.set_label("speed (lid's speed)")
                panel.set(xlabel="x (sides)", ylabel="y (sides)", xlim=(0, 1), ylim=(0, 1))
            image.set_data(speed)
            arrows.set_UVC(u, v)
            panel.set_title(f"{title}, time {time:.1f} (sides over speed)", fontsize=9)
            yield

    film_or_say(figure, pictures(), out / "film.mp4", rate=_RATE)


VIEWS = (
    _report_faults,
    Table("summary", summary),
    Table("deviations", deviations),
    Chart(
        "errors", "At Re {reynolds} and {n} points a side {best} is off by {value} % ({quantity})", LINES,
        Points("abs(error_percent)", "not is_smaller", FIRST), Scale("points a side", "n", log=10),
        Scale("error (%)", log=10, line=TOLERANCE), "scheme", panels="quantity",
        heading="Re {reynolds}, {quantity}", lines="reynolds", prepare=_errors,
        layers=(Layer(Points("abs(error_percent)", "is_smaller", FIRST), HOLLOW),),
        note=f"error of the steady flow against published values; line: {TOLERANCE:g} %; no point: not "
        "measured, or no steady state; open markers: smaller time steps",
    ),
    Chart(
        "centre_lines", "Steady velocities along the centre lines, at up to {n} points a side", LINES,
        Points("value", statistic=FIRST), Scale("position (sides)", "at"),
        Scale("velocity (lid's speed)", line=0), "flow", panels="reynolds",
        heading="Re {reynolds}, {quantity}", lines="quantity", prepare=_lines,
        words={"u": "u at x = 0.5 over y", "v": "v at y = 0.5 over x"},
        marks=(_published(GHIA, "Ghia et al. (1982)"),
               _published(BOTELLA_PEYRET, "Botella and Peyret (1998)")),
    ),
    _draw_flows,
    _film,
)  # fmt: skip


def answer(table: pd.DataFrame) -> Answer:
    """Say which schemes come within the tolerance of published values, and which value is farthest off."""
    if not (table["what"] == "extreme").any():
        return Answer(pd.DataFrame(), f"None of {table['case'].nunique()} cases has a steady state.")
    found = largest_errors(summary(table))
    cells = {
        "points a side": lambda row: row["n"],
        f"within {TOLERANCE:g} %": lambda row: row["is_within"],
        "off by": lambda row: (
            f"{rounded(row['smallest_error_percent'])} to {rounded(abs(row['error_percent']))} %"
        ),
        "most": lambda row: f"{row['quantity']} at Re {row['reynolds']}",
    }
    parts = [
        f"{SCHEMES[row['scheme']]} is {'' if row['is_within'] else 'not '}within {TOLERANCE:g} % (up to "
        f"{rounded(abs(row['error_percent']))} %)"
        for row in found.to_dict("records")
    ]
    return Answer(rows_of(found, ["scheme"], cells), f"Against published values: {'; '.join(parts)}.")


if __name__ == "__main__":
    main(Config, measure, VIEWS, quick=QUICK, answer=answer, quick_limit=COARSE_GRID, minutes=MINUTES)
