"""Linear spring-dashpot contact of two spheres of diameter and mass 1, in closed form.

Force on i: K (1 - r/d) n - mu ((v_i - v_j) . n) n for r < d, with n from j to i. Two equal masses collide
with m_eff = m/2, w0^2 = K / (d m_eff) and g = mu / (2 m_eff). They separate, again at r = d, after pi / w
with w^2 = w0^2 - g^2, with e = exp(-pi g / w) of their speed.

The dashpot's pull jumps at r = d, so the e of an integrated contact has an error of first order in dt: at 50
steps a contact at most 4e-3 for e = 0.9, 7e-3 for 0.8 and 8e-3 for 0.7. At smaller e it grows about as
(log e)^2, and `resolving_steps` keep e within 2 % down to `LEAST_RESTITUTION`.

Two spheres of other radii, of sum s, have with d = 1 the force K (s - r) n - mu ((v_i - v_j) . n) n: force
for a length of overlap, damping, contact time and e are those of two of diameter 1 (`md.laws.polydisperse`).

Schaefer, Dippel and Wolf, J. Phys. I France 6 (1996) 5.
"""

import math
from dataclasses import dataclass
from typing import Any

import numpy as np

from md.backend.prelude import add_scaled, dot, load, sub
from md.checks import array, number, refuse_value, set_fields
from md.laws.pair import pair_function
from sfc.compile import inlined

EFFECTIVE_MASS = 0.5
SHORTEST = 1e-150  # contact time, in time units; the stiffness of a shorter one overflows
STIFFEST, STRONGEST = 1e302, 1e154  # stiffness, and damping, with a finite square
SMALLEST = 1e-300  # diameter, so that half of it is a normal number
LEAST_RESTITUTION = 0.01  # of some 2,000 steps a contact; a smaller one needs many more
STEPS_PER_CONTACT = 50
FIELDS = "spring", "damping", "diameter"  # fields of the law in kernels


@dataclass(frozen=True)
class SpringDashpot:
    """Spring and dashpot along the line of centres; `damping=0` is elastic, `stiffness=0` too an ideal gas.

    Between spheres of other radii than 0.5 the force is stiffness / diameter for a length of overlap, and the
    damping that given: contact time and restitution do not depend on the radii.

    Args:
        stiffness: K, in m d / time^2: force of two spheres of diameter d at full overlap.
        damping: mu, in m / time.
        diameter: d; 1 except for relaxing a packing with a margin.

    Raises:
        TypeError: a value that is not a number.
        ValueError: a negative or infinite value.
    """

    stiffness: float
    damping: float
    diameter: float = 1.0

    def __post_init__(self) -> None:
        set_fields(
            self,
            stiffness=number("stiffness", self.stiffness, 0, STIFFEST),
            damping=number("damping", self.damping, 0, STRONGEST),
            diameter=number("diameter", self.diameter, SMALLEST),
        )
        if not math.isfinite(self.stiffness / (self.diameter * EFFECTIVE_MASS)):
            raise refuse_value(
                "diameter", self.diameter, f"large enough for a finite spring of stiffness {self.stiffness:g}"
            )

    @classmethod
    def from_restitution(cls, restitution: float, contact_time: float) -> "SpringDashpot":
        """Make the law with this coefficient of restitution and contact duration, in closed form.

        Args:
            restitution: e, 0.01 to 1; between spheres of any two sizes.
            contact_time: duration of a contact in time units, positive; of spheres of any two sizes.

        Raises:
            TypeError: a value that is not a number.
            ValueError: a value outside its range.
        """
        restitution = resolved_restitution("restitution", restitution)
        contact_time = number("contact_time", contact_time, above=SHORTEST, unit="time units")
        g = -math.log(restitution) / contact_time
        w0_squared = (math.pi / contact_time) ** 2 + g**2
        return cls(stiffness=w0_squared * EFFECTIVE_MASS, damping=2 * EFFECTIVE_MASS * g)

    @property
    def cutoff(self) -> float:
        """Distance in d from which on there is no force: the diameter."""
        return self.diameter

    @property
    def contact_time(self) -> float:
        """Duration of a contact in time units; infinite without a spring.

        Raises:
            ValueError: an overdamped contact, which never ends.
        """
        return math.pi / self._frequency() if self.stiffness else math.inf

    @property
    def restitution(self) -> float:
        """Coefficient of restitution; 1 for an ideal gas.

        Raises:
            ValueError: an overdamped contact.
        """
        g = self.damping / (2 * EFFECTIVE_MASS)
        return math.exp(-g * self.contact_time) if g else 1.0

    @property
    def repulsive_time(self) -> float:
        """Duration in time units of the part of a contact in which the force is repulsive; then it attracts.

        (pi - 2 atan(g / w)) / w; infinite without a spring.

        Raises:
            ValueError: an overdamped contact.
        """
        if not self.stiffness:
            return math.inf
        w = self._frequency()
        return (math.pi - 2 * math.atan2(self.damping / (2 * EFFECTIVE_MASS), w)) / w

    @property
    def closest_start(self) -> float:
        """Least allowed distance of two centres at the start: half the diameter; 0 without a spring.

        At 50 steps a contact only a pair that approaches by 0.03 d a step comes this close; the two fastest
        particles of the benchmark gas come to 0.7 d in a head-on collision.
        """
        return self.diameter / 2 if self.stiffness else 0.0

    def potential(self, distance: np.ndarray) -> np.ndarray:
        """Compute the spring energy of pairs, K (d - r)^2 / (2 d) for r < d.

        Args:
            distance: (p,) in d.

        Returns:
            (p,) in m d^2 / time^2, in the dtype of the distances if that is float32 or float64, else float64.

        Raises:
            TypeError: distances that cannot be converted to an array.
            ValueError: another shape, distances that are not numbers, or one below 0.
        """
        distance = array("distance", distance, "fiu", "real numbers", ("p",), low=0)
        if distance.dtype not in (np.float32, np.float64):
            distance = distance.astype(np.float64)
        return self.stiffness * np.square(np.maximum(self.diameter - distance, 0)) / (2 * self.diameter)

    def _frequency(self) -> float:
        """Compute the angular frequency w of a contact.

        Raises:
            ValueError: an overdamped contact.
        """
        return contact_frequency("", self.stiffness, self.damping, EFFECTIVE_MASS, self.diameter)

    @property
    def spring(self) -> float:
        """Force per length of overlap, K / d in m / time^2."""
        return self.stiffness / self.diameter


def contact_frequency(
    of: str, stiffness: float, damping: float, effective_mass: float, diameter: float = 1.0
) -> float:
    """Compute the angular frequency w of a contact by a spring and a dashpot.

    Args:
        of: what they belong to, for the message: " of a wing".
        stiffness: K, in m d / time^2: force of an overlap by a diameter.
        damping: mu, in m / time.
        effective_mass: in m.
        diameter: d.

    Raises:
        ValueError: an overdamped contact, which never ends.
    """
    w0_squared, g = stiffness / (diameter * effective_mass), damping / (2 * effective_mass)
    if g**2 >= w0_squared:
        raise ValueError(
            f"damping = {damping}{of} with stiffness = {stiffness} is overdamped: a contact never ends; "
            f"allowed: damping < {2 * effective_mass * math.sqrt(w0_squared):.6g}"
        )
    return math.sqrt(w0_squared - g**2)


def resolved_restitution(name: str, value: Any) -> float:
    """Check a coefficient of restitution that time steps can resolve.

    Args:
        name: of the argument.
        value: e, `LEAST_RESTITUTION` to 1.

    Returns:
        The value as a Python float.

    Raises:
        TypeError: a value that is not a number.
        ValueError: a value outside its range.
    """
    remedy = "a smaller one would need more than 2,000 steps a contact"
    return number(name, value, LEAST_RESTITUTION, 1, remedy=remedy)


def resolving_steps(restitution: float) -> int:
    """Compute the time steps of a contact after which its restitution is within 2 % of the law's.

    Args:
        restitution: e, `LEAST_RESTITUTION` to 1.

    Returns:
        100 (log e)^2, rounded up, at least 1: 1 at e = 1, 5 at 0.8, 49 at 0.5, 531 at 0.1, 2121 at 0.01.

    Fitted to integrated contacts that start at any moment of a step; the largest error is 1.9 %.
    """
    return max(1, math.ceil(100 * math.log(restitution) ** 2))


def require_resolved(name: str, restitution: float, steps: int) -> None:
    """Check that a number of time steps a contact resolves a restitution.

    Args:
        name: of the restitution.
        restitution: e, `LEAST_RESTITUTION` to 1.
        steps: time steps a contact.

    Raises:
        TypeError: a restitution that is not a number.
        ValueError: a restitution outside its range, or fewer steps than `resolving_steps`.
    """
    needed = resolving_steps(resolved_restitution(name, restitution))
    if steps < needed:
        raise ValueError(
            f"{name} = {restitution} with {steps} time steps a contact; allowed: at least {needed} steps, "
            "after which it is within 2 %; take more steps a contact, or a larger restitution"
        )


def steps_per_contact(restitution: float, tangential_restitution: float = 1.0) -> int:
    """Compute the time steps of a contact for a simulation without a given time step.

    Args:
        restitution: e, `LEAST_RESTITUTION` to 1.
        tangential_restitution: of a drag, e_t, 0 to 1.

    Returns:
        At least 50 and `resolving_steps`. With L = -log e_t also 25 L^2 + 50 L: they keep e_t within 2 % down
        to 0.01 (L^2 / 2 of the drag's Euler steps, L of the step in which it ends); not more below, where a
        drag stands for Coulomb's limit.
    """
    drag = -math.log(max(tangential_restitution, LEAST_RESTITUTION))
    return max(STEPS_PER_CONTACT, resolving_steps(restitution), math.ceil(25 * drag**2 + 50 * drag))


@inlined
def normal_force(p, r, r2, approach):
    """Compute the normal force on i divided by the distance, negative for a pull; times dr it is the force.

    Args:
        p: kernel parameters of the law, with `FIELDS`.
        r: distance.
        r2: square of the distance.
        approach: (v_i - v_j) . dr, negative while the particles approach.
    """
    return p.spring * (p.diameter - r) / r - p.damping * approach / r2


@inlined
def spring_energy(law, r):
    """Compute the energy in the spring at distance r."""
    return law.spring * (law.diameter - r) ** 2 / 2


@pair_function(SpringDashpot, fields=FIELDS, potential=spring_energy, reciprocal=True)
def interact(law, vel, i, j, r2, dr, vi, acc):
    """Add the force of one partner."""
    if r2 >= law.diameter * law.diameter or r2 == 0:  # coincident centres have no direction to push along
        return acc
    approach = dot(sub(vi, load(vel, j, acc)), dr)
    return add_scaled(acc, normal_force(law, math.sqrt(r2), r2, approach), dr)
