"""Flocks: laws, flights and scenes by their parameters, and runs beside the rules in numpy."""

from __future__ import annotations

import itertools

import numpy as np
from hypothesis.strategies import booleans, builds, just, sampled_from

import md
from tests.fuzz.drawing import RNG, among
from tests.fuzz.families import Family
from tests.fuzz.families.choices import kept
from tests.fuzz.families.simulations import DIVISION, compare, failed, outcome, reorders
from tests.fuzz.families.states import boxes, cloud
from tests.fuzz.judge import Cases, cases
from tests.fuzz.kinds import Kind, an, either, flag, integer, maybe, number, on_cpu, word
from tests.md.flock_reference import differences
from tests.md.flock_reference import outcome as outcome_of

RADII = "cohesion_radius", "separation_radius", "alignment_radius"
RATES = "cohesion", "separation", "alignment"
SEARCHES = "naive", "linked", "tensor", "verlet", "lbvh", "coherent", "scattered", "wide_bvh"
DIVIDED = among(*[builds(kind, division=DIVISION) for kind in (md.search.Coherent, md.search.Scattered)])
STEPS = 4
MOST = 1e9


RULES: dict[str, Kind] = {name: number(above=0, high=MOST, usual=(0.5, 5.0)) for name in RADII}
RULES |= {name: number(0, MOST, usual=(0.0, 0.2)) for name in RATES}
LAWS = cases(md.laws.Boids, RULES, check=kept(), sure=True)
FLIGHTS = cases(md.integrate.Flight, {"max_speed": number(above=0, high=1e150)}, check=kept(), sure=True)


FLOCK = {
    "n": integer(1, usual=(1, 40), most=10**5), "box": maybe(an(md.Box, boxes())), "speed": number(0, 1e150),
    "clusters": integer(0, 2**31 - 1, (0, 4), most=10**5), "seed": integer(0),
    "cluster_radius": number(above=0, usual=(0.01, 1.0)),
}  # fmt: skip
SCENES = cases(md.scenes.flock, FLOCK)


def runs(draw) -> Cases:
    """A flock under any search, fused or not, with walls; beside the rules in numpy."""
    radii, rng = draw(RNG).uniform(0.5, 3.0, 3), draw(RNG)
    within, n = draw(boxes(3, "ppw", float(radii.max()))), draw(sampled_from((0, 1, 2, 25, 25, 60)))
    pos = cloud(rng, within, n, 0.5)
    start = md.State(pos, rng.normal(size=pos.shape), within, rng.permutation(n))
    law = md.laws.Boids(*radii.tolist(), *rng.uniform(0, 0.3, 3).tolist())
    walls = None if all(within.periodic) else md.Walls(contact_time=draw(sampled_from((0.1, 0.02))))
    kinds = {
        "state": an(md.State, just(start)), "law": an(md.laws.Boids, just(law)), "backend": on_cpu(),
        "integrator": word("flight"), "dt": maybe(number(above=0, usual=(0.05, 0.2)), 0.0),
        "walls": maybe(an(md.Walls, just(walls)), 0.0 if walls else 1.0), "fused": flag(),
        "search": either(word(*SEARCHES), an(md.search.SearchConfig, DIVIDED)),
        "reorder": maybe(an(md.Reorder, reorders())),
    }  # fmt: skip

    phases = draw(booleans())

    def check(sim, plain):
        found = outcome(lambda: sim, STEPS, phases)
        r = np.linalg.norm(differences(start.pos, within), axis=-1)
        close = min(np.abs(r - getattr(law, name)).min(initial=1) for name in RADII) < 1e-6
        if not (failed(found, plain, STEPS) or close):  # else rounding decides about a neighbour
            right = outcome_of(start.by_id(), law, STEPS, plain["dt"], plain.get("walls"))
            compare(found, right, start, 1e-8, law.cutoff)

    return cases(md.Simulation, kinds, calm=0.6, check=check, always=("backend", "integrator", "dt", "walls"))


def prepare() -> None:
    """Have the kernels compiled."""
    law = md.laws.Boids(2.0, 2.0, 2.0)
    standing = md.Walls(contact_time=0.1)
    for walls, search, fused in itertools.product((None, standing), SEARCHES, (False, True)):
        state = md.scenes.flock(20, md.Box((9.0, 9.0, 9.0), (True, True, walls is None)))
        options = {"search": search, "fused": fused, "walls": walls, "backend": "cpu", "dt": 0.1}
        sim = md.Simulation(state, law, integrator="flight", **options)
        sim.run(2), sim.pairs()


FAMILY = Family({LAWS: 3, FLIGHTS: 1, SCENES: 4, runs: 4}, prepare)
