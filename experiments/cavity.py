"""How fast is a step of the lid-driven cavity, by every strategy, in every layout and memory order?

A step of [cavity] sweeps 50 times over a grid, so that it is bound by memory, or by the caches. Strategies
are measured with an array for each field (arrays) and with an array of the source's records (structs), with
the points stored row by row or along an ordering. Each sample starts from the same smooth fields, takes a
step that is not timed and then timed ones, and ends with a check: all fields are finite and equal to those of
the strategy `numpy`, to the last bit, or within 1e-12 (float32: 1e-5) of the largest value where a strategy
states a tolerance. Samples on a device have more steps, and are compared with `blocked`, which is compiled
and equals `numpy` to the last bit.

Gains are those of the ways of computing that [cavity] compares, at 41 and 1000 points a side there. Beside
the times are the bytes that a step moves if each sweep passes once over memory, as a bandwidth, the bandwidth
of a copy, and the predicted hits of the reads of a sweep. `serial` on arrays, and on a device `cuda` on
arrays, are measured twice: the difference of the two is noise.
"""

import sys
from collections.abc import Callable, Iterator, Mapping
from dataclasses import dataclass
from functools import lru_cache, partial
from typing import Any, ClassVar

import numpy as np
import pandas as pd

import md
import sfc
from experiments.core import Axis, TimedSettings, main, values
from experiments.core.terminal import FITS_CACHE
from experiments.measurement.correctness import check_error
from experiments.measurement.memory_bandwidth import copy_bandwidth
from experiments.measurement.rounds import Entry, take_rounds
from experiments.prediction.cache_models import MODELS, check_models, predicted
from experiments.results import gains
from experiments.results.answers import Comparison, headline
from experiments.results.baselines import again
from experiments.results.charts import DOTS, GIVEN, Chart, Points, Preparation, Scale, Summary, Table
from md.cavity import STRATEGIES, Cavity
from md.cavity.boundary import apply

CAVITY = ["n", "precision"]  # columns that identify a cavity
ROW = "row"
TWICE = ("serial, arrays", "cuda, arrays")  # measured twice: the difference is noise of the CPU, the device
DEVICE = ("cuda", "tiled")  # strategies of `_OVER` that run on a device
_OVER: dict[str, str | None] = {  # way of computing -> the way that [cavity] compares it with
    "numpy": None,
    "serial, structs": "numpy",
    "threads, structs": "serial, structs",
    "cuda, structs": "serial, structs",
    "tiled": "cuda, arrays",
    **{f"{name}, arrays": f"{name}, structs" for name in ("serial", "threads", "cuda")},
}
_SOURCE = {  # way of computing, points a side -> gain that [cavity] measured on its machine
    ("serial, structs", 41): 2.5,
    ("threads, structs", 1000): 1.09,
    ("cuda, structs", 1000): 10.0,
}
LAYOUTS = ("arrays", "structs")
PRECISIONS = ("float64", "float32")
TOLERANCE = {"float64": 1e-12, "float32": 1e-5}  # of a device, in units of the largest value of each field
REFERENCES = {"cpu": "numpy", "cuda": "blocked"}  # by the backend of a sample; the fields of both are equal
PASSES_OF_A_SWEEP = 3  # over memory: pressure and right-hand side are read, a pressure is written
PASSES_OF_A_STEP = 12  # besides: tentative velocity 4, right-hand side 3, correction 5
BANDWIDTH = "GB_per_s"  # column
SWEEPING = tuple(
    name for name, kind in STRATEGIES.items() if "collocated" in kind.grids and "jacobi" in kind.pressures
)
_BASELINES = ("serial, structs", "serial, arrays", "cuda, structs", "cuda, arrays")  # the first is taken
POINT_BYTES = 28  # least bytes of a point in memory


@dataclass(frozen=True)
class Config(TimedSettings):
    """Sweep of cavities. All strategies of a case, in all layouts and orders, are in memory at once."""

    TOGETHER: ClassVar[tuple[str, ...]] = ("strategy", "layout", "order")

    n: Axis[int] = (41, 1000)
    """Number of points a side, boundary included. [cavity] has 41 and 1000."""
    precision: Axis[str] = ("float64",)
    """Precision of the fields."""
    strategy: tuple[str, ...] = ("numpy", "serial", "threads", "blocked")
    """Strategies of `md.cavity` that sweep on the source's grid; those of CUDA need a device."""
    layout: tuple[str, ...] = LAYOUTS
    """Layouts of the fields in memory; a strategy is measured in those that it supports."""
    order: tuple[str, ...] = (ROW,)
    """Orders of the points in memory: 2D orderings of `sfc` that fill the grid, for the strategies that take
    them."""
    viscosity: float = 0.1
    """Kinematic viscosity; the time step is the largest stable one times 0.8."""
    sweeps: int = 50
    """Number of sweeps over the pressure in a step."""
    updates: int = 4_000_000
    """Number of points times steps of a sample on the CPU: the larger the grid, the fewer steps, at least
    one."""
    device_steps: int = 500
    """Number of steps of a sample on a device, where a step is too short to be timed alone."""
    predicted_up_to: int = 300
    """Largest number of points a side for which the hits of a sweep are predicted."""
    model: str = "lru"
    """Model of the cache of the prediction."""
    cache: int = 1024
    """Capacity of that cache in points; of set_associative a multiple of 128."""

    def __post_init__(self):
        super().__post_init__()
        self.check_known({
            "precision": PRECISIONS, "strategy": SWEEPING, "layout": LAYOUTS,
            "order": sfc.orderings(2), "model": MODELS,
        })  # fmt: skip
        check_models((self.model,), (self.cache,))
        self.check_least({"n": 3, "sweeps": 1, "updates": 1, "device_steps": 1, "predicted_up_to": 0})
        self.check("viscosity", above=0)
        on_device = [name for name in self.strategy if "cpu" not in STRATEGIES[name].backends]
        if on_device and self.backend == "cpu":
            raise ValueError(f"--strategy {' '.join(on_device)} beside --backend cpu; allowed: auto, cuda")
        if ROW not in self.order:
            raise ValueError(f"--order {' '.join(self.order)}; allowed: {ROW}, and others beside it")
        if not any(set(self.layout) & set(STRATEGIES[name].layouts) for name in self.strategy):
            raise ValueError(
                f"--layout {' '.join(self.layout)} beside --strategy {' '.join(self.strategy)}; allowed: a "
                "layout that one of these strategies supports; add arrays"
            )
        for n in values(self.n):
            kinds = [kind for kind, *_ in _supported(self.strategy, self.layout, self.order)]
            self.check_memory(
                f"--n {n}, {len(kinds)} at once", float(n) ** 2 * len(kinds), "points", POINT_BYTES
            )


QUICK = {"n": (41, 65), "updates": 40_000, "device_steps": 20, "rounds": 3, "runs": 1}
MINUTES = 2  # CPU time of one case and one round, extrapolated


def _supported(
    strategies: tuple[str, ...], layouts: tuple[str, ...], orders: tuple[str, ...]
) -> Iterator[tuple[str, str, str, str]]:
    """Yield name, strategy, layout and order of each way of computing that a strategy supports."""
    for name in strategies:
        kind = STRATEGIES[name]
        for layout in (one for one in layouts if one in kind.layouts):
            for order in orders if kind.any_order else [ROW]:
                words = [name] + [layout] * (len(kind.layouts) > 1) + [order] * (order != ROW)
                yield ", ".join(words), name, layout, order


def _backend_of(case: Config, strategy: str) -> md.backend.Backend:
    """Return the backend of the case if the strategy runs on it; else the strategy's own."""
    place, known = md.backend.get(case.backend), STRATEGIES[strategy].backends
    return place if place.name in known else md.backend.get(known[0])


def _ways(case: Config) -> Iterator[tuple[str, str, str, str]]:
    """Yield the ways of computing that take the shape of the case; say which do not."""
    for way in _supported(case.strategy, case.layout, case.order):
        strategy = STRATEGIES[way[1]]
        if allowed := strategy.allowed_shapes((case.n, case.n), _backend_of(case, way[1])):
            print(f"{way[0]} is left out at {case.n} points a side; allowed: {allowed}", file=sys.stderr)
        else:
            yield way


def _smooth(cavity: Cavity) -> dict[str, np.ndarray]:
    """Return fields of a vortex without zeros inside: a step on them costs what it costs later in a run.

    They have the boundary values of the cavity.
    """
    x = np.linspace(0, 1, cavity.scheme.shape[0])
    bump, slope = np.sin(np.pi * x) ** 2, np.pi * np.sin(2 * np.pi * x)
    fields = {
        "u": 0.1 * np.outer(slope, bump),
        "v": -0.1 * np.outer(bump, slope),
        "p": 0.01 * np.outer(np.cos(np.pi * x / 2), 2 + np.cos(np.pi * x)),
    }
    for name, field in list(fields.items()):
        fields[name] = field.astype(cavity.scheme.dtype)
        apply(fields[name], name, cavity.scheme.conditions)
    return fields


def _cavity(case: Config, strategy: str, layout: str = "arrays", order: str = ROW) -> Cavity:
    """Make the cavity of a case, with the fields of `_smooth`."""
    cavity = Cavity(
        (case.n, case.n), viscosity=case.viscosity, sweeps=case.sweeps, strategy=strategy, layout=layout,
        order=order, precision=case.precision, backend=_backend_of(case, strategy),
    )  # fmt: skip
    cavity.set_fields(**_smooth(cavity))
    return cavity


def measure(case: Config, begin: int = 0) -> Iterator[list[dict]]:
    """Yield the rounds from `begin` on: the mean time of a sample's steps."""
    place = md.backend.get(case.backend)
    steps = {"cpu": max(1, case.updates // case.n**2), "cuda": case.device_steps}

    @lru_cache
    def expected(backend: str) -> dict[str, np.ndarray]:
        reference = _cavity(case, REFERENCES[backend])
        reference.run(1 + steps[backend])
        return _fields(reference)

    ways = list(_ways(case))
    used = {(backend := _backend_of(case, strategy)).name: backend for _, strategy, *_ in ways}
    copied = {name: copy_bandwidth(backend) for name, backend in used.items()}
    entries = []
    for name, strategy, layout, order in ways:
        for one in (name, again(name)) if name in TWICE else (name,):
            cavity = _cavity(case, strategy, layout, order)
            where = cavity.backend.name
            columns = {
                "name": one, "strategy": strategy, "layout": layout, "order": order, "steps": steps[where],
                "copy_GB_per_s": copied[where], **_predicted(case, cavity),
            }  # fmt: skip
            entries.append(_entry(case, cavity, columns, partial(expected, where)))
    yield from take_rounds(entries, case.rounds, place, seed=case.seed, begin=begin)


def _entry(case: Config, cavity: Cavity, columns: dict[str, Any], expected: Callable[[], dict]) -> Entry:
    """Return a way of computing, ready to be sampled."""
    start, steps = _smooth(cavity), columns["steps"]
    if cavity.backend.name == "cuda":
        cavity.run(steps)  # a run has short launches until so many steps were taken

    def sample() -> Iterator[dict]:
        cavity.set_fields(**start)
        cavity.run(1)  # loads the caches again after other cases
        with cavity.backend.stopwatch() as elapsed:
            cavity.run(steps)
        _check(columns["name"], case, cavity, expected())
        ms = elapsed[0] / steps
        passes = PASSES_OF_A_SWEEP * case.sweeps + PASSES_OF_A_STEP
        moved = passes * case.n**2 * cavity.scheme.dtype.itemsize
        yield {"time_ms": ms, "sample_ms": elapsed[0], BANDWIDTH: moved / ms / 1e6}

    single = columns["strategy"] in ("numpy", "serial")
    return Entry(columns, sample, threads=1 if single else None, on_device=cavity.backend.name == "cuda")


def _fields(cavity: Cavity) -> dict[str, np.ndarray]:
    """Return all fields by name."""
    return {"u": cavity.u, "v": cavity.v, "p": cavity.p}


def _check(name: str, case: Config, cavity: Cavity, expected: dict[str, np.ndarray]) -> None:
    """Compare all fields with the reference of its backend.

    Raises:
        WrongResultError: they differ by more than the tolerance, or are not finite.
    """
    allowed = TOLERANCE[case.precision] if cavity.strategy.tolerance else 0.0
    for field, found in _fields(cavity).items():
        wanted = expected[field]
        error = float(np.abs(found - wanted).max() / np.abs(wanted).max())
        check_error(
            f"{field} of {name} differs from that of the reference", error, allowed, " of its largest value"
        )


def _predicted(case: Config, cavity: Cavity) -> dict[str, Any]:
    """Return the columns of the reads of a sweep, and of their hits in a cache."""
    if case.n > case.predicted_up_to:
        return {}
    rows = predicted(cavity.accesses(), (case.model,), (case.cache,))
    return {name: row[name] for row in rows for name in ("model", "cache_particles", "hit_ratio")}


def gains_of_source(table: pd.DataFrame) -> pd.DataFrame:
    """Compute the gain of each way of computing over the way that [cavity] compares it with.

    Args:
        table: with columns `run`, `round` and `name`.

    Returns:
        Rows of `gains.gains_over` with the column `source_gain` (NaN where the source gives none).
    """
    found = _gains_over(table, _OVER)
    at = zip(found["name"], found["n"], strict=True)
    return found.assign(source_gain=[_SOURCE.get(key, np.nan) for key in at])


def order_gains(table: pd.DataFrame) -> pd.DataFrame:
    """Compute the gain of each memory order over rows, for each strategy in each layout.

    Args:
        table: with columns `run`, `round`, `name`, `strategy`, `layout` and `order`.
    """
    turned = table[table["order"] != ROW].drop_duplicates("name")
    pairs = zip(turned["name"], turned["order"], strict=True)
    return _gains_over(table, {name: name.removesuffix(f", {order}") for name, order in pairs})


def _gains_over(table: pd.DataFrame, over: Mapping[str, str | None]) -> pd.DataFrame:
    """Compute gains, with the noise of the device, or of the CPU if one of the two ways runs there."""
    found = []
    for other, on_device in zip(TWICE, (True, False), strict=True):
        own = {name: base for name, base in over.items() if on_device == _is_on_device(name, base)}
        found.append(gains.gains_over(table[table["name"] != again(other)], CAVITY, "name", own))
    return pd.concat([part for part in found if len(part)] or found[:1], ignore_index=True)


def _is_on_device(*names: str | None) -> bool:
    return all(name.split(", ")[0] in DEVICE for name in names if name)


def _beside_source(table: pd.DataFrame) -> pd.DataFrame:
    """Name the pairs of `gains_of_source`, and add a row for each gain that the source has."""
    found = gains_of_source(table)
    found = found.assign(pair=found["name"] + " over " + found["over"], measured=found["precision"], hits="")
    there = found[found["source_gain"].notna()].drop_duplicates(["n", "pair"])
    columns: Any = {str(name): there["source_gain"] for name in found if str(name).startswith("gain")}
    there = there.assign(**columns, measured="[cavity]")
    return pd.concat([found, there], ignore_index=True)


def _bandwidths(table: pd.DataFrame) -> str:
    """Describe the largest bandwidth of each size beside that of a copy."""
    best = _SUMMARY.table(table).sort_values("share_of_copy").groupby("n").last()
    lines = [
        f"{n} x {n}: {row['name']} {row[BANDWIDTH]:,.0f} GB/s, if each sweep read and wrote memory; a copy: "
        f"{row['copy_GB_per_s']:,.0f} GB/s"
        for n, row in best.iterrows()
    ]
    return "\n".join(lines)


def _with_hits(table: pd.DataFrame) -> pd.DataFrame:
    """Describe the predicted hits of each order beside its gains."""
    found = order_gains(table)
    if "hit_ratio" not in table or not table["hit_ratio"].notna().any():
        return found.assign(hits="")
    known = table[table["hit_ratio"].notna()]
    model, cache = known["model"].iloc[0], known["cache_particles"].iloc[0]
    lines = [f"predicted hits of a sweep ({model}, {cache:.0f} points):"]
    for n, rows in known.drop_duplicates(["n", "order"]).groupby("n", sort=False):
        pairs = zip(rows["order"], rows["hit_ratio"], strict=True)
        lines.append(f"{n} x {n}: " + ", ".join(f"{order} {value:.3f}" for order, value in pairs))
    return found.assign(hits="\n".join(lines))


_SUMMARY = Summary(
    tuple(CAVITY), "name", more={name: "mean" for name in (BANDWIDTH, "copy_GB_per_s", "hit_ratio")}
    | {"share_of_copy": f"{BANDWIDTH} / copy_GB_per_s"},
)  # fmt: skip
_SIZE = "{n} x {n} points"


def _chart_of_gains(name: str, names: str, series: str, title: str, prepare: Preparation) -> Chart:
    """Return a chart of the gains of a prepared table."""
    of = "the gain of {worst} is {of_worst}, of {best} {value}"
    return Chart(
        name, f"At {{n}} points a side, {{{series}}}, {of}", DOTS, Points("gain", statistic=GIVEN),
        Scale("", names), Scale(title, log=10, line=1), series, "precision", "n", _SIZE,
        note=lambda rows: rows["hits"].iloc[0], prepare=prepare,
    )  # fmt: skip


VIEWS = (
    Chart(
        "times",
        "At {n} points a side, {precision}, a step takes {value} ms ({best}), {of_worst} ms ({worst})", DOTS,
        Points("time_ms"), Scale("", "name"), Scale("time of a step (ms)", log=10), "precision", "precision",
        "n", _SIZE, note=_bandwidths,
    ),
    _chart_of_gains("gains", "pair", "measured", "gain of a step", _beside_source),
    _chart_of_gains("orders", "name", "precision", "gain of a step over rows", _with_hits),
    _SUMMARY,
    Table("gains", gains_of_source),
    Table("orders", order_gains),
)  # fmt: skip


def _baseline(rows: pd.DataFrame) -> list[str]:
    """Return the first baseline of the largest cavity; the others are cases."""
    measured = set(rows.loc[rows["n"] == rows["n"].iloc[0], "name"])
    return [name for name in _BASELINES if name in measured][:1]


answer = Comparison(
    "name", _baseline, "n", "At {n} points a side ({precision})", heading="n {:,}".format,
    prepare=lambda table: headline(table, "precision").sort_values("n", ascending=False, kind="stable"),
)  # fmt: skip


if __name__ == "__main__":
    main(Config, measure, VIEWS, quick=QUICK, answer=answer, quick_limit=FITS_CACHE, minutes=MINUTES)
