"""An order good for reads can be bad for writes: which, and is it foreseen?

The same points lie in several memory orders. A gather reads the nearest points of each; a scatter adds the
value of each point to its cell, as particle-in-cell codes deposit charge. Points that lie together in memory
read from the same cache lines, but they also add to the same cell, and then each addition waits for the one
before: on a CPU to load, add and store, on a GPU for the atomic operations of a warp. `conflicts` is the
share of points that add to a cell to which another one of the same 32 in a row has added, the lanes of a
warp. All orders of a case are sampled once a round, in random order; shuffled memory, over which gains are,
twice. Before, each result is compared with numpy's. On the CPU one thread works. Beside each time stands
what the model of memory foresees for a machine (`sfc.cache`, `sfc.cache.core`), which need not be this one.
"""

from collections.abc import Callable, Iterator, Mapping
from dataclasses import dataclass
from functools import lru_cache
from typing import Any, ClassVar

import numpy as np
import pandas as pd

import md
from experiments.core import Axis, TimedSettings, main, values
from experiments.core.terminal import FITS_CACHE
from experiments.forecasts.measured import index_kernel
from experiments.forecasts.on_cpu import foresee_work, index_work, repeats_of, time_of
from experiments.forecasts.predicted import fitted_for, index_stream
from experiments.measurement.hardware_caches import working_set
from experiments.measurement.rounds import Entry, take_rounds
from experiments.prediction.index_cases import KINDS, MOST_READS, index_case, points_in_order
from experiments.results import gains
from experiments.results.answers import MOST, Answer, gain_in_words, grid, headline, listed, one_run, rounded
from experiments.results.baselines import SHUFFLED, again, is_again
from experiments.results.charts import DOTS, HOLLOW, LINES, Chart, Layer, Points, Scale, Summary
from md.backend import Backend
from md.simulation import PRECISIONS
from sfc.cache import Machine
from sfc.cache.core import Processor
from sfc.cache.forecast import foresee
from sfc.cache.loads import LANES
from sfc.cache.machine import KNOWN as GPUS

READS, WRITES = "gather", "scatter"
AUTO = "auto"
CPU = "epyc_genoa"  # that auto names
POINT_BYTES = 24  # of its coordinates
MEASURED, FORESEEN = "measured", "foreseen"


@dataclass(frozen=True)
class Config(TimedSettings):
    """Sweep of points."""

    TOGETHER: ClassVar[tuple[str, ...]] = ("ordering",)

    kind: Axis[str] = (READS, WRITES)
    """Kernels: gather reads, scatter writes, spmv is a sparse matrix times a vector."""
    n: Axis[int] = (2**20, 2**22)
    """Number of points, at least 64."""
    reads: Axis[int] = (8,)
    """Nearest points that each reads, or points of a cell on average; up to 256, and fewer than points."""
    precision: Axis[str] = ("float32",)
    """Precision of what is read and added."""
    ordering: tuple[str, ...] = (
        SHUFFLED, "lattice", "hilbert", "morton", "peano", "strided", "tiled_strided", "str", "window 256",
    )  # fmt: skip
    """Memory orders: lattice (points of a lattice, row after row), curves of `sfc`, strided, tiled_strided,
    str, or 'window W' for Hilbert's with each W points in a row shuffled among themselves. Shuffled is always
    measured."""
    machine: str = AUTO
    """Machine that times are foreseen for: epyc_genoa on the CPU, h100 or h200 on a GPU, or a file that
    experiments.machine wrote; auto is epyc_genoa, or the GPU that is there, else h100."""

    def __post_init__(self):
        super().__post_init__()
        self.check_known({"kind": KINDS, "precision": PRECISIONS})
        self.check_least({"n": 64})
        most = min(MOST_READS, min(values(self.n), default=64) - 1)
        self.check("reads", low=1, high=most, remedy="each point reads others")
        each = POINT_BYTES + len(self.ordering) * (8 + 8 * self.highest("reads"))
        self.check_memory(f"--n {self.highest('n')}", self.highest("n"), "points", int(each))
        for name in self.ordering:
            points_in_order(64, name)  # raises for an unknown one
        if self.machine != AUTO and self.backend != AUTO:
            _machine_of(self.machine, self.backend)


def _machine_of(name: str, backend: str) -> Machine | Processor:
    """Return the machine of a name, a chip for the backend "cuda" and a CPU for "cpu"."""
    return Processor.read(name) if backend == "cpu" else Machine.read(name)


QUICK = {"n": (2**14,), "ordering": (SHUFFLED, "lattice", "hilbert", "window 256"), "runs": 1, "rounds": 3}
MINUTES = 6


def measure(case: Config, begin: int = 0) -> Iterator[list[dict]]:
    """Yield the rounds from `begin` on, with a row for each memory order."""
    backend = md.backend.get(case.backend)
    orders = (SHUFFLED, again(SHUFFLED), *(name for name in case.ordering if name != SHUFFLED))
    entries = [_entry(case, name, backend) for name in orders]
    yield from take_rounds(entries, case.rounds, backend, seed=case.seed, begin=begin)


def _entry(case: Config, name: str, backend: Backend) -> Entry:
    """Check the kernel of a memory order, and return it ready to be timed."""
    order = SHUFFLED if is_again(name) else name
    found = _index(case, order)
    time = (_on_cpu if backend.name == "cpu" else _on_gpu)(case, found, backend)

    def sample() -> Iterator[dict]:
        taken = time()
        yield {"time_ms": taken, "sample_ms": taken}

    machine = case.machine if case.machine != AUTO else _here(backend)
    columns = {"ordering": name, "machine": machine, "foreseen_ms": _foreseen_ms(case, order, machine)}
    columns |= {"conflicts": conflicts(found) if case.kind == WRITES else np.nan}
    held = working_set(case.n, 3, case.precision, backend) | {"working_set_MB": 1e-6 * _bytes(case, found)}
    return Entry(columns | held, sample, threads=1)


@lru_cache(maxsize=1)  # the same is measured twice
def _index(case: Config, order: str) -> Any:
    """Return the index or the matrix of a case in a memory order."""
    return index_case(case.kind, case.n, case.reads, order, case.seed)


def _here(backend: Backend) -> str:
    """Name the machine for which there are forecasts: the present GPU if it is one of them."""
    if backend.name == "cpu":
        return CPU
    device = str(backend.describe()["device"]).lower()
    return next((name for name in GPUS if name in device), GPUS[0])


def _on_cpu(case: Config, found: Any, _: Backend) -> Callable[[], float]:
    """Check a kernel on the CPU, and return a function that times it, in ms."""
    work = index_work(case.kind, found, case.precision, case.seed)
    work.run()
    work.check()
    repeats = repeats_of(work.run)
    return lambda: 1e3 * time_of(work.run, repeats)


def _on_gpu(case: Config, found: Any, device: Backend) -> Callable[[], float]:
    """Check a kernel on a device, and return a function that times it, in ms."""
    one = index_kernel(case.kind, found, case.precision, device)
    one.time(1)
    return one.sample


@lru_cache(maxsize=1)
def _foreseen_ms(case: Config, order: str, machine: str) -> float:
    """Foresee the time of a kernel in a memory order, in ms."""
    found, chip = _index(case, order), _machine_of(machine, case.backend)
    if isinstance(chip, Processor):
        work = index_work(case.kind, found, case.precision, case.seed)
        return 1e-6 * work.items * foresee_work(work, case.kind, chip).time
    stream = index_stream(case.kind, found, case.precision)
    return 1e-3 * foresee(stream, chip, fitted_for(case.kind), seed=case.seed).time


def _bytes(case: Config, found: Any) -> int:
    """Return the bytes of all arrays of a kernel."""
    size = np.dtype(case.precision).itemsize
    if case.kind == WRITES:
        return (4 + size) * case.n + size * (int(found.max()) + 1)
    entries = found.size if case.kind == READS else len(found.data)
    return (4 if case.kind == READS else 4 + size) * entries + 2 * size * case.n


def conflicts(cells: np.ndarray) -> float:
    """Return the share of points that add to a cell to which another one of the same warp has added.

    Args:
        cells: (n,) integers, cell of each point; a warp has 32 in a row.
    """
    padded = np.full(-(-len(cells) // LANES) * LANES, -1, np.int64)
    padded[: len(cells)] = cells
    padded[len(cells) :] -= np.arange(len(padded) - len(cells))  # cells of their own
    warps = np.sort(padded.reshape(-1, LANES), axis=1)
    return float((np.diff(warps, axis=1) == 0).sum() / len(cells))


def _beside(table: pd.DataFrame) -> pd.DataFrame:
    """Return the rows of a table twice, with the times measured and those foreseen; writes first."""
    times = {MEASURED: "time_ms", FORESEEN: "foreseen_ms"}
    found = pd.concat([table.assign(what=what, time=table[name]) for what, name in times.items()])
    return found.sort_values("kind", key=lambda kinds: kinds != WRITES, kind="stable", ignore_index=True)


def _note(rows: pd.DataFrame) -> str:
    """Describe the points, and the machine that times are foreseen for."""
    first = rows.iloc[0]
    return f"{first['n']:,} points, {first['precision']}; foreseen for {first['machine']}"


_OVER_SHUFFLED: dict[str, Any] = {"over": (SHUFFLED,), "compared": "ordering"}
_FIGURES: dict[str, Any] = {"panels": "kind", "lines": "reads", "heading": "{kind}, {reads} points each"}
_GAIN = Scale("gain over\n{over}", log=10, line=1)
VIEWS = (
    Chart(
        "gains", "{kind}: {best} is {value} times as fast as {over} memory, {worst} {of_worst}",
        DOTS, Points("time", **_OVER_SHUFFLED), Scale("", "ordering"), _GAIN, "what",
        files=("n", "precision"), note=_note, prepare=_beside, **_FIGURES,
    ),
    Chart(
        "sizes", "{kind} of {n} points: {best} is {value} times as fast as {over} memory",
        LINES, Points("time_ms", **_OVER_SHUFFLED), Scale("points", "n", log=2), _GAIN, "ordering", "memory",
        files=("precision",), varying=("n",), without=(SHUFFLED,),
        note="large hollow markers: foreseen for {machine}",
        layers=(Layer(Points("foreseen_ms", **_OVER_SHUFFLED), HOLLOW),), **_FIGURES,
    ),
    Summary(
        ("kind", "n", "reads", "precision", "machine"), "ordering", (SHUFFLED,),
        more={"foreseen_ms": "mean", "conflicts": "mean"},
    ),
)  # fmt: skip


def _gains(rows: pd.DataFrame) -> pd.DataFrame:
    """Compute gains over shuffled memory.

    Returns:
        Rows of `gains.gains` for each kind and order, and: `centre`; `foreseen`, the gain; `verdict`, faster,
        slower or another, of one run by the range of its rounds.
    """
    found = gains.gains(rows, ["kind"], "ordering", SHUFFLED)
    if found.empty:
        return found
    times = rows.groupby(["kind", "ordering"])["foreseen_ms"].mean()
    pairs = zip(found["kind"], found["ordering"], strict=True)
    foreseen = [times[kind, SHUFFLED] / times[kind, order] for kind, order in pairs]
    ends = gains.bounds(found, "gain")
    verdict = np.select([ends["low"] > 1, ends["high"] < 1], [gains.FASTER, gains.SLOWER], "")
    return found.assign(
        centre=ends["centre"], foreseen=foreseen, verdict=found.get("difference", pd.Series(verdict))
    )


def _cell(row: Mapping) -> str:
    return f"{gain_in_words(row)}, foreseen {rounded(row['foreseen'])}"


def answer(table: pd.DataFrame) -> Answer:
    """Name the best order for reads and for writes, and those that gain for one and lose for the other."""
    rows = headline(table, "precision", "n", "reads")
    first, found = rows.iloc[0], _gains(rows)
    where = f"{first['n']:,} points, {first['reads']} each, {first['precision']}"
    if found.empty:
        return Answer(pd.DataFrame(), f"{where}: only {SHUFFLED} memory was measured; give --ordering.")
    parts = []
    for kind, of_kind in found.groupby("kind", sort=False):
        best, foremost = (
            of_kind.sort_values(name, ascending=False, kind="stable").to_dict("records")[0]
            for name in ("centre", "foreseen")
        )
        parts.append(
            f"{kind} is best in {best['ordering']} memory, {gain_in_words(best)} times as fast as {SHUFFLED} "
            f"(foreseen {foremost['ordering']}, {rounded(foremost['foreseen'])})"
        )
    cells = grid(found, "ordering", "kind", _cell, f"gain over {SHUFFLED}")
    return Answer(cells, f"{where}: {'; '.join(parts)}. {_turned(found)}{one_run(rows)}")


def _turned(found: pd.DataFrame) -> str:
    """Say which orders gain for reads and lose for writes, and whether that was foreseen."""
    sides = [found[found["kind"] == kind] for kind in (READS, WRITES)]
    if any(side.empty for side in sides):
        return f"To compare reads with writes give --kind {READS} {WRITES}."
    gained = set(sides[0].loc[sides[0]["verdict"] == gains.FASTER, "ordering"])
    writes = sides[1].sort_values("centre")
    lost = writes[writes["ordering"].isin(gained) & (writes["verdict"] == gains.SLOWER)].to_dict("records")
    if not lost:
        return "No order gains for reads and loses for writes."
    words = [
        f"{row['ordering']} ({rounded(row['centre'])}, foreseen {rounded(row['foreseen'])})"
        for row in lost[:MOST]
    ]
    others = [f"{len(lost) - MOST} more"] if len(lost) > MOST else []
    foreseen = sum(float(rounded(row["foreseen"])) < 1 for row in lost)
    return (
        f"Gains for reads, loses for writes: {listed([*words, *others])}. Losses foreseen: {foreseen} of "
        f"{len(lost)}."
    )


if __name__ == "__main__":
    main(Config, measure, VIEWS, quick=QUICK, answer=answer, quick_limit=FITS_CACHE, minutes=MINUTES)
