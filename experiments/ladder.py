"""What does each change of a code gain: reordering, stacks, lists, layouts, fused steps, another search?

The variants of the code are a ladder, and each is a rung: it changes one choice of another. There are two
scenes, each with a ladder of its own.

`wing`: discs that fly at a wing, the case of [lift], on its own search (`md.search.Reflexive`) at each step
of its development, and then on later searches of this package. Before a rung is timed, its forces are
compared with those of the grid in the same positions.

`gas`: `md.scenes.benchmark_gas` in shuffled memory. The first rung is the search of [thesis]: linked lists,
arrays axis by axis, a kick and drift apart from the forces. Two rungs change more than one choice. A search
that sorts the particles itself takes no reorder, so `cells sorted` replaces the reorder by a sort along the
same curve at every step. `pruned lists` takes the default skins instead of 0.3 d: lists are built with a wide
one, and shortened to a narrow one several times between two builds. `lists over unsorted memory` leaves the
particles in shuffled memory, which the others sort now and then. `linked, fused` is a rung aside: the
rungs after it are not fused until `lists, fused`. Fused steps with neighbour lists read and write packed rows
on a device, in the layout aos4 alone. So the lists are measured with rows of three numbers (aos), not fused
and fused, and then with rows of four, packed. On the CPU rows have three numbers, no rows are packed, and
lists need sorted memory: these rungs are left out there. Before a rung is timed, its positions after 100
steps are compared by id with those of the first rung, and so is the kinetic energy: they differ by less than
1e-9 (2e-4 and rounding of a coordinate in float32) in d, and of the whole. A stiffness that is wrong by a
thousandth differs by more. The memory of `memory sorted` and the two rungs after it is reordered every 500
steps: with fewer steps most samples hold no reorder, and its cost is left out.

All rungs are sampled once a round, in random order: a step that is not timed, and `steps` timed steps, so
that all rungs take the same steps of the flow in a round, until a sample is repeated because it recorded a
graph (`step` and `time` give the end of a sample). The first rung is measured twice (`no reorder again`): the
difference of the two is noise. Gains are over the first rung, and over the rung that is changed or, if that
one is not measured, the nearest before it (`over`). In the last round each sample is followed by as many
steps that are timed phase by phase.
"""

from collections.abc import Iterator, Mapping
from dataclasses import dataclass, replace
from functools import lru_cache, partial
from typing import Any, ClassVar, NamedTuple

import numpy as np
import pandas as pd

import md
from experiments.core import Axis, main
from experiments.core.terminal import FITS_CACHE
from experiments.measurement.correctness import check_forces_over_largest, check_states
from experiments.measurement.energy import EnergySettings
from experiments.measurement.energy_gains import summary_of_energy
from experiments.measurement.hardware_caches import working_set
from experiments.measurement.rounds import Entry, take_rounds
from experiments.measurement.step_times import phase_columns, sample_of_steps, steps_taken
from experiments.results import gains
from experiments.results.answers import Comparison, largest_gain, pair_in_words, quoted
from experiments.results.baselines import again, original
from experiments.results.charts import DOTS, GAINS, Chart, Points, Scale, Summary
from md.backend import Backend
from md.search import Coherent, Lbvh, Linked, Reflexive, SearchConfig, Verlet, VerletTree, WideBvh
from md.search.bvh.reflexive import ROOM
from md.simulation import PRECISIONS

FIRST = "linked lists"  # rung of the gas
SORTED_EVERY = 500  # steps, as in [thesis]
CHECK_STEPS = 100  # a few contacts, and enough for lists to be built several times


class Rung(NamedTuple):
    """A step of a ladder.

    Attributes:
        search: of the simulation.
        over: the rung that it changes; None for the first.
        layout: of particle arrays; None for the default of the device.
        reorder: None for none.
        fused: whether the kick and drift are in the force kernel.
        needs_device: whether it would change nothing on the CPU, or is refused there.
    """

    search: SearchConfig
    over: str | None = None
    layout: str | None = None
    reorder: md.Reorder | None = None
    fused: bool = False
    needs_device: bool = False


_SHARED: dict[str, Any] = {"data": "shadow", "stack": "shared"}
_MOVED: dict[str, Any] = {"data": "sorted", "stack": "none"}
_WING = {
    "no reorder": Rung(Reflexive(data="unsorted", stack="local")),
    "reorder": Rung(Reflexive(data="shadow", stack="local"), "no reorder"),
    "shared stack": Rung(Reflexive(**_SHARED), "reorder"),
    "contacts in lists": Rung(Reflexive(**_SHARED, contacts="listed"), "shared stack"),
    "aggregated atomics": Rung(Reflexive(**_SHARED, atomics="aggregated"), "shared stack"),
    "ropes": Rung(Reflexive(data="shadow", stack="none"), "shared stack"),
    "data moved": Rung(Reflexive(**_MOVED), "ropes"),
    "data moved, in lists": Rung(Reflexive(**_MOVED, contacts="listed"), "data moved"),
    "each pair twice": Rung(Reflexive(**_MOVED, met="twice", atomics="none"), "data moved"),
    "kept 16 steps": Rung(Reflexive(**_MOVED, rebuild_every=16), "data moved"),
    "kept 64 steps, Hilbert": Rung(Reflexive("hilbert", **_MOVED, rebuild_every=64), "kept 16 steps"),
    "twice, kept 16 steps": Rung(Lbvh(), "each pair twice"),
    "twice, kept 64, Hilbert": Rung(Lbvh("hilbert", rebuild_every=64), "twice, kept 16 steps"),
    "wide tree": Rung(WideBvh(rebuild_every=1), "each pair twice"),
    "wide tree, kept 16 steps": Rung(WideBvh(), "twice, kept 16 steps"),
    "lists from the wide tree": Rung(VerletTree(), "wide tree, kept 16 steps"),
    "grid": Rung(Coherent(), "kept 64 steps, Hilbert"),
}
_SORTED, _LISTS = md.Reorder("hilbert", md.Every(SORTED_EVERY)), Verlet("row", 0.3, 0.3)
_GAS = {
    FIRST: Rung(Linked(), layout="soa"),
    "memory sorted": Rung(Linked(), FIRST, "soa", _SORTED),
    "rows of particles": Rung(Linked(), "memory sorted", reorder=_SORTED),
    "linked, fused": Rung(Linked(), "rows of particles", reorder=_SORTED, fused=True),
    "cells sorted": Rung(Coherent("hilbert"), "rows of particles"),
    "cells in rows": Rung(Coherent("row"), "cells sorted"),
    "neighbour lists": Rung(_LISTS, "cells in rows"),
    "rows of three": Rung(_LISTS, "neighbour lists", "aos", needs_device=True),
    "lists, fused": Rung(_LISTS, "rows of three", "aos", fused=True),
    "packed rows": Rung(_LISTS, "lists, fused", fused=True, needs_device=True),
    "pruned lists": Rung(Verlet("row"), "packed rows", fused=True),
    "lists over unsorted memory": Rung(
        Verlet("row", sorts=False), "pruned lists", fused=True, needs_device=True
    ),
}
RUNGS = {"wing": _WING, "gas": _GAS}  # no name is in both
_NAMES = (*_WING, *_GAS)


@dataclass(frozen=True)
class Config(EnergySettings):
    """Sweep of rungs and sizes. All rungs of a case are in memory at once."""

    TOGETHER: ClassVar[tuple[str, ...]] = ("rung",)

    n: Axis[int] = (2**14, 2**17)
    """Number of particles. Take 131072 to 4194304 on a GPU."""
    scene: str = "wing"
    """Particles and their ladder: discs before a wing, or a gas of spheres in a box."""
    rung: tuple[str, ...] = _NAMES
    """Rungs of the ladder; those of the other scene are left out, and on the CPU those that change nothing
    there. The first is measured twice."""
    room: int = ROOM
    """Capacity of a list in the rungs of the wing with lists, in partners. `crowded_share` is the share of
    discs that had more at the end, and traversed the tree a second time."""
    filling_fraction: float = 0.2
    """Volume of the spheres of the gas over that of the box, up to 0.5."""
    precision: str = "float32"
    """Precision of positions, velocities and forces."""
    steps: int = 10
    """Number of steps in a sample. On a GPU take 32 and few rounds for the wing, because later the stream
    meets the wing. For the gas take 50, or 500 so that each sample holds one reorder of the memory."""
    warmup: int = 10
    """Number of steps of the wing before the checks. Untimed rounds follow, until nothing is compiled or
    recorded."""

    def __post_init__(self):
        super().__post_init__()
        self.check_known({"scene": tuple(RUNGS), "rung": _NAMES, "precision": PRECISIONS})
        self.check_least({"n": 100, "room": 1, "steps": 1, "warmup": 1})
        self.check_above_zero({"filling_fraction": 0.5})
        names = [name for name in self.rung if name in RUNGS[self.scene]]
        if not names:
            raise ValueError(
                f"--rung {' '.join(map(quoted, self.rung))} beside --scene {self.scene}; allowed: one or "
                f"more of {', '.join(map(quoted, RUNGS[self.scene]))}"
            )
        self.check_particles(len(names) + 1)

    @property
    def notes(self) -> tuple[str, ...]:
        """Say how the energy of the gas is measured; of the wing none is."""
        return super().notes if self.scene == "gas" else ()


QUICK = {"n": (2**11,), "rung": (*list(_WING)[:2], "ropes", "grid", *_GAS), "runs": 1}
QUICK |= {"steps": 5, "warmup": 5, "energy_seconds": 0.0}
MINUTES = 9  # CPU time of two rounds of the smaller size, extrapolated


def measure(case: Config, begin: int = 0) -> Iterator[list[dict]]:
    """Yield the rounds from `begin` on: mean time of a sample's steps; nothing if no rung runs here."""
    place = md.backend.get(case.backend)  # one backend for all: its count of recorded graphs covers all
    rungs, is_device = RUNGS[case.scene], place.name == "cuda"
    names = [name for name in case.rung if name in rungs and (is_device or not rungs[name].needs_device)]
    if not names:
        return
    expected = _after(CHECK_STEPS, _simulation(case, place, _GAS[FIRST])) if case.scene == "gas" else None
    entries = [_entry(case, place, name, expected) for name in (names[0], again(names[0]), *names[1:])]
    yield from take_rounds(
        entries, case.rounds, place, seed=case.seed, begin=begin, energy_seconds=case.energy_seconds
    )


def _after(count: int, sim: md.Simulation) -> md.State:
    sim.run(count, phases=False)
    return sim.state


def _entry(case: Config, place: Backend, name: str, expected: md.State | None) -> Entry:
    """Create a rung, check it, and return it ready to be sampled.

    Args:
        case: its settings.
        place: backend of the rounds.
        name: of the rung, or of its second measurement.
        expected: state of the first rung of the gas after `CHECK_STEPS` steps; None for the wing.
    """
    sim, times = _simulation(case, place, RUNGS[case.scene][original(name)]), []
    columns: dict[str, Any] = {"rung": name, "precision": case.precision, "layout": sim.backend.layout}
    state = _after(case.warmup if expected is None else CHECK_STEPS, sim)
    if expected is None:
        forces = _simulation(case, place, Rung(Linked()), state).forces()
        columns["force_off"] = check_forces_over_largest(name, sim, forces, case.precision)
    else:
        what = f"rung {original(name)!r} after {CHECK_STEPS} steps"
        off = check_states(what, state, expected, case.precision, f"those of {FIRST!r}")
        columns |= {"filling_fraction": case.filling_fraction, "position_off": off}
    columns |= working_set(case.n, state.pos.shape[1], case.precision, place)
    start, built = sim.step, sim.builds

    def sample() -> Iterator[dict]:
        found = sample_of_steps(sim, case.steps)
        times.append(found["sample_ms"])
        yield found | {"step": sim.step, "time": sim.time}

    def at_end() -> dict:
        search: Any = sim.search
        builds = {"steps_per_build": (sim.step - start) / max(sim.builds - built, 1)}
        phases = phase_columns(sim, case.steps, float(np.median(times[-case.rounds :])))
        is_listed = getattr(search.config, "contacts", "") == "listed"
        return phases | ({"crowded_share": search.crowded / case.n} if is_listed else {}) | builds

    # The flow at the wing changes within the seconds of an energy.
    work = None if expected is None else partial(steps_taken, sim, case.steps)
    return Entry(columns, sample, at_end, work=work)


def _simulation(case: Config, place: Backend, rung: Rung, state: md.State | None = None) -> md.Simulation:
    """Make the simulation of a rung, from the start that all rungs share or from another state."""
    start, law, options = _start(case.scene, case.n, case.filling_fraction, case.seed, case.backend)
    search: Any = rung.search
    if getattr(search, "contacts", "") == "listed":
        search = replace(search, room=case.room)
    options = options | {"precision": case.precision, "reorder": rung.reorder, "fused": rung.fused}
    options |= {"backend": place} if rung.layout is None else {"backend": case.backend, "layout": rung.layout}
    return md.Simulation(start if state is None else state, law, search=search, **options)


@lru_cache(maxsize=1)
def _start(scene: str, n: int, filling: float, seed: int, backend: str) -> tuple[md.State, Any, dict]:
    """Make the particles of a scene, their law, and the options of their simulations."""
    if scene == "wing":
        lift = md.preparation.newtonian_lift(n, seed=seed)
        return lift.state, lift.law, dict(lift.options)
    gas = md.scenes.benchmark_gas(n, filling, seed=seed, backend=backend)
    return gas, md.scenes.BENCHMARK_LAW, {"dt": md.scenes.BENCHMARK_DT}


def scene_of(table: pd.DataFrame) -> str:
    """Return the scene of a table by its first rung."""
    return "gas" if original(str(table["rung"].iloc[0])) in _GAS else "wing"


def compared_with(table: pd.DataFrame) -> Mapping[str, str | None]:
    """Return the rung that each rung is compared with: the nearest one before it that was measured.

    Args:
        table: with column `rung`.

    Returns:
        Name of each rung of the ladder, in order -> name of another, or None.
    """
    rungs, measured = RUNGS[scene_of(table)], {None, *table["rung"]}

    def nearest(name: str) -> str | None:
        over: Any = rungs[name].over
        return over if over in measured else nearest(over)

    return {name: nearest(name) for name in rungs}


def _note(table: pd.DataFrame) -> str:
    """Describe the particles."""
    if scene_of(table) == "wing":
        return "discs before a wing"
    return f"shared gas, {table['precision'].iloc[0]}, {table['filling_fraction'].iloc[0]:.0%} filled"


def _first(table: pd.DataFrame) -> list[str]:
    return [table["rung"].iloc[0]]


_RUNGS = partial(Chart, form=DOTS, names=Scale("", "rung"), note=_note)
_BY_SIZE = partial(_RUNGS, panels="n", heading="{n} particles")
VIEWS = (
    _BY_SIZE(
        "ladder", "A step of {n} particles takes {value} ns a particle by {best}, {of_worst} ns by {worst}",
        points=Points("time_ms", scale="1e6 / n"), varying=("n",),
        values=Scale("time per particle\nand step (ns)", log=10),
    ),
    _RUNGS(
        "ladder", "A step of {n} particles takes {value} ms by {best}, {of_worst} ms by {worst}",
        points=(Points("time_ms"), Points("time_ms", over=_first, compared="rung", values=GAINS)),
        single=("n",), values=Scale("time of a step (ms)", ends=(0, None)),
    ),
    _BY_SIZE(
        "gains", "At {n} particles the largest step is from {over} to {best}: {value} times as fast",
        points=Points("time_ms", pairs=compared_with, compared="rung"),
        values=Scale("gain of a step", log=10, line=1),
        words=lambda rows: {name: f"{name} / {over}" for name, over in compared_with(rows).items()},
    ),
    summary_of_energy(("n",), "rung", _first, pairs=compared_with),
    Summary(
        ("n",), "rung", _first, pairs=compared_with,
        more={"crowded_share": "median", "steps_per_build": "median"},
    ),
)  # fmt: skip


def _largest_step(rows: pd.DataFrame) -> str:
    """Name the largest gain of a rung over the one that it is compared with."""
    found = gains.gains_over(rows, ["n"], "rung", compared_with(rows))
    if found.empty:
        return ""
    names = quoted((step := largest_gain(found))["rung"]), quoted(step["over"])
    return f"the largest step is {pair_in_words(step, *names)}"


answer = Comparison(
    "rung", _first, "n", "At {n} {bodies}", heading="n {:,}".format, more=_largest_step,
    prepare=lambda table: table.sort_values("n", ascending=False, kind="stable").assign(
        bodies="particles" if scene_of(table) == "gas" else "discs"
    ),
)  # fmt: skip


if __name__ == "__main__":
    main(Config, measure, VIEWS, quick=QUICK, answer=answer, quick_limit=FITS_CACHE, minutes=MINUTES)
