"""Time step of a simulation: the given one, or one that resolves every contact."""

from __future__ import annotations

import math
import warnings
from collections.abc import Sequence
from typing import Any

from md import checks
from md.boundaries.base import Boundary
from md.boundaries.walls import Walls
from md.errors import OverdampedContact
from md.laws import PairLaw
from md.laws.spring_dashpot import LEAST_RESTITUTION, steps_per_contact
from md.simulation.caller import levels_to_caller

ROUNDING = 1e-9  # of the restitution of a law made for the least one


def time_step(
    dt: float | None, law: PairLaw, walls: Walls | None, surroundings: Sequence[Boundary] = ()
) -> float:
    """Return the given time step, or the longest that resolves every contact.

    The derived step is a fiftieth of the shortest contact time, or less for strong damping, such that the
    restitution of each contact is within 2 % of the law's (`md.laws.spring_dashpot.steps_per_contact`). It
    does not depend on the radii of the spheres, as contact times do not (`md.laws.polydisperse`).

    Args:
        dt: in time units; None to derive it from the contacts.
        law: between two particles. Its attributes `contact_time`, `restitution` and `tangential_restitution`
            are used, where it has them.
        walls: None for none.
        surroundings: other boundaries that particles touch.

    Raises:
        TypeError: a step that is no number.
        ValueError: a step that is not positive and finite; or None without a contact to derive it from, with
            a contact that never ends, or with a restitution below `LEAST_RESTITUTION`.
    """
    if dt is not None:
        remedy = "None for a step that resolves every contact"
        return checks.number("dt", dt, above=0, unit="time units", remedy=remedy)
    contacts = [(touched, getattr(touched, "contact_time", math.inf)) for touched in (law, *surroundings)]
    if walls is not None:
        contacts.append((walls, walls.duration(law)))
    steps = [time / _steps(touched) for touched, time in contacts if math.isfinite(time)]
    if not steps:
        raise ValueError(f"dt = None, but {law} has no contact time to derive it from; give dt in time units")
    return float(min(steps))  # a law may return a numpy number


def _steps(touched: Any) -> int:
    """Return the time steps that resolve a contact under a law, or with walls or another boundary."""
    restitution = getattr(touched, "restitution", 1.0)
    if restitution < LEAST_RESTITUTION * (1 - ROUNDING):
        raise ValueError(
            f"dt = None, but a contact under {touched} leaves {restitution:.3g} of the speed; allowed: at "
            f"least {LEAST_RESTITUTION:g}; lower the damping, or give dt in time units"
        )
    return steps_per_contact(restitution, getattr(touched, "tangential_restitution", 1.0))


def warn_if_endless(law: PairLaw, surroundings: Sequence[Boundary] = ()) -> None:
    """Warn with `OverdampedContact` of contacts that never end, between particles or with a boundary.

    Args:
        law: between two particles.
        surroundings: boundaries that particles touch.
    """
    for touched in (law, *surroundings):
        try:
            getattr(touched, "contact_time", None)
        except ValueError as error:
            warnings.warn(
                f"contacts under {touched}: {error}", OverdampedContact, stacklevel=levels_to_caller()
            )
