"""Which model of a cache predicts what a chip does: the ranking of the memory orders, and their hit ratios?

For every memory order of a gas three things are compared: the time of the force phase just after a reorder;
the counts of hardware counters in it (Nsight Compute on a device; on a CPU perf if it counts, else
cachegrind's simulation); and the predictions of the models of `sfc.cache`, `block`, `lru` and
`set_associative`, for the same reads with the sizes of the chip's caches. The models include only the reads
of partners' positions, one particle after the other. A chip also reads heads, links and velocities, and many
particles at a time. `L1` is the share of loads that the first level serves, `chip` the share that needs no
memory outside the chip. Rank correlations over the orders show which model predicts the ranking, mean
differences which model predicts the ratio. There is a row for each run.

All orders are timed once a round, in random order. The first of them is timed twice (`shuffled again`): the
difference of the two is noise. A sample starts with a reorder, if the order has one, and a step that is not
timed, so that an order is at most `age_steps` old; the age of lattice memory is the number of steps since the
gas was made. Before that the forces are compared with those of another search. Predictions and counters
follow after all rounds and belong to no round. `kernel` is the time of the force kernel alone that Nsight
Compute reports, one order after the other.
"""

import sys
from collections.abc import Iterator
from concurrent.futures import ThreadPoolExecutor
from dataclasses import dataclass
from functools import lru_cache, partial
from typing import Any, ClassVar

import numpy as np
import pandas as pd
import scipy  # its `stats` is loaded when first used

import md
import sfc
from experiments.core import Axis, TimedSettings, main
from experiments.core.terminal import FITS_CACHE
from experiments.measurement.correctness import check_forces
from experiments.measurement.hardware_caches import Cache, caches
from experiments.measurement.hardware_counters import COUNTERS, MOST, CannotCountError, counted, counter_for
from experiments.measurement.profiler_target import Job, gas, ordered
from experiments.measurement.rounds import take_rounds
from experiments.measurement.step_times import entry_of, phases_of
from experiments.prediction.cache_models import MODELS
from experiments.results import gains
from experiments.results.answers import Answer, headline, percent, rounded, rows_of
from experiments.results.baselines import BASELINES, LATTICE, again, is_again, original
from experiments.results.charts import DOTS, FIRST, GAINS, Chart, Points, Scale, Summary, Table
from md.simulation import PRECISIONS
from sfc import cache

NO_CURVE = (*BASELINES, "random")
# Orders that are equal in a cube, or similar, to the order that represents them here.
RELATIVES = {
    "hilbert": ("pancake", "butz", "compact", "gilbert", "moore", "skilling"),
    "morton": ("gray",),
    "row": ("zigzag",),
}
_LEVEL_NAMES = {"L1": "first level", "chip": "last level"}
LEVELS = tuple(_LEVEL_NAMES)
_KEYS = ["n", "filling_fraction", "search", "precision"]
_BY = [*_KEYS, "what", "ordering", "model", "level"]
RESAMPLES = 2000
LEAST_SPREAD = 0.005  # of predicted hit ratios, in a level that is drawn
COUNTED = "counted"  # the rows of counters, and their name among the models


@dataclass(frozen=True)
class Config(TimedSettings):
    """Sweep of gases; each is measured in every memory order."""

    TOGETHER: ClassVar[tuple[str, ...]] = ("ordering", "model")

    n: Axis[int] = (2**20,)
    """Number of particles."""
    filling_fraction: Axis[float] = (0.2,)
    """Volume of the spheres over that of the box, up to 0.5."""
    search: Axis[str] = ("linked",)
    """Neighbour searches, of those that do not move the particles."""
    precision: Axis[str] = ("float32",)
    """Precision of positions, velocities and forces."""
    ordering: tuple[str, ...] = (*BASELINES, *sfc.orderings(3))
    """Memory orders: `shuffled`, `lattice`, and 3D orderings of `sfc`. A gas for each, and a second one for
    the first, are in memory at once."""
    model: tuple[str, ...] = MODELS
    """Models of the cache; block is that of [thesis]."""
    steps: int = 4
    """Number of steps in a sample; their force phases are timed."""
    counter: str = "auto"
    """Program that counts: nsight on a device; perf or cachegrind (up to 131,072 particles) on a CPU; auto
    for the one that is installed."""

    def __post_init__(self):
        super().__post_init__()
        known = {
            "ordering": (*BASELINES, *sfc.orderings(3)),
            "search": ("linked", "scattered"),
            "precision": PRECISIONS,
            "model": MODELS,
            "counter": (*COUNTERS, "auto", "none"),
        }
        self.check_known(known)
        runs_on = {"nsight": "cuda", "perf": "cpu", "cachegrind": "cpu"}.get(self.counter, self.backend)
        if self.backend not in ("auto", runs_on):
            raise ValueError(f"--counter {self.counter} beside --backend {self.backend}; allowed: {runs_on}")
        self.check_above_zero({"filling_fraction": 0.5})
        self.check_least({"n": 64, "steps": 1})
        if self.counter == "cachegrind":
            self.check("n", high=MOST, unit="particles", remedy="--counter cachegrind is slow")
        self.check_particles(len(self.ordering) + 1)


QUICK = {"n": (2**15,), "runs": 1, "counter": "none"}
MINUTES = 7  # CPU time of four rounds of a smaller size, extrapolated


def measure(case: Config, begin: int = 0) -> Iterator[list[dict] | dict]:
    """Yield the rounds from `begin` on, of `time`; then rows `predicted`, `kernel` and `counted`."""
    job = Job(
        case.n, case.filling_fraction, case.search, case.precision, case.backend, case.seed, case.ordering
    )
    state, backend = gas(job), md.backend.get(case.backend)
    right = ordered(job._replace(search="coherent"), state, "lattice").forces()
    entries, streams = [], {}
    for name in (*case.ordering, again(case.ordering[0])):
        sim = ordered(job, state, original(name))
        check_forces(sim, right, case.precision)
        stream = sim.accesses()  # of the second one of an order too: it is prepared as the first
        if not is_again(name):
            streams[name] = stream
        del stream
        columns = {"particles": len(sim), "ordering": name, "what": "time"}
        entries.append(entry_of(sim, columns, partial(_sample, case, sim, original(name))))
    yield from take_rounds(entries, case.rounds, backend, seed=case.seed, begin=begin)
    entries.clear()  # frees the device for the profiler
    del sim
    yield from _modelled(case, streams)
    yield from _counted(case, job)


def _sample(case: Config, sim: md.Simulation, ordering: str) -> Iterator[dict]:
    """Time the force phases of some steps, after a reorder and a step that is not timed."""
    if ordering not in BASELINES:
        sim.reorder()
    sim.run(1, phases=False)  # loads the caches again after other cases
    ms = sum(phases_of(sim, case.steps)["force"])
    age = case.steps + 1 if ordering not in BASELINES else sim.step if ordering == LATTICE else None
    yield {"age_steps": age, "time_ms": ms / case.steps, "sample_ms": ms}


def _modelled(case: Config, streams: dict[str, cache.AccessStream]) -> Iterator[dict]:
    """Yield a row for each model, level of cache and memory order, with the predicted hit ratio."""
    backend = md.backend.get(case.backend)
    levels, layout = caches(backend), backend.layout
    with ThreadPoolExecutor() as pool:
        waiting = []
        for ordering, stream in streams.items():
            common = {"particles": case.n, "ordering": ordering, "what": "predicted"}
            for model in case.model:
                work = (stream, model, levels, layout, case)
                if model == "block":  # it uses all cores itself
                    yield from (common | row for row in _predicted(*work))
                else:
                    waiting.append((common, pool.submit(_predicted, *work)))
        for common, found in waiting:
            yield from (common | row for row in found.result())


def _predicted(
    stream: cache.AccessStream, model: str, levels: tuple[Cache, ...], layout: str, case: Config
) -> list[dict]:
    """Predict the hit ratios of the first and of the last level by one model."""
    itemsize, rows = np.dtype(case.precision).itemsize, []
    width = itemsize * (4 if layout == "aos4" else 3)
    distances = cache.lru(stream) if model == "lru" else None
    loads: Any = cache.addresses(stream, layout, 3, itemsize, case.n) if model == "set_associative" else None
    for name, level in zip(LEVELS, (levels[0], levels[-1]), strict=True):
        if model == "block":
            found = cache.block(stream, level.bytes // width)
        elif distances is not None:
            found = distances.hits(level.bytes // width)
        else:
            found = cache.set_associative(loads, level.usable, level.line, level.ways)
        place = {"model": model, "level": name, "cache_bytes": level.bytes}
        rows.append(place | {"hit_ratio": found.ratio})
    return rows


def _counted(case: Config, job: Job) -> Iterator[dict]:
    """Yield rows of counters; print a message if nothing can be counted."""
    counter = counter_for(case.backend, case.n) if case.counter == "auto" else case.counter
    try:
        if counter in (None, "none"):
            raise CannotCountError("--counter none" if counter else "no ncu, perf or valgrind that can")
        for row in counted(counter, job):
            common = {"what": "counted", "counter": counter, "ordering": row["ordering"], "particles": case.n}
            bytes_read = row.get("dram_read")
            if "time_us" in row:
                yield common | {"what": "kernel", "time_ms": row["time_us"] / 1e3}
            loads = {"loads_per_particle": row["l1_loads"] / case.n}
            yield common | loads | {"level": "L1", "hit_ratio": row["l1_hits"] / row["l1_loads"]}
            dram = {"dram_bytes_per_particle": None if bytes_read is None else bytes_read / case.n}
            yield common | {"level": "chip", "hit_ratio": row["on_chip"]} | dram
    except CannotCountError as error:
        if case.counter in COUNTERS:
            allowed = "allowed: one that works here, or none"
            raise ValueError(f"--counter {counter}: {error}; {allowed}") from error
        print(f"nothing is counted: {error}", file=sys.stderr)


def times(rows: pd.DataFrame) -> pd.DataFrame:
    """Return the rows that time the forces: of the kernel alone if there are any, else of the phase."""
    return rows[rows["what"] == ("kernel" if (rows["what"] == "kernel").any() else "time")]


def correlations(table: pd.DataFrame) -> pd.DataFrame:
    """Correlate each model, and the counters, with times: among all orders, curves and scans, families.

    Each model is also correlated with the counted ratios; the counters are the model `counted`.

    In each run: Spearman's rank correlation of a predicted hit ratio with the time (best: -1) or with the
    counted ratio (best: 1); its 95 % interval by resampling the orders; the mean and the largest absolute
    difference of the ratios; and the mean difference of the counted ratios from their own mean, which a model
    that distinguishes orders must be below. Orders are few and related, so the intervals describe these
    orders and no others. `families` has one order of each group of related orders.

    Args:
        table: with the column `run`.
    """
    keys, table = [*_KEYS, "run"], table[~table["ordering"].map(is_again)]
    found = []
    for key, rows in table.groupby(keys, sort=False):
        ratios = rows[rows["what"].isin(["predicted", COUNTED])]
        ratios = ratios.assign(model=ratios["model"].where(ratios["what"] == "predicted", COUNTED))
        of_times = times(rows).groupby("ordering")["time_ms"].median()
        against: dict[tuple[str, Any], pd.Series] = {("time", ""): of_times}
        for level, part in rows[rows["what"] == "counted"].groupby("level"):
            against["counted", level] = part.groupby("ordering")["hit_ratio"].median()
        for (model, of_cache), part in ratios.groupby(["model", "level"], sort=False):
            ratio = part.groupby("ordering", sort=False)["hit_ratio"].median()
            for (what, of_level), other in against.items():
                if what == "counted" and (of_level != of_cache or model == COUNTED):
                    continue
                for among, names in _among(list(ratio.index)).items():
                    pair = ratio[names].to_numpy(), other.reindex(names).to_numpy()
                    place = {"model": model, "level": of_cache, "against": what, "among": among}
                    row = dict(zip(keys, key, strict=True)) | place | {"orders": len(names)}
                    off = _differences(*pair) if what == "counted" else {}
                    found.append(row | _spearman(*map(tuple, pair)) | off)
    columns = [*keys, "model", "level", "against", "among", "orders", "rank_correlation"]
    return pd.DataFrame(found, columns=None if found else columns)


def _gases(table: pd.DataFrame) -> pd.DataFrame:
    """Return a table with rounds; repeats of older runs have different gases."""
    return gains.with_rounds(table, _BY, runs="repeat")


def _among(names: list[str]) -> dict[str, list[str]]:
    curves = [name for name in names if name not in NO_CURVE]
    akin = {other for first, others in RELATIVES.items() if first in names for other in others}
    return {"all": names, "curves": curves, "families": [name for name in curves if name not in akin]}


def _differences(predicted: np.ndarray, seen: np.ndarray) -> dict[str, float]:
    off = np.abs(predicted - seen)
    return {
        "mean_difference": off.mean(),
        "largest_difference": off.max(),
        "mean_difference_from_mean": np.abs(seen - seen.mean()).mean(),
    }


@lru_cache(maxsize=2**12)  # tables, figures and the answer have the same correlations
def _spearman(*pair: tuple[float, ...]) -> dict[str, float]:
    """Compute the correlation and its bootstrap interval, without resamples of a single value."""
    first, second = map(np.asarray, pair)
    if len(first) < 4 or np.ptp(first) == 0 or np.ptp(second) == 0:
        return {"rank_correlation": np.nan, "from": np.nan, "to": np.nan}
    chosen = np.random.default_rng(0).integers(len(first), size=(RESAMPLES, len(first)))
    vary = (np.ptp(first[chosen], axis=1) > 0) & (np.ptp(second[chosen], axis=1) > 0)
    chosen = np.vstack([np.arange(len(first)), chosen[vary]])  # the first is the sample itself
    ranks = (scipy.stats.rankdata(values[chosen], axis=1) for values in (first, second))
    x, y = (each - each.mean(axis=1, keepdims=True) for each in ranks)
    found = (x * y).sum(axis=1) / np.sqrt((x**2).sum(axis=1) * (y**2).sum(axis=1))
    low, high = np.percentile(found[1:], [2.5, 97.5])
    return {"rank_correlation": found[0], "from": low, "to": high}


def _ratios(table: pd.DataFrame) -> pd.DataFrame:
    """Take medians over runs: hit ratios of each memory order, predicted and counted, and kernel times."""
    rows = table[table["what"] != "time"]
    keys = [*_KEYS, *(name for name in ("what", "ordering", "model", "level") if name in rows)]
    values = ("time_ms", "hit_ratio", "loads_per_particle", "dram_bytes_per_particle")
    columns = [name for name in values if name in rows and rows[name].notna().any()]
    return rows.groupby(keys, sort=False, dropna=False)[columns].median().reset_index()


def _shown(table: pd.DataFrame) -> pd.DataFrame:
    """Return rows of times and misses of each gas, see `_shown_of`."""
    ranks = correlations(_gases(table))
    gases = gains.with_rounds(table, _BY).groupby(_KEYS, sort=False)
    parts = [_shown_of(rows, ranks[(ranks[_KEYS] == [*key]).all(axis=1)]) for key, rows in gases]
    return pd.concat(parts, ignore_index=True)


def _shown_of(rows: pd.DataFrame, ranks: pd.DataFrame) -> pd.DataFrame:
    """Return times and misses of a gas: curves and scans first, the fastest at the top.

    Times are left out beside misses if those of all curves are within their ranges, and so is a level of
    cache for which every model predicts nearly the same for all orders.

    Args:
        rows: of one gas, or of several runs of it.
        ranks: rows of `correlations` of these.

    Returns:
        Columns `ordering`; `of`, time or a model with its rank correlation at each level that is shown;
        `time_ms` or `level` and `misses`; `is_curve`; `part`, that was timed; `stem`, of the file; `note`.
    """
    timed, notes, kinds = times(rows), [], set(rows["what"])
    timed = timed[~timed["ordering"].map(is_again)].drop(columns=["warning", "level"], errors="ignore")
    if timed["round"].isna().any():  # of a kernel: the profiler's times, one after the other
        timed = timed.assign(round=timed.groupby(["ordering", "run"]).cumcount())
    found = gains.over_runs(timed, ["ordering"], "time_ms").set_index("ordering")
    ends = gains.bounds(found, "time_ms").sort_values("centre")
    order = sorted(ends.index, key=lambda name: name in NO_CURVE)
    curves = ends[~ends.index.isin(NO_CURVE)]
    known = rows[rows["what"].isin([COUNTED, "predicted"])]
    known = known.assign(of=known["model"].fillna(COUNTED), misses=1 - known["hit_ratio"])
    misses = known.groupby(["level", "of", "ordering"])["misses"].median().reset_index()
    spread = misses[misses["of"] != COUNTED].groupby(["level", "of"])["misses"].agg(np.ptp)
    largest = spread.groupby("level").max()
    levels = [level for level in LEVELS if largest.get(level, 0.0) >= LEAST_SPREAD]
    if levels and len(curves) > 1 and curves["high"].min() >= curves["low"].max():
        timed = timed.iloc[:0]
        notes += ["times not drawn: those of all curves and scans are within their ranges"]
    less = f"not drawn: the predictions differ by less than {LEAST_SPREAD:g}"
    notes += [f"{_LEVEL_NAMES[level]} {less}" for level in LEVELS if level in largest and level not in levels]
    against = ranks.query("against == 'time' and among == 'curves'")
    rank = against.groupby(["model", "level"])["rank_correlation"].median()
    parts = [timed.assign(of="time")]
    for of in (COUNTED, *MODELS):
        numbers = [rank.get((of, level), np.nan) for level in levels]
        shown = ", ".join(rounded(one) if np.isfinite(one) else "none" for one in numbers)
        own = misses[(misses["of"] == of) & misses["level"].isin(levels) & (misses["misses"] > 0)]
        parts.append(own.assign(of=f"{of.replace('_', '-')}: {shown}"))
    found = pd.concat(parts).assign(**{name: rows[name].iloc[0] for name in _KEYS})
    found = found.sort_values("ordering", key=lambda names: names.map(order.index), kind="stable")
    stem, part = COUNTED if COUNTED in kinds else "predicted", "kernel" if "kernel" in kinds else "phase"
    notes = ["misses: median over runs"] * (rows["run"].nunique() > 1) + notes
    is_curve = ~found["ordering"].isin(NO_CURVE)
    return found.assign(is_curve=is_curve, stem=stem, part=part, note="\n".join(notes))


def _note(rows: pd.DataFrame) -> str:
    """Describe the gas, and name what is not drawn."""
    gas = "{n:,} particles, {filling_fraction:.0%} filled, {search}, {precision}"
    return "\n".join(filter(None, [gas.format(**rows.iloc[0]), rows["note"].iloc[0]]))


VIEWS = (
    Table("correlations", lambda table: correlations(_gases(table))), Table("hit_ratios", _ratios),
    Summary(tuple(_KEYS), "ordering", BASELINES, ages=True,
            prepare=lambda table: table[table["what"] == "time"]),
    Chart(
        "{stem}", "Of curves and scans {best} takes the least, {value} ms, {worst} {of_worst} ms",
        DOTS, (Points("time_ms", "of == 'time' and is_curve", values=Scale("force {part} (ms)")),
               Points("time_ms", "of == 'time'", values=Scale("force {part},\nall orders (ms)", log=10)),
               *(Points("misses", f"level == '{level}'", FIRST,
                        values=Scale(f"misses of the {name}\n(share of loads)", log=10))
                 for level, name in _LEVEL_NAMES.items())),
        Scale("", "ordering"), GAINS, "of",
        "rank correlation of hits\nwith time, curves and\nscans (best: -1), by level",
        files=tuple(_KEYS), note=_note, prepare=_shown,
    ),
)  # fmt: skip


def answer(table: pd.DataFrame) -> Answer:
    """Say whether a model ranks the orders like the times, and which comes nearest."""
    found = correlations(headline(_gases(table), *_KEYS))
    known = found.query("against == 'time' and among == 'curves' and model != @COUNTED")
    known = known.dropna(subset="rank_correlation")
    if known.empty:
        sentence = "No model is compared with the times: a rank correlation takes four curves or scans."
        return Answer(pd.DataFrame(), sentence)
    ends = known.groupby(["model", "level"])[["rank_correlation", "from", "to"]].median()
    ends = ends.sort_values("rank_correlation").reset_index()
    cells = {"rank correlation of hits with time (best: -1)": _correlation}
    best = ends.iloc[0].to_dict()
    orders, name = f"{known['orders'].max()} curves and scans", f"{best['model']} in {best['level']}"
    models = known["model"].nunique()
    tried = f"None of the {models} models tried, each of one reader at a time, ranks"
    if models == 1:
        tried = "The one model tried, of one reader at a time, does not rank"
    ranks = f"{tried} {orders} by hit ratio like the times: the nearest, {name}, has"
    if best["to"] < 0:
        ranks = f"{name} ranks {orders} like the times, with"
    sentence = (
        f"{ranks} a rank correlation of {_correlation(best)} between hits and times, where -1 is perfect"
    )
    counted = found[(found["against"] == "counted") & (found["among"] == "all")]
    if not counted.empty:
        off = counted.groupby(["model", "level"])["mean_difference"].median()
        nearest: Any = off.idxmin()
        sentence += f"; nearest to a counted ratio is {' in '.join(nearest)}, off by {percent(off.min())}"
    return Answer(rows_of(ends, ["model", "level"], cells), f"{sentence}.")


def _correlation(row: dict) -> str:
    """Format a rank correlation with its interval over the orders."""
    return f"{rounded(row['rank_correlation'])} ({rounded(row['from'])} to {rounded(row['to'])})"


if __name__ == "__main__":
    main(Config, measure, VIEWS, quick=QUICK, answer=answer, quick_limit=FITS_CACHE, minutes=MINUTES)
