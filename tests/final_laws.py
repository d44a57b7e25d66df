"""Laws of the simulations of `tests.final_arrays`: those of `md`, and two of the user's own."""

import math
from dataclasses import dataclass
from typing import Any

import md


@dataclass(frozen=True)
class Power:
    """A repulsive force that grows as the overlap to the power 3/2; a law of the user's own."""

    stiffness: float
    cutoff: float = 1.0


@dataclass(frozen=True)
class Aligned:
    """A pull towards the mean velocity of the neighbours and a push away from them; no reciprocal law."""

    rate: float
    push: float
    cutoff: float = 1.0


def define_laws() -> None:
    """Give the two laws their pair functions, where the package takes laws of the user's own."""
    from md.laws import add_scaled, load, pair_function, sub, zero

    @pair_function(Power, reciprocal=True)
    def interact(law, vel, i, j, r2, dr, vi, acc):
        if r2 >= law.cutoff * law.cutoff or r2 == 0:
            return acc
        r = math.sqrt(r2)
        overlap = law.cutoff - r
        return add_scaled(acc, law.stiffness * overlap * math.sqrt(overlap) / r, dr)

    def initial(law, ri):
        return zero(ri), zero(ri), 0

    def result(law, ri, vi, acc):
        velocities, places, count = acc
        if count == 0:
            return zero(ri)
        return add_scaled(add_scaled(zero(ri), law.rate / count, velocities), law.push, places)

    @pair_function(Aligned, initial=initial, result=result)
    def add_neighbour(law, vel, i, j, r2, dr, vi, acc):
        if r2 >= law.cutoff * law.cutoff:
            return acc
        velocities, places, count = acc
        relative = sub(load(vel, j, dr), vi)
        return add_scaled(velocities, law.cutoff, relative), add_scaled(places, law.cutoff, dr), count + 1


HAS_PAIR_FUNCTION = hasattr(md.laws, "pair_function")
if HAS_PAIR_FUNCTION:
    define_laws()


def law_of(case: dict[str, str]) -> Any:
    """The law of a case between two particles.

    Raises:
        ValueError: the package has no such law.
    """
    if case["law"] in ("power", "aligned") and not HAS_PAIR_FUNCTION:
        raise ValueError("no laws of the user's own")
    if case["law"] == "boids":
        if not hasattr(md.laws, "Boids"):
            raise ValueError("no law of a flock")
        return md.laws.Boids(2.0, 1.2, 1.6, cohesion=0.05, separation=0.1, alignment=0.2)
    if case["law"] == "power":
        return Power(stiffness=1e4)
    if case["law"] == "aligned":
        return Aligned(rate=20.0, push=300.0)
    if case["law"] == "frictional":
        return md.laws.FrictionalSpringDashpot(1e4, 5.0, friction=0.4, tangential_damping=8.0)
    return md.laws.SpringDashpot(stiffness=1e4, damping=0.0 if case["law"] == "elastic" else 5.0)
