"""How much is a memory order worth over size, filling and age, and was it foreseen?

Sizes are numbers of particles; `w` is the working set of a step (positions, velocities, forces) over the last
cache of the chip. The age of an order is the mean path that spheres have flown since they were sorted. `cube`
is an elastic gas in a periodic cube, `box` the shaken box of [thesis].

`--what predicted` runs the model of memory of `sfc.cache` on a CPU, for `--machine`, with copies of a small
gas that has flown. `--what timed` measures: in each round the gas is sorted and flies, and at each age some
steps are timed, in turns with those of the same gas in shuffled memory, which in the box flies too. A gain is
the time of shuffled memory over that of the order, of the force (`part` force: moved particles included) or
of the whole step. Forces are compared with those of another search before.

`--occupied` MB are read again and again by another kernel meanwhile, which takes a part of the last cache of
a GPU, of each of its halves. With 0 among several sizes it reads a quarter of a MB: all else is the same, so
that what changes is due to capacity. How much it holds depends on how often others replace what it reads.
"""

from collections.abc import Iterator
from contextlib import nullcontext
from dataclasses import dataclass, replace
from functools import partial
from typing import Any, ClassVar

import numpy as np
import pandas as pd

import md
import sfc
from experiments.core import Axis, TimedSettings, main
from experiments.core.terminal import FITS_CACHE
from experiments.forecasts.flown import (
    BOX,
    DT,
    SCENES,
    aged_gases,
    copies_of,
    fly,
    flying,
    gas_of,
    in_order,
    speed,
)
from experiments.forecasts.predicted import forecasts
from experiments.loads import step_loads
from experiments.measurement.correctness import check_forces, require_forces
from experiments.measurement.hardware_caches import step_bytes, working_set
from experiments.measurement.kernels.cache_occupier import BLOCKS, MOST_BLOCKS, Occupier
from experiments.measurement.kernels.cache_occupier import MOST as MOST_OCCUPIED
from experiments.measurement.rounds import Entry, take_rounds
from experiments.measurement.step_times import phases_of, whole_steps
from experiments.results.answers import Answer, rounded
from experiments.results.baselines import SHUFFLED
from experiments.results.charts import FILLED, LINES, Chart, Points, Scale
from md.simulation import PRECISIONS
from sfc.cache import Machine
from sfc.cache.machine import KNOWN

PREDICTED, TIMED = "predicted", "timed"
FORCE, STEP = "force", "step"
SIZES = tuple(base * 2**k for k in range(10, 20) for base in (45, 64))  # factors of about sqrt 2
TOUCHING = 20  # steps after which spheres touch
NUMBERS = 4  # of a position, velocity or force on a GPU


@dataclass(frozen=True)
class Config(TimedSettings):
    """Gases of several sizes, fillings and ages of their memory order."""

    TOGETHER: ClassVar[tuple[str, ...]] = ("machine", "path", "occupied")

    scene: Axis[str] = ("cube",)
    """cube: an elastic gas; box: the shaken box of [thesis]."""
    n: Axis[int] = SIZES
    """Number of particles, 1024 or more; in the box about as many."""
    filling_fraction: Axis[float] = (0.2,)
    """Volume of the spheres over that of the box, up to 0.5."""
    ordering: Axis[str] = ("hilbert",)
    """Memory orders: 3D orderings of `sfc`."""
    search: Axis[str] = ("linked",)
    """Neighbour searches that do not move the particles: linked, scattered."""
    precision: Axis[str] = ("float32",)
    """Precision of positions, velocities and forces."""
    path: tuple[float, ...] = (0.0, 0.25, 0.5, 1.0, 2.0, 4.0, 8.0, 16.0)
    """Mean paths in d that spheres have flown since they were sorted, in ascending order."""
    occupied: tuple[float, ...] = (0.0,)
    """MB that another kernel reads meanwhile; predicted with so much less in each half of the cache."""
    blocks: int = BLOCKS
    """Blocks of that kernel, of 1024 threads each, on as many multiprocessors."""
    what: str = TIMED
    """timed, or predicted for `--machine`, in one run and round."""
    machine: tuple[str, ...] = KNOWN
    """Chips for which times are predicted: names, or files that `experiments.machine` wrote."""
    steps: int = 8
    """Steps of a sample, once phase by phase and once as a whole."""

    def __post_init__(self):
        super().__post_init__()
        self.check_known({
            "scene": SCENES, "ordering": sfc.orderings(3), "search": ("linked", "scattered"),
            "precision": PRECISIONS, "what": (PREDICTED, TIMED),
        })  # fmt: skip
        self.check_above_zero({"filling_fraction": 0.5})
        self.check_least({"n": 1024, "steps": 1})
        self.check("path", low=0, unit="d")
        self.check("occupied", low=0, unit="MB")
        self.check("blocks", low=1, high=MOST_BLOCKS)
        if [*self.path] != sorted(set(self.path)):
            raise ValueError(f"--path {' '.join(map(str, self.path))}; allowed: paths in ascending order")
        for name in self.machine if self.what == PREDICTED else ():
            chip = Machine.read(name)
            if max(self.occupied) * 2e6 >= chip.l2_bytes:
                raise ValueError(
                    f"--occupied {max(self.occupied):g} MB, in each half, of the {chip.l2_bytes / 1e6:.0f} "
                    f"MB of {name}; allowed: less than half of it"
                )
        if self.what == TIMED:
            self.check_particles(4)
            self._check_occupied()
        else:  # forecasts of all runs and rounds are the same
            for name in ("runs", "rounds"):
                object.__setattr__(self, name, 1)

    def _check_occupied(self) -> None:
        """Check that another kernel can read as much, on this device.

        Raises:
            ValueError: it cannot.
        """
        self.check("occupied", high=MOST_OCCUPIED / 1e6, unit="MB")
        if max(self.occupied) and self.backend == "cpu":
            raise ValueError(
                f"--occupied {max(self.occupied):g} beside --backend cpu; allowed: 0, or a device, on which "
                "another kernel runs in the same time"
            )


QUICK = {"n": (2**14, 2**16), "path": (0.0, 0.25), "steps": 4, "runs": 1, "rounds": 1}
MINUTES = 60  # extrapolated


def measure(case: Config, begin: int = 0) -> Iterator[list[dict]]:
    """Yield the rounds from `begin` on, or predictions as one round.

    Rows have `particles`, `w`, `path_d`, `flown_d`, `steps_taken`, `part`, `time_ms`, `shuffled_ms`
    and `gain`.
    """
    if case.what == TIMED:
        yield from _timed(case, begin)
    elif not begin:
        yield [*_predicted(case)]


def _predicted(case: Config) -> Iterator[dict]:
    """Yield a row for each age and chip."""
    chips = {
        (name, occupied): _without(Machine.read(name), occupied)
        for name in case.machine for occupied in case.occupied
    }  # fmt: skip
    shuffled: dict = {}
    for gas, path in zip(
        aged_gases(case.scene, case.n, case.filling_fraction, case.path, case.seed), case.path, strict=True
    ):
        n = len(gas.now)
        put = partial(in_order, case.scene, gas, search=case.search, precision=case.precision, seed=case.seed)
        foresee = partial(forecasts, kernel=case.search, n=n, chips=chips, seed=case.seed)
        if case.scene == BOX or not shuffled:
            shuffled = {chip: row["time_us"] for chip, row in foresee(step_loads(put(SHUFFLED)))}
        for (name, occupied), row in foresee(step_loads(put(case.ordering))):
            base, own = shuffled[name, occupied] / 1e3, row.pop("time_us") / 1e3
            held = step_bytes(n, NUMBERS, case.precision)
            yield row | {
                "round": 0, "machine": name, "occupied_MB": occupied, "particles": n, "path_d": path,
                "flown_d": gas.path, "steps_taken": gas.steps, "part": FORCE, "time_ms": own,
                "shuffled_ms": base, "gain": base / own, "working_set_MB": held / 1e6,
                "w": held / Machine.read(name).l2_bytes,
            }  # fmt: skip


def _without(machine: Machine, occupied: float) -> Machine:
    """Return a chip of which some MB of each half of the second cache are taken."""
    taken = int(occupied * 1e6) * machine.l2_halves
    return replace(machine, l2_bytes=machine.l2_bytes - taken) if taken else machine


def _timed(case: Config, begin: int) -> Iterator[list[dict]]:
    """Time a gas in order, and in shuffled memory."""
    _, copies, side = copies_of(case.scene, case.n, case.filling_fraction)
    start = gas_of(case.scene, side * copies[0], case.filling_fraction, case.seed, case.backend)
    make = partial(flying, case.scene, precision=case.precision, backend=case.backend)
    other = make(start, "coherent")
    other.run(TOUCHING, phases=False)
    state = other.state.by_id()
    right = require_forces(make(state, "coherent").forces(), "the gas")
    del other
    mixed = md.scenes.in_memory_order(state, SHUFFLED, case.seed)
    ordered, shuffled = make(mixed, case.search, ordering=case.ordering), make(mixed, case.search)
    ordered.reorder()
    for one in (ordered, shuffled):
        check_forces(one, right, case.precision)
    about = working_set(len(state), 3, case.precision, ordered.backend)
    held, cache = about["working_set_MB"], about["cache_MB"]
    columns = {"particles": len(state), "device": ordered.backend.describe()["device"], **about}
    columns["w"] = held / cache if held and cache else None
    takers: dict[float, Any] = {0.0: nullcontext()}
    if max(case.occupied):
        takers = {size: Occupier(ordered.backend, round(1e6 * size), case.blocks) for size in case.occupied}
        for one in (ordered, shuffled):  # what is compiled or allocated waits for all other work
            _times(one, case.steps)
    generator = np.random.default_rng(case.seed)
    entry = Entry(columns, partial(_sample, case, ordered, shuffled, takers, generator))
    yield from take_rounds([entry], case.rounds, ordered.backend, seed=case.seed, begin=begin)


def _sample(
    case: Config, ordered: md.Simulation, shuffled: md.Simulation, takers: dict[float, Any],
    generator: np.random.Generator,
) -> Iterator[dict]:  # fmt: skip
    """Sort a gas and let it fly; yield rows at each age, beside each of some other kernels."""
    ordered.reorder()
    together = [ordered, shuffled] if case.scene == BOX else [ordered]
    flown, began = 0.0, ordered.step
    for path in case.path:
        if path > flown:
            flown += fly(case.scene, together, path - flown)[0]
        for size, taker in takers.items():
            before = ordered.step
            times: dict[bool, dict[str, float]] = {}
            for is_ordered in map(bool, generator.permutation([True, False])):
                with taker:
                    times[is_ordered] = _times(ordered if is_ordered else shuffled, case.steps)
            sampled = (ordered.step - before) * speed(ordered) * DT[case.scene]
            common = {"path_d": path, "flown_d": flown + sampled / 2, "steps_taken": before - began}
            common |= {"occupied_MB": size, "lines_read_G_per_s": getattr(taker, "rate", 0.0)}
            for part in (FORCE, STEP):
                own, base = times[True][part], times[False][part]
                yield common | {
                    "part": part, "time_ms": own, "shuffled_ms": base, "gain": base / own,
                    "sample_ms": own * case.steps,
                }  # fmt: skip
            flown += sampled


def _times(simulation: md.Simulation, steps: int) -> dict[str, float]:
    """Time the force and the whole of some steps, in ms a step, after one that loads the caches again."""
    simulation.run(1, phases=False)
    force = float(np.median(phases_of(simulation, steps)[FORCE]))
    return {FORCE: force, STEP: whole_steps(simulation, steps) / steps}


def _by_chip(table: pd.DataFrame) -> pd.DataFrame:
    """Add the chip of each row, words for its origin, and whether it has as much of the cache as any."""
    chip, words = ("machine", "foreseen for") if "machine" in table else ("device", "measured on")
    least = table["occupied_MB"] == table["occupied_MB"].min()
    return table.assign(chip=table[chip], origin=f"{words} " + table[chip], is_whole=least)


_CASE = ("scene", "ordering", "search", "precision", "filling_fraction", "part")
_GAINS: dict[str, Any] = {
    "values": Scale("gain over shuffled memory", log=10, line=1), "prepare": _by_chip, "needs": "gain",
    "note": "{search}, {precision}, {scene}, {origin}",
}  # fmt: skip
_SIZE = Scale("working set over the last cache", "w", log=2)
VIEWS = (
    Chart(
        "gain_{scene}_{ordering}_{search}_{part}",
        "Gains of the {part} along {ordering} over shuffled memory", LINES,
        Points("gain", "is_whole"), _SIZE, series="path_d", title_of_series="path flown (d)",
        panels="filling_fraction", heading=FILLED, files=("precision", "chip"), **_GAINS,
    ),
    Chart(
        "capacity_{scene}_{ordering}_{search}_{part}",
        "Gains of the {part} along {ordering} beside a kernel that reads a part of the cache", LINES,
        Points("gain"), _SIZE, series="occupied_MB", title_of_series="read by it (MB)", panels="path_d",
        heading="{path_d} d flown", files=("precision", "filling_fraction", "chip"),
        varying=("occupied_MB",), **_GAINS,
    ),
)  # fmt: skip


def answer(table: pd.DataFrame) -> Answer:
    """Say what an order gains at the smallest and the largest size, fresh and old."""
    rows = _by_chip(table)
    rows = rows[rows["is_whole"]]
    for name in (*_CASE, "chip"):
        rows = rows[rows[name] == rows[name].iloc[0]]
    size, words = "w", "of the last cache"
    if rows["w"].isna().any():
        size, words = "particles", "particles"
    found = rows.groupby([size, "path_d"])["gain"].median().unstack("path_d")
    cells = found.iloc[:: max(1, len(found) // 6)].map(rounded)
    shown = [f"{value:.2g}" if size == "w" else f"{value:,.0f}" for value in found.index]
    cells.index = pd.Index(shown[:: max(1, len(found) // 6)], name=size)
    fresh, old, chip = found.iloc[:, 0], found.iloc[:, -1], rows["chip"].iloc[0]
    sentence = (
        f"{rows['ordering'].iloc[0]} makes the force {rounded(fresh.iloc[0])} times as fast as shuffled "
        f"memory with a working set of {shown[0]} {words}, {rounded(fresh.iloc[-1])} with {shown[-1]}; after "
        f"{found.columns[-1]:g} d {rounded(old.iloc[0])} and {rounded(old.iloc[-1])} ({chip})."
    )
    return Answer(cells.rename_axis(columns="path (d)"), sentence)


if __name__ == "__main__":
    main(
        Config, measure, VIEWS, quick=QUICK, spreads=lambda config: config.what == PREDICTED, answer=answer,
        quick_limit=FITS_CACHE, minutes=MINUTES,
    )  # fmt: skip
