"""End worker processes and programs with the process that started them, in whatever way that process ends.

A worker is a process of `multiprocessing`; a program is any other process, such as `mpirun`. Only the main
process handles Ctrl-C and SIGTERM: it ends its workers, and a worker ends its programs.
"""

import contextlib
import ctypes
import multiprocessing
import os
import secrets
import shutil
import signal
import subprocess
import sys
import tempfile
import threading
import time
import traceback
from collections.abc import Iterator, Sequence
from multiprocessing import resource_tracker
from multiprocessing.process import BaseProcess
from pathlib import Path
from types import FrameType
from typing import Any

from tqdm import tqdm

from md.io.interrupt import defer_sigint

GRACE = 6.0  # s, from SIGTERM to SIGKILL, for a worker that removes its temporary folders
PROGRAM_GRACE = 2  # s, from SIGTERM to SIGKILL, for a program; a worker ends its programs within its own
_AGAIN = 0.01  # s, after which SIGTERM is sent again if it arrived in a finaliser
_PR_SET_PDEATHSIG = 1  # linux/prctl.h
# Waits for the end of its standard input, which only the process that started it holds open; then ends its
# process group.
_WATCH = f"trap '' HUP INT TERM; read -r _; kill -TERM 0; sleep {PROGRAM_GRACE}; kill -KILL 0"


class Terminated(SystemExit):
    """Raised in the main thread when SIGTERM arrives."""


@contextlib.contextmanager
def terminable() -> Iterator[None]:
    """Raise `Terminated` in the block at SIGTERM, so that each `finally` runs; later SIGTERMs do nothing.

    Only Python's main thread gets signals; in another thread, or where SIGTERM has a handler or is ignored,
    this does nothing.
    """
    in_main = threading.current_thread() is threading.main_thread()
    if not in_main or signal.getsignal(signal.SIGTERM) is not signal.SIG_DFL:
        yield
        return
    signal.signal(signal.SIGTERM, _terminate)
    try:
        yield
    finally:
        signal.signal(signal.SIGTERM, signal.SIG_DFL)


@contextlib.contextmanager
def temporary_folder(prefix: str, within: Path | None = None) -> Iterator[Path]:
    """Make a folder and remove it after the block, also if a signal comes as it is made or removed.

    `tempfile.TemporaryDirectory` leaves the folder then.

    Args:
        prefix: of its name.
        within: folder to make it in; None for that of the system.

    Raises:
        OSError: it cannot be made or removed.
    """
    folder = Path(within or tempfile.gettempdir()) / f"{prefix}{secrets.token_hex(8)}"
    try:
        try:
            folder.mkdir(mode=0o700)
            yield folder
        finally:
            _remove(folder)
    finally:
        _remove(folder)  # if SIGTERM came in the first removal; later ones do nothing


def _remove(folder: Path) -> None:
    with defer_sigint():
        if folder.exists():
            shutil.rmtree(folder)


def _terminate(_: int, frame: FrameType | None) -> None:
    called = (one.f_code.co_name for one, _ in traceback.walk_stack(frame))
    if "__del__" in called:  # a finaliser: Python prints an exception raised there, and goes on
        again = threading.Timer(_AGAIN, os.kill, (os.getpid(), signal.SIGTERM))
        again.daemon = True
        again.start()
        return
    signal.signal(signal.SIGTERM, _do_nothing)  # a second one would interrupt the clean-up after the first
    raise Terminated(128 + signal.SIGTERM)


def _do_nothing(*_) -> None:
    pass


@contextlib.contextmanager
def without_interrupts() -> Iterator[None]:
    """Block SIGINT while workers start: it reaches no worker before `prepare_worker`, and not this process.

    Workers inherit the blocked SIGINT until their Python and their imports are ready.
    """
    resource_tracker.ensure_running()  # the first worker would start it, and that unblocks SIGINT
    with defer_sigint():  # SIGINT can arrive in another thread, too
        before = signal.pthread_sigmask(signal.SIG_BLOCK, {signal.SIGINT})
        try:
            yield
        finally:
            signal.pthread_sigmask(signal.SIG_SETMASK, before)


def prepare_worker(grace: float = 0.0) -> None:
    """Prepare a worker process before its work: it ignores Ctrl-C and ends with its parent.

    Args:
        grace: as for `end_with_parent`.

    Raises:
        RuntimeError: `multiprocessing` did not start this process.
    """
    end_with_parent(grace)
    # The default lock of tqdm is a named semaphore, which a worker that is killed leaves behind.
    tqdm.set_lock(threading.RLock())
    signal.signal(signal.SIGINT, _do_nothing)  # by a function, because programs would inherit SIG_IGN
    signal.pthread_sigmask(signal.SIG_UNBLOCK, {signal.SIGINT})


def end_with_parent(grace: float = 0.0) -> None:
    """End this worker process as soon as its parent has ended, also by SIGKILL.

    Call it once in a process that `multiprocessing` started, before its work. Without grace Linux kills the
    worker, even within a compiled loop. Linux takes the end of the thread that started the worker for the end
    of the parent, so start workers from a thread that outlives them. With grace, and on other systems, a
    thread of the worker waits, and acts between two calls of compiled code. The resource tracker of
    `multiprocessing` ends by itself after its last process.

    Args:
        grace: s, from a SIGTERM to the end; 0 for no SIGTERM.

    Raises:
        RuntimeError: `multiprocessing` did not start this process.
    """
    parent = multiprocessing.parent_process()
    if parent is None:
        raise RuntimeError(
            "no worker process; allowed: processes that multiprocessing started; call it there"
        )
    if not grace and sys.platform == "linux" and _killed_by_the_kernel():
        if not parent.is_alive():  # it ended before the call of prctl
            os._exit(1)
        return
    threading.Thread(target=_wait_for, args=(parent, grace), name="end_with_parent", daemon=True).start()


def _killed_by_the_kernel() -> bool:
    """Ask Linux for SIGKILL at the end of the parent, and return whether it agreed."""
    try:
        return ctypes.CDLL(None).prctl(_PR_SET_PDEATHSIG, signal.SIGKILL, 0, 0, 0) == 0
    except (OSError, AttributeError):  # another C library
        return False


def _wait_for(parent: BaseProcess, grace: float) -> None:
    parent.join()
    if grace:
        os.kill(os.getpid(), signal.SIGTERM)
        time.sleep(grace)
    os._exit(1)


@contextlib.contextmanager
def program(command: Sequence[str], **options: Any) -> Iterator[subprocess.Popen]:
    """Start a program that ends with the block and with this process.

    The program gets its own process group, which Ctrl-C does not reach; all processes of the group end. A
    shell in the group waits for the end of this process.

    Args:
        command: of the program.
        options: of `subprocess.Popen`; its standard input is empty where none is given.

    Raises:
        OSError: it cannot be started.
    """
    nowhere = subprocess.DEVNULL
    watch = subprocess.Popen(
        ["/bin/sh", "-c", _WATCH], stdin=subprocess.PIPE, stdout=nowhere, stderr=nowhere, process_group=0
    )
    process: subprocess.Popen | None = None
    try:
        options = {"stdin": subprocess.DEVNULL} | options
        process = subprocess.Popen(command, **options, process_group=watch.pid)
        yield process
    finally:
        if process is not None and process.poll() is None:
            os.killpg(watch.pid, signal.SIGTERM)
            with contextlib.suppress(subprocess.TimeoutExpired):
                process.wait(PROGRAM_GRACE)
        os.killpg(watch.pid, signal.SIGKILL)  # the group lasts until its shell has been waited for
        for one in (process, watch):
            if one is not None:
                one.__exit__(None, None, None)  # closes its pipes, and waits


def run_program(command: Sequence[str], **options: Any) -> subprocess.CompletedProcess:
    """Run a program to its end, or to the end of this process.

    Args:
        command: of the program.
        options: of `subprocess.Popen`.

    Returns:
        Its status, and what it wrote, as text.

    Raises:
        OSError: it cannot be started.
    """
    pipes = {"stdout": subprocess.PIPE, "stderr": subprocess.PIPE}
    with program(command, encoding="utf-8", errors="replace", **pipes, **options) as process:
        out, errors = process.communicate()
    return subprocess.CompletedProcess(command, process.returncode, out, errors)
