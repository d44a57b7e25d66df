"""The force on each particle: pair law, boundaries and external field together."""

from __future__ import annotations

from md.backend.base import Array
from md.boundaries.base import ActiveBoundaries
from md.integrate.base import Stepper
from md.laws import PairLaw
from md.search.base import Search


class Forces:
    """Computes the force on each particle of a system.

    Args:
        law: between pairs.
        search: finds the pairs.
        stepper: moves the particles by these forces; keeps the clock of the external field.
        boundaries: other boundaries.
    """

    def __init__(self, law: PairLaw, search: Search, stepper: Stepper, boundaries: ActiveBoundaries):
        self.law, self._search, self._stepper, self._boundaries = law, search, stepper, boundaries

    def compute(self, out: Array, step: int) -> None:
        """Compute the whole force at the present positions; the search is up to date.

        Args:
            out: (n, dim) array, filled.
            step: number of the next step.
        """
        self._without_field(out)
        self._stepper.add_external_field(out, step)

    def compute_for_step(self, out: Array, step: int) -> None:
        """Compute the force that the stepper needs to take a step.

        The external field is left out if the stepper adds it itself, and is that at the positions where the
        scheme needs the force.
        """
        self._without_field(out)
        if not self._stepper.capabilities.adds_external_field:
            self._stepper.add_external_field(out, step, self._stepper.lead)

    def _without_field(self, out: Array) -> None:
        self._search.force(self.law, out)
        for boundary in self._boundaries:
            boundary.add_forces(out)
