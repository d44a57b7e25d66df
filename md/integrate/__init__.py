"""Time stepping schemes. A new one is its own file (pair) and one line here, or is added by `register`."""

from md import checks
from md.integrate.base import Integrator, Stepper, SynchronousStepper
from md.integrate.descent import SteepestDescent
from md.integrate.euler import AdaptiveEuler
from md.integrate.flight import Flight
from md.integrate.verlet import PositionVerlet, VelocityVerlet
from md.particles.capabilities import IntegratorCapabilities as Capabilities
from md.registry import Registry, require_name

__all__ = [
    "INTEGRATORS",
    "AdaptiveEuler",
    "Capabilities",
    "Flight",
    "Integrator",
    "PositionVerlet",
    "SteepestDescent",
    "Stepper",
    "SynchronousStepper",
    "VelocityVerlet",
    "integrator",
    "register",
]

_BUILT_IN = VelocityVerlet, PositionVerlet, AdaptiveEuler, SteepestDescent, Flight
INTEGRATORS: Registry[Integrator] = Registry(
    "integrator", Integrator, {kind.name: kind for kind in _BUILT_IN}, check=require_name
)
register = INTEGRATORS.register


def integrator(choice: str | Integrator | Stepper) -> Integrator:
    """Return the integrator of a name, or an integrator as it is.

    Raises:
        TypeError: neither a name nor an integrator.
        ValueError: an unknown name; the message lists the known ones.
    """
    if isinstance(choice, Stepper):
        return choice.integrator
    if isinstance(choice, Integrator):
        return choice
    remedy = "or an integrator, such as md.integrate.VelocityVerlet()"
    return INTEGRATORS[checks.word("integrator", choice, INTEGRATORS, remedy)]()
