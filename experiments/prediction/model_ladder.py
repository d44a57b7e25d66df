"""Earlier models of memory on the cases of a forecast: one reader after another, partners' positions alone.

Each gives a number that is to rank the memory orders of a gas as their times do: a miss ratio, or sectors.
The further rungs are the forecast's own: sectors of warps, first cache, bytes, time.
"""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

import numpy as np

from experiments.prediction.drawn_gases import Gas
from experiments.prediction.foreseen_systems import simulations
from sfc import cache
from sfc.compile import kernel

KERNELS = ("linked", "scattered")  # of which the memory order is free
MOST = 2**19  # particles: distances of reads take 10 s at that size
BLOCK = 320  # particles of a block in [thesis]
L1, L2, SECTOR = 2**18, 52_428_800, 32  # bytes


def model_ladder(gas: Gas, seed: int) -> Iterator[dict[str, Any]]:
    """Return a row for each memory order of a gas of `KERNELS` with up to `MOST` particles.

    Args:
        gas: kernel, size and orders.
        seed: of the particles, as that of the forecast.

    Returns:
        `ordering`; `block`, `lru_l1` and `lru_l2`, shares of reads that miss in a block of [thesis] and in
        caches of the size of a first and a second cache; and `reader_sectors`, different sectors of the
        positions that a particle reads.
    """
    if gas.kernel not in KERNELS or gas.n > MOST:
        return
    width = 4 * np.dtype(gas.precision).itemsize
    for name, simulation in simulations(gas, "cpu", seed):
        stream = simulation.accesses()
        distances = cache.lru(stream)
        yield {
            "ordering": name,
            "block": 1 - cache.block(stream, BLOCK).ratio,
            "lru_l1": 1 - distances.hits(L1 // width).ratio,
            "lru_l2": 1 - distances.hits(L2 // width).ratio,
            "reader_sectors": _different(stream.offsets, stream.reads * width // SECTOR) / gas.n,
        }


@kernel
def _different(offsets, sectors):
    # Number of different sectors of each reader, of all readers.
    count = 0
    for reader in range(len(offsets) - 1):
        for k in range(offsets[reader], offsets[reader + 1]):
            is_new = True
            for before in range(offsets[reader], k):
                if sectors[before] == sectors[k]:
                    is_new = False
                    break
            count += is_new
    return count
