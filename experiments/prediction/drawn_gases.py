"""Cases on which forecasts are judged: drawn so that few gases have most pairs of properties.

Each property of a gas (kernel, size, filling, precision) meets each value of another property in as many of
the gases as can be; and so do its memory orders with its kernel and size. Nothing is left out afterwards.
"""

from __future__ import annotations

import itertools
from collections.abc import Iterable, Iterator, Mapping, Sequence
from functools import lru_cache
from typing import Any, NamedTuple

import numpy as np

from experiments.results.baselines import LATTICE, SHUFFLED

DRAWS = {"drawn": 61, "second": 62}  # seeds: of the gases that judge the first model, and the second
GASES = 34
CPU_SEED, CPU_GASES = 63, 16  # of the gases that judge forecasts for CPUs
TRIED = 200  # gases that are drawn for each that is taken
MOST_ORDERS, LARGE, FEWER = 7, 2**22, 5  # orders of a gas, and of one of so many particles or more
CURVES = ("hilbert", "morton", "peano", "gray", "gilbert")
POINT_CURVES = ("hilbert", "morton", "peano", "gray", "skilling")
CELLS = (*CURVES, "row", "tiled")  # orders of cells
WINDOWS = tuple(f"window {2**k}" for k in range(6, 19, 2))
AGES = tuple(f"aged {steps}" for steps in (100, 500, 2000, 8000, 20000))
FREE = (*CELLS, *WINDOWS, *AGES, "strided", "tiled_strided")
PROPERTIES: dict[str, tuple[Any, ...]] = {
    "kernel": ("linked", "scattered", "coherent", "verlet", "wide_bvh", "boids", "gather", "scatter", "spmv"),
    "n": tuple(2**k for k in range(15, 25)),
    "filling_fraction": (0.02, 0.05, 0.1, 0.2, 0.35, 0.5),
    "precision": ("float32", "float64"),
}
# kernel -> (baselines, other orders). Searches that sort particles have an order of their cells alone.
ORDERS = {
    "linked": ((SHUFFLED, LATTICE), FREE), "scattered": ((SHUFFLED, LATTICE), FREE),
    "coherent": (("random",), CELLS), "verlet": (("random",), CELLS), "wide_bvh": ((), ("hilbert", "morton")),
    "boids": ((SHUFFLED,), (*CELLS, *WINDOWS)), "gather": ((SHUFFLED, LATTICE), (*POINT_CURVES, *WINDOWS)),
    "scatter": ((SHUFFLED, LATTICE), (*POINT_CURVES, *WINDOWS)),
    "spmv": ((SHUFFLED, LATTICE), (*POINT_CURVES, *WINDOWS)),
}  # fmt: skip
MOST = {  # particles or items
    "linked": 2**23, "scattered": 2**22, "coherent": 2**22, "wide_bvh": 2**21, "boids": 2**18, "spmv": 2**20,
    "gather": 2**20, "scatter": 2**22,
}  # fmt: skip
MOST_STEPS = 2**34  # steps of an aged gas times its particles


class Gas(NamedTuple):
    """Gas, or another set of items, in several memory orders.

    Attributes:
        kernel: of which a launch is foreseen.
        n: number of particles.
        filling_fraction: of the box; of other items it stands for reads (`reads_of`).
        precision: "float32" or "float64".
        orderings: names of `experiments.prediction.memory_orders`; first the baselines.
    """

    kernel: str
    n: int
    filling_fraction: float
    precision: str
    orderings: tuple[str, ...]


SEEN = tuple(  # the fitted numbers saw these; no drawn one has their size and filling
    Gas(kernel, n, filling_fraction, precision, orderings)
    for kernel, orderings in {
        "linked": (SHUFFLED, "hilbert", "row", "window 1024"), "scattered": (SHUFFLED, "hilbert", "row"),
        "coherent": ("random", "hilbert", "row"), "verlet": ("random", "tiled", "hilbert"),
        "wide_bvh": ("hilbert", "morton"), "boids": (SHUFFLED, "hilbert"), "gather": (SHUFFLED, "hilbert"),
        "scatter": (SHUFFLED, "hilbert"), "spmv": (SHUFFLED, "hilbert"),
    }.items()
    for n, filling_fraction, precision in ((3 * 2**17, 0.15, "float32"), (3 * 2**16, 0.15, "float64"))
)  # fmt: skip

LISTS = tuple(  # what an order is worth to a search that sorts by itself, and to lists over unsorted memory
    Gas("verlet", n, filling_fraction, "float32", (SHUFFLED, "random", "hilbert", "row", "tiled"))
    for n in (2**17, 2**19, 2**21, 2**22) for filling_fraction in (0.05, 0.2, 0.4)
)  # fmt: skip

ON_CPU = "linked", "scattered", "coherent", "verlet", "gather", "spmv"  # kernels
SEEN_ON_CPU = tuple(  # the numbers fitted for CPUs saw these
    Gas(kernel, n, 0.15, precision, orderings)
    for kernel, orderings in {
        "linked": (SHUFFLED, LATTICE, "hilbert", "row", "window 1024", "window 32768"),
        "scattered": (SHUFFLED, "hilbert", "row", "window 1024"), "coherent": ("random", "hilbert", "row"),
        "verlet": ("random", "hilbert", "row"), "gather": (SHUFFLED, "hilbert", "window 4096"),
        "spmv": (SHUFFLED, "hilbert", "window 4096"),
    }.items()
    for n, precision in (
        (3 * 2**14, "float64"), (3 * 2**16, "float32"), (3 * 2**17, "float64"), (3 * 2**18, "float32"),
    )
) + tuple(
    Gas("scatter", n, filling_fraction, precision, (SHUFFLED, LATTICE, "hilbert", "window 64", "window 4096"))
    for n, filling_fraction, precision in (
        (3 * 2**14, 0.5, "float64"), (3 * 2**16, 0.15, "float32"), (3 * 2**18, 0.5, "float32"),
        (3 * 2**20, 0.02, "float64"),
    )
)  # fmt: skip


def cpu_gases() -> tuple[Gas, ...]:
    """Return the gases that judge forecasts for CPUs."""
    return drawn_gases(ON_CPU, CPU_SEED, CPU_GASES, tuple(2**k for k in range(15, 22)))


def reads_of(filling_fraction: float) -> int:
    """Return the reads of an item of a kernel without particles."""
    return {0.02: 2, 0.05: 4, 0.1: 6, 0.15: 7, 0.2: 8, 0.35: 12, 0.5: 16}[filling_fraction]


@lru_cache
def drawn_gases(
    kernels: Sequence[str] | None = None,
    seed: int = DRAWS["drawn"],
    count: int = GASES,
    sizes: Sequence[int] | None = None,
) -> tuple[Gas, ...]:
    """Draw the gases.

    Args:
        kernels: that there are; None for all of `PROPERTIES`.
        seed: of the draw.
        count: number of gases.
        sizes: numbers of particles that there are; None for all.
    """
    generator = np.random.default_rng(seed)
    given = {"kernel": kernels, "n": sizes}
    values = PROPERTIES | {name: tuple(some) for name, some in given.items() if some is not None}
    covered: set[tuple] = set()
    found = []
    for _ in range(count):
        drawn = [
            {name: some[generator.integers(len(some))] for name, some in values.items()} for _ in range(TRIED)
        ]
        allowed = [one for one in drawn if one["n"] <= MOST.get(one["kernel"], 2**24)]
        best = max(allowed, key=lambda one: len(set(_pairs(one)) - covered))
        covered |= set(_pairs(best))
        found.append(Gas(**best, orderings=_orders(best, covered, generator)))
    return tuple(found)


def _orders(gas: Mapping[str, Any], covered: set[tuple], generator: np.random.Generator) -> tuple[str, ...]:
    """Draw the orders of a gas; those that its kernel and its size have not met first."""
    baselines, others = ORDERS[gas["kernel"]]
    room = (FEWER if gas["n"] >= LARGE else MOST_ORDERS) - len(baselines)
    possible = [one for one in others if is_possible(one, gas["n"])]
    shuffled = [possible[k] for k in generator.permutation(len(possible))]
    taken = sorted(shuffled, key=lambda one: sum((gas[name], one) in covered for name in ("kernel", "n")))[
        :room
    ]
    covered |= {(gas[name], order) for name in ("kernel", "n") for order in taken}
    return (*baselines, *taken)


def is_possible(order: str, n: int) -> bool:
    """Whether windows leave several, and ages do not take too long."""
    kind, _, number = order.partition(" ")
    most = {"window": n // 4, "aged": MOST_STEPS // n}.get(kind)
    return most is None or int(number) <= most


def _pairs(gas: Mapping[str, Any]) -> Iterator[tuple]:
    return itertools.combinations(sorted(gas.items()), 2)


def share_of_pairs(gases: Iterable[Gas], kernels: Sequence[str]) -> float:
    """Return the share of all allowed pairs of properties that some gas has."""
    values = PROPERTIES | {"kernel": tuple(kernels)}
    every = set()
    for one in itertools.product(*values.values()):
        gas = dict(zip(values, one, strict=True))
        if gas["n"] <= MOST.get(gas["kernel"], 2**24):
            every |= set(_pairs(gas))
    own = {pair for gas in gases for pair in _pairs({name: getattr(gas, name) for name in values})}
    return len(own & every) / len(every)
