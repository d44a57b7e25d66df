"""Simulations: made, run, looked at, saved and loaded; beside the naive search in double precision."""

from __future__ import annotations

import math
from collections.abc import Callable
from pathlib import Path
from typing import Any

import numpy as np

import md
import sfc
from tests.fuzz.drawing import Draw, narrow
from tests.fuzz.families import Family
from tests.fuzz.families.states import box, cloud
from tests.fuzz.judge import Case, WrongError, made_case, require, same
from tests.fuzz.kinds import AnyPath, Array, Either, Few, Flag, Integer, Is, Kind, Maybe, Number, Word

LAW = md.laws.SpringDashpot(stiffness=1e3, damping=2.0)
LAWS = (
    LAW,
    LAW,
    md.laws.SpringDashpot(1e4, 0.0),
    md.laws.SpringDashpot(0.0, 0.0),
    md.laws.FrictionalSpringDashpot(1e3, 1.0, friction=0.3, tangential_damping=2.0),
)
NEAR = {"float64": 1e-8, "float32": 2e-3}
STEPS = 6


class OnCpu(Word):
    """The name of a backend, of which the CPU's is drawn."""

    def admits(self, value):
        """As the base; of "auto", which takes what there is, nothing is said."""
        return None if isinstance(value, str) and str(value) == "auto" else super().admits(value)


def state(draw: Draw, dim: int | None = None, kinds: str = "ppw") -> md.State:
    """Particles that move slowly in a box of 4 to 10 diameters; some have radii."""
    within = box(draw, dim, kinds)
    if min(within.lengths) < 4:
        within = md.Box(tuple(max(4.0, side) for side in within.lengths), within.periodic, within.open)
    n = draw.choice((0, 1, 2, 12, 25, 25, 25))
    pos = 0.5 + cloud(draw, within, n) * (1 - 1 / np.array(within.lengths))
    if draw.chance(0.03):
        side = draw.choice((1e5, 1e8 + 0.5, 1e15 + 0.5, 1e-3))
        within = md.Box((side,) * within.dim)
        pos = cloud(draw, within, n)
    radius = None
    if draw.chance(0.15) and n:
        usual = draw.choice((0.5, 0.3, 0.6, 1e-9 if draw.chance(0.1) else 0.4))
        radius = np.maximum(usual * (0.5 + draw.rng.random(n)), 1e-9)
    names = np.array(draw.sample(range(3 * n + 1), n), np.int64)
    vel = draw.rng.normal(size=pos.shape) * draw.choice((1.0, 1.0, 60.0))  # fast ones outrun their lists
    if draw.chance(0.2):
        pos, vel = pos.astype(np.float32), vel.astype(np.float32)
        pos = np.where(pos >= np.array(within.lengths, np.float32), 0, pos)
    return md.State(pos, vel, within, names, radius)


def usual_state(draw: Draw, dim: int | None = None, kinds: str = "p") -> md.State:
    """One whose sizes are usual."""
    while True:
        found = state(draw, dim, kinds)
        small = found.radius is not None and min(found.radius) < 0.01
        slow = np.abs(found.vel).max(initial=0) < 10
        if slow and not small and 1 < min(found.box.lengths) and max(found.box.lengths) < 100:
            return found


def search(draw: Draw) -> Any:
    """A search by name or with parameters."""
    s = md.search
    return draw.choice(
        (
            lambda: draw.choice(tuple(s.SEARCHES)),
            lambda: draw.choice(tuple(s.SEARCHES)),
            lambda: s.Verlet(skin=draw.choice((0.0, 0.1, 0.4, None))),
            lambda: s.Coherent(draw.choice(("hilbert", "morton", "row", "random"))),
            lambda: s.Tiles("row", draw.randint(1, 5)),
            lambda: s.Lbvh(rebuild_every=draw.randint(1, 3)),
            lambda: s.Reflexive(met="twice", atomics="none"),
        )
    )()


def reorder(draw: Draw) -> md.Reorder:
    """A reorder."""
    schedule = draw.choice((md.Every(1), md.Every(3), md.Moved(0.1, 2), md.Never(), md.Decayed("auto")))
    curve = sfc.curve("hilbert", 2)
    return md.Reorder(
        draw.choice(("hilbert", "row", "morton", "random", curve)),
        schedule,
        draw.choice(("data", "threads", "shadow")),
        draw.choice(("device", "host")),
    )


def walls(draw: Draw) -> md.Walls:
    """Walls."""
    if draw.chance(0.3):
        return md.ShakenWalls(amplitude=0.01, frequency=1.0, restitution=0.8, contact_time=0.02)
    return md.Walls(restitution=0.9, contact_time=draw.choice((None, 0.02)))


def arguments(draw: Draw) -> tuple[dict[str, Kind], dict[str, Kind]]:
    """Kinds of the arguments of a simulation: those always given, and the others."""
    start = state(draw)
    law = draw.choice(LAWS)
    kinds: dict[str, Kind] = {
        "state": Is(md.State, lambda _: start),
        "law": Kind(lambda _: law),
        "backend": Either(OnCpu("cpu"), Is(md.backend.Backend, lambda _: md.backend.get("cpu"))),
        "allow_overlap": Flag(),
        "dt": Maybe(Number(above=0, usual=(1e-4, 2e-3)), 0.0 if law.stiffness == 0 else 0.3),
        "walls": Maybe(Is(md.Walls, walls), 0.3 if not all(start.box.periodic) else 0.95),
    }
    kinds["allow_overlap"].valid = lambda _: True  # type: ignore[method-assign]
    optional: dict[str, Kind] = {
        "search": Either(Word(*md.search.SEARCHES), Is(md.search.SearchConfig, search)),
        "integrator": Word(*INTEGRATORS),
        "gravity": Maybe(Few(Number(), (start.box.dim,), lambda d: (0.0,) * (start.box.dim - 1) + (-1.0,))),
        "surroundings": Few(Is((), lambda _: None), (0,)),
        "reorder": Maybe(Is(md.Reorder, reorder)),
        "precision": Word("float64", "float32"),
        "layout": Maybe(Word("soa", "aos", "aos4"), 0.8),
        "fused": Flag(),
        "post_mortem": Maybe(AnyPath(lambda d: "faults"), 0.7),
    }
    chosen = draw.some(list(optional), 5)
    return kinds, {name: optional[name] for name in chosen}


INTEGRATORS = ("velocity_verlet", "velocity_verlet", "position_verlet", "adaptive_euler", "steepest_descent")


def outcome(simulation: Callable[[], md.Simulation], steps: int) -> Any:
    """Positions, velocities, forces and pairs by id after some steps; or the fault that came.

    So does what is refused at the first step, such as a law too stiff for float32.
    """
    try:
        sim = simulation()
        sim.run(steps)
        found = sim.state.by_id()
        return found.pos, found.vel, sim.forces(), sim.pairs(), sim.time, sim.step
    except md.SimulationFault as fault:
        return fault
    except ValueError as refusal:
        if "allowed" not in str(refusal):
            raise
        return refusal


def compare(found: Any, right: Any, start: md.State, near: float) -> None:
    """Two runs give the same, or end with the same fault."""
    faults = isinstance(found, Exception), isinstance(right, Exception)
    if any(faults):
        if near < 1e-6:
            require(all(faults), f"{found!r:.300} and by the naive search {right!r:.300}")
            same_kind = type(found) is type(right) or md.ListOverflow in (type(found), type(right))
            require(same_kind, f"{type(found)}, and {type(right)} by the naive search")
        return
    scale = max(start.box.lengths)
    apart = start.box.nearest(found[0].astype(np.float64) - right[0])
    speed = 1 + np.abs(right[1]).max(initial=0)
    if speed > 1e3 or not np.isfinite(right[2]).all():
        return  # an explosion in the making, of which rounding decides
    require(
        (np.abs(apart) <= near * scale).all(), f"positions {found[0]}, and by the naive search {right[0]}"
    )
    same(found[1] / speed, right[1] / speed, "velocities", near * 10)
    force = 1 + np.abs(right[2]).max(initial=0)
    same(found[2] / force, right[2] / force, "forces", near * 100)
    ours, theirs = (set(map(tuple, pairs.tolist())) for pairs in (found[3], right[3]))
    if near < 1e-6 or len(ours ^ theirs) > 1:
        odd = [pair for pair in ours ^ theirs if not grazes(pair, right, start, near)]
        require(not odd, f"pairs {odd} of one search alone")
    same(found[4], right[4], "time", near)
    require(found[5] == right[5], f"{found[5]} steps, and {right[5]}")


def grazes(pair: tuple[int, int], right: Any, start: md.State, near: float) -> bool:
    """Whether a pair touches, or not, by less than rounding."""
    ids = np.sort(start.id)
    i, j = np.searchsorted(ids, pair)
    apart = start.box.nearest((right[0][i] - right[0][j])[None])[0]
    size = 1.0
    if start.radius is not None:
        radius = start.radius[np.argsort(start.id)]
        size = float(radius[i] + radius[j])
    return abs(math.sqrt(float((apart**2).sum())) - size) < near * 10 * max(start.box.lengths)


def made(draw: Draw) -> Case:
    """A simulation that is made, and run."""
    kinds, optional = arguments(draw)

    def check(sim, plain):
        given = dict(plain)
        start, precision = given["state"], given.get("precision", "float64")
        require(type(sim.dt) is float, f"dt of class {type(sim.dt).__name__}")
        found = outcome(lambda: sim, STEPS)
        for name in ("search", "reorder", "layout", "post_mortem", "precision", "backend", "fused"):
            given.pop(name, None)
        right = outcome(lambda: md.Simulation(**given | {"search": "naive", "backend": "cpu"}), STEPS)
        compare(found, right, start, NEAR[precision])
        if not isinstance(found, Exception) and draw.chance(0.3):
            saved_and_loaded(sim)

    return made_case(draw, "Simulation", md.Simulation, kinds, optional=optional, check=check)


def saved_and_loaded(sim: md.Simulation) -> None:
    """What is saved can be loaded, and goes on with the same bits."""
    path = Path("made.npz")
    sim.save(path)
    try:
        other = md.Simulation.load(path)
    except Exception as error:
        raise WrongError(f"what was saved cannot be loaded: {error!r}") from error
    ends = []
    for one in (sim, other):
        try:
            one.run(2)
        except md.SimulationFault as fault:
            ends.append(type(fault))
            continue
        ends.append((one.step, one.state.pos.tobytes(), one.state.vel.tobytes(), one.state.id.tobytes()))
    by_times = isinstance(sim.config.reorder, md.Reorder) and isinstance(
        sim.config.reorder.schedule, md.Decayed
    )
    require(by_times or ends[0] == ends[1], "it goes on otherwise than what was saved")


def a_simulation(draw: Draw, **fixed: Any) -> md.Simulation:
    """One that works, a few steps on."""
    start = fixed.pop("start", None) or usual_state(draw)
    options = {
        "search": draw.choice(("linked", "verlet", "lbvh", "naive", "verlet_tree")),
        "dt": 1e-3,
        "backend": "cpu",
    }
    options["precision"] = draw.choice(("float64", "float64", "float32"))
    sim = md.Simulation(start, LAW, **options | {"allow_overlap": True} | fixed)
    sim.run(draw.choice((0, 1, 3)))
    return sim


def runs(draw: Draw) -> Case:
    """Steps taken."""
    sim = a_simulation(draw)
    first = sim.step
    reporter = Is(md.Observer, lambda d: md.Observer(d.randint(1, 5)))
    kinds = {"steps": Integer(0, 2**62, (0, 6), most=200)}
    optional = {"phases": Flag(), "progress": Flag(), "reporters": Few(reporter, None)}

    def check(_, plain):
        require(sim.step == first + plain["steps"], f"at step {sim.step} after {plain['steps']} from {first}")
        require(type(sim.step) is int, f"step of class {type(sim.step).__name__}")
        for observer in plain.get("reporters", ()):
            steps = [seen.step for seen in observer.observations]
            right = [k for k in range(first + 1, sim.step + 1) if k % observer.interval == 0]
            right = [0, *right] if first == 0 and plain["steps"] else right
            require(steps == right, f"looked at {steps}, and due at {right}")

    return made_case(draw, "run", sim.run, kinds, optional=optional, check=check)


def pairs(draw: Draw) -> Case:
    """Pairs within a distance."""
    sim = a_simulation(draw, precision="float64")
    most = 1.0 if sim.state.radius is None else 2 * float(sim.state.radius.max())
    kinds = {"distance": Maybe(Number(above=0, high=most, usual=(0.1 * most, most)))}

    def check(found, plain):
        now, distance = sim.state.by_id(), plain["distance"]
        right = set()
        for i in range(len(now)):
            for j in range(i + 1, len(now)):
                apart = float(np.sqrt(np.square(now.box.nearest((now.pos[i] - now.pos[j])[None])).sum()))
                size = 1.0 if now.radius is None else float(now.radius[i] + now.radius[j])
                limit = size if distance is None else distance
                if abs(apart - limit) < 1e-9 * limit:
                    return
                if apart < limit:
                    right.add((int(now.id[i]), int(now.id[j])))
        require(
            set(map(tuple, found.tolist())) == right, f"pairs {found.tolist()}, and by the reference {right}"
        )

    return made_case(
        draw, "pairs", sim.pairs, {}, optional=kinds, check=lambda f, p: check(f, {"distance": None} | p)
    )


def saves(draw: Draw) -> Case:
    """Saved somewhere."""
    sim = a_simulation(draw)
    path = Path(f"{draw.choice('abc')}.npz")
    if draw.chance(0.5):
        path.unlink(missing_ok=True)
        trajectory = Path("run.gsd")
        trajectory.unlink(missing_ok=True)
        return made_case(draw, "write", sim.write, {"path": AnyPath(trajectory)}, calm=0.4)

    def check(_, plain):
        other = md.Simulation.load(plain["path"])
        require(
            other.state.pos.tobytes() == sim.state.pos.tobytes() and other.step == sim.step, "another state"
        )

    return made_case(draw, "save", sim.save, {"path": AnyPath(path)}, check=check)


def loads(draw: Draw) -> Case:
    """Loaded with other arguments than were saved."""
    sim = a_simulation(draw, start=usual_state(draw, 2))
    path = Path("whole.npz")
    sim.save(path)
    optional: dict[str, Kind] = {
        "backend": Maybe(OnCpu("cpu")),
        "post_mortem": Maybe(AnyPath("faults")),
        "law": Kind(lambda d: d.choice(LAWS)),
        "search": Either(Word(*md.search.SEARCHES), Is(md.search.SearchConfig, search)),
        "reorder": Maybe(Is(md.Reorder, reorder)),
        "gravity": Maybe(Few(Number(), (sim.state.box.dim,))),
        "fused": Flag(),
        "walls": Maybe(Is(md.Walls, walls), 0.9),
        "integrator": Word("velocity_verlet"),
    }
    optional = {name: optional[name] for name in draw.some(list(optional))}

    def check(found, plain):
        if Path(plain["path"]) != path:  # the file of another input
            return
        same(np.sort(found.state.id), np.sort(sim.state.id), "ids")
        require(found.step == sim.step, f"at step {found.step}, and saved at {sim.step}")
        outcome(lambda: found, 2)

    return made_case(
        draw, "Simulation.load", md.Simulation.load, {"path": AnyPath(path)}, optional=optional, check=check
    )


def a_profile(draw: Draw, dim: int) -> md.Profile:
    """A profile, its numbers of any width."""
    axis, bins = draw.randrange(dim), draw.choice((1, 3, 20, 100, 200))
    return md.Profile(narrow(draw, axis), narrow(draw, bins)) if draw.chance(0.3) else md.Profile(axis, bins)


def cells_kind(dim: int) -> Few:
    """Cells along each axis, few or far too many, of any width."""

    def valid(draw: Draw) -> Any:
        cells = [draw.choice((1, 2, 3, 20)) for _ in range(dim)]
        if draw.chance(0.2):
            return tuple(narrow(draw, c) for c in cells)
        if draw.chance(0.05):
            return draw.choice((np.full(dim, 2**22), np.full(dim, 2048, np.int32), (2**40,) * dim))
        return tuple(cells)

    return Few(Integer(1), (dim,), valid, 10**5, 2**24)


def along(cells: int | tuple[int, ...], dim: int) -> tuple[int, ...]:
    """Cells along each axis."""
    return (cells,) * dim if isinstance(cells, int) else cells


def looks(draw: Draw) -> Case:
    """Looked at: sums, profiles, fields."""
    sim = a_simulation(draw)
    now = sim.state
    dim, n = now.box.dim, len(now)
    simulation = Is(md.Simulation, lambda _: sim)
    cells = cells_kind(dim)
    kind = draw.randrange(4)
    if kind == 0:
        profile = Is(md.Profile, lambda d: a_profile(d, dim))
        optional = {"profiles": Few(profile, None), "cells": Either(Integer(1, 1000, (1, 4)), cells)}

        def check_look(found, plain):
            same(found.momentum, now.vel.astype(np.float64).sum(axis=0), "momentum", 1e-5)
            same(found.temperature, md.observe.temperature(now), "temperature", 1e-5)
            require(
                found.touching_pairs == len(sim.pairs()),
                f"{found.touching_pairs} pairs, of {len(sim.pairs())}",
            )
            for profile, seen in zip(plain.get("profiles", ()), found.profiles, strict=True):
                slots = np.minimum(
                    now.pos[:, profile.axis] / now.box.lengths[profile.axis] * profile.bins, profile.bins - 1
                )
                right = np.bincount(slots.astype(int), minlength=profile.bins)
                require(
                    abs(seen.particles - right).sum() <= 2, f"{seen.particles}, and by the reference {right}"
                )
                require(seen.particles.sum() == n, "a particle in no slice")

        return made_case(
            draw,
            "look",
            md.observe.look,
            {"simulation": simulation},
            optional=optional,
            check=check_look,
        )
    if kind == 1:

        def check_field(found, plain):
            require(found.particles.shape == along(plain["cells"], dim), f"shape {found.particles.shape}")
            same(found.particles.sum(), n, "particles")

        kinds = {"simulation": simulation, "cells": Either(Integer(1, usual=(1, 4), most=40), cells)}
        return made_case(draw, "field", md.observe.field, kinds, check=check_field)
    if kind == 2:
        return made_case(
            draw,
            "virial",
            md.observe.virial,
            {"simulation": simulation},
            check=lambda found, _: require(found.shape == (n,) and np.isfinite(found).all(), f"{found}"),
        )
    close = sim.pairs()
    kinds2: dict[str, Kind] = {
        "state": Is(md.State, lambda _: now),
        "pairs": Array(lambda _: close, "iu", (None, 2)),
        "law": Kind(lambda _: LAW),
    }

    def check_energy(found, plain):
        if plain["pairs"] is close and plain["law"] is LAW and n:
            by_id = {int(name): k for k, name in enumerate(now.id)}
            total = 0.0
            for first, second in close.tolist():
                i, j = by_id[first], by_id[second]
                apart = now.box.nearest((now.pos[i].astype(np.float64) - now.pos[j])[None])
                size = 1.0 if now.radius is None else float(now.radius[i]) + float(now.radius[j])
                total += size * LAW.stiffness * max(0.0, 1 - float(np.sqrt((apart**2).sum())) / size) ** 2 / 2
            same(found, total / n, "contact energy", 1e-6)

    return made_case(draw, "contact_energy", md.observe.contact_energy, kinds2, check=check_energy)


def reports(draw: Draw) -> Case:
    """A reporter's parameters are those that a run goes by."""
    sim = a_simulation(draw)
    dim = sim.state.box.dim
    kind = draw.randrange(3)
    steps = draw.randint(1, 12)
    made: dict[str, Any] = {}

    def call(**given):
        reporter = (md.Observer, md.observe.Fields, md.observe.EnergyBalance)[kind](**given)
        made["reporter"] = reporter
        first = sim.step
        sim.run(steps, reporters=[reporter])
        due = [k for k in range(first + 1, sim.step + 1) if k % reporter.interval == 0]
        return [0, *due] if first == 0 else due

    def check(due, plain):
        reporter = made["reporter"]
        if kind == 0:
            same(reporter.table().get("step", []), due, "steps looked at")
            reporter.profile_table()
        elif kind == 1 and due:
            require(reporter.mean().particles.shape == along(plain["cells"], dim), "cells")
        elif kind == 2:
            same(reporter.table().get("step", []), due, "steps looked at")

    kinds: dict[str, Kind] = {"interval": Integer(usual=(1, 4))}
    optional: dict[str, Kind] = {}
    cells = cells_kind(dim)
    if kind == 0:
        profile = Is(md.Profile, lambda d: a_profile(d, dim))
        optional = {
            "profiles": Either(profile, Few(profile, None)),
            "cells": Either(Integer(1, 1000, (1, 4)), cells),
        }
    if kind == 1:
        kinds["cells"] = Either(Integer(1, usual=(1, 4), most=40), cells)
    name = ("Observer", "Fields", "EnergyBalance")[kind]
    return made_case(draw, f"a run with {name}", call, kinds, optional=optional, check=check)


KINDS = ((made, 9), (runs, 3), (pairs, 2), (saves, 2), (loads, 3), (looks, 4), (reports, 2))


def one_of(draw: Draw) -> Case:
    """An input of any of these."""
    makers, weights = zip(*KINDS, strict=True)
    return draw.choices(makers, weights)[0](draw)


def prepare() -> None:
    """Have the kernels compiled, so that no input waits for them."""
    for name in md.search.SEARCHES:
        for precision in ("float64", "float32"):
            for dim in (2, 3):
                draw = Draw("prepare", 0, dim)
                sim = a_simulation(draw, start=usual_state(draw, dim), search=name, precision=precision)
                sim.run(2)
                sim.pairs(), sim.forces(), md.observe.look(sim)


FAMILIES = [Family("simulations", one_of, 16, prepare)]
