"""How does one gas divided among ranks scale, and which curve or other division of the cells is best?

Ranks are measured in turn on one core: threads of one process, of which one works at a time, with one thread
of Numba each. `time_ms` is the largest work of a rank in a step: CPU time of its thread for builds, forces,
packing and unpacking ghosts, and migrations. The network, waiting, and the cut of the box (`cut_ms`, of one
rank) are not in it. Ranks in turn find the caches cold, which ranks on cores of their own do not.

Each sample starts from the same gas, so that all have the same steps. Divisions are chunks of cells along an
order of `sfc` ("row" makes slabs), bricks, recursive bisection, and METIS, a graph partitioner, if pymetis is
installed. Cells of a rank lie in memory along Hilbert's curve in every division, so that only owners differ.
After each sample the sum of squared velocities is compared with that of one rank.

Beside the measured halo, ghosts over particles, stands the predicted one: two ghost cells for each face that
is cut between chunks of equal numbers of cells (`sfc.locality.partition_cut`). A forecast of a larger gas on
up to 4096 ranks rests on laws of work and halo fitted to the table, and on a latency and a bandwidth that are
settings and not measured; its rows and its figure are called forecasts.
"""

import sys
from collections.abc import Iterator
from dataclasses import dataclass
from functools import lru_cache, partial
from pathlib import Path
from typing import Any, ClassVar

import matplotlib.pyplot as plt
import numpy as np
import pandas as pd
from matplotlib.ticker import LogLocator, NullFormatter

import md
import sfc
from experiments.core import Axis, TimedSettings, main, style
from experiments.core.terminal import FITS_CACHE
from experiments.drawing.domains import draw_domains
from experiments.forecasts.ranks import Laws, fit_laws, forecast
from experiments.measurement.correctness import check_error
from experiments.measurement.hardware_caches import working_set
from experiments.measurement.ranks import RankWork, work_of_ranks
from experiments.measurement.rounds import Entry, take_rounds
from experiments.prediction.divided.densities import DENSITIES, UNIFORM, Scene, scene_of
from experiments.prediction.divided.divisions import (
    METIS,
    OTHERS,
    Remembered,
    cut_faces,
    has_metis,
    known,
    on_many_ranks,
    owners_of,
)
from experiments.results import gains
from experiments.results.answers import (
    Answer,
    bounds,
    estimate,
    gain_in_words,
    grid,
    headline,
    listed,
    one_run,
    percent,
    ranked,
    rounded,
)
from experiments.results.baselines import again, is_again, original
from experiments.results.charts import (
    BARS,
    DOTS,
    LINES,
    MIDDLE,
    Chart,
    Points,
    Scale,
    Summary,
    Table,
)
from md.domain.migrate import cells_of
from md.domain.partition import Partition
from md.particles.cell_grid import CellGrid

SLABS, HILBERT = "row", "hilbert"
SEARCHES = "verlet", "linked", "coherent"
PHASES = "build", "force", "exchange", "migrate"
TOLERANCE = 1e-9  # of the sum of squared velocities
LETTERS = "0123456789ABCDEFGHIJKLMNOPQRSTUVWXYZ"  # of ranks, in the map of a layer of cells
FORECAST_RANKS = (64, 128, 256, 512, 1024, 2048, 4096)
DRAWN = ("hilbert", "row", "gilbert", "bricks", "bisection", METIS)  # six lines with intervals fit a figure
FORECAST = (*DRAWN, "morton")


@dataclass(frozen=True)
class Config(TimedSettings):
    """Sweep of divided gases."""

    TOGETHER: ClassVar[tuple[str, ...]] = ("division",)

    backend: str = "cpu"
    """Device; a divided gas runs on the CPU."""
    n: Axis[int] = (2**16, 2**18)
    """Number of particles of all ranks."""
    ranks: Axis[int] = (1, 2, 4, 16)
    """Numbers of ranks, in turn, which wait longer the more they are. One rank has no division."""
    density: Axis[str] = DENSITIES
    """Densities: uniform, clusters (eight, in a box of eight times their volume), gravity (over a floor, less
    with height)."""
    filling_fraction: Axis[float] = (0.2,)
    """Volume of the spheres over that of the box, up to 0.5, where it is full: in clusters, at the floor."""
    division: tuple[str, ...] = (HILBERT, SLABS, "morton", "gilbert", *OTHERS)
    """Divisions of the cells: chunks of an order of `sfc` (row makes slabs; random has ghosts of all ranks),
    bricks, bisection, metis. The first is measured twice: the difference is noise."""
    search: str = "verlet"
    """Neighbour search: verlet, linked or coherent."""
    travel: float = 0.8
    """Distance in d that a particle may travel between two migrations: ghosts are within the cutoff and twice
    that."""
    warmup: int = 5
    """Number of steps of a sample before those that are measured."""
    steps: int = 50
    """Number of steps that are measured. The defaults have one migration in them."""
    rounds: int = 1
    """Number of rounds of a run. In each, every compared case is sampled once, in random order."""
    drawn_ranks: int = 16
    """Number of ranks at which domains are drawn, up to 36."""
    forecast_n: int = 2**24
    """Number of particles of the forecast."""
    latency_us: float = 2.0
    """Latency of a message of the forecast, in microseconds; not measured."""
    bandwidth_gb_per_s: float = 20.0
    """Bandwidth of a rank of the forecast, in 10^9 bytes per second; not measured."""

    def __post_init__(self):
        super().__post_init__()
        self.check_known({"density": DENSITIES, "division": known(), "search": SEARCHES})
        self.check_least({"n": 2, "ranks": 1, "warmup": 1, "steps": 1, "forecast_n": 1, "latency_us": 0})
        self.check("drawn_ranks", low=1, high=len(LETTERS))
        self.check_above_zero({"filling_fraction": 0.5, "travel": 100.0, "bandwidth_gb_per_s": 1e6})
        self.check_particles(2)
        if self.backend == "cuda":
            raise ValueError(
                "--backend cuda; allowed: cpu, on which a gas is divided among ranks; leave it out"
            )
        if not self.measured:
            raise ValueError(
                f"--division {METIS} needs pymetis; allowed: others; pip install '.[peers]' brings it"
            )

    @property
    def measured(self) -> tuple[str, ...]:
        """Divisions that can be measured here."""
        return tuple(name for name in self.division if name != METIS or has_metis())

    @property
    def notes(self) -> tuple[str, ...]:
        """That METIS is left out where it is not installed."""
        is_whole = self.measured == self.division
        return () if is_whole else (f"{METIS} is left out: pymetis is not installed; pip install '.[peers]'",)


QUICK = {
    "n": (2**11, 2**13), "ranks": (1, 2, 4), "density": (UNIFORM,), "runs": 1, "warmup": 2, "steps": 10,
    "drawn_ranks": 4, "division": (HILBERT, SLABS, "bricks"),
}  # fmt: skip
MINUTES = 28  # on a machine with other work, from two runs


def measure(case: Config, begin: int = 0) -> Iterator[list[dict]]:
    """Yield the rounds from `begin` on, with a row for each division."""
    place = md.backend.get("cpu")
    names = case.measured if case.ranks > 1 else case.measured[:1]
    grid_of_cells = _grid(case)
    entries = [_entry(case, name, grid_of_cells) for name in (names[0], again(names[0]), *names[1:])]
    yield from take_rounds(entries, case.rounds, place, seed=case.seed, begin=begin, settle=0)


def _grid(case: Config) -> CellGrid:
    """Return the cells that are divided, as `md.domain.division.Domain` makes them."""
    reach = md.scenes.BENCHMARK_LAW.cutoff + 2 * case.travel
    return CellGrid(_scene(case).state.box, reach, np.dtype(float), md.backend.get("cpu"))


def _scene(case: Config) -> Scene:
    return _made(case.density, case.n, case.filling_fraction, case.seed)


@lru_cache(maxsize=1)
def _made(density: str, n: int, filling_fraction: float, seed: int) -> Scene:
    """Make a gas in shuffled memory, once for all divisions."""
    scene = scene_of(density, n, filling_fraction, seed)
    return scene._replace(state=md.scenes.in_memory_order(scene.state, "shuffled", seed))


@lru_cache(maxsize=1)
def _motion(case: Config) -> float:
    """Return the sum of squared velocities after the steps of a sample on one rank."""
    (one,) = work_of_ranks(1, partial(_simulation, case, HILBERT), case.warmup, case.steps)
    return one.motion


def _simulation(case: Config, name: str, ranks: md.Communicator) -> md.Simulation:
    """Make the simulation of one rank, which begins with a part of the particles by their place in memory."""
    scene = _scene(case)
    rows = np.array_split(np.arange(case.n), ranks.size)[ranks.rank]
    division = md.Division(HILBERT, case.travel, is_part=True, owners=Remembered(name))
    return md.Simulation(
        scene.state.take(rows), md.scenes.BENCHMARK_LAW, search=case.search, dt=md.scenes.BENCHMARK_DT,
        backend="cpu", fused=True, communicator=ranks, division=division, **scene.options,
    )  # fmt: skip


def _entry(case: Config, name: str, cells: CellGrid) -> Entry:
    """Return a division, ready to be sampled, with what is predicted of it."""
    division = original(name)
    columns = {"division": name, **_predicted(case, division, cells)}
    columns |= working_set(case.n, 3, "float64", md.backend.get("cpu"))

    def sample() -> Iterator[dict]:
        found = work_of_ranks(case.ranks, partial(_simulation, case, division), case.warmup, case.steps)
        what = f"the velocities of {division} on {case.ranks} ranks differ from those of one rank"
        check_error(what, abs(sum(one.motion for one in found) / _motion(case) - 1), TOLERANCE)
        yield _columns(found, case)

    return Entry(columns, sample, threads=1)


def _columns(found: list[RankWork], case: Config) -> dict[str, Any]:
    """Return the columns of a sample of all ranks."""
    ranks = pd.DataFrame(found)
    mean, largest = ranks.mean(), ranks.max()
    row = {"time_ms": largest["work_ms"], "sample_ms": case.steps * ranks["work_ms"].sum()}
    row |= {"work_mean_ms": mean["work_ms"], "imbalance": largest["work_ms"] / mean["work_ms"]}
    row |= {f"{phase}_ms": mean[f"{phase}_ms"] for phase in PHASES}
    row |= {f"{name}_mean": mean[name] for name in ("owned", "ghosts", "peers")}
    row |= {f"{name}_largest": int(largest[name]) for name in ("owned", "ghosts", "peers")}
    row |= {name: mean[name] for name in ("messages", "bytes", "builds")}
    row |= {name: int(largest[name]) for name in ("migrations", "diameter")}
    return row | {"halo_share": ranks["ghosts"].sum() / case.n}


def _predicted(case: Config, name: str, cells: CellGrid) -> dict[str, Any]:
    """Return the columns of a division before a step: its cells and faces, and the time to cut the box."""
    state, shape, owners = _scene(case).state, cells.shape, owners_of(name)
    weights = np.bincount(cells_of(Partition("row", cells, 1), state.pos), minlength=cells.size).astype(float)
    with cells.backend.stopwatch() as elapsed:
        owner = owners(shape, cells.box, weights, case.ranks)
    if name in OTHERS:
        faces = cut_faces(owners(shape, cells.box, np.ones(cells.size), case.ranks), shape)
    else:
        faces = sfc.locality.partition_cut(sfc.covering(name, shape), case.ranks).cut
    shares = np.bincount(owner, weights, case.ranks)
    layer = owner.reshape(shape[::-1])[shape[2] // 2]
    is_drawn, many = case.ranks == case.drawn_ranks, on_many_ranks(name)
    return {
        "cells": cells.size, "cell_d": float(np.prod(cells.box.lengths) / cells.size) ** (1 / 3),
        "number_density": 6 * case.filling_fraction / np.pi, "cut_ms": elapsed[0],
        "cut_faces": cut_faces(owner, shape), "predicted_cut_faces": faces,
        "predicted_halo_share": 2 * faces / cells.size,
        "imbalance_of_particles": shares.max() / shares.mean(),
        "peers_of_many": many.peers, "ghosts_of_many": many.ghosts,
        "layer": "/".join("".join(LETTERS[one] for one in row) for row in layer) if is_drawn else "",
        "forecast_n": case.forecast_n, "latency_us": case.latency_us,
        "bandwidth_gb_per_s": case.bandwidth_gb_per_s,
    }  # fmt: skip


_WHERE = ["density", "filling_fraction", "n"]


def _with_ideal(table: pd.DataFrame) -> pd.DataFrame:
    """Return the rows of several ranks, beside the time of one rank, which has no division.

    Returns:
        The rows with `ideal_ms`, the time of one rank over the number of ranks, and `per_rank`, particles.
    """
    one = table[table["ranks"] == 1].groupby([*_WHERE, "run"])["time_ms"].median().rename("one_ms")
    rows = table[table["ranks"] > 1].merge(one.reset_index(), on=[*_WHERE, "run"], how="left")
    per_rank = (rows["n"] / rows["ranks"]).round().astype(int)
    return rows.assign(ideal_ms=rows["one_ms"] / rows["ranks"], per_rank=per_rank)


def _strong(table: pd.DataFrame) -> pd.DataFrame:
    """Return the rows of several ranks of the largest gas."""
    return _with_ideal(_largest(table))


def _weak(table: pd.DataFrame) -> pd.DataFrame:
    """Return the rows of the first density with as many particles a rank as others on other ranks."""
    rows = _with_ideal(table[table["density"] == table["density"].iloc[0]])
    rows = rows[rows.groupby([*_WHERE[:2], "per_rank"])["ranks"].transform("nunique") > 1]
    return rows.sort_values(["per_rank", "ranks"], kind="stable")


def _largest(table: pd.DataFrame) -> pd.DataFrame:
    """Return the rows of the largest gas."""
    return table[table["n"] == table["n"].max()]


def _most(table: pd.DataFrame) -> pd.DataFrame:
    """Return the rows of the largest gas on the most ranks."""
    rows = _largest(table)
    return rows[rows["ranks"] == rows["ranks"].max()]


def _beside(table: pd.DataFrame) -> pd.DataFrame:
    """Return the rows of `_most` twice, with the halo measured and that predicted."""
    halo = {"measured": "halo_share", "predicted by cut faces": "predicted_halo_share"}
    rows = _most(table)
    return pd.concat([rows.assign(what=what, halo=rows[column]) for what, column in halo.items()])


def _by_phase(table: pd.DataFrame) -> pd.DataFrame:
    """Return the rows of `_most` once for each phase."""
    rows = _most(table)
    return pd.concat([rows.assign(phase=phase, phase_ms=rows[f"{phase}_ms"]) for phase in PHASES])


def _laws(table: pd.DataFrame) -> tuple[Laws, pd.Series] | None:
    """Fit the laws to the uniform gas of the first filling; None if it has too few cases."""
    rows = table[table["density"] == UNIFORM]
    rows = rows[rows["filling_fraction"] == rows["filling_fraction"].iloc[0]] if len(rows) else rows
    laws = fit_laws(rows) if len(rows) else None
    return None if laws is None else (laws, rows.iloc[0])


def _forecast(table: pd.DataFrame) -> pd.DataFrame:
    """Return the forecast of the gas that the settings name."""
    if (found := _laws(table)) is None:
        return pd.DataFrame()
    laws, one = found
    rows = forecast(laws, one["forecast_n"], FORECAST_RANKS, one["latency_us"], one["bandwidth_gb_per_s"])
    return rows.round(6)


def _draw_forecast(table: pd.DataFrame, out: Path) -> None:
    """Draw the forecast as dashed lines, over the network's share."""
    rows = _forecast(table)
    if rows.empty:
        print("no forecast: it needs a uniform gas with two cases of 8 ranks or more", file=sys.stderr)
        return
    one = table.iloc[0]
    figure, panel = plt.subplots(figsize=(6.4, 3.9))
    names = [name for name in rows["division"].unique() if name in FORECAST]
    looks = style.lines_in_turn(names, "division")
    for name in names:
        own = rows[rows["division"] == name]
        panel.plot(
            own["ranks"], own["time_ms"], linestyle="--", label=name, color=looks["palette"][name],
            marker=looks["markers"][name], markersize=4, fillstyle="none",
        )  # fmt: skip
    panel.set(xlabel="ranks", ylabel="forecast of a step (ms)")
    panel.set_xscale("log", base=2)
    panel.set_yscale("log")
    panel.yaxis.set_major_locator(LogLocator(subs=(1, 2, 5)))
    panel.yaxis.set_major_formatter("{x:g}")
    panel.yaxis.set_minor_formatter(NullFormatter())
    style.label_ends(panel)
    most = rows[rows["ranks"] == rows["ranks"].max()].sort_values("time_ms")
    best, last = most.iloc[0], most.iloc[-1]
    figure.suptitle(
        f"Forecast, not measured: {best['n']:,} particles on {best['ranks']:,} ranks take "
        f"{rounded(best['time_ms'])} ms a step by {best['division']}, {rounded(last['time_ms'])} by "
        f"{last['division']}\n"
        f"laws fitted to {table['ranks'].max()} ranks and fewer; {one['latency_us']:g} us a message, "
        f"{one['bandwidth_gb_per_s']:g} GB/s"
    )
    style.save(figure, out, "forecast", table)


def _draw_layers(table: pd.DataFrame, out: Path) -> None:
    """Draw the middle layer of cells of the largest gas, a panel for each density and division."""
    drawn = table[(table["layer"] != "") & ~table["division"].map(is_again)]
    drawn = drawn[(drawn["n"] == drawn["n"].max()) & (drawn["run"] == drawn["run"].min())]
    drawn = drawn.drop_duplicates(["density", "division"])
    if drawn.empty:
        return
    layers: dict[str, dict] = {density: {} for density in drawn["density"]}
    for row in drawn.to_dict("records"):
        owners = [[LETTERS.index(letter) for letter in line] for line in row["layer"].split("/")]
        layers[row["density"]][row["division"]] = owners, f"halo {rounded(row['halo_share'])}"
    n, ranks = drawn["n"].iloc[0], drawn["ranks"].iloc[0]
    title = f"domains of {ranks} ranks in the middle layer of cells, {n:,} particles"
    style.save(draw_domains(layers, title), out, "domains", drawn)


_RANKS = Scale("ranks", "ranks", log=2)
_TIME = Scale("largest work of a rank in a step (ms)", log=10)
_SERIES: dict[str, Any] = {"series": "division", "order": DRAWN}
VIEWS = (
    Chart(
        "strong", "{density}, {ranks} ranks: the largest work of a rank is least by {best}, {value} ms",
        LINES, Points("time_ms"), _RANKS, _TIME, panels="density", heading="{density}",
        bounds=(Points("ideal_ms", statistic=MIDDLE, label="one rank / ranks"),), varying=("ranks",),
        note="ranks in turn on one core, without network; {n} particles", prepare=_strong,
        files=("filling_fraction",), **_SERIES,
    ),
    Chart(
        "weak", "{per_rank} particles a rank, {ranks} ranks: {best} takes {value} ms",
        LINES, Points("time_ms"), _RANKS, _TIME, panels="per_rank", heading="{per_rank} particles a rank",
        note="{density}; ranks in turn on one core, without network", prepare=_weak, varying=("ranks",),
        files=("filling_fraction",), **_SERIES,
    ),
    Chart(
        "halo", "{density}, {n} particles on {ranks} ranks: the halo is least by {best}, {value}",
        DOTS, Points("halo"), Scale("", "division"),
        Scale("ghosts over particles", log=10), "what", panels="density", heading="{density}",
        prepare=_beside, files=("filling_fraction",),
    ),
    Chart(
        "phases", "{density}, {n} particles on {ranks} ranks: mean work of a rank, by phase", BARS,
        Points("phase_ms", statistic=MIDDLE), Scale("", "division"),
        Scale("mean work of a rank in a step (ms)"), "phase", panels="density", heading="{density}",
        prepare=_by_phase, files=("filling_fraction",),
    ),
    _draw_layers, _draw_forecast, Table("forecast", _forecast),
    Summary(
        (*_WHERE, "ranks"), "division", (HILBERT, SLABS),
        more=dict.fromkeys(("halo_share", "predicted_halo_share", "imbalance", "imbalance_of_particles",
                            "peers_mean", "bytes", "builds", "cut_ms"), "mean"), prepare=_most,
    ),
)  # fmt: skip


def _beats(rows: pd.DataFrame) -> str:
    """Return on how many ranks Hilbert's chunks are faster than slabs, as a sentence; empty without both."""
    found = gains.gains(rows, ["ranks"], "division", SLABS)
    every = found[found["division"] == HILBERT].sort_values("ranks").to_dict("records")
    verdicts = ((row["ranks"], row.get("difference", gains.FASTER), bounds(row, "gain")[1]) for row in every)
    better = [count for count, verdict, low in verdicts if verdict == gains.FASTER and low > 1]
    where = f"on {listed(better)} ranks" if better else "on no number of ranks"
    of = f"of {listed(row['ranks'] for row in every)}" if every else ""
    return f" {HILBERT} beats slabs {where} {of}." if every else ""


def _forecast_in_words(table: pd.DataFrame) -> str:
    """Return the best division of the forecast on the most ranks, with the errors of the laws."""
    rows = _forecast(table)
    if rows.empty:
        return ""
    most = rows[rows["ranks"] == rows["ranks"].max()].sort_values("time_ms").iloc[0]
    return (
        f"Forecast, not measured: {most['n']:,} particles on {most['ranks']:,} ranks take "
        f"{rounded(most['time_ms'])} ms a step by {most['division']}. Cases left out of the fit differ from "
        f"the law of work by {percent(most['work_law_error'])}, from that of its halo by "
        f"{percent(most['halo_law_error'])}."
    )


def answer(table: pd.DataFrame) -> Answer:
    """Name the division with the least work of the largest rank, its gains, and the forecast."""
    several = table[table["ranks"] > 1]
    if several.empty:
        return Answer(pd.DataFrame(), "Only one rank was measured; give --ranks.")
    rows = headline(several, "density", "filling_fraction", "n")
    at = headline(rows, "ranks")
    first, times = at.iloc[0], ranked(at, "division")
    best = next(iter(times))
    said = f"{best} takes {estimate(times[best], 'time_ms')} ms, the largest work of a rank"
    for baseline, words in ((HILBERT, HILBERT), (SLABS, "slabs")):
        found = gains.gains(at, [], "division", baseline)
        for row in found[found["division"] == best].to_dict("records"):
            said += f", {gain_in_words(row)} times as fast as {words}"
    where = f"{first['density']}, {first['n']:,} particles on {first['ranks']} ranks in turn, without network"
    cells = _cells(headline(several, "filling_fraction", "n", "ranks"), times)
    ahead = _forecast_in_words(table)
    return Answer(cells, f"{where}: {said}.{_beats(rows)}{one_run(at)}", (ahead,) if ahead else ())


def _cells(at: pd.DataFrame, times: dict[str, dict]) -> pd.DataFrame:
    """Return the gains of the divisions over Hilbert's chunks, the best first, for each density.

    Args:
        at: rows on the most ranks.
        times: division -> time at the first density, the least first.
    """
    found = gains.gains(at, ["density"], "division", HILBERT)
    if found.empty:
        return pd.DataFrame({"ms": [estimate(row, "time_ms") for row in times.values()]}, index=[*times])
    cells = grid(found, "division", "density", gain_in_words, f"gain over {HILBERT}")
    return cells.loc[[name for name in times if name in cells.index]]


if __name__ == "__main__":
    main(Config, measure, VIEWS, quick=QUICK, answer=answer, quick_limit=FITS_CACHE, minutes=MINUTES)
