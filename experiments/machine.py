"""What are the rates of this machine's memory, which a forecast of any kernel needs?

Loads of random sectors of 32 bytes are timed over more and more memory: as long as they fit the second cache
they are served at its rate, beyond at that of memory, and between the two lies what the cache holds of
accesses in no order. Loads that wait for each other give latencies, and a copy the rate of memory. All sums
are compared with numpy's before a time is kept.

On a GPU the numbers are written as machine.toml, which `sfc.cache.Machine.read` and the flag `--machine` of
`experiments.foreseen` read. What no program can measure stands there too, with its source: ways and lines of
the first cache, and the bytes that the second one takes from memory at once.
"""

from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path
from typing import Any, ClassVar

import pandas as pd

import md
from experiments.core import Settings, main
from experiments.core.terminal import FEW_SIZES
from experiments.measurement.hardware_caches import caches
from experiments.measurement.memory_bandwidth import copy_bandwidth
from experiments.measurement.memory_rates import SECTOR, THREADS, load_time, sector_rate
from experiments.results.answers import Answer, rounded
from experiments.results.charts import FIRST, LINES, Chart, Points, Scale
from sfc.cache import Machine

MB = 1e6
SIZES = tuple(int(2 ** (20 + k / 4)) for k in range(49))  # 1 MB to 4 GB
MOST = SECTOR * (2**31 - 1)  # bytes: sectors that an int32 counts
FEW = 2**12  # threads on a CPU
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


@dataclass(frozen=True)
class Config(Settings):
    """Sizes of memory over which random sectors are loaded."""

    TOGETHER: ClassVar[tuple[str, ...]] = ("size",)

    size: tuple[int, ...] = SIZES
    """Bytes from which random sectors are drawn, and over which chains of loads go."""
    loads: int = 512
    """Random loads of a thread."""

    def __post_init__(self):
        super().__post_init__()
        self.check("size", low=2 * SECTOR, high=MOST, unit="bytes")
        self.check_least({"loads": 1})
        size = self.highest("size")
        self.check_memory(f"--size {size:.0f}", COPIES * size / SECTOR, "sectors", SECTOR)


QUICK = {"size": tuple(2**k for k in range(20, 29, 2)), "loads": 64}
MINUTES = 2


def measure(case: Config) -> Iterator[dict]:
    """Yield a row for each size and kind of load, one of a copy, and one of the device."""
    backend = md.backend.get(case.backend)
    is_device = backend.name == "cuda"
    about = backend.describe() if is_device else {}
    common = {"device": about.get("device", "CPU"), "l2_bytes": caches(backend)[-1].bytes}
    threads = THREADS if is_device else FEW
    for size in case.size:
        rate = sector_rate(backend, size, threads, case.loads)
        yield common | {"what": "random sectors", "bytes": size, "sectors_G_per_s": rate}
        yield common | {"what": "chain", "bytes": size, "load_ns": load_time(backend, size)}
    yield common | {"what": "copy", "GB_per_s": copy_bandwidth(backend)}
    kind = about.get("compute_capability")
    if kind in PUBLISHED:
        names = {"clock_GHz": "clock"} | {name: name for name in ("threads", "registers", "shared_bytes")}
        limits = {new: about[old] for old, new in names.items()} | PUBLISHED[kind]
        first = {"l1_bytes": caches(backend)[0].bytes, "multiprocessors": about["multiprocessors"]}
        yield common | {"what": "device"} | limits | first


def machine_of(table: pd.DataFrame) -> Machine | None:
    """Make the machine that a table describes; None for a CPU, or too few sizes.

    Args:
        table: rows of `measure`.
    """
    found = table[table["what"] == "device"]
    if found.empty:
        return None
    row, rates = found.iloc[0], table[table["what"] == "random sectors"]
    size = rates["bytes"].to_numpy()
    chain = table[table["what"] == "chain"].set_index("bytes")["load_ns"]
    small = size <= row["l2_bytes"] / 4
    if not small.any() or size.max() < FAR * row["l2_bytes"]:
        return None
    numbers: dict[str, Any] = {
        "l2_rate": float(rates["sectors_G_per_s"][small].median()),
        "memory_rate": float(table.loc[table["what"] == "copy", "GB_per_s"].iloc[0]),
        "random_rate": float(rates["sectors_G_per_s"].iloc[size.argmax()]),
        "l2_latency": float(chain[chain.index <= size[small].min()].median()),
        "memory_latency": float(chain[chain.index >= FAR * row["l2_bytes"]].median()),
    }
    given = {name: row[name] for name in Machine.__dataclass_fields__ if name not in ("name", *numbers)}
    whole: dict[str, Any] = {name: value if name == "clock" else int(value) for name, value in given.items()}
    return Machine(str(row["device"]), **whole, **numbers)


def write_machine(table: pd.DataFrame, out: Path) -> None:
    """Write machine.toml, if the table is of a GPU and has sizes enough."""
    machine = machine_of(table)
    if machine is not None:
        (out / "machine.toml").write_text(text_of(machine), encoding="utf-8")


def text_of(machine: Machine) -> str:
    """Return the text of a machine's file."""
    lines = [
        "# Measured by `python -m experiments.machine`.",
        *(f"# {one}." for one in SOURCES),
        "",
        "[machine]",
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
VIEWS = (
    Chart(
        "rates", "{device}: loads of random sectors", LINES,
        Points("sectors_G_per_s", "what == 'random sectors'", FIRST), SIZE, RATE,
    ),
    Chart(
        "latencies", "{device}: loads that wait for each other", LINES,
        Points("load_ns", "what == 'chain'", FIRST), SIZE, TIME,
    ),
    write_machine,
)  # fmt: skip


def answer(table: pd.DataFrame) -> Answer:
    """Say the rates of the second cache and of memory."""
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
