"""The process in which inputs are tried: bounded in memory, and replaceable."""

from __future__ import annotations

import contextlib
import ctypes
import faulthandler
import fcntl
import functools
import os
import random
import resource
import sys
import tempfile
import threading
import traceback
import warnings
from collections.abc import Callable
from typing import Any, NamedTuple

import numba
from hypothesis import HealthCheck, Phase, given, settings
from hypothesis.database import InMemoryExampleDatabase
from hypothesis.errors import FlakyFailure
from tqdm import tqdm

from tests.fuzz.families import family
from tests.fuzz.judge import ROOT, Case, Judged, judged

FAILURES = ("weak", "obscure", "wrong", "crash", "hang")
MEMORY = 6 * 2**30  # bytes of address space; beyond it an input gets a MemoryError
DRAWN = 8192  # bytes that an input is drawn from
FAR = 600  # a file descriptor that no input opens or closes by chance
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


class FailedError(Exception):
    """An input that failed, so that Hypothesis sees it; its argument is what became of it."""


@functools.cache
def _prepared(name: str, planted: bool) -> None:
    family(name, planted).prepare()


def ready(task: Task) -> None:
    """Have the family make what its inputs share, once."""
    _prepared(task.family, task.planted)


def call_of(task: Task) -> str:
    """The call of the first input of a task, drawn but not made."""
    try:
        return trial(task.family, task.planted)(task.seed, task.first, Case.written)
    except Exception as error:
        return f"{task.family} {task.first}, which cannot be drawn: {error!r}"


class Trial:
    """A family as a test of Hypothesis, which draws an input from bytes.

    Contract. The bytes come from the family's name, the seed and the number of an input alone, so that a kept
    input can be drawn again, in any process, by these three.
    """

    def __init__(self, name: str, planted: bool):
        self.name = name

        @settings(
            database=InMemoryExampleDatabase(),
            phases=(Phase.reuse, Phase.shrink),
            deadline=None,
            report_multiple_bugs=False,
            suppress_health_check=list(HealthCheck),
        )
        @given(family(name, planted).cases)
        def test(case: Case) -> None:
            self.found = self.act(case)

        self.test, self.drawing_from = test, test.hypothesis.fuzz_one_input

    def __call__(self, seed: int, number: int, act: Callable[[Case], Any] = judged) -> Any:
        """What comes of an act upon an input."""
        source = random.Random(f"{self.name}/{seed}/{number}")
        self.act, self.found = act, None
        while self.found is None:  # some bytes make no input
            self.drawing_from(source.randbytes(DRAWN))
        return self.found

    def smallest(self, seed: int, number: int) -> Judged:
        """The verdict of an input; where it failed, of the smallest that Hypothesis finds to fail."""

        def act(case: Case) -> Judged:
            if (found := judged(case)).verdict in FAILURES:
                raise FailedError(found)
            return found

        try:
            return self(seed, number, act)
        except FailedError as error:
            found = error.args[0]
        with contextlib.suppress(FlakyFailure):
            try:
                self.test()
            except FailedError as smaller:
                found = smaller.args[0]
        return found


@functools.cache
def trial(name: str, planted: bool = False) -> Trial:
    """Of a family by its name."""
    return Trial(name, planted)


def tried(task: Task, number: int) -> Judged:
    """Draw an input, and judge what becomes of it."""
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        try:
            found = trial(task.family, task.planted)(task.seed, number)
        except Exception as error:  # a family that asks the project for what it refuses, say
            text = "".join(traceback.format_exception(error)[-6:])
            return Judged("wrong", f"{task.family} {number}", f"the fuzz draws nothing: {error!r:.100}", text)
    for fd in (0, 1, 2):
        if not os.path.exists(f"/proc/self/fd/{fd}"):
            os.dup2(os.open(os.devnull, os.O_RDWR), fd)
            found = Judged("wrong", found.call, f"{task.family}: file descriptor {fd} was closed", found.more)
    return found


def bounded(log: str) -> None:
    """Make this process one that tries inputs.

    Args:
        log: file for what a crash says; what inputs write lies beside it.
    """
    os.chdir(tempfile.mkdtemp(dir=os.path.dirname(log)))
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
    sys.path.insert(0, str(ROOT))
