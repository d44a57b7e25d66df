"""Kernels on a CPU, in memory orders: what a core is foreseen to take for them, and their times.

Each work is repeated on the same particles, which stay where they are. It is timed on two copies of its
arrays, each in memory of its own: where they lie changes times too.
"""

from __future__ import annotations

import time
from collections.abc import Callable, Iterator, Sequence
from typing import Any, NamedTuple

import numba
import numpy as np

import md
from experiments.loads.cores import force_stream
from experiments.loads.cores.index import gather_stream, scatter_stream, spmv_stream
from experiments.measurement.correctness import check_error, check_force_rows, require_forces
from experiments.measurement.kernels.index_kernels import Scatter
from experiments.prediction.drawn_gases import Gas, reads_of
from experiments.prediction.foreseen_systems import CELL_ORDERED, moved, states_of
from experiments.prediction.index_cases import KINDS, index_case
from experiments.prediction.memory_orders import Order, order_of, slots
from experiments.results.baselines import SHUFFLED
from md.particles.cell_grid import CellGrid
from sfc.cache.core import CoreFitted, CoreForecast, CoreStream, Processor, foresee

# Time of a load that the first cache serves, over its latency, by kernel. Fitted to times and, above all,
# gains of `SEEN_ON_CPU` on an EPYC (Zen 4); that of verlet is too long for its times, so that its gains are
# right.
LOAD = {
    "linked": 1.553, "scattered": 0.984, "coherent": 1.237, "verlet": 1.258, "gather": 0.142, "spmv": 0.189,
    "scatter": 0.074,
}  # fmt: skip
SHARED = CoreFitted()  # fitted to all of these together
COPIES = 2
TOUCHING = 20  # steps after which spheres touch: a gas is made without contacts
ROUNDS = 5
LEAST = 0.05  # s of a sample


class Work(NamedTuple):
    """A kernel on the CPU with its arrays.

    Attributes:
        run: runs it once.
        check: compares its result after the first run; raises `WrongResultError`.
        stream: makes its loads.
        items: number of them.
    """

    run: Callable[[], Any]
    check: Callable[[], Any]
    stream: Callable[[], CoreStream]
    items: int


def works(gas: Gas, seed: int, copies: int = 1) -> Iterator[tuple[str, list[Work]]]:
    """Make the kernel of a gas in each memory order, some times over.

    Args:
        gas: kernel, size and orders; its particles have taken `TOUCHING` steps before.
        seed: of the particles.
        copies: of each, with arrays of their own.
    """
    if gas.kernel in KINDS:
        for name in gas.orderings:
            found = index_case(gas.kernel, gas.n, reads_of(gas.filling_fraction), name, seed)
            yield name, [index_work(gas.kernel, found, gas.precision, seed) for _ in range(copies)]
        return
    sorts = gas.kernel in CELL_ORDERED
    orders = {name: Order(SHUFFLED) if sorts else order_of(name) for name in gas.orderings}
    states = states_of(gas, {order.steps for order in orders.values()}, "cpu", seed)
    common = common_of(gas.precision)
    touching = {
        count: moved(now, md.scenes.BENCHMARK_LAW, common | {"fused": True}, TOUCHING)
        for count, (_, now) in states.items()
    }
    for name, order in orders.items():
        search: Any = CELL_ORDERED[gas.kernel](cell_order=name) if sorts else gas.kernel
        start = states[order.steps][0] if order.steps else touching[0]
        grid = CellGrid(
            start.box, md.scenes.BENCHMARK_LAW.cutoff, np.dtype(gas.precision), md.backend.get("cpu")
        )
        state = touching[order.steps].take(slots(order, start.pos, start.id, grid, seed))
        yield name, [_force(state, search, gas.precision) for _ in range(copies)]


def common_of(precision: str) -> dict[str, Any]:
    """Return the arguments that the simulations of a precision share."""
    return {"dt": md.scenes.BENCHMARK_DT, "precision": precision, "backend": "cpu", "allow_overlap": True}


def _force(state: md.State, search: Any, precision: str) -> Work:
    """Make the forces on the particles of a state, not fused with steps."""
    common = common_of(precision)
    one = md.Simulation(state, md.scenes.BENCHMARK_LAW, search=search, **common)
    one.search.prepare(False)
    one.search.update(force=True)
    out = np.full_like(one.system.particles.pos, np.nan)

    def check() -> None:
        other = "linked" if one.config.search.name != "linked" else "scattered"
        expected = md.Simulation(one.state, one.law, search=other, **common).forces()
        expected = require_forces(expected, one.config.search.name)
        check_force_rows(out[np.argsort(one.system.particles.id)], expected, precision)

    return Work(lambda: one.search.force(one.law, out), check, lambda: force_stream(one), len(state))


def index_work(kind: str, found: Any, precision: str, seed: int) -> Work:
    """Make a kernel without particles.

    Args:
        kind: "gather", "scatter" or "spmv".
        found: its index or matrix (`index_case`), which is copied.
        precision: "float32" or "float64".
        seed: of the numbers.
    """
    return {"gather": _gather, "scatter": _scatter, "spmv": _spmv}[kind](found, precision, seed)


def _gather(index: np.ndarray, precision: str, seed: int) -> Work:
    """Make numpy's gather, which casts the index to 64 bits each time."""
    x = np.random.default_rng(seed).random(int(index.max()) + 1).astype(precision)
    index, y = index.copy(), np.empty(index.shape, precision)

    def check() -> None:
        check_error("a gather differs from that row by row", int((y[::97] != x[index[::97]]).sum()), 0, "")

    def run() -> None:
        np.take(x, index, out=y, mode="clip")  # other modes copy y

    return Work(run, check, lambda: gather_stream(index, x.itemsize), len(index))


def _scatter(index: np.ndarray, precision: str, seed: int) -> Work:
    """Make a compiled loop that adds values to the sums of cells, on one thread."""
    size = np.dtype(precision).itemsize
    one = Scatter(md.backend.get("cpu"), index, size, seed)
    return Work(one.launch, one.check, lambda: scatter_stream(index, size), len(index))


def _spmv(matrix: Any, precision: str, seed: int) -> Work:
    """Make scipy's product of a matrix in rows and a vector."""
    matrix = matrix.astype(precision)
    x = np.random.default_rng(seed).random(matrix.shape[1]).astype(precision)
    found = [np.zeros(matrix.shape[0])]

    def run() -> None:
        found[0] = matrix @ x

    def check() -> None:
        rows = np.arange(0, matrix.shape[0], 97)
        ends = zip(matrix.indptr[rows], matrix.indptr[rows + 1], strict=True)
        sums = [float(matrix.data[a:b].astype(float) @ x[matrix.indices[a:b]]) for a, b in ends]
        wrong = ~np.isclose(found[0][rows], sums, rtol=1e-5 if precision == "float32" else 1e-12)
        check_error("a product with a matrix differs from that row by row", int(wrong.sum()), 0, "")

    return Work(run, check, lambda: spmv_stream(matrix), matrix.shape[0])


def foreseen_on_cpu(gas: Gas, processors: Sequence[str], seed: int) -> Iterator[dict[str, Any]]:
    """Foresee the kernel of a gas in each memory order, on CPUs.

    Args:
        gas: kernel, size and orders.
        processors: names of CPUs, or files (`sfc.cache.core.Processor.read`).
        seed: of the particles.

    Returns:
        A row for each order and CPU: `ordering`, `machine`, `time_us` of all items; for each item `loads`,
        and `second`, `last` and `memory`, lines that these serve, with `_random` those of them in no order.
    """
    chips = {name: Processor.read(name) for name in processors}
    for name, (work,) in works(gas, seed):
        for chip, processor in chips.items():
            found = foresee_work(work, gas.kernel, processor)
            row: dict[str, Any] = {"ordering": name, "machine": chip, "loads": found.lines.loads}
            row["time_us"] = work.items * found.time / 1e3
            for level in ("second", "last", "memory"):
                served = getattr(found.lines, level)
                row |= {level: served.mean, f"{level}_random": served.random}
            yield row


def foresee_work(work: Work, kernel: str, processor: Processor) -> CoreForecast:
    """Foresee a kernel on a CPU, with the fitted numbers of its name."""
    return foresee(work.stream(), processor, SHARED._replace(load=LOAD[kernel]))


def timed_on_cpu(gas: Gas, seed: int, threads: int = 1) -> Iterator[dict[str, Any]]:
    """Time the kernel of a gas in each memory order in turns, on some threads of this CPU.

    Before that its results are compared with those of other code, and a sample is not kept.

    Args:
        gas: kernel, size and orders.
        seed: of the particles.
        threads: that work at the same time; numpy and scipy take one.

    Returns:
        A row for each order, copy and round: `ordering`, `copy`, `round`, and `time_us`, the median of some
        runs.
    """
    prepared = {}
    for name, copies in works(gas, seed, COPIES):  # on all threads
        for copy, work in enumerate(copies):
            work.run()
            work.check()
            prepared[name, copy] = work.run, repeats_of(work.run, threads)
    generator = np.random.default_rng(seed)
    for turn in range(ROUNDS):
        for k in generator.permutation(len(prepared)):
            name, copy = [*prepared][k]
            found = time_of(*prepared[name, copy], threads)
            yield {"ordering": name, "copy": copy, "round": turn, "time_us": 1e6 * found}


def repeats_of(run: Callable[[], Any], threads: int = 1) -> int:
    """Return the number of runs of a sample of `LEAST` s, from 3 to 50, by the time of one (`time_of`)."""
    return max(3, min(50, int(np.ceil(LEAST / time_of(run, 1, threads)))))


def time_of(run: Callable[[], Any], repeats: int, threads: int = 1) -> float:
    """Return the median time of some runs, in s.

    Args:
        run: that is timed.
        repeats: number of runs.
        threads: that Numba takes.
    """
    before, times = numba.get_num_threads(), []
    numba.set_num_threads(threads)
    try:
        for _ in range(repeats):
            began = time.perf_counter()
            run()
            times.append(time.perf_counter() - began)
    finally:
        numba.set_num_threads(before)
    return float(np.median(times))
