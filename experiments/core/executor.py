"""Measure the cases of a sweep: in this process one after the other, in workers, or on a Dask cluster.

A case is sent to another process as words and numbers, and the experiment is imported there, so that nothing
depends on the memory of this process. The rows are the same wherever they are measured.
"""

import importlib
import itertools
import multiprocessing
import sys
import threading
from collections.abc import Callable, Generator, Iterable, Mapping
from concurrent import futures
from contextlib import closing
from dataclasses import dataclass, fields
from functools import partial
from typing import Any

import numba
import psutil

import sfc
from experiments.core.settings import Case, Settings, UsageError
from experiments.core.timed import TimedSettings
from experiments.processes.lifetime import prepare_worker, without_interrupts
from experiments.processes.separate_run import (
    CaseMessage,
    Round,
    RunFailed,
    WorkerDied,
    measure_in_process,
    rounds_with_numbers,
)
from sfc import checks

_PlainCase = tuple[str, dict[str, Any]]  # name of a Config's class, and its fields
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
        TypeError: an argument of a wrong class.
        ValueError: a number of workers that is not allowed.
        UsageError: an unknown place, or Dask without its package.
    """

    where: str = SERIAL
    workers: int = 0
    grammars: Mapping[str, str] | None = None

    def __post_init__(self):
        object.__setattr__(self, "where", checks.text("--executor", self.where))
        workers = checks.integer("--workers", self.workers, 0, MOST_WORKERS, remedy="0 is one a core")
        object.__setattr__(self, "workers", workers)
        if self.grammars is not None:
            checks.instance("grammars", self.grammars, Mapping, "a mapping of names to texts, or None")
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
        if self.where != SERIAL:
            _importable_module(measure, f"--executor {SERIAL}")
        elif has_process_per_run(config):
            _importable_module(measure, _ONE_RUN)

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
        begins = begins or [0] * len(todo)
        if process_per_run:
            yield from self._measure_run_by_run(measure, todo, begins)
            return
        if self.where == SERIAL:
            for case, begin in zip(todo, begins, strict=True):
                if case.config.CHANCE == "run":
                    yield from ((case, one) for one in rounds_with_numbers(measure(case.config, begin)))
                else:
                    yield case, (list(measure(case.config)), None)
            return
        work = partial(
            _measure_in_worker,
            _importable_module(measure, f"--executor {SERIAL}"),
            measure.__qualname__,
            dict(self.grammars or {}),
        )
        measure_elsewhere = (
            self._measure_in_processes if self.where == PROCESSES else self._measure_on_cluster
        )
        with closing(measure_elsewhere(work, todo)) as results:
            for case, rows in results:
                yield case, (rows, None)

    def _measure_run_by_run(
        self, measure: Measure, todo: list[Case], begins: list[int]
    ) -> Generator[tuple[Case, Round], None, None]:
        """Measure the cases of each run in a new process, one run after the other."""
        by_number = {case.number: case for case in todo}
        messages = [
            CaseMessage(case.number, *_as_plain(case), begin)
            for case, begin in zip(todo, begins, strict=True)
        ]
        for _, run in itertools.groupby(messages, key=lambda message: by_number[message.number].place["run"]):
            where = _importable_module(measure, _ONE_RUN), measure.__qualname__, dict(self.grammars or {})
            with closing(measure_in_process(*where, list(run))) as results:
                for number, one in results:
                    yield by_number[number], one

    def _measure_in_processes(
        self, work: Callable[[_PlainCase], list[dict]], todo: list[Case]
    ) -> Generator[tuple[Case, list[dict]], None, None]:
        cores = psutil.cpu_count(logical=False) or 1
        workers = min(self.workers or cores, max(1, len(todo)))
        others = set(multiprocessing.active_children())
        with futures.ProcessPoolExecutor(
            workers, multiprocessing.get_context("spawn"), _prepare_process, (max(1, cores // workers),)
        ) as pool:
            try:
                with without_interrupts():
                    given = {pool.submit(work, _as_plain(case)): case for case in todo}
                for done in futures.as_completed(given):
                    yield given[done], done.result()
            except BaseException as error:
                pool.shutdown(wait=False, cancel_futures=True)
                for process in set(multiprocessing.active_children()) - others:
                    process.terminate()
                if isinstance(error, futures.BrokenExecutor):
                    raise WorkerDied(f"{error}; fewer --workers take less memory") from error
                raise

    def _measure_on_cluster(
        self, work: Callable[[_PlainCase], list[dict]], todo: list[Case]
    ) -> Generator[tuple[Case, list[dict]], None, None]:
        from distributed import Client, KilledWorker, as_completed

        try:
            client = Client(self.where, timeout="10s", set_as_default=False)
        except OSError as error:
            raise UsageError(
                f"--executor {self.where}: {error}; start one there with `dask scheduler`, and workers with "
                "`dask worker`"
            ) from error
        with client, client.as_current():
            try:
                client.wait_for_workers(1, timeout=WAIT)
            except TimeoutError as error:
                raise UsageError(
                    f"--executor {self.where}: no worker came within {WAIT} s; allowed: a scheduler with "
                    f"workers; start one with `dask worker {self.where}`"
                ) from error
            given = {client.submit(work, _as_plain(case), pure=False): case for case in todo}
            try:
                for done in as_completed(given):
                    yield given[done], done.result()
            except BaseException as error:
                client.cancel(list(given))
                if isinstance(error, (KilledWorker, futures.CancelledError)):
                    raise WorkerDied(f"{error}; see the logs of the workers") from error
                raise


def has_process_per_run(config: Settings) -> bool:
    """Return whether each run of a sweep gets its own process.

    Args:
        config: the sweep.
    """
    return isinstance(config, TimedSettings) and config.runs > 1


def _importable_module(measure: Measure, remedy: str) -> str:
    """Return the name under which a worker can import the experiment.

    Args:
        measure: of the experiment.
        remedy: a flag that needs no worker.

    Raises:
        UsageError: it has no such name.
    """
    name: str | None = measure.__module__
    if name == "__main__":
        spec = sys.modules["__main__"].__spec__
        name = spec.name if spec is not None else None
    if name is None or "<" in measure.__qualname__:
        raise UsageError(
            f"{measure.__qualname__} cannot be imported by workers; run the experiment as "
            f"python -m experiments.<name>, or take {remedy}"
        )
    return name


def _as_plain(case: Case) -> _PlainCase:
    """Convert a case's Config to the name of its class and its fields."""
    config = case.config
    return type(config).__qualname__, {f.name: getattr(config, f.name) for f in fields(config)}


def _prepare_process(threads: int) -> None:
    prepare_worker()
    every: int = numba.config.NUMBA_NUM_THREADS  # type: ignore[attr-defined]  # set when numba is imported
    numba.set_num_threads(min(threads, every))


def _measure_in_worker(module: str, name: str, grammars: dict[str, str], case: _PlainCase) -> list[dict]:
    """Measure a case in a worker, and return its rows.

    Raises:
        RunFailed: `measure` raised an error.
    """
    with _one_case_at_a_time:
        try:
            for curve, text in grammars.items():
                sfc.register(sfc.parse_curve(text, f"grammar {curve!r}"))
            experiment = importlib.import_module(module)
            kind, settings = case
            return list(getattr(experiment, name)(getattr(experiment, kind)(**settings)))
        except Exception as error:
            raise RunFailed.from_error(error) from None
