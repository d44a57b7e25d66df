"""Wings, inflows, airfoils and their files; runs round a wing."""

from __future__ import annotations

import itertools
from pathlib import Path
from typing import Any

import numpy as np
from hypothesis import strategies as st
from hypothesis.strategies import booleans, integers, just, sampled_from

import md
from tests.fuzz.drawing import RNG, among, chance
from tests.fuzz.families import Family
from tests.fuzz.families.choices import kept
from tests.fuzz.families.files import damaged
from tests.fuzz.families.simulations import OPTIONS
from tests.fuzz.families.states import floats, stored
from tests.fuzz.judge import Cases, cases, require, same
from tests.fuzz.kinds import an, few, flag, integer, number, path, text
from tests.md.boundaries.test_airfoil_file import lednicer, selig

TRIANGLE = md.Airfoil("triangle", np.array([[1.0, 0.0], [0.5, 0.2], [0.0, 0.0]]))
AIRFOILS = md.naca("0012", 5), md.naca("2412", 8), TRIANGLE
AIRFOIL = an(md.Airfoil, sampled_from(AIRFOILS))
SEARCHES = "linked", "lbvh", "verlet", "naive", "reflexive"
FILE = Path("mine.dat")


DIGITS = st.tuples(*map(sampled_from, (("00", "24", "44", "11", "02", "20"), ("12", "01", "99", "00", "15"))))
TURNS = st.tuples(RNG, sampled_from((3, 4, 6))).map(lambda of: np.sort(of[0].random(of[1])) * 2 * np.pi)
OUTLINES = TURNS.map(lambda turns: np.column_stack([0.5 + 0.5 * np.cos(turns), 0.2 * np.sin(turns)]))
PLACED = {
    "chord": number(above=0, usual=(1.0, 20.0)), "at": few(number(), (2,)), "angle": number(usual=(-20, 20)),
}  # fmt: skip
WING = PLACED | {
    "airfoil": AIRFOIL, "stiffness": number(0, usual=(0.0, 1e4)), "damping": number(0), "depth": number(0),
}  # fmt: skip
NACA = {"digits": text(DIGITS.map("".join)), "points": integer(3, usual=(3, 30), most=300), "closed": flag()}
MINE = {"name": text("mine"), "outline": floats(OUTLINES.flatmap(stored), (None, 2))}
MADE = {
    cases(md.Wing, WING, check=kept()): 6,
    cases(md.naca, NACA): 3,
    cases(md.Airfoil, MINE): 2,
    among(*[cases(section.placed, PLACED, name="Airfoil.placed") for section in AIRFOILS]): 1,
}


def distances(draw) -> Cases:
    """Distances of points from an outline."""
    rng, section = draw(RNG), draw(sampled_from(AIRFOILS))
    place = {"chord": rng.uniform(1, 20), "angle": rng.uniform(-20, 20), "at": (3.0, 4.0)}
    wing = md.Wing(airfoil=section, stiffness=1.0, **place)

    points = rng.random((draw(integers(0, 4)), 2)) * 20 - 5
    kinds = {"pos": floats(stored(points), (None, 2))}
    return cases(wing.distance, kinds, name="Wing.distance", sure=True)


def inflows(draw) -> Cases:
    """Streams."""
    dim = draw(integers(2, 3))
    kinds = {
        "velocity": few(number(), (2, 3), (1.0, 2.0, 3.0)[:dim]), "axis": integer(0, dim - 1, (0, dim - 1)),
        "temperature": number(0), "seed": integer(0, 2**63 - 1),
    }  # fmt: skip
    return cases(md.Inflow, kinds, check=kept())


@st.composite
def spoilt(draw, raw: bytes) -> bytes:
    """The bytes of a file of coordinates, cut, changed or shuffled."""
    at = draw(integers(0, len(raw) - 1))
    put = draw(sampled_from((b"", b"nan", b"inf", b"1e400", b"-", b"\x00", b"\n", b" ", b"9" * 400)))
    spaced = raw.replace(b" ", draw(sampled_from((b",", b"\t", b"  ", b" 0 "))))
    lines = draw(st.permutations(raw.split(b"\n")))
    mixed = b"\n".join(lines[: draw(sampled_from((3, len(lines))))])
    return draw(among(damaged(raw), raw[:at] + put + raw[at + (put == b"") :], b"", spaced, mixed))


def files(draw) -> Cases:
    """Files of coordinates, often damaged."""
    section = md.naca("2412", draw(sampled_from((4, 8))))
    written, whole = draw(sampled_from((selig, selig, lednicer))), draw(chance(0.2))
    raw = "\n".join(["NACA 2412", *written(section)]).encode()
    FILE.write_bytes(raw if whole else draw(spoilt(raw)))

    def check(found, plain):
        require(np.isfinite(found.outline).all() and found.area > 0, "no outline")
        require(not whole or len(found.outline) == len(section.outline), f"{len(found.outline)} points")

    return cases(md.read_airfoil, {"path": path(just(FILE))}, calm=0.85, check=check)


def flown(start: md.State, surroundings: Any, search: str) -> md.State:
    """Discs after some steps, by a search."""
    walls = None if start.box.periodic[1] else md.Walls(contact_time=0.03)
    law = md.laws.SpringDashpot(1e3, 1.0)
    sim = md.Simulation(start, law, search=search, walls=walls, surroundings=surroundings, **OPTIONS)
    sim.run(4)
    return sim.state.by_id()


def streams(draw) -> Cases:
    """A run with a wing and an inflow, by any search."""
    box, rng = md.Box((16.0, 12.0), (True, draw(booleans()))), draw(RNG)
    pos = rng.random((draw(sampled_from((0, 1, 10))), 2)) * np.array(box.lengths) * 0.9 + 0.5
    start = md.State(pos, rng.normal(size=pos.shape), box)
    wing = md.Wing(airfoil=draw(sampled_from(AIRFOILS)), chord=4.0, at=(8.0, 6.0), stiffness=1e3)
    inflow = md.Inflow(velocity=(1.0, 0.0), temperature=1.0, seed=draw(integers(0, 4)))
    around = draw(sampled_from(((wing,), (wing, inflow), (inflow,), [wing])))
    search = draw(sampled_from(SEARCHES))

    def call(surroundings):
        return flown(start, surroundings, search)

    def check(found, plain):
        right = flown(start, around, "naive")
        if list(plain["surroundings"]) == list(around):
            same(found.pos, right.pos, "positions", 1e-9)
            same(found.vel, right.vel, "velocities", 1e-6)

    kinds = {"surroundings": few(an((md.Wing, md.Inflow), just(wing)), None, just(around))}
    return cases(call, kinds, name=f"a run by {search}", check=check, documented=(md.SimulationFault,))


def prepare() -> None:
    """Have the kernels compiled."""
    wing = md.Wing(airfoil=TRIANGLE, chord=4.0, at=(8.0, 6.0), stiffness=1e3)
    around = wing, md.Inflow(velocity=(1.0, 0.0), temperature=1.0)
    for search, periodic in itertools.product(SEARCHES, (True, False)):
        flown(md.State([[2.0, 2.0]], [[1.0, 1.0]], md.Box((16.0, 12.0), (True, periodic))), around, search)


FAMILY = Family(MADE | {distances: 4, inflows: 4, files: 8, streams: 4}, prepare)
