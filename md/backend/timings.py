"""Times of the phases of a simulation's steps, in milliseconds."""

from collections.abc import Callable

import numpy as np


class Timings:
    """Milliseconds of each phase of each step, of fused steps taken in one piece, and of whole runs.

    A backend whose clock runs on the device adds functions that yield the time. They hold the device's
    events until `resolve` calls them: when the times are read, and whenever a run reads its faults.

    Attributes:
        total: (steps, ms) of every `run`, taken around the whole loop.
    """

    def __init__(self):
        self._times: dict[str, list[tuple[int, float]]] = {}
        self._pieces: list[tuple[int, int, float]] = []
        self._pending: list[tuple[str | None, int, int, Callable[[], float]]] = []
        self.total: list[tuple[int, float]] = []

    def add(self, phase: str, step: int, ms: float | Callable[[], float]) -> None:
        """Record that a phase took some time at a step."""
        self._pending.append((phase, step, 1, ms if callable(ms) else lambda: ms))

    def add_piece(self, step: int, steps: int, ms: Callable[[], float]) -> None:
        """Record that some steps in a row, from one on, took some time together."""
        self._pending.append((None, step, steps, ms))

    def resolve(self, before: int | None = None) -> None:
        """Take the times of what was added; waits for the device where it is not done yet.

        Args:
            before: of steps before this one alone; None for all.
        """
        pending = self._pending
        taken = len(pending)
        if before is not None:
            later = (k for k, (_, step, steps, _) in enumerate(pending) if step + steps > before)
            taken = next(later, taken)
        for phase, step, steps, ms in pending[:taken]:
            if phase is None:
                self._pieces.append((step, steps, ms()))
                continue
            times = self._times.setdefault(phase, [])
            held = times.pop()[1] if times and times[-1][0] == step else 0.0  # a phase in two parts
            times.append((step, held + ms()))
        del pending[:taken]

    def known(self, phase: str) -> list[tuple[int, float]]:
        """(step, ms) of a phase, as far as they have been resolved; waits for nothing."""
        return self._times.get(phase, [])

    @property
    def known_pieces(self) -> list[tuple[int, int, float]]:
        """(first step, steps, ms) of what was timed together, likewise."""
        return self._pieces

    @property
    def milliseconds(self) -> dict[str, list[float]]:
        """Phase -> durations in ms, one for every step at which the phase ran."""
        self.resolve()
        return {phase: [ms for _, ms in times] for phase, times in self._times.items()}

    @property
    def steps(self) -> dict[str, list[int]]:
        """Phase -> the step of each of its durations."""
        self.resolve()
        return {phase: [step for step, _ in times] for phase, times in self._times.items()}

    def clear(self) -> None:
        """Forget everything; call it after the warm-up."""
        self._times.clear()
        self._pieces.clear()
        self._pending.clear()
        self.total.clear()

    def median(self, phase: str) -> float:
        """Median of a phase in ms; NaN if it never ran."""
        times = self.milliseconds.get(phase)
        return float(np.median(times)) if times else float("nan")
