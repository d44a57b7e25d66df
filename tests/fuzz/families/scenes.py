"""Scenes with drawn arguments: states inside their box, of the number and the temperature asked for."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import numpy as np
from hypothesis import strategies as st
from hypothesis.strategies import booleans, just, sampled_from

import md
from tests.fuzz.drawing import RNG, among
from tests.fuzz.families import Family
from tests.fuzz.families.simulations import states
from tests.fuzz.families.wings import AIRFOIL, AIRFOILS
from tests.fuzz.judge import Cases, cases, done, equal, require, same
from tests.fuzz.kinds import Kind, an, either, few, flag, integer, maybe, number, of, on_cpu, word

SIDES = st.tuples(sampled_from((2, 3)), booleans())
BOXES = SIDES.map(lambda of: md.Box((6.0,) * of[0], (True,) * (of[0] - 1) + of[1:]))
ROUND = md.Box((16.0, 12.0), (True, False))
WINGS = [md.Wing(airfoil=section, chord=4.0, at=(8.0, 6.0), stiffness=1e4) for section in AIRFOILS]
# Arguments by name, of all scenes that have one of that name.
ARGUMENTS: dict[str, Kind] = {
    "n": integer(1, usual=(1, 40), most=2000), "filling_fraction": number(above=0, usual=(0.05, 0.3)),
    "temperature": number(0, usual=(0.0, 16.0)), "dim": integer(2, 3, (2, 3)), "seed": integer(0),
    "memory_order": word("lattice", "shuffled"), "backend": on_cpu(),
    "state": an(md.State, states(kinds="p")),
    "mixing": number(0, usual=(0.0, 0.0, 0.0, 0.05), most=2.0), "box": an(md.Box, BOXES),
    "lengths": few(number(above=0), (2, 3), among((6.0, 6.0), (6.0, 6.0, 6.0)), most=1e4),
    "periodic": either(flag(), few(flag(), (1, 2, 3), booleans())), "generator": an(np.random.Generator, RNG),
    "share": number(above=0, high=1, usual=(0.05, 1.0)), "diameter": number(1, usual=(1.0, 1.9)),
    "airfoil": maybe(AIRFOIL), "wing": an(md.Wing, sampled_from(WINGS)), "velocity": few(number(), (2,)),
}  # fmt: skip


def scene(call: Callable, check: Callable[[Any, dict], None] | None = None, **special: Kind) -> Cases:
    """A scene; what it mixes, and how much, is always said."""
    kinds = of(call, ARGUMENTS | special)
    return cases(call, kinds, check=check, always=("mixing", "backend", "lengths", "dim", "n"))


def check_gas(found: md.State, plain: dict) -> None:
    """Particles are inside the box, as many as asked for, and as hot."""
    check_inside(found, plain)
    equal(len(found), plain.get("n", len(found)), "particles")
    if len(found) > 1:
        same(md.observe.temperature(found), plain.get("temperature", 16.0), "temperature", 1e-9)


def check_inside(found: md.State, plain: dict) -> None:
    """Particles are inside the box, and not in the wing."""
    require(np.isfinite(found.pos).all() and not found.box.outside(found.pos).any(), "outside")
    require("wing" not in plain or (plain["wing"].distance(found.pos) > 0.5).all(), "a disc in the wing")


s, prepared = md.scenes, md.preparation
TWICE = (
    scene(s.box_for), scene(prepared.granular_gas, check_gas), scene(prepared.shaken_box, check_gas),
    scene(prepared.cooling_gas, check_gas, n=integer(1, usual=(2, 40), most=500)),
    scene(s.benchmark_gas, check_gas), scene(s.lattice_sites),
    scene(s.maxwell_velocities, done, n=integer(0, usual=(0, 9), most=10**4)),
)  # fmt: skip
ONCE = (
    scene(s.in_memory_order), scene(prepared.with_large_spheres, check_inside),
    scene(prepared.newtonian_lift, done, n=integer(1, usual=(1, 50), most=5000)),
    scene(
        prepared.wing_tunnel, check_inside, box=an(md.Box, just(ROUND)),
        filling_fraction=number(above=0, usual=(0.02, 0.1)),
    ),
)  # fmt: skip
FAMILY = Family(dict.fromkeys(TWICE, 2) | dict.fromkeys(ONCE, 1))
