"""Times of the phases of a simulation's steps, in milliseconds."""

from collections.abc import Callable

import numpy as np


class Timings:
    """Milliseconds of each phase of each step, of fused steps launched together, and of whole runs.

    A backend that times on the device adds functions that return the time. They hold events of the device
    until `resolve` calls them: when the times are read, and each time a run reads its fault word.

    Attributes:
        total: (steps, ms) of every `run`, measured around the whole loop.
        known_pieces: (first step, steps, ms) of each resolved group of steps launched together.
    """

    def __init__(self) -> None:
        self._times: dict[str, list[tuple[int, float]]] = {}
        self.known_pieces: list[tuple[int, int, float]] = []
        self._pending: list[tuple[str | None, int, int, Callable[[], float]]] = []
        self.total: list[tuple[int, float]] = []

    def __repr__(self) -> str:
        steps = sum(taken for taken, _ in self.total)
        phases = ", ".join(self._times) or "no phases"
        return f"<Timings of {len(self.total)} runs, {steps} steps; {phases}>"

    def add(self, phase: str, step: int, ms: float | Callable[[], float]) -> None:
        """Record the time of a phase of a step.

        Args:
            phase: name of the phase.
            step: number of the step.
            ms: milliseconds, or a function that returns them.
        """
        self._pending.append((phase, step, 1, ms if callable(ms) else lambda: ms))

    def add_piece(self, step: int, steps: int, ms: Callable[[], float]) -> None:
        """Record the time of consecutive steps that were launched together.

        Args:
            step: number of the first step.
            steps: number of steps.
            ms: function that returns their milliseconds in all.
        """
        self._pending.append((None, step, steps, ms))

    def resolve(self, before: int | None = None) -> None:
        """Read the times of what was added; waits for work of the device that is not done yet.

        Args:
            before: read times of steps before this one only; None for all.
        """
        pending = self._pending
        taken = len(pending)
        if before is not None:
            later = (k for k, (_, step, steps, _) in enumerate(pending) if step + steps > before)
            taken = next(later, taken)
        for phase, step, steps, ms in pending[:taken]:
            if phase is None:
                self.known_pieces.append((step, steps, ms()))
                continue
            times = self._times.setdefault(phase, [])
            earlier = times.pop()[1] if times and times[-1][0] == step else 0.0  # a phase in two parts
            times.append((step, earlier + ms()))
        del pending[:taken]

    def known(self, phase: str) -> list[tuple[int, float]]:
        """Return the (step, ms) of a phase that are resolved; does not wait."""
        return self._times.get(phase, [])

    @property
    def milliseconds(self) -> dict[str, list[float]]:
        """Return the durations of each phase in ms, one for each step in which the phase ran."""
        self.resolve()
        return {phase: [ms for _, ms in times] for phase, times in self._times.items()}

    @property
    def steps(self) -> dict[str, list[int]]:
        """Return the step of each duration of each phase."""
        self.resolve()
        return {phase: [step for step, _ in times] for phase, times in self._times.items()}

    def clear(self) -> None:
        """Remove all times; to be called after the warm-up."""
        self._times.clear()
        self.known_pieces.clear()
        self._pending.clear()
        self.total.clear()

    def median(self, phase: str) -> float:
        """Return the median time of a phase in ms; NaN if the phase never ran."""
        times = self.milliseconds.get(phase)
        return float(np.median(times)) if times else float("nan")
