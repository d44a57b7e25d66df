"""Measure each run of a timed experiment in a new process, so that no run inherits memory from another.

A process of `multiprocessing` with a pipe, and no executor of `concurrent.futures`: an executor returns the
result of a whole task, and here each round is kept as soon as it is measured.
"""

from __future__ import annotations

import contextlib
import importlib
import multiprocessing
import traceback
from collections.abc import Generator, Iterable, Iterator, Mapping
from multiprocessing.connection import Connection
from typing import Any, NamedTuple

import sfc
from experiments.processes.lifetime import GRACE, Terminated, prepare_worker, terminable, without_interrupts
from md import BackendUnavailableError, SimulationFault
from md.io.interrupt import defer_sigint

Round = tuple[list[dict], int | None]
# Errors of `measure` of which the terminal shows only the message.
EXPECTED = (ValueError, TypeError, BackendUnavailableError, SimulationFault, MemoryError, OSError)


class Task(NamedTuple):
    """A case and the function that measures it, as words and numbers, to be sent to another process.

    Attributes:
        number: of the case.
        module: importable name of the experiment.
        function: name of the function.
        kind: name of the class of the Config.
        settings: the Config's fields.
        begin: the first round that is missing, of a timed case; else empty.
        grammars: name -> text of curves to register.
    """

    number: int
    module: str
    function: str
    kind: str
    settings: dict[str, Any]
    begin: tuple[int, ...]
    grammars: Mapping[str, str]

    def rounds(self) -> Iterator[Round]:
        """Measure the case in this process, and yield its rounds: see `rounds_with_numbers`."""
        for name, text in self.grammars.items():
            sfc.register(sfc.parse_curve(text, f"grammar {name!r}"))
        experiment = importlib.import_module(self.module)
        config = getattr(experiment, self.kind)(**self.settings)
        return rounds_with_numbers(getattr(experiment, self.function)(config, *self.begin))


class WorkerDied(RuntimeError):  # noqa: N818 - named for what happened
    """Raised when a worker process was killed, perhaps for lack of memory."""


class RunFailed(RuntimeError):  # noqa: N818 - named for what happened
    """Error that `measure` raised in another process, as text, since not every error can be pickled.

    Args:
        message: for the terminal.
        kind: name of the class of the error.
        trace: its traceback.
    """

    def __init__(self, message: str, kind: str, trace: str):
        super().__init__(message, kind, trace)
        self.kind, self.trace = kind, trace

    def __str__(self) -> str:
        return self.args[0]

    @classmethod
    def from_error(cls, error: BaseException) -> RunFailed:
        """Convert an error to text.

        Args:
            error: the one raised.
        """
        message = str(error)
        if not isinstance(error, EXPECTED):
            text = "".join(traceback.format_exception_only(error)).strip()
            message = f"{text}; its traceback is in error.txt"
        return cls(message, type(error).__name__, "".join(traceback.format_exception(error)))


def rounds_with_numbers(measured: Iterable[list[dict] | dict]) -> Iterator[Round]:
    """Yield the rounds of a timed case as they come, and last the rows that belong to no round.

    All rows of a case without rounds are such.

    Args:
        measured: what `measure` yields: a list of rows for each round, with the column `round`, and rows
            alone that are no samples.
    """
    no_round = []
    for one in measured:
        if isinstance(one, list):
            if one:
                yield one, one[0]["round"]
        else:
            no_round.append(one)
    yield no_round, None


def all_rows(measured: Iterable[list[dict] | dict]) -> list[dict]:
    """Collect all rows of a timed case in one list.

    Args:
        measured: what `measure` yields.
    """
    return [row for rows, _ in rounds_with_numbers(measured) for row in rows]


def measure_in_process(tasks: list[Task]) -> Generator[tuple[int, Round], None, None]:
    """Measure the cases of one run in a new process.

    Args:
        tasks: cases of the run.

    Returns:
        Number of a case with the rows of one of its rounds, as they come.

    Raises:
        WorkerDied: the process was killed.
        RunFailed: `measure` raised an error.
    """
    context = multiprocessing.get_context("spawn")
    receiving, sending = context.Pipe(duplex=False)
    process = context.Process(target=_measure, args=(sending, tasks), daemon=True)
    try:
        with without_interrupts():
            process.start()
        sending.close()
        while True:
            try:
                message = receiving.recv()
            except (EOFError, OSError) as error:  # before a message, or within one
                process.join()
                raise WorkerDied(
                    f"the process of a run ended with {process.exitcode}; fewer particles, or fewer cases "
                    "that are compared, take less memory"
                ) from error
            if message is None:
                process.join(GRACE)
                return
            if isinstance(message, RunFailed):
                raise message
            yield message
    finally:
        with defer_sigint():
            if process.pid is not None:  # it was started
                process.terminate()
                process.join(GRACE)
                process.kill()
                process.join()
            process.close()
        sending.close()
        receiving.close()


def _measure(sending: Connection, tasks: list[Task]) -> None:
    """Measure in a new process, and send rounds, the end or an error."""
    prepare_worker(GRACE)
    with terminable():
        try:
            for task in tasks:
                for one in task.rounds():
                    sending.send((task.number, one))
            sending.send(None)
        except Terminated:
            raise
        except BaseException as error:
            with contextlib.suppress(OSError):  # of a main process that is over
                sending.send(RunFailed.from_error(error))
