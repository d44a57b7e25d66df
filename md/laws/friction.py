"""Linear spring-dashpot contact with tangential friction, for spheres that do not rotate.

Normal force as in `md.laws.spring_dashpot`. Against it the tangential force on i,

    -min(gamma |v_t|, f max(F_n, 0)) v_t / |v_t|,    v_t = (v_i - v_j) - ((v_i - v_j) . n) n,

is viscous at a low sliding speed and limited by Coulomb's law at a high one; F_n is the normal force,
dashpot included. Late in a contact, where the dashpot pulls harder than the spring pushes, F_n is negative:
nothing presses the surfaces together, and there is no friction. A contact conserves momentum, but not angular
momentum, because spheres do not rotate.

Haff and Werner, Powder Technol. 48 (1986) 239; eq. (10) of Schaefer, Dippel and Wolf, J. Phys. I France 6
(1996) 5, with the limit f |F_n|, which acts during the pull too.
"""

import math
from dataclasses import dataclass

from md.backend.prelude import add_scaled, dot, load, sub
from md.checks import number, set_fields
from md.laws import spring_dashpot
from md.laws.pair import pair_function
from md.laws.spring_dashpot import (
    EFFECTIVE_MASS,
    STRONGEST,
    SpringDashpot,
    normal_force,
    resolved_restitution,
    spring_energy,
)

FIELDS = (*spring_dashpot.FIELDS, "friction", "tangential_damping")  # fields of the law in kernels


@dataclass(frozen=True, kw_only=True)
class FrictionalSpringDashpot(SpringDashpot):
    """Spring and dashpot along the line of centres, with a tangential drag limited by Coulomb friction.

    Between spheres of other radii than 0.5, the force for a length of overlap K / d, and mu, f and gamma are
    the same.

    Args:
        stiffness: K, in m d / time^2 (force at full overlap).
        damping: mu, in m / time.
        diameter: d.
        friction: f, Coulomb's coefficient (keyword only, as the next); 0 gives the force of `SpringDashpot`.
        tangential_damping: gamma, in m / time. A step of `gamma dt >= 1` reverses slow sliding instead of
            slowing it down, and may add energy.

    Raises:
        TypeError: a value that is not a number.
        ValueError: a negative or infinite value.
    """

    friction: float
    tangential_damping: float

    def __post_init__(self) -> None:
        super().__post_init__()
        names = "friction", "tangential_damping"
        set_fields(self, **{name: number(name, getattr(self, name), 0, STRONGEST) for name in names})

    @classmethod
    def from_restitution(  # type: ignore[override]  # two more coefficients
        cls, restitution: float, contact_time: float, friction: float, tangential_restitution: float
    ) -> "FrictionalSpringDashpot":
        """Make the law with these coefficients and this contact duration, in closed form.

        Args:
            restitution: e, 0.01 to 1; of the normal speed, between spheres of any two sizes.
            contact_time: duration of a contact in time units, positive.
            friction: f, Coulomb's coefficient, 0 or more.
            tangential_restitution: e_t, fraction of the tangential speed left after a contact that never
                reaches Coulomb's limit while the surfaces press, exp(-2 gamma t / m) with t the
                `repulsive_time`; 0.01 to 1. At the end of a contact the dashpot pulls, and nothing drags.

        Raises:
            TypeError: a value that is not a number.
            ValueError: a value outside its range.
        """
        normal = SpringDashpot.from_restitution(restitution, contact_time)
        kept = resolved_restitution("tangential_restitution", tangential_restitution)
        gamma = -EFFECTIVE_MASS * math.log(kept) / normal.repulsive_time
        return cls(normal.stiffness, normal.damping, friction=friction, tangential_damping=gamma)

    @property
    def tangential_restitution(self) -> float:
        """Fraction of the tangential speed left after a contact; 1 without friction.

        For a contact that never reaches Coulomb's limit while the surfaces press (`repulsive_time`), and is
        too short for the line of centres to turn.

        Raises:
            ValueError: an overdamped contact.
        """
        rate = self.tangential_damping / EFFECTIVE_MASS
        return math.exp(-rate * self.repulsive_time) if rate and self.friction else 1.0


@pair_function(FrictionalSpringDashpot, fields=FIELDS, potential=spring_energy, reciprocal=True)
def interact(law, vel, i, j, r2, dr, vi, acc):
    """Add the force of one partner."""
    if r2 >= law.diameter * law.diameter or r2 == 0:  # coincident centres have no direction to push along
        return acc
    r = math.sqrt(r2)
    relative = sub(vi, load(vel, j, acc))
    approach = dot(relative, dr)
    normal = normal_force(law, r, r2, approach)
    sliding = add_scaled(relative, -approach / r2, dr)
    speed = math.sqrt(dot(sliding, sliding))
    no_force = law.friction - law.friction  # a literal 0 would widen float32
    limit = law.friction * max(normal * r, no_force)
    drag = law.tangential_damping
    if drag * speed > limit:  # so speed > 0
        drag = limit / speed
    return add_scaled(add_scaled(acc, normal, dr), -drag, sliding)
