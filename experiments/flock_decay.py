"""How long does a memory order last in a flock, and how long in a gas?

Boids and the particles of `md.scenes.shared_gas` are sorted once along an ordering of their cells. In every
round they start from the same state, and the time of a step is measured at growing ages of the order,
without another sort. The same particles in shuffled memory are timed at the same ages, in the same rounds:
particles that gather take more time a step in any memory order. What is left of an order at an age is the
gain over shuffled memory of that age, as a part of the gain at the first age.

The same is predicted for smaller systems of the same density: hits of the reads of the first search in a
model of a cache, after as many steps. Their particles also give the root mean square displacement since the
sort, over which all is drawn a second time: what moves away from its neighbours in memory loses its order,
however fast it moves to and fro.
"""

from collections.abc import Iterator
from dataclasses import dataclass
from typing import Any, ClassVar

import numpy as np
import pandas as pd

import md
import sfc
from experiments.core import Axis, TimedSettings, main, save_table
from experiments.core.terminal import FITS_CACHE
from experiments.measurement.correctness import check_flight, check_pairs
from experiments.measurement.hardware_caches import working_set
from experiments.measurement.rounds import Entry, take_rounds
from experiments.measurement.step_times import whole_steps
from experiments.prediction.cache_models import check_models, predicted
from experiments.prediction.flocks import RULES, Aging, Flock, places, structure
from experiments.prediction.half_life import crossing, with_range
from experiments.results.answers import Answer, estimate, headline, percent, rounded, rows_of
from experiments.results.charts import LINES, Chart, Points, Scale
from md.backend import Backend
from md.simulation import PRECISIONS

SYSTEMS = ("flock", "gas")
FILLING = 0.2  # of the gas
LEAST_GAIN = 0.1  # at the first age, as a part of the cost; of a smaller one noise would be left
SEARCHES: dict[str, str | md.search.SearchConfig] = {
    "linked": "linked",
    "scattered": "scattered",
    "tree": md.search.Reflexive(data="unsorted"),
}
CHECKED_STEPS = {"flock": 1, "gas": 50}  # after which a search is compared with another
CASE = ["n", "ordering", "precision", "rules"]
LINE = ["system", "search"]


@dataclass(frozen=True)
class Config(TimedSettings):
    """Sweep of systems with an aging memory order."""

    TOGETHER: ClassVar[tuple[str, ...]] = ("system", "search", "model", "cache")

    n: Axis[int] = (2**16,)
    """Number of particles. Take 1000000 on a GPU."""
    system: tuple[str, ...] = SYSTEMS
    """Systems: a flock (at density 1/8), a gas (20 % filled)."""
    rules: Axis[str] = ("source",)
    """Rules of the flock: source (those of [flock]), weak_separation (separation 0.02 up to a distance of 1.5
    instead of 0.1 up to 3: flocks form)."""
    search: tuple[str, ...] = ("linked", "scattered")
    """Neighbour searches that do not move the particles; tree is rebuilt at every step."""
    ordering: Axis[str] = ("hilbert",)
    """Memory orders: 3D orderings of `sfc`."""
    precision: Axis[str] = ("float32",)
    """Precision of positions, velocities and forces."""
    age: int = 100
    """Number of steps of the flock before the sort, in which it leaves its random start."""
    last: int = 640
    """Largest age of the order, in steps."""
    ages: int = 9
    """Number of ages after the first at which steps are timed; fewer if they would be less than `steps`
    apart."""
    steps: int = 5
    """Number of timed steps at each age. Take 20 on a GPU."""
    predicted_n: int = 2**14
    """Number of particles of the predictions, more than any capacity of a cache."""
    model: tuple[str, ...] = ("block", "lru")
    """Models of the cache; block is that of [thesis]."""
    cache: tuple[int, ...] = (320, 1024, 4096)
    """Capacities of a cache in particles. The figure shows the model and capacity at which the system that
    gains least has the largest predicted gain."""

    def __post_init__(self):
        super().__post_init__()
        self.check_known({
            "system": SYSTEMS, "rules": tuple(RULES), "search": tuple(SEARCHES),
            "ordering": sfc.orderings(3), "precision": PRECISIONS,
        })  # fmt: skip
        check_models(self.model, self.cache)
        self.check_least({
            "n": 1000, "age": 0, "last": 1, "ages": 1, "steps": 1, "predicted_n": 1000,
        })  # fmt: skip
        if self.cache and max(self.cache) >= self.predicted_n:
            raise ValueError(
                f"--cache {max(self.cache)} beside --predicted-n {self.predicted_n}: all fit in that cache; "
                "allowed: capacities below --predicted-n"
            )
        self.check_particles(2 * len(self.system) * len(self.search) + 2)


QUICK = {"n": (4000,), "predicted_n": 2000, "search": ("linked",), "last": 80, "ages": 5,
         "cache": (64, 1024), "rounds": 3, "runs": 1}  # fmt: skip
MINUTES = 75  # CPU time of one run of an eighth of the particles, extrapolated


def measure(case: Config, begin: int = 0) -> Iterator[list[dict] | dict]:
    """Yield the rounds from `begin` on (rows `sorted` and `shuffled`), and then the predictions."""
    place, entries = md.backend.get(case.backend), []
    for system in case.system:
        state = _start(case, system, case.n)
        shuffled = np.random.default_rng([case.seed, 7]).permutation(len(state))
        memories = {"sorted": places(state, case.ordering, _cutoff(case, system), case.seed)}
        memories |= {"shuffled": shuffled}
        other = _simulation(case, system, state, "coherent", place)
        other.run(CHECKED_STEPS[system], phases=False)
        right = other.state
        del other
        for search in case.search:
            for what, rows in memories.items():
                aged = _simulation(case, system, state.take(rows), search, place)
                entries.append(_entry(case, aged, right, system, search, what))
    yield from take_rounds(entries, case.rounds, place, seed=case.seed, begin=begin)
    for system in case.system:
        yield from _predictions(case, system, place)


def _start(case: Config, system: str, n: int) -> md.State:
    if system == "gas":
        return md.scenes.shared_gas(n, FILLING, seed=case.seed, backend=case.backend)
    return Aging(Flock(n, rules=case.rules, seed=case.seed), case.backend, case.precision).at(case.age)


def _cutoff(case: Config, system: str) -> float:
    return 1.0 if system == "gas" else RULES[case.rules].cutoff


def _simulation(case: Config, system: str, state: md.State, search: str, place: Backend) -> md.Simulation:
    chosen = md.search.search(SEARCHES.get(search, search))
    if system == "flock":
        return Flock(len(state), rules=case.rules).simulation(state, chosen, place, case.precision)
    options: dict[str, Any] = {"backend": place, "precision": case.precision}
    options |= {"dt": md.scenes.SHARED_DT, "fused": chosen.capabilities.fusable}
    return md.Simulation(state, md.scenes.SHARED_LAW, search=chosen, **options)


def _ages(case: Config) -> list[int]:
    """Return the numbers of steps before each sample, in growing distances of at least a sample."""
    ages, each = [0], case.steps
    for age in np.rint(np.geomspace(each, max(case.last, each), case.ages)).astype(int).tolist():
        if age >= ages[-1] + each:
            ages.append(age)
    return ages


def _middle(case: Config, age: int) -> int:
    """Return the age of the order in the middle step of a sample, which follows a step that is not timed."""
    return 1 + age + (case.steps - 1) // 2


def _entry(
    case: Config, simulation: md.Simulation, right: md.State, system: str, search: str, what: str
) -> Entry:
    """Check a simulation, and return it ready to be sampled from its first state on.

    Args:
        case: settings.
        simulation: at its start.
        right: state after the checked steps by another search.
        system: "flock" or "gas".
        search: its name in the table.
        what: memory of the simulation, as in the table: "sorted" or "shuffled".
    """
    particles = simulation.system.particles
    start = [array.copy() for array in (particles.pos, particles.vel, particles.id)]
    simulation.run(CHECKED_STEPS[system], phases=False)
    if system == "flock":
        crowd = structure(right, _cutoff(case, system)).neighbours_mean
        check_flight(f"search {search!r}", simulation.state, right, case.precision, crowd)
    else:
        check_pairs(simulation, search, "coherent", case.precision)
    columns: dict[str, Any] = {"system": system, "search": search, "what": what}
    columns |= working_set(len(simulation), 3, case.precision, simulation.backend)

    def sample() -> Iterator[dict]:
        for array, first in zip((particles.pos, particles.vel, particles.id), start, strict=True):
            array[...] = first
        simulation.search.reset()
        simulation.run(1, phases=False)  # loads the caches again after other cases
        taken = 0  # timed steps and those between them
        for age in _ages(case):
            simulation.run(age - taken, phases=False)
            ms = whole_steps(simulation, case.steps)
            taken = age + case.steps
            yield {"age": _middle(case, age), "time_ms": ms / case.steps, "sample_ms": ms}

    return Entry(columns, sample)


def _predictions(case: Config, system: str, place: Backend) -> Iterator[dict]:
    """Yield rows `predicted`: hits of the first search at each age of the order, and in shuffled memory."""
    state = _start(case, system, case.predicted_n)
    state = state.take(places(state, case.ordering, _cutoff(case, system), case.seed))
    generator, search = np.random.default_rng([case.seed, 3]), case.search[0]
    simulation, start = _simulation(case, system, state, search, place), state.by_id()
    for age in [_middle(case, age) for age in _ages(case)]:
        simulation.run(age - simulation.step, phases=False)
        now = simulation.state
        other = _simulation(case, system, now.take(generator.permutation(len(now))), search, place)
        common = {"system": system, "search": search, "what": "predicted", "particles": len(now), "age": age}
        common |= {"displacement_cutoffs": displacement(now, start) / _cutoff(case, system)}
        shuffled = predicted(other.accesses(), case.model, case.cache)
        found = predicted(simulation.accesses(), case.model, case.cache)
        for row, base in zip(found, shuffled, strict=True):
            yield common | row | {"hit_ratio_shuffled": base["hit_ratio"]}


def displacement(state: md.State, start: md.State) -> float:
    """Return the root mean square displacement since a start, to the nearest image.

    Args:
        state: the particles.
        start: the same particles earlier, in order of their ids.
    """
    lengths = np.array(start.box.lengths)
    moved = state.by_id().pos - start.pos
    moved -= np.round(moved / lengths) * lengths
    return float(np.sqrt((moved**2).sum(axis=1).mean()))


def left(table: pd.DataFrame) -> pd.DataFrame:
    """Compute the part of the gain of an order that is left at each age, measured and predicted.

    Args:
        table: with columns `run`, `round`, `what` and `age`.

    Returns:
        Columns of a case, `system`, `search`, `kind` ("measured" or "predicted", with the model and its
        capacity), `repeat` (the run), `age`, `displacement_cutoffs` (of a measured row by interpolation over
        the ages), `gain` over shuffled memory of the same age (of times, or of misses), `left`: 1 at the
        first age, 0 for shuffled memory; NaN if there was no gain at the first age, or shuffled memory has no
        misses.
    """
    table = table.rename(columns={"run": "repeat"})
    own = [*CASE, *LINE, "repeat"]
    at = [*own, "round", "age"]
    times, guess = (table[(table["what"] == "predicted") == is_guess] for is_guess in (False, True))
    base = times[times["what"] == "shuffled"].groupby(at)["time_ms"].median().rename("base")
    aged = times[times["what"] == "sorted"].merge(base.reset_index(), on=at)
    aged = aged.assign(kind="measured", cost=aged["time_ms"] / aged["base"])
    names = [f"{m}, {c:.0f} particles" for m, c in zip(guess["model"], guess["cache_particles"], strict=True)]
    shuffled = 1 - guess["hit_ratio_shuffled"]
    misses = (1 - guess["hit_ratio"]) / shuffled.where(shuffled > 0)
    both = pd.concat([aged, guess.assign(kind=names, cost=misses)], ignore_index=True)
    found = both.groupby([*own, "kind", "age"], sort=False)["cost"].median().reset_index()
    found = found.sort_values("age", kind="stable", ignore_index=True)
    first = found.groupby([*own, "kind"], sort=False)["cost"].transform(lambda cost: cost.iloc[0])
    found["gain"] = 1 / found["cost"].where(found["cost"] > 0)
    found["left"] = ((1 - found["cost"]) / (1 - first)).where((1 - first) > LEAST_GAIN)
    each = [*CASE, "system", "repeat"]
    moved = dict(list(guess.groupby([*each, "age"])["displacement_cutoffs"].first().groupby(each)))
    for key, rows in found.groupby(each, sort=False):
        known = key in moved  # an interrupted run has no predictions
        moves = (
            np.interp(rows["age"], moved[key].index.get_level_values("age"), moved[key]) if known else np.nan
        )
        found.loc[rows.index, "displacement_cutoffs"] = moves
    return found


def half_ages(found: pd.DataFrame) -> pd.DataFrame:
    """List for each case the gain at the first age, and the age at which half of that gain is left.

    Args:
        found: rows of `left`.

    Returns:
        A row for each system, search and kind. `half_age_crossing_steps` is the age at which half of the
        gain is left: median, lowest and highest over runs, and `runs_at_half`, how many reach it within
        `age_last`. It is NaN without a gain, or where more than half is left. `left_last` has its range over
        runs too. All else is a median over runs. One run has no range.
    """
    rows = []
    for key, part in found.groupby([*CASE, *LINE, "kind"], sort=False):
        middle = part.groupby("age")[["left", "gain", "displacement_cutoffs"]].median().reset_index()
        runs = [run for _, run in part.groupby("repeat")]
        halves = np.array([crossing(run["age"].to_numpy(), run["left"].to_numpy()) for run in runs])
        first, end = middle.iloc[0], middle.iloc[-1]
        last, several = part.loc[part["age"] == end["age"], "left"], len(runs) > 1
        half = with_range("half_age_crossing_steps", halves)
        at_half = half["half_age_crossing_steps"]
        half |= {} if several else {f"half_age_crossing_steps_{name}": np.nan for name in ("low", "high")}
        moved = np.interp(at_half, middle["age"], middle["displacement_cutoffs"])
        rows.append({
            **dict(zip([*CASE, *LINE, "kind"], key, strict=True)),
            "runs": len(runs),
            "age_first": middle["age"].iloc[0],
            "gain_first": first["gain"],
            "age_last": middle["age"].iloc[-1],
            "gain_last": end["gain"],
            "left_last": end["left"],
            "left_last_low": last.min() if several else np.nan,
            "left_last_high": last.max() if several else np.nan,
            "displacement_cutoffs_last": end["displacement_cutoffs"],
            "runs_at_half": int(np.isfinite(halves).sum()),
            **half,
            "half_age_crossing_displacement_cutoffs": moved if np.isfinite(at_half) else np.nan,
        })  # fmt: skip
    return pd.DataFrame(rows)


def _lasting(table: pd.DataFrame) -> pd.DataFrame:
    """Select of what is left the lines to draw; the displacement of an age is the median over runs."""
    found = left(table)
    parts = [rows[rows["kind"].isin(drawn(rows))] for _, rows in found.groupby(CASE, sort=False)]
    rows = pd.concat(parts, ignore_index=True)
    moved = rows.groupby([*CASE, *LINE, "kind", "age"])["displacement_cutoffs"].transform("median")
    line = [f"{system} {kind}" for system, kind in zip(rows["system"], rows["kind"], strict=True)]
    return rows.assign(displacement_cutoffs=moved, line=line, spread_over="runs")


def drawn(rows: pd.DataFrame) -> list[str]:
    """Select the kinds to draw: measured, and the prediction in which the system that gains least gains most.

    Args:
        rows: of `left`.
    """
    guess = rows[rows["kind"] != "measured"]
    first = guess[guess["age"] == guess["age"].min()].groupby(["kind", "system"], sort=False)["gain"].median()
    gains = first.groupby("kind", sort=False).min().dropna()
    return ["measured"] if gains.empty else ["measured", str(gains.idxmax())]


def halves_in_words(rows: pd.DataFrame) -> str:
    """Describe for each search what is left at the end and when half was, or that there was no gain.

    Args:
        rows: of `left`, of one case.
    """
    lines = [f"{rows['ordering'].iloc[0]}, {rows['precision'].iloc[0]}"]
    for kind in [kind for kind in rows["kind"].unique() if kind != "measured"]:
        lines[0] += f"; {kind} predicts the largest gain"
    for search, halves in half_ages(rows[rows["kind"] == "measured"]).groupby("search", sort=False):
        parts = [
            f"{row['system']} {row['left_last']:.0%} left at {row['age_last']:,.0f} steps"
            + (f" (half is left {_half(row)})" if _half(row) else "")
            if np.isfinite(row["left_last"])
            else f"{row['system']} no gain at {row['age_first']:,.0f} steps"
            for row in halves.to_dict("records")
        ]
        lines.append(f"{search}: {'; '.join(parts)}")
    return "\n".join(lines)


_AGE = Scale("steps after the sort", "age", log=10)
_MOVED = Scale("displacement (cutoffs)", "displacement_cutoffs", log=10)
VIEWS = (
    Chart(
        "left", "Of the gain of an order of {n} particles, {value} is left after {age} steps: {best}", LINES,
        (Points("left"), Points("left", at=_MOVED)), _AGE, Scale("left of the gain over shuffled", line=0.0),
        "line", panels="search", heading="{search}", files=tuple(CASE), note=halves_in_words, gaps=False,
        prepare=_lasting,
    ),
    lambda table, out: save_table(half_ages(left(table)), out, "half_ages"),
)  # fmt: skip


def answer(table: pd.DataFrame) -> Answer:
    """Say what is left of the gain of an order in each system, as measured in the first search."""
    found = half_ages(headline(left(table), *CASE))
    found = found.sort_values("kind", key=lambda kinds: kinds != "measured", kind="stable")
    cells = {
        "gain at first": lambda row: rounded(row["gain_first"]),
        "left at the end": lambda row: f"{percent(row['left_last'])} after {row['age_last']:,.0f} steps",
        "half is left": lambda row: _half(row) or "not reached",
    }
    systems = [rows.to_dict("records")[0] for _, rows in found.groupby("system", sort=False)]
    parts = [f"in the {row['system']} ({row['search']}, {row['kind']}) {_lasts(row)}" for row in systems]
    where = (
        f"The gain of {found['ordering'].iloc[0]} over shuffled memory, {found['n'].iloc[0]:,} particles: "
    )
    shown = found.groupby("system", sort=False).head(2)
    return Answer(rows_of(shown, [*LINE, "kind"], cells, most=4), f"{where}{'; '.join(parts)}.")


def _half(row: dict) -> str:
    """Format the age at which half of a gain is left, with its range over runs; empty if not reached."""
    name = "half_age_crossing_steps"
    half = estimate(row, name).replace(" to -)", " to later)")
    return f"after {half} steps" if np.isfinite(row[name]) else ""


def _lasts(row: dict) -> str:
    """Say how long a gain lasts."""
    if not np.isfinite(row["left_last"]):
        return "there is none to lose"
    last = f"{percent(row['left_last'])} is left after {row['age_last']:,.0f} steps"
    return f"half is left {_half(row)}, {last}" if _half(row) else last


if __name__ == "__main__":
    main(Config, measure, VIEWS, quick=QUICK, answer=answer, quick_limit=FITS_CACHE, minutes=MINUTES)
