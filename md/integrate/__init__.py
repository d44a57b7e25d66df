"""Moving the particles by one step. A new integrator is its own file (pair) and one line here."""

from md.integrate.descent import SteepestDescent
from md.integrate.euler import AdaptiveEuler
from md.integrate.strategy import Integrator
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
        ValueError: an unknown name; lists those known.
    """
    if isinstance(choice, Integrator):
        return choice
    if choice not in INTEGRATORS:
        raise ValueError(f"unknown integrator {choice!r}; known: {', '.join(INTEGRATORS)}")
    return INTEGRATORS[choice]()
