"""The process in which inputs are tried: bounded in memory, told where each input begins, and replaceable."""

from __future__ import annotations

import ctypes
import faulthandler
import fcntl
import os
import resource
import sys
import tempfile
import threading
import traceback
import warnings
from multiprocessing.connection import Connection
from pathlib import Path
from typing import NamedTuple

import numba
from tqdm import tqdm

from tests.fuzz.drawing import Draw
from tests.fuzz.families import Family, families
from tests.fuzz.judge import Judged, judged

MEMORY = 6 * 2**30  # bytes of address space; beyond it an input gets a MemoryError
READY = "ready"
FAR = 600  # file descriptors from here on are the worker's own: an input may open or close small ones
PERTURB, PATTERN = -6, 0xA5  # of mallopt: memory that was never written holds no zeros


class Task(NamedTuple):
    """Inputs to try one after the other.

    Attributes:
        family: its name.
        seed: of the campaign.
        first: number of the first.
        count: how many.
        planted: whether the family is one of those that fail.
    """

    family: str
    seed: int
    first: int
    count: int
    planted: bool = False


def work(pipe: Connection, log: str) -> None:
    """Try the inputs of each task that comes, and tell the verdict of each at once.

    Sends `READY` before the first input of a task, or why it cannot begin; then (number, `Judged`) of each.

    Args:
        pipe: to the harness.
        log: file for what a crash says.
    """
    pipe = _moved(pipe)
    _bounded(log)
    known: dict[bool, dict[str, Family]] = {}
    prepared = set()
    with tempfile.TemporaryDirectory(prefix="fuzz-") as folder:
        os.chdir(folder)
        while (task := pipe.recv()) is not None:
            if task.planted not in known:
                known[task.planted] = families(task.planted)
            family = known[task.planted][task.family]
            if family.name not in prepared:
                try:
                    family.prepare()
                except Exception:
                    pipe.send(f"{family.name} cannot be prepared: {traceback.format_exc()}")
                    return
                prepared.add(family.name)
            pipe.send(READY)
            for number in range(task.first, task.first + task.count):
                pipe.send((number, tried(family, task.seed, number)))


def tried(family: Family, seed: int, number: int) -> Judged:
    """Draw an input, and judge what becomes of it."""
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        try:
            case = family.draw(Draw(family.name, seed, number))
        except Exception as error:  # a family that asks the project for what it refuses, say
            text = "".join(traceback.format_exception(error)[-6:])
            return Judged(
                "wrong", f"{family.name} {number}", f"the fuzz draws no input: {error!r:.100}", text
            )
        found = judged(case)
    closed = [fd for fd in (0, 1, 2) if not _is_open(fd)]
    for fd in closed:
        os.dup2(os.open(os.devnull, os.O_RDWR), fd)
    if closed:
        return Judged("wrong", found.told, f"{family.name}: file descriptor {closed} was closed", found.more)
    return found


def _is_open(fd: int) -> bool:
    try:
        os.fstat(fd)
    except OSError:
        return False
    return True


def _moved(pipe: Connection) -> Connection:
    """The pipe at a file descriptor that no input has by chance."""
    far = fcntl.fcntl(pipe.fileno(), fcntl.F_DUPFD_CLOEXEC, FAR)
    pipe.close()
    return Connection(far)


def _bounded(log: str) -> None:
    numba.set_num_threads(1)
    tqdm.set_lock(threading.RLock())  # its own is a semaphore, which a process that is killed leaves behind
    resource.setrlimit(resource.RLIMIT_AS, (MEMORY, resource.getrlimit(resource.RLIMIT_AS)[1]))
    resource.setrlimit(resource.RLIMIT_CORE, (0, 0))
    ctypes.CDLL(None).mallopt(PERTURB, PATTERN)
    nowhere, errors = os.open(os.devnull, os.O_RDWR), os.open(log, os.O_WRONLY | os.O_CREAT | os.O_TRUNC)
    for fd, target in ((0, nowhere), (1, nowhere), (2, errors)):
        os.dup2(target, fd)
    os.set_inheritable(2, True)
    kept = fcntl.fcntl(errors, fcntl.F_DUPFD_CLOEXEC, FAR)
    faulthandler.enable(os.fdopen(kept, "w"), all_threads=False)
    sys.stdin = open(0, closefd=False)
    sys.path.insert(0, str(Path(__file__).parents[2]))
