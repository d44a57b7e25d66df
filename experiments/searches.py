"""Which neighbour search is fastest, in which order of the cells, and how near is it to the memory's limit?

The gas is `md.scenes.shared_gas`, a jittered lattice, the same on CPU and GPU, which is also used for the
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

from collections.abc import Iterator
from contextlib import ExitStack
from dataclasses import dataclass, field
from functools import lru_cache, partial
from typing import Any, ClassVar

import numpy as np
import pandas as pd

import md
import sfc
from experiments.core import Axis, TimedSettings, main, values
from experiments.core.terminal import FITS_CACHE
from experiments.measurement.correctness import WrongResultError, check_pairs, check_states
from experiments.measurement.hardware_caches import working_set
from experiments.measurement.rounds import Entry, take_rounds
from experiments.measurement.step_times import whole_steps
from experiments.peers import PEERS, Peer, PeerError, Sample
from experiments.results import gains
from experiments.results.answers import Answer, compared, headline, percent, quoted, ranked, rounded
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

PRECISIONS = ("float32", "float64")
BASELINE, PEER_BESIDE = "linked", "verlet"
FLOOR = "floor of memory"
_CHECK_STEPS = 20  # after which a peer's positions and energy are compared with ours
_FLOOR_REPEATS = 6  # an even number: then all arrays are back in their roles
_BY = ["n", "filling_fraction", "precision"]
_CASE = [*_BY, "search", "cell_order"]
OWN_ORDER = "its own"  # order of a peer's cells


@dataclass(frozen=True)
class Config(TimedSettings):
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
    skin: float = 0.3
    """Skin of verlet and verlet_tree, in d."""
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
        known = {
            "search": tuple(md.search.SEARCHES),
            "cell_order": sfc.orderings(3),
            "precision": PRECISIONS,
        }
        self.check_known(known | {"peers": tuple(PEERS)})
        self.check_least({"n": 2, "steps": 1, "warmup": 1, "skin": 0})
        self.check_above_zero({"filling_fraction": 0.5})
        self.check_particles(len(self.search) * len(self.cell_order) + 1)
        for name in values(self.search):
            kind = md.search.SEARCHES[name]
            if kind.capabilities.moves_particles and not set(values(self.cell_order)) & set(
                kind.cell_orders(3)
            ):
                raise ValueError(
                    f"--search {name} beside --cell-order {' '.join(values(self.cell_order))}; allowed: "
                    f"{', '.join(kind.cell_orders(3))}"
                )
        if self.peers:
            self._check_peers()

    def _check_peers(self) -> None:
        """Raise for peers that are not installed, or that this sweep does not measure."""
        for name in self.peers:
            PEERS[name].require()
        if md.backend.get(self.backend).name != "cpu":
            raise ValueError("--peers run on the CPU, simulations on a GPU; take --backend cpu")
        swept = isinstance(self.precision, tuple)  # else this is one case of a sweep
        wanted = {(PEER_BESIDE, PEERS[name].precision) for name in self.peers}
        if swept and not wanted <= {(s, p) for s in self.search for p in values(self.precision)}:
            raise ValueError(
                f"--peers are measured beside verlet in their own precision; add --search {PEER_BESIDE} "
                f"--precision {' '.join(sorted(p for _, p in wanted))}"
            )


QUICK = {"n": (2**12, 2**15), "filling_fraction": (0.2,), "runs": 1}
MINUTES = 13  # CPU time of one run of the smallest size, extrapolated


def measure(case: Config, begin: int = 0) -> Iterator[list[dict]]:
    """Yield the rounds from `begin` on: the mean time of a sample's steps, and the floor."""
    place = md.backend.get(case.backend)  # one backend for all: its count of recorded graphs covers all
    _floor_ms(case.n, case.precision, case.backend)  # measured now, and cached
    kinds = _kinds(case)
    twice = next((kind for kind in kinds if kind[0] == BASELINE), kinds[0])
    entries = []
    for search, order in kinds:
        entries.append(_entry(case, place, search, order))
        if (search, order) == twice:
            entries.append(_entry(case, place, again(search), order))
    with ExitStack() as stack:
        entries += [_peer_entry(case, place, stack.enter_context(peer)) for peer in _peers(case, place)]
        yield from take_rounds(entries, case.rounds, place, seed=case.seed, begin=begin)


def _kinds(case: Config) -> list[tuple[str, str]]:
    """List each search with each order of the cells that it supports."""
    kinds: dict[str, Any] = {search: md.search.SEARCHES[search] for search in case.search}
    return [
        (search, order)
        for search, kind in kinds.items()
        for order in case.cell_order
        if not kind.capabilities.moves_particles or order in kind.cell_orders(3)
    ]


def _entry(case: Config, place: Backend, name: str, cell_order: str) -> Entry:
    """Create a simulation with a search, check it, and return it ready to be sampled."""
    sim = _simulation(case, place, original(name), cell_order)
    sim.run(case.warmup, phases=False)
    search = original(name)
    touching = check_pairs(sim, search, "coherent" if search == "linked" else "linked", case.precision)
    partners, steps, builds = sim.access_count() / case.n, sim.step, sim.builds
    columns = {
        "search": name,
        "cell_order": cell_order,
        "temperature_start": md.observe.temperature(sim.state),
        "touching_pairs": touching,
        "partners_read": partners,
        **working_set(case.n, 3, case.precision, place),
    }

    def sample() -> Iterator[dict]:
        sim.run(1, phases=False)  # loads the caches again after other cases
        ms = whole_steps(sim, case.steps)
        aged = {} if sim.search.capabilities.moves_particles else {"age_steps": sim.step}
        yield aged | _timed(case, ms) | _bandwidth(case, place, ms, partners)

    def at_end() -> dict:
        return {
            "temperature_end": md.observe.temperature(sim.state),
            "steps_per_build": (sim.step - steps) / max(sim.builds - builds, 1),
        }

    return Entry(columns, sample, at_end)


def _timed(case: Config, time_ms: float) -> dict:
    """Return the columns of a sample's time."""
    floor_ms = _floor_ms(case.n, case.precision, case.backend)
    return {
        "floor_ms": floor_ms,
        "time_ms": time_ms / case.steps,
        "sample_ms": time_ms,
        "particle_steps_per_s": 1e3 * case.n * case.steps / time_ms,
        "share_of_floor": floor_ms * case.steps / time_ms,
    }


def _bandwidth(case: Config, place: Backend, time_ms: float, partners: float) -> dict:
    """Return bytes per second: of the data that a step must move, and of the reads of its force kernel.

    The first counts the rows of positions and velocities, read once and written once. The second adds the row
    of every partner's position, most of which a cache holds.
    """
    row = _row_bytes(place.layout, case.precision)
    rows_per_s = 1e3 * case.n * case.steps / time_ms
    return {
        "moved_GB_per_s": 1e-9 * rows_per_s * 4 * row,
        "asked_GB_per_s": 1e-9 * rows_per_s * (4 + partners) * row,
    }


def _peers(case: Config, place: Backend) -> Iterator[Peer]:
    """Yield the peers of this case: beside `verlet` in the peer's own precision."""
    for kind in (PEERS[name] for name in case.peers):
        if PEER_BESIDE in case.search and case.precision == kind.precision:
            yield kind(_start(case), md.scenes.SHARED_LAW, md.scenes.SHARED_DT, place.workers)


def _peer_entry(case: Config, place: Backend, peer: Peer) -> Entry:
    """Check another code, and return it ready to be sampled over the same steps as ours."""
    _check_peer(case, place, peer)
    first = peer.sample(case.warmup, 1)
    taken: list[Sample] = []
    columns = {
        "search": peer.name,
        "cell_order": OWN_ORDER,
        "version": first.version,
        "temperature_start": first.temperature_start,
        "partners_read": first.partners_read,
        **working_set(case.n, 3, case.precision, place),
    }
    return Entry(columns, partial(_peer_sample, case, peer, taken), partial(_peer_end, case, taken))


def _peer_sample(case: Config, peer: Peer, taken: list[Sample]) -> Iterator[dict]:
    """Time the steps after those of the earlier samples; each sample starts with an untimed step."""
    before = case.warmup + len(taken) * (1 + case.steps) + 1
    taken.append(peer.sample(before, case.steps))
    yield _timed(case, taken[-1].time_ms)


def _peer_end(case: Config, taken: list[Sample]) -> dict:
    builds = sum(sample.builds for sample in taken)
    return {
        "temperature_end": taken[-1].temperature_end,
        "steps_per_build": len(taken) * case.steps / max(builds, 1),
    }


def _check_peer(case: Config, place: Backend, peer: Peer) -> None:
    """Compare the state of a peer with ours after some steps.

    Raises:
        PeerError: positions or energies differ.
    """
    sim = _simulation(case, place, *next(kind for kind in _kinds(case) if kind[0] == PEER_BESIDE))
    sim.run(_CHECK_STEPS, phases=False)
    try:
        check_states(f"{peer.name} after {_CHECK_STEPS} steps", peer.after(_CHECK_STEPS), sim.state)
    except WrongResultError as error:
        raise PeerError(str(error)) from error


def _start(case: Config) -> md.State:
    gas = _gas(case.n, case.filling_fraction, case.seed, case.backend)
    return md.scenes.in_memory_order(gas, "shuffled", case.seed)


def _simulation(case: Config, place: Backend, name: str, cell_order: str) -> md.Simulation:
    kind: Any = md.search.SEARCHES[name]
    reorder: md.Reorder | None = None
    search: str | md.search.SearchConfig = name
    if issubclass(kind, ListConfig):
        search = kind(cell_order, case.skin)
    elif kind.capabilities.moves_particles:
        search = kind(cell_order)
    else:
        reorder = md.Reorder(cell_order, lambda step: step == 0)
    return md.Simulation(
        _start(case),
        md.scenes.SHARED_LAW,
        search=search,
        dt=md.scenes.SHARED_DT,
        reorder=reorder,
        backend=place,
        precision=case.precision,
        fused=md.search.search(search).capabilities.fusable,
    )


@lru_cache(maxsize=1)
def _gas(n: int, filling_fraction: float, seed: int, backend: str) -> md.State:
    return md.scenes.shared_gas(n, filling_fraction, seed=seed, backend=backend)


@lru_cache
def _floor_ms(n: int, precision: str, backend: str) -> float:
    """Time a read and a write of every row of positions and velocities, by the identity permutation.

    The permutation also moves the ids and reads itself; the time is scaled to the rows.
    """
    place = md.backend.get(backend)
    dtype = np.dtype(precision)
    box = md.Box((4.0, 4.0, 4.0))
    particles = ParticleArrays(md.State(np.zeros((n, 3)), np.zeros((n, 3)), box), dtype, place)
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
    row = _row_bytes(place.layout, dtype)
    return float(np.median(times)) * 4 * row / (4 * row + 3 * identity.itemsize)


def _row_bytes(layout: str, precision: str | np.dtype) -> int:
    """Return the bytes of one particle's position or velocity."""
    return (4 if layout == "aos4" else 3) * np.dtype(precision).itemsize


def _named(table: pd.DataFrame) -> pd.DataFrame:
    """Add the columns of figures: `name`, and `of_peer`, whether it is another code."""
    peers = [peer.name for peer in PEERS.values()]
    of_peer = table["search"].isin(peers)
    several = table.loc[~of_peer, "cell_order"].nunique() > 1
    names = [
        name if peer or not several else _with_order(name, order)
        for name, order, peer in zip(table["search"], table["cell_order"], of_peer, strict=True)
    ]
    return table.assign(name=names, of_peer=of_peer)


def _with_order(search: str, cell_order: str) -> str:
    name = f"{original(search)}, {cell_order}"
    return again(name) if is_again(search) else name


def _baseline(table: pd.DataFrame) -> str:
    """Return the name of the first `linked`, or of the first search."""
    first = table[table["search"] == BASELINE]
    return (table if first.empty else first)["name"].iloc[0]


def _over(table: pd.DataFrame) -> dict[str, str]:
    """Return the baseline and the peers, and their parts of the names of columns."""
    own = _baseline(table)
    peers = {peer.name: name for name, peer in PEERS.items() if peer.name in set(table["name"])}
    return {own: own.replace(", ", "_")} | peers


def _note(table: pd.DataFrame) -> str:
    """Describe the gas, and the age of an order that is made once."""
    gas = f"{table['precision'].iloc[0]}, shared gas"
    if "age_steps" not in table or table["age_steps"].isna().all():
        return gas
    searches = dict.fromkeys(map(original, table.dropna(subset="age_steps")["search"]))
    return f"{gas}\nmemory of {', '.join(searches)}: {aged(round(table['age_steps'].max()))}"


PANELS: dict[str, Any] = {"panels": "filling_fraction", "heading": FILLED, "note": _note, "fastest": True}
VIEWS = (
    Chart(
        "sizes_{precision}",
        "At {filling_fraction} filled, a step of {n} particles takes {value} ns a particle by {best}",
        LINES, Points("time_ms", scale="1e6 / n"), PARTICLES,
        Scale("time per particle and step (ns)", log=10),
        "name", "search", bounds=(Points("floor_ms", statistic=MIDDLE, scale="1e6 / n", label=FLOOR),),
        peers=tuple(peer.name for peer in PEERS.values()), prepare=_named, **PANELS,
    ),
    Chart(
        "gains_{precision}",
        "At {filling_fraction} filled and {n} particles, {best} is {value} times as fast as {over}",
        DOTS, Points("time_ms", over=lambda rows: [_baseline(rows)], compared="name"), Scale("", "name"),
        GAINS, "n", "particles", prepare=_named, **PANELS,
    ),
    Summary(
        tuple(_BY), "name", _over, beside=("search", "cell_order"), prepare=_named,
        more={"giga_particle_steps_per_s": "1e-6 * n / value", "floor_ms": "median",
              "share_of_floor": "median", "steps_per_build": "median", "partners_read": "median",
              "age_steps": "max"},
    ),
)  # fmt: skip


def answer(table: pd.DataFrame) -> Answer:
    """Compare the fastest searches with `linked`, and with what the memory allows, at the largest size."""
    rows = headline(_named(gains.with_rounds(table, _CASE)), "precision")
    rows = rows[rows["filling_fraction"] == rows["filling_fraction"].iloc[0]]
    rows = rows.sort_values("n", ascending=False, kind="stable")
    n, phi, precision = (rows[name].iloc[0] for name in ("n", "filling_fraction", "precision"))
    where = f"At {n:,} particles, {percent(phi)} filled, {precision}"
    at = rows[rows["n"] == n]
    best = ranked(at, "name")[0]
    floors = rounded(1 / at.loc[at["name"] == best, "share_of_floor"].median())
    more = f"{quoted(best)} takes {floors} times the floor of memory"
    return compared(rows, "name", [_baseline(rows)], "n", where, lambda count: f"n {count:,}", more=more)


if __name__ == "__main__":
    main(Config, measure, VIEWS, quick=QUICK, answer=answer, quick_limit=FITS_CACHE, minutes=MINUTES)
