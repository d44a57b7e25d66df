"""How fast is a step of a flock by every search, in every memory order, and does that change with its age?

Boids follow the rules of [flock] at its density. A flock starts with uniform positions or in clusters, and is
aged once a run by the search `tensor`. Every search in every memory order is then sampled once a round, in
random order, from the same aged state: a step that is not timed, and `steps` timed steps. Searches that do
not sort the boids are measured in shuffled memory, in memory that was just sorted along an ordering (fresh),
and in memory that was sorted `order_age` steps before. Beside the times are the structure of the flock and
the predicted hits of the reads.

Before anything is timed, every search is compared with another one: after one step in float32, after ten in
float64. Claim B1 of [flock] compares four searches, each with the one before (its rungs): `naive`,
`scattered` in shuffled memory, `coherent` and `tiles`. Gains of each but the first are over the one before.
`coherent` is measured twice: the difference of the two is noise.

`--peers numpy` measures the same rules in vectorised numpy with scipy's cKDTree in the same rounds, in
shuffled memory and in memory sorted along Hilbert's curve. The gain in the figure is over the faster of the
two. numpy and the tree's search for pairs use one thread, ours all.

In summary.csv a rung of B1 has its gain over the rung before, another search that over the same search in
shuffled memory (`over` names it), and each search its gains over the peer in either memory.
"""

import sys
from collections.abc import Callable, Iterator
from dataclasses import dataclass, field
from functools import partial
from itertools import pairwise, product
from typing import Any, ClassVar, NamedTuple

import numpy as np
import pandas as pd

import md
import sfc
from experiments.core import Axis, TimedSettings, main, values
from experiments.core.terminal import FITS_CACHE
from experiments.measurement.correctness import check_flight
from experiments.measurement.hardware_caches import working_set
from experiments.measurement.rounds import Entry, take_rounds
from experiments.measurement.step_times import sample_of_steps
from experiments.peers.numpy_flock import numpy_flock_step
from experiments.prediction.cache_models import MODELS, predicted
from experiments.prediction.flocks import MAX_SPEED, RULES, STARTS, Aging, Flock, places, structure
from experiments.results import gains
from experiments.results.answers import (
    Comparison,
    estimate,
    largest_gain,
    pair_in_words,
    quoted,
)
from experiments.results.baselines import SHUFFLED, again, is_again
from experiments.results.charts import DOTS, Chart, Points, Scale, Summary, View
from md.backend import Backend
from md.scenes.flock import SOURCE_DT
from md.search.lists.list_search import ListConfig
from md.simulation import PRECISIONS

FLOCK = ["n", "start", "rules", "precision", "age"]  # columns that identify a flock
RUNGS = ("naive", "scattered, shuffled", "coherent", "tiles")
BEFORE = dict(zip(RUNGS, (None, *RUNGS), strict=False))  # rung -> the one before
TWICE = "coherent"  # measured twice: the difference is noise
PEER = "numpy and cKDTree"  # column `search` in tables
PEER_MEMORIES = (SHUFFLED, "hilbert")
PEER_COLUMNS = {f"{PEER}, {ordering}": f"numpy_{ordering}" for ordering in PEER_MEMORIES}
TARGET = 5  # gain over a peer
OWN = "its own"  # memory order of a search that sorts
TENSOR = "tensor"
STRUCTURE = ("neighbours_mean", "neighbours_largest", "order_parameter", "heading_correlation", "clustering",
             "partners_read", "hit_ratio", "order_age_steps")  # fmt: skip
MOST_NEIGHBOURS = 3.0  # times the median flock of a size: of others no gains are drawn
CHECKED_STEPS = {"float32": 1, "float64": 10}


@dataclass(frozen=True)
class Config(TimedSettings):
    """Sweep of flocks. All searches of a case, in all memory orders, are in memory at once."""

    TOGETHER: ClassVar[tuple[str, ...]] = ("search", "ordering", "division")

    n: Axis[int] = (10_000,)
    """Number of boids, at the density of [flock], 1/8. Take 100000 and 1000000 on a GPU."""
    start: Axis[str] = ("uniform",)
    """Positions at the start: uniform, or clusters (of a thousand boids that fly together)."""
    rules: Axis[str] = ("source",)
    """Rules of the flock: source (those of [flock]), weak_separation (separation 0.02 up to a distance of 1.5
    instead of 0.1 up to 3: flocks form)."""
    precision: Axis[str] = ("float32",)
    """Precision of positions, velocities and forces."""
    age: Axis[int] = (0, 1000)
    """Numbers of steps since the start. Take 0, 1000 and 20000 on a GPU."""
    search: tuple[str, ...] = ("naive", "scattered", "coherent", "tiles", "linked", "verlet", "lbvh")
    """Neighbour searches; tensor in float32 on a GPU with tensor cores."""
    ordering: tuple[str, ...] = (SHUFFLED, "hilbert")
    """Memory orders of the searches that do not sort the boids: shuffled, or a 3D ordering of `sfc`."""
    order_age: int = 100
    """Age in steps of a memory order that is measured beside a fresh one, in flocks of at least that age."""
    division: tuple[int, ...] = (0,)
    """Number of cells per cutoff of scattered and coherent, 1 to 4; 0 for cells of the cutoff, visited one by
    one."""
    skin: float = 1.0
    """Skin of verlet and verlet_tree, in units of length."""
    naive_up_to: int = 20_000
    """Largest number of boids for naive, which takes time n squared."""
    predicted_up_to: int = 131_072
    """Largest number of boids whose reads are listed for the prediction of hits."""
    model: str = "lru"
    """Model of the cache of the prediction."""
    cache: int = 1024
    """Capacity of that cache in particles; of set_associative a multiple of 128."""
    steps: int = 10
    """Number of steps in a sample. Take 50 on a GPU."""
    peers: list[str] = field(default_factory=list)
    """Other codes, measured in the same rounds in float64 on the CPU: numpy with scipy's cKDTree, on one
    thread; ours use all."""

    def __post_init__(self):
        super().__post_init__()
        self.check_known({
            "start": STARTS, "rules": tuple(RULES), "precision": PRECISIONS, "peers": ("numpy",),
            "search": tuple(md.search.SEARCHES), "ordering": (SHUFFLED, *sfc.orderings(3)),
            "model": MODELS,
        })  # fmt: skip
        self.check_least({
            "n": 1000, "age": 0, "order_age": 1, "division": 0, "naive_up_to": 0, "predicted_up_to": 0,
            "steps": 1, "skin": 0, "cache": 1,
        })  # fmt: skip
        self.check_particles(len(self.search) * len(self.ordering) + 2)
        divided = [hasattr(search, "division") for search in self.searches().values()]
        if self.division != (0,) and not any(divided):
            raise ValueError(
                f"--division {' '.join(map(str, self.division))} beside --search {' '.join(self.search)}; "
                "allowed: 0, or with a search that has the parameter `division`"
            )
        if self.peers or TENSOR in self.search:
            self._check_device()

    def _check_device(self) -> None:
        """Raise for peers and searches that this device or precision does not have."""
        device = md.backend.get("auto").name if self.backend == "auto" else self.backend
        if self.peers and device != "cpu":
            raise ValueError("--peers run on the CPU, simulations on a GPU; take --backend cpu")
        if self.peers and "float64" not in values(self.precision) and isinstance(self.precision, tuple):
            raise ValueError("--peers are measured in float64; add --precision float64")
        if TENSOR in self.search and (device == "cpu" or self.precision == ("float64",)):
            raise ValueError(
                f"--search {TENSOR} on a CPU, or in float64, is coherent's kernel; allowed: in float32 on a "
                "GPU with tensor cores; leave it out"
            )

    def searches(self) -> dict[str, Any]:
        """Return name in tables -> configuration, of each search with each of its divisions.

        Raises:
            ValueError: a division that a search does not have.
        """
        found: dict[str, Any] = {}
        for search in self.search:
            kind: Any = md.search.SEARCHES[search]
            if hasattr(kind, "division"):
                names = {f"{search} division {k}" if k else search: k for k in self.division}
                found |= {name: kind(division=k or None) for name, k in names.items()}
            else:
                found[search] = kind(skin=self.skin) if issubclass(kind, ListConfig) else kind()
        return found


QUICK = {"n": (2000,), "age": (0, 60), "order_age": 50, "search": ("naive", "scattered", "coherent", "tiles"),
         "steps": 3, "rounds": 3, "runs": 1}  # fmt: skip
MINUTES = 6  # the first case up to its first round, extrapolated


class Memory(NamedTuple):
    """Memory order of a flock.

    Attributes:
        ordering: shuffled, an ordering, or the search's own.
        age: steps since the memory was sorted, at the start of a sample; None if it never was.
        rows: (n,) rows of the state, first slot first.
    """

    ordering: str
    age: int | None
    rows: np.ndarray


def measure(case: Config, begin: int = 0) -> Iterator[list[dict]]:
    """Yield the rounds from `begin` on: the mean time of a sample's steps."""
    place = md.backend.get(case.backend)  # one backend for all: its count of recorded graphs covers all
    flock = Flock(case.n, case.start, case.rules, case.seed)
    aging = Aging(flock, case.backend, case.precision)
    young, state = aging.at(max(0, case.age - case.order_age)), aging.at(case.age)
    sort = partial(places, cutoff=flock.law.cutoff, seed=case.seed)
    shuffled = Memory(SHUFFLED, None, np.random.default_rng([case.seed, 5]).permutation(case.n))
    ages = {0: state} | ({case.order_age: young} if case.age >= case.order_age else {})
    memories = {SHUFFLED: shuffled} if SHUFFLED in case.ordering else {}
    for ordering, (age, flying) in product(case.ordering, ages.items()):
        if ordering != SHUFFLED:
            words = f"{ordering} {age} steps old" if age else f"{ordering} fresh"
            memories[words] = Memory(ordering, age, sort(flying, ordering))
    measured = structure(state, flock.law.cutoff)._asdict()
    simulate = partial(flock.simulation, backend=place, precision=case.precision)
    right = {name: _stepped(simulate(state, name)) for name in ("scattered", "coherent")}

    def checked(columns: dict, found: md.State) -> dict:
        """Compare with another search after the same steps, and add what all cases of the flock share."""
        other = right["coherent" if columns["search"] == "scattered" else "scattered"]
        what = f"{columns['name']} after {CHECKED_STEPS[case.precision]} steps"
        differ = check_flight(what, found, other, case.precision, measured["neighbours_mean"])
        return columns | measured | {"boids_that_differ": differ}

    entries = []
    for name, search, memory in _kinds(case, memories, shuffled):
        simulation = simulate(state.take(memory.rows), search)
        if not getattr(simulation.search, "uses_tensor_cores", True):
            print(f"{name} is left out: in {case.precision} on this device it has no tensor cores",
                  file=sys.stderr)  # fmt: skip
            continue
        searched = again(search.name) if is_again(name) else search.name
        columns = {"name": name, "search": searched, "memory": memory.ordering}
        entries.append(_entry(case, simulation, memory, partial(checked, columns)))
    for ordering in PEER_MEMORIES if case.peers and case.precision == "float64" else ():
        rows = shuffled.rows if ordering == SHUFFLED else sort(state, ordering)
        columns = {"name": f"{PEER}, {ordering}", "search": PEER, "memory": ordering}
        entries.append(_peer(flock, state.take(rows), place, partial(checked, columns)))
    yield from take_rounds(entries, case.rounds, place, seed=case.seed, begin=begin)


def _stepped(simulation: md.Simulation) -> md.State:
    """Return the state after the checked steps."""
    simulation.run(CHECKED_STEPS[simulation.config.precision], phases=False)
    return simulation.state


def _kinds(case: Config, memories: dict[str, Memory], shuffled: Memory) -> Iterator[tuple[str, Any, Memory]]:
    """Yield name, configuration and memory of each search in each memory order."""
    for name, search in case.searches().items():
        if search.name == "naive":
            if case.n <= case.naive_up_to:
                yield name, search, shuffled
        elif search.capabilities.moves_particles:
            for twice in (name, again(name)) if name == TWICE else (name,):
                yield twice, search, shuffled._replace(ordering=OWN)
        else:
            for words, memory in memories.items():
                yield f"{name}, {words}", search, memory


def _entry(case: Config, simulation: md.Simulation, memory: Memory, checked: Callable) -> Entry:
    """Check a simulation, and return it ready to be sampled."""
    particles = simulation.system.particles
    start = [array.copy() for array in (particles.pos, particles.vel, particles.id)]

    def restart() -> None:
        for array, first in zip((particles.pos, particles.vel, particles.id), start, strict=True):
            array[...] = first
        simulation.search.reset()

    columns = checked(_stepped(simulation))
    restart()
    if case.n <= case.predicted_up_to and columns["search"] != "naive":
        reads = simulation.accesses()
        columns["partners_read"] = len(reads.reads) / case.n
        for row in predicted(reads, (case.model,), (case.cache,)):  # none if the capacity does not fit
            columns |= {name: row[name] for name in ("model", "cache_particles", "hit_ratio")}
    aged = {} if memory.age is None else {"order_age_steps": memory.age + 1 + case.steps}

    def sample() -> Iterator[dict]:
        restart()
        yield aged | sample_of_steps(simulation, case.steps)

    return Entry(columns | working_set(case.n, 3, case.precision, simulation.backend), sample)


def _peer(flock: Flock, state: md.State, place: Backend, checked: Callable) -> Entry:
    """Check the same rules in numpy, and return them ready to be sampled over one step."""
    lengths = np.array(state.box.lengths)
    take = partial(numpy_flock_step, lengths=lengths, law=flock.law, max_speed=MAX_SPEED, dt=SOURCE_DT)
    moved = state.pos, state.vel
    for _ in range(CHECKED_STEPS["float64"]):
        moved = take(*moved)
    columns = checked(md.State(*moved, state.box, state.id))

    def sample() -> Iterator[dict]:
        pos, vel = take(state.pos, state.vel)
        with place.stopwatch() as elapsed:
            take(pos, vel)
        yield {"time_ms": elapsed[0], "sample_ms": elapsed[0]}

    return Entry(columns | working_set(len(state), 3, "float64", place), sample, threads=1)


def _in_shuffled(table: pd.DataFrame) -> dict[str, str]:
    """Name the same search in shuffled memory; name of a search in a memory order -> that name."""
    names = table.loc[table["search"] != PEER, "name"].unique()
    return {name: f"{name.split(',')[0]}, {SHUFFLED}" for name in names}


def shown(table: pd.DataFrame) -> pd.DataFrame:
    """Add columns for figures; the memory orders of a search stand together.

    Returns:
        The table with `state`: start, rules and age of the flock; and `panel`, its size, and its start if
        there are several.
    """
    rules = ", " + table["rules"] if table["rules"].nunique() > 1 else ""
    states = table["start"] + rules + ", " + table["age"].astype(str) + " steps"
    starts = ", " + table["start"] if table["start"].nunique() > 1 else ""
    panels = table["n"].map("{:,} boids".format) + starts
    search = pd.factorize(table["name"].str.split(",").str[0])[0]
    rows = table.assign(state=states.str.replace("_", " "), panel=panels)
    return rows.iloc[np.argsort(search, kind="stable")]


def comparable(table: pd.DataFrame) -> pd.DataFrame:
    """Leave out flocks in which a boid has far more neighbours than in others: gains of another regime.

    Args:
        table: with columns `neighbours_mean` and those of `FLOCK`.

    Returns:
        The other rows, with the column `left_out`: a line which names the flocks that are left out, or empty.
    """
    rows = shown(table)
    mean = rows.groupby(FLOCK)["neighbours_mean"].transform("mean")
    is_dense = mean > MOST_NEIGHBOURS * mean.groupby(rows["n"]).transform("median")
    states = "; ".join(rows.loc[is_dense, "state"].unique())
    note = f"among the times and in the table only, for its many neighbours: {states}" if states else ""
    return rows[~is_dense].assign(left_out=note)


def _neighbours(rows: pd.DataFrame) -> dict[str, str]:
    """Name states with the neighbours of a boid: the mean, and the most, in the largest flocks."""
    largest = rows[rows["n"] == rows.groupby("state")["n"].transform("max")]
    found = largest.groupby("state")[["neighbours_mean", "neighbours_largest"]].mean()
    words = "{}\n{:.0f} neighbours, at most {:.0f}".format
    return {str(row[0]): words(*row) for row in found.itertuples()}


def _note(rows: pd.DataFrame, *lines: str) -> str:
    """Join precision, lines, and which flocks are left out."""
    return "\n".join(filter(None, (rows["precision"].iloc[0], *lines, rows["left_out"].iloc[0])))


def _with_peer(rows: pd.DataFrame) -> str:
    """Name the precision, and the gain of the fastest search of each flock over the peer's faster memory."""
    lines, names = [rows["precision"].iloc[0]], [*PEER_COLUMNS]
    ratios = gains.gains_over_fastest(rows, FLOCK, "name", names)
    for _, flock in shown(ratios).groupby(["n", "state"], sort=False):
        best = largest_gain(flock)
        where = f"{best['n']:,} boids, {best['precision']}, {best['state']}"
        gain = f"{best['name']} {estimate(best, 'gain')} times as fast as {best['over']}"
        lines.append(f"{where}: {gain} (target: {TARGET})")
    return "\n".join(lines)


PANELS: dict[str, Any] = {
    "form": DOTS, "names": Scale("", "name"), "series": "state", "title_of_series": "flock",
    "panels": "panel", "heading": "{panel}",
}  # fmt: skip
VIEWS: tuple[View, ...] = (
    Summary(
        tuple(FLOCK), "name", PEER_COLUMNS, pairs=lambda table: _in_shuffled(table) | BEFORE,
        more={"ns_per_boid": "1e6 * value / n", **dict.fromkeys(STRUCTURE, "mean")},
    ),
    Chart(
        "times_{precision}", "{state}: {best} takes {value} ns a boid and step",
        points=Points("time_ms", scale="1e6 / n"), values=Scale("time per boid and step (ns)", log=10),
        words=_neighbours, note=_with_peer, prepare=shown, **PANELS,
    ),
    Chart(
        "rungs_{precision}", "{state}: a step of {best} is {value} times as fast as the rung before",
        points=Points("time_ms", pairs=BEFORE, compared="name"),
        values=Scale("gain of a step", log=10, line=1), note=_note, prepare=comparable,
        words={rung: f"{rung}\nover {before}" for before, rung in pairwise(RUNGS)}, **PANELS,
    ),
    Chart(
        "memory_{precision}", "{state}: {best} is {value} times as fast as in shuffled memory",
        points=Points("time_ms", pairs=_in_shuffled, compared="name"),
        values=Scale("gain of a step over shuffled memory", log=10, line=1), prepare=comparable,
        note=lambda rows: _note(rows, "no mark where a flock is younger than the order"), **PANELS,
    ),
    Chart(
        "misses_{precision}", "{state}: {best} misses {value} of its reads",
        points=Points("1 - hit_ratio"), values=Scale("predicted misses, share of all reads", log=10),
        note="reads of the force kernel, cache `{model}` of {cache_particles} particles; {precision}",
        prepare=lambda table: shown(table).dropna(subset="hit_ratio"), needs="hit_ratio", **PANELS,
    ),
)  # fmt: skip


def _baseline(rows: pd.DataFrame) -> list[str]:
    """Return the naive search of the first flock, or shuffled memory; the other is a case."""
    measured = set(rows.loc[rows["age"] == rows["age"].iloc[0], "name"])
    return [name for name in RUNGS[:2] if name in measured][:1]


def _best_order(rows: pd.DataFrame) -> str:
    """Name the best memory order."""
    ordered = gains.gains_over(rows, FLOCK, "name", _in_shuffled(rows))
    if ordered.empty:
        return ""
    row = largest_gain(ordered)
    return f"the best memory order is {pair_in_words(row, quoted(row['name']), quoted(row['over']))}"


answer = Comparison(
    "name", _baseline, "age", "At {n} boids of {age} steps ({precision})", heading="age {:,}".format,
    fixed=("n", "start", "rules", "precision"), more=_best_order,
)  # fmt: skip


if __name__ == "__main__":
    main(Config, measure, VIEWS, quick=QUICK, answer=answer, quick_limit=FITS_CACHE, minutes=MINUTES)
