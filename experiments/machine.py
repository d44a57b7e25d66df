"""What are the rates of this machine's memory, which a forecast of any kernel needs?

Loads of random sectors of 32 bytes are timed over more and more memory: as long as they fit the second cache
they are served at its rate, beyond at that of memory, and between the two lies what the cache holds of
accesses in no order. Loads that wait for each other give latencies, and a copy the rate of memory. All sums
are compared with numpy's before a time is kept.

The numbers are written as machine.toml, which the flag `--machine` of `experiments.foreseen` reads, and of a
GPU `sfc.cache.Machine.read`. What no program can measure stands there too, with its source: ways and lines of
the first cache, and the bytes that the second one takes from memory at once.

A CPU (`sfc.cache.core.Processor`) has lines of 64 bytes and three caches. Its loads in no order are timed
with addresses that are known, on `--threads` threads at the same time. The last cache has as many bytes as
loads find there: on a rented machine others use it too.
"""

from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any, ClassVar

import numpy as np
import pandas as pd

import md
from experiments.core import Settings, main
from experiments.core.provenance import describe_cpu
from experiments.core.terminal import FEW_SIZES
from experiments.measurement.hardware_caches import SYSTEM, caches, system_caches
from experiments.measurement.kernels.core_rates import LINE, chain_time, line_times
from experiments.measurement.kernels.memory_rates import SECTOR, THREADS, load_time, sector_rate
from experiments.measurement.memory_bandwidth import copy_bandwidth
from experiments.results.answers import Answer, rounded
from experiments.results.charts import FIRST, LINES, Chart, Points, Scale
from sfc.cache import Machine
from sfc.cache.core import Processor
from sfc.compile import thread_count

MB = 1e6
SIZES = tuple(int(2 ** (14 + k / 4)) for k in range(73))  # 16 KB to 4 GB
RATED = 2**20  # bytes: over fewer a GPU reads sectors from a part of its second cache alone
MOST = SECTOR * (2**31 - 1)  # bytes: sectors that an int32 counts
COPIES = 2  # of the memory that is read, on a CPU: as numpy makes it, and as it is uploaded
FAR = 8  # memory over the second cache, from which on latencies are those of memory
PUBLISHED = {  # by compute capability: what is not measured here
    "9.0": {"blocks": 32, "l1_ways": 8, "l1_line": 128, "sector": 32, "granule": 64, "l2_halves": 2},
}
SOURCES = (
    "blocks, l1_line, sector: NVIDIA, CUDA C++ Programming Guide, compute capability 9.0",
    "l1_ways, granule: of 4 to 32 ways and of 32 to 128 bytes those that agree with counters of an H100",
    "l2_rate: median of random sectors up to a quarter of the second cache",
    "l2_halves: random sectors begin to miss at half the second cache",
    "random_rate: random sectors of the largest size, of which each is a granule",
)
CORE_SOURCES = (
    "l1, l2 and ways: the operating system; other latencies and lines: less those of the first cache",
    "l3_bytes: where a load that waits takes the mean, on a logarithmic scale, of the last cache and memory",
)
FILE = "machine.toml"


@dataclass(frozen=True)
class Config(Settings):
    """Sizes of memory over which random sectors are loaded."""

    TOGETHER: ClassVar[tuple[str, ...]] = ("size",)

    size: tuple[int, ...] = SIZES
    """Bytes from which random sectors are drawn, and over which chains of loads go."""
    loads: int = 512
    """Random loads of a thread of a GPU."""
    threads: int = 1
    """Threads of a CPU that load at the same time."""

    def __post_init__(self):
        super().__post_init__()
        least = 2 * LINE if self.backend == "cpu" else 2 * SECTOR
        self.check("size", low=least, high=MOST, unit="bytes")
        self.check_least({"loads": 1})
        self.check("threads", low=1, high=thread_count(), remedy="set NUMBA_NUM_THREADS for more")
        size = self.highest("size")
        self.check_memory(f"--size {size:.0f}", COPIES * size / SECTOR, "sectors", SECTOR)


QUICK = {"size": tuple(2**k for k in range(14, 29, 2)), "loads": 64}
MINUTES = 2


def measure(case: Config) -> Iterator[dict]:
    """Yield a row for each size and kind of load, one of a copy on a GPU, and one of the device."""
    backend = md.backend.get(case.backend)
    if backend.name == "cuda":
        yield from _of_device(case, backend)
    else:
        yield from _of_cores(case)


def _of_device(case: Config, backend: md.backend.Backend) -> Iterator[dict]:
    """Yield the rows of a GPU."""
    about = backend.describe()
    common = {"device": about["device"], "l2_bytes": caches(backend)[-1].bytes}
    for size in case.size:
        rate = sector_rate(backend, size, THREADS, case.loads)
        yield common | {"what": "random sectors", "bytes": size, "sectors_G_per_s": rate}
        yield common | {"what": "chain", "bytes": size, "load_ns": load_time(backend, size)}
    yield common | {"what": "copy", "GB_per_s": copy_bandwidth(backend)}
    kind = about.get("compute_capability")
    if kind in PUBLISHED:
        names = {"clock_GHz": "clock"} | {name: name for name in ("threads", "registers", "shared_bytes")}
        limits = {new: about[old] for old, new in names.items()} | PUBLISHED[kind]
        first = {"l1_bytes": caches(backend)[0].bytes, "multiprocessors": about["multiprocessors"]}
        yield common | {"what": "device"} | limits | first


def _of_cores(case: Config) -> Iterator[dict]:
    """Yield the rows of a CPU."""
    common = {"device": describe_cpu()["cpu"], "threads": case.threads}
    try:
        found = system_caches(SYSTEM)
    except ValueError:  # a system that lists none
        found = []
    for size in case.size:
        yield common | {"what": "chain", "bytes": size, "load_ns": chain_time(size)}
        if size >= 2 * LINE * case.threads:
            line, sequence = line_times(size, case.threads)
            yield common | {"what": "lines", "bytes": size, "line_ns": line, "sequence_ns": sequence}
    if [one.name for one in found] == ["L1", "L2", "L3"] and {one.line for one in found} == {LINE}:
        levels = zip(("l1", "l2", "l3"), found, strict=True)
        given = {f"{level}_{what}": getattr(one, what) for level, one in levels for what in ("bytes", "ways")}
        yield common | {"what": "cores", "line": LINE} | given


def machine_of(table: pd.DataFrame) -> Machine | None:
    """Make the GPU that a table describes; None for a CPU, or too few sizes.

    Args:
        table: rows of `measure`.
    """
    found = table[table["what"] == "device"]
    if found.empty:
        return None
    row, rates = found.iloc[0], table[table["what"] == "random sectors"]
    size = rates["bytes"].to_numpy()
    chain = table[table["what"] == "chain"].set_index("bytes")["load_ns"]
    small = (size >= RATED) & (size <= row["l2_bytes"] / 4)
    if not small.any() or size.max() < FAR * row["l2_bytes"]:
        return None
    numbers: dict[str, Any] = {
        "l2_rate": float(rates["sectors_G_per_s"][small].median()),
        "memory_rate": float(table.loc[table["what"] == "copy", "GB_per_s"].iloc[0]),
        "random_rate": float(rates["sectors_G_per_s"].iloc[size.argmax()]),
        "l2_latency": float(chain[size[small].min()]),
        "memory_latency": float(chain[chain.index >= FAR * row["l2_bytes"]].median()),
    }
    given = {name: row[name] for name in Machine.__dataclass_fields__ if name not in ("name", *numbers)}
    whole: dict[str, Any] = {name: value if name == "clock" else int(value) for name, value in given.items()}
    return Machine(str(row["device"]), **whole, **numbers)


def processor_of(table: pd.DataFrame) -> Processor | None:
    """Make the CPU that a table describes; None for a GPU, unknown caches or too few sizes.

    None too if a load takes no longer from each level than from the one before: other work was in the way. A
    line of known address that takes no longer than one from the first cache has the time 0. Those of the
    second cache are of the size in the middle, on a logarithmic scale, between it and the first; of the last
    one, of which the bytes are to be found, of the size beyond the second at which a chain's times grow
    least; those of memory the median from an eighth of the largest size on.

    Args:
        table: rows of `measure`.
    """
    found = table[table["what"] == "cores"]
    if found.empty:
        return None
    row = found.iloc[0]
    times = table[table["what"] != "cores"].groupby("bytes")[["load_ns", "line_ns", "sequence_ns"]].first()
    l1, l2, l3 = (int(row[f"{level}_bytes"]) for level in ("l1", "l2", "l3"))
    if times.index.min() > l1 / 2 or times.index.max() < FAR * l3:
        return None
    sizes = {"l1": l1 / 2, "l2": (l1 * l2) ** 0.5}
    at = {level: times.iloc[np.abs(np.log(times.index / size)).argmin()] for level, size in sizes.items()}
    at["memory"] = times[times.index >= times.index.max() / FAR].median()
    size = _in_last_cache(times["load_ns"], l2, (at["l2"]["load_ns"] + at["memory"]["load_ns"]) / 2)
    if size is None:
        return None
    at["l3"] = times.loc[size].copy()
    of_second = l2 / size  # lines in no order, but none of a chain, that the second cache serves
    at["l3"]["line_ns"] = (at["l3"]["line_ns"] - of_second * at["l2"]["line_ns"]) / (1 - of_second)
    levels = pd.DataFrame({level: at[level] for level in ("l1", "l2", "l3", "memory")})
    if levels.isna().any(axis=None) or (np.diff(levels.loc["load_ns"]) <= 0).any():
        return None
    numbers: dict[str, Any] = {
        f"{level}_{name}": max(0.0, float(at[level][column] - at["l1"][column]))
        for level in ("l2", "l3", "memory") for name, column in (("latency", "load_ns"), ("line", "line_ns"))
    }  # fmt: skip
    numbers["l1_latency"] = float(times["load_ns"][times.index <= l1 / 2].min())
    half = (at["l3"]["load_ns"] * at["memory"]["load_ns"]) ** 0.5
    chain = times["load_ns"][times.index >= size]
    larger = int((chain > half).to_numpy().argmax())
    around = chain.iloc[larger - 1 : larger + 1]
    found_bytes = int(np.exp(np.interp(np.log(half), np.log(around), np.log(around.index))))
    unit = int(row["line"] * row["l3_ways"])
    given = {
        name: int(row[name]) for name in ("threads", "line", "l1_bytes", "l1_ways", "l2_bytes", "l2_ways")
    }
    last = {"l3_bytes": min(found_bytes, l3) // unit * unit, "l3_ways": int(row["l3_ways"])}
    sequence = float(at["memory"]["sequence_ns"])
    return Processor(str(row["device"]), **given, **last, **numbers, sequence=sequence)


def _in_last_cache(chain: pd.Series, l2_bytes: int, most: float) -> int | None:
    """Find the size beyond the second cache at which times of a chain grow least; None if there is no such.

    Args:
        chain: time of a load in ns, by bytes.
        l2_bytes: of the second cache.
        most: ns that a load from the last cache takes.
    """
    growth = np.log(chain).diff() / np.log(chain.index.to_series()).diff()
    within = growth[(chain.index >= 1.5 * l2_bytes) & (chain < most)]
    return None if within.empty else int(within.index[within.argmin()])


def write_machine(table: pd.DataFrame, out: Path) -> None:
    """Write machine.toml, if the table is of a GPU or CPU that is known, and has sizes enough."""
    machine, processor = machine_of(table), processor_of(table)
    if machine is not None:
        (out / FILE).write_text(text_of(machine, SOURCES), encoding="utf-8")
    if processor is not None:
        (out / FILE).write_text(text_of(processor, CORE_SOURCES), encoding="utf-8")


def text_of(machine: Machine | Processor, sources: Sequence[str] = SOURCES) -> str:
    """Return the text of a machine's file.

    Args:
        machine: a GPU or CPU.
        sources: of its numbers.
    """
    lines = [
        "# Measured by `python -m experiments.machine`.",
        *(f"# {one}." for one in sources),
        "",
        f"[{type(machine).__name__.lower()}]",
    ]
    for name, value in vars(machine).items():
        shown = (
            f'"{value}"' if isinstance(value, str) else f"{value:.4g}" if isinstance(value, float) else value
        )
        lines.append(f"{name} = {shown}")
    return "\n".join(lines) + "\n"


SIZE = Scale("memory that is read (bytes)", "bytes", log=2)
RATE = Scale("sectors of 32 bytes ($10^9$/s)", log=10)
TIME = Scale("time of a load (ns)", log=10)
LINES_TIME = Scale("time of a line of 64 bytes in no order (ns)", log=10)
VIEWS = (
    Chart(
        "rates", "{device}: loads of random sectors", LINES,
        Points("sectors_G_per_s", "what == 'random sectors'", FIRST), SIZE, RATE, needs="sectors_G_per_s",
    ),
    Chart(
        "lines", "{device}: lines in no order, with addresses that are known", LINES,
        Points("line_ns", "what == 'lines'", FIRST), SIZE, LINES_TIME, needs="line_ns",
    ),
    Chart(
        "latencies", "{device}: loads that wait for each other", LINES,
        Points("load_ns", "what == 'chain'", FIRST), SIZE, TIME,
    ),
    write_machine,
)  # fmt: skip


def answer(table: pd.DataFrame) -> Answer:
    """Say the rates of the second cache and of memory of a GPU, or the times of loads of a CPU."""
    if not (table["what"] == "random sectors").any():
        return _of_times(table)
    rates = table[table["what"] == "random sectors"].set_index("bytes")["sectors_G_per_s"]
    copy = table.loc[table["what"] == "copy", "GB_per_s"].iloc[0]
    shown = rates.iloc[:: max(1, len(rates) // 5)]
    cells = pd.DataFrame({"random sectors, 10^9/s": shown.map(rounded)})
    cells.index = pd.Index([f"{size / MB:,.0f} MB" for size in shown.index], name="")
    sentence = (
        f"{table['device'].iloc[0]} serves {rounded(rates.iloc[0])} x 10^9 random sectors a second of "
        f"{rates.index[0] / MB:,.0f} MB and {rounded(rates.iloc[-1])} of {rates.index[-1] / MB:,.0f} MB"
        f"; a copy reads and writes {rounded(copy)} GB/s."
    )
    return Answer(cells, sentence)


def _of_times(table: pd.DataFrame) -> Answer:
    """Say the times of loads of a CPU, and the bytes of its last cache."""
    chain = table[table["what"] == "chain"].set_index("bytes")["load_ns"]
    shown = chain.iloc[:: max(1, len(chain) // 6)]
    cells = pd.DataFrame({"a load that waits (ns)": shown.map(rounded)})
    cells.index = pd.Index([f"{size / MB:,.2f} MB" for size in shown.index], name="")
    processor = processor_of(table)
    sentence = (
        f"A load that waits for the one before takes {rounded(chain.iloc[0])} ns of "
        f"{chain.index[0] / MB:,.2f} MB and {rounded(chain.iloc[-1])} ns of {chain.index[-1] / MB:,.0f} MB"
    )
    if processor is not None:
        sentence += f"; the last cache serves {processor.l3_bytes / MB:,.0f} MB"
    return Answer(cells, f"{sentence} ({table['device'].iloc[0]}).")


if __name__ == "__main__":
    main(
        Config,
        measure,
        VIEWS,
        quick=QUICK,
        spreads=False,
        answer=answer,
        quick_limit=FEW_SIZES,
        minutes=MINUTES,
    )
