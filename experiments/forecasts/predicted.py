"""Forecasts of the launches of a drawn gas in each of its memory orders, on some machines."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from typing import Any

import numpy as np

import md
from experiments.loads import step_loads
from experiments.loads.force import StepLoads
from experiments.loads.index import gather_loads, scatter_loads, spmv_loads
from experiments.loads.lists import verlet_loads
from experiments.prediction.drawn_gases import Gas, reads_of
from experiments.prediction.foreseen_systems import simulations
from experiments.prediction.index_cases import KINDS, index_case
from experiments.results.baselines import SHUFFLED
from sfc.cache import Fitted, LoadStream, Machine
from sfc.cache.forecast import foresee_on

LARGE = 2**21  # particles from which launches before leave little in the cache, but for those of verlet
# Time of a round in ns, by kernel. Fitted to times and gains of `SEEN` on an H100, and of the first draw on
# an H100 and an H200 (without gases of more than 2^23; flocks and wide_bvh to those of `SEEN` alone). Gather
# waits for the caches alone.
ROUND = {
    "linked": 370.0, "scattered": 185.0, "coherent": 360.0, "verlet": 330.0, "wide_bvh": 950.0,
    "boids": 210.0, "gather": 1.0, "scatter": 400.0, "spmv": 127.0,
}  # fmt: skip
# Fitted to all of these times together; `held` to the bytes that an H100 and an H200 counted in large gases.
SHARED = Fitted()


def fitted_for(kernel: str) -> Fitted:
    """Return the fitted numbers of a kernel: its own time of a round, and what all share."""
    return SHARED._replace(round=ROUND[kernel])


def index_streams(gas: Gas, seed: int) -> Iterator[tuple[str, StepLoads]]:
    """Make the streams of a kernel that takes elements by an index, for each memory order."""
    for name in gas.orderings:
        found = index_case(gas.kernel, gas.n, reads_of(gas.filling_fraction), name, seed)
        yield name, StepLoads(index_stream(gas.kernel, found, gas.precision), [])


def index_stream(kind: str, found: Any, precision: str) -> LoadStream:
    """Make the stream of a kernel that takes elements by an index or a matrix (`index_case`)."""
    if kind == "spmv":
        return spmv_loads(found.astype(precision))
    make = gather_loads if kind == "gather" else scatter_loads
    return make(found, np.dtype(precision).itemsize)


def foreseen(gas: Gas, machines: Sequence[str], seed: int) -> Iterator[dict[str, Any]]:
    """Foresee the launch of each memory order of a gas.

    Args:
        gas: kernel, size and orders.
        machines: names of chips, or files (`sfc.cache.Machine.read`).
        seed: of the particles.

    Returns:
        A row for each order and machine: `ordering`, `machine`, `time_us`; for each item `sectors`, `missed`
        and `bytes` with `_error`, the standard error of the sample, and `written`; and `rounds` of a warp.
    """
    chips = {name: Machine.read(name) for name in machines}
    streams = (
        index_streams(gas, seed)
        if gas.kernel in KINDS
        else ((name, loads_of(name, one)) for name, one in simulations(gas, "cpu", seed))
    )
    for name, loads in streams:
        for machine, row in forecasts(loads, gas.kernel, gas.n, chips, seed):
            yield {"ordering": name, "machine": machine} | row


def loads_of(ordering: str, simulation: md.Simulation) -> StepLoads:
    """Make the streams of a simulation in a memory order; over shuffled memory lists come without a sort."""
    if ordering == SHUFFLED and simulation.config.search.name == "verlet":
        return verlet_loads(simulation)
    return step_loads(simulation)


def forecasts(
    loads: StepLoads, kernel: str, n: int, chips: Mapping[Any, Machine], seed: int
) -> Iterator[tuple[Any, dict[str, float]]]:
    """Foresee a launch on some chips.

    Args:
        loads: of the launch, and of those before it.
        kernel: word of it, one of `ROUND`.
        n: number of items for which numbers are given.
        chips: machines, by any names.
        seed: of the sample.

    Returns:
        For each chip its name and a row: the columns of `foreseen` but the first two.
    """
    stream, before = loads
    if n >= LARGE:
        # Steps of verlet go back and forth through memory.
        before = before[:1] if kernel == "verlet" else []
    found = foresee_on(stream, [*chips.values()], fitted_for(kernel), before, seed=seed)
    per_item = stream.items / n
    for name, forecast in zip(chips, found, strict=True):
        row = {"time_us": forecast.time}
        for what in ("sectors", "missed", "bytes"):
            mean, error = getattr(forecast, what)
            row |= {what: mean * per_item, f"{what}_error": error * per_item}
        yield name, row | {"written": forecast.written * per_item, "rounds": forecast.rounds.mean}
