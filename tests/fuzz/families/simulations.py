"""Simulations: made, run, saved and loaded; beside the naive search in double precision."""

from __future__ import annotations

import math
from collections.abc import Callable
from pathlib import Path
from typing import Any

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
from tests.md.simulation.test_simulation import same_bits

LAW = md.laws.SpringDashpot(stiffness=1e3, damping=2.0)
FRICTION = md.laws.FrictionalSpringDashpot(1e3, 1.0, friction=0.3, tangential_damping=2.0)
LAWS = LAW, LAW, md.laws.SpringDashpot(1e4, 0.0), md.laws.SpringDashpot(0.0, 0.0), FRICTION
INTEGRATORS = ("velocity_verlet", "velocity_verlet", "position_verlet", "adaptive_euler", "steepest_descent")
NEAR = {"float64": 1e-8, "float32": 2e-3}
STEPS = 6
OPTIONS = {"dt": 1e-3, "backend": "cpu", "allow_overlap": True}
# What a run gives may not depend on these.
FREE = ("search", "reorder", "layout", "post_mortem", "precision", "backend", "fused")


@st.composite
def states(draw, dim: int | None = None, kinds: str = "ppw", usual: bool = False) -> md.State:
    """Particles that move slowly in a box of 4 to 10 diameters; some have radii.

    Args:
        draw: of Hypothesis.
        dim: 2 or 3; None for either.
        kinds: of the sides of the box.
        usual: whether no box or radius is very large or small, and no particle fast.
    """
    within, rng, n = draw(boxes(dim, kinds, 4.0)), draw(RNG), draw(sampled_from((0, 1, 2, 12, 25, 25, 25)))
    pos = 0.5 + cloud(rng, within, n) * (1 - 1 / np.array(within.lengths))
    if not usual and draw(chance(0.03)):
        within = md.Box((draw(sampled_from((1e5, 1e8 + 0.5, 1e15 + 0.5, 1e-3))),) * within.dim)
        pos = cloud(rng, within, n)
    mean = draw(sampled_from((*[0.5, 0.3, 0.6, 0.4] * 10, 0.4 if usual else 1e-9)))
    radius = np.maximum(mean * (0.5 + rng.random(n)), 1e-9) if n and draw(chance(0.15)) else None
    fast = 1 if usual else draw(sampled_from((1, 1, 60)))  # they outrun their lists
    vel = rng.normal(size=pos.shape) * fast
    if draw(chance(0.2)):
        pos, vel = pos.astype(np.float32), vel.astype(np.float32)
        pos = np.where(pos >= np.array(within.lengths, np.float32), 0, pos)
    return md.State(pos, vel, within, rng.permutation(3 * n + 1)[:n], radius)


s = md.search
SEARCHES = among(
    *[sampled_from(tuple(s.SEARCHES))] * 2,
    builds(s.Verlet, skin=sampled_from((0.0, 0.1, 0.4, None))),
    builds(s.Coherent, sampled_from(("hilbert", "morton", "row", "random"))),
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


def optional_kinds(dim: int) -> dict[str, Kind]:
    """Kinds of arguments of a simulation that may be left out."""
    down = (0.0,) * (dim - 1) + (-1.0,)
    return {
        "search": SEARCH, "integrator": word(*INTEGRATORS), "reorder": maybe(an(md.Reorder, reorders())),
        "gravity": maybe(few(number(), (dim,), just(down))), "surroundings": few(an((), None), (0,), ()),
        "precision": word("float64", "float32"), "layout": maybe(word("soa", "aos", "aos4"), 0.8),
        "fused": flag(), "post_mortem": maybe(path("faults"), 0.7),
    }  # fmt: skip


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


def both(found: Any, right: Any, strictly: bool) -> bool:
    """Whether one of two runs, or both, ended with a fault; in double precision it has to be the same."""
    faults = isinstance(found, Exception), isinstance(right, Exception)
    if any(faults) and strictly:
        require(all(faults), f"{found!r:.300} and by the naive search {right!r:.300}")
        agree = type(found) is type(right) or md.ListOverflow in (type(found), type(right))
        require(agree, f"{type(found)}, and {type(right)} by the naive search")
    return any(faults)


def by_naive(plain: dict) -> md.Simulation:
    """The same simulation in double precision by the naive search."""
    given = {k: v for k, v in plain.items() if k not in FREE}
    return md.Simulation(**given | {"search": "naive", "backend": "cpu"})


def compare(found: Any, right: Any, start: md.State, near: float) -> None:
    """Two runs give the same, or end with the same fault."""
    if both(found, right, near < 1e-6):
        return
    speed, force = (1 + np.abs(right[k]).max(initial=0) for k in (1, 2))
    if speed > 1e3 or not np.isfinite(right[2]).all():
        return  # an explosion in the making, of which rounding decides
    apart = start.box.nearest(found[0].astype(np.float64) - right[0])
    off = (np.abs(apart) <= near * max(start.box.lengths)).all()
    require(off, f"positions {found[0]}, and by the naive search {right[0]}")
    same(found[1] / speed, right[1] / speed, "velocities", near * 10)
    same(found[2] / force, right[2] / force, "forces", near * 100)
    ours, theirs = (set(map(tuple, pairs.tolist())) for pairs in (found[3], right[3]))
    if near < 1e-6 or len(ours ^ theirs) > 1:
        odd = [pair for pair in ours ^ theirs if not grazes(pair, right, start, near)]
        require(not odd, f"pairs {odd} of one search alone")
    same(found[4], right[4], "time", near)
    equal(found[5], right[5], "steps")


def grazes(pair: tuple[int, int], right: Any, start: md.State, near: float) -> bool:
    """Whether a pair touches, or not, by less than rounding."""
    order = np.argsort(start.id)
    i, j = np.searchsorted(start.id[order], pair)
    apart = start.box.nearest((right[0][i] - right[0][j])[None])[0]
    size = 1.0 if start.radius is None else float(start.radius[order[i]] + start.radius[order[j]])
    return abs(math.sqrt(float((apart**2).sum())) - size) < near * 10 * max(start.box.lengths)


def made(draw) -> Cases:
    """A simulation that is made, and run."""
    start, law, saved = draw(states()), draw(sampled_from(LAWS)), draw(chance(0.3))
    kinds = {
        "state": an(md.State, just(start)), "law": Kind(just(law)), "allow_overlap": flag().but(valid=True),
        "backend": either(on_cpu(), an(md.backend.Backend, just(md.backend.get("cpu")))),
        "dt": maybe(number(above=0, usual=(1e-4, 2e-3)), 0.0 if law.stiffness == 0 else 0.3),
        "walls": maybe(WALLS, 0.3 if not all(start.box.periodic) else 0.95),
    }  # fmt: skip
    optional = optional_kinds(start.box.dim)
    kinds |= {name: optional[name] for name in draw(some(list(optional), 5))}

    def check(sim, plain):
        require(type(sim.dt) is float, f"dt of class {type(sim.dt).__name__}")
        found = outcome(lambda: sim, STEPS)
        compare(
            found,
            outcome(lambda: by_naive(plain), STEPS),
            plain["state"],
            NEAR[plain.get("precision", "float64")],
        )
        if not isinstance(found, Exception) and saved:
            saved_and_loaded(sim)

    return cases(md.Simulation, kinds, check=check, always=kinds)


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
    start = start or draw(states(kinds="p", usual=True))
    search = draw(sampled_from(("linked", "verlet", "lbvh", "naive", "verlet_tree")))
    precision = draw(sampled_from(("float64", "float64", "float32")))
    sim = md.Simulation(start, LAW, **OPTIONS | {"search": search, "precision": precision} | fixed)
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
        for observer in plain.get("reporters", ()):
            steps = [seen.step for seen in observer.observations]
            equal(steps, due(observer.interval, first, sim.step), "looked at")

    return cases(sim.run, kinds, check=check)


def pairs(draw) -> Cases:
    """Pairs within a distance."""
    sim = draw(simulations(precision="float64"))
    now = sim.state.by_id()
    most = 1.0 if now.radius is None else 2 * float(now.radius.max(initial=0)) or 1.0
    distances = maybe(number(above=0, high=most, usual=(0.1 * most, most)))
    return cases(sim.pairs, {"distance": distances})


def kept(draw) -> Cases:
    """Saved somewhere, over another file or not; or written to a trajectory."""
    sim, saves = draw(simulations()), draw(booleans())
    file = Path(f"{draw(sampled_from('abc'))}.npz" if saves else "run.gsd")
    Path("run.gsd").unlink(missing_ok=True)

    def check(_, plain):
        if saves:
            other = md.Simulation.load(plain["path"])
            require(same_bits(other.state, sim.state) and other.step == sim.step, "another state")

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
