"""Numbers of a GPU and its memory, as micro-benchmarks measure them."""

from __future__ import annotations

import tomllib
from dataclasses import dataclass, fields
from pathlib import Path
from typing import TypeVar

from sfc import checks
from sfc.cache.loads import LANES, LoadStream
from sfc.cache.multiprocessor import L1

FOLDER = Path(__file__).parent / "machines"
KNOWN = tuple(sorted(file.stem for file in FOLDER.glob("*.toml")))  # names of chips
SCHEDULERS = 4  # of a multiprocessor; each issues an instruction of one warp a cycle
RESERVED = 1024  # bytes of shared memory of a block, from compute capability 8 on. CUDA occupancy calculator
# Bytes of the first cache that CUDA takes for the shared memory of all blocks: the least of these that has
# room for it. NVIDIA, CUDA C++ Programming Guide, "Shared Memory" of compute capability 9.0.
SHARED_STEPS = tuple(1024 * step for step in (8, 16, 32, 64, 100, 132, 164, 196, 228))
Known = TypeVar("Known")
MOST_HALVES = 2  # of a second cache (`l2`)
UNITS = {  # of the numbers of a machine
    "clock": "GHz", "l1_bytes": "bytes", "l1_line": "bytes", "sector": "bytes", "granule": "bytes",
    "l2_bytes": "bytes", "l2_rate": "10^9 sectors/s", "memory_rate": "GB/s",
    "random_rate": "10^9 granules/s",
    "l2_latency": "ns", "memory_latency": "ns", "shared_bytes": "bytes",
}  # fmt: skip


@dataclass(frozen=True)
class Machine:
    """A GPU, as a model of its memory needs it.

    Attributes:
        name: of the chip.
        multiprocessors: number of them.
        clock: of a multiprocessor, in GHz.
        threads, blocks, registers: that a multiprocessor has room for at the same time.
        shared_bytes: most shared memory of all blocks of a multiprocessor, part of its first cache.
        l1_bytes, l1_ways, l1_line: first cache of a multiprocessor: bytes, lines of a set, bytes of a line.
        sector: bytes that caches take at once.
        granule: bytes that the second cache takes from memory at once.
        l2_bytes: of the second cache.
        l2_halves: halves of the second cache, each near to half of the multiprocessors; 1 if it has none.
        l2_rate: sectors of accesses in no order that it serves, in 10^9 a second.
        l2_latency: of a load that it serves, in ns.
        memory_rate: bytes that a copy reads and writes, in 10^9 a second.
        random_rate: granules in no order that memory serves, in 10^9 a second.
        memory_latency: of a load from memory, in ns; `foresee` does not use it, nor the clock.

    Raises:
        TypeError: a number of another class.
        ValueError: a number that is not positive, more halves than 2, or a first cache that cannot be.
    """

    name: str
    multiprocessors: int
    clock: float
    threads: int
    blocks: int
    registers: int
    shared_bytes: int
    l1_bytes: int
    l1_ways: int
    l1_line: int
    sector: int
    granule: int
    l2_bytes: int
    l2_halves: int
    l2_rate: float
    l2_latency: float
    memory_rate: float
    random_rate: float
    memory_latency: float

    def __post_init__(self) -> None:
        checks.text("name of a Machine", self.name)
        for field in fields(self)[1:]:
            name, value = f"{field.name} of {self.name}", getattr(self, field.name)
            unit = UNITS.get(field.name, "")
            if field.type == "int":
                most = MOST_HALVES if field.name == "l2_halves" else 2**50
                found: float = checks.integer(name, value, 1, most, unit=unit)
            else:
                found = checks.number(name, value, above=0, unit=unit)
            object.__setattr__(self, field.name, found)
        self._l1(self.l1_bytes, LANES)

    @classmethod
    def read(cls, path: str | Path) -> Machine:
        """Read the table `machine` of a TOML file; its comments tell how it was measured.

        Args:
            path: of the file; or one of `KNOWN`, for which there is a file here.

        Raises:
            TypeError: a number of another class.
            ValueError: no such file, not TOML, or numbers that are missing, unknown or out of range.
        """
        return read_table(cls, path, FOLDER, KNOWN, "machine")

    def resident(self, stream: LoadStream) -> int:
        """Return the number of blocks of a kernel that a multiprocessor works on at the same time.

        Registers are given to a warp in units of 256, and each scheduler has as many. CUDA takes `RESERVED`
        bytes of shared memory for each block.

        Raises:
            ValueError: a block that does not fit.
        """
        warps = self.registers // (-(-stream.registers * LANES // 256) * 256) // SCHEDULERS * SCHEDULERS
        room = self.threads // stream.block, warps // (stream.block // LANES), self.blocks
        found = min(*room, self.shared_bytes // (stream.shared + RESERVED))
        if not found:
            raise ValueError(
                f"a block of {stream.block} threads, {stream.registers} registers each and {stream.shared} "
                f"bytes of shared memory; allowed on {self.name}: {self.threads} threads, {self.registers} "
                f"registers and {self.shared_bytes} bytes of a multiprocessor"
            )
        return found

    def at_once(self, stream: LoadStream) -> int:
        """Return the number of blocks of a kernel that all multiprocessors work on at the same time."""
        return self.multiprocessors * self.resident(stream)

    def first_cache(self, stream: LoadStream) -> L1:
        """Return the first cache that a kernel finds: what `SHARED_STEPS` leave, in whole sets."""
        resident = self.resident(stream)
        unit = self.l1_line * self.l1_ways
        needed = resident * (stream.shared + RESERVED)
        left = self.l1_bytes - min((step for step in SHARED_STEPS if step >= needed), default=needed)
        return self._l1(left // unit * unit, resident * stream.block)

    def _l1(self, size: int, threads: int) -> L1:
        return L1(size, self.l1_ways, self.l1_line, self.sector, self.multiprocessors, threads)


def read_table(cls: type[Known], path: str | Path, folder: Path, known: tuple[str, ...], table: str) -> Known:
    """Make an object of a class from a table of a TOML file.

    Args:
        cls: a dataclass; the table has its fields.
        path: of the file, or a name.
        folder: of files of names.
        known: the names.
        table: name of the table.

    Raises:
        TypeError: a number of another class.
        ValueError: no such file, not TOML, or numbers that are missing, unknown or out of range.
    """
    place = checks.path("path", path)
    if str(place) in known:
        place = folder / f"{place}.toml"
    try:
        found = tomllib.loads(place.read_text(encoding="utf-8"))[table]
    except (OSError, ValueError, KeyError) as error:
        raise ValueError(
            f"{table} {str(place)!r}: {error}; allowed: {', '.join(known)}, or a TOML file with a table "
            f"[{table}], as `python -m experiments.machine` writes"
        ) from error
    names = {field.name for field in fields(cls)}  # type: ignore[arg-type]  # a dataclass
    wrong = names ^ set(found) if isinstance(found, dict) else {table}
    if wrong:
        raise ValueError(
            f"{table} {str(place)!r}: {', '.join(sorted(wrong))} missing or unknown; allowed: "
            f"{', '.join(sorted(names))}"
        )
    return cls(**found)
