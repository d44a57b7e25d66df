"""Moving the particles by one step. A new integrator is its own file (pair) and one line here."""

from md import checks
from md.integrate.base import Integrator
from md.integrate.descent import SteepestDescent
from md.integrate.euler import AdaptiveEuler
from md.integrate.verlet import PositionVerlet, VelocityVerlet

INTEGRATORS: dict[str, type[Integrator]] = {
    "velocity_verlet": VelocityVerlet,
    "position_verlet": PositionVerlet,
    "adaptive_euler": AdaptiveEuler,
    "steepest_descent": SteepestDescent,
}


def integrator(choice: str | Integrator) -> Integrator:
    """An integrator by name, or one as it is.

    Raises:
        TypeError: neither a name nor an integrator.
        ValueError: an unknown name; lists those known.
    """
    if isinstance(choice, Integrator):
        return choice
    return INTEGRATORS[checks.word("integrator", choice, INTEGRATORS, "or an integrator of your own")]()
