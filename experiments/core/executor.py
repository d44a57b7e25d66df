"""Measure the cases of a sweep: in this process one after the other, in workers, or on a Dask cluster.

A case is sent to another process as words and numbers, and the experiment is imported there, so that nothing
depends on the memory of this process. The rows are the same wherever they are measured. Workers and cluster
are executors of `concurrent.futures`.
"""

import itertools
import multiprocessing
import sys
import threading
from collections.abc import Callable, Generator, Iterable, Iterator, Mapping
from concurrent import futures
from contextlib import closing, contextmanager
from dataclasses import asdict, dataclass, field
from typing import Any

import numba
import psutil

from experiments.core.settings import Case, Settings, UsageError
from experiments.processes.lifetime import prepare_worker, without_interrupts
from experiments.processes.separate_run import (
    Round,
    RunFailed,
    Task,
    WorkerDied,
    measure_in_process,
    rounds_with_numbers,
)
from sfc import checks

Measure = Callable[..., Iterable[Any]]  # of a Config, and of the first round where rows are times
SERIAL, PROCESSES = "serial", "processes"
WAIT = 30  # s, for the first worker of a cluster
MOST_WORKERS = 1024
_ONE_RUN = "--runs 1, which needs no other process"

_one_case_at_a_time = threading.Lock()  # threads of one process would share Numba's threads


@dataclass(frozen=True)
class Executor:
    """Place where cases are measured.

    Args:
        where: "serial", "processes", or the address of a Dask scheduler, such as "tcp://host:8786".
        workers: processes; 0 for as many as there are cores. Dask has its own.
        grammars: name -> text of the curves that were registered by file.

    Raises:
        TypeError: a number of workers of a wrong class.
        ValueError: one that is not allowed.
        UsageError: an unknown place, or Dask without its package.
    """

    where: str = SERIAL
    workers: int = 0
    grammars: Mapping[str, str] = field(default_factory=dict)

    def __post_init__(self):
        checks.integer("--workers", self.workers, 0, MOST_WORKERS, remedy="0 is one a core")
        if self.where not in (SERIAL, PROCESSES) and "://" not in self.where:
            raise UsageError(
                f"--executor {self.where}; allowed: {SERIAL}, {PROCESSES}, or the address of a Dask "
                "scheduler, such as tcp://host:8786"
            )
        if "://" in self.where:
            try:
                import distributed  # noqa: F401
            except ImportError as error:
                raise UsageError(
                    f"--executor {self.where} needs dask.distributed, which is not installed; in the "
                    "checkout: pip install -e '.[cluster]'"
                ) from error

    def check(self, measure: Measure, config: Settings) -> None:
        """Check that the experiment can be measured there, before the first case.

        Args:
            measure: of the experiment.
            config: the sweep.

        Raises:
            UsageError: workers cannot import it.
        """
        if self.where != SERIAL or has_process_per_run(config):
            self._names(measure)

    def measure(
        self,
        measure: Measure,
        todo: list[Case],
        begins: list[int] | None = None,
        process_per_run: bool = False,
    ) -> Generator[tuple[Case, Round], None, None]:
        """Measure cases, and yield their rows as they are finished; of a timed case round by round.

        Args:
            measure: function of the experiment, at the top level of its module.
            todo: the cases.
            begins: first missing round of each timed case; None for 0.
            process_per_run: whether each run of a timed experiment gets its own process.

        Returns:
            A case with rows and the number of their round; None for the last rows of the case.

        Raises:
            UsageError: an experiment that workers cannot import, no scheduler at the address, or one
                without workers.
            WorkerDied: a worker was killed.
            RunFailed: `measure` raised an error in another process.
            Exception: what `measure` raised in this one.
        """
        begun = [
            (case, (begin,) if case.config.CHANCE == "run" else ())
            for case, begin in zip(todo, begins or [0] * len(todo), strict=True)
        ]
        if self.where == SERIAL and not process_per_run:
            for case, begin in begun:
                yield from ((case, one) for one in rounds_with_numbers(measure(case.config, *begin)))
            return
        names, grammars = self._names(measure), dict(self.grammars)
        by_number = {case.number: case for case in todo}
        tasks = [
            Task(case.number, *names, type(case.config).__qualname__, asdict(case.config), begin, grammars)
            for case, begin in begun
        ]
        if process_per_run:
            for _, run in itertools.groupby(tasks, key=lambda task: by_number[task.number].place["run"]):
                with closing(measure_in_process(list(run))) as results:
                    yield from ((by_number[number], one) for number, one in results)
            return
        with self._processes(len(todo)) if self.where == PROCESSES else self._cluster() as pool:
            with without_interrupts():
                given = {pool.submit(_measure_in_worker, task): by_number[task.number] for task in tasks}
            for done in futures.as_completed(given):
                yield from ((given[done], one) for one in done.result())

    @contextmanager
    def _processes(self, most: int) -> Iterator[futures.Executor]:
        """Start workers; an error ends them in the midst of their cases, as the executor itself does not."""
        cores = psutil.cpu_count(logical=False) or 1
        workers = min(self.workers or cores, max(1, most))
        others = set(multiprocessing.active_children())
        with futures.ProcessPoolExecutor(
            workers, multiprocessing.get_context("spawn"), _prepare_process, (max(1, cores // workers),)
        ) as pool:
            try:
                yield pool
            except BaseException as error:
                pool.shutdown(wait=False, cancel_futures=True)
                for process in set(multiprocessing.active_children()) - others:
                    process.terminate()
                if isinstance(error, futures.BrokenExecutor):
                    raise WorkerDied(f"{error}; fewer --workers take less memory") from error
                raise

    @contextmanager
    def _cluster(self) -> Iterator[futures.Executor]:
        """Connect to the scheduler; an error cancels the cases that are not finished."""
        from distributed import Client, KilledWorker

        try:
            client = Client(self.where, timeout="10s", set_as_default=False)
        except OSError as error:
            raise UsageError(
                f"--executor {self.where}: {error}; start one there with `dask scheduler`, and workers with "
                "`dask worker`"
            ) from error
        with client:
            try:
                client.wait_for_workers(1, timeout=WAIT)
            except TimeoutError as error:
                raise UsageError(
                    f"--executor {self.where}: no worker came within {WAIT} s; allowed: a scheduler with "
                    f"workers; start one with `dask worker {self.where}`"
                ) from error
            pool = client.get_executor(pure=False)
            try:
                yield pool
            except (KilledWorker, futures.CancelledError) as error:
                raise WorkerDied(f"{error}; see the logs of the workers") from error
            finally:
                pool.shutdown(wait=False)

    def _names(self, measure: Measure) -> tuple[str, str]:
        """Return the names of module and function, by which another process imports the experiment.

        Raises:
            UsageError: it has none.
        """
        name: str | None = measure.__module__
        if name == "__main__":
            spec = sys.modules["__main__"].__spec__
            name = spec.name if spec is not None else None
        if name is None or "<" in measure.__qualname__:
            remedy = _ONE_RUN if self.where == SERIAL else f"--executor {SERIAL}"
            raise UsageError(
                f"{measure.__qualname__} cannot be imported by workers; run the experiment as "
                f"python -m experiments.<name>, or take {remedy}"
            )
        return name, measure.__qualname__


def has_process_per_run(config: Settings) -> bool:
    """Return whether each run of a sweep gets its own process.

    Args:
        config: the sweep.
    """
    return config.CHANCE == "run" and vars(config)["runs"] > 1


def _prepare_process(threads: int) -> None:
    prepare_worker()
    every: int = numba.config.NUMBA_NUM_THREADS  # type: ignore[attr-defined]  # set when numba is imported
    numba.set_num_threads(min(threads, every))


def _measure_in_worker(task: Task) -> list[Round]:
    """Measure a case in a worker, and return its rounds.

    Raises:
        RunFailed: `measure` raised an error.
    """
    with _one_case_at_a_time:
        try:
            return list(task.rounds())
        except Exception as error:
            raise RunFailed.from_error(error) from None
