"""Flocks: laws, flights and scenes by their parameters, and runs beside the naive search."""

from __future__ import annotations

from typing import Any

import numpy as np

import md
from tests.fuzz.drawing import Draw
from tests.fuzz.families import Family
from tests.fuzz.families.choices import kept
from tests.fuzz.families.simulations import OnCpu, outcome, reorder
from tests.fuzz.families.states import box, cloud
from tests.fuzz.judge import Case, made_case, require, same
from tests.fuzz.kinds import Flag, Integer, Is, Kind, Maybe, Number, Word
from tests.md.flock_reference import differences

RADII = "cohesion_radius", "separation_radius", "alignment_radius"
RATES = "cohesion", "separation", "alignment"
SEARCHES = "naive", "linked", "tensor", "verlet", "lbvh"
STEPS = 4
MOST = 1e9


def laws(draw: Draw) -> Case:
    """Rules of a flock."""
    optional: dict[str, Kind] = {name: Number(above=0, high=MOST, usual=(0.5, 5.0)) for name in RADII}
    optional |= {name: Number(0, MOST, usual=(0.0, 0.2)) for name in RATES}

    def check(found, plain):
        kept()(found, plain)
        require(found.cutoff == max(getattr(found, name) for name in RADII), f"cutoff {found.cutoff}")

    return made_case(draw, "Boids", md.laws.Boids, {}, optional=optional, check=check, sure=True)


def flights(draw: Draw) -> Case:
    """Largest speeds."""
    optional: dict[str, Kind] = {"max_speed": Number(above=0, high=1e150)}
    return made_case(draw, "Flight", md.integrate.Flight, {}, optional=optional, check=kept(), sure=True)


def scenes(draw: Draw) -> Case:
    """Uniform flocks and clusters."""
    within = box(draw)
    kinds: dict[str, Kind] = {"n": Integer(1, usual=(1, 40), most=10**5)}
    optional: dict[str, Kind] = {
        "box": Maybe(Is(md.Box, lambda _: within)),
        "speed": Number(0, 1e150),
        "clusters": Integer(0, 2**31 - 1, (0, 4), most=10**5),
        "cluster_radius": Number(above=0, usual=(0.01, min(within.lengths) / 2)),
        "seed": Integer(0),
    }

    def check(found, plain):
        require(len(found) == plain["n"], f"{len(found)} boids")
        require(not found.box.outside(found.pos).any() and np.isfinite(found.vel).all(), "outside")
        speed = plain.get("speed", 1.0)
        headings = found.vel / max(speed, 1e-150)
        same(
            np.linalg.norm(headings, axis=1), np.full(len(found), speed / max(speed, 1e-150)), "speeds", 1e-9
        )
        if plain.get("clusters"):
            several = np.unique(np.round(headings, 9), axis=0)
            require(len(several) <= plain["clusters"], f"{len(several)} headings")

    return made_case(draw, "flock", md.scenes.flock, kinds, optional=optional, check=check)


def runs(draw: Draw) -> Case:
    """A flock under any search, fused or not, with walls and gravity; beside the naive search."""
    within = box(draw, 3, "ppw")
    within = md.Box(tuple(max(6.1, side) for side in within.lengths), within.periodic, within.open)
    n = draw.choice((0, 1, 2, 25, 25, 60))
    pos = 0.5 + cloud(draw, within, n) * (1 - 1 / np.array(within.lengths))
    start = md.State(pos, draw.rng.normal(size=pos.shape), within, draw.rng.permutation(n))
    law = md.laws.Boids(
        *(draw.uniform(0.5, 3.0) for _ in range(3)), *(draw.uniform(0, 0.3) for _ in range(3))
    )
    closed = not all(p or o for p, o in zip(within.periodic, within.open, strict=True))
    walls = md.Walls(contact_time=draw.choice((0.1, 0.02))) if closed else None
    kinds: dict[str, Kind] = {
        "state": Is(md.State, lambda _: start),
        "law": Is(md.laws.Boids, lambda _: law),
        "integrator": Word("flight"),
        "dt": Maybe(Number(above=0, usual=(0.05, 0.2)), 0.0),
        "backend": OnCpu("cpu"),
        "walls": Maybe(Is(md.Walls, lambda _: walls), 0.0 if walls else 1.0),
    }
    optional: dict[str, Kind] = {
        "search": Word(*SEARCHES),
        "fused": Flag(),
        "reorder": Maybe(Is(md.Reorder, reorder)),
    }

    def check(sim, plain):
        given: dict[str, Any] = dict(plain)
        found = outcome(lambda: sim, STEPS)
        for name in ("search", "reorder", "fused"):
            given.pop(name, None)
        right = outcome(lambda: md.Simulation(**given | {"search": "naive"}), STEPS)
        faults = isinstance(found, Exception), isinstance(right, Exception)
        if any(faults):
            require(all(faults) and type(found) is type(right), f"{found!r:.300}, by naive {right!r:.300}")
            return
        r = np.linalg.norm(differences(start.pos, within), axis=-1)
        if min(np.abs(r - getattr(law, name)).min(initial=1) for name in RADII) < 1e-6:
            return  # rounding decides whether a neighbour is within a radius
        speeds = np.linalg.norm(found[1], axis=1)
        require(speeds.max(initial=0) <= 1 + 1e-12, f"a speed of {speeds.max(initial=0)}")
        require((np.abs(within.nearest(found[0] - right[0])) < 1e-8).all(), "positions")
        same(found[1], right[1], "velocities", 1e-8)
        same(found[2], right[2], "increments", 1e-7)
        same(found[4:], right[4:], "time and step", 1e-12)

    return made_case(draw, "Simulation", md.Simulation, kinds, optional=optional, check=check)


KINDS = ((laws, 3), (flights, 1), (scenes, 4), (runs, 4))


def one_of(draw: Draw) -> Case:
    """An input of any of these."""
    makers, weights = zip(*KINDS, strict=True)
    return draw.choices(makers, weights)[0](draw)


def prepare() -> None:
    """Have the kernels compiled."""
    law = md.laws.Boids(2.0, 2.0, 2.0)
    for walls in (None, md.Walls(contact_time=0.1)):
        state = md.scenes.flock(20, md.Box((9.0, 9.0, 9.0), (True, True, walls is None)))
        for search in SEARCHES:
            for fused in (False, True):
                options = {"search": search, "fused": fused, "walls": walls, "backend": "cpu"}
                sim = md.Simulation(state, law, integrator="flight", dt=0.1, **options)
                sim.run(2), sim.pairs()


FAMILIES = [Family("flocks", one_of, 6, prepare)]
