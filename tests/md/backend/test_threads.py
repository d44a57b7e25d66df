"""Kernels on two threads give the bits of one thread; other tests run on one.

Each parallel kernel runs for one set of argument types, since each takes a second or more to compile: 3D,
float64, one law, and no `pairs()`, for which a search is compiled once more. By default these are one of each
way to share work, and the others in the tier `full`. The nightly tier runs the combinations.
"""

import numpy as np
import pytest

import md
from md.domain.communicator import in_turn
from md.search import Coherent, Lbvh, Reflexive, Scattered
from tests.threaded_kernels import (
    assert_two_threads_end_with_the_bits_of_one,
    in_parallel_only,
    not_called_by,
)
from tests.tiers import by_default, full

pytestmark = pytest.mark.split  # work is cut for two threads in both runs
LAW = md.laws.SpringDashpot(stiffness=1e4, damping=5.0)
BOX = md.Box((48.0, 36.0), (False, True))
WALLS = md.ShakenWalls(contact_time=0.02, amplitude=0.1, frequency=3.0, axis=0)
SEARCHES = {name: name for name in md.search.SEARCHES} | {
    "each pair twice": Reflexive("hilbert", "none", met="twice", atomics="none"),
    "ropes": Reflexive(stack="none", data="shadow", rebuild_every=4),
    "lists": Reflexive(data="shadow", contacts="listed", room=2),
}
INTEGRATORS = {
    "velocity_verlet": {"walls": WALLS},
    "position_verlet": {"walls": WALLS},
    "adaptive_euler": {"walls": md.Walls(contact_time=0.02), "gravity": (-3.0, 0.0)},
    "steepest_descent": {"walls": md.Walls(contact_time=0.02)},
    "flight": {"law": md.laws.Boids(1.0, 0.8, 0.9), "walls": md.Walls(contact_time=0.02), "dt": 0.01},
}


@pytest.fixture(autouse=True)
def short_ranges_are_in_parts(monkeypatch):
    monkeypatch.setattr("sfc.compile.threads.MANY", 1)


def crowd(box: md.Box = BOX, n: int = 3000, seed: int = 0) -> md.State:
    """Make random particles that overlap, in random order."""
    generator = np.random.default_rng(seed)
    pos = generator.random((n, box.dim)) * box.lengths
    return md.State(pos, generator.normal(0, 3.0, pos.shape), box, id=generator.permutation(n))


def spheres() -> md.State:
    """Make spheres of random radii."""
    state, generator = crowd(md.Box((12.0, 11.0, 13.0)), n=1000), np.random.default_rng(1)
    return md.State(state.pos, state.vel, state.box, state.id, radius=generator.uniform(0.1, 1.0, 1000))


def advanced(state: md.State, steps: int = 12, law=LAW, **options) -> md.Simulation:
    options = {"dt": 1e-4, "allow_overlap": True, "backend": "cpu"} | options
    run = md.Simulation(state, law, **options)
    run.run(steps)
    return run


def end(run: md.Simulation) -> list[np.ndarray]:
    state = run.state
    return [state.pos, state.vel, state.id, run.forces(), run.pairs()]


def with_search(name: str):
    return lambda: end(advanced(crowd(md.Box((12.0, 11.0, 13.0))), search=SEARCHES[name]))


def with_integrator(name: str):
    return lambda: end(advanced(crowd(), search="coherent", integrator=name, **INTEGRATORS[name]))


def fused():
    options = {"fused": True, "precision": "float32", "walls": WALLS, "backend": md.backend.Cpu("aos4")}
    return end(advanced(crowd(), search="verlet", **options))


def with_friction():
    law = md.laws.FrictionalSpringDashpot(1e4, 5.0, friction=0.4, tangential_damping=60.0)
    return end(advanced(crowd(), law=law, search="linked", walls=WALLS))


def of_many_sizes(search: str):
    return lambda: end(advanced(spheres(), search=search))


def by_wrapping_laws():
    sized, run = advanced(spheres(), search="naive"), advanced(crowd(), search="naive")
    contacts = md.observe.look(run).contact_energy_per_particle
    return [sized.forces(), np.array([contacts]), md.observe.virial(run)]


def with_reorder(mode: str):
    reorder = md.Reorder("hilbert", md.Moved(0.001, interval=2), mode=mode)
    return lambda: end(advanced(crowd(), search="linked", reorder=reorder, walls=WALLS))


def round_a_wing(search):
    def work():
        wing = md.Wing(airfoil=md.naca("2412", 30), chord=20.0, at=(20.0, 20.0), angle=10, stiffness=2e4)
        tunnel = md.Box((60.0, 40.0), periodic=(True, False))
        start = md.preparation.wing_tunnel(0.2, tunnel, wing, (20.0, 0.0), 1.0, backend="cpu")
        boundaries = {
            "surroundings": [wing, md.Inflow(velocity=(20.0, 0.0), temperature=1.0)],
            "walls": md.Walls(contact_time=0.02),
        }
        run = advanced(start, 240, search=search, dt=4e-4, **boundaries)
        momentum = run.surroundings[0].momentum
        assert run.surroundings[1].renewed > 0
        assert np.abs(momentum).max() > 0
        return [*end(run), momentum, wing.distance(run.state.pos)]

    return work


def observed():
    balance = md.observe.EnergyBalance()
    run = md.Simulation(crowd(), LAW, backend="cpu", dt=1e-4, walls=WALLS, allow_overlap=True)
    run.run(12, reporters=[balance])
    look = md.observe.look(run, [md.observe.Profile(0, 20)])
    cells = md.observe.field(run, (8, 6))
    table = [np.asarray(column) for column in balance.table().values()]
    sums = [np.array([look.temperature, look.mean_speed]), look.momentum, look.profiles[0].temperature]
    return [*table, *sums, cells.pressure, cells.velocity]


def symmetric_forces() -> list[np.ndarray]:
    start = crowd(md.Box((12.0, 11.0, 13.0)))
    return [md.Simulation(start, LAW, search="reflexive", backend="cpu", dt=1e-4).forces()]


def cavity(strategy, order: str = "row"):
    def work():
        run = md.Cavity((19, 23), viscosity=0.02, sweeps=7, strategy=strategy, order=order, backend="cpu")
        run.run(12)
        return [run.u, run.v, run.p]

    return work


WORKS = {
    **{name: with_search(name) for name in SEARCHES},
    **{name: with_integrator(name) for name in INTEGRATORS},
    "symmetric forces": symmetric_forces,
    "fused": fused,
    "friction": with_friction,
    "wrapping laws": by_wrapping_laws,
    "sizes, a tree": of_many_sizes("lbvh"),
    "sizes, a grid": of_many_sizes("linked"),
    **{f"reorder {mode}": with_reorder(mode) for mode in ("data", "threads", "shadow")},
    "a wing, every particle": round_a_wing("linked"),
    "a wing, through the tree": round_a_wing(Lbvh(rebuild_every=5)),
    "observables": observed,
    "cavity, rows": cavity("threads"),
    "cavity, tables": cavity("threads", "hilbert"),
    "cavity, several sweeps a pass": cavity(md.cavity.strategies.Blocked(3)),
}
SPACE = md.Box((48.0, 44.0, 52.0), (False, True, True))


def once(n: int = 1000, **options):
    """Return a work that takes a few steps in 3D."""

    def work():
        state = crowd(SPACE, n)
        run = advanced(state, **{"search": "linked", "walls": WALLS} | options)
        end = run.state
        return [end.pos, end.vel, end.id, run.forces()]

    return work


def many_levels(**options):
    """Return the work of `once` with a tree of more levels than so few particles have."""

    def work():
        with pytest.MonkeyPatch.context() as patch:
            patch.setattr("md.search.bvh.wide_boxes.WIDEST", 4)
            return once(**options)()

    return work


def listed_pairs():
    return [advanced(crowd(SPACE, 1000), search="verlet", walls=WALLS).pairs()]


def in_flight():
    boids = md.laws.Boids(1.0, 0.8, 0.9)
    walls = md.Walls(contact_time=0.02)
    return once(law=boids, search="coherent", integrator="flight", walls=walls, dt=0.01)()


def through_a_wing(search):
    """Return a work of a few steps in which the wing pushes discs that are in it."""

    def work():
        wing = md.Wing(airfoil=md.naca("2412", 30), chord=20.0, at=(20.0, 20.0), angle=10, stiffness=2e4)
        run = advanced(crowd(), search=search, surroundings=[wing])
        momentum = run.surroundings[0].momentum
        assert np.abs(momentum).max() > 0
        return [run.state.pos, momentum, wing.distance(run.state.pos)]

    return work


def looked_at():
    balance = md.observe.EnergyBalance()
    run = md.Simulation(crowd(SPACE), LAW, backend="cpu", dt=1e-4, walls=WALLS, allow_overlap=True)
    run.run(2, reporters=[balance])
    look = md.observe.look(run, [md.observe.Profile(0, 20)])
    table = [np.asarray(column) for column in balance.table().values()]
    return [*table, np.array([look.temperature, look.mean_speed]), look.profiles[0].temperature]


def two_ranks(search, filling_fraction=0.2):
    def at_once():
        def work(ranks):
            gas = md.scenes.benchmark_gas(3000, filling_fraction)
            law = md.scenes.BENCHMARK_LAW
            run = md.Simulation(gas, law, search=search, backend="cpu", communicator=ranks)
            run.run(3)
            return run.state

        end = in_turn(2, work)[0]
        return [end.pos, end.vel, end.id]

    return at_once


def benchmark_gas():
    gas = md.scenes.benchmark_gas(3000, 0.2)
    return [gas.pos, gas.vel]


ONCE = {
    "naive": once(search="naive"),
    "tiles": once(search="tiles"),
    "lists": once(search="verlet"),
    "fused lists": once(search="verlet", fused=True),
    "fused lists of a tree": many_levels(search="verlet_tree", fused=True),
    "pairs of lists": listed_pairs,
    "wide tree": many_levels(search="wide_bvh"),
    "scattered": once(search="scattered"),
    "coherent": once(search="coherent"),
    "binary tree": once(search="lbvh"),
    "rows of cells": once(search=Coherent(division=2)),
    "rows of cells, scattered": once(search=Scattered(division=2)),
    "each pair twice": once(search=SEARCHES["each pair twice"]),
    "symmetric forces": once(search="reflexive"),
    "ropes": once(search=SEARCHES["ropes"]),
    "contact lists": once(search=SEARCHES["lists"]),
    "position_verlet": once(integrator="position_verlet"),
    **{
        name: in_parallel_only(stem, once(integrator=name, walls=md.Walls(contact_time=0.02)))
        for name, stem in (
            ("adaptive_euler", "md.integrate.euler"),
            ("steepest_descent", "md.integrate.descent"),
        )
    },
    "flight": in_parallel_only("md.integrate.flight", in_flight),
    "reorder": once(reorder=md.Reorder("hilbert", md.Moved(0.001, interval=2), mode="threads")),
    "a wing, every particle": in_parallel_only("md.boundaries.wing", through_a_wing("linked")),
    "a wing, through the tree": in_parallel_only("md.boundaries.wing", through_a_wing("lbvh")),
    "observables": in_parallel_only("md.observe", looked_at),  # functions that call kernels in parts
    "benchmark gas": benchmark_gas,
    "two ranks": two_ranks("verlet"),
    "two ranks, of a dilute gas": two_ranks("linked", 0.05),
    **{name: work for name, work in WORKS.items() if name.startswith("cavity")},
}
BY_DEFAULT = (
    "lists", "scattered", "coherent", "wide tree", "each pair twice", "position_verlet", "adaptive_euler",
    "flight", "reorder", "a wing, through the tree", "observables", "benchmark gas", "cavity, tables",
)  # fmt: skip


@pytest.mark.parametrize("work", by_default(ONCE, lambda name: name in BY_DEFAULT, full))
def test_each_parallel_kernel_gives_the_bits_of_one_thread(work):
    assert_two_threads_end_with_the_bits_of_one(ONCE[work])


def test_every_parallel_kernel_is_called():
    assert not_called_by(ONCE.values(), "md") == set()


@pytest.mark.nightly
@pytest.mark.parametrize("work", WORKS)
def test_two_threads_end_with_the_bits_of_one(work):
    assert_two_threads_end_with_the_bits_of_one(WORKS[work])
