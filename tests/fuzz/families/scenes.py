"""Scenes with drawn arguments: states inside their box, of the number and the temperature asked for."""

from __future__ import annotations

import functools
import math
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
from tests.fuzz.judge import Cases, cases, equal, require, same
from tests.fuzz.kinds import an, either, few, flag, integer, maybe, number, word
from tests.md.scenes.test_scenes import least_distance

SEED, ORDER, DIM = integer(0), word("lattice", "shuffled"), integer(2, 3, (2, 3))
TEMPERATURE, FILLING = number(0, usual=(0.0, 16.0)), number(above=0, usual=(0.05, 0.3))
MIXED = {"mixing": number(0, usual=(0.0, 0.0, 0.0, 0.05), most=2.0), "backend": word("cpu")}
HEATED = {"temperature": TEMPERATURE, "seed": SEED, "memory_order": ORDER}
FILLED = {"filling_fraction": FILLING}
SOME = FILLED | {"n": integer(1, usual=(1, 30), most=2000)}
s = md.scenes


def on_cpu(scene: Callable) -> Callable:
    """A scene that is made on the CPU."""
    return functools.wraps(scene)(lambda **arguments: scene(**arguments, backend="cpu"))


def check_gas(found: md.State, plain: dict) -> None:
    """Particles are inside the box, as many as asked for, and as hot."""
    check_inside(found, plain)
    equal(len(found), plain.get("n", len(found)), "particles")
    if len(found) > 1:
        same(md.observe.temperature(found), plain.get("temperature", 16.0), "temperature", 1e-9)


def check_inside(found: md.State, _: dict) -> None:
    """Particles are inside the box."""
    require(np.isfinite(found.pos).all() and not found.box.outside(found.pos).any(), "outside")


def check_volume(found: md.Box, plain: dict) -> None:
    """A box is filled as asked for."""
    volume = math.pi / (6 if plain.get("dim", 3) == 3 else 4)
    same(found.volume, plain["n"] * volume / plain["filling_fraction"], "volume", 1e-9)


def check_shape(found: np.ndarray, plain: dict) -> None:
    """As many velocities as asked for."""
    equal(found.shape, (plain["n"], plain["dim"]), "shape")
    require(np.isfinite(found).all(), "what is not finite")


def check_discs(found: Any, plain: dict) -> None:
    """As many discs as asked for."""
    equal(len(found.state), plain["n"], "discs")


WAYS = {"dim": DIM, "periodic": either(flag(), few(flag(), (1, 2, 3), booleans()))}
COUNTED = FILLED | {"n": integer(1, usual=(2, 40), most=500), "dim": DIM} | MIXED
LENGTHS = {"lengths": few(number(above=0), (2, 3), among((6.0, 6.0), (6.0, 6.0, 6.0)), most=1e4)}
DRAWN = {"n": integer(0, usual=(0, 9), most=10**4), "generator": an(np.random.Generator, RNG)}
STATE, DISCS = {"state": an(md.State, states(kinds="p"))}, {"n": integer(1, usual=(1, 50), most=5000)}
SPHERES = {"share": number(above=0, high=1, usual=(0.05, 1.0)), "diameter": number(1, usual=(1.0, 1.9))}
BOX_FOR = cases(s.box_for, SOME, WAYS, check=check_volume)
SHARED = {"seed": SEED, "memory_order": ORDER, "backend": word("cpu")}
SHARED_GAS = cases(s.shared_gas, SOME, SHARED, check=check_gas)
COOLING = cases(s.cooling_gas, COUNTED, HEATED, check=check_gas)
SHAKEN = cases(s.shaken_box, FILLED | LENGTHS | MIXED, HEATED, check=check_gas)
MAXWELL = cases(s.maxwell_velocities, DRAWN | {"dim": DIM, "temperature": TEMPERATURE}, check=check_shape)
LARGE = cases(on_cpu(s.with_large_spheres), STATE | SPHERES, {"seed": SEED}, check=check_inside)
LIFT = cases(s.newtonian_lift, DISCS, {"airfoil": maybe(AIRFOIL), "seed": SEED}, check=check_discs)
SIDES = st.tuples(sampled_from((2, 3)), booleans())
BOXES = SIDES.map(lambda of: md.Box((6.0,) * of[0], (True,) * (of[0] - 1) + of[1:]))


def granular_gas(draw) -> Cases:
    """A gas in a box."""
    kinds = FILLED | {"box": an(md.Box, just(draw(BOXES)))} | MIXED
    return cases(s.granular_gas, kinds, HEATED, check=check_gas)


def lattice_sites(draw) -> Cases:
    """Sites of a lattice in a box."""
    within = draw(BOXES)

    def check(found, plain):
        sites, spacing = found
        require(len(sites) >= plain["n"], f"{len(sites)} sites")
        if len(sites) > 1 and spacing > 0:
            far = least_distance(sites, within)
            require(far >= spacing * (1 - 1e-9), f"{far} apart; spacing {spacing}")

    kinds = {"box": an(md.Box, just(within)), "n": integer(1, usual=(1, 30), most=5000)}
    return cases(s.lattice_sites, kinds, check=check)


def in_memory_order(draw) -> Cases:
    """A state in another memory order."""
    start = draw(states(kinds="p"))

    def check(found, plain):
        same(np.sort(found.id), np.sort(start.id), "ids")
        same(found.by_id().pos, start.by_id().pos, "positions")

    kinds = {"state": an(md.State, just(start)), "memory_order": ORDER, "seed": SEED}
    return cases(s.in_memory_order, kinds, check=check, calm=0.3)


def wing_tunnel(draw) -> Cases:
    """Discs round a wing."""
    wing = md.Wing(airfoil=draw(sampled_from(AIRFOILS)), chord=4.0, at=(8.0, 6.0), stiffness=1e4)

    def check(found, plain):
        check_inside(found, plain)
        require((wing.distance(found.pos) > 0.5).all(), "a disc in the wing")

    box, filling = md.Box((16.0, 12.0), (True, False)), number(above=0, usual=(0.02, 0.1))
    kinds = {"box": an(md.Box, just(box)), "wing": an(md.Wing, just(wing)), "temperature": TEMPERATURE}
    kinds |= {"filling_fraction": filling, "velocity": few(number(), (2,))}
    return cases(on_cpu(s.wing_tunnel), kinds, check=check)


TWICE = BOX_FOR, SHARED_GAS, granular_gas, COOLING, SHAKEN, lattice_sites, MAXWELL
ONCE = in_memory_order, LARGE, LIFT, wing_tunnel
FAMILY = Family(dict.fromkeys(TWICE, 2) | dict.fromkeys(ONCE, 1))
