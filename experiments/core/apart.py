"""Runs of a timed experiment, each in a new process: no run inherits what another left in memory."""

from __future__ import annotations

import importlib
import multiprocessing
import pickle
import signal
import traceback
from collections.abc import Iterable, Iterator, Mapping
from typing import Any, NamedTuple

import sfc
from experiments.core.lifetime import end_with_parent
from experiments.core.settings import Settings

Round = tuple[list[dict], int | None]


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
        Exception: what `measure` raised.
    """
    context = multiprocessing.get_context("spawn")
    receiving, sending = context.Pipe(duplex=False)
    arguments = (sending, module, measure, dict(grammars), pieces)
    process = context.Process(target=_measure, args=arguments, daemon=True)
    process.start()
    sending.close()
    try:
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
                return
            if isinstance(told, BaseException):
                raise told
            yield told
    finally:
        process.terminate()
        process.join()
        process.close()
        receiving.close()


def _measure(sending, module: str, measure: str, grammars: dict[str, str], pieces: list[Piece]) -> None:
    """Of a new process: measure, and send what comes of it."""
    end_with_parent()
    signal.signal(signal.SIGINT, signal.SIG_IGN)  # Ctrl-C is for the process that was started
    try:
        for name, text in grammars.items():
            sfc.register(sfc.parse_curve(text, f"grammar {name!r}"))
        experiment = importlib.import_module(module)
        for piece in pieces:
            config: Settings = getattr(experiment, piece.kind)(**piece.settings)
            for one in rounds_of(getattr(experiment, measure)(config, piece.begin)):
                sending.send((piece.number, one))
        sending.send(None)
    except BaseException as error:
        sending.send(_sendable(error))


def _sendable(error: BaseException) -> BaseException:
    """The error, or where it cannot be sent one that tells it."""
    try:
        if type(pickle.loads(pickle.dumps(error))) is type(error):
            return error
    except Exception:  # whatever a class makes of it
        pass
    return RuntimeError("".join(traceback.format_exception_only(error)).strip())
