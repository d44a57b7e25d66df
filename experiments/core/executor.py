"""Where the cases of a sweep are measured: here one after the other, in processes, or on a Dask cluster.

A case goes to another process as words and numbers, and the experiment is imported there, so that nothing
depends on what this process has in memory. The rows are the same wherever they were measured.
"""

import importlib
import itertools
import multiprocessing
import sys
import threading
from collections.abc import Callable, Iterable, Iterator, Mapping
from concurrent import futures
from contextlib import closing
from dataclasses import dataclass, fields
from functools import partial
from typing import Any

import numba
import psutil

import sfc
from experiments.core.settings import Case, Settings, UsageError
from experiments.processes.lifetime import begin_worker, without_interrupts
from experiments.processes.separate_run import Piece, Round, RunFailed, WorkerDied, measured_apart, rounds_of
from sfc import checks

Measure = Callable[[Settings], Iterable[dict]]
SERIAL, PROCESSES = "serial", "processes"
WAIT = 30  # s, for the first worker of a cluster
MOST_WORKERS = 1024
_ONE_RUN = "--runs 1, which needs no process of its own"


_one_at_a_time = threading.Lock()  # threads of one process would share Numba's


@dataclass(frozen=True)
class Executor:
    """Who measures.

    Args:
        where: "serial", "processes", or the address of a Dask scheduler, such as "tcp://host:8786".
        workers: processes; 0 for as many as there are cores. Dask has its own.
        grammars: name -> text of the curves that were registered by file.

    Raises:
        TypeError: an argument of a wrong class.
        ValueError: a number of workers that is not allowed.
        UsageError: another place, or Dask without its package.
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
        """Look whether the experiment can be measured there, before anything is.

        Args:
            measure: of the experiment.
            config: the sweep.

        Raises:
            UsageError: it cannot be imported elsewhere.
        """
        if self.where != SERIAL:
            _module_of(measure, f"--executor {SERIAL}")
        elif runs_apart(config):
            _module_of(measure, _ONE_RUN)

    def measured(
        self, measure: Measure, todo: list[Case], begins: list[int] | None = None, apart: bool = False
    ) -> Iterator[tuple[Case, Round]]:
        """The rows of each case as they are finished, of a timed one round by round.

        Args:
            measure: of the experiment, at the top of its module.
            todo: the cases.
            begins: of each, the first round that is wanted; None for 0. For those that are timed.
            apart: whether each run of a timed experiment has a process of its own.

        Returns:
            A case, with rows and the number of their round; None for the last rows of the case.

        Raises:
            UsageError: an experiment that cannot be imported elsewhere, no scheduler at the address, or one
                without workers.
            WorkerDied: one was killed.
            RunFailed: `measure` raised an error in another process.
            Exception: what `measure` raised in this one.
        """
        begins = begins or [0] * len(todo)
        if apart:
            yield from self._in_a_process_each(measure, todo, begins)
            return
        if self.where == SERIAL:
            for case, begin in zip(todo, begins, strict=True):
                if case.config.CHANCE == "run":
                    yield from ((case, one) for one in rounds_of(measure(case.config, begin)))
                else:
                    yield case, (list(measure(case.config)), None)
            return
        work = partial(
            _measured_elsewhere,
            _module_of(measure, f"--executor {SERIAL}"),
            measure.__qualname__,
            dict(self.grammars or {}),
        )
        elsewhere = self._in_processes if self.where == PROCESSES else self._on_a_cluster
        with closing(elsewhere(work, todo)) as results:
            for case, rows in results:
                yield case, (rows, None)

    def _in_a_process_each(
        self, measure: Measure, todo: list[Case], begins: list[int]
    ) -> Iterator[tuple[Case, Round]]:
        """Cases of one run in one new process, one run after the other."""
        by_number = {case.number: case for case in todo}
        pieces = [Piece(case.number, *_told(case), begin) for case, begin in zip(todo, begins, strict=True)]
        for _, run in itertools.groupby(pieces, key=lambda piece: by_number[piece.number].place["run"]):
            where = _module_of(measure, _ONE_RUN), measure.__qualname__, dict(self.grammars or {})
            with closing(measured_apart(*where, list(run))) as results:
                for number, one in results:
                    yield by_number[number], one

    def _in_processes(self, work, todo: list[Case]) -> Iterator[tuple[Case, list[dict]]]:
        cores = psutil.cpu_count(logical=False) or 1
        workers = min(self.workers or cores, max(1, len(todo)))
        others = set(multiprocessing.active_children())
        with futures.ProcessPoolExecutor(
            workers, multiprocessing.get_context("spawn"), _begin_process, (max(1, cores // workers),)
        ) as pool:
            try:
                with without_interrupts():
                    given = {pool.submit(work, _told(case)): case for case in todo}
                for done in futures.as_completed(given):
                    yield given[done], done.result()
            except BaseException as error:
                pool.shutdown(wait=False, cancel_futures=True)
                for process in set(multiprocessing.active_children()) - others:
                    process.terminate()
                if isinstance(error, futures.BrokenExecutor):
                    raise WorkerDied(f"{error}; fewer --workers take less memory") from error
                raise

    def _on_a_cluster(self, work, todo: list[Case]) -> Iterator[tuple[Case, list[dict]]]:
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
            given = {client.submit(work, _told(case), pure=False): case for case in todo}
            try:
                for done in as_completed(given):
                    yield given[done], done.result()
            except BaseException as error:
                client.cancel(list(given))
                if isinstance(error, (KilledWorker, futures.CancelledError)):
                    raise WorkerDied(f"{error}; see the logs of the workers") from error
                raise


def runs_apart(config: Settings) -> bool:
    """Whether each run of a sweep has a process of its own.

    Args:
        config: the sweep.
    """
    return config.CHANCE == "run" and config.runs > 1


def _module_of(measure: Measure, remedy: str) -> str:
    """The name under which a worker can import the experiment.

    Args:
        measure: of the experiment.
        remedy: a flag that needs no worker.

    Raises:
        UsageError: there is none.
    """
    name = measure.__module__
    if name == "__main__":
        spec = sys.modules["__main__"].__spec__
        name = spec.name if spec is not None else None
    if name is None or "<" in measure.__qualname__:
        raise UsageError(
            f"{measure.__qualname__} cannot be imported by workers; run the experiment as "
            f"python -m experiments.<name>, or take {remedy}"
        )
    return name


def _told(case: Case) -> tuple[str, dict[str, Any]]:
    """A case's Config by the name of its class and its fields."""
    config = case.config
    return type(config).__qualname__, {f.name: getattr(config, f.name) for f in fields(config)}


def _begin_process(threads: int) -> None:
    begin_worker()
    numba.set_num_threads(min(threads, numba.config.NUMBA_NUM_THREADS))


def _measured_elsewhere(module: str, name: str, grammars: dict[str, str], told) -> list[dict]:
    """The rows of a case, in a worker.

    Raises:
        RunFailed: `measure` raised an error.
    """
    with _one_at_a_time:
        try:
            for curve, text in grammars.items():
                sfc.register(sfc.parse_curve(text, f"grammar {curve!r}"))
            experiment = importlib.import_module(module)
            kind, settings = told
            return list(getattr(experiment, name)(getattr(experiment, kind)(**settings)))
        except Exception as error:
            raise RunFailed.of(error) from None
