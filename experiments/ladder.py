"""What does each variant of [lift]'s search gain: reordering, stacks, lists, atomics, ropes, a grid?

The case is that of [lift], discs that fly at a wing, on its own search (`md.search.Reflexive`) at each step
of its development, and then on later searches of this package. These variants are a ladder, and each is a
rung: it changes one choice of another. Before a rung is timed, its forces are compared with those of the grid
in the same positions.

All rungs are sampled once a round, in random order: a step that is not timed, and `steps` timed steps, so
that all rungs take the same steps of the flow in a round, until a sample is repeated because it recorded a
graph (`step` and `time` give the end of a sample). The first rung is measured twice (`no reorder again`): the
difference of the two is noise. Gains are over the first rung, and over the rung named in `over`. In the last
round each sample is followed by as many steps that are timed phase by phase.
"""

from collections.abc import Callable, Iterator
from dataclasses import dataclass, replace
from functools import lru_cache
from pathlib import Path
from typing import Any, ClassVar, NamedTuple

import numpy as np
import pandas as pd

import md
from experiments.core import Axis, TimedSettings, figures, main, save_table, statistics
from experiments.core.terminal import FITS_CACHE
from experiments.measurement.correctness import check_forces_over_largest
from experiments.measurement.hardware_caches import working_set
from experiments.measurement.rounds import Entry, take_rounds
from experiments.measurement.step_times import phase_columns, sample_of_steps
from experiments.results.answers import Answer, steps
from experiments.results.baselines import again, original
from md.backend import Backend
from md.search import Coherent, Lbvh, Reflexive, SearchConfig, VerletTree, WideBvh
from md.search.bvh.reflexive import ROOM
from md.simulation import PRECISIONS


class Rung(NamedTuple):
    """A step of the ladder.

    Attributes:
        search: creates the search.
        over: the rung that it is compared with.
    """

    search: Callable[[], SearchConfig]
    over: str | None = None


RUNGS = {
    "no reorder": Rung(lambda: Reflexive(data="unsorted", stack="local")),
    "reorder": Rung(lambda: Reflexive(data="shadow", stack="local"), "no reorder"),
    "shared stack": Rung(lambda: Reflexive(data="shadow", stack="shared"), "reorder"),
    "contacts in lists": Rung(
        lambda: Reflexive(data="shadow", stack="shared", contacts="listed"), "shared stack"
    ),
    "aggregated atomics": Rung(
        lambda: Reflexive(data="shadow", stack="shared", atomics="aggregated"), "shared stack"
    ),
    "ropes": Rung(lambda: Reflexive(data="shadow", stack="none"), "shared stack"),
    "data moved": Rung(lambda: Reflexive(data="sorted", stack="none"), "ropes"),
    "data moved, in lists": Rung(
        lambda: Reflexive(data="sorted", stack="none", contacts="listed"), "data moved"
    ),
    "each pair twice": Rung(
        lambda: Reflexive(data="sorted", stack="none", met="twice", atomics="none"), "data moved"
    ),
    "kept 16 steps": Rung(lambda: Reflexive(data="sorted", stack="none", rebuild_every=16), "data moved"),
    "kept 64 steps, Hilbert": Rung(
        lambda: Reflexive("hilbert", data="sorted", stack="none", rebuild_every=64), "kept 16 steps"
    ),
    "twice, kept 16 steps": Rung(Lbvh, "each pair twice"),
    "twice, kept 64, Hilbert": Rung(lambda: Lbvh("hilbert", rebuild_every=64), "twice, kept 16 steps"),
    "wide tree": Rung(lambda: WideBvh(rebuild_every=1), "each pair twice"),
    "wide tree, kept 16 steps": Rung(WideBvh, "twice, kept 16 steps"),
    "lists from the wide tree": Rung(VerletTree, "wide tree, kept 16 steps"),
    "grid": Rung(Coherent, "kept 64 steps, Hilbert"),
}
CASE = ["n", "rung"]
_OVER = {name: rung.over for name, rung in RUNGS.items()}


@dataclass(frozen=True)
class Config(TimedSettings):
    """Sweep of rungs and sizes. All rungs of a case are in memory at once."""

    TOGETHER: ClassVar[tuple[str, ...]] = ("rung",)

    n: Axis[int] = (2**14, 2**17)
    """Number of discs. Take 131072 to 4194304 on a GPU."""
    rung: tuple[str, ...] = tuple(RUNGS)
    """Rungs of the ladder. The first is measured twice."""
    room: int = ROOM
    """Capacity of a list in the rungs with lists, in partners. `crowded_share` is the share of discs that had
    more at the end, and traversed the tree a second time."""
    precision: str = "float32"
    """Precision of positions, velocities and forces."""
    steps: int = 10
    """Number of steps in a sample. Take 32 and few rounds on a GPU, because later the stream meets the
    wing."""
    warmup: int = 10
    """Number of steps before the checks. Untimed rounds follow, until nothing is compiled or recorded."""

    def __post_init__(self):
        super().__post_init__()
        self.check_known({"rung": tuple(RUNGS), "precision": PRECISIONS})
        self.check_least({"n": 100, "room": 1, "steps": 1, "warmup": 1})
        self.check_particles(len(self.rung) + 1)


QUICK = {"n": (2**11,), "rung": ("no reorder", "reorder", "ropes", "grid"), "runs": 1, "steps": 5,
         "warmup": 5}  # fmt: skip
MINUTES = 9  # CPU time of two rounds of the smaller size, extrapolated


def measure(case: Config, begin: int = 0) -> Iterator[list[dict]]:
    """Yield the rounds from `begin` on: mean time of a sample's steps, and its end in the flow."""
    place = md.backend.get(case.backend)  # one backend for all: its count of recorded graphs covers all
    first, *others = case.rung
    entries = [_entry(case, place, name) for name in (first, again(first), *others)]
    yield from take_rounds(entries, case.rounds, place, seed=case.seed, begin=begin)


def _entry(case: Config, place: Backend, name: str) -> Entry:
    """Create a rung, check it, and return it ready to be sampled."""
    lift, times = _case(case.n, case.seed), []
    options: dict[str, Any] = lift.options | {"backend": place, "precision": case.precision}
    search: Any = RUNGS[original(name)].search()
    if isinstance(search, Reflexive) and search.contacts == "listed":
        search = replace(search, room=case.room)
    sim = md.Simulation(lift.state, lift.law, search=search, **options)
    sim.run(case.warmup, phases=False)
    columns = {
        "rung": name,
        "force_off": _force_error(case, name, sim, lift),
        **working_set(case.n, 2, case.precision, place),
    }

    def sample() -> Iterator[dict]:
        found = sample_of_steps(sim, case.steps)
        times.append(found["sample_ms"])
        yield found | {"step": sim.step, "time": sim.time}

    def at_end() -> dict:
        found = phase_columns(sim, case.steps, float(np.median(times[-case.rounds :])))
        search: Any = sim.search
        if isinstance(search.config, Reflexive) and search.config.contacts == "listed":
            found["crowded_share"] = search.crowded / case.n
        return found

    return Entry(columns, sample, at_end)


def _force_error(case: Config, name: str, sim: md.Simulation, lift: md.scenes.LiftCase) -> float:
    """Compute how far forces differ from a grid's in the same positions, over the largest force."""
    options: dict[str, Any] = lift.options | {"backend": sim.backend, "precision": case.precision}
    grid = md.Simulation(sim.state, lift.law, search="linked", **options)
    return check_forces_over_largest(name, sim, grid.forces(), case.precision)


@lru_cache(maxsize=1)
def _case(n: int, seed: int) -> md.scenes.LiftCase:
    return md.scenes.newtonian_lift(n, seed=seed)


def draw(table: pd.DataFrame, out: Path) -> None:
    """Draw time per disc and step over sizes, or over rungs for one size, and gains; write the summary."""
    table = statistics.with_rounds(table, CASE)
    found = summary(table)
    if table["n"].nunique() == 1:
        title = f"{found['n'].iloc[0]:,} discs before a wing"
        figures.times_of_rungs(found, title, out, "ladder")
    else:
        figures.times_by_size(found, "rung", "disc", "discs before a wing", out, "ladder")
    compared = statistics.gains_over(table, ["n"], "rung", _OVER)
    if not compared.empty:
        figures.gains_of_rungs(compared, list(RUNGS), "discs", out, "gains")
    save_table(found, out, "summary")


def summary(table: pd.DataFrame) -> pd.DataFrame:
    """Average over runs each rung of each size: its time, its gains over the first and over its own rung.

    Args:
        table: with columns `run` and `round`.
    """
    found = statistics.over_runs(table, CASE, "time_ms")
    if "crowded_share" in table:  # of particles with more contacts than lists have room for
        crowded = table.groupby(CASE, sort=False)["crowded_share"].median().reset_index()
        found = found.merge(crowded, on=CASE, how="left")
    return statistics.beside_gains(found, table, ["n"], "rung", _OVER)


def answer(table: pd.DataFrame) -> Answer:
    """Compare the fastest rungs with the first one, and name the largest single step, at the largest size."""
    return steps(statistics.with_rounds(table, CASE), "rung", _OVER, "discs")


if __name__ == "__main__":
    main(Config, measure, draw, quick=QUICK, answer=answer, quick_limit=FITS_CACHE, minutes=MINUTES)
