"""Time a user's code on a data set in several memory orders, each time in a process of its own.

A process reads the data set, copies it into one order, runs the code once untimed, and then times it. The
addresses that the arrays get change a time by up to a third, so every round has new processes. CPU time is
that of the process, which other work on the machine affects less than wall time. `rounds` of
`experiments.measurement` takes all samples in one process, hence this loop.

    python -m experiments.advice.apart SET ORDERFILE

times a set as it is made, and in the order of a file of `Order.save` or of a `.npy` of the items, in one
process.
"""

from __future__ import annotations

import argparse
import gc
import sys
import time
from collections.abc import Callable, Iterator, Mapping
from dataclasses import asdict, dataclass
from pathlib import Path
from typing import Any

import numpy as np
import pandas as pd

import md
from experiments.advice.sets import SETS, Order, SetData, code_of, given, make, put, undo
from experiments.advice.sets.codes import OF_TRACE, ON_GPU, on_gpu
from experiments.advice.sets.permutations import check_order_of
from experiments.measurement.correctness import check_error
from experiments.processes.lifetime import temporary_folder
from experiments.processes.output import until_output_closes
from experiments.processes.separate_run import Task, measure_in_process
from sfc import checks

MODULE = "experiments.advice.apart"  # as a process imports it, also where it is the program
GIVEN = "given"  # the order in which a data set is made
TOLERANCE = 1e-9  # of the root mean square of a result: sums of float64 in another order
ON_WAY = 8  # runs that a GPU is given before one waits for their end
AT_LEAST = 0.2  # s that a sample takes; a shorter code is repeated


@dataclass(frozen=True)
class Job:
    """One sample, as words and numbers to be sent to another process.

    Attributes:
        data: file of `SetData.save`.
        order: file of an order; "" for the order given.
        use: of the code.
        library: of the code.
        result: file that the result is written to, in the order given; "" for none.
    """

    data: str
    order: str
    use: str
    library: str
    result: str = ""


def measure(job: Job) -> Iterator[dict]:
    """Put a data set into an order, run the code and time it.

    Args:
        job: the sample.

    Returns:
        One row: `cpu_ms` and `wall_ms` of a run of the code, the median of `runs`.

    Raises:
        OSError: a file that cannot be read.
        ValueError: an order that is none of the data, or an unknown code.
    """
    data = SetData.load(job.data)
    order = Order.load(job.order) if job.order else given(data)
    found, row = timed(data, order, job.use, job.library)
    if job.result:
        np.save(job.result, found)
    yield row


def timed(
    data: SetData, order: Order | np.ndarray, use: str, library: str
) -> tuple[np.ndarray, dict[str, float]]:
    """Time a user's code in this process on a copy of a data set in an order.

    Args:
        data: the data set.
        order: of its items, and perhaps of its cells.
        use: of the code.
        library: of the code.

    Returns:
        The result in the order given, and a row with `cpu_ms`, `wall_ms` and `runs`. They are
        medians; of code on a GPU both are wall time to the end of its work.

    Raises:
        TypeError, ValueError: an order that is none of the data, or an unknown code.
    """
    code, order = code_of(use, library), check_order_of(data, order)
    data = put(data, order)
    is_on_gpu = library in ON_GPU.values()
    data, end = (on_gpu(data), _end_of_gpu()) if is_on_gpu else (data, lambda: None)
    result: Any = code(data)  # compiles
    end()
    times: list[tuple[float, float]] = []  # wall and CPU time of each batch
    batch = ON_WAY if is_on_gpu else 1
    gc.disable()
    try:
        while sum(wall for wall, _ in times) < AT_LEAST:
            begin_wall, begin_cpu = time.perf_counter(), time.process_time()
            for _ in range(batch):
                code(data)
            end()
            times.append((time.perf_counter() - begin_wall, time.process_time() - begin_cpu))
    finally:
        gc.enable()
    wall, cpu = 1e3 * np.median(times, axis=0) / batch
    row = {"cpu_ms": wall if is_on_gpu else cpu, "wall_ms": wall, "runs": batch * len(times)}
    result = result.get() if is_on_gpu else result
    return result if use == OF_TRACE else undo(result, order), row


def _end_of_gpu() -> Callable[[], Any]:
    """Return a function that waits for all work of the GPU."""
    backend = md.backend.get("cuda")
    return lambda: backend.between(backend.mark(), backend.mark())


def check_result(name: str, found: np.ndarray, expected: np.ndarray) -> float:
    """Compare a result with that of the order given.

    Args:
        name: of the set and the order, for the message.
        found: (n, ...) in the order given.
        expected: (n, ...) of the order given.

    Returns:
        The largest difference over the root mean square of `expected`.

    Raises:
        WrongResultError: they differ by more than rounding, in shape, or are not numbers.
    """
    scale = float(np.sqrt(np.mean(np.square(expected)))) or 1.0
    is_alike = found.shape == expected.shape
    error = float(np.abs(found - expected).max(initial=0.0)) / scale if is_alike else np.inf
    remedy = "The order was applied wrongly: see whether all that refers to the items is renumbered"
    what = f"the result of {name} differs from that of the order given"
    return check_error(what, error, TOLERANCE, " of its root mean square", remedy)


def timed_apart(
    name: str,
    orders: Mapping[str, Order | np.ndarray],
    rounds: int = 3,
    *,
    n: int | None = None,
    seed: int = 0,
    library: str | None = None,
    data: SetData | None = None,
) -> pd.DataFrame:
    """Time the user's code of a set in several orders, in a process of its own for each sample.

    Each round takes every order once, in random order. Each result is compared with that of the order given
    before its time is kept.

    Args:
        name: of the set, in `SETS`.
        orders: name -> order of the items, and perhaps of the cells. "given", the order as made, is added.
        rounds: number of rounds.
        n: number of items; None for that of the set.
        seed: of the set, and of the turn in each round.
        library: of the code; None for that of the set.
        data: the set, if it is made already; else it is made.

    Returns:
        Columns `set`, `order`, `round`, `cpu_ms`, `wall_ms`, `runs`, in the order of the samples.

    Raises:
        TypeError, ValueError: an argument of a wrong class or out of range; an order that is none of the set.
        WrongResultError: a result differs from that of the order given.
        RunFailed: the code failed; its message has the reason.
        WorkerDied: a process was killed.
    """
    rounds = checks.integer("rounds", rounds, 1)
    data = make(name, n, seed) if data is None else data
    data_set = SETS[checks.word("name", name, SETS)]
    if GIVEN in orders:
        raise ValueError(f"orders has {GIVEN!r}; allowed: other names, since that is the order as made")
    library = data_set.library if library is None else library
    code_of(data_set.use, library)
    every = {GIVEN: given(data)} | {key: check_order_of(data, order) for key, order in orders.items()}
    rows = []
    with temporary_folder("apart-") as folder:
        data.save(folder / "data.npz")
        jobs = []
        for k, order in enumerate(every.values()):
            order.save(folder / f"{k}.npz")
            files = [str(folder / file) for file in ("data.npz", f"{k}.npz", "result.npy")]
            jobs.append(Job(files[0], files[1], data_set.use, library, files[2]))
        expected = None
        for number in range(rounds):
            turns = np.random.default_rng([seed, number]).permutation(len(jobs))
            if number == 0:  # the order given first, which others are compared with
                turns = np.concatenate([[0], turns[turns != 0]])
            for k in turns:
                row, found = _sample(jobs[k])
                expected = found if expected is None else expected
                key = list(every)[k]
                check_result(f"{name} in the order {key!r}", found, expected)
                rows.append({"set": name, "order": key, "round": number} | row)
    return pd.DataFrame(rows)


def _sample(job: Job) -> tuple[dict, np.ndarray]:
    """Measure a job in a new process; return its row and its result."""
    task = Task(0, MODULE, "measure", "Job", asdict(job), (), {})
    rows = [row for _, (rows, _) in measure_in_process([task]) for row in rows]
    found = np.load(job.result)
    Path(job.result).unlink()
    return rows[0], found


def medians(table: pd.DataFrame) -> pd.DataFrame:
    """Summarise the times of `timed_apart`.

    Args:
        table: of one or several sets.

    Returns:
        For each set and order the medians of `cpu_ms` and `wall_ms`, and `gain`: the CPU time of the order
        given over that of the order.
    """
    found = table.groupby(["set", "order"], sort=False)[["cpu_ms", "wall_ms"]].median().reset_index()
    before = found[found["order"] == GIVEN].set_index("set")["cpu_ms"]
    return found.assign(gain=found["set"].map(before) / found["cpu_ms"])


def main(arguments: list[str]) -> int:
    """Time a set in the order of a file, print its times, and return the exit status.

    Args:
        arguments: of the command line.
    """
    parser = argparse.ArgumentParser(
        prog="python -m experiments.advice.apart", description=(__doc__ or "").partition("\n")[0]
    )
    parser.add_argument("set", choices=SETS, metavar="SET", help=f"one of {', '.join(SETS)}")
    parser.add_argument("order", metavar="ORDERFILE", help="of Order.save, or a .npy of the items")
    parser.add_argument("--n", type=int, help="number of items (that of the set)")
    parser.add_argument("--seed", type=int, default=0, help="of the set (0)")
    asked = parser.parse_args(arguments)
    data_set = SETS[asked.set]
    try:
        data = make(asked.set, asked.n, asked.seed)
        order = check_order_of(data, Order.load(asked.order))
        expected, before = timed(data, given(data), data_set.use, data_set.library)
        found, row = timed(data, order, data_set.use, data_set.library)
        check_result(f"{asked.set} in the order of {asked.order}", found, expected)
    except (OSError, ValueError, TypeError) as error:
        print(f"error: {error}", file=sys.stderr)
        return 2
    for key, times in ((GIVEN, before), (asked.order, row)):
        print(f"{asked.set} {key}: {times['cpu_ms']:.3f} ms of CPU time, {times['wall_ms']:.3f} ms")
    return 0


if __name__ == "__main__":
    with until_output_closes():
        sys.exit(main(sys.argv[1:]))
