"""How fast is a step of a flock by every search, in every memory order, and does that change with its age?

Boids follow the rules of [flock] at its density. A flock starts with uniform positions or in clusters, and
is aged once a run by the search `coherent`. Every search in every memory order then starts each sample from
the same aged state: a step that is not timed, and `steps` timed steps, in turns and in random order. Searches
that do not sort the boids are measured in shuffled memory, in memory that was just sorted along an ordering
(fresh), and in memory that was sorted `order_age` steps before (aged). Beside the times are the structure of
the flock and the predicted hits of the reads.

Before anything is timed, every search is compared with another one: after one step in float32, after ten in
float64. Claim B1 of [flock] is judged by four rungs, each over the one before: `naive`, `scattered` in
shuffled memory, `coherent` and `tiles`. `coherent` is measured twice: the difference of the two is noise.

`--peers numpy` measures the same rules in vectorised numpy with scipy's cKDTree in the same rounds.
"""

from collections.abc import Callable, Iterator
from dataclasses import dataclass, field, fields
from functools import lru_cache, partial
from itertools import pairwise
from pathlib import Path
from typing import Any, ClassVar, NamedTuple

import matplotlib.pyplot as plt
import numpy as np
import pandas as pd
from matplotlib.ticker import LogLocator, NullLocator

import md
import sfc
from experiments.analysis.baselines import again, is_again
from experiments.core import Axis, TimedSettings, figures, main, save_table, statistics, style, values
from experiments.measurement.correctness import check_flight
from experiments.measurement.hardware_caches import working_set
from experiments.measurement.rounds import Entry, take_rounds
from experiments.measurement.step_times import whole_steps
from experiments.peers.numpy_flock import numpy_flock_step
from experiments.prediction.cache_models import MODELS, check_models, predicted
from experiments.prediction.flocks import MAX_SPEED, RULES, STARTS, Aging, Flock, places, structure
from md.backend import Backend
from md.scenes.flock import SOURCE_DT
from md.simulation import PRECISIONS

SHUFFLED, OWN = "shuffled", "its own"  # memory orders: at random, and that of a search that sorts
RUNGS = ("naive", "scattered, shuffled", "coherent", "tiles")
WORDS = {statistics.FASTER: "confirmed", statistics.SLOWER: "refuted"}  # of a rung, by its gain
TWICE = "coherent"
PEERS = {"numpy": "numpy and cKDTree"}  # flag -> name in tables
CHECKED_STEPS = {"float32": 1, "float64": 10}
_FLOCK = ["n", "start", "rules", "precision", "age"]
_STRUCTURE = ["neighbours_mean", "neighbours_largest", "order_parameter", "heading_correlation"]
_STRUCTURE += ["clustering"]


@dataclass(frozen=True)
class Config(TimedSettings):
    """Sweep of flocks. All searches of a case, in all memory orders, are in memory at once."""

    TOGETHER: ClassVar[tuple[str, ...]] = ("search", "ordering", "division")

    n: Axis[int] = (10_000,)
    """Boids, at the density of [flock], 1/8. Take 100000 and 1000000 on a GPU."""
    start: Axis[str] = ("uniform",)
    """uniform, clusters (of a thousand boids that fly together)."""
    rules: Axis[str] = ("source",)
    """source (those of [flock]), weak_separation (flocks form)."""
    precision: Axis[str] = ("float32",)
    """float32, float64."""
    age: Axis[int] = (0, 1000)
    """Steps since the start. Take 0, 1000 and 20000 on a GPU."""
    search: tuple[str, ...] = ("naive", "scattered", "coherent", "tiles", "linked", "verlet", "lbvh")
    """Any search of `md.search`."""
    ordering: tuple[str, ...] = (SHUFFLED, "hilbert")
    """Memory orders of the searches that do not sort the boids: shuffled, any 3D ordering of `sfc`."""
    order_age: int = 100
    """Steps since the sort of aged memory; flocks younger than that have none."""
    division: tuple[int, ...] = (0,)
    """Cells per cutoff of the searches with that parameter; 0 for cells of the cutoff, visited one by one."""
    skin: float = 1.0
    """Skin of verlet, in units of length."""
    naive_up_to: int = 20_000
    """Largest number of boids for naive, which takes time n squared."""
    predicted_up_to: int = 131_072
    """Largest number of boids whose reads are listed for the prediction of hits."""
    model: str = "lru"
    """Model of the cache of the prediction: block, lru."""
    cache: int = 1024
    """Its capacity in particles."""
    steps: int = 10
    """Steps in a sample. Take 50 on a GPU."""
    peers: list[str] = field(default_factory=list)
    """Other codes to measure in the same rounds in float64 on the CPU: numpy."""

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
        if self.peers and md.backend.get(self.backend).name != "cpu":
            raise ValueError("--peers run on the CPU, simulations on a GPU; take --backend cpu")
        if self.peers and "float64" not in values(self.precision) and isinstance(self.precision, tuple):
            raise ValueError("--peers are measured in float64; add --precision float64")


QUICK = {"n": (2000,), "age": (0, 60), "order_age": 50, "search": ("naive", "scattered", "coherent", "tiles"),
         "steps": 3, "rounds": 3, "runs": 1}  # fmt: skip


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


def _kinds(case: Config) -> list[Kind]:
    """List each search with each of its options in each memory order."""
    found = []
    for search in case.search:
        if search == "naive" and case.n > case.naive_up_to:
            continue
        kind: Any = md.search.SEARCHES[search]
        configs = {search: kind(skin=case.skin) if search == "verlet" else kind()}
        if _takes_division(search):
            configs = {
                f"{search} division {k}" if k else search: kind(division=k or None) for k in case.division
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
    return order if age is None else f"{order} fresh" if age == 0 else f"{order} aged"


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
        self._shuffled = np.random.default_rng([case.seed, 5]).permutation(case.n)

    def in_memory_of(self, kind: Kind) -> md.State:
        """Return the state in a memory order."""
        if kind.order_age is None:
            return self.state.take(self._shuffled)
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
    for kind in _kinds(case):
        entries.append(_entry(case, place, aged, kind, reference))
        if kind.name == TWICE:
            entries.append(_entry(case, place, aged, kind, reference, again(kind.name)))
    if case.precision == "float64":
        entries += [_peer(case, place, aged, reference, flag) for flag in case.peers]
    yield from take_rounds(entries, case.rounds, place, seed=case.seed, begin=begin)


def _reference(case: Config, place: Backend, aged: _Aged) -> Callable[[str], md.State]:
    """Return a function of a search: the state after the checked steps, by another search."""

    @lru_cache
    def after_steps(search: str) -> md.State:
        flock = Flock(case.n, case.start, case.rules, case.seed)
        simulation = flock.simulation(aged.state, search, place, case.precision)
        simulation.run(CHECKED_STEPS[case.precision], phases=False)
        return simulation.state

    return lambda search: after_steps("coherent" if search == "linked" else "linked")


def _entry(
    case: Config, place: Backend, aged: _Aged, kind: Kind, reference: Callable[[str], md.State],
    name: str | None = None,
) -> Entry:  # fmt: skip
    """Create a simulation, check it, and return it ready to be sampled."""
    flock = Flock(case.n, case.start, case.rules, case.seed)
    simulation = flock.simulation(aged.in_memory_of(kind), kind.config, place, case.precision)
    particles = simulation.system.particles
    start = [array.copy() for array in (particles.pos, particles.vel, particles.id)]

    def restart() -> None:
        for array, first in zip((particles.pos, particles.vel, particles.id), start, strict=True):
            array[...] = first
        simulation.search.reset()

    steps = CHECKED_STEPS[case.precision]
    simulation.run(steps, phases=False)
    what = f"search {kind.name!r} after {steps} steps"
    differ = check_flight(what, simulation.state, reference(kind.search), case.precision)
    restart()
    columns = {
        "name": name or kind.name,
        "search": again(kind.search) if name else kind.search,
        "memory": kind.memory,
        **aged.columns,
        "boids_that_differ": differ,
        **_predicted(case, kind, simulation),
        **working_set(case.n, 3, case.precision, place),
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
        found["hit_ratio"] = row["hit_ratio"]
    return found


def _peer(
    case: Config, place: Backend, aged: _Aged, reference: Callable[[str], md.State], flag: str
) -> Entry:
    """Check the same rules in numpy, and return them ready to be sampled over one step."""
    flock, state = Flock(case.n, case.start, case.rules, case.seed), aged.state
    options = {"law": flock.law, "max_speed": MAX_SPEED, "dt": SOURCE_DT}
    take = partial(numpy_flock_step, lengths=np.array(state.box.lengths), **options)
    pos, vel = state.pos, state.vel
    for _ in range(CHECKED_STEPS[case.precision]):
        pos, vel = take(pos, vel)
    what = f"{PEERS[flag]} after {CHECKED_STEPS[case.precision]} steps"
    found = md.State(pos, vel, state.box, state.id)
    differ = check_flight(what, found, reference("coherent"), case.precision)

    def sample() -> Iterator[dict]:
        pos, vel = take(state.pos, state.vel)
        with place.stopwatch() as elapsed:
            take(pos, vel)
        yield {"time_ms": elapsed[0], "sample_ms": elapsed[0]}

    columns = {"name": PEERS[flag], "search": PEERS[flag], "memory": OWN, **aged.columns}
    columns |= {"boids_that_differ": differ, **working_set(case.n, 3, case.precision, place)}
    return Entry(columns, sample, threads=1)


def draw(table: pd.DataFrame, out: Path) -> None:
    """Draw times, the rungs of B1 and the value of a memory order; write summary and verdict."""
    judged = rungs(table)
    save_table(summary(table), out, "summary")
    save_table(judged, out, "rungs")
    for line in verdict(judged):
        print(line)
    _draw_times(table, out)
    _draw_rungs(judged, out)
    _draw_memory(table, out)


def summary(table: pd.DataFrame) -> pd.DataFrame:
    """Average over runs each search in each memory order: its time, structure and gain over the peers."""
    by = [*_FLOCK, "name"]
    found = statistics.over_runs(table, by, "time_ms")
    found["ns_per_boid"] = 1e6 * statistics.bounds(found, "time_ms")["centre"] / found["n"]
    columns = [*_STRUCTURE, "partners_read", "hit_ratio", "order_age_steps"]
    columns = [column for column in columns if column in table]
    found = found.merge(table.groupby(by, sort=False)[columns].mean().reset_index(), on=by)
    for flag, name in PEERS.items():
        gains = statistics.gains(table, _FLOCK, "name", name)
        if not gains.empty:
            found = found.merge(statistics.named(gains, flag), on=by, how="left")
    return found[~found["name"].map(is_again)]


def rungs(table: pd.DataFrame) -> pd.DataFrame:
    """Compute the gain of each rung of B1 over the one before, in each flock.

    Args:
        table: with columns `run`, `round` and `name`.
    """
    found = []
    for before, rung in pairwise(RUNGS):
        gains = statistics.gains(table, _FLOCK, "name", before)
        found.append(gains[gains["name"] == rung])
    return pd.concat([part for part in found if len(part)] or found[:1], ignore_index=True)


def verdict(judged: pd.DataFrame) -> list[str]:
    """Judge each rung of B1 in words: in how many flocks it is confirmed or refuted.

    Args:
        judged: rows of `rungs`.
    """
    if "difference" not in judged:
        return ["B1: no verdict, which takes several runs, or a rung that was not measured"]
    lines = []
    for (rung, before), rows in judged.groupby(["name", "over"], sort=False):
        counts = rows["difference"].map(lambda one: WORDS.get(one, one)).value_counts()
        words = " and ".join(f"{word} in {count} of {len(rows)}" for word, count in counts.items())
        low, high = rows["gain"].min(), rows["gain"].max()
        lines.append(f"B1, {rung} over {before}: {words} flocks, gain {low:.3g} to {high:.3g}")
    return lines


def _with_state(table: pd.DataFrame) -> pd.DataFrame:
    """Add the column `state`: start, rules and age of a flock, for legends."""
    several = table["rules"].nunique() > 1
    names = [
        f"{start}{f', {rules}' if several else ''}, {age} steps".replace("_", " ")
        for start, rules, age in zip(table["start"], table["rules"], table["age"], strict=True)
    ]
    return table.assign(state=names)


def _dots(
    panel: plt.Axes, rows: pd.DataFrame, names: list[str], look: dict, value: str, scale: float = 1.0
) -> None:
    """Draw a row of each name, with a mark and an interval for each state of the flock."""
    ends = statistics.bounds(rows, value) * scale
    for place, state in enumerate(look["hue_order"]):
        own = rows[rows["state"] == state]
        at = ends.loc[own.index]
        aside = 0.5 * (place / max(1, len(look["hue_order"]) - 1) - 0.5) if len(look["hue_order"]) > 1 else 0
        panel.errorbar(
            at["centre"], [names.index(name) + aside for name in own["name"]], xerr=figures.error_bars(at),
            color=look["palette"][state], marker=look["markers"][state], linestyle="", markersize=4,
            capsize=2, elinewidth=0.9, label=state,
        )  # fmt: skip
    panel.set(ylim=(len(names) - 0.5, -0.5))
    panel.set_yticks(range(len(names)), names)
    panel.grid(axis="y", color="0.92", linewidth=0.6)


def _log_axis(panel: plt.Axes, rows: pd.DataFrame, value: str, scale: float, label: str) -> None:
    """Make the horizontal axis logarithmic, over all centres, with plain numbers."""
    figures.whole_centres_on_log(panel, rows, value, scale, horizontal=True)
    low, high = panel.get_xlim()
    subs = (1, 1.5, 2, 3, 5, 7) if high < 20 * low else (1, 2, 5) if high < 1000 * low else (1,)
    panel.xaxis.set_major_locator(LogLocator(subs=subs, numticks=12))
    panel.xaxis.set_major_formatter("{x:g}")
    panel.xaxis.set_minor_locator(NullLocator())
    panel.set_xlabel(label)


def _names(rows: pd.DataFrame) -> list[str]:
    """List the searches in memory orders, those of one search together."""
    found = list(rows["name"].unique())
    first = list(dict.fromkeys(name.split(",")[0] for name in found))
    return sorted(found, key=lambda name: first.index(name.split(",")[0]))


def _by_precision(table: pd.DataFrame) -> Iterator[tuple[str, pd.DataFrame, dict]]:
    """Yield each precision, its rows with the column `state`, and the look of the states."""
    shown = _with_state(table)
    look = style.lines_in_turn(list(shown["state"].unique()), "state")
    for precision, rows in shown.groupby("precision", sort=False):
        yield str(precision), rows, look


def _panels(rows: pd.DataFrame, names: list[str], width: float = 3.0) -> tuple[plt.Figure, list]:
    """Make a figure with a panel for each number of boids, and select its rows."""
    parts = list(rows.groupby("n"))
    titles = [f"{n:,} boids" for n, _ in parts]
    height = 1.6 + 0.3 * len(names)
    figure, panels = figures.panels_in_a_row(titles, width, height, margin=4.0, sharey=True)
    return figure, [(panel, part) for panel, (_, part) in zip(panels, parts, strict=True)]


def _draw_times(table: pd.DataFrame, out: Path) -> None:
    """Draw the time of a step of every search in every memory order."""
    found = statistics.over_runs(table[~table["name"].map(is_again)], [*_FLOCK, "name"], "time_ms")
    for precision, rows, look in _by_precision(found):
        names = _names(rows)
        figure, panels = _panels(rows, names)
        for panel, part in panels:
            each = 1e6 / part["n"].iloc[0]
            _dots(panel, part, names, look, "time_ms", each)
            _log_axis(panel, part, "time_ms", each, "time per boid and step (ns)")
        figures.legend_outside(panels[-1][0], "flock", [panel for panel, _ in panels])
        title = f"{precision}; {statistics.caption(rows)}\n{_structures(table)}{_over_peers(table)}"
        figures.titled(figure, title, out, f"times_{precision}")


def _structures(table: pd.DataFrame) -> str:
    """Describe the flocks in a line each, for a title."""
    shown = _with_state(table[table["n"] == table["n"].max()])
    lines = []
    for state, rows in shown.groupby("state", sort=False):
        mean = rows[_STRUCTURE].mean()
        lines.append(
            f"{state}: {mean['neighbours_mean']:.0f} neighbours, at most {mean['neighbours_largest']:.0f}; "
            f"order parameter {mean['order_parameter']:.2f}"
        )
    return "\n".join(lines)


def _over_peers(table: pd.DataFrame) -> str:
    """Describe the gain of the fastest search over each peer in each flock, for a title."""
    lines = []
    for name in PEERS.values():
        gains = statistics.gains(table, _FLOCK, "name", name)
        if gains.empty:
            continue
        shown = _with_state(gains.join(statistics.bounds(gains, "gain")))
        for (n, state), rows in shown.groupby(["n", "state"], sort=False):
            best = rows.iloc[int(rows["centre"].to_numpy().argmax())]
            times = f"{best['centre']:.3g} ({best['low']:.3g} to {best['high']:.3g}) times as fast as {name}"
            lines.append(f"\n{n:,} boids, {state}: {best['name']} {times}")
    return "".join(lines)


def _draw_rungs(judged: pd.DataFrame, out: Path) -> None:
    """Draw the gain of each rung of B1 over the one before."""
    if judged.empty:
        return
    named = judged.assign(
        name=[f"{rung}\nover {over}" for rung, over in zip(judged["name"], judged["over"], strict=True)]
    )
    for precision, rows, look in _by_precision(named):
        names = _names(rows)
        figure, panels = _panels(rows, names)
        for panel, part in panels:
            _dots(panel, part, names, look, "gain")
            figures.noise_band(panel, part, horizontal=True)
            figures.gain_axis(panel, part, horizontal=True)
            panel.set(xlabel="gain of a step")
        figures.legend_outside(panels[-1][0], "flock", [panel for panel, _ in panels])
        lines = "\n".join(verdict(judged[judged["precision"] == precision]))
        title = f"{precision}; {statistics.caption(rows)}; grey: noise ({TWICE} measured twice)\n{lines}"
        figures.titled(figure, title, out, f"rungs_{precision}")


def _draw_memory(table: pd.DataFrame, out: Path) -> None:
    """Draw the gain of sorted memory over shuffled memory, and the predicted hits."""
    gains = [
        statistics.gains(part, _FLOCK, "name", f"{name}, {SHUFFLED}").assign(of=name)
        for name, part in table.assign(of=table["name"].str.split(",").str[0]).groupby("of", sort=False)
    ]
    gains = [part for part in gains if len(part)]
    if not gains:
        return
    for precision, rows, look in _by_precision(pd.concat(gains, ignore_index=True)):
        names = _names(rows)
        figure, panels = _panels(rows, names)
        for panel, part in panels:
            _dots(panel, part, names, look, "gain")
            figures.noise_band(panel, part, horizontal=True)
            figures.gain_axis(panel, part, horizontal=True)
            panel.set(xlabel="gain of a step over shuffled memory")
        figures.legend_outside(panels[-1][0], "flock", [panel for panel, _ in panels])
        figures.titled(figure, f"{precision}; {statistics.caption(rows)}", out, f"memory_{precision}")
    if "hit_ratio" not in table or table["hit_ratio"].isna().all():
        return
    known = table[table["hit_ratio"].notna() & ~table["name"].map(is_again)]
    hits = known.assign(misses=1 - known["hit_ratio"])
    for precision, rows, look in _by_precision(statistics.over_runs(hits, [*_FLOCK, "name"], "misses")):
        names = _names(rows)
        figure, panels = _panels(rows, names)
        for panel, part in panels:
            _dots(panel, part, names, look, "misses")
            panel.set(xlim=(0, None), xlabel="predicted misses, share of all reads")
        figures.legend_outside(panels[-1][0], "flock", [panel for panel, _ in panels])
        title = f"reads of a force kernel in a model of a cache; {statistics.caption(rows)}"
        figures.titled(figure, title, out, f"misses_{precision}")


if __name__ == "__main__":
    main(Config, measure, draw, quick=QUICK)
