"""A campaign: batches of inputs in processes that are restarted when one crashes or stands still.

A batch is some 500 numbers of one family, and each process the only one of a pool of its own, that is asked
for the verdict of one input after the other; so the input at which it died, or at which nothing was heard
for 30 s, is known too. That input is kept and tried again alone, in a new process, and the batch goes on
after it. The verdict of an input that
stood still is the one of its trial alone; one that crashed stays a crash, for what corrupts memory need not
do so alone.
"""

from __future__ import annotations

import multiprocessing
import os
import queue
import signal
import tempfile
import time
from collections import Counter, defaultdict
from collections.abc import Callable, Iterable
from concurrent.futures import ProcessPoolExecutor, ThreadPoolExecutor
from concurrent.futures.process import BrokenProcessPool
from pathlib import Path
from typing import Any, NamedTuple

from tests.fuzz.judge import Judged
from tests.fuzz.worker import FAILURES, Task, bounded, call_of, ready, tried

VERDICTS = ("accepted", "refused", *FAILURES)
TIMEOUT = 30.0  # s, without a word of an input
PREPARING = 900.0  # s, in which a family makes what its inputs share: kernels may be compiled
SHOWN = 25  # causes in a report
_CONTEXT = multiprocessing.get_context("forkserver")
_CONTEXT.set_forkserver_preload(["tests.fuzz.worker", "tests.fuzz.families.choices"])


class Kept(NamedTuple):
    """An input and its verdict.

    Attributes:
        task: that it was in.
        number: of the input.
        judged: what became of it.
        before: inputs of its batch before it, that may have a part in a crash.
    """

    task: Task
    number: int
    judged: Judged
    before: int = 0

    def __str__(self) -> str:
        family, seed, *_ = self.task
        again = f"  again: python -m tests.fuzz {family} --seed {seed} --number {self.number}"
        again += f"  (after {self.before} others of its batch)" * bool(self.before)
        verdict, call, cause, more = self.judged
        return "\n".join(filter(None, [f"{verdict}: {cause}", f"  {call[:1500]}", more, again]))


class Report:
    """What a campaign found.

    Attributes:
        counts: of each verdict, by family.
        kept: inputs that failed.
    """

    def __init__(self, tried: Iterable[Kept]):
        self.counts: dict[str, Counter] = defaultdict(Counter)
        self.kept = []
        for one in tried:
            self.counts[one.task.family][one.judged.verdict] += 1
            if one.judged.verdict in FAILURES:
                self.kept.append(one)

    def table(self) -> str:
        """Counts a family."""
        rows = [*sorted(self.counts.items()), ("all", sum(self.counts.values(), Counter()))]
        head = f"{'family':16}" + "".join(f"{verdict:>10}" for verdict in VERDICTS)
        return "\n".join([head, *(f"{k:16}" + "".join(f"{n[v]:10}" for v in VERDICTS) for k, n in rows)])

    def __str__(self) -> str:
        """The counts, and an input for each of the causes, those of most inputs first, up to so many."""
        causes: dict[tuple[str, str], list[Kept]] = defaultdict(list)
        for one in self.kept:
            causes[one.judged.verdict, one.judged.cause].append(one)
        shown = [f"--- {len(of)} inputs, such as\n{of[0]}" for of in sorted(causes.values(), key=len)[::-1]]
        head = f"{len(self.kept)} failed, of {len(causes)} causes, of which up to {SHOWN} are shown"
        return "\n".join([self.table(), head, *shown[:SHOWN]])


class LostError(Exception):
    """A process that died or stands still; its argument is what is to be said of the input that it had."""


class Child:
    """A process that tries inputs.

    Args:
        folder: for its files and its log.
        timeout: seconds of silence after which it stands still.
    """

    def __init__(self, folder: Path, timeout: float):
        self.log, self.timeout = folder / f"{time.monotonic_ns()}.log", timeout
        self.pool = ProcessPoolExecutor(1, _CONTEXT, bounded, (str(self.log),))
        number = self.pool.submit(os.getpid).result()
        self.process = next(child for child in multiprocessing.active_children() if child.pid == number)

    def ask(self, act: Callable[..., Any], task: Task, *rest: int, timeout: float | None = None) -> Any:
        """What comes of an act of the process.

        Raises:
            LostError: it died, or is silent.
        """
        timeout = timeout or self.timeout
        try:
            return self.pool.submit(act, task, *rest).result(timeout)
        except TimeoutError:
            judged = Judged("hang", cause=f"{task.family}: silent for {timeout:g} s")
        except BrokenProcessPool:
            self.pool.shutdown()  # its thread reads the exit status, which can be read once
            code = self.process.exitcode
            how = f"killed by {signal.Signals(-code).name}" if code < 0 else f"exit status {code}"
            judged = Judged("crash", cause=f"{task.family}: {how}")
        last = self.log.read_text(errors="replace") if self.log.exists() else ""
        raise LostError(judged._replace(more=last[max(0, last.rfind("Fatal Python error")) :][:1500]))

    def end(self) -> None:
        """Have it killed, which an input that stands still needs."""
        self.process.kill()
        self.pool.shutdown()


def campaign(
    shares: dict[str, float],
    inputs: int,
    seed: int,
    *,
    workers: int = 2,
    batch: int = 500,
    timeout: float = TIMEOUT,
    planted: bool = False,
) -> Report:
    """Try many inputs.

    Args:
        shares: of the inputs that each family gets.
        inputs: how many in all.
        seed: of the campaign.
        workers: processes.
        batch: inputs of a batch.
        timeout: seconds of silence after which an input stands still.
        planted: whether the families are those that fail.

    Raises:
        Exception: what a family raises that cannot make what its inputs share.
    """
    todo: queue.SimpleQueue = queue.SimpleQueue()
    counts = {name: max(1, round(inputs * share / sum(shares.values()))) for name, share in shares.items()}
    for first in range(0, max(counts.values()), batch):  # families by turns
        for name, count in counts.items():
            if first < count:
                todo.put(Task(name, seed, first, min(batch, count - first), planted))
    with tempfile.TemporaryDirectory(prefix="fuzz-") as folder, ThreadPoolExecutor(workers) as lanes:
        running = [lanes.submit(_lane, todo, timeout, Path(folder)) for _ in range(workers)]
        return Report([one for lane in running for one in lane.result()])


def alone(task: Task, timeout: float = TIMEOUT, *, folder: Path) -> Judged:
    """Try the first input of a task in a process of its own."""
    child, call = Child(folder, timeout), ""
    try:
        child.ask(ready, task, timeout=PREPARING)
        call = child.ask(call_of, task)
        return child.ask(tried, task, task.first)
    except LostError as lost:
        return lost.args[0]._replace(call=call)
    finally:
        child.end()


def _lane(todo: queue.SimpleQueue, timeout: float, folder: Path) -> list[Kept]:
    """Have the batches of a queue tried, in one process after the other."""
    found, child = [], Child(folder, timeout)
    try:
        while True:
            task = todo.get_nowait()
            for number in range(task.first, task.first + task.count):
                try:
                    child.ask(ready, task, timeout=PREPARING)
                    found.append(Kept(task, number, child.ask(tried, task, number)))
                except LostError as lost:
                    child.end()
                    found.append(_again(lost.args[0], task, number, timeout, folder))
                    child = Child(folder, timeout)
    except queue.Empty:
        return found
    finally:
        child.end()


def _again(lost: Judged, task: Task, number: int, timeout: float, folder: Path) -> Kept:
    """The verdict of an input at which a process was lost, by a trial alone."""
    found = alone(task._replace(first=number), timeout, folder=folder)
    if lost.verdict == "crash" != found.verdict:
        more = f"alone: {found.verdict}\n{lost.more}"
        found = Judged("crash", found.call, f"{lost.cause}, in its batch alone", more)
        return Kept(task, number, found, number - task.first)
    return Kept(task, number, found)
