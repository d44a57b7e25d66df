"""Which neighbour search is fastest, in which order of the cells, and how near is it to the memory's limit?

The gas is `md.scenes.benchmark_gas`, a jittered lattice, the same on CPU and GPU, which is also used for the
comparison with other codes. Every search starts from it in shuffled memory. A search that does not sort the
particles itself has them sorted once, before the first step; its memory ages from then on (`age_steps`).
After the warm-up the touching pairs of each search are compared with those that a new `linked` finds in the
same positions.

Then all searches are sampled once a round, in random order: a step that is not timed, and `steps` timed
steps. The baseline of the gains is `linked`, or the first search if `linked` is not measured. It is measured
twice (`linked again`): the difference of the two is noise. Each time has a column with the floor: the time
this memory takes to read and write every position and velocity once, which every step needs.

`--peers lammps` measures LAMMPS in the same rounds, on as many cores, from the same start and over the same
steps. Before that its result is compared with that of our `verlet`, the search of the same kind. A gain over
it is a ratio of times of one round, as all gains are.
"""

from collections.abc import Iterator, Sequence
from contextlib import ExitStack
from dataclasses import dataclass, field
from functools import lru_cache, partial
from typing import Any, ClassVar

import numpy as np
import pandas as pd

import md
import sfc
from experiments.core import Axis, main
from experiments.core.terminal import FITS_CACHE
from experiments.measurement.correctness import check_pairs, check_states
from experiments.measurement.energy import EnergySettings
from experiments.measurement.energy_gains import by_resource, summary_of_energy
from experiments.measurement.hardware_caches import working_set
from experiments.measurement.rounds import Entry, take_rounds
from experiments.measurement.step_times import benchmark_simulation, entry_of, sample_of_steps, steps_taken
from experiments.peers import PEERS, Peer, Sample
from experiments.processes.lifetime import temporary_folder
from experiments.results.answers import Comparison, quoted, ranked, rounded
from experiments.results.baselines import again, aged, is_again, original
from experiments.results.charts import (
    DOTS,
    FILLED,
    GAINS,
    LINES,
    MIDDLE,
    PARTICLES,
    Chart,
    Points,
    Scale,
    Summary,
)
from md.backend import Backend
from md.particles.arrays import ParticleArrays
from md.search.lists.list_search import ListConfig
from md.simulation import PRECISIONS

BASELINE, PEER_BESIDE = "linked", "verlet"
FLOOR = "floor of memory"
_CHECK_STEPS = 20  # after which a peer's positions and energy are compared with ours
_FLOOR_REPEATS = 6  # an even number: then all arrays are back in their roles
OWN_ORDER = "its own"  # order of a peer's cells


@dataclass(frozen=True)
class Config(EnergySettings):
    """Sweep of the searches. All searches of a case, in all orders of cells, are in memory at once."""

    TOGETHER: ClassVar[tuple[str, ...]] = ("search", "cell_order")

    n: Axis[int] = (2**14, 2**17, 2**20)
    """Number of particles."""
    filling_fraction: Axis[float] = (0.05, 0.2, 0.4)
    """Volume of the spheres over that of the box, up to 0.5."""
    search: tuple[str, ...] = ("linked", "scattered", "coherent", "verlet", "tiles")
    """Neighbour searches; naive takes time n squared; reflexive takes steps that are not fused."""
    cell_order: tuple[str, ...] = ("row",)
    """Orders of the cells: coherent, tiles, verlet and the trees sort the particles by it, others once before
    the run."""
    skin: float | None = None
    """Skin of verlet and verlet_tree, in d; None for the widths that the search chooses, as in
    `experiments.timing`."""
    precision: Axis[str] = ("float64",)
    """Precision of positions, velocities and forces."""
    steps: int = 20
    """Number of steps in a sample. Take 200 on a GPU, so that launches overlap and a sample holds many
    rebuilds."""
    warmup: int = 20
    """Number of steps before the checks. Untimed rounds follow, until nothing is compiled or recorded."""
    peers: list[str] = field(default_factory=list)
    """Other codes, measured in the same rounds as verlet in float64 on the CPU, on as many cores."""

    def __post_init__(self):
        super().__post_init__()
        known = {"search": md.search.SEARCHES, "cell_order": sfc.orderings(3), "precision": PRECISIONS}
        self.check_known(known | {"peers": PEERS})
        self.check_least({"n": 2, "steps": 1, "warmup": 1} | ({} if self.skin is None else {"skin": 0}))
        self.check_above_zero({"filling_fraction": 0.5})
        self.check_particles(len(self.search) * len(self.cell_order) + 1)
        for name in self.search:
            if not _orders(name, self.cell_order):
                raise ValueError(
                    f"--search {name} beside --cell-order {' '.join(self.cell_order)}; allowed: "
                    f"{', '.join(md.search.SEARCHES[name].cell_orders(3))}"
                )
        for peer in (PEERS[name] for name in self.peers):
            peer.require()
            if md.backend.get(self.backend).name != "cpu":
                raise ValueError("--peers run on the CPU, simulations on a GPU; take --backend cpu")
            is_sweep = isinstance(self.precision, tuple)  # else this is one of its cases
            if is_sweep and not (PEER_BESIDE in self.search and peer.precision in self.precision):
                raise ValueError(
                    f"--peers are measured beside verlet in their own precision; add --search {PEER_BESIDE} "
                    f"--precision {peer.precision}"
                )


QUICK = {"n": (2**12, 2**15), "filling_fraction": (0.2,), "runs": 1, "energy_seconds": 0.0}
MINUTES = 13  # CPU time of one run of the smallest size, extrapolated


def measure(case: Config, begin: int = 0) -> Iterator[list[dict]]:
    """Yield the rounds from `begin` on: the mean time of a sample's steps, and the floor."""
    place = md.backend.get(case.backend)  # one backend for all: its count of recorded graphs covers all
    _floor_ms(case.n, case.precision, case.backend)  # measured now, and cached
    kinds = [(search, order) for search in case.search for order in _orders(search, case.cell_order)]
    twice = next((k for k, (search, _) in enumerate(kinds) if search == BASELINE), 0)
    kinds.insert(twice + 1, (again(kinds[twice][0]), kinds[twice][1]))
    entries = [_entry(case, place, *kind) for kind in kinds]
    with ExitStack() as stack:
        for kind in (PEERS[name] for name in case.peers):
            if PEER_BESIDE in case.search and case.precision == kind.precision:
                folder = stack.enter_context(temporary_folder("peer-"))
                start = _start(case), md.scenes.BENCHMARK_LAW, md.scenes.BENCHMARK_DT
                entries.append(_peer_entry(case, place, kind(*start, place.workers, folder)))
        yield from take_rounds(
            entries, case.rounds, place, seed=case.seed, begin=begin, energy_seconds=case.energy_seconds
        )


def _orders(search: str, given: Sequence[str]) -> list[str]:
    """Return the orders of the cells that a search supports; all if it does not sort the particles."""
    kind: Any = md.search.SEARCHES[search]
    sorts = kind.capabilities.moves_particles
    return [order for order in given if not sorts or order in kind.cell_orders(3)]


def _entry(case: Config, place: Backend, name: str, cell_order: str) -> Entry:
    """Create a simulation with a search, check it, and return it ready to be sampled."""
    search = original(name)
    sim = _simulation(case, place, search, cell_order)
    sim.run(case.warmup, phases=False)
    touching = check_pairs(sim, search, "coherent" if search == "linked" else "linked", case.precision)
    columns = {"search": name, "cell_order": cell_order, "touching_pairs": touching}
    columns["partners_read"] = partners = sim.access_count() / case.n

    def sample() -> Iterator[dict]:
        ms = sample_of_steps(sim, case.steps)["sample_ms"]
        aged = {} if sim.search.capabilities.moves_particles else {"age_steps": sim.step}
        yield aged | _timed(case, ms, _row_bytes(place.layout, case.precision), partners)

    return entry_of(sim, columns, sample, work=partial(steps_taken, sim, case.steps))


def _timed(case: Config, time_ms: float, row: int = 0, partners: float = 0) -> dict:
    """Return the columns of a sample's time, and of bytes per second if the bytes of a row are known.

    The data that a step must move are the rows of positions and velocities, read once and written once. Asked
    for is also the row of every partner's position, most of which a cache holds.
    """
    floor_ms = _floor_ms(case.n, case.precision, case.backend)
    rows_per_s = 1e3 * case.n * case.steps / time_ms
    bytes_per_s = {
        "moved_GB_per_s": 1e-9 * rows_per_s * 4 * row,
        "asked_GB_per_s": 1e-9 * rows_per_s * (4 + partners) * row,
    }
    return {
        "floor_ms": floor_ms,
        "time_ms": time_ms / case.steps,
        "sample_ms": time_ms,
        "particle_steps_per_s": rows_per_s,
        "share_of_floor": floor_ms * case.steps / time_ms,
    } | (bytes_per_s if row else {})


def _peer_entry(case: Config, place: Backend, peer: Peer) -> Entry:
    """Compare another code with ours after some steps, and return it ready to be sampled over ours.

    Raises:
        WrongResultError: positions or energies differ.
    """
    sim = _simulation(case, place, PEER_BESIDE, _orders(PEER_BESIDE, case.cell_order)[0])
    sim.run(_CHECK_STEPS, phases=False)
    check_states(f"{peer.name} after {_CHECK_STEPS} steps", peer.after(_CHECK_STEPS), sim.state)
    first = peer.sample(case.warmup, 1)
    taken: list[Sample] = []
    columns: dict[str, Any] = {"search": peer.name, "cell_order": OWN_ORDER}
    columns |= {name: getattr(first, name) for name in ("version", "temperature_start", "partners_read")}
    columns |= working_set(case.n, 3, case.precision, place)

    def sample() -> Iterator[dict]:
        before = case.warmup + len(taken) * (1 + case.steps) + 1  # one of each sample is not timed
        taken.append(peer.sample(before, case.steps))
        yield _timed(case, taken[-1].time_ms)

    def at_end() -> dict:
        per_build = len(taken) * case.steps / max(sum(sample.builds for sample in taken), 1)
        return {"temperature_end": taken[-1].temperature_end, "steps_per_build": per_build}

    return Entry(columns, sample, at_end)


def _simulation(case: Config, place: Backend, name: str, cell_order: str) -> md.Simulation:
    kind: Any = md.search.SEARCHES[name]
    given = [cell_order] if kind.capabilities.moves_particles else []
    search = kind(*given, case.skin) if issubclass(kind, ListConfig) else kind(*given)
    reorder = None if given else md.Reorder(cell_order, lambda step: step == 0)
    options = {"backend": place, "fused": search.capabilities.fusable, "reorder": reorder}
    return benchmark_simulation(_start(case), case, search, **options)


def _start(case: Config) -> md.State:
    return _shuffled(case.n, case.filling_fraction, case.seed, case.backend)


@lru_cache(maxsize=1)
def _shuffled(n: int, filling_fraction: float, seed: int, backend: str) -> md.State:
    gas = md.scenes.benchmark_gas(n, filling_fraction, seed=seed, backend=backend)
    return md.scenes.in_memory_order(gas, "shuffled", seed)


@lru_cache
def _floor_ms(n: int, precision: str, backend: str) -> float:
    """Time a read and a write of every row of positions and velocities, by the identity permutation.

    The permutation also moves the ids and reads itself; the time is scaled to the rows.
    """
    place, dtype = md.backend.get(backend), np.dtype(precision)
    at_rest = md.State(np.zeros((n, 3)), np.zeros((n, 3)), md.Box((4.0, 4.0, 4.0)))
    particles = ParticleArrays(at_rest, dtype, place)
    identity = place.upload(np.arange(n, dtype=np.int32))
    particles.permute(identity)  # compiles

    def repeat() -> None:
        for _ in range(_FLOOR_REPEATS):
            particles.permute(identity)

    launch = place.record(repeat) if place.runs_ahead else repeat  # so that the time holds no launches
    times = []
    for _ in range(7):
        with place.stopwatch() as elapsed:
            launch()
        times.append(elapsed[0] / _FLOOR_REPEATS)
    rows = 4 * _row_bytes(place.layout, dtype)
    return float(np.median(times)) * rows / (rows + 3 * identity.itemsize)


def _row_bytes(layout: str, precision: str | np.dtype) -> int:
    """Return the bytes of one particle's position or velocity."""
    return (4 if layout == "aos4" else 3) * np.dtype(precision).itemsize


def _named(table: pd.DataFrame) -> pd.DataFrame:
    """Add the column `name`: the search, with its order of the cells if there are several."""
    is_ours, search = table["cell_order"] != OWN_ORDER, table["search"]
    several = table.loc[is_ours, "cell_order"].nunique() > 1
    names = search.map(original) + ", " + table["cell_order"]
    names = names.where(~search.map(is_again), names.map(again))
    return table.assign(name=names.where(is_ours & several, search))


def _baseline(table: pd.DataFrame) -> list[str]:
    """Return the name of the first `linked`, or of the first search."""
    first = table[table["search"] == BASELINE]
    return [(table if first.empty else first)["name"].iloc[0]]


def _over(table: pd.DataFrame) -> dict[str, str]:
    """Return the baseline and the peers, and their parts of the names of columns."""
    ours = {name: name.replace(", ", "_") for name in _baseline(table)}
    return ours | {peer.name: name for name, peer in PEERS.items()}


def _note(table: pd.DataFrame) -> str:
    """Describe the gas, and the age of an order that is made once."""
    gas = f"{table['precision'].iloc[0]}, shared gas"
    old = table.dropna(subset="age_steps") if "age_steps" in table else table[:0]
    searches = ", ".join(dict.fromkeys(map(original, old["search"])))
    return gas if old.empty else f"{gas}\nmemory of {searches}: {aged(round(old['age_steps'].max()))}"


_FILLINGS = partial(
    Chart, panels="filling_fraction", heading=FILLED, note=_note, fastest=True, prepare=_named
)
VIEWS = (
    _FILLINGS(
        "sizes_{precision}",
        "At {filling_fraction} filled, a step of {n} particles takes {value} ns a particle by {best}",
        LINES, Points("time_ms", scale="1e6 / n"), PARTICLES,
        Scale("time per particle and step (ns)", log=10),
        "name", "search", bounds=(Points("floor_ms", statistic=MIDDLE, scale="1e6 / n", label=FLOOR),),
        peers=tuple(peer.name for peer in PEERS.values()),
    ),
    _FILLINGS(
        "gains_{precision}",
        "At {filling_fraction} filled and {n} particles, {best} is {value} times as fast as {over}",
        DOTS, Points("time_ms", over=_baseline, compared="name"), Scale("", "name"),
        GAINS, "n", "particles",
    ),
    Summary(
        ("n", "filling_fraction", "precision"), "name", _over, ("search", "cell_order"), prepare=_named,
        more={"giga_particle_steps_per_s": "1e-6 * n / value", "floor_ms": "median",
              "share_of_floor": "median", "steps_per_build": "median", "partners_read": "median",
              "age_steps": "max"},
    ),
    summary_of_energy(
        ("n", "filling_fraction", "precision"), "name", _over, beside=("search", "cell_order"),
        prepare=lambda table: by_resource(_named(table)),
    ),
)  # fmt: skip


def _over_floor(rows: pd.DataFrame) -> str:
    """Compare the fastest search with what the memory allows."""
    best = next(iter(ranked(rows, "name")))
    floors = rounded(1 / rows.loc[rows["name"] == best, "share_of_floor"].median())
    return f"{quoted(best)} takes {floors} times the floor of memory"


answer = Comparison(
    "name", _baseline, "n", "At {n} particles, {filling_fraction} filled, {precision}", fixed=("precision",),
    heading="n {:,}".format, more=_over_floor, rows="filling_fraction == filling_fraction.iloc[0]",
    prepare=lambda table: _named(table).sort_values("n", ascending=False, kind="stable"),
)  # fmt: skip


if __name__ == "__main__":
    main(Config, measure, VIEWS, quick=QUICK, answer=answer, quick_limit=FITS_CACHE, minutes=MINUTES)
