"""Choices as plain data: laws, walls, schedules, reorders, searches, reporters, backends."""

from __future__ import annotations

import math
from collections.abc import Callable
from typing import Any

import numpy as np

import md
import sfc
from tests.fuzz.drawing import Draw
from tests.fuzz.families import Family
from tests.fuzz.judge import Case, made_case, require, same
from tests.fuzz.kinds import (
    AnyPath,
    Array,
    Either,
    Few,
    Flag,
    Function,
    Integer,
    Is,
    Kind,
    Maybe,
    Number,
    Text,
    Word,
)

SHORTEST = 1e-150
# A name that is not known is refused once the box is.
NAMES = Text(lambda draw: draw.choice(sfc.orderings(3)))
CURVES = Text(lambda draw: draw.choice(sfc.curves(3)))


def kept(names: tuple[str, ...] | None = None) -> Callable[[Any, dict], None]:
    """Require that attributes are what arguments mean, as plain values of Python."""

    def check(found, plain):
        for name, value in plain.items():
            if names is not None and name not in names:
                continue
            have = getattr(found, name)
            require(have == value or have is value, f"{name} = {have!r}, and given {value!r}")
            require(
                not isinstance(have, np.generic) or isinstance(have, (np.float64, np.str_)),
                f"{name} is {type(have)}",
            )

    return check


def laws(draw: Draw) -> Case:
    """Laws by their constants."""
    kinds: dict[str, Kind] = {
        "stiffness": Number(0, usual=(0.0, 1e4)),
        "damping": Number(0, usual=(0.0, 5.0)),
    }
    optional: dict[str, Kind] = {"diameter": Number(above=0, usual=(0.5, 1.5))}
    if draw.chance(0.3):
        kinds |= {"friction": Number(0), "tangential_damping": Number(0)}
        law = md.laws.FrictionalSpringDashpot
    else:
        law = md.laws.SpringDashpot

    def check(found, plain):
        kept()(found, plain)
        k, mu, d = plain["stiffness"], plain["damping"], plain.get("diameter", 1.0)
        require(found.cutoff == d and found.closest_start == (d / 2 if k else 0), f"{found.cutoff}")
        w2 = 2 * k / d - mu * mu
        if k and math.isfinite(w2) and w2 > 1e-12 * (2 * k / d):
            same(found.contact_time, math.pi / math.sqrt(w2), "contact time", 1e-6)
            same(found.restitution, math.exp(-math.pi * mu / math.sqrt(w2)), "restitution", 1e-6)

    return made_case(draw, law.__name__, law, kinds, optional=optional, check=check, sure=usual_numbers)


def usual_numbers(plain: dict) -> bool:
    """Whether numbers are neither so large nor so small that products of them may be refused."""
    return all(v == 0 or 1e-30 < abs(v) < 1e30 for v in plain.values() if isinstance(v, (int, float)))


def by_restitution(draw: Draw) -> Case:
    """Laws by what they do."""
    kinds = {
        "restitution": Number(above=0, high=1, usual=(0.1, 1.0)),
        "contact_time": Number(above=SHORTEST, usual=(1e-3, 1.0)),
    }

    def check(found, plain):
        same(found.contact_time, plain["contact_time"], "contact time", 1e-9)
        same(found.restitution, plain["restitution"], "restitution", 1e-9)

    def near(plain):
        return usual_numbers(plain) and plain["restitution"] > 1e-3

    if draw.chance(0.3):
        kinds |= {"friction": Number(0), "tangential_restitution": Number(above=0, high=1, usual=(0.1, 1.0))}
        return made_case(
            draw,
            "FrictionalSpringDashpot.from_restitution",
            md.laws.FrictionalSpringDashpot.from_restitution,
            kinds,
            check=lambda f, p: check(f, p) if near(p) else None,
        )
    return made_case(
        draw,
        "SpringDashpot.from_restitution",
        md.laws.SpringDashpot.from_restitution,
        kinds,
        check=lambda f, p: check(f, p) if near(p) else None,
        sure=near,
    )


def potentials(draw: Draw) -> Case:
    """Energies of pairs."""
    law = md.laws.SpringDashpot(draw.choice((0.0, 1e3)), 1.0, draw.choice((1.0, 1.2)))
    given = draw.rng.random(draw.randrange(5)) * 2

    def check(found, plain):
        with np.errstate(all="ignore"):
            r = np.asarray(plain["distance"], np.float64)
            overlap = np.where(r < law.diameter, law.diameter - r, 0)
            if np.isfinite(r).all():
                same(found, law.stiffness * overlap**2 / (2 * law.diameter), "potential", 1e-3)

    kinds = {"distance": Array(lambda _: given, "fiu", (None,))}
    return made_case(draw, "potential", law.potential, kinds, check=check)


def walls(draw: Draw) -> Case:
    """Walls that stand, and that are shaken."""
    optional: dict[str, Kind] = {
        "restitution": Number(above=0, high=1, usual=(0.1, 1.0)),
        "contact_time": Maybe(Number(above=SHORTEST, usual=(1e-3, 1.0))),
        "sides": Maybe(Few(Integer(0, 2, (0, 2)), None, lambda d: d.some((0, 1, 2)))),
    }
    if draw.chance(0.5):
        return made_case(draw, "Walls", md.Walls, {}, optional=optional, check=walls_check)
    kinds: dict[str, Kind] = {"amplitude": Number(0), "frequency": Number(0, usual=(0.0, 50.0))}
    optional |= {"axis": Integer(-3, 2, (-3, 2)), "wall_damping": Word("relative", "absolute")}
    return made_case(draw, "ShakenWalls", md.ShakenWalls, kinds, optional=optional, check=walls_check)


def walls_check(found: md.Walls, plain: dict) -> None:
    """They keep what was given, and the closed form holds."""
    kept()(found, plain)
    law = md.laws.SpringDashpot(1e4, 5.0)
    time = law.contact_time if found.contact_time is None else found.contact_time
    if 1e-60 < time < 1e60 and found.restitution > 1e-300:
        k, mu = found.contact(law)
        same(math.pi / math.sqrt(k - mu * mu / 4), time, "contact time", 1e-5)
        require(type(found.duration(law)) is float, "a contact time of a narrow kind")


def motions(draw: Draw) -> Case:
    """Where shaken walls are."""
    shaken = md.ShakenWalls(amplitude=1.5, frequency=3.0)
    name = draw.choice(("displacement", "velocity"))

    def check(found, plain):
        w = 2 * math.pi * 3.0
        right = (
            -1.5 * math.cos(w * plain["time"])
            if name == "displacement"
            else 1.5 * w * math.sin(w * plain["time"])
        )
        if abs(plain["time"]) < 1e6:
            same(found, right, name, 1e-6)

    return made_case(draw, f"ShakenWalls.{name}", getattr(shaken, name), {"time": Number()}, check=check)


def schedules(draw: Draw) -> Case:
    """When to reorder."""
    kind = draw.randrange(4)
    if kind == 0:

        def check_every(found, plain):
            kept()(found, plain)
            interval = plain["interval"]
            for step in (0, 1, 99, interval, interval + 1, 2**40):
                require(bool(found(step)) == (step % interval == 0), f"at step {step}")

        return made_case(draw, "Every", md.Every, {"interval": Integer()}, check=check_every, sure=True)
    if kind == 1:
        kinds = {"fraction": Number(above=0, high=1, usual=(0.01, 1.0))}
        return made_case(
            draw, "Moved", md.Moved, kinds, optional={"interval": Integer()}, check=kept(), sure=True
        )
    if kind == 2:
        loss = Either(Word("auto"), Number(above=0))
        optional = {"loss": loss, "window": Integer(usual=(1, 20), most=10**6)}
        return made_case(draw, "Decayed", md.Decayed, {}, optional=optional, check=kept(), sure=True)
    return made_case(draw, "Never", md.Never, {}, check=lambda found, _: require(not found(0), "at step 0"))


def reorders(draw: Draw) -> Case:
    """What is reordered along what."""
    curve = sfc.curve("hilbert", draw.choice((2, 3)))
    ordering = Either(NAMES, Is(sfc.Curve, lambda _: curve))
    schedule = Either(Is(md.Every, lambda d: md.Every(d.randint(1, 5))), Function(lambda step: False))
    optional: dict[str, Kind] = {"mode": Word("data", "threads", "shadow"), "via": Word("device", "host")}
    kinds: dict[str, Kind] = {"ordering": ordering, "schedule": schedule}
    return made_case(draw, "Reorder", md.Reorder, kinds, optional=optional, check=kept())


def searches(draw: Draw) -> Case:
    """Searches by their parameters."""
    curve = sfc.curve("hilbert", 3)
    order: Kind = Either(NAMES, Is(sfc.Curve, lambda _: curve))
    kind = draw.randrange(8)
    s = md.search
    if kind == 0:
        names = Either(Word(*s.SEARCHES), Is(s.SearchConfig, lambda _: s.Linked()))
        return made_case(
            draw,
            "search",
            s.search,
            {"choice": names},
            check=lambda f, _: require(isinstance(f, s.SearchConfig), f"{f!r}"),
        )
    if kind == 1:
        plain = draw.choice((s.Coherent, s.Scattered))
        optional = {"division": Maybe(Integer(1, 4, (1, 4)))}
        return made_case(draw, plain.__name__, plain, {"cell_order": order}, optional=optional, check=kept())
    if kind == 2:
        optional = {"cell_order": order, "width": Maybe(Integer(1, 94, (1, 8)))}
        return made_case(draw, "Tiles", s.Tiles, {}, optional=optional, check=kept())
    if kind == 3:
        skin = Either(Maybe(Number(0)), Word("auto"))
        if draw.choice((False, True)):
            curves = Either(CURVES, Is(sfc.Curve, lambda _: curve))
            optional = {"cell_order": curves, "skin": skin}
            return made_case(draw, "VerletTree", s.VerletTree, {}, optional=optional, check=kept())
        return made_case(
            draw, "Verlet", s.Verlet, {}, optional={"cell_order": order, "skin": skin}, check=kept()
        )
    if kind == 4:
        curves = Either(CURVES, Is(sfc.Curve, lambda _: curve))
        optional = {"cell_order": curves, "rebuild_every": Integer()}
        return made_case(draw, "Lbvh", s.Lbvh, {}, optional=optional, check=kept())
    if kind == 5:
        name = md.integrate.INTEGRATORS if hasattr(md, "integrate") else ("velocity_verlet",)
        from md.integrate import Integrator, integrator

        return made_case(
            draw,
            "integrator",
            integrator,
            {"choice": Word(*name)},
            check=lambda f, _: require(isinstance(f, Integrator), f"{f!r}"),
        )
    curves = Either(CURVES, Is(sfc.Curve, lambda _: curve))
    optional = {
        "cell_order": curves,
        "stack": Word("shared", "local"),
        "met": Word("once", "twice"),
        "atomics": Word("plain", "aggregated", "none"),
        "data": Word("sorted", "unsorted", "shadow"),
        "rebuild_every": Integer(),
        "contacts": Word("walked", "listed"),
        "room": Integer(usual=(1, 64)),
    }
    return made_case(draw, "Reflexive", s.Reflexive, {}, optional=optional, check=kept())


def reporters(draw: Draw) -> Case:
    """Reporters and profiles by their parameters."""
    kind = draw.randrange(7)
    interval = Integer()
    if kind == 0:
        kinds = {"axis": Integer(0, 2, (0, 2))}
        optional = {"bins": Integer(1, 1000, (1, 30))}
        return made_case(draw, "Profile", md.Profile, kinds, optional=optional, check=kept(), sure=True)
    if kind == 1:
        profile = Is(md.Profile, lambda d: md.Profile(d.randrange(3), d.randint(1, 9)))
        optional = {
            "interval": interval,
            "profiles": Either(profile, Few(profile, None)),
            "cells": Either(Integer(), Few(Integer(), None)),
        }
        return made_case(draw, "Observer", md.Observer, {}, optional=optional, check=kept(("interval",)))
    if kind == 2:
        kinds = {"interval": interval, "cells": Either(Integer(), Few(Integer(), None))}
        return made_case(draw, "Fields", md.observe.Fields, kinds, check=kept(("interval",)))
    if kind == 3:
        return made_case(
            draw, "EnergyBalance", md.observe.EnergyBalance, {}, optional={"interval": interval}, check=kept()
        )
    if kind == 4:
        kinds = {"path": AnyPath("run.npz"), "interval": interval}
        return made_case(draw, "Checkpoint", md.Checkpoint, kinds, check=kept(("interval",)))
    if kind == 5:
        kinds = {"path": AnyPath("not-there.gsd"), "interval": interval}
        return made_case(
            draw, "Trajectory", md.Trajectory, kinds, optional={"append": Flag()}, check=kept(("interval",))
        )
    kinds = {"choice": Word("cpu")}
    optional = {"layout": Maybe(Word("soa", "aos", "aos4"))}
    return made_case(
        draw,
        "backend.get",
        md.backend.get,
        kinds,
        optional=optional,
        check=lambda f, _: require(isinstance(f, md.backend.Backend), f"{f!r}"),
    )


KINDS = (
    (laws, 3),
    (by_restitution, 2),
    (potentials, 1),
    (walls, 4),
    (motions, 1),
    (schedules, 4),
    (reorders, 3),
    (searches, 6),
    (reporters, 6),
)


def one_of(draw: Draw) -> Case:
    """An input of any of these."""
    makers, weights = zip(*KINDS, strict=True)
    return draw.choices(makers, weights)[0](draw)


FAMILIES = [Family("choices", one_of, 14)]
