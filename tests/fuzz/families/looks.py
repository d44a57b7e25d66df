"""What is seen of simulations: sums, profiles, fields, energies, and reporters of a run."""

from __future__ import annotations

import functools
from typing import Any

import numpy as np
from hypothesis import strategies as st
from hypothesis.strategies import builds, integers, just, sampled_from

import md
from tests.fuzz.drawing import among, narrow
from tests.fuzz.families import Family
from tests.fuzz.families.simulations import LAW, due, prepare, simulations
from tests.fuzz.judge import Cases, cases, equal, require, same
from tests.fuzz.kinds import Kind, an, array, either, few, integer, of
from tests.md.observe.test_observation import plain as plain_sums
from tests.md.observe.test_profile import plain_profile

BINS = sampled_from((1, 3, 20, 100, 200))


def profiles(dim: int) -> Kind:
    """A profile, its numbers of any width."""
    axis = integers(0, dim - 1)
    usual = builds(md.Profile, axis, BINS)
    narrowed = builds(md.Profile, axis.flatmap(narrow), BINS.flatmap(narrow))
    return an(md.Profile, among(usual, usual, narrowed))


def cells_of(dim: int) -> Kind:
    """Cells along each axis, few or far too many, of any width."""
    counts = sampled_from((1, 2, 3, 20))
    usual, narrowed = (st.tuples(*[of] * dim) for of in (counts, counts.flatmap(narrow)))
    many = among(np.full(dim, 2**22), np.full(dim, 2048, np.int32), (2**40,) * dim)
    return few(integer(1), (dim,), among(*[usual] * 15, *[narrowed] * 4, many), 10**5, 2**24)


def looks(draw) -> Cases:
    """Sums and profiles."""
    sim = draw(simulations())
    now, dim = sim.state, sim.state.box.dim

    def check(found, plain):
        for name, right in plain_sums(now, LAW).items() if len(now) and now.radius is None else ():
            same(getattr(found, name), right, name, 1e-4)
        for profile, seen in zip(plain.get("profiles", ()), found.profiles, strict=True):
            right = plain_profile(now, profile.axis, profile.bins)["particles"]
            require(abs(seen.particles - right).sum() <= 2, f"{seen.particles}, and by the reference {right}")
            equal(seen.particles.sum(), len(now), "particles in slices")

    kinds = {"simulation": an(md.Simulation, just(sim)), "profiles": few(profiles(dim), None)}
    kinds["cells"] = either(integer(1, 1000, (1, 4)), cells_of(dim))
    return cases(md.observe.look, kinds, check=check)


def fields(draw) -> Cases:
    """Means in cells, or virials of each particle."""
    sim = draw(simulations())
    dim, n = sim.state.box.dim, len(sim.state)

    def check(found, plain):
        if "cells" in plain:
            same(found.particles.shape, np.broadcast_to(plain["cells"], dim), "shape")
            same(found.particles.sum(), n, "particles")
        else:
            require(found.shape == (n,) and np.isfinite(found).all(), f"{found}")

    table = {"simulation": an(md.Simulation, just(sim))}
    table["cells"] = either(integer(1, usual=(1, 4), most=40), cells_of(dim))
    call = draw(sampled_from((md.observe.field, md.observe.virial)))
    return cases(call, of(call, table), check=check)


def energies(draw) -> Cases:
    """Energies of contacts."""
    sim = draw(simulations())
    now, close = sim.state, sim.pairs()

    def check(found, plain):
        if plain["law"] is LAW and len(now) and now.radius is None and len(plain["pairs"]) == len(close):
            same(found, plain_sums(now, LAW)["contact_energy_per_particle"], "contact energy", 1e-4)

    kinds = {"state": an(md.State, just(now)), "pairs": array(close, "iu", (None, 2)), "law": Kind(LAW)}
    return cases(md.observe.contact_energy, kinds, check=check)


def reports(draw) -> Cases:
    """A reporter's parameters are those that a run goes by."""
    sim, steps = draw(simulations()), draw(integers(1, 12))
    kind = draw(sampled_from((md.Observer, md.observe.Fields, md.observe.EnergyBalance)))
    dim, last = sim.state.box.dim, {}
    profile, cells = profiles(dim), cells_of(dim)
    table = {"interval": integer(usual=(1, 4)), "profiles": either(profile, few(profile, None))}
    table["cells"] = either(integer(1, 40, (1, 4)), cells)

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

    told = f"a run with {kind.__name__}"
    return cases(call, of(kind, table), told=told, check=check, always=("interval",))


FAMILY = Family({looks: 1, fields: 2, energies: 1, reports: 2}, prepare)
