"""Simulations: made, run, saved and loaded; beside numpy by all pairs, at sides of two cutoffs and more."""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path
from typing import Any

import gsd.hoomd
import numpy as np
from hypothesis import strategies as st
from hypothesis.strategies import booleans, builds, integers, just, sampled_from

import md
import sfc
from tests.fuzz.drawing import RNG, among, chance, some
from tests.fuzz.families import Family
from tests.fuzz.families.states import boxes, cloud
from tests.fuzz.judge import Cases, cases, contents, equal, require, same
from tests.fuzz.kinds import Kind, an, either, few, flag, integer, maybe, number, on_cpu, path, word
from tests.md.gas_reference import Gas, apart
from tests.md.simulation.test_simulation import same_bits

LAW = md.laws.SpringDashpot(stiffness=1e3, damping=2.0)
FRICTION = md.laws.FrictionalSpringDashpot(1e3, 1.0, friction=0.3, tangential_damping=2.0)
LAWS = LAW, LAW, md.laws.SpringDashpot(1e4, 0.0), md.laws.SpringDashpot(0.0, 0.0), FRICTION
INTEGRATORS = ("velocity_verlet", "velocity_verlet", "position_verlet", "adaptive_euler", "steepest_descent")
NEAR = {"float64": 1e-8, "float32": 2e-3}
OPTIONS = {"dt": 1e-3, "backend": "cpu", "allow_overlap": True}
# What a run gives may not depend on these.
FREE = ("search", "reorder", "layout", "post_mortem", "precision", "backend", "fused")


@st.composite
def states(draw, dim: int | None = None, kinds: str = "ppwo", usual: bool = False) -> md.State:
    """Particles in a box of two to ten cutoffs a side, or out of its open sides; some have radii, up to 1:16.

    Args:
        draw: of Hypothesis.
        dim: 2 or 3; None for either.
        kinds: of the sides of the box.
        usual: whether no box or radius is very large or small, and no particle fast.
    """
    rng, n = draw(RNG), draw(sampled_from((0, 1, 2, 12, 25, 25, 60)))
    most = draw(sampled_from((*[0.5, 0.3, 1.0, 0.4] * 10, 0.4 if usual else 1e-9)))
    radius = np.float32(np.maximum(most / 16 ** rng.random(n), 1.1e-9)) if n and draw(chance(0.3)) else None
    widest = 1.0 if radius is None else 2 * float(radius.max())
    within = draw(boxes(dim, kinds, widest))
    if not usual and draw(chance(0.03)):
        within = md.Box((draw(sampled_from((1e5, 1e8 + 0.5, 1e15 + 0.5, 1e-3))),) * within.dim)
    pos = cloud(rng, within, n, widest / 4, draw(sampled_from((0.0, 0.3, 2.0))))
    fast = 1 if usual else draw(sampled_from((1, 10, 60)))  # they outrun their lists
    vel = rng.normal(size=pos.shape) * fast
    if draw(chance(0.2)):
        pos, vel = pos.astype(np.float32), vel.astype(np.float32)
        pos = np.where(within.outside(pos), 0, pos.T).T
    return md.State(pos, vel, within, rng.permutation(3 * n + 1)[:n], radius)


s, DIVISION = md.search, sampled_from((None, 1, 2, 3, 4))
SEARCHES = among(
    *[sampled_from(tuple(s.SEARCHES))] * 2,
    builds(s.Verlet, skin=sampled_from((0.0, 0.1, 0.4, None))),
    builds(s.Coherent, sampled_from(("hilbert", "morton", "row", "random")), DIVISION),
    builds(s.Scattered, division=DIVISION),
    builds(s.WideBvh, rebuild_every=integers(1, 3)),
    builds(s.Tiles, just("row"), integers(1, 5)),
    builds(s.Lbvh, rebuild_every=integers(1, 3)),
    builds(s.Reflexive, met=just("twice"), atomics=just("none")),
)
SEARCH = either(word(*s.SEARCHES), an(s.SearchConfig, SEARCHES))


def reorders() -> st.SearchStrategy[md.Reorder]:
    """Any reorder."""
    schedules = md.Every(1), md.Every(3), md.Moved(0.1, 2), md.Never(), md.Decayed("auto")
    orders = "hilbert", "row", "morton", "random", sfc.curve("hilbert", 2)
    given = orders, schedules, ("data", "threads", "shadow"), ("device", "host")
    return builds(md.Reorder, *map(sampled_from, given))


SHAKEN = md.ShakenWalls(amplitude=0.01, frequency=1.0, restitution=0.8, contact_time=0.02)
STANDING = builds(md.Walls, restitution=just(0.9), contact_time=sampled_from((None, 0.02)))
WALLS = an(md.Walls, among(SHAKEN, STANDING, STANDING))


def standing(box: md.Box) -> md.Walls | None:
    """Walls, where a box has axes for them."""
    is_walled = any(not (periodic or out) for periodic, out in zip(box.periodic, box.open, strict=True))
    return md.Walls(contact_time=0.02) if is_walled else None


def optional_kinds(dim: int) -> dict[str, Kind]:
    """Kinds of arguments of a simulation that may be left out."""
    down = (0.0,) * (dim - 1) + (-1.0,)
    return {
        "search": SEARCH, "integrator": word(*INTEGRATORS), "reorder": maybe(an(md.Reorder, reorders())),
        "gravity": maybe(few(number(), (dim,), just(down))), "surroundings": few(an((), None), (0,), ()),
        "precision": word("float64", "float32"), "layout": maybe(word("soa", "aos", "aos4"), 0.8),
        "fused": flag(), "post_mortem": maybe(path("faults"), 0.7),
    }  # fmt: skip


def outcome(simulation: Callable[[], md.Simulation], steps: int, phases: bool = True) -> Any:
    """Positions, velocities, forces and pairs by id after some steps; or the fault that came.

    So does what is refused at the first step, such as a law too stiff for float32.
    """
    try:
        sim = simulation()
        sim.run(steps, phases=phases)
        found = sim.state.by_id()
        return found.pos, found.vel, sim.forces(), sim.pairs(), sim.time, sim.step
    except md.SimulationFault as fault:
        return fault
    except ValueError as refusal:
        if "allowed" not in str(refusal):
            raise
        return refusal


def failed(found: Any, plain: dict, steps: int) -> bool:
    """Whether a run ended with a fault, which in double precision the naive search has to end with too."""
    if isinstance(found, Exception) and plain.get("precision") != "float32":
        given = {k: v for k, v in plain.items() if k not in FREE} | {"search": "naive", "backend": "cpu"}
        right = outcome(lambda: md.Simulation(**given), steps)
        same_fault = type(found) is type(right) or md.ListOverflow in (type(found), type(right))
        require(
            isinstance(right, Exception) and same_fault,
            f"{found!r:.300} and by the naive search {right!r:.300}",
        )
    return isinstance(found, Exception)


def compare(found: Any, right: tuple, start: md.State, near: float, size: Any = 1.0) -> None:
    """Two runs give the same.

    Args:
        found: of `outcome`.
        right: of the reference.
        start: the particles.
        near: how near positions are, in lengths of the box.
        size: (n, n) distances at which two touch, by id.
    """
    speed, force = (1 + np.abs(right[k]).max(initial=0) for k in (1, 2))
    if not (speed < 1e3 and np.isfinite(right[2]).all()):
        return  # an explosion in the making, of which rounding decides
    require(near > 1e-6 or not start.box.outside(right[0]).any(), "no fault, but a particle has escaped")
    apart = start.box.nearest(found[0].astype(np.float64) - right[0])
    off = (np.abs(apart) <= near * max(start.box.lengths)).all()
    require(off, f"positions {found[0]}, and by all pairs {right[0]}")
    same(found[1] / speed, right[1] / speed, "velocities", near * 10)
    same(found[2] / force, right[2] / force, "forces", near * 100)
    odd = set(map(tuple, found[3].tolist())) ^ right[3]
    if near < 1e-6 or len(odd) > 1:
        order = np.sort(start.id)
        rows = np.searchsorted(order, np.array(sorted(odd), int).reshape(-1, 2)).T
        away = start.box.nearest(right[0][rows[0]] - right[0][rows[1]])
        over = np.abs(np.sqrt((away**2).sum(axis=1)) - np.broadcast_to(size, [len(order)] * 2)[tuple(rows)])
        require((over < near * 10 * max(start.box.lengths)).all(), f"pairs {odd} of one alone")
    same(found[4], right[4], "time", near)
    equal(found[5], right[5], "steps")


def made(draw) -> Cases:
    """A simulation that is made, and run."""
    start, law, saved = draw(states()), draw(sampled_from(LAWS)), draw(chance(0.3))
    steps, phases = draw(sampled_from(((6, True), (6, False), (40, False))))
    kinds = {
        "state": an(md.State, just(start)), "law": Kind(just(law)), "allow_overlap": flag().but(valid=True),
        "backend": either(on_cpu(), an(md.backend.Backend, just(md.backend.get("cpu")))),
        "dt": maybe(number(above=0, usual=(1e-4, 2e-3)), 0.0 if law.stiffness == 0 else 0.3),
        "walls": maybe(WALLS, 0.3 if standing(start.box) else 0.95),
    }  # fmt: skip
    optional = optional_kinds(start.box.dim)
    kinds |= {name: optional[name] for name in ("search", "fused", *draw(some(list(optional), 3)))}

    def check(sim, plain):
        require(type(sim.dt) is float, f"dt of class {type(sim.dt).__name__}")
        near = NEAR[plain.get("precision", "float64")]
        taken = steps if near < 1e-6 else 6  # more would enlarge the rounding of float32
        found = outcome(lambda: sim, taken, phases)
        if not failed(found, plain, taken):
            named = {name: plain[name] for name in ("integrator", "walls", "gravity") if name in plain}
            right = Gas(plain["state"], plain["law"], sim.dt, **named).outcome(taken)
            compare(found, right, start, near, apart(start.by_id())[1])
            if saved:
                saved_and_loaded(sim)

    return cases(md.Simulation, kinds, calm=0.6, check=check, always=kinds)


def saved_and_loaded(sim: md.Simulation) -> None:
    """What is saved can be loaded, and goes on with the same bits."""
    sim.save("made.npz")
    ends = [outcome(lambda one=one: one, 2) for one in (md.Simulation.load("made.npz"), sim)]
    if not isinstance(getattr(sim.config.reorder, "schedule", None), md.Decayed):  # which goes by times
        ends = [type(end) if isinstance(end, Exception) else contents(end) for end in ends]
        require(ends[0] == ends[1], "it goes on otherwise than what was saved")


@st.composite
def simulations(draw, start: md.State | None = None, **fixed: Any) -> md.Simulation:
    """One that works, a few steps on."""
    start = start or draw(states(usual=True))
    search = draw(sampled_from(("linked", "verlet", "lbvh", "naive", "verlet_tree")))
    precision = draw(sampled_from(("float64", "float64", "float32")))
    options = OPTIONS | {"search": search, "precision": precision, "walls": standing(start.box)}
    sim = md.Simulation(start, LAW, **options | fixed)
    sim.run(draw(sampled_from((0, 1, 3))))
    return sim


def due(interval: int, first: int, last: int) -> list[int]:
    """Steps at which a reporter looks."""
    steps = [k for k in range(first + 1, last + 1) if k % interval == 0]
    return [0, *steps] if first == 0 < last else steps


def runs(draw) -> Cases:
    """Steps taken."""
    sim = draw(simulations())
    first, reporter = sim.step, an(md.Observer, builds(md.Observer, integers(1, 5)))
    kinds = {"steps": integer(0, 2**62, (0, 6), most=200), "reporters": few(reporter, None)}
    kinds |= {"phases": flag(), "progress": flag()}

    def check(_, plain):
        equal(sim.step, first + plain["steps"], "at step")
        require(type(sim.step) is int, f"step of class {type(sim.step).__name__}")

    return cases(sim.run, kinds, check=check)


def pairs(draw) -> Cases:
    """Pairs within a distance."""
    sim = draw(simulations(precision="float64"))
    now = sim.state.by_id()
    most = 1.0 if now.radius is None else 2 * float(now.radius.max(initial=0)) or 1.0
    distances = maybe(number(above=0, high=most, usual=(0.1 * most, most)))
    away, size = apart(now)
    r = np.sqrt((away**2).sum(axis=2)) + np.diag([np.inf] * len(now))

    def check(found, plain):
        within = plain.get("distance") or size
        close = np.sort(now.id[np.argwhere(np.triu(r < within))], axis=1)
        equal(set(map(tuple, found.tolist())), set(map(tuple, close.tolist())), "pairs")

    return cases(sim.pairs, {"distance": distances}, check=check)


def check_frame(file: Path, state: md.State) -> None:
    """The last frame of a trajectory has the positions and velocities of the particles, by id."""
    with gsd.hoomd.open(str(file), "r") as read:
        one, box = read[-1].particles, state.box
    centred = one.position[:, : box.dim] + np.array(box.lengths) / 2
    scale = 1 + np.abs(state.pos).max(initial=0)
    same(box.nearest(centred - state.pos) / scale, np.zeros_like(state.pos), "positions", 1e-6)
    same(one.velocity[:, : box.dim], state.vel.astype(np.float32), "velocities")


def kept(draw) -> Cases:
    """Saved somewhere, over another file or not; or written to a trajectory."""
    sim, saves = draw(simulations()), draw(booleans())
    file = Path(f"{draw(sampled_from('abc'))}.npz" if saves else "run.gsd")
    Path("run.gsd").unlink(missing_ok=True)

    def check(_, plain):
        if saves:
            other = md.Simulation.load(plain["path"])
            require(same_bits(other.state, sim.state) and other.step == sim.step, "another state")
        elif Path(plain["path"]) == file:
            check_frame(file, sim.state.by_id())

    return cases(sim.save if saves else sim.write, {"path": path(just(file))}, check=check)


def loads(draw) -> Cases:
    """Loaded with other arguments than were saved."""
    sim, file = draw(simulations(draw(states(2, "p", True)))), Path("whole.npz")
    sim.save(file)
    every = {
        **{k: optional_kinds(2)[k] for k in ("search", "reorder", "gravity", "fused", "post_mortem")},
        "backend": maybe(on_cpu()), "law": Kind(sampled_from(LAWS)), "integrator": word("velocity_verlet"),
        "walls": maybe(WALLS, 0.9),
    }  # fmt: skip
    kinds = {"path": path(just(file))} | {name: every[name] for name in draw(some(list(every)))}

    def check(found, plain):
        if Path(plain["path"]) == file:  # else it is the file of another input
            same(np.sort(found.state.id), np.sort(sim.state.id), "ids")
            equal(found.step, sim.step, "at step")
            outcome(lambda: found, 2)

    return cases(md.Simulation.load, kinds, name="Simulation.load", check=check)


def prepare() -> None:
    """Have the kernels compiled, so that no input waits for them."""
    rng = np.random.default_rng(0)
    for name in md.search.SEARCHES:
        for precision in ("float64", "float32"):
            for dim in (2, 3):
                box = md.Box((7.0,) * dim)
                state = md.State(cloud(rng, box, 25), rng.normal(size=(25, dim)), box)
                sim = md.Simulation(state, LAW, search=name, precision=precision, **OPTIONS)
                sim.run(2)
                sim.pairs(), sim.forces(), md.observe.look(sim)


FAMILY = Family({made: 9, runs: 3, pairs: 2, kept: 2, loads: 3}, prepare)
