"""Processes that a test can see die, begun from one that has imported what they need.

Python and its imports take seconds, a process that is forked takes a few hundredths of one.
"""

import multiprocessing
import os
from collections.abc import Callable
from multiprocessing import forkserver
from multiprocessing.connection import Connection

import numba
import pytest

_CONTEXT = multiprocessing.get_context("forkserver")
_CONTEXT.set_forkserver_preload(["md", "experiments.core", "pytest", "hypothesis"])
LIMIT = 120  # seconds that a test waits for a process


class Process(_CONTEXT.Process):
    """Process that is killed, and the test failed, if it does not end while the test waits for it."""

    def join(self, timeout: float | None = None) -> None:
        super().join(LIMIT if timeout is None else timeout)
        if timeout is None and self.exitcode is None:
            self.kill()
            raise TimeoutError(f"process {self.pid} did not end within {LIMIT} s")


class Heard(Connection):
    """End of a pipe at which a test waits for a limited time."""

    def recv(self):
        if not self.poll(LIMIT):
            raise TimeoutError(f"a process sent nothing for {LIMIT} s")
        return super().recv()


def started(work: Callable, *arguments, threads: int = 1) -> tuple[Process, Heard]:
    """A process that does some work, and what the work sends to its last argument.

    Args:
        work: a function of a module.
        arguments: all but the last.
        threads: that it has.

    Returns:
        The process, and the end of a pipe: `recv` raises EOFError once the process is over, and TimeoutError
        after `LIMIT` seconds without a message.
    """
    read, write = _CONTEXT.Pipe(duplex=False)
    heard = Heard(os.dup(read.fileno()), writable=False)
    read.close()
    process = Process(target=_with_threads, args=(threads, work, *arguments, write), daemon=True)
    process.start()
    write.close()
    return process, heard


def preloaded(patch: pytest.MonkeyPatch) -> None:
    """Let the product begin its workers as `started` begins processes, though it asks for new Pythons."""
    forkserver.ensure_running()  # else it begins while the product blocks SIGINT, as its processes then do
    get = multiprocessing.get_context
    patch.setattr(
        multiprocessing, "get_context", lambda kind=None: _CONTEXT if kind == "spawn" else get(kind)
    )


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
