"""Numbers of a CPU and its memory, as micro-benchmarks measure them."""

from __future__ import annotations

from dataclasses import dataclass, fields
from pathlib import Path

from sfc import checks
from sfc.cache.machine import read_table

FOLDER = Path(__file__).parent / "processors"
KNOWN = tuple(sorted(file.stem for file in FOLDER.glob("*.toml")))  # names of CPUs
LEVELS = ("l1", "l2", "l3")


@dataclass(frozen=True)
class Processor:
    """A CPU, as a model of its memory needs it.

    Attributes:
        name: of the chip.
        threads: that work at the same time, each on a core; all rates are those of one of them.
        line: bytes of a line of all caches.
        l1_bytes, l1_ways, l2_bytes, l2_ways: caches of a core: bytes, and lines of a set.
        l3_bytes, l3_ways: the last cache, which the threads share: of the bytes that the operating system
            names those that loads of this machine find.
        l1_latency: of a load that waits for the one before, from the first cache, in ns.
        l2_latency, l3_latency, memory_latency: of a load that waits for the one before, less that of one
            which the first cache serves, in ns.
        l2_line, l3_line, memory_line: time of a line in no order with an address that is known, in ns, less
            that of one which the first cache serves.
        sequence: time of a line from memory in a sequence of lines, in ns.

    Raises:
        TypeError: a number of another class.
        ValueError: a negative time, bytes, ways or threads that are not positive, or a cache that cannot be.
    """

    name: str
    threads: int
    line: int
    l1_bytes: int
    l1_ways: int
    l2_bytes: int
    l2_ways: int
    l3_bytes: int
    l3_ways: int
    l1_latency: float
    l2_latency: float
    l3_latency: float
    memory_latency: float
    l2_line: float
    l3_line: float
    memory_line: float
    sequence: float

    def __post_init__(self) -> None:
        checks.text("name of a Processor", self.name)
        for field in fields(self)[1:]:
            name, value = f"{field.name} of {self.name}", getattr(self, field.name)
            if field.type == "int":
                found: float = checks.integer(name, value, 1, 2**50)
            else:
                found = checks.number(name, value, 0, unit="ns")
            object.__setattr__(self, field.name, found)
        if self.line & (self.line - 1):
            raise ValueError(f"line of {self.name} = {self.line} bytes; allowed: a power of two")
        for level in LEVELS:
            size, ways = (getattr(self, f"{level}_{what}") for what in ("bytes", "ways"))
            if size < self.line * ways * (self.threads if level == "l3" else 1):
                raise ValueError(
                    f"{level}_bytes of {self.name} = {size}; allowed: a set of {ways} lines of {self.line} "
                    "bytes or more for each thread"
                )

    @classmethod
    def read(cls, path: str | Path) -> Processor:
        """Read the table `processor` of a TOML file; its comments tell how it was measured.

        Args:
            path: of the file; or one of `KNOWN`, for which there is a file here.

        Raises:
            TypeError: a number of another class.
            ValueError: no such file, not TOML, or numbers that are missing, unknown or out of range.
        """
        return read_table(cls, path, FOLDER, KNOWN, "processor")

    def sets(self, level: str) -> int:
        """Return the number of sets of "l1", "l2" or "l3" that a thread has."""
        share = self.threads if level == "l3" else 1
        size, ways = (getattr(self, f"{level}_{what}") for what in ("bytes", "ways"))
        return size // (share * ways * self.line)
