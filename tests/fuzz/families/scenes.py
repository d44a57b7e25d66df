"""Wings, inflows, airfoils and their files; scenes."""

from __future__ import annotations

import math
from pathlib import Path
from typing import NamedTuple

import numpy as np

import md
from tests.fuzz.drawing import Draw
from tests.fuzz.families import Family
from tests.fuzz.families.choices import kept
from tests.fuzz.families.simulations import state
from tests.fuzz.families.states import Floats, stored
from tests.fuzz.judge import Case, made_case, require, same
from tests.fuzz.kinds import AnyPath, Either, Few, Flag, Integer, Is, Kind, Maybe, Number, Text, Word

TRIANGLE = np.array([[1.0, 0.0], [0.5, 0.2], [0.0, 0.0]])


def airfoil(draw: Draw) -> md.Airfoil:
    """One of a few."""
    return draw.choice((md.naca("0012", 5), md.naca("2412", 8), md.Airfoil("triangle", TRIANGLE)))


def wings(draw: Draw) -> Case:
    """Wings, and how far points are from them."""
    if draw.chance(0.4):
        return distances(draw)
    kinds: dict[str, Kind] = {
        "airfoil": Is(md.Airfoil, airfoil),
        "chord": Number(above=0, usual=(1.0, 20.0)),
        "at": Few(Number(), (2,)),
        "stiffness": Number(0, usual=(0.0, 1e4)),
    }
    optional: dict[str, Kind] = {
        "angle": Number(usual=(-20.0, 20.0)),
        "damping": Number(0),
        "depth": Number(0),
    }

    def check(found, plain):
        kept()(found, plain)
        w2 = plain["stiffness"] - plain.get("damping", 0.0) ** 2 / 4
        if 1e-9 < w2 < 1e30 and w2 > 1e-9 * plain["stiffness"]:
            same(found.contact_time, math.pi / math.sqrt(w2), "contact time", 1e-6)
        require(found.outline.shape == plain["airfoil"].outline.shape, "another outline")

    return made_case(draw, "Wing", md.Wing, kinds, optional=optional, check=check)


def distances(draw: Draw) -> Case:
    """Distances of points from an outline."""
    wing = md.Wing(
        airfoil=airfoil(draw),
        chord=draw.uniform(1, 20),
        angle=draw.uniform(-20, 20),
        at=(3.0, 4.0),
        stiffness=1.0,
    )
    points = draw.rng.random((draw.randrange(5), 2)) * 20 - 5
    outline = wing.outline

    def right_of(point: list[float]) -> float:
        nearest, inside = math.inf, False
        for (ax, ay), (bx, by) in zip(outline.tolist(), np.roll(outline, -1, axis=0).tolist(), strict=True):
            x, y = point
            dx, dy = bx - ax, by - ay
            share = min(1.0, max(0.0, ((x - ax) * dx + (y - ay) * dy) / (dx * dx + dy * dy)))
            nearest = min(nearest, math.hypot(x - ax - share * dx, y - ay - share * dy))
            if (ay > y) != (by > y) and x < ax + (y - ay) / dy * dx:
                inside = not inside
        return -nearest if inside else nearest

    def check(found, plain):
        given = np.asarray(plain["pos"], np.float64)
        if np.abs(given).max(initial=0) < 1e6:
            same(found, [right_of(point) for point in given.tolist()], "distance", 1e-6)

    kinds = {"pos": Floats(lambda d: stored(d, points), (None, 2))}
    return made_case(draw, "Wing.distance", wing.distance, kinds, check=check, sure=True)


def inflows(draw: Draw) -> Case:
    """Streams."""
    dim = draw.choice((2, 3))
    kinds: dict[str, Kind] = {
        "velocity": Few(Number(usual=(0.5, 2.0)), (2, 3), lambda d: tuple(1.0 + k for k in range(dim)))
    }
    optional: dict[str, Kind] = {
        "temperature": Number(0),
        "axis": Integer(0, dim - 1, (0, dim - 1)),
        "seed": Integer(0, 2**63 - 1),
    }
    return made_case(draw, "Inflow", md.Inflow, kinds, optional=optional, check=kept())


def airfoils(draw: Draw) -> Case:
    """Sections."""
    if draw.chance(0.5):
        digits = draw.choice(("00", "24", "44", "11", "02", "20")) + draw.choice(
            ("12", "01", "99", "00", "15")
        )
        optional: dict[str, Kind] = {"points": Integer(3, usual=(3, 30), most=300), "closed": Flag()}

        def check_naca(found, plain):
            points = plain.get("points", 100)
            want = 2 * points - (2 if plain.get("closed", True) else 1)
            require(
                found.outline.shape == (want, 2), f"{found.outline.shape}, and {want} points by the count"
            )
            require(found.area > 0 and not found.outline.flags.writeable, "area")

        return made_case(draw, "naca", md.naca, {"digits": Text(digits)}, optional=optional, check=check_naca)
    if draw.chance(0.3):
        section = airfoil(draw)
        kinds: dict[str, Kind] = {
            "chord": Number(above=0),
            "angle": Number(usual=(-20.0, 20.0)),
            "at": Few(Number(), (2,)),
        }
        return made_case(
            draw,
            "Airfoil.placed",
            section.placed,
            kinds,
            check=lambda found, _: require(found.shape == section.outline.shape, "another outline"),
        )
    m = draw.choice((3, 4, 6))
    turns = np.sort(draw.rng.random(m)) * 2 * np.pi
    outline = np.column_stack([0.5 + 0.5 * np.cos(turns), 0.2 * np.sin(turns)])

    def check(found, plain):
        given = np.asarray(plain["outline"], np.float64)
        kept_as = np.sort(found.outline, axis=0)
        same(kept_as, np.sort(given, axis=0), "outline")
        require(found.area > 0, "clockwise")

    kinds = {"name": Text("mine"), "outline": Floats(lambda d: stored(d, outline), (None, 2))}
    return made_case(draw, "Airfoil", md.Airfoil, kinds, check=check)


def airfoil_files(draw: Draw) -> Case:
    """Files of coordinates, often damaged."""
    section = md.naca("2412", draw.choice((4, 8)))
    rows = [f"{x:.5f} {y:.5f}" for x, y in section.outline]
    if draw.chance(0.3):
        half = len(rows) // 2
        rows = [f"{half + 1}. {len(rows) - half}.", "", *rows[half::-1], "", *rows[half:]]
    lines = ["NACA 2412", *rows]
    raw = "\n".join(lines).encode()
    whole = draw.chance(0.2)
    if not whole:
        at = draw.randrange(len(raw))
        raw = draw.choice(
            (
                lambda: raw[:at],
                lambda: raw[:at] + bytes([draw.randrange(256)]) + raw[at + 1 :],
                lambda: (
                    raw[:at]
                    + draw.choice((b"nan", b"inf", b"1e400", b"-", b"\x00", b"\n", b" ", b"9" * 400))
                    + raw[at:]
                ),
                lambda: b"",
                lambda: raw.replace(b" ", draw.choice((b",", b"\t", b"  ", b" 0 "))),
                lambda: b"\n".join(
                    draw.sample(raw.split(b"\n"), len(lines) if len(rows) == len(section.outline) else 3)
                ),
            )
        )()
    path = Path("mine.dat")
    path.write_bytes(raw)

    def check(found, plain):
        require(np.isfinite(found.outline).all() and found.area > 0, "no outline")
        if whole:
            require(len(found.outline) == len(section.outline), f"{len(found.outline)} points")

    return made_case(draw, "read_airfoil", md.read_airfoil, {"path": AnyPath(path)}, calm=0.85, check=check)


class Usual(NamedTuple):
    """Kinds of arguments that several scenes take."""

    seed: Kind = Integer(0)
    temperature: Kind = Number(0, usual=(0.0, 16.0))
    order: Kind = Word("lattice", "shuffled")
    backend: Kind = Word("cpu")
    mixing: Kind = Number(0, usual=(0.0, 0.0, 0.0, 0.05), most=2.0)
    filling: Kind = Number(above=0, usual=(0.05, 0.3))

    @property
    def heated(self) -> dict[str, Kind]:
        """Optional arguments of a gas."""
        return {"temperature": self.temperature, "seed": self.seed, "memory_order": self.order}

    @property
    def mixed(self) -> dict[str, Kind]:
        """Arguments of a gas that is thermalised."""
        return {"mixing": self.mixing, "backend": self.backend}


def good(found, temperature=None) -> None:
    """Require finite positions inside the box, and a temperature."""
    require(np.isfinite(found.pos).all() and not found.box.outside(found.pos).any(), "outside")
    if temperature is not None and len(found) > 1:
        same(md.observe.temperature(found), temperature, "temperature", 1e-9)


def good_and_many(found, plain, temperature) -> None:
    """Require a good state of as many particles as were asked for."""
    good(found, temperature)
    require(len(found) == plain["n"], f"{len(found)} particles")


def box_for(draw: Draw, usual: Usual) -> Case:
    """A box for some particles."""
    kinds: dict[str, Kind] = {"n": Integer(1, usual=(1, 30), most=2000), "filling_fraction": usual.filling}
    flags = Either(Flag(), Few(Flag(), (1, 2, 3), lambda d: d.chance(0.5)))
    optional: dict[str, Kind] = {"dim": Integer(2, 3, (2, 3)), "periodic": flags}

    def check(found, plain):
        volume = math.pi / (6 if plain.get("dim", 3) == 3 else 4)
        same(found.volume, plain["n"] * volume / plain["filling_fraction"], "volume", 1e-9)

    return made_case(draw, "box_for", md.scenes.box_for, kinds, optional=optional, check=check)


def shared_gas(draw: Draw, usual: Usual) -> Case:
    """The gas of the shared benchmark."""
    kinds: dict[str, Kind] = {"n": Integer(1, usual=(1, 30), most=2000), "filling_fraction": usual.filling}
    optional = {"seed": usual.seed, "memory_order": usual.order, "backend": usual.backend}

    def check(found, plain):
        good_and_many(found, plain, 16.0 if plain["n"] > 1 else None)

    return made_case(draw, "shared_gas", md.scenes.shared_gas, kinds, optional=optional, check=check)


def drawn_box(draw: Draw) -> md.Box:
    """A small box, the last axis periodic or not."""
    dim = draw.choice((2, 3))
    return md.Box((6.0,) * dim, draw.choice((True, (True,) * (dim - 1) + (False,))))


def check_hot(found, plain) -> None:
    """Require a good state of the temperature asked for."""
    good(found, plain.get("temperature", 16.0))


def granular_gas(draw: Draw, usual: Usual) -> Case:
    """A gas in a box."""
    within = drawn_box(draw)
    kinds = {"filling_fraction": usual.filling, "box": Is(md.Box, lambda _: within)} | usual.mixed
    scene = md.scenes.granular_gas
    return made_case(draw, "granular_gas", scene, kinds, optional=usual.heated, check=check_hot)


def cooling_gas(draw: Draw, usual: Usual) -> Case:
    """A gas that cools."""
    count, dim = Integer(1, usual=(2, 40), most=500), Integer(2, 3, (2, 3))
    kinds = {"n": count, "filling_fraction": usual.filling, "dim": dim} | usual.mixed

    def check(found, plain):
        good_and_many(found, plain, plain.get("temperature", 16.0))

    scene = md.scenes.cooling_gas
    return made_case(draw, "cooling_gas", scene, kinds, optional=usual.heated, check=check)


def shaken_box(draw: Draw, usual: Usual) -> Case:
    """A gas in a shaken box."""
    sides = (6.0,) * draw.choice((2, 3))
    lengths = Few(Number(above=0), (2, 3), lambda _: sides, most=1e4)
    kinds = {"filling_fraction": usual.filling, "lengths": lengths} | usual.mixed
    scene = md.scenes.shaken_box
    return made_case(draw, "shaken_box", scene, kinds, optional=usual.heated, check=check_hot)


def lattice_sites(draw: Draw, usual: Usual) -> Case:
    """Sites of a lattice in a box."""
    within = drawn_box(draw)
    kinds = {"box": Is(md.Box, lambda _: within), "n": Integer(1, usual=(1, 30), most=5000)}

    def check(found, plain):
        sites, spacing = found
        require(len(sites) >= plain["n"], f"{len(sites)} sites")
        if len(sites) > 1 and spacing > 0:
            apart = within.nearest((sites[:, None] - sites).reshape(-1, within.dim))
            far = np.sqrt((apart.reshape(len(sites), -1, within.dim) ** 2).sum(axis=-1))
            far += 1e9 * np.eye(len(sites))
            require(far.min() >= spacing * (1 - 1e-9), f"{far.min()} apart; spacing {spacing}")

    return made_case(draw, "lattice_sites", md.scenes.lattice_sites, kinds, check=check)


def maxwell_velocities(draw: Draw, usual: Usual) -> Case:
    """Velocities of a temperature."""
    kinds = {
        "n": Integer(0, usual=(0, 9), most=10**4),
        "dim": Integer(2, 3, (2, 3)),
        "temperature": usual.temperature,
        "generator": Is(np.random.Generator, lambda d: d.rng),
    }

    def check(found, plain):
        require(found.shape == (plain["n"], plain["dim"]) and np.isfinite(found).all(), f"{found.shape}")

    return made_case(draw, "maxwell_velocities", md.scenes.maxwell_velocities, kinds, check=check)


def of_a_state(draw: Draw, usual: Usual) -> Case:
    """A state in another memory order, or with some large spheres."""
    start = state(draw, kinds="p")
    kinds: dict[str, Kind] = {"state": Is(md.State, lambda _: start)}
    if draw.chance(0.5):
        kinds |= {"memory_order": usual.order, "seed": usual.seed}

        def check(found, plain):
            same(np.sort(found.id), np.sort(start.id), "ids")
            same(found.by_id().pos, start.by_id().pos, "positions")

        return made_case(draw, "in_memory_order", md.scenes.in_memory_order, kinds, check=check, calm=0.3)
    kinds |= {
        "share": Number(above=0, high=1, usual=(0.05, 1.0)),
        "diameter": Number(1, usual=(1.0, 1.9)),
    }

    def scene(**arguments):
        return md.scenes.with_large_spheres(**arguments, backend="cpu")

    optional = {"seed": usual.seed}
    return made_case(draw, "with_large_spheres", scene, kinds, optional=optional, check=lambda f, p: good(f))


def wing_scene(draw: Draw, usual: Usual) -> Case:
    """A wing in a stream."""
    s, seed, temperature = md.scenes, usual.seed, usual.temperature
    if draw.chance(0.5):
        kinds: dict[str, Kind] = {"n": Integer(1, usual=(1, 50), most=5000)}
        optional: dict[str, Kind] = {"airfoil": Maybe(Is(md.Airfoil, airfoil)), "seed": seed}
        return made_case(
            draw,
            "newtonian_lift",
            s.newtonian_lift,
            kinds,
            optional=optional,
            check=lambda f, p: require(len(f.state) == p["n"], f"{len(f.state)} discs"),
        )
    wing = md.Wing(airfoil=airfoil(draw), chord=4.0, at=(8.0, 6.0), stiffness=1e4)
    kinds = {
        "filling_fraction": Number(above=0, usual=(0.02, 0.1)),
        "box": Is(md.Box, lambda _: md.Box((16.0, 12.0), (True, False))),
        "wing": Is(md.Wing, lambda _: wing),
        "velocity": Few(Number(), (2,)),
        "temperature": temperature,
    }
    return made_case(
        draw,
        "wing_tunnel",
        lambda **k: s.wing_tunnel(**k, backend="cpu"),
        kinds,
        check=lambda f, p: (good(f), require((wing.distance(f.pos) > 0.5).all(), "a disc in the wing")),
    )


SCENES = (
    box_for, shared_gas, granular_gas, cooling_gas, shaken_box, lattice_sites, maxwell_velocities, of_a_state,
    wing_scene,
)  # fmt: skip


def scenes(draw: Draw) -> Case:
    """A scene with drawn arguments."""
    return draw.choice(SCENES)(draw, Usual())


def stream(draw: Draw) -> Case:
    """A run with a wing and an inflow, by any search."""
    box = md.Box((16.0, 12.0), (True, draw.chance(0.5)))
    pos = draw.rng.random((draw.choice((0, 1, 10)), 2)) * np.array(box.lengths) * 0.9 + 0.5
    start = md.State(pos, draw.rng.normal(size=pos.shape), box)
    wing = md.Wing(airfoil=airfoil(draw), chord=4.0, at=(8.0, 6.0), stiffness=1e3)
    inflow = md.Inflow(velocity=(1.0, 0.0), temperature=1.0, seed=draw.randrange(5))
    around = draw.choice(((wing,), (wing, inflow), (inflow,), [wing]))
    kinds: dict[str, Kind] = {
        "surroundings": Few(Is((md.Wing, md.Inflow), lambda _: wing), None, lambda _: around)
    }
    walls = None if box.periodic[1] else md.Walls(contact_time=0.03)

    def run(surroundings, search):
        sim = md.Simulation(
            start,
            md.laws.SpringDashpot(1e3, 1.0),
            search=search,
            dt=1e-3,
            backend="cpu",
            allow_overlap=True,
            walls=walls,
            surroundings=surroundings,
        )
        sim.run(4)
        return sim.state.by_id()

    chosen = draw.choice(("linked", "lbvh", "verlet", "naive", "reflexive"))

    def check(found, plain):
        right = run(around, "naive")
        if list(plain["surroundings"]) == list(around):
            same(found.pos, right.pos, "positions", 1e-9)
            same(found.vel, right.vel, "velocities", 1e-6)

    return made_case(
        draw,
        f"a run by {chosen} round a wing",
        lambda surroundings: run(surroundings, chosen),
        kinds,
        check=check,
        documented=(md.SimulationFault,),
    )


KINDS = ((wings, 5), (inflows, 2), (airfoils, 3), (airfoil_files, 4), (scenes, 8), (stream, 2))


def one_of(draw: Draw) -> Case:
    """An input of any of these."""
    makers, weights = zip(*KINDS, strict=True)
    return draw.choices(makers, weights)[0](draw)


def prepare() -> None:
    """Have the kernels compiled."""
    for seed in range(8):
        draw = Draw("prepare", seed, 0)
        case = stream(draw)
        case.call(**{name: kind.valid(draw) for name, kind in case.kinds.items()})


FAMILIES = [Family("scenes", one_of, 12, prepare)]
