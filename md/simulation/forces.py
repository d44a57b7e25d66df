"""Forces of a simulation: sum of pair law, boundaries and external field."""

from __future__ import annotations

from md.backend.base import Array
from md.boundaries.base import ActiveBoundaries
from md.integrate.base import Stepper
from md.laws import PairLaw
from md.search.base import Search


class Forces:
    """Sum of all forces on the particles of a system.

    Args:
        law: between pairs.
        search: finds the pairs.
        stepper: sets the time of the external field.
        boundaries: other boundaries.

    Attributes:
        law: as given.
    """

    def __init__(self, law: PairLaw, search: Search, stepper: Stepper, boundaries: ActiveBoundaries):
        self.law, self._search, self._stepper = law, search, stepper
        self._active = tuple(boundaries)
        self._adds_field = not stepper.capabilities.adds_external_field

    def compute(self, out: Array, step: int) -> None:
        """Compute the total force at the present positions; the search must be up to date.

        Args:
            out: (n, dim) array, filled.
            step: number of the next step.
        """
        self._add_pairs_and_boundaries(out)
        self._stepper.add_external_field(out, step)

    def compute_for_step(self, out: Array, step: int) -> None:
        """Compute the force that the stepper needs for a step.

        The external field is at the time at which the scheme needs the force; it is left out if the stepper
        adds it.
        """
        self._add_pairs_and_boundaries(out)
        if self._adds_field:
            self._stepper.add_external_field(out, step, self._stepper.lead)

    def _add_pairs_and_boundaries(self, out: Array) -> None:
        self._search.force(self.law, out)
        for boundary in self._active:
            boundary.add_forces(out)
