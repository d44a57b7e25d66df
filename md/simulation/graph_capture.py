"""Steps given to a device in pieces: each is recorded once and launched as one from then on.

A step of a small system takes a device less time than its launches take the host. A record holds the
addresses of all arrays, so it fits only where they are in the same roles.
"""

from __future__ import annotations

from collections.abc import Callable
from functools import partial
from typing import NamedTuple

from md.backend import Backend
from md.particles.arrays import ParticleArrays
from md.search.base import Search, StepPlan

MOST_RECORDS = 100


class CapturedGraph(NamedTuple):
    """A piece.

    Attributes:
        launch: takes its steps.
        before, after: arrays, in the roles they have before and after.
    """

    launch: Callable[[], None]
    before: tuple
    after: tuple


class CapturedSteps:
    """The pieces of a run.

    Args:
        particles, search: of the run.
        backend: of both.
        take: takes the steps of a plan by launches alone, the first of them being the given one.

    Attributes:
        launched: whether the last piece was launched as it had been recorded before, so that its time is that
            of its steps alone.
    """

    def __init__(
        self,
        particles: ParticleArrays,
        search: Search,
        backend: Backend,
        take: Callable[[StepPlan, int], None],
    ):
        self._particles, self._search, self._backend, self._steps = particles, search, backend, take
        self._records: dict[tuple, CapturedGraph] = {}
        self.launched = False
        self._replaced = search.replaced
        self._compiled: set[tuple[bool, bool]] = set()

    def __len__(self) -> int:
        return len(self._records)

    def take(self, plan: StepPlan, step: int) -> StepPlan:
        """Take the steps of a plan, or the first of them.

        Args:
            plan: what is allowed.
            step: number of the first step, above 0.

        Returns:
            What was done.
        """
        lengths = self._backend.piece_lengths
        plan = plan._replace(steps=next(length for length in lengths if length <= plan.steps))
        kind = plan.build, plan.rebuild
        if kind not in self._compiled:  # only kernels that have been called can be recorded
            self._compiled.add(kind)
            self.launched = False
            self._steps(plan, step)
            return plan
        replaced = self._search.replaced
        if any(array is not known for array, known in zip(replaced, self._replaced, strict=True)):
            self._records.clear()  # they hold those that are gone
            self._replaced = replaced
        before = (*self._particles.arrays, *replaced)
        key = plan, step % 2, *map(id, before)
        self.launched = key in self._records
        if not self.launched:
            if len(self._records) == MOST_RECORDS:
                self._records.clear()
            try:
                launch = self._backend.record(partial(self._steps, plan, step))
            except BaseException:
                self._particles.arrays = before[: len(self._particles.arrays)]  # nothing was done
                raise
            self._records[key] = CapturedGraph(launch, before, self._particles.arrays)
        record = self._records[key]
        record.launch()
        self._particles.arrays = record.after
        return plan
