"""What does each change of the code gain in a gas: memory order, layout, sorted cells, lists, fused steps?

The gas is `md.scenes.shared_gas` in shuffled memory. The variants of the code are a ladder, and each is a
rung. The first rung is the search of [thesis]: linked lists, arrays axis by axis, a kick and drift apart from
the forces. Each further rung changes one choice of the rung in `over`, with two exceptions. A search that
sorts the particles itself takes no reorder, so `cells sorted` replaces the reorder by a sort along the same
curve at every step. `linked, fused` is a rung aside: the rungs after it are not fused until `lists, fused`,
so that each changes one choice.

Some rungs need a device. Fused steps with neighbour lists read and write packed rows there, in the layout
aos4 alone. So the lists are measured with rows of three numbers (aos), not fused and fused, and then with
rows of four, packed. The last rung, `pruned lists`, takes the default skins instead of 0.3 d: lists are built
with a wide one, and shortened to a narrow one several times between two builds. On the CPU rows have three
numbers in the default layout, and no rows are packed: these two rungs would change nothing there and are left
out, and so is padding to rows of four, which the CPU does not use.

Before a rung is timed, its positions after 100 steps are compared by id with those of the first rung, and so
is the kinetic energy: they differ by less than 1e-9 (2e-4 and rounding of a coordinate in float32) in d, and
of the whole. A stiffness that is wrong by a thousandth differs by more. Then all rungs are sampled once a
round, in random order: a step that is not timed, and `steps` timed steps, rebuilds included. The memory of
`memory sorted` and the two rungs after it is reordered every 500 steps. With --steps 500, or a multiple, each
sample holds as many reorders; with fewer steps most samples hold none, and their cost is left out. The first
rung is measured twice (`linked lists again`): the difference of the two is noise. In the last round each
sample is followed by as many steps that are timed phase by phase. If a rung is not measured, the gains of the
next are over the rung before it.
"""

from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from functools import lru_cache
from pathlib import Path
from typing import Any, ClassVar, NamedTuple

import numpy as np
import pandas as pd

import md
from experiments.core import Axis, TimedSettings, figures, main, save_table, statistics
from experiments.core.terminal import FITS_CACHE
from experiments.measurement.correctness import check_states
from experiments.measurement.hardware_caches import working_set
from experiments.measurement.rounds import Entry, take_rounds
from experiments.measurement.step_times import phase_columns, sample_of_steps
from experiments.results.answers import Answer, steps
from experiments.results.baselines import again, original
from md.backend import Backend
from md.search import Coherent, Linked, SearchConfig, Verlet
from md.simulation import PRECISIONS

CASE = ["n", "rung"]
FIRST = "linked lists"
SORTED_EVERY = 500  # steps, as in [thesis]
CHECK_STEPS = 100  # a few contacts, and enough for lists to be built several times


class Rung(NamedTuple):
    """A step of the ladder.

    Attributes:
        search: of the simulation.
        layout: of particle arrays; None for the default of the device.
        reorder: None for none.
        fused: whether the kick and drift are in the force kernel.
        over: the rung that it changes in one choice; None for the first.
        needs_device: whether it would change nothing on the CPU.
    """

    search: SearchConfig
    layout: str | None = None
    reorder: md.Reorder | None = None
    fused: bool = False
    over: str | None = None
    needs_device: bool = False


_CHANGES: tuple[tuple[str, str, dict[str, Any]], ...] = (  # name, the rung that it changes, the change
    ("memory sorted", FIRST, {"reorder": md.Reorder("hilbert", md.Every(SORTED_EVERY))}),
    ("rows of particles", "memory sorted", {"layout": None}),
    ("linked, fused", "rows of particles", {"fused": True}),
    ("cells sorted", "rows of particles", {"search": Coherent("hilbert"), "reorder": None}),
    ("cells in rows", "cells sorted", {"search": Coherent("row")}),
    ("neighbour lists", "cells in rows", {"search": Verlet("row", 0.3, 0.3)}),
    ("rows of three", "neighbour lists", {"layout": "aos", "needs_device": True}),
    ("lists, fused", "rows of three", {"fused": True}),
    ("packed rows", "lists, fused", {"layout": None, "needs_device": True}),
    ("pruned lists", "packed rows", {"search": Verlet("row")}),
)


def _ladder() -> dict[str, Rung]:
    """Make the rungs in order, each from the one that it changes."""
    found = {FIRST: Rung(Linked(), layout="soa")}
    for name, over, change in _CHANGES:
        found[name] = found[over]._replace(over=over, **({"needs_device": False} | change))
    return found


RUNGS = _ladder()


@dataclass(frozen=True)
class Config(TimedSettings):
    """Sweep of rungs and sizes. All rungs of a case are in memory at once."""

    TOGETHER: ClassVar[tuple[str, ...]] = ("rung",)

    n: Axis[int] = (2**14, 2**17)
    """Number of particles. Take 131072 to 4194304 on a GPU."""
    rung: tuple[str, ...] = tuple(RUNGS)
    """Rungs of the ladder. The first is measured twice. Those that change nothing on the CPU are left out
    there."""
    filling_fraction: float = 0.2
    """Volume of the spheres over that of the box, up to 0.5."""
    precision: str = "float32"
    """Precision of positions, velocities and forces."""
    steps: int = 50
    """Number of steps in a sample. Take 500, so that each sample holds one reorder of the memory."""

    def __post_init__(self):
        super().__post_init__()
        self.check_known({"rung": tuple(RUNGS), "precision": PRECISIONS})
        self.check_least({"n": 100, "steps": 1})
        self.check_above_zero({"filling_fraction": 0.5})
        self.check_particles(len(self.rung) + 1)


QUICK = {"n": (2**13,), "runs": 1, "steps": 20}
MINUTES = 4  # CPU time of one run of the smaller size, extrapolated


def measure(case: Config, begin: int = 0) -> Iterator[list[dict]]:
    """Yield the rounds from `begin` on: mean time of a sample's steps; nothing if no rung runs here."""
    place = md.backend.get(case.backend)
    names = [name for name in case.rung if not RUNGS[name].needs_device or place.name == "cuda"]
    if not names:
        return
    first, *others = names
    reference = _simulation(case, RUNGS[FIRST])
    reference.run(CHECK_STEPS, phases=False)
    expected = reference.state
    del reference
    entries = [_entry(case, place, name, expected) for name in (first, again(first), *others)]
    yield from take_rounds(entries, case.rounds, place, seed=case.seed, begin=begin)


def _entry(case: Config, place: Backend, name: str, expected: md.State) -> Entry:
    """Create a rung, check it, and return it ready to be sampled.

    Args:
        case: its settings.
        place: backend of the rounds, for the size of its caches.
        name: of the rung, or of its second measurement.
        expected: state of the first rung after `CHECK_STEPS` steps.
    """
    sim, times = _simulation(case, RUNGS[original(name)]), []
    sim.run(CHECK_STEPS, phases=False)
    what = f"rung {original(name)!r} after {CHECK_STEPS} steps"
    off = check_states(what, sim.state, expected, case.precision, f"those of {FIRST!r}")
    columns = {
        "rung": name,
        "filling_fraction": case.filling_fraction,
        "precision": case.precision,
        "layout": sim.backend.layout,
        "position_off": off,
        **working_set(case.n, 3, case.precision, place),
    }
    start, built = sim.step, sim.builds

    def sample() -> Iterator[dict]:
        found = sample_of_steps(sim, case.steps)
        times.append(found["sample_ms"])
        yield found | {"step": sim.step}

    def at_end() -> dict:
        per_build = (sim.step - start) / max(sim.builds - built, 1)
        found = phase_columns(sim, case.steps, float(np.median(times[-case.rounds :])))
        return found | {"steps_per_build": per_build}

    return Entry(columns, sample, at_end)


def _simulation(case: Config, rung: Rung) -> md.Simulation:
    """Make the simulation of a rung, from the start that all rungs share."""
    return md.Simulation(
        _gas(case.n, case.filling_fraction, case.seed, case.backend),
        md.scenes.SHARED_LAW,
        search=rung.search,
        dt=md.scenes.SHARED_DT,
        reorder=rung.reorder,
        backend=case.backend,
        layout=rung.layout,
        precision=case.precision,
        fused=rung.fused,
    )


@lru_cache(maxsize=1)
def _gas(n: int, filling_fraction: float, seed: int, backend: str) -> md.State:
    return md.scenes.shared_gas(n, filling_fraction, seed=seed, backend=backend)


def draw(table: pd.DataFrame, out: Path) -> None:
    """Draw time per particle and step over sizes, or over rungs for one size, and gains.

    Also writes the summary.
    """
    table = statistics.with_rounds(table, CASE)
    found, ladder = summary(table), compared_with(table)
    gas = f"{table['precision'].iloc[0]}, filling fraction {table['filling_fraction'].iloc[0]:g}"
    if table["n"].nunique() == 1:
        title = f"{found['n'].iloc[0]:,} particles, {gas}"
        figures.times_of_rungs(found, title, out, "ladder", _notes(found, table["rung"].iloc[0]))
    else:
        figures.times_by_size(found, "rung", "particle", f"shared gas, {gas}", out, "ladder")
    compared = statistics.gains_over(table, ["n"], "rung", ladder)
    if not compared.empty:
        figures.gains_of_rungs(compared, list(RUNGS), "particles", out, "gains")
    save_table(found, out, "summary")


def summary(table: pd.DataFrame) -> pd.DataFrame:
    """Average over runs each rung of each size: its time, its gains over the first and over its own rung.

    Args:
        table: with columns `run` and `round`.
    """
    times = statistics.over_runs(table, CASE, "time_ms")
    found = statistics.beside_gains(times, table, ["n"], "rung", compared_with(table))
    builds = table.groupby(CASE, sort=False)["steps_per_build"].median().reset_index()
    return found.merge(builds, on=CASE, how="left")


def compared_with(table: pd.DataFrame) -> Mapping[str, str | None]:
    """Return the rung that each rung is compared with: the nearest one before it that was measured.

    Args:
        table: with column `rung`.

    Returns:
        Name of each rung of the ladder, in order -> name of another, or None.
    """
    measured, found = set(table["rung"]), {}
    for name in RUNGS:
        over = RUNGS[name].over
        while over is not None and over not in measured:
            over = RUNGS[over].over
        found[name] = over
    return found


def _notes(found: pd.DataFrame, first: str) -> pd.DataFrame | None:
    """Return the gains of the rungs as text, beside the first and beside their own rung."""
    over_first = f"gain_over_{first.replace(' ', '_')}"
    columns = {f"gain over\n{first}": over_first, "gain over the rung that it changes": "gain"}
    notes = {}
    for heading, value in columns.items():
        if not any(str(name).startswith(value) for name in found):
            return None
        notes[heading] = [_times(gain) for gain in statistics.bounds(found, value)["centre"]]
    own = [
        f"{gain} ({over})" if gain else "" for gain, over in zip(notes[heading], found["over"], strict=True)
    ]
    return pd.DataFrame(notes | {heading: own})


def _times(gain: float) -> str:
    return f"{gain:.2f}" if np.isfinite(gain) else ""


def answer(table: pd.DataFrame) -> Answer:
    """Compare the fastest rungs with the first one, and name the largest single step, at the largest size."""
    table = statistics.with_rounds(table, CASE)
    return steps(table, "rung", compared_with(table), "particles")


if __name__ == "__main__":
    main(Config, measure, draw, quick=QUICK, answer=answer, quick_limit=FITS_CACHE, minutes=MINUTES)
