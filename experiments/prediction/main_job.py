"""How long the main job takes on two cores, and what its size cannot show: said before it is measured.

The time is a sum of measured ones per particle. Its constants are those of linked cells in float64 on the
machine of `experiments.core.plan.BASIS`; other searches, machines and numbers of threads differ.
"""

import math
from collections.abc import Mapping
from dataclasses import replace
from typing import Any

import md
from experiments.core import values
from experiments.core.plan import BASIS
from experiments.core.terminal import duration

# Microseconds per particle with two threads, at a filling fraction of 0, and their growth with it.
SET_UP, ROUND, DENSER = 1.75, 0.30, 2.0  # of a memory order, its checks included; factor 1 + DENSER phi
GAS, DENSER_GAS = 15.0, 95.0  # of a randomised gas: GAS + DENSER_GAS phi
PROCESS, ONCE = 2.5, 8.0  # s: of a run, and of imports and figures
MORE_THAN_CACHE = 2.0  # a working set this many times the last cache


def seconds(config: Any) -> float:
    """Estimate how long a job takes with two threads, once its kernels are compiled.

    Args:
        config: settings of `experiments.timing`, of a gas.
    """
    total = ONCE + PROCESS * config.runs
    sample = ROUND * (1 + config.steps) / 2
    others = [len([*values(getattr(config, name))]) for name in ("search", "precision", "fused")]
    orders = (len(config.ordering) + 1) * math.prod(others)  # one is measured twice
    for n in values(config.n):
        copies = md.preparation.copies_for(n) ** 3 if config.scene == "tiled" else 1
        for phi in values(config.filling_fraction):
            gas = 0.0 if config.scene == "shared" else (GAS + DENSER_GAS * phi) / copies
            each = (SET_UP + sample * (1 + config.rounds)) * (1 + DENSER * phi)
            total += config.runs * n * (gas + orders * each) * 1e-6
    return total


def is_known(config: Any) -> bool:
    """Return whether all cases are linked cells in float64 without fused steps, on a CPU."""
    one = tuple(tuple(values(getattr(config, name))) for name in ("search", "precision", "fused"))
    return one == (("linked",), ("float64",), (False,)) and md.backend.get(config.backend).name == "cpu"


def limit(config: Any, memory: Mapping[str, Any]) -> str:
    """Compare the working set of the smallest case with the last cache, and say what that cannot show.

    Args:
        config: settings of `experiments.timing`, of a gas.
        memory: `hardware_caches.working_set` of the smallest size.
    """
    held, cache = memory["working_set_MB"] or 0.0, memory["cache_MB"]
    if cache is None:
        return f"Working set: {held:.0f} MB; the last cache is not known here."
    precision, times = next(iter(values(config.precision))), held / cache
    size = f"Working set in {precision}: {held:.0f} MB, {times:.1f} times the last cache ({cache:.0f} MB)"
    if times > 1:
        return f"{size}. Memory order is worth more at larger sizes, which this does not show."
    larger = 2 ** math.ceil(math.log2(min(values(config.n)) * MORE_THAN_CACHE / times))
    takes = f" ({duration(seconds(replace(config, n=(larger,))))})" if is_known(config) else ""
    return (
        f"{size}. It fits, so that memory order is worth little, and the answer does not carry over to "
        f"larger systems; --n {larger} does not fit{takes}."
    )


def time_in_words(config: Any) -> str:
    """Say how long a job takes, or for which settings alone that is known."""
    if not is_known(config):
        return "how long is known for linked cells on a CPU in float64 only"
    return f"{duration(seconds(config))} on {BASIS}, the first time half a minute more to compile"
