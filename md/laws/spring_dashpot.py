"""The linear spring-dashpot contact of two spheres of diameter and mass 1, in closed form.

Force on i: K (1 - r/d) n - mu ((v_i - v_j) . n) n for r < d, with n from j to i. Two equal masses meet with
m_eff = m/2, w0^2 = K / (d m_eff) and g = mu / (2 m_eff); they part, again at r = d, after pi / w with
w^2 = w0^2 - g^2, and keep e = exp(-pi g / w) of their speed.

The dashpot's pull jumps at r = d, so a stepped contact misses e by first order in dt: at 50 steps a contact
by at most 4e-3 for e = 0.9, 7e-3 for 0.8 and 8e-3 for 0.7.

Schaefer, Dippel and Wolf, J. Phys. I France 6 (1996) 5.
"""

import math
from dataclasses import dataclass

import numpy as np

from md.backend.prelude import add_scaled, dot, load, sub
from md.checks import array, number, refuse_value
from md.laws.pair import pair_function
from sfc.compile import inlined

EFFECTIVE_MASS = 0.5
SHORTEST = 1e-150  # contact time, in time units; the stiffness of a shorter one is no number
STIFFEST, STRONGEST = 1e302, 1e154  # stiffness and damping, the square of which is a number
SMALLEST = 1e-300  # diameter, of which a half is one
FIELDS = "spring", "damping", "diameter"  # that kernels get


@dataclass(frozen=True)
class SpringDashpot:
    """Spring and dashpot along the line of centres; `damping=0` is elastic, `stiffness=0` too an ideal gas.

    Args:
        stiffness: K, in m d / time^2 (force at full overlap).
        damping: mu, in m / time.
        diameter: d; 1 but for relaxing a packing with a margin.

    Raises:
        TypeError: a value that is no number.
        ValueError: a negative or infinite value.
    """

    stiffness: float
    damping: float
    diameter: float = 1.0

    def __post_init__(self):
        kept = {
            "stiffness": number("stiffness", self.stiffness, 0, STIFFEST),
            "damping": number("damping", self.damping, 0, STRONGEST),
            "diameter": number("diameter", self.diameter, SMALLEST),
        }
        for name, value in kept.items():
            object.__setattr__(self, name, value)
        if not math.isfinite(self.stiffness / (self.diameter * EFFECTIVE_MASS)):
            raise refuse_value(
                "diameter", self.diameter, f"large enough for a finite spring of stiffness {self.stiffness:g}"
            )

    @classmethod
    def from_restitution(cls, restitution: float, contact_time: float) -> "SpringDashpot":
        """The law whose closed-form contact has this coefficient of restitution and duration.

        Args:
            restitution: e, 0 < e <= 1.
            contact_time: duration of a contact in time units, positive.

        Raises:
            TypeError: a value that is no number.
            ValueError: a value outside its range.
        """
        restitution = number("restitution", restitution, above=0, high=1)
        contact_time = number("contact_time", contact_time, above=SHORTEST, unit="time units")
        g = -math.log(restitution) / contact_time
        w0_squared = (math.pi / contact_time) ** 2 + g**2
        return cls(stiffness=w0_squared * EFFECTIVE_MASS, damping=2 * EFFECTIVE_MASS * g)

    @property
    def cutoff(self) -> float:
        """The diameter."""
        return self.diameter

    @property
    def contact_time(self) -> float:
        """Duration of a contact; infinite without a spring.

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
    def closest_start(self) -> float:
        """Half the diameter; 0 without a spring.

        At 50 steps a contact only a pair that closes in by 0.03 d a step comes so near; the two fastest of
        the benchmark gas come to 0.7 d, head on.
        """
        return self.diameter / 2 if self.stiffness else 0.0

    def potential(self, distance: np.ndarray) -> np.ndarray:
        """Energy in the spring of a pair, K (d - r)^2 / (2 d) for r < d.

        Args:
            distance: (p,) in d.

        Returns:
            (p,) in m d^2 / time^2; of narrower numbers than float32 in float64.

        Raises:
            TypeError: distances that make no array.
            ValueError: another shape, distances that are no numbers, or one below 0.
        """
        distance = array("distance", distance, "fiu", "real numbers", ("p",), low=0)
        if distance.dtype not in (np.float32, np.float64):
            distance = distance.astype(np.float64)
        return self.stiffness * np.square(np.maximum(self.diameter - distance, 0)) / (2 * self.diameter)

    def _frequency(self) -> float:
        w0_squared = self.stiffness / (self.diameter * EFFECTIVE_MASS)
        g = self.damping / (2 * EFFECTIVE_MASS)
        if g**2 >= w0_squared:
            raise ValueError(
                f"damping = {self.damping} with stiffness = {self.stiffness} is overdamped: a contact "
                "never ends; "
                f"allowed: damping < {2 * EFFECTIVE_MASS * math.sqrt(w0_squared):.6g}"
            )
        return math.sqrt(w0_squared - g**2)

    @property
    def spring(self) -> float:
        """Force per length of overlap, K / d in m / time^2."""
        return self.stiffness / self.diameter


@inlined
def push(p, r, r2, approach):
    """The normal force on i over the distance, negative where it pulls: times dr it is the force.

    Args:
        p: the law as kernels take it, with `FIELDS`.
        r: distance.
        r2: its square.
        approach: (v_i - v_j) . dr, negative while they close in.
    """
    return p.spring * (p.diameter - r) / r - p.damping * approach / r2


@inlined
def stored(law, r):
    """Energy in the spring at distance r."""
    return law.spring * (law.diameter - r) ** 2 / 2


@pair_function(SpringDashpot, fields=FIELDS, potential=stored, reciprocal=True)
def interact(law, vel, i, j, r2, dr, vi, acc):
    """The force so far, and that of one partner more."""
    if r2 >= law.diameter * law.diameter or r2 == 0:  # coincident centres have no direction to push along
        return acc
    approach = dot(sub(vi, load(vel, j, acc)), dr)
    return add_scaled(acc, push(law, math.sqrt(r2), r2, approach), dr)
