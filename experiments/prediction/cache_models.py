"""Predict the hit ratios of an access stream by the models of `sfc.cache`, at many capacities.

Capacities are numbers of particles. `block` is the model of [thesis]. `lru` is a fully associative cache with
one particle per line. `set_associative` models hardware: positions of 16 bytes (four float32) in lines of 128
bytes, 16 ways, so that its capacities are multiples of 128 particles.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence

import numpy as np

from sfc import cache, checks

MODELS = ("block", "lru", "set_associative")
BYTES, LINE, WAYS = 16, 128, 16
_SET = LINE * WAYS // BYTES  # particles


def predicted(
    stream: cache.AccessStream, models: Sequence[str], capacities: Sequence[int], miss_cost: float = 100.0
) -> Iterator[dict]:
    """Yield a row for each model and capacity: hit ratio, and speed-up over a cache without hits.

    Args:
        stream: the reads.
        models: some of `MODELS`.
        capacities: in particles, at least 1.
        miss_cost: time of a miss in units of a hit's.
    """
    in_lines = [capacity for capacity in capacities if capacity % _SET == 0]
    distances = cache.lru(stream) if "lru" in models else None
    loads = _loads(stream) if "set_associative" in models and in_lines else np.empty(0, np.int64)
    for model in models:
        for capacity in in_lines if model == "set_associative" else capacities:
            if model == "block":
                found = cache.block(stream, capacity)
            elif distances is not None and model == "lru":
                found = distances.hits(capacity)
            else:
                found = cache.set_associative(loads, capacity * BYTES, LINE, WAYS)
            speed_up = found.speed_up(miss_cost) if found.reads else np.nan
            row = {"model": model, "cache_particles": capacity}
            yield row | {"hit_ratio": found.ratio, "speed_up": speed_up}


def _loads(stream: cache.AccessStream) -> np.ndarray:
    """Return the addresses of the reads, of rows of four numbers."""
    readers = np.asarray(stream.readers)
    n = int(max(stream.reads.max(initial=0), readers.max(initial=0))) + 1
    return cache.addresses(stream, "aos4", 3, BYTES // 4, n)


def check_models(models: Sequence[str], capacities: Sequence[int]) -> None:
    """Check models and capacities.

    Raises:
        TypeError: no sequences of words and of integers.
        ValueError: an unknown model, or a capacity below 1.
    """
    for model in checks.sequence("model", models, "words"):
        checks.word("model", model, MODELS)
    for capacity in checks.sequence("--cache", capacities, "integers"):
        checks.integer("--cache", capacity, 1, unit="particles")
