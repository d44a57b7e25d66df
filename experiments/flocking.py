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
shuffled memory and in memory sorted along Hilbert's curve. Gains are over the faster of the two. numpy and
the tree's search for pairs use one thread, ours all.
"""

import sys
from collections.abc import Callable, Iterator
from dataclasses import dataclass, field, fields
from functools import lru_cache, partial
from itertools import pairwise, product
from typing import Any, ClassVar, NamedTuple

import numpy as np
import pandas as pd

import md
import sfc
from experiments.core import Axis, TimedSettings, main, save_table, values
from experiments.core.terminal import FITS_CACHE
from experiments.measurement.correctness import check_flight
from experiments.measurement.hardware_caches import working_set
from experiments.measurement.rounds import Entry, take_rounds
from experiments.measurement.step_times import whole_steps
from experiments.peers.numpy_flock import numpy_flock_step
from experiments.prediction.cache_models import MODELS, check_models, predicted
from experiments.prediction.flocks import MAX_SPEED, RULES, STARTS, Aging, Flock, places, structure
from experiments.results import gains
from experiments.results.answers import Answer, compared, headline, largest_gain, pair_in_words, quoted
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
PEERS = {"numpy": "numpy and cKDTree"}  # flag -> column `search` in tables
TARGET = 5  # gain over a peer
OWN = "its own"  # memory order of a search that sorts
TENSOR = "tensor"
MOST_NEIGHBOURS = 3.0  # times the median flock of a size: of others no gains are drawn
SORTED = "hilbert"  # memory of a peer besides shuffled memory
CHECKED_STEPS = {"float32": 1, "float64": 10}
_STRUCTURE = ["neighbours_mean", "neighbours_largest", "order_parameter", "heading_correlation"]
_STRUCTURE += ["clustering"]


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
            "start": STARTS, "rules": tuple(RULES), "precision": PRECISIONS, "peers": tuple(PEERS),
            "search": tuple(md.search.SEARCHES), "ordering": (SHUFFLED, *sfc.orderings(3)),
            "model": MODELS,
        })  # fmt: skip
        check_models((self.model,), (self.cache,))
        self.check_least({
            "n": 1000, "age": 0, "order_age": 1, "division": 0, "naive_up_to": 0, "predicted_up_to": 0,
            "steps": 1, "skin": 0,
        })  # fmt: skip
        self.check_particles(len(self.search) * len(self.ordering) + 2)
        divided = [name for name in self.search if _takes_division(name)]
        if self.division != (0,) and not divided:
            raise ValueError(
                f"--division {' '.join(map(str, self.division))} beside --search {' '.join(self.search)}; "
                "allowed: 0, or with a search that has the parameter `division`"
            )
        for search, division in product(divided, self.division):
            _with_division(search, division)
        limited = bool(self.peers) or TENSOR in self.search
        on_cpu = self.backend == "cpu"
        if limited and self.backend == "auto":
            on_cpu = md.backend.get(self.backend).name == "cpu"
        if self.peers and not on_cpu:
            raise ValueError("--peers run on the CPU, simulations on a GPU; take --backend cpu")
        if self.peers and "float64" not in values(self.precision) and isinstance(self.precision, tuple):
            raise ValueError("--peers are measured in float64; add --precision float64")
        if TENSOR in self.search and (on_cpu or self.precision == ("float64",)):
            raise ValueError(
                f"--search {TENSOR} {'on a CPU' if on_cpu else 'in float64'}, where it is coherent's kernel; "
                "allowed: in float32 on a GPU with tensor cores; leave it out"
            )


QUICK = {"n": (2000,), "age": (0, 60), "order_age": 50, "search": ("naive", "scattered", "coherent", "tiles"),
         "steps": 3, "rounds": 3, "runs": 1}  # fmt: skip
MINUTES = 6  # the first case up to its first round, extrapolated


class Kind(NamedTuple):
    """Search in a memory order.

    Attributes:
        name: of search and memory, in tables and figures.
        search: name of the search.
        memory: shuffled, an ordering, or its own.
        order_age: steps since the memory was sorted, at the start of a sample; None if it never was.
        config: of the search.
    """

    name: str
    search: str
    memory: str
    order_age: int | None
    config: Any


def _takes_division(search: str) -> bool:
    kind: Any = md.search.SEARCHES[search]
    return "division" in {parameter.name for parameter in fields(kind)}


def _with_division(search: str, division: int) -> Any:
    kind: Any = md.search.SEARCHES[search]
    return kind(division=division or None)


def _kinds(case: Config) -> list[Kind]:
    """List each search with each of its options in each memory order."""
    found = []
    for search in case.search:
        if search == "naive" and case.n > case.naive_up_to:
            continue
        kind: Any = md.search.SEARCHES[search]
        configs = {search: kind(skin=case.skin) if issubclass(kind, ListConfig) else kind()}
        if _takes_division(search):
            configs = {
                f"{search} division {k}" if k else search: _with_division(search, k) for k in case.division
            }
        for name, config in configs.items():
            if search == "naive":
                found.append(Kind(name, search, SHUFFLED, None, config))
            elif kind.capabilities.moves_particles:
                found.append(Kind(name, search, OWN, None, config))
            else:
                found += [
                    Kind(f"{name}, {_memory(order, age)}", search, order, age, config)
                    for order in case.ordering
                    for age in _order_ages(case, order)
                ]
    return found


def _order_ages(case: Config, order: str) -> list[int | None]:
    if order == SHUFFLED:
        return [None]
    return [0] if case.age < case.order_age else [0, case.order_age]


def _memory(order: str, age: int | None) -> str:
    return order if age is None else f"{order} fresh" if age == 0 else f"{order} {age} steps old"


class _Aged:
    """Flock at an age, in each memory order."""

    def __init__(self, case: Config):
        aging = _aging(case)
        before: dict[str, np.ndarray] = {}
        orders = [order for order in case.ordering if order != SHUFFLED]
        if orders and case.age >= case.order_age:
            young = aging.at(case.age - case.order_age)
            before = {order: places(young, order, aging.flock.law.cutoff, case.seed) for order in orders}
        self.state = aging.at(case.age)
        self.columns = structure(self.state, aging.flock.law.cutoff)._asdict()
        now = {order: places(self.state, order, aging.flock.law.cutoff, case.seed) for order in orders}
        self._rows = {0: now, case.order_age: before}
        self.shuffled = np.random.default_rng([case.seed, 5]).permutation(case.n)

    def in_memory_of(self, kind: Kind) -> md.State:
        """Return the state in a memory order."""
        if kind.order_age is None:
            return self.state.take(self.shuffled)
        return self.state.take(self._rows[kind.order_age][kind.memory])


_agings: dict[tuple, Aging] = {}  # of the last flock, to be aged further by the next case


def _aging(case: Config) -> Aging:
    """Return a flock that is young enough: the one of the case before, or a new one."""
    flock = Flock(case.n, case.start, case.rules, case.seed)
    key = flock, case.backend, case.precision
    youngest = max(0, case.age - case.order_age)
    if key not in _agings or _agings[key].age > youngest:
        _agings.clear()
        _agings[key] = Aging(flock, case.backend, case.precision)
    return _agings[key]


def measure(case: Config, begin: int = 0) -> Iterator[list[dict]]:
    """Yield the rounds from `begin` on: the mean time of a sample's steps."""
    place = md.backend.get(case.backend)  # one backend for all: its count of recorded graphs covers all
    aged, entries = _Aged(case), []
    reference = _reference(case, place, aged)
    flock = Flock(case.n, case.start, case.rules, case.seed)
    for kind in _kinds(case):
        for name in (kind.name, again(kind.name)) if kind.name == TWICE else (kind.name,):
            simulation = flock.simulation(aged.in_memory_of(kind), kind.config, place, case.precision)
            if not getattr(simulation.search, "uses_tensor_cores", True):
                print(f"{name} is left out: in {case.precision} on this device it has no tensor cores",
                      file=sys.stderr)  # fmt: skip
                continue
            entries.append(_entry(case, aged, kind, name, simulation, reference))
    if case.precision == "float64":
        for flag, memory in product(case.peers, (SHUFFLED, SORTED)):
            entries.append(_peer(case, place, aged, reference, PEERS[flag], memory))
    yield from take_rounds(entries, case.rounds, place, seed=case.seed, begin=begin)


def _reference(case: Config, place: Backend, aged: _Aged) -> Callable[[str], md.State]:
    """Return a function of a search: the state after the checked steps, by another search."""

    @lru_cache
    def after_steps(search: str) -> md.State:
        flock = Flock(case.n, case.start, case.rules, case.seed)
        simulation = flock.simulation(aged.state, search, place, case.precision)
        simulation.run(CHECKED_STEPS[case.precision], phases=False)
        return simulation.state

    return lambda search: after_steps("coherent" if search == "scattered" else "scattered")


def _entry(
    case: Config, aged: _Aged, kind: Kind, name: str, simulation: md.Simulation,
    reference: Callable[[str], md.State],
) -> Entry:  # fmt: skip
    """Check a simulation, and return it ready to be sampled."""
    particles = simulation.system.particles
    start = [array.copy() for array in (particles.pos, particles.vel, particles.id)]

    def restart() -> None:
        for array, first in zip((particles.pos, particles.vel, particles.id), start, strict=True):
            array[...] = first
        simulation.search.reset()

    steps = CHECKED_STEPS[case.precision]
    simulation.run(steps, phases=False)
    what = f"search {kind.name!r} after {steps} steps"
    crowd = aged.columns["neighbours_mean"]
    differ = check_flight(what, simulation.state, reference(kind.search), case.precision, crowd)
    restart()
    columns = {
        "name": name,
        "search": again(kind.search) if is_again(name) else kind.search,
        "memory": kind.memory,
        **aged.columns,
        "boids_that_differ": differ,
        **_predicted(case, kind, simulation),
        **working_set(case.n, 3, case.precision, simulation.backend),
    }

    def sample() -> Iterator[dict]:
        restart()
        simulation.run(1, phases=False)  # loads the caches again after other cases
        ms = whole_steps(simulation, case.steps)
        sorted_ago = {} if kind.order_age is None else {"order_age_steps": kind.order_age + 1 + case.steps}
        yield sorted_ago | {"time_ms": ms / case.steps, "sample_ms": ms}

    return Entry(columns, sample)


def _predicted(case: Config, kind: Kind, simulation: md.Simulation) -> dict:
    """Return the columns of the reads of the force kernel, and of their hits in a cache."""
    if case.n > case.predicted_up_to or kind.search == "naive":
        return {}
    reads = simulation.accesses()
    found = {"partners_read": len(reads.reads) / case.n}
    for row in predicted(reads, (case.model,), (case.cache,)):  # none if the capacity does not fit the model
        found |= {name: row[name] for name in ("model", "cache_particles", "hit_ratio")}
    return found


def _peer(
    case: Config, place: Backend, aged: _Aged, reference: Callable[[str], md.State], peer: str, memory: str
) -> Entry:  # fmt: skip
    """Check the same rules in numpy, and return them ready to be sampled over one step.

    Args:
        case: settings.
        place: backend of the stopwatch.
        aged: the flock.
        reference: of `_reference`.
        peer: name in tables.
        memory: shuffled, or an ordering.
    """
    flock, state = Flock(case.n, case.start, case.rules, case.seed), aged.state
    rows = aged.shuffled if memory == SHUFFLED else places(state, memory, flock.law.cutoff, case.seed)
    state = state.take(rows)
    lengths = np.array(state.box.lengths)
    take = partial(numpy_flock_step, lengths=lengths, law=flock.law, max_speed=MAX_SPEED, dt=SOURCE_DT)
    pos, vel = state.pos, state.vel
    for _ in range(CHECKED_STEPS[case.precision]):
        pos, vel = take(pos, vel)
    name = f"{peer}, {memory}"
    what = f"{name} after {CHECKED_STEPS[case.precision]} steps"
    found = md.State(pos, vel, state.box, state.id)
    crowd = aged.columns["neighbours_mean"]
    differ = check_flight(what, found, reference("coherent"), case.precision, crowd)

    def sample() -> Iterator[dict]:
        pos, vel = take(state.pos, state.vel)
        with place.stopwatch() as elapsed:
            take(pos, vel)
        yield {"time_ms": elapsed[0], "sample_ms": elapsed[0]}

    columns = {"name": name, "search": peer, "memory": memory, **aged.columns}
    columns |= {"boids_that_differ": differ, **working_set(case.n, 3, case.precision, place)}
    return Entry(columns, sample, threads=1)


def rungs(table: pd.DataFrame) -> pd.DataFrame:
    """Compute the gain of each rung of B1 over the one before, in each flock."""
    return gains.gains_over(table, FLOCK, "name", BEFORE)


def memory_gains(table: pd.DataFrame) -> pd.DataFrame:
    """Compute the gain of each search in sorted memory over the same search in shuffled memory."""
    return gains.gains_over(table, FLOCK, "name", _in_shuffled(table))


def _in_shuffled(table: pd.DataFrame) -> dict[str, str]:
    return {name: f"{name.split(',')[0]}, {SHUFFLED}" for name in table["name"].unique()}


def over_peer(table: pd.DataFrame, peer: str) -> pd.DataFrame:
    """Compute the gain of each search over a peer in the peer's faster memory, in each flock."""
    names = list(table.loc[table["search"] == peer, "name"].unique())
    return gains.gains_over_fastest(table, FLOCK, "name", names)


def _over_peers(table: pd.DataFrame) -> list[str]:
    """Compare the fastest search of each flock with the faster memory of each peer in words."""
    lines, text = [], "{n:,} boids, {precision}, {state}: {name} {centre:.3g} ({low:.3g} to {high:.3g})"
    for ratios in (over_peer(table, peer) for peer in PEERS.values()):
        shown = with_state(ratios.join(gains.bounds(ratios, "gain")))
        for _, rows in shown.groupby(["n", "precision", "state"], sort=False):
            best = rows.iloc[int(rows["centre"].to_numpy().argmax())]
            lines.append(f"{text.format(**best)} times as fast as {best['over']} (target: {TARGET})")
    return lines


def with_state(table: pd.DataFrame) -> pd.DataFrame:
    """Add the column `state`: start, rules and age of a flock, for legends."""
    starts = table["start"] + (", " + table["rules"] if table["rules"].nunique() > 1 else "")
    states = starts + ", " + table["age"].astype(str) + " steps"
    return table.assign(state=states.str.replace("_", " "))


def comparable(table: pd.DataFrame) -> tuple[pd.DataFrame, str]:
    """Leave out flocks in which a boid has far more neighbours than in others: gains of another regime.

    Args:
        table: with columns `neighbours_mean` and those of `FLOCK`.

    Returns:
        The other rows, and a line which names the flocks that are left out; empty if none is.
    """
    mean = table.groupby(FLOCK)["neighbours_mean"].transform("mean")
    is_dense = mean > MOST_NEIGHBOURS * mean.groupby(table["n"]).transform("median")
    states = with_state(table[is_dense])["state"].unique()
    note = f"among the times and in the table only, for its many neighbours: {'; '.join(states)}"
    return table[~is_dense], note if len(states) else ""


SUMMARY = Summary(
    tuple(FLOCK), "name",
    more={"ns_per_boid": "1e6 * value / n",
          **dict.fromkeys([*_STRUCTURE, "partners_read", "hit_ratio", "order_age_steps"], "mean")},
)  # fmt: skip


def summary(table: pd.DataFrame) -> pd.DataFrame:
    """Average over runs each search in each memory order: its time, structure and gain over the peers."""
    found = SUMMARY.table(table)
    for flag, peer in PEERS.items():
        ratios = over_peer(table, peer)
        if not ratios.empty:
            found = found.merge(gains.named(ratios, flag), on=[*FLOCK, "name"], how="left")
    return found


def _shown(table: pd.DataFrame) -> pd.DataFrame:
    """Add the state of a flock and the heading of its panel; searches in memory orders stand together."""
    if table.empty:
        return table
    several = ", " + table["start"] if table["start"].nunique() > 1 else ""
    search = table["name"].str.split(",").str[0]
    rows = with_state(table).assign(panel=table["n"].map("{:,} boids".format) + several)
    return rows.iloc[np.argsort(pd.factorize(search)[0], kind="stable")]


def _compared(ratios: Callable[[pd.DataFrame], pd.DataFrame], table: pd.DataFrame) -> pd.DataFrame:
    """Return what a figure of gains shows, which is none of a single dot, with lines on what is left out."""
    rows, note = comparable(table)
    old, young = rows[rows["name"].str.endswith("steps old")], ""
    if len(old) and set(rows["age"]) - set(old["age"]):
        young = "no mark where a flock is younger than the order"
    dots = ratios(rows)["precision"].value_counts()
    return _shown(rows[rows["precision"].map(dots) > 1]).assign(left_out=note, young=young)


def _with_hits(table: pd.DataFrame) -> pd.DataFrame:
    return _shown(table[table["hit_ratio"].notna()]) if "hit_ratio" in table else table.iloc[:0]


def _neighbours(rows: pd.DataFrame) -> dict[str, str]:
    """Name states with the neighbours of a boid: the mean, and the most, in the largest flocks."""
    largest = rows[rows["n"] == rows.groupby("state")["n"].transform("max")]
    found = largest.groupby("state")[["neighbours_mean", "neighbours_largest"]].mean()
    return {
        str(state): f"{state}\n{mean:.0f} neighbours, at most {most:.0f}"
        for state, mean, most in found.itertuples(name=None)
    }


def _notes(*columns: str) -> Callable[[pd.DataFrame], str]:
    """Return the function that joins those texts of rows which are not empty."""
    return lambda rows: "\n".join(filter(None, (rows[name].iloc[0] for name in columns)))


PANELS: dict[str, Any] = {
    "form": DOTS, "names": Scale("", "name"), "series": "state", "title_of_series": "flock",
    "panels": "panel", "heading": "{panel}",
}  # fmt: skip
VIEWS: tuple[View, ...] = (
    lambda table, out: save_table(summary(table), out, "summary"),
    lambda table, out: save_table(rungs(table), out, "rungs"),
    lambda table, out: save_table(memory_gains(table), out, "memory"),
    Chart(
        "times_{precision}", "{state}: {best} takes {value} ns a boid and step",
        points=Points("time_ms", scale="1e6 / n"), values=Scale("time per boid and step (ns)", log=10),
        words=_neighbours, note=lambda rows: "\n".join([rows["precision"].iloc[0], *_over_peers(rows)]),
        prepare=_shown, **PANELS,
    ),
    Chart(
        "rungs_{precision}", "{state}: a step of {best} is {value} times as fast as the rung before",
        points=Points("time_ms", pairs=BEFORE, compared="name"),
        values=Scale("gain of a step", log=10, line=1),
        words={rung: f"{rung}\nover {before}" for before, rung in pairwise(RUNGS)},
        note=_notes("precision", "left_out"), prepare=partial(_compared, rungs), **PANELS,
    ),
    Chart(
        "memory_{precision}", "{state}: {best} is {value} times as fast as in shuffled memory",
        points=Points("time_ms", pairs=_in_shuffled, compared="name"),
        values=Scale("gain of a step over shuffled memory", log=10, line=1),
        note=_notes("precision", "young", "left_out"), prepare=partial(_compared, memory_gains), **PANELS,
    ),
    Chart(
        "misses_{precision}", "{state}: {best} misses {value} of its reads",
        points=Points("1 - hit_ratio"), values=Scale("predicted misses, share of all reads", log=10),
        note="reads of the force kernel, cache `{model}` of {cache_particles} particles; {precision}",
        prepare=_with_hits, **PANELS,
    ),
)  # fmt: skip


def answer(table: pd.DataFrame) -> Answer:
    """Compare the fastest searches with the naive one, or with shuffled memory, and name the best order."""
    rows = headline(table, "n", "start", "rules", "precision")
    first = rows.iloc[0]
    at = rows[rows["age"] == first["age"]]
    baseline = [name for name in RUNGS[:2] if name in set(at["name"])][:1]
    worth = memory_gains(at[~at["search"].isin(PEERS.values())])
    more = ""
    if not worth.empty:
        row = largest_gain(worth)
        more = f"the best memory order is {pair_in_words(row, quoted(row['name']), quoted(row['over']))}"
    where = f"At {first['n']:,} boids of {first['age']:,} steps ({first['precision']})"
    return compared(rows, "name", baseline, "age", where, lambda age: f"age {age:,}", more=more)


if __name__ == "__main__":
    main(Config, measure, VIEWS, quick=QUICK, answer=answer, quick_limit=FITS_CACHE, minutes=MINUTES)
