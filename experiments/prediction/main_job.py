"""How long the main job takes on two cores, and what its size cannot show: said before it is measured.

The time is a sum of measured ones per particle. Its constants are those of linked cells in float64 on the
machine of `experiments.core.plan.BASIS`; other searches, machines and numbers of threads differ.
"""

import math
from collections.abc import Mapping
from typing import Any, NamedTuple

import md
from experiments.core.plan import BASIS
from experiments.core.terminal import duration

# Microseconds per particle with two threads, at a filling fraction of 0, and their growth with it.
SET_UP, ROUND, DENSER = 1.75, 0.30, 2.0  # of a memory order, its checks included; factor 1 + DENSER phi
GAS, DENSER_GAS = 15.0, 95.0  # of a randomised gas: GAS + DENSER_GAS phi
PROCESS, ONCE = 2.5, 8.0  # s: of a run, and of imports and figures
MORE_THAN_CACHE = 2.0  # a working set this many times the last cache


class Job(NamedTuple):
    """What a main job measures.

    Attributes:
        sizes: numbers of particles.
        fillings: filling fractions.
        orders: number of memory orders, the one that is measured twice counted twice.
        others: number of combinations of the other axes.
        runs: number of runs.
        rounds: number of rounds of a run.
        steps: number of steps of a sample.
        scene: start of the gas.
        is_timed: whether all cases are linked cells in float64 without fused steps: their times are known.
    """

    sizes: tuple[int, ...]
    fillings: tuple[float, ...]
    orders: int
    others: int
    runs: int
    rounds: int
    steps: int
    scene: str
    is_timed: bool = True


def seconds(job: Job) -> float:
    """Estimate how long a job takes with two threads, once its kernels are compiled."""
    total = ONCE + PROCESS * job.runs
    sample = ROUND * (1 + job.steps) / 2
    for n in job.sizes:
        copies = md.scenes.copies_for(n) ** 3 if job.scene == "tiled" else 1
        for phi in job.fillings:
            gas = 0.0 if job.scene == "shared" else (GAS + DENSER_GAS * phi) / copies
            orders = job.orders * job.others * (SET_UP + sample * (1 + job.rounds)) * (1 + DENSER * phi)
            total += job.runs * n * (gas + orders) * 1e-6
    return total


def limit(job: Job, precision: str, backend: md.backend.Backend, memory: Mapping[str, Any]) -> str:
    """Compare the working set of the smallest case with the last cache, and say what that cannot show.

    Args:
        job: what is measured.
        precision: "float32" or "float64".
        backend: of the particles.
        memory: `hardware_caches.working_set` of the smallest size.
    """
    n = min(job.sizes)
    held, cache = memory["working_set_MB"] or 0.0, memory["cache_MB"]
    if cache is None:
        return f"Working set: {held:.0f} MB; the last cache is not known here."
    times = held / cache
    size = f"Working set in {precision}: {held:.0f} MB, {times:.1f} times the last cache ({cache:.0f} MB)"
    if times > 1:
        return f"{size}. Memory order is worth more at larger sizes, which this does not show."
    larger = 2 ** math.ceil(math.log2(n * MORE_THAN_CACHE / times))
    is_known = backend.name == "cpu" and job.is_timed
    length = duration(seconds(job._replace(sizes=(larger,)))) if is_known else ""
    return (
        f"{size}. It fits, so that memory order is worth little, and the answer does not carry over to "
        f"larger systems; --n {larger} does not fit{f' ({length})' if length else ''}."
    )


def time_in_words(job: Job, backend: md.backend.Backend) -> str:
    """Say how long a job takes, or for which settings alone that is known."""
    if backend.name != "cpu" or not job.is_timed:
        return "how long is known for linked cells on a CPU in float64 only"
    return f"{duration(seconds(job))} on {BASIS}, the first time half a minute more to compile"
