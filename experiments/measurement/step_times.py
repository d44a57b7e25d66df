"""Times of the phases of some steps, of a device's work alone."""

from __future__ import annotations

import md
from sfc import checks

STEPS_AHEAD = 25  # that a host gives a device before it begins
HEAD_START = 0.01  # seconds in which it does; launching them takes half of that


def phases_of(simulation: md.Simulation, steps: int) -> dict[str, list[float]]:
    """Times of the phases of the next steps: on a device, of its work alone, for it never waits for the host.

    Args:
        simulation: takes them; its times are cleared before.
        steps: how many.

    Returns:
        Phase -> ms of each time that it ran.

    Raises:
        TypeError: no simulation, or a number of steps that is no integer.
        ValueError: no steps.
    """
    checks.instance("simulation", simulation, md.Simulation, "an md.Simulation")
    steps = checks.integer("steps", steps, unit="steps")
    simulation.timings.clear()
    with simulation.backend.host_ahead(HEAD_START):
        for taken in range(0, steps, STEPS_AHEAD):
            simulation.run(min(STEPS_AHEAD, steps - taken))
    return simulation.timings.milliseconds


def whole_steps(simulation: md.Simulation, steps: int) -> float:
    """Milliseconds of some steps in one run, without phases: the whole loop, the host's work included.

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
