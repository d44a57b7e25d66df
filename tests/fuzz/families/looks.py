"""What is seen of simulations: sums, profiles, fields, energies, and reporters of a run."""

from __future__ import annotations

from typing import Any

import numpy as np
from hypothesis import strategies as st
from hypothesis.strategies import builds, integers, just, sampled_from

import md
from tests.fuzz.drawing import among, narrow
from tests.fuzz.families import Family
from tests.fuzz.families.simulations import LAW, due, prepare, simulations
from tests.fuzz.judge import Cases, cases, equal, require, same
from tests.fuzz.kinds import Kind, an, array, either, few, integer
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


def along(cells: int | tuple[int, ...], dim: int) -> tuple[int, ...]:
    """Cells along each axis."""
    return (cells,) * dim if isinstance(cells, int) else cells


def seen_of(sim: md.Simulation) -> dict[str, Kind]:
    """The simulation that is looked at, as an argument."""
    return {"simulation": an(md.Simulation, just(sim))}


def looks(draw) -> Cases:
    """Sums and profiles."""
    sim = draw(simulations())
    now = sim.state
    dim = now.box.dim

    def check(found, plain):
        same(found.momentum, now.vel.astype(np.float64).sum(axis=0), "momentum", 1e-5)
        same(found.temperature, md.observe.temperature(now), "temperature", 1e-5)
        equal(found.touching_pairs, len(sim.pairs()), "touching pairs")
        for profile, seen in zip(plain.get("profiles", ()), found.profiles, strict=True):
            right = plain_profile(now, profile.axis, profile.bins)["particles"]
            require(abs(seen.particles - right).sum() <= 2, f"{seen.particles}, and by the reference {right}")
            equal(seen.particles.sum(), len(now), "particles in slices")

    optional = {"profiles": few(profiles(dim), None)}
    optional["cells"] = either(integer(1, 1000, (1, 4)), cells_of(dim))
    return cases(md.observe.look, seen_of(sim), optional, check=check)


def fields(draw) -> Cases:
    """Means in cells."""
    sim = draw(simulations())
    dim, n = sim.state.box.dim, len(sim.state)

    def check(found, plain):
        equal(found.particles.shape, along(plain["cells"], dim), "shape")
        same(found.particles.sum(), n, "particles")

    kinds = {"cells": either(integer(1, usual=(1, 4), most=40), cells_of(dim))}
    return cases(md.observe.field, seen_of(sim) | kinds, check=check)


def virials(draw) -> Cases:
    """Virials of each particle."""
    sim = draw(simulations())

    def check(found, _):
        require(found.shape == (len(sim.state),) and np.isfinite(found).all(), f"{found}")

    return cases(md.observe.virial, seen_of(sim), check=check)


def energies(draw) -> Cases:
    """Energies of contacts."""
    sim = draw(simulations())
    now, close = sim.state, sim.pairs()
    kinds = {"state": an(md.State, just(now)), "pairs": array(close, "iu", (None, 2)), "law": Kind(LAW)}

    def check(found, plain):
        if plain["pairs"] is close and plain["law"] is LAW and len(now):
            order = np.argsort(now.id)
            i, j = order[np.searchsorted(now.id[order], close)].T
            pos = now.pos.astype(np.float64)
            radius = np.full(len(now), 0.5) if now.radius is None else now.radius
            size = radius[i].astype(np.float64) + radius[j]
            apart = np.linalg.norm(now.box.nearest(pos[i] - pos[j]), axis=1)
            energy = size * LAW.stiffness * np.maximum(0, 1 - apart / size) ** 2 / 2
            same(found, energy.sum() / len(now), "contact energy", 1e-6)

    return cases(md.observe.contact_energy, kinds, check=check)


def reports(draw) -> Cases:
    """A reporter's parameters are those that a run goes by."""
    sim, steps = draw(simulations()), draw(integers(1, 12))
    kind = draw(sampled_from((md.Observer, md.observe.Fields, md.observe.EnergyBalance)))
    dim, last = sim.state.box.dim, {}
    profile, cells = profiles(dim), cells_of(dim)
    kinds: dict[str, Kind] = {"interval": integer(usual=(1, 4))}
    optional: dict[str, Kind] = {}
    if kind is md.Observer:
        optional["profiles"] = either(profile, few(profile, None))
        optional["cells"] = either(integer(1, 1000, (1, 4)), cells)
    elif kind is md.observe.Fields:
        kinds["cells"] = either(integer(1, usual=(1, 4), most=40), cells)

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
            equal(reporter.mean().particles.shape, along(plain["cells"], dim), "cells")
        if kind is md.Observer:
            reporter.profile_table()

    return cases(call, kinds, optional, name=f"a run with {kind.__name__}", check=check)


PARTS = {looks: 1, fields: 1, virials: 1, energies: 1, reports: 2}
FAMILY = Family(PARTS, prepare)
