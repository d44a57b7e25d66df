"""What is seen of simulations: sums, profiles, fields, energies, and reporters of a run."""

from __future__ import annotations

import functools
from collections.abc import Callable
from typing import Any

import numpy as np
from hypothesis import strategies as st
from hypothesis.strategies import builds, integers, just, sampled_from

import md
from tests.fuzz.drawing import among, narrow
from tests.fuzz.families import Family
from tests.fuzz.families.simulations import LAW, due, prepare, simulations
from tests.fuzz.judge import Cases, again, cases, same
from tests.fuzz.kinds import Kind, an, array, either, few, integer, of
from tests.md.gas_reference import Gas, in_cells, profile

BINS = sampled_from((1, 3, 20, 100, 200))


def profiles(dim: int) -> Kind:
    """A profile, its numbers of any width."""
    axis = integers(0, dim - 1)
    usual = builds(md.Profile, axis, BINS)
    narrowed = builds(md.Profile, axis.flatmap(narrow), BINS.flatmap(narrow))
    return an(md.Profile, among(usual, usual, narrowed))


def cells_of(dim: int, call: Callable) -> Kind:
    """Cells along each axis, few or far too many, of any width; or a number for all."""
    counts = sampled_from((1, 2, 3, 20))
    usual, narrowed = (st.tuples(*[of] * dim) for of in (counts, counts.flatmap(narrow)))
    many = among(np.full(dim, 2**22), np.full(dim, 2048, np.int32), (2**40,) * dim)
    local = call in (md.observe.field, md.observe.Fields)
    one = integer(1, usual=(1, 4), most=40) if local else integer(1, 1000, (1, 4))
    return either(one, few(integer(1), (dim,), among(*[usual] * 15, *[narrowed] * 4, many), 10**5, 2**24))


def looks(draw) -> Cases:
    """Sums, profiles, means in cells, or virials of each particle."""
    sim = draw(simulations())
    dim = sim.state.box.dim
    call = draw(sampled_from((md.observe.look, md.observe.field, md.observe.virial)))
    table = {"simulation": an(md.Simulation, just(sim)), "profiles": few(profiles(dim), None)}
    table["cells"] = cells_of(dim, call)

    def check(found, plain):
        again(call)(found, plain)
        if call is md.observe.look:
            check_look(found, **plain)
        elif call is md.observe.field:
            cells = np.broadcast_to(plain["cells"], dim)
            held = [len(rows) for rows in in_cells(sim.state, tuple(cells)).values()]
            same(found.particles, np.reshape(held, cells), "particles in cells")

    return cases(call, of(call, table), calm=0.6, check=check)


def check_look(found: md.Observation, simulation: md.Simulation, profiles: Any = (), cells: Any = 1) -> None:
    """Sums over all particles, and profiles of those in the box, are those of numpy."""
    state, begun = simulation.state, found.contacts_begun if simulation.step else None
    near = 1e-9 if state.pos.dtype == np.float64 else 1e-3
    cells = tuple(np.broadcast_to(cells, state.box.dim).tolist())
    for name, right in Gas(state, LAW, simulation.dt).looked_at(begun, cells).items():
        if name != "touching_pairs" or near < 1e-6:  # else rounding may decide whether two touch
            scale = 1 + np.abs(np.nan_to_num(right, posinf=0)).max()
            same(np.asarray(getattr(found, name)) / scale, right / scale, name, near)
    for one, seen in zip(
        [profiles] if isinstance(profiles, md.Profile) else profiles, found.profiles, strict=True
    ):
        for name, right in profile(state, one.axis, one.bins).items():
            same(getattr(seen, name), right, f"{name} of a profile", near)


def energies(draw) -> Cases:
    """Energies of contacts."""
    sim = draw(simulations())
    kinds = {"state": an(md.State, just(sim.state)), "pairs": array(sim.pairs(), "iu", (None, 2))}
    return cases(md.observe.contact_energy, kinds | {"law": Kind(LAW)})


def reports(draw) -> Cases:
    """A reporter's parameters are those that a run goes by."""
    sim, steps = draw(simulations()), draw(integers(1, 12))
    kind = draw(sampled_from((md.Observer, md.observe.Fields, md.observe.EnergyBalance)))
    dim, last = sim.state.box.dim, {}
    one = profiles(dim)
    table = {"interval": integer(usual=(1, 4)), "profiles": either(one, few(one, None))}
    table["cells"] = cells_of(dim, kind)

    @functools.wraps(kind)
    def call(**given: Any) -> list[int]:
        reporter = last["reporter"] = kind(**given)
        first = sim.step
        sim.run(steps, reporters=[reporter])
        return due(reporter.interval, first, sim.step)

    def check(steps, plain):
        reporter = last["reporter"]
        if kind is not md.observe.Fields:
            same(reporter.table().get("step", []), steps, "steps looked at")
        elif steps:
            same(reporter.mean().particles.shape, np.broadcast_to(plain["cells"], dim), "cells")
        if kind is md.Observer:
            reporter.profile_table()
            if steps[-1:] == [sim.step]:
                check_look(reporter.observations[-1], sim, plain.get("profiles", ()), plain.get("cells", 1))

    return cases(call, of(kind, table), name=f"a run with {kind.__name__}", check=check, always=("interval",))


FAMILY = Family({looks: 3, energies: 1, reports: 2}, prepare)
