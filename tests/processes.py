"""Processes that a test can see die, begun from one that has imported what they need.

Python and its imports take seconds, a process that is forked takes a few hundredths of one.
"""

import multiprocessing
from collections.abc import Callable
from multiprocessing.connection import Connection
from multiprocessing.process import BaseProcess

import numba

_CONTEXT = multiprocessing.get_context("forkserver")
_CONTEXT.set_forkserver_preload(["md", "experiments.core"])


def started(work: Callable, *arguments, threads: int = 1) -> tuple[BaseProcess, Connection]:
    """A process that does some work, and what the work sends to its last argument.

    Args:
        work: a function of a module.
        arguments: all but the last.
        threads: that it has.

    Returns:
        The process, and the end of a pipe: `recv` raises EOFError once the process is over.
    """
    heard, told = _CONTEXT.Pipe(duplex=False)
    process = _CONTEXT.Process(target=_with_threads, args=(threads, work, *arguments, told), daemon=True)
    process.start()
    told.close()
    return process, heard


def all_heard(heard: Connection) -> list:
    """What is sent from now on, up to the end of the process."""
    found = []
    while True:
        try:
            found.append(heard.recv())
        except EOFError:
            return found


def _with_threads(threads: int, work: Callable, *arguments) -> None:
    numba.set_num_threads(threads)
    work(*arguments)
