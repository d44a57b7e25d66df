"""A campaign: batches of inputs in processes that are restarted when one crashes or stands still.

A batch is some 500 numbers of one family. The worker that has it tells the verdict of each input as soon as
it is known, so the input at which it died, or at which nothing was heard for 30 s, is known too. That input
is kept and tried again alone, in a new process, and the batch goes on after it. The verdict of an input that
stood still is the one of its trial alone; one that crashed stays a crash, for what corrupts memory need not
do so alone.
"""

from __future__ import annotations

import collections
import contextlib
import multiprocessing
import multiprocessing.connection
import os
import signal
import tempfile
import time
from collections.abc import Callable, Iterator
from dataclasses import dataclass, field
from pathlib import Path

from tests.fuzz.judge import Judged
from tests.fuzz.worker import READY, Task, work

VERDICTS = ("accepted", "refused", "weak", "obscure", "wrong", "crash", "hang")
FAILURES = VERDICTS[2:]
TIMEOUT = 30.0  # s, without a word of an input
PREPARING = 900.0  # s, in which a family makes what its inputs share: kernels may be compiled
SHOWN = 25  # causes in a report
_CONTEXT = multiprocessing.get_context("forkserver")
_CONTEXT.set_forkserver_preload(["md", "experiments.core", "tests.fuzz.worker", "tests.fuzz.families"])


@dataclass(frozen=True)
class Kept:
    """An input that failed.

    Attributes:
        family: its name.
        seed: of the campaign.
        number: of the input.
        judged: what became of it.
        before: inputs of the batch before it, that may have a part in a crash.
    """

    family: str
    seed: int
    number: int
    judged: Judged
    before: int = 0

    def __str__(self) -> str:
        again = f"python -m tests.fuzz {self.family} --seed {self.seed} --number {self.number}"
        if self.before:
            again += f"  (after {self.before} others of its batch)"
        told = [
            f"{self.judged.verdict}: {self.judged.cause}",
            f"  {self.judged.told[:1500]}",
            self.judged.more,
        ]
        return "\n".join([*filter(None, told), f"  again: {again}"])


@dataclass
class Report:
    """What a campaign found.

    Attributes:
        counts: of each verdict, by family.
        kept: inputs that failed.
        seconds: the campaign took.
    """

    counts: dict[str, collections.Counter] = field(
        default_factory=lambda: collections.defaultdict(collections.Counter)
    )
    kept: list[Kept] = field(default_factory=list)
    seconds: float = 0.0

    @property
    def inputs(self) -> int:
        """How many were tried."""
        return sum(counter.total() for counter in self.counts.values())

    def causes(self) -> dict[tuple[str, str], list[Kept]]:
        """Inputs that failed by verdict and cause, those of most inputs first."""
        found: dict[tuple[str, str], list[Kept]] = collections.defaultdict(list)
        for kept in self.kept:
            found[kept.judged.verdict, kept.judged.cause].append(kept)
        return dict(sorted(found.items(), key=lambda item: -len(item[1])))

    def table(self) -> str:
        """Counts a family."""
        rows = [f"{'family':16}" + "".join(f"{verdict:>10}" for verdict in VERDICTS)]
        for family, counter in [
            *sorted(self.counts.items()),
            ("all", sum(self.counts.values(), collections.Counter())),
        ]:
            rows.append(f"{family:16}" + "".join(f"{counter[verdict]:10}" for verdict in VERDICTS))
        return "\n".join([*rows, f"{self.inputs} inputs in {self.seconds:.0f} s"])

    def __str__(self) -> str:
        return self.told()

    def told(self, most: int = SHOWN) -> str:
        """The counts, and an input for each of the causes, up to so many."""
        causes = self.causes()
        told = [f"--- {len(found)} inputs, such as\n{found[0]}" for found in list(causes.values())[:most]]
        more = [f"... and {len(causes) - most} other causes"] if len(causes) > most else []
        return "\n".join([self.table(), f"{len(self.kept)} failed, of {len(causes)} causes", *told, *more])


class _Worker:
    """A process and the task that it is at."""

    def __init__(self, folder: Path):
        self.log = folder / f"{time.monotonic_ns()}.log"
        self.pipe, theirs = _CONTEXT.Pipe()
        self.process = _CONTEXT.Process(target=work, args=(theirs, str(self.log)), daemon=True)
        self.process.start()
        theirs.close()
        self.task: Task | None = None
        self.next, self.ready, self.heard = 0, False, time.monotonic()

    def give(self, task: Task) -> None:
        self.task, self.next, self.ready, self.heard = task, task.first, False, time.monotonic()
        self.pipe.send(task)

    def limit(self, timeout: float) -> float:
        """The moment at which it has been silent for too long."""
        return self.heard + (timeout if self.ready else PREPARING)

    def end(self) -> int | None:
        """End the process; its exit code where it had died before."""
        if self.task is None:
            with contextlib.suppress(OSError):
                self.pipe.send(None)
        self.process.join(1)
        code = self.process.exitcode
        if code is None:
            os.kill(self.process.pid, signal.SIGKILL)
            self.process.join()
        self.pipe.close()
        return code

    def last_words(self) -> str:
        try:
            told = self.log.read_text(errors="replace")
        except OSError:
            return ""
        return told[max(0, told.rfind("Fatal Python error")) :][:1500]


def campaign(
    shares: dict[str, float],
    inputs: int,
    seed: int,
    *,
    workers: int = 2,
    batch: int = 500,
    timeout: float = TIMEOUT,
    planted: bool = False,
    tell: Callable[[str], None] = lambda _: None,
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
        tell: is given a line now and then.

    Raises:
        RuntimeError: a family cannot make what its inputs share.
    """
    report, begun = Report(), time.monotonic()
    todo = collections.deque(_tasks(shares, inputs, seed, batch, planted))
    total = len(todo)
    with tempfile.TemporaryDirectory(prefix="fuzz-") as folder:
        running: list[_Worker] = []
        try:
            while todo or any(worker.task for worker in running):
                while todo and len(running) < workers:
                    running.append(_Worker(Path(folder)))
                for worker in running:
                    if worker.task is None and todo:
                        worker.give(todo.popleft())
                        tell(f"{total - len(todo)} of {total}: {worker.task}")
                for worker in list(running):
                    if worker.task is None:
                        running.remove(worker)
                        worker.end()
                _hear(running, report, todo, timeout, Path(folder))
        finally:
            for worker in running:
                worker.end()
    report.seconds = time.monotonic() - begun
    return report


def alone(task: Task, timeout: float, folder: Path) -> Judged:
    """Try one input in a process of its own."""
    worker = _Worker(folder)
    try:
        worker.give(task)
        while True:
            if not worker.pipe.poll(max(0.0, worker.limit(timeout) - time.monotonic())):
                return Judged(
                    "hang", cause=f"{task.family}: silent for {timeout:g} s", more=worker.last_words()
                )
            try:
                heard = worker.pipe.recv()
            except (EOFError, OSError):
                code = worker.end()
                return Judged("crash", cause=f"{task.family}: {_how(code)}", more=worker.last_words())
            worker.heard = time.monotonic()
            if not isinstance(heard, str):
                worker.task = None
                return heard[1]
            _begun(heard)
            worker.ready = True
    finally:
        if not worker.pipe.closed:
            worker.end()


def _tasks(shares: dict[str, float], inputs: int, seed: int, batch: int, planted: bool) -> Iterator[Task]:
    """Batches, those of all families by turns."""
    whole = sum(shares.values())
    counts = {name: max(1, round(inputs * share / whole)) for name, share in shares.items()}
    for first in range(0, max(counts.values()), batch):
        for name, count in counts.items():
            if first < count:
                yield Task(name, seed, first, min(batch, count - first), planted)


def _hear(
    running: list[_Worker], report: Report, todo: collections.deque, timeout: float, folder: Path
) -> None:
    """Take what workers tell, and replace those that died or stand still."""
    if not running:
        return
    until = min(worker.limit(timeout) for worker in running)
    ready = multiprocessing.connection.wait(
        [worker.pipe for worker in running], max(0.0, until - time.monotonic()) + 0.01
    )
    for worker in list(running):
        died = False
        if worker.pipe in ready:
            died = not _take(worker, report)
        elif time.monotonic() < worker.limit(timeout):
            continue
        else:
            died = True
        if died:
            running.remove(worker)
            _replace(worker, report, todo, timeout, folder)


def _take(worker: _Worker, report: Report) -> bool:
    """Take all that a worker has told; False where it has died."""
    task = worker.task
    try:
        while worker.pipe.poll():
            heard = worker.pipe.recv()
            worker.heard = time.monotonic()
            if isinstance(heard, str):
                _begun(heard)
                worker.ready = True
                continue
            number, found = heard
            _note(report, task, number, found)
            worker.next = number + 1
            if worker.next == task.first + task.count:
                worker.task = None
    except (EOFError, OSError):
        return False
    return True


def _begun(heard: str) -> None:
    """Raise where a worker says that it cannot begin."""
    if heard != READY:
        raise RuntimeError(heard)


def _note(report: Report, task: Task, number: int, found: Judged, before: int = 0) -> None:
    report.counts[task.family][found.verdict] += 1
    if found.verdict in FAILURES:
        report.kept.append(Kept(task.family, task.seed, number, found, before))


def _replace(worker: _Worker, report: Report, todo: collections.deque, timeout: float, folder: Path) -> None:
    """Judge the input at which a worker ended, by a trial alone, and give back the rest of its batch."""
    code, task, number = worker.end(), worker.task, worker.next
    crashed = code is not None
    rest = task.first + task.count - number - 1
    found = alone(task._replace(first=number, count=1), timeout, folder)
    if crashed and found.verdict != "crash":
        more = f"alone: {found.verdict}\n{worker.last_words()}"
        found = Judged("crash", found.told, f"{task.family}: {_how(code)}, in its batch alone", more)
    if not found.told and found.verdict in FAILURES:
        found = found._replace(told=_told(task, number))
    _note(report, task, number, found, number - task.first if "in its batch" in found.cause else 0)
    if rest:
        todo.append(task._replace(first=number + 1, count=rest))


def _told(task: Task, number: int) -> str:
    """The call of an input that could not tell it: drawn again, not made."""
    from tests.fuzz.drawing import Draw
    from tests.fuzz.families import families

    try:
        family = families(task.planted)[task.family]
        return family.draw(Draw(family.name, task.seed, number)).told()
    except Exception as error:
        return f"{task.family} {number}, which cannot be drawn here: {error!r}"


def _how(code: int | None) -> str:
    if code is None:
        return "ended"
    return f"killed by {signal.Signals(-code).name}" if code < 0 else f"exit status {code}"
