"""Forecast of a launch: sectors, bytes and time of a kernel on a GPU that need not be there."""

from __future__ import annotations

from collections.abc import Sequence
from typing import NamedTuple

import numpy as np

from sfc import checks
from sfc.cache.footprint import MOST_DRAWN, l2
from sfc.cache.loads import LoadStream
from sfc.cache.machine import SCHEDULERS, Machine
from sfc.cache.multiprocessor import l1
from sfc.cache.sectors import Estimate, warps

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
    checks.instance("machine", machine, Machine, "an sfc.cache.Machine", "make Machine.read(path)")
    checks.instance("fitted", fitted, Fitted, "an sfc.cache.Fitted", "make Fitted()")
    for name, value in fitted._asdict().items():
        checks.number(f"{name} of Fitted", value, 0, above=0 if name in POSITIVE else -np.inf)
    asked = warps(stream, machine.sector, seed=seed)
    missed = l1(stream, machine.first_cache(stream), seed=seed).missed
    (memory,) = l2(stream, [machine.l2_held], machine.granule, before, sample, seed)
    moved = Estimate(memory.read + memory.written, memory.error)
    rounds = asked.rounds.mean
    cycles = stream.warps * rounds * fitted.cycles / (SCHEDULERS * machine.multiprocessors)
    served = stream.items * (missed.mean + asked.written.mean) / machine.l2_rate  # ns
    copied = stream.items * moved.mean / (fitted.share * machine.memory_rate)
    overlapped = float(np.linalg.norm([cycles / machine.clock, served, copied], fitted.power)) / 1e3
    time = fitted.launch + fitted.latency * rounds + overlapped
    return Forecast(asked.read, missed, moved, asked.rounds, time)
