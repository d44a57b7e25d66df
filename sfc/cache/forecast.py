"""Forecast of a launch: sectors, bytes and time of a kernel on a GPU that need not be there."""

from __future__ import annotations

from collections.abc import Sequence
from typing import NamedTuple

import numpy as np

from sfc import checks
from sfc.cache.footprint import MOST_DRAWN, MemoryBytes, l2
from sfc.cache.loads import LoadStream
from sfc.cache.machine import SCHEDULERS, Machine
from sfc.cache.multiprocessor import L1, l1
from sfc.cache.sectors import Estimate, WarpSectors, warps

POSITIVE = ("cycles", "share", "power")


class Fitted(NamedTuple):
    """Numbers that no micro-benchmark gives, the same for all kernels and chips but for the first.

    Attributes:
        cycles: of a scheduler for a round of a warp, by kernel.
        launch: time of a launch without work, in us.
        latency: time that a round adds to a launch, in us.
        share: of the copy rate that a kernel reaches.
        power: with which the times of parts that overlap are added up.
    """

    cycles: float = 58.0
    launch: float = 4.0
    latency: float = 0.15
    share: float = 0.7
    power: float = 4.0


class Forecast(NamedTuple):
    """What a launch of a kernel is foreseen to take, for each item of the kernel but rounds and time.

    Attributes:
        sectors: asked for by loads.
        missed: of these, not in the first cache.
        bytes: from memory and to it.
        rounds: of a warp.
        time: of the launch, in us.
    """

    sectors: Estimate
    missed: Estimate
    bytes: Estimate
    rounds: Estimate
    time: float


def foresee(
    stream: LoadStream, machine: Machine, fitted: Fitted, before: Sequence[LoadStream] = (),
    sample: int = MOST_DRAWN, seed: int = 0,
) -> Forecast:  # fmt: skip
    """Foresee the sectors and bytes that a launch of a kernel takes from the memory of a GPU, and its time.

    The parts of a launch overlap: instructions, sectors from the second cache, and bytes from memory. Each is
    foreseen alone, and the time is their sum with a power, which is near the longest of them.

    Args:
        stream: loads and stores of the kernel.
        machine: the GPU.
        fitted: numbers that were fitted to other launches.
        before: the launches before (`l2`).
        sample: as that of `l2`.
        seed: of all draws.

    Raises:
        TypeError: objects of other classes.
        ValueError: a block that does not fit, or a fitted number that is not positive.
    """
    return foresee_on(stream, [machine], fitted, before, sample, seed)[0]


def foresee_on(
    stream: LoadStream, machines: Sequence[Machine], fitted: Fitted, before: Sequence[LoadStream] = (),
    sample: int = MOST_DRAWN, seed: int = 0,
) -> list[Forecast]:  # fmt: skip
    """Foresee a launch on several machines, in less time than on each (`foresee`)."""
    for machine in checks.sequence("machines", machines, "sfc.cache.Machines"):
        checks.instance("machine", machine, Machine, "an sfc.cache.Machine", "make Machine.read(path)")
    checks.instance("fitted", fitted, Fitted, "an sfc.cache.Fitted", "make Fitted()")
    for name, value in fitted._asdict().items():
        checks.number(f"{name} of Fitted", value, 0, above=0 if name in POSITIVE else -np.inf)
    missed: dict[L1, Estimate] = {}
    asked: dict[int, WarpSectors] = {}
    bytes_: dict[tuple[int, int], MemoryBytes] = {}
    for machine in machines:
        first = machine.first_cache(stream)
        if first not in missed:
            missed[first] = l1(stream, first, seed=seed).missed
        if machine.sector not in asked:
            asked[machine.sector] = warps(stream, machine.sector, seed=seed)
    for granule in {machine.granule for machine in machines}:
        sizes = sorted({machine.l2_held for machine in machines if machine.granule == granule})
        found = l2(stream, sizes, granule, before, sample, seed)
        bytes_ |= {(granule, size): one for size, one in zip(sizes, found, strict=True)}
    return [
        _forecast(
            stream, machine, fitted, asked[machine.sector], missed[machine.first_cache(stream)],
            bytes_[machine.granule, machine.l2_held],
        )
        for machine in machines
    ]  # fmt: skip


def _forecast(
    stream: LoadStream, machine: Machine, fitted: Fitted, asked: WarpSectors, missed: Estimate,
    memory: MemoryBytes,
) -> Forecast:  # fmt: skip
    moved = Estimate(memory.read + memory.written, memory.error)
    served = stream.items * (missed.mean + asked.written.mean)
    time = time_of(stream, machine, fitted, asked.rounds.mean, served, stream.items * moved.mean)
    return Forecast(asked.read, missed, moved, asked.rounds, time)


def time_of(
    stream: LoadStream, machine: Machine, fitted: Fitted, rounds: float, served: float, moved: float
) -> float:
    """Foresee the time of a launch in us.

    Args:
        stream: the kernel.
        machine: the GPU.
        fitted: numbers that were fitted to other launches.
        rounds: of a warp.
        served: sectors of all warps past the first cache.
        moved: bytes from memory and to it.
    """
    cycles = stream.warps * rounds * fitted.cycles / (SCHEDULERS * machine.multiprocessors)
    parts = [cycles / machine.clock, served / machine.l2_rate, moved / (fitted.share * machine.memory_rate)]
    return fitted.launch + fitted.latency * rounds + float(np.linalg.norm(parts, fitted.power)) / 1e3
