"""Floors of a kernel's time, and the rule that names what limits it.

Contract. Three times are compared with the measured one. `floor_memory_us`: the bytes that the kernel must
move, at the bandwidth of a copy. `dram_us`: the bytes that it did move to and from memory, at that bandwidth.
`floor_issue_us`: its instructions, one per scheduler and cycle. If `dram_us` is `SHARE` of the time or more,
memory limits the kernel; else, if `floor_issue_us` is, the issue of instructions does; else latency: neither
is busy, and warps wait. If both are, the larger counts.
"""

import math
from collections.abc import Mapping

from sfc import checks

SHARE = 0.7  # of a kernel's time from which a resource is said to limit it
SCHEDULERS = 4  # of a multiprocessor, each of which issues an instruction a cycle. CUDA C++ Programming Guide
MEMORY, ISSUE, LATENCY = "memory", "issue", "latency"
LIMITS = (MEMORY, ISSUE, LATENCY)
STALL = "stall_"  # start of the columns of stall reasons, in cycles an instruction
WORKING = ("selected",)  # among the reasons, but no wait: the instruction is issued
TOP = 3


def memory_us(moved: float, bandwidth: float) -> float:
    """Return the time of moving bytes at a bandwidth in GB/s, in us.

    Raises:
        ValueError: a bandwidth that is not above 0.
    """
    return moved / checks.number("bandwidth", bandwidth, above=0, unit="GB/s") / 1e3


def issue_us(instructions: float, cycles: float, time_us: float, multiprocessors: int) -> float:
    """Return the time of issuing all instructions at the clock of the kernel, in us.

    Args:
        instructions: executed by warps.
        cycles: of a multiprocessor, from the start to the end of the kernel.
        time_us: of the kernel.
        multiprocessors: of the device.

    Raises:
        ValueError: no cycles, or no multiprocessors.
    """
    cycles = checks.number("cycles", cycles, above=0)
    issue_cycles = instructions / (SCHEDULERS * checks.integer("multiprocessors", multiprocessors))
    return issue_cycles / cycles * time_us


def limit(time_us: float, dram_us: float, floor_issue_us: float) -> str | None:
    """Name what limits a kernel by the rule of this module; None if a time is not known."""
    if not all(map(math.isfinite, (time_us, dram_us, floor_issue_us))):
        return None
    busy, name = max((dram_us, MEMORY), (floor_issue_us, ISSUE))
    return name if busy >= SHARE * time_us else LATENCY


def top_stalls(row: Mapping[str, float]) -> dict[str, str | float | None]:
    """Return the longest waits of a kernel, longest first, and their shares of a warp's time.

    Args:
        row: any columns; those that start with `STALL` are cycles an instruction.

    Returns:
        `reason_1` to `reason_3`, names of the waits, and `reason_1_share` and so on; None if there are fewer.
    """
    known = {name.removeprefix(STALL): value for name, value in row.items() if name.startswith(STALL)}
    known = {name: value for name, value in known.items() if math.isfinite(value) and value > 0}
    total = sum(known.values())
    waits = sorted((name for name in known if name not in WORKING), key=lambda name: -known[name])
    found: dict[str, str | float | None] = {}
    for place in range(TOP):
        name = waits[place] if place < len(waits) else None
        found[f"reason_{place + 1}"] = name
        found[f"reason_{place + 1}_share"] = None if name is None else known[name] / total
    return found
