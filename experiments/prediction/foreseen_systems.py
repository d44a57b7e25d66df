"""Particles of a forecast in each memory order, as simulations on the CPU or on a device.

What is foreseen from a simulation on the CPU is measured on the same one on a device: the particles are made
by the same functions with the same seed. Positions differ between the two, their statistics do not.

A launch is counted or timed `TAKEN` steps after the particles were made: those on the CPU have taken them
too, and are in the memory order of before. A flock is out of order after a few steps. Searches that sort by
themselves do so at the later positions here, and on a device `verlet` and `wide_bvh` at those of the start:
spheres hardly move in these steps.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from typing import Any

import numpy as np

import md
from experiments.prediction.drawn_gases import Gas
from experiments.prediction.memory_orders import Aged, Order, order_of, slots
from experiments.results.baselines import SHUFFLED
from md.particles.cell_grid import CellGrid
from md.search import Coherent, Verlet, WideBvh

CELL_ORDERED = {"coherent": Coherent, "verlet": Verlet, "wide_bvh": WideBvh}  # sort particles by cell or key
BOIDS = "boids"
FLIGHT_DT = 0.2
TAKEN = 3  # steps before a launch that is foreseen


def simulations(gas: Gas, backend: str, seed: int) -> Iterator[tuple[str, md.Simulation]]:
    """Make the simulations of a gas, one for each memory order, of fused steps.

    Args:
        gas: of a kernel of particles.
        backend: "cpu", with the particles `TAKEN` steps later, or "cuda".
        seed: of the particles and of what is shuffled.
    """
    sorts = gas.kernel in CELL_ORDERED
    orders = {name: Order(SHUFFLED) if sorts else order_of(name) for name in gas.orderings}
    states = states_of(gas, {order.steps for order in orders.values()}, backend, seed)
    law = md.laws.Boids() if gas.kernel == BOIDS else md.scenes.BENCHMARK_LAW
    flies = (
        {"integrator": "flight", "dt": FLIGHT_DT} if gas.kernel == BOIDS else {"dt": md.scenes.BENCHMARK_DT}
    )
    common: dict[str, Any] = {"precision": gas.precision, "backend": backend, "fused": True} | flies
    if backend == "cpu":
        states = {count: (start, moved(now, law, common)) for count, (start, now) in states.items()}
    for name, order in orders.items():
        search: Any = "linked" if gas.kernel == BOIDS else gas.kernel
        start, now = states[order.steps]
        if sorts:
            search = sorting(gas.kernel, name, backend)
        grid = CellGrid(start.box, law.cutoff, np.dtype(gas.precision), md.backend.get("cpu"))
        state = now.take(slots(order, start.pos, start.id, grid, seed))
        yield name, md.Simulation(state, law, search=search, **common)


def sorting(kernel: str, name: str, backend: str) -> Any:
    """Make the configuration of a search that sorts its particles, or of lists over shuffled memory.

    Args:
        kernel: name of the search.
        name: order of its cells; "shuffled" for verlet without a sort, which the CPU does not have: there it
            is verlet, of which the loads are those of the memory as it is.
        backend: "cpu" or "cuda".
    """
    if name != SHUFFLED:
        return CELL_ORDERED[kernel](cell_order=name)
    return Verlet() if backend == "cpu" else Verlet(sorts=False)


def moved(state: md.State, law: md.laws.PairLaw, common: Mapping[str, Any], steps: int = TAKEN) -> md.State:
    """Return particles some steps later, in the same memory order; every search gives the same.

    Args:
        state: the particles.
        law: between them.
        common: other arguments of the simulation.
        steps: number of them.
    """
    simulation = md.Simulation(state, law, search="linked", **common)
    simulation.run(steps, phases=False)
    return simulation.state


def states_of(gas: Gas, steps: set[int], backend: str, seed: int) -> dict[int, tuple[md.State, md.State]]:
    """Return the particles of a gas at the start and after each number of steps.

    Args:
        gas: of a kernel of particles.
        steps: numbers of them.
        backend: "cpu" or "cuda", on which the particles are made.
        seed: of the particles.

    Returns:
        For each number, and 0, the particles at the start and now.
    """
    if gas.kernel == BOIDS:
        flock = md.scenes.flock(gas.n, seed=seed)
        return {0: (flock, flock)}
    box = md.scenes.box_for(gas.n, gas.filling_fraction)
    copies = md.preparation.copies_for(gas.n)
    fresh = md.preparation.tiled_gas(gas.filling_fraction, box, copies, seed=seed, backend=backend)
    found = {0: (fresh, fresh)}
    if steps - {0}:
        aged = Aged(gas.n, gas.filling_fraction, backend, seed).after(sorted(steps))
        found |= {count: (aged[0], aged[count]) for count in steps - {0}}
    return found
