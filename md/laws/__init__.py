"""Pair laws: forces between two particles. A new law is its own file (see `pair`) and one line here.

For the author of a law: `pair_function`, and the functions on vectors that a kernel can call, `load`, `dot`,
`sub`, `add_scaled`, `zero` and `like`.
"""

from md.backend.prelude import add_scaled, dot, like, load, sub, zero
from md.laws.boids import Boids
from md.laws.friction import FrictionalSpringDashpot
from md.laws.pair import PairLaw, pair_function, require_pair_function
from md.laws.spring_dashpot import SpringDashpot
from md.registry import Registry

__all__ = [
    "LAWS",
    "Boids",
    "FrictionalSpringDashpot",
    "PairLaw",
    "SpringDashpot",
    "add_scaled",
    "dot",
    "like",
    "load",
    "pair_function",
    "register",
    "sub",
    "zero",
]

LAWS: Registry[PairLaw] = Registry(  # frozen dataclasses
    "law",
    None,
    {"spring_dashpot": SpringDashpot, "frictional_spring_dashpot": FrictionalSpringDashpot, "boids": Boids},
    check=require_pair_function,
)
register = LAWS.register
