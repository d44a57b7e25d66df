"""Forecast of a launch: sectors, bytes and time of a kernel on a GPU that need not be there."""

from __future__ import annotations

from collections.abc import Sequence
from typing import NamedTuple

import numpy as np

from sfc import checks
from sfc.cache.footprint import MOST_DRAWN, MemoryBytes, l2
from sfc.cache.loads import LANES, LoadStream
from sfc.cache.machine import Machine
from sfc.cache.multiprocessor import L1, l1
from sfc.cache.sectors import Estimate, WarpSectors, warps

POSITIVE = ("round", "held", "rate", "power")
LIMITS = {"held": (0, 1), "power": (1,)}  # lowest and highest
ACCESSES = 2  # of the second cache by an atomic operation, which reads and writes


class Fitted(NamedTuple):
    """Numbers that no micro-benchmark gives, the same for all kernels and chips but for the first.

    Attributes:
        round: time of a round of a warp when a multiprocessor has as many warps as it can, in ns; by kernel.
        launch: time of a launch without work, in us.
        held: share of the second cache that holds what a kernel takes, at most 1.
        rate: of the sectors that a kernel gets over `l2_rate` of the machine, that of sectors in no order.
        power: with which the times of parts that overlap are added up, at least 1.
    """

    round: float = 370.0
    launch: float = 3.2
    held: float = 0.76
    rate: float = 1.02
    power: float = 3.2


class Forecast(NamedTuple):
    """What a launch of a kernel is foreseen to take, for each item of the kernel but rounds and time.

    Attributes:
        sectors: asked for by loads.
        missed: of these, not in the first cache.
        bytes: from memory and to it.
        written: of these, bytes to memory.
        rounds: of a warp.
        time: of the launch, in us.
    """

    sectors: Estimate
    missed: Estimate
    bytes: Estimate
    written: float
    rounds: Estimate
    time: float


def foresee(
    stream: LoadStream, machine: Machine, fitted: Fitted, before: Sequence[LoadStream] = (),
    sample: int = MOST_DRAWN, seed: int = 0,
) -> Forecast:  # fmt: skip
    """Foresee the sectors and bytes that a launch of a kernel takes from the memory of a GPU, and its time.

    The parts of a launch overlap: rounds of the warps that are there at once, in each the wait of one warp
    for the second cache; accesses to that cache; and bytes and pages of memory. Each is foreseen alone, and
    the time is their sum with a power, which is near the longest of them; then that of a launch without work.

    Args:
        stream: loads and stores of the kernel.
        machine: the GPU.
        fitted: numbers that were fitted to other launches.
        before: the launches before (`l2`).
        sample: as that of `l2`.
        seed: of all draws.

    Raises:
        TypeError: objects of other classes.
        ValueError: a block that does not fit, of any launch, or a fitted number out of range.
    """
    return foresee_on(stream, [machine], fitted, before, sample, seed)[0]


def foresee_on(
    stream: LoadStream, machines: Sequence[Machine], fitted: Fitted, before: Sequence[LoadStream] = (),
    sample: int = MOST_DRAWN, seed: int = 0,
) -> list[Forecast]:  # fmt: skip
    """Foresee a launch on several machines, in less time than on each (`foresee`)."""
    checks.instance("stream", stream, LoadStream, "an sfc.cache.LoadStream", "make LoadStream.of")
    for machine in checks.sequence("machines", machines, "sfc.cache.Machines"):
        checks.instance("machine", machine, Machine, "an sfc.cache.Machine", "make Machine.read(path)")
    checks.instance("fitted", fitted, Fitted, "an sfc.cache.Fitted", "make Fitted()")
    for name, value in fitted._asdict().items():
        checks.number(
            f"{name} of Fitted", value, *LIMITS.get(name, (0,)), above=0 if name in POSITIVE else -np.inf
        )
    missed: dict[L1, Estimate] = {}
    asked: dict[int, WarpSectors] = {}
    moved: dict[tuple[int, int, tuple[int, ...]], dict[int, MemoryBytes]] = {}
    launches = [*checks.sequence("before", before, "LoadStreams of the launches before"), stream]
    for one in launches:
        checks.instance("before", one, LoadStream, "LoadStreams", "make LoadStream.of")
    kinds = [(one.granule, one.l2_halves, tuple(one.at_once(each) for each in launches)) for one in machines]
    holds = [int(fitted.held * machine.l2_bytes) for machine in machines]
    for machine, kind in zip(machines, kinds, strict=True):
        first = machine.first_cache(stream)
        if first not in missed:
            missed[first] = l1(stream, first, seed=seed).missed
        if machine.sector not in asked:
            asked[machine.sector] = warps(stream, machine.sector, seed=seed)
        if kind not in moved:
            sizes = sorted(set(holds))
            found = l2(stream, sizes, kind[0], before, kind[1], kind[2], sample, seed)
            moved[kind] = dict(zip(sizes, found, strict=True))
    return [
        _forecast(
            stream, machine, fitted, asked[machine.sector], missed[machine.first_cache(stream)],
            moved[kind][size],
        )
        for machine, kind, size in zip(machines, kinds, holds, strict=True)
    ]  # fmt: skip


def _forecast(
    stream: LoadStream, machine: Machine, fitted: Fitted, asked: WarpSectors, missed: Estimate,
    memory: MemoryBytes,
) -> Forecast:  # fmt: skip
    moved = Estimate(memory.read + memory.written, memory.error)
    served = missed.mean + asked.written.mean + ACCESSES * asked.added.mean
    each = [stream.items * one for one in (served, moved.mean, memory.opened)]
    time = time_of(stream, machine, fitted, asked.rounds.mean, *each)
    return Forecast(asked.read, missed, moved, memory.written, asked.rounds, time)


def time_of(
    stream: LoadStream,
    machine: Machine,
    fitted: Fitted,
    rounds: float,
    served: float,
    moved: float,
    opened: float,
) -> float:
    """Foresee the time of a launch in us.

    Args:
        stream: the kernel.
        machine: the GPU.
        fitted: numbers that were fitted to other launches.
        rounds: of each warp.
        served: accesses to sectors of all warps past the first cache.
        moved: bytes from memory and to it.
        opened: pages of memory that are opened for them (`sfc.cache.MemoryBytes`). Granules in no order open
            one each; those of a copy are served in the time of their bytes alone.

    Raises:
        ValueError: a block that does not fit.
    """
    at_once = machine.at_once(stream) * (stream.block // LANES)
    opening = max(0.0, 1 / machine.random_rate - machine.granule / machine.memory_rate)
    parts = [
        rounds * (machine.l2_latency + stream.warps * fitted.round / at_once),
        served / (fitted.rate * machine.l2_rate),
        moved / machine.memory_rate + opened * opening,
    ]
    return fitted.launch + float(np.linalg.norm(parts, fitted.power)) / 1e3
