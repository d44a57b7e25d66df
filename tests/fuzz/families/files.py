"""Checkpoints and trajectories: damaged, cut, made by others; what is read is what was written."""

from __future__ import annotations

import copy
import functools
import io
import json
import re
import zipfile
from pathlib import Path
from typing import Any

import gsd.hoomd
import numpy as np
from hypothesis import strategies as st
from hypothesis.strategies import booleans, integers, just, sampled_from

import md
from tests.fuzz.drawing import ARRAYS, FLOATS, INTEGERS, among, chance, changed
from tests.fuzz.families import Family
from tests.fuzz.families.simulations import LAW, OPTIONS, check_frame, due, outcome, standing, states
from tests.fuzz.judge import SAYS, Cases, cases, equal, require
from tests.fuzz.kinds import flag, integer, path
from tests.md.io.test_checkpoint_sizes import with_entry
from tests.md.simulation.test_simulation import same_bits

REASON = re.compile(f"{SAYS.pattern}|the file is damaged")
# fmt: off
WORDS = ("none", "linked", "0", "hilbert", "velocity_verlet", "float32", "cuda", "", "x" * 300)
PLAIN = (
    None, "", [], {}, [1], {"a": 1}, [[]], True, 2**70, 1e308, -1, 0.5, *WORDS, [None] * 3, {"curve": {}},
    {"name": "none", "with": {}}, {"unknown": "x"}, {"number": "7", "dtype": "O"},
    {"number": 10**30, "dtype": "<i4"}, "\ud800",
)
WING = md.Wing(airfoil=md.naca("2412", 5), chord=3.0, at=(5.0, 5.0), stiffness=1e3)
SAVED = (
    {},
    {"reorder": md.Reorder("hilbert", md.Moved(0.3, 2), mode="threads"), "search": "scattered"},
    {"walls": md.Walls(contact_time=0.05), "gravity": (0.0, -1.0), "search": md.search.Lbvh(rebuild_every=2)},
    {"search": md.search.Reflexive(met="twice", atomics="none"), "integrator": "position_verlet"},
    {"integrator": "adaptive_euler", "surroundings": (WING, md.Inflow(velocity=(1.0, 0.0), temperature=1.0))},
)
# fmt: on


@functools.cache
def saved() -> list[tuple[md.Simulation, bytes]]:
    """Simulations that were saved, and what their files hold."""
    found = []
    for seed, options in enumerate(SAVED):
        rng, box = np.random.default_rng(seed), md.Box((10.0, 10.0), (True, "walls" not in options))
        start = md.State(0.5 + rng.random((8, 2)) * 9, rng.normal(size=(8, 2)), box)
        given = {"search": "linked", "dt": 1e-3, "backend": "cpu", "allow_overlap": True} | options
        sim = md.Simulation(start, LAW, **given)
        sim.run(seed % 4)
        sim.save("saved.npz")
        found.append((sim, Path("saved.npz").read_bytes()))
    return found


def check_same(found: md.Simulation, sim: md.Simulation) -> None:
    """The same particles, to the last bit, at the same step."""
    ours, theirs = found.system.particles.to_state(), sim.system.particles.to_state()
    require(same_bits(ours, theirs), "other particles")
    equal((found.step, ours.box), (sim.step, theirs.box), "step and box")


@st.composite
def damaged(draw, raw: bytes) -> bytes:
    """Bytes with some flipped, cut off, zeroed, repeated or put in."""
    data = bytearray(raw)
    for _ in range(draw(sampled_from((1, 1, 1, 2, 5)))):
        at, kind = draw(integers(0, max(0, len(data) - 1))), draw(integers(0, 6))
        if kind < 3 and data:
            data[at] ^= 1 << draw(integers(0, 7))
        elif kind == 3:
            del data[at:]
        elif kind == 4:
            data[at : at + draw(sampled_from((1, 16, 512)))] = bytes(len(data[at : at + 16]))
        elif kind == 5:
            data[at:at] = draw(sampled_from((b"\x00", b"\xff" * 8, bytes(data[:20]), b"[" * 2000, b"\n")))
        else:
            data += draw(sampled_from((b"x", bytes(100), bytes(data))))
    return bytes(data)


def places(data: Any, path: tuple = ()) -> list[tuple]:
    """Paths to all values of nested data."""
    inner = data.items() if isinstance(data, dict) else enumerate(data) if isinstance(data, list) else ()
    return [path] * bool(path) + [place for key, value in inner for place in places(value, (*path, key))]


FRESH = sampled_from(PLAIN).map(copy.deepcopy)  # another value may be put into it
PLAIN_NUMBERS = among(sampled_from(INTEGERS), sampled_from(FLOATS), integers(-3, 12), True, False)


@st.composite
def with_a_value(draw, data: Any) -> Any:
    """Nested data, in which a value is another, or is left out, or added."""
    at, value = draw(sampled_from(places(data))), draw(among(FRESH, PLAIN_NUMBERS))
    inner = functools.reduce(lambda found, key: found[key], at[:-1], data)
    kind = draw(integers(0, 19)) if isinstance(inner, dict) else 19
    if kind < 3:
        del inner[at[-1]]
    else:
        inner[draw(sampled_from(WORDS)) if kind < 5 else at[-1]] = value
    return data


@st.composite
def configs(draw, text: str) -> str:
    """A config of a checkpoint that says something else."""
    config = draw(with_a_value(json.loads(text)))
    if draw(booleans()) and places(config):
        config = draw(with_a_value(config))
    text = json.dumps(config)
    odd = sampled_from((text[:-3], text * 2, "[" * 10**5, "1", "null", "[]", '{"simulation": 1}'))
    return draw(odd) if draw(chance(0.1)) else text


@st.composite
def rewritten(draw, raw: bytes) -> bytes:
    """A whole checkpoint with a hostile config or array."""
    with np.load(io.BytesIO(raw)) as file:
        arrays = {name: file[name] for name in file.files}
    name = draw(sampled_from((*arrays, "surroundings_9_x", "reorder_more", "radius", "integrator_time")))
    if draw(chance(0.6)):
        arrays["config"] = np.array(draw(configs(str(arrays["config"]))))
    elif draw(chance(0.1)):
        arrays.pop(name, None)
    else:
        other = draw(among(changed(arrays.get(name, np.zeros(3))), ARRAYS))
        other = np.asarray(other) if isinstance(other, (np.ndarray, np.generic, list, tuple)) else np.zeros(2)
        if other.nbytes < 10**7 and other.dtype != object:
            arrays[name] = other
    packed = io.BytesIO()
    np.savez(packed, allow_pickle=False, **arrays)
    if draw(chance(0.05)):
        name = draw(sampled_from(("reorder_bomb", "integrator_x", "surroundings_0_y", "bomb", "radius")))
        with_entry(packed, name, bytes(2**26), zipfile.ZIP_DEFLATED)  # unpacks to a large array
    return packed.getvalue()


def loaded(name: str, raw: bytes, check: Any) -> Cases:
    """A file that is loaded."""
    file = Path(f"{name}.npz")
    file.write_bytes(raw)
    called = f"Simulation.load of a {name} file"
    kinds = {"path": path(just(file))}
    return cases(md.Simulation.load, kinds, name=called, calm=1.0, says=REASON, check=check)


def flipped(draw) -> Cases:
    """A checkpoint with damaged bytes: refused, or the same state."""
    sim, raw = draw(sampled_from(saved()))
    return loaded("damaged", draw(damaged(raw)), lambda found, _: check_same(found, sim))


def crafted(draw) -> Cases:
    """A whole checkpoint that says something else: refused, or it runs."""
    _, raw = draw(sampled_from(saved()))

    def check(found, _):
        if not isinstance(outcome(lambda: found, 2), Exception):
            found.save("again.npz")
            check_same(md.Simulation.load("again.npz"), found)

    return loaded("crafted", draw(rewritten(raw)), check)


def trajectories(draw) -> Cases:
    """Trajectories appended to, some of them damaged before."""
    start = draw(states(usual=True))
    file, before = Path("run.gsd"), draw(integers(0, 3))
    for left in (file, *Path().glob("run.before-*")):
        left.unlink(missing_ok=True)
    sim = md.Simulation(start, LAW, walls=standing(start.box), **OPTIONS)
    for _ in range(before):
        sim.write(file)
        sim.run(1)
    whole = not before or draw(chance(0.4))
    if not whole:
        file.write_bytes(draw(damaged(file.read_bytes())))
    kinds = {"path": path(just(file)), "interval": integer(1, usual=(1, 2)), "append": flag().but(valid=True)}
    first = sim.step

    def call(path, interval, append):
        sim.run(3, reporters=[md.Trajectory(path, interval, append=append)])

    def check(_, plain):
        if not whole or Path(plain["path"]) != file:
            return
        with gsd.hoomd.open(str(file), "r") as read:
            steps = [int(frame.configuration.step) for frame in read]
        equal(steps, [*range(before), *due(plain["interval"], first, first + 3)], "frames of steps")
        if steps[-1:] == [sim.step]:
            check_frame(file, sim.state.by_id())

    return cases(call, kinds, name="a run with Trajectory", calm=0.7, check=check)


FAMILY = Family({flipped: 4, crafted: 5, trajectories: 4}, saved)
