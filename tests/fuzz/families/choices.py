"""Choices as plain data: laws, walls, schedules, reorders, searches, reporters, backends."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import numpy as np
from hypothesis import strategies as st
from hypothesis.strategies import integers, just, sampled_from

import md
import sfc
from tests.fuzz.drawing import RNG, among, some
from tests.fuzz.families import Family
from tests.fuzz.judge import Cases, cases, require
from tests.fuzz.kinds import (
    Kind,
    an,
    array,
    either,
    few,
    flag,
    integer,
    maybe,
    number,
    of,
    on_cpu,
    path,
    text,
    word,
)

HILBERT, s = an(sfc.Curve, sfc.curve("hilbert", 3)), md.search
# A name that is not known is refused once the box is.
ORDER = either(text(sampled_from(sfc.orderings(3))), HILBERT)
CURVE = either(text(sampled_from(sfc.curves(3))), HILBERT)
PROFILE = an(md.Profile, st.builds(md.Profile, integers(0, 2), integers(1, 9)))
UNIT, TIME = number(above=0, high=1, usual=(0.1, 1.0)), number(above=1e-150, usual=(1e-3, 1.0))
E = number(0.01, 1, usual=(0.1, 1.0))
FROM_ZERO, EVERY = number(0), integer()
SCHEDULE = either(an(md.Every, st.builds(md.Every, integers(1, 5))), an(Callable, just(lambda step: False)))
# Arguments by name, of all calls that have one of that name.
ARGUMENTS: dict[str, Kind] = {
    "stiffness": number(0, usual=(0.0, 1e4)), "damping": number(0, usual=(0.0, 5.0)), "friction": FROM_ZERO,
    "tangential_damping": FROM_ZERO, "diameter": number(above=0, usual=(0.5, 1.5)), "restitution": E,
    "tangential_restitution": E, "contact_time": TIME, "amplitude": FROM_ZERO,
    "frequency": number(0, usual=(0.0, 50.0)), "wall_damping": word("relative", "absolute"),
    "sides": maybe(few(integer(0, 2, (0, 2)), None, some((0, 1, 2)))), "interval": EVERY, "fraction": UNIT,
    "loss": either(word("auto"), number(above=0)), "window": integer(usual=(1, 20), most=10**6),
    "ordering": either(ORDER, an(sfc.Curve, sfc.curve("hilbert", 2))), "schedule": SCHEDULE,
    "mode": word("data", "threads", "shadow"), "via": word("device", "host"), "cell_order": CURVE,
    "stack": word("shared", "local"), "met": word("once", "twice"), "contacts": word("walked", "listed"),
    "atomics": word("plain", "aggregated", "none"), "data": word("sorted", "unsorted", "shadow"),
    "room": integer(usual=(1, 64)), "rebuild_every": EVERY, "skin": either(maybe(number(0)), word("auto")),
    "division": maybe(integer(1, 4, (1, 4))), "width": maybe(integer(1, 94, (1, 8))),
    "axis": integer(0, 2, (0, 2)), "bins": integer(1, 1000, (1, 30)), "append": flag(),
    "cells": either(integer(), few(integer(), None)), "profiles": either(PROFILE, few(PROFILE, None)),
    "layout": maybe(word("soa", "aos", "aos4")), "path": path("not-there"),
    "time": number(),
}  # fmt: skip
# Those that mean something else there.
OTHERS = {by: {"cell_order": ORDER} for by in (s.Coherent, s.Scattered, s.Tiles, s.Verlet)} | {
    md.Walls: {"contact_time": maybe(TIME)},
    md.ShakenWalls: {"contact_time": maybe(TIME), "axis": integer(-3, 2, (-3, 2))},
    md.backend.get: {"choice": on_cpu()},
    md.integrate.integrator: {"choice": word(*md.integrate.INTEGRATORS)},
    s.search: {"choice": either(word(*s.SEARCHES), an(s.SearchConfig, st.builds(s.Linked)))},
}


def named(call: Callable, **rest: Any) -> Cases:
    """Calls with arguments of the table."""
    return cases(call, of(call, ARGUMENTS | OTHERS.get(call, {})), **rest)


def kept(*names: str) -> Callable[[Any, dict], None]:
    """Require that attributes are what arguments mean, as plain values of Python; all where none is named."""

    def check(found, plain):
        for name in names or plain:
            if name in plain:
                have, value = getattr(found, name), plain[name]
                require(have == value or have is value, f"{name} = {have!r}, and given {value!r}")
                narrow = isinstance(have, np.generic) and not isinstance(have, (np.float64, np.str_))
                require(not narrow, f"{name} is {type(have)}")

    return check


def usual_numbers(plain: dict) -> bool:
    """Whether numbers are neither so large nor so small that products of them may be refused."""
    return all(v == 0 or 1e-30 < abs(v) < 1e30 for v in plain.values() if isinstance(v, (int, float)))


def potentials(draw) -> Cases:
    """Energies of pairs."""
    law = md.laws.SpringDashpot(draw(sampled_from((0.0, 1e3))), 1.0, draw(sampled_from((1.0, 1.2))))
    given = draw(RNG).random(draw(integers(0, 4))) * 2
    return cases(law.potential, {"distance": array(given, "fiu", (None,))})


SPRING, SLIDING = md.laws.SpringDashpot, md.laws.FrictionalSpringDashpot
LAWS = [named(law, check=kept(), sure=usual_numbers) for law in (SPRING, SPRING, SLIDING)]
BY_RESTITUTION = [named(SPRING.from_restitution, sure=usual_numbers), named(SLIDING.from_restitution)]
WALLS = [named(walls, check=kept()) for walls in (md.Walls, md.ShakenWalls)]
SHAKEN = md.ShakenWalls(amplitude=1.5, frequency=3.0)
MOTIONS = [named(SHAKEN.displacement), named(SHAKEN.velocity)]
SCHEDULES = [
    *[named(schedule, check=kept(), sure=True) for schedule in (md.Every, md.Moved, md.Decayed)],
    named(md.Never, check=lambda found, _: require(not found(0), "at step 0")),
]
KEEPING = s.Coherent, s.Scattered, s.Tiles, s.VerletTree, s.Verlet, s.Lbvh, s.Reflexive, s.Reflexive
SEARCHES = [named(search, check=kept()) for search in KEEPING]
REPORTERS = md.Observer, md.observe.Fields, md.observe.EnergyBalance, md.Checkpoint, md.Trajectory
CHOSEN = {
    "law": (LAWS, 3), "by restitution": (BY_RESTITUTION, 2), "walls": (WALLS, 4),
    "motion": (MOTIONS, 1), "schedule": (SCHEDULES, 4),
    "search": ([*SEARCHES, named(s.search), named(md.integrate.integrator)], 6),
    "reporter": ([named(reporter, check=kept("interval")) for reporter in REPORTERS], 5),
    "other": ([named(md.Profile, check=kept(), sure=True), named(md.backend.get)], 1),
}  # fmt: skip
PARTS = {among(*parts): share for parts, share in CHOSEN.values()}
FAMILY = Family(PARTS | {potentials: 1, named(md.Reorder, check=kept()): 3})
