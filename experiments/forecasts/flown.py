"""Gases in a memory order that ages: its age is the path that spheres have flown since they were sorted.

- cube: elastic spheres in a periodic cube, at one temperature.
- box: the shaken box of [thesis], 10 d high, with contacts of 2e-4 s (`experiments.measurement.shaken_box`).

On a CPU a small gas flies, and is repeated; on a device the whole gas does.
"""

from __future__ import annotations

import math
from collections.abc import Iterator, Sequence
from typing import Any, NamedTuple

import numpy as np

import md
from experiments.measurement.shaken_box import STEPS_A_CONTACT, WALLS, box_simulation, steps_a_shake
from experiments.prediction.memory_orders import LEAST_COPY, Order, repeated, slots
from md.laws import SpringDashpot
from md.particles.cell_grid import CellGrid
from md.reorder import Never

CUBE, BOX = "cube", "box"
SCENES = (CUBE, BOX)
HEIGHT, SIDE = 10.0, 64.0  # of the box, in d; and the least side of a copy
CONTACT_TIME = 2e-4  # in the box, in s
SHAKES = 2  # of the box before it is sorted
LAW = SpringDashpot(md.scenes.BENCHMARK_LAW.stiffness, 0.0)  # of the cube
DT = {CUBE: md.scenes.BENCHMARK_DT, BOX: CONTACT_TIME / STEPS_A_CONTACT}  # of a step
FARTHEST = 0.45  # of the side of a copy, which spheres move at most; from 0.5 on they seem near again
PIECE = 500  # steps after which the speed of spheres in the box is read again


class Flown(NamedTuple):
    """A gas that was sorted some time ago.

    Attributes:
        path: mean path of its spheres since then, in d.
        steps: taken since then.
        start: its particles then, by id.
        now: its particles, by id.
    """

    path: float
    steps: int
    start: md.State
    now: md.State


def copies_of(scene: str, n: int, filling_fraction: float) -> tuple[int, tuple[int, ...], float]:
    """Choose the copies of a gas that is repeated.

    Args:
        scene: cube or box.
        n: number of spheres; in a box about as many.
        filling_fraction: of the box.

    Returns:
        Number of spheres of a copy, copies along each axis, and the side of a copy in d.

    Raises:
        TypeError: a number of spheres that is no integer, or a filling fraction that is no number.
        ValueError: no sphere, or a filling fraction that is not above 0.
    """
    if scene == CUBE:
        copies = md.preparation.copies_for(n, least=LEAST_COPY)
        side = md.scenes.box_for(n, filling_fraction).lengths[0] / copies
        return n // copies**3, (copies,) * 3, side
    side = math.sqrt(n * math.pi / 6 / (filling_fraction * HEIGHT))
    copies = max(1, int(side / SIDE))
    return n // copies**2, (copies, copies, 1), side / copies


def gas_of(scene: str, side: float, filling_fraction: float, seed: int, backend: str) -> md.State:
    """Make a gas, by id: a cube, or a box that was shaken some times.

    Args:
        scene: cube or box.
        side: of the cube, or of the box along its walls, in d.
        filling_fraction: of the box.
        seed: of the particles.
        backend: on which they are made.

    Returns:
        Positions in d and velocities in d / time unit, of seconds in the box; in float64.

    Raises:
        TypeError: an argument of another class.
        ValueError: a filling fraction that cannot be packed, or another value outside its range.
    """
    if scene == CUBE:
        box = md.Box((side,) * 3)
        n = round(filling_fraction * side**3 * 6 / math.pi)
        copies = md.preparation.copies_for(n)
        return md.preparation.tiled_gas(filling_fraction, box, copies, seed=seed, backend=backend)
    heat = (0.2 * WALLS.speed) ** 2
    state = md.preparation.shaken_box(
        filling_fraction, (side, side, HEIGHT), temperature=heat, seed=seed, backend=backend
    )
    simulation = flying(scene, state, "verlet", "float32", backend)
    simulation.run(SHAKES * steps_a_shake(CONTACT_TIME), phases=False)
    return simulation.state.by_id()


def flying(
    scene: str, state: md.State, search: Any, precision: str, backend: str, ordering: str | None = None
) -> md.Simulation:
    """Make a simulation of a gas, of fused steps.

    Args:
        scene: cube or box.
        state: the gas, from `gas_of`.
        search: of neighbours.
        precision: of positions, velocities and forces.
        backend: on which it runs.
        ordering: by which `reorder` sorts it; None for none.

    Returns:
        The simulation, of which no step sorts the gas by itself.

    Raises:
        TypeError: an argument of another class.
        ValueError: an unknown search, precision or ordering, or a box that is too small for the search.
    """
    options: dict[str, Any] = {"search": search, "fused": True, "precision": precision, "backend": backend}
    options["allow_overlap"] = True
    options["reorder"] = None if ordering is None else md.Reorder(ordering, Never())
    if scene == BOX:
        return box_simulation(state, CONTACT_TIME, **options)
    return md.Simulation(state, LAW, dt=DT[CUBE], **options)


def fly(scene: str, simulations: Sequence[md.Simulation], path: float) -> tuple[float, int]:
    """Take steps until the spheres have flown a path.

    Args:
        scene: cube, in which the speed does not change, or box.
        simulations: of the same gas; all take the same steps.
        path: mean path of a sphere of the first one, in d.

    Returns:
        The path that they have flown, at least that, and the number of steps.
    """
    first, flown, taken = simulations[0], 0.0, 0
    while flown < path:
        each = speed(first) * DT[scene]
        steps = math.ceil((path - flown) / each)
        steps = min(steps, PIECE) if scene == BOX else steps
        for one in simulations:
            one.run(steps, phases=False)
        flown, taken = flown + steps * each, taken + steps
    return flown, taken


def speed(simulation: md.Simulation) -> float:
    """Return the mean speed of the spheres, in d / time unit."""
    view = simulation.device_view()  # its velocities alone come to the host
    vel = view.backend.download(view.vel)
    return float(np.sqrt(np.einsum("ij,ij->i", vel, vel)).mean(dtype=np.float64))


def aged_gases(
    scene: str, n: int, filling_fraction: float, paths: Sequence[float], seed: int
) -> Iterator[Flown]:
    """Make a gas on the CPU of copies of a small one, after each of some paths.

    Args:
        scene: cube or box.
        n: number of spheres; in a box about as many.
        filling_fraction: of the box.
        paths: in d, in ascending order.
        seed: of the small gas.

    Returns:
        The gas after each path, or up to a step more.

    Raises:
        TypeError: an argument of another class.
        ValueError: a filling fraction that cannot be packed, or another value outside its range; or a path
            after which a sphere has moved by more than `FARTHEST` of the side of a copy that is repeated.
    """
    _, copies, side = copies_of(scene, n, filling_fraction)
    small = gas_of(scene, side, filling_fraction, seed, "cpu")
    simulation = flying(scene, small, "verlet", "float32", "cpu")
    start, flown, taken = repeated(small, copies, small), 0.0, 0
    for path in paths:
        more, steps = fly(scene, [simulation], path - flown)
        flown, taken = flown + more, taken + steps
        now = simulation.state.by_id()
        _require_near(small, now, copies, path)
        yield Flown(flown, taken, start, repeated(now, copies, small))


def _require_near(start: md.State, now: md.State, copies: Sequence[int], path: float) -> None:
    """Check that no sphere has moved by about half a side of its copy, along axes with several copies."""
    sides = np.array(start.box.lengths)
    moved = np.abs(start.box.nearest(now.pos - start.pos)) / sides
    farthest = float(moved[:, np.array(copies) > 1].max(initial=0.0))
    if farthest > FARTHEST:
        raise ValueError(
            f"path {path:g} d in copies of side {sides[0]:.1f} d: a sphere has moved by {farthest:.0%} of "
            f"it; allowed: up to {FARTHEST:.0%}, so that the copy in which it began is known; take shorter "
            "paths, or a number of spheres with one copy or larger ones"
        )


def in_order(scene: str, gas: Flown, ordering: str, search: str, precision: str, seed: int) -> md.Simulation:
    """Put an aged gas in the memory order of its start, as a simulation on the CPU.

    Args:
        scene: cube or box.
        gas: from `aged_gases`.
        ordering: of the cells of the search, or "shuffled".
        search: linked or scattered.
        precision: of positions, velocities and forces.
        seed: of what is shuffled.

    Returns:
        The simulation, with each particle's id at its slot.

    Raises:
        TypeError: an argument of another class.
        ValueError: an unknown ordering, search or precision.
    """
    cutoff = 1.0  # d of two spheres that touch
    grid = CellGrid(gas.start.box, cutoff, np.dtype(precision), md.backend.get("cpu"))
    ids = np.arange(len(gas.now))
    state = gas.now.take(slots(Order(ordering), gas.start.pos, ids, grid, seed))
    return flying(scene, state, search, precision, "cpu")
