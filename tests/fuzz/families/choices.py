"""Choices as plain data: laws, walls, schedules, reorders, searches, reporters, backends."""

from __future__ import annotations

import math
from collections.abc import Callable
from typing import Any

import numpy as np
from hypothesis import strategies as st
from hypothesis.strategies import integers, sampled_from

import md
import sfc
from tests.fuzz.drawing import RNG, among, some
from tests.fuzz.families import Family
from tests.fuzz.judge import Cases, cases, equal, require, same
from tests.fuzz.kinds import (
    an,
    array,
    either,
    few,
    flag,
    function,
    integer,
    maybe,
    number,
    path,
    text,
    word,
)

SHORTEST = 1e-150
HILBERT = an(sfc.Curve, sfc.curve("hilbert", 3))
# A name that is not known is refused once the box is.
ORDER = either(text(sampled_from(sfc.orderings(3))), HILBERT)
CURVE = either(text(sampled_from(sfc.curves(3))), HILBERT)
PROFILE = an(md.Profile, st.builds(md.Profile, integers(0, 2), integers(1, 9)))
UNIT, TIME = number(above=0, high=1, usual=(0.1, 1.0)), number(above=SHORTEST, usual=(1e-3, 1.0))
EVERY = integer()


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


def is_a(kind: type) -> Callable[[Any, dict], None]:
    """Require an object of a class."""
    return lambda found, _: require(isinstance(found, kind), f"{found!r}")


def usual_numbers(plain: dict) -> bool:
    """Whether numbers are neither so large nor so small that products of them may be refused."""
    return all(v == 0 or 1e-30 < abs(v) < 1e30 for v in plain.values() if isinstance(v, (int, float)))


def check_law(found: Any, plain: dict) -> None:
    """A law keeps its constants, and the closed form of a contact holds."""
    kept()(found, plain)
    k, mu, d = plain["stiffness"], plain["damping"], plain.get("diameter", 1.0)
    equal((found.cutoff, found.closest_start), (d, d / 2 if k else 0), "cutoff and closest start")
    w2 = 2 * k / d - mu * mu
    if k and math.isfinite(w2) and w2 > 1e-12 * (2 * k / d):
        same(found.contact_time, math.pi / math.sqrt(w2), "contact time", 1e-6)
        same(found.restitution, math.exp(-math.pi * mu / math.sqrt(w2)), "restitution", 1e-6)


SPRING = {"stiffness": number(0, usual=(0.0, 1e4)), "damping": number(0, usual=(0.0, 5.0))}
SLIDING = SPRING | {"friction": number(0), "tangential_damping": number(0)}
DIAMETER, LAW = {"diameter": number(above=0, usual=(0.5, 1.5))}, {"check": check_law, "sure": usual_numbers}
SPRINGS = [
    *[cases(md.laws.SpringDashpot, SPRING, DIAMETER, **LAW)] * 2,
    cases(md.laws.FrictionalSpringDashpot, SLIDING, DIAMETER, **LAW),
]


def near(plain: dict) -> bool:
    """Whether a law does what was asked for to nine digits."""
    return usual_numbers(plain) and plain["restitution"] > 1e-3


def check_restitution(found: Any, plain: dict) -> None:
    """A law does what was asked for."""
    if near(plain):
        for name in ("contact_time", "restitution"):
            same(getattr(found, name), plain[name], name, 1e-9)


DOES = {"restitution": UNIT, "contact_time": TIME}
ALSO = DOES | {"friction": number(0), "tangential_restitution": UNIT}
BY_RESTITUTION = [
    cases(md.laws.SpringDashpot.from_restitution, DOES, check=check_restitution, sure=near),
    cases(md.laws.FrictionalSpringDashpot.from_restitution, ALSO, check=check_restitution),
]


def potentials(draw) -> Cases:
    """Energies of pairs."""
    law = md.laws.SpringDashpot(draw(sampled_from((0.0, 1e3))), 1.0, draw(sampled_from((1.0, 1.2))))

    @np.errstate(all="ignore")
    def check(found, plain):
        r = np.asarray(plain["distance"], np.float64)
        if np.isfinite(r).all():
            overlap = np.where(r < law.diameter, law.diameter - r, 0)
            same(found, law.stiffness * overlap**2 / (2 * law.diameter), "potential", 1e-3)

    given = draw(RNG).random(draw(integers(0, 4))) * 2
    return cases(law.potential, {"distance": array(given, "fiu", (None,))}, check=check)


def check_walls(found: md.Walls, plain: dict) -> None:
    """Walls keep what was given, and the closed form holds."""
    kept()(found, plain)
    law = md.laws.SpringDashpot(1e4, 5.0)
    time = law.contact_time if found.contact_time is None else found.contact_time
    if 1e-60 < time < 1e60 and found.restitution > 1e-300:
        k, mu = found.contact(law)
        same(math.pi / math.sqrt(k - mu * mu / 4), time, "contact time", 1e-5)
        require(type(found.duration(law)) is float, "a contact time of a narrow kind")


SIDES = few(integer(0, 2, (0, 2)), None, some((0, 1, 2)))
STANDING = {"restitution": UNIT, "contact_time": maybe(TIME), "sides": maybe(SIDES)}
MOVING = {"amplitude": number(0), "frequency": number(0, usual=(0.0, 50.0))}
SHAKEN = STANDING | {"axis": integer(-3, 2, (-3, 2)), "wall_damping": word("relative", "absolute")}
WALLS = [
    cases(md.Walls, {}, STANDING, check=check_walls),
    cases(md.ShakenWalls, MOVING, SHAKEN, check=check_walls),
]


def motion(name: str, right: Callable[[float], float]) -> Cases:
    """Where shaken walls are, or how fast."""
    shaken = md.ShakenWalls(amplitude=1.5, frequency=3.0)

    def check(found, plain):
        if abs(plain["time"]) < 1e6:
            same(found, right(6 * math.pi * plain["time"]), name, 1e-6)

    return cases(getattr(shaken, name), {"time": number()}, check=check)


MOTIONS = [
    motion("displacement", lambda phase: -1.5 * math.cos(phase)),
    motion("velocity", lambda phase: 9 * math.pi * math.sin(phase)),
]


def check_every(found: md.Every, plain: dict) -> None:
    """It is due at multiples of its interval."""
    kept()(found, plain)
    interval = plain["interval"]
    for step in (0, 1, 99, interval, interval + 1, 2**40):
        equal(bool(found(step)), step % interval == 0, f"at step {step}")


LOSS = {"loss": either(word("auto"), number(above=0)), "window": integer(usual=(1, 20), most=10**6)}
SCHEDULES = [
    cases(md.Every, {"interval": EVERY}, check=check_every, sure=True),
    cases(md.Moved, {"fraction": UNIT}, {"interval": EVERY}, check=kept(), sure=True),
    cases(md.Decayed, {}, LOSS, check=kept(), sure=True),
    cases(md.Never, {}, check=lambda found, _: require(not found(0), "at step 0")),
]
SCHEDULE = either(an(md.Every, st.builds(md.Every, integers(1, 5))), function(lambda step: False))
ALONG = {"ordering": either(ORDER, an(sfc.Curve, sfc.curve("hilbert", 2))), "schedule": SCHEDULE}
HOW = {"mode": word("data", "threads", "shadow"), "via": word("device", "host")}
REFLEXIVE = {
    "cell_order": CURVE, "stack": word("shared", "local"), "met": word("once", "twice"),
    "atomics": word("plain", "aggregated", "none"), "data": word("sorted", "unsorted", "shadow"),
    "contacts": word("walked", "listed"), "room": integer(usual=(1, 64)), "rebuild_every": EVERY,
}  # fmt: skip
SKIN, DIVISION = either(maybe(number(0)), word("auto")), {"division": maybe(integer(1, 4, (1, 4)))}
s = md.search
SEARCH = either(word(*s.SEARCHES), an(s.SearchConfig, st.builds(s.Linked)))
INTEGRATOR = word(*md.integrate.INTEGRATORS)
SEARCHES = [
    cases(s.search, {"choice": SEARCH}, check=is_a(s.SearchConfig)),
    cases(s.Coherent, {"cell_order": ORDER}, DIVISION, check=kept()),
    cases(s.Scattered, {"cell_order": ORDER}, DIVISION, check=kept()),
    cases(s.Tiles, {}, {"cell_order": ORDER, "width": maybe(integer(1, 94, (1, 8)))}, check=kept()),
    cases(s.VerletTree, {}, {"cell_order": CURVE, "skin": SKIN}, check=kept()),
    cases(s.Verlet, {}, {"cell_order": ORDER, "skin": SKIN}, check=kept()),
    cases(s.Lbvh, {}, {"cell_order": CURVE, "rebuild_every": EVERY}, check=kept()),
    *[cases(s.Reflexive, {}, REFLEXIVE, check=kept())] * 2,
    cases(md.integrate.integrator, {"choice": INTEGRATOR}, check=is_a(md.integrate.Integrator)),
]
INTERVAL, KEPT = {"interval": EVERY}, kept("interval")
CELLS = {"cells": either(integer(), few(integer(), None))}
SEEN = INTERVAL | CELLS | {"profiles": either(PROFILE, few(PROFILE, None))}
BACKEND, LAYOUT = {"choice": word("cpu")}, {"layout": maybe(word("soa", "aos", "aos4"))}
AXIS, BINS = {"axis": integer(0, 2, (0, 2))}, {"bins": integer(1, 1000, (1, 30))}
REPORTERS = [
    cases(md.Profile, AXIS, BINS, check=kept(), sure=True),
    cases(md.Observer, {}, SEEN, check=KEPT),
    cases(md.observe.Fields, INTERVAL | CELLS, check=KEPT),
    cases(md.observe.EnergyBalance, {}, INTERVAL, check=kept()),
    cases(md.Checkpoint, {"path": path("run.npz")} | INTERVAL, check=KEPT),
    cases(md.Trajectory, {"path": path("not-there.gsd")} | INTERVAL, {"append": flag()}, check=KEPT),
    cases(md.backend.get, BACKEND, LAYOUT, check=is_a(md.backend.Backend)),
]
PARTS = {among(*SPRINGS): 3, among(*BY_RESTITUTION): 2, potentials: 1, among(*WALLS): 4, among(*MOTIONS): 1}
MORE = {among(*SCHEDULES): 4, cases(md.Reorder, ALONG, HOW, check=kept()): 3}
FAMILY = Family(PARTS | MORE | {among(*SEARCHES): 6, among(*REPORTERS): 6})
