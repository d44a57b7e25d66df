"""Time steps of a simulation: as a whole, or phase by phase."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping
from typing import Any

import md
from experiments.measurement.energy import Taken, Work
from experiments.measurement.hardware_caches import working_set
from experiments.measurement.rounds import Entry
from md.search.lists.list_search import ListSearch
from sfc import checks

STEPS_AHEAD = 25  # steps that the host launches before the device starts
HEAD_START = 0.01  # s for these launches, which take half of it


def benchmark_simulation(state: md.State, case: Any, search: Any, **options: Any) -> md.Simulation:
    """Make a simulation of the spheres and with the time step that measurements of particles share.

    Args:
        state: its particles.
        case: settings or a job, with the fields `backend` and `precision`.
        search: name of a search, or its configuration.
        options: others of `md.Simulation`; a backend among them is taken in place of that of the case.
    """
    same = {"dt": md.scenes.BENCHMARK_DT, "backend": case.backend, "precision": case.precision}
    return md.Simulation(state, md.scenes.BENCHMARK_LAW, search=search, **same | options)


def phases_of(simulation: md.Simulation, steps: int) -> dict[str, list[float]]:
    """Time the phases of the next steps; on a device without waiting times for the host.

    Args:
        simulation: runs the steps; its earlier times are cleared.
        steps: number of steps.

    Returns:
        Phase -> ms of each of its executions.

    Raises:
        TypeError: no simulation, or a number of steps that is no integer.
        ValueError: no steps.
    """
    checks.instance("simulation", simulation, md.Simulation, "an md.Simulation")
    steps = checks.integer("steps", steps, unit="steps")
    simulation.timings.clear()
    with simulation.backend.delay_device(HEAD_START):
        for taken in range(0, steps, STEPS_AHEAD):
            simulation.run(min(STEPS_AHEAD, steps - taken))
    return simulation.timings.milliseconds


def whole_steps(simulation: md.Simulation, steps: int) -> float:
    """Time steps of one run without phases, in ms: the whole loop, with the host's work.

    Raises:
        TypeError: no simulation, or a number of steps that is no integer.
        ValueError: no steps.
    """
    checks.instance("simulation", simulation, md.Simulation, "an md.Simulation")
    steps = checks.integer("steps", steps, unit="steps")
    simulation.timings.clear()
    simulation.run(steps, phases=False)
    ((_, ms),) = simulation.timings.total
    return ms


def sample_of_steps(simulation: md.Simulation, steps: int) -> dict[str, float]:
    """Time steps as a whole after a step that is not timed, which loads the caches again after other cases.

    Returns:
        `time_ms`, the mean of a step, and `sample_ms`, the sum.

    Raises:
        TypeError: no simulation, or a number of steps that is no integer.
        ValueError: no steps.
    """
    checks.instance("simulation", simulation, md.Simulation, "an md.Simulation")
    steps = checks.integer("steps", steps, unit="steps")
    simulation.run(1, phases=False)
    ms = whole_steps(simulation, steps)
    return {"time_ms": ms / steps, "sample_ms": ms}


def steps_taken(simulation: md.Simulation, steps: int) -> Taken:
    """Take steps, and wait for their end: the `work` of an `Entry`.

    Raises:
        TypeError: a number of steps that is no integer.
        ValueError: a negative number.
    """
    simulation.timings.clear()
    simulation.run(steps, phases=False)
    return Taken(steps)


class KeptYoung:
    """The `work` of an `Entry` with reorders at an interval; the first call begins with one.

    Args:
        simulation: takes the steps.
        steps: of a call.
        every: steps between two reorders; 0 for no reorders.
        is_ordered: whether memory without reorders was in an order at the first step.
    """

    def __init__(self, simulation: md.Simulation, steps: int, every: int, is_ordered: bool):
        self._simulation, self._steps, self._every = simulation, steps, every
        self._left, self._is_ordered = 0, is_ordered

    def __call__(self) -> Taken:
        """Take the steps of a call, or those up to the next reorder."""
        if not self._every:
            taken = steps_taken(self._simulation, self._steps)
            return taken._replace(age_steps=self._simulation.step if self._is_ordered else None)
        if not self._left:
            self._simulation.reorder()
            self._left = self._every
        taken = steps_taken(self._simulation, min(self._steps, self._left))
        self._left -= taken.steps
        return taken._replace(age_steps=self._every - self._left)


def entry_of(
    simulation: md.Simulation,
    columns: Mapping[str, Any],
    sample: Callable[[], Iterable[dict]],
    at_end: Callable[[], dict[str, Any]] = dict,
    work: Work | None = None,
) -> Entry:
    """Return a simulation as a case of rounds, with columns that all simulations of particles have.

    Args:
        simulation: which is checked, and ready to be sampled.
        columns: that identify the case.
        sample: of `Entry`.
        at_end: of `Entry`.
        work: of `Entry`.

    Returns:
        The case; its columns are also `temperature_start`, `temperature_end`, those of `working_set`,
        `steps_per_build` of the search since now, and of one with lists `skin_d` and `inner_skin_d`, the
        widths in d.

    Raises:
        TypeError: no simulation.
    """
    checks.instance("simulation", simulation, md.Simulation, "an md.Simulation")
    state, precision = simulation.state, simulation.config.precision
    held = working_set(len(state), state.box.dim, precision, simulation.backend)
    start = {"temperature_start": md.observe.temperature(state)}
    first, built = simulation.step, simulation.builds

    def ends() -> dict[str, Any]:
        found = {"temperature_end": md.observe.temperature(simulation.state)}
        found["steps_per_build"] = (simulation.step - first) / max(simulation.builds - built, 1)
        if isinstance(search := simulation.search, ListSearch):
            found |= {"skin_d": search.skin.width, "inner_skin_d": search.skin.inner}
        return found | at_end()

    return Entry({**columns, **start, **held}, sample, ends, work=work)


def phase_columns(simulation: md.Simulation, steps: int, whole_ms: float) -> dict[str, float]:
    """Time the phases of the next steps, as columns.

    Args:
        simulation: runs the steps; its earlier times are cleared.
        steps: number of steps.
        whole_ms: time of as many steps as a whole.

    Returns:
        `<phase>_ms`, the mean of a step, for each phase; `phases_over_step`, their sum over the whole.

    Raises:
        TypeError: no simulation, or a number of steps that is no integer.
        ValueError: no steps.
    """
    phases = {phase: sum(of) for phase, of in phases_of(simulation, steps).items()}
    found = {f"{phase}_ms": ms / steps for phase, ms in phases.items()}
    return found | {"phases_over_step": sum(phases.values()) / whole_ms}
