"""Runs of a timed experiment, each in a new process: no run inherits what another left in memory."""

from __future__ import annotations

import contextlib
import importlib
import multiprocessing
import traceback
from collections.abc import Iterable, Iterator, Mapping
from multiprocessing.process import BaseProcess
from typing import Any, NamedTuple

import sfc
from experiments.processes.lifetime import GRACE, Terminated, begin_worker, terminable, without_interrupts
from md import BackendUnavailableError, SimulationFault
from md.simulation.interrupt import defer_sigint

Round = tuple[list[dict], int | None]
# Errors of `measure` that the terminal tells by their message alone.
EXPECTED = (ValueError, TypeError, BackendUnavailableError, SimulationFault, MemoryError, OSError)


class Piece(NamedTuple):
    """A case for another process, as words and numbers.

    Attributes:
        number: of the case.
        kind: name of the class of its Config.
        settings: the Config's fields.
        begin: the first round wanted.
    """

    number: int
    kind: str
    settings: dict[str, Any]
    begin: int


class WorkerDied(RuntimeError):  # noqa: N818 - named for what happened
    """A process was killed, for want of memory perhaps, with the case it was at."""


class RunFailed(RuntimeError):  # noqa: N818 - named for what happened
    """What `measure` raised in another process, as text: not every error can be pickled and read back.

    Args:
        message: for the terminal.
        kind: name of the class of the error.
        trace: its traceback.
    """

    def __init__(self, message: str, kind: str, trace: str):
        super().__init__(message, kind, trace)
        self.kind, self.trace = kind, trace

    def __str__(self):
        return self.args[0]

    @classmethod
    def of(cls, error: BaseException) -> RunFailed:
        """The text of an error.

        Args:
            error: that was raised.
        """
        message = str(error)
        if not isinstance(error, EXPECTED):
            told = "".join(traceback.format_exception_only(error)).strip()
            message = f"{told}; its traceback is in error.txt"
        return cls(message, type(error).__name__, "".join(traceback.format_exception(error)))


def rounds_of(measured: Iterable[list[dict] | dict]) -> Iterator[Round]:
    """The rounds of a timed case as they come, and last its rows of no round, which may be none.

    Args:
        measured: what `measure` yields: a list of rows for each round, with the column `round`, and rows
            alone that are no samples.
    """
    alone = []
    for one in measured:
        if isinstance(one, list):
            if one:
                yield one, one[0]["round"]
        else:
            alone.append(one)
    yield alone, None


def rows_of(measured: Iterable[list[dict] | dict]) -> list[dict]:
    """All rows of a timed case, as one list.

    Args:
        measured: what `measure` yields.
    """
    return [row for rows, _ in rounds_of(measured) for row in rows]


def measured_apart(
    module: str, measure: str, grammars: Mapping[str, str], pieces: list[Piece]
) -> Iterator[tuple[int, Round]]:
    """Measure the cases of one run in a new process.

    Args:
        module: that can be imported, of the experiment.
        measure: name of the function in it.
        grammars: name -> text of curves to register.
        pieces: the cases.

    Returns:
        Number of a case with the rows of one round, as they come.

    Raises:
        WorkerDied: it was killed.
        RunFailed: `measure` raised an error.
    """
    context = multiprocessing.get_context("spawn")
    receiving, sending = context.Pipe(duplex=False)
    arguments = (sending, module, measure, dict(grammars), pieces)
    process = context.Process(target=_measure, args=arguments, daemon=True)
    try:
        with without_interrupts():
            process.start()
        sending.close()
        while True:
            try:
                told = receiving.recv()
            except (EOFError, OSError) as error:  # before a message, or within one
                process.join()
                raise WorkerDied(
                    f"the process of a run ended with {process.exitcode}; fewer particles, or fewer cases "
                    "that are compared, take less memory"
                ) from error
            if told is None:
                process.join(GRACE)
                return
            if isinstance(told, RunFailed):
                raise told
            yield told
    finally:
        with defer_sigint():
            _end(process)
        sending.close()
        receiving.close()


def _end(process: BaseProcess) -> None:
    """End a process that may be over, or may not have begun."""
    if process.pid is not None:
        process.terminate()
        process.join(GRACE)
        process.kill()
        process.join()
    process.close()


def _measure(sending, module: str, measure: str, grammars: dict[str, str], pieces: list[Piece]) -> None:
    """Of a new process: measure, and send what comes of it."""
    begin_worker(GRACE)
    with terminable():
        try:
            for name, text in grammars.items():
                sfc.register(sfc.parse_curve(text, f"grammar {name!r}"))
            experiment = importlib.import_module(module)
            for piece in pieces:
                config = getattr(experiment, piece.kind)(**piece.settings)
                for one in rounds_of(getattr(experiment, measure)(config, piece.begin)):
                    sending.send((piece.number, one))
            sending.send(None)
        except Terminated:
            raise
        except BaseException as error:
            with contextlib.suppress(OSError):  # of a main process that is over
                sending.send(RunFailed.of(error))
