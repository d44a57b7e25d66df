"""Checkpoints and trajectories: damaged, cut, made by others; what is read is what was written."""

from __future__ import annotations

import functools
import io
import json
import re
import zipfile
from pathlib import Path
from typing import Any

import gsd.hoomd
import numpy as np

import md
from tests.fuzz.drawing import Draw, changed, number, some_array
from tests.fuzz.families import Family
from tests.fuzz.families.simulations import LAW, a_simulation, outcome, usual_state
from tests.fuzz.judge import SAYS, Case, made_case, require
from tests.fuzz.kinds import AnyPath, Flag, Integer, Kind

REASON = re.compile(f"{SAYS.pattern}|the file is damaged")
WORDS = ("none", "linked", "0", "hilbert", "velocity_verlet", "float32", "cuda", "", "x" * 300)


@functools.cache
def saved() -> list[tuple[md.Simulation, bytes]]:
    """Simulations that were saved, and what their files hold."""
    found = []
    for number_of, options in enumerate(
        (
            {},
            {"reorder": md.Reorder("hilbert", md.Moved(0.3, 2), mode="threads"), "search": "scattered"},
            {
                "walls": md.Walls(contact_time=0.05),
                "gravity": (0.0, -1.0),
                "search": md.search.Lbvh(rebuild_every=2),
            },
            {"search": md.search.Reflexive(met="twice", atomics="none"), "integrator": "position_verlet"},
            {
                "integrator": "adaptive_euler",
                "surroundings": (
                    md.Wing(airfoil=md.naca("2412", 5), chord=3.0, at=(5.0, 5.0), stiffness=1e3),
                    md.Inflow(velocity=(1.0, 0.0), temperature=1.0),
                ),
            },
        )
    ):
        draw = Draw("saved", 0, number_of)
        box = md.Box((10.0, 10.0), (True, "walls" not in options))
        pos = 0.5 + draw.rng.random((8, 2)) * 9
        start = md.State(pos, draw.rng.normal(size=pos.shape), box)
        sim = a_simulation(draw, start=start, **{"search": "linked"} | options)
        sim.save("saved.npz")
        found.append((sim, Path("saved.npz").read_bytes()))
    return found


def same_simulation(found: md.Simulation, sim: md.Simulation) -> None:
    """The same particles, to the last bit, at the same step."""
    ours, theirs = found.system.particles.to_state(), sim.system.particles.to_state()
    for name in ("pos", "vel", "id"):
        require(getattr(ours, name).tobytes() == getattr(theirs, name).tobytes(), f"another {name}")
    require(found.step == sim.step and ours.box == theirs.box, "another step or box")


def damaged(draw: Draw, raw: bytes) -> bytes:
    """Bytes with some flipped, cut off, zeroed, repeated or put in."""
    data = bytearray(raw)
    for _ in range(draw.choice((1, 1, 1, 2, 5))):
        at = draw.randrange(len(data) or 1)
        kind = draw.randrange(7)
        if kind < 3 and data:
            data[at] ^= 1 << draw.randrange(8)
        elif kind == 3:
            del data[at:]
        elif kind == 4:
            data[at : at + draw.choice((1, 16, 512))] = bytes(len(data[at : at + 16]))
        elif kind == 5:
            data[at:at] = draw.choice((b"\x00", b"\xff" * 8, bytes(data[:20]), b"[" * 2000, b"\n"))
        else:
            data += draw.choice((b"x", bytes(100), bytes(data)))
    return bytes(data)


def flipped(draw: Draw) -> Case:
    """A checkpoint with damaged bytes: refused, or the same state."""
    sim, raw = draw.choice(saved())
    path = Path("damaged.npz")
    path.write_bytes(damaged(draw, raw))
    return made_case(
        draw,
        "Simulation.load",
        md.Simulation.load,
        {"path": AnyPath(path)},
        calm=1.0,
        says=REASON,
        check=lambda found, _: same_simulation(found, sim),
    )


def places(data: Any, path: tuple = ()) -> list[tuple]:
    """Paths to all values of nested data."""
    found = [path] if path else []
    inner = data.items() if isinstance(data, dict) else enumerate(data) if isinstance(data, list) else ()
    for key, value in inner:
        found += places(value, (*path, key))
    return found


def plain_value(draw: Draw) -> Any:
    """A value that JSON has."""
    value = number(draw)
    if isinstance(value, (bool, int, float)) and not isinstance(value, np.generic):
        return value
    return draw.choice(
        (
            None,
            "",
            [],
            {},
            [1],
            {"a": 1},
            [[]],
            True,
            2**70,
            1e308,
            -1,
            0.5,
            *WORDS,
            [None] * 3,
            {"name": "none", "with": {}},
            {"unknown": "x"},
            {"number": "7", "dtype": "O"},
            {"number": 10**30, "dtype": "<i4"},
            {"curve": {}},
            "\ud800",
        )
    )


def rewritten(draw: Draw, raw: bytes) -> bytes:
    """A whole checkpoint with a hostile config or array."""
    with np.load(io.BytesIO(raw)) as file:
        arrays = {name: file[name] for name in file.files}
    if draw.chance(0.6):
        config = json.loads(str(arrays["config"]))
        for _ in range(draw.choice((1, 1, 2))):
            at = draw.choice(places(config))
            inner = config
            for key in at[:-1]:
                inner = inner[key]
            if draw.chance(0.15) and isinstance(inner, dict):
                del inner[at[-1]]
                break
            if draw.chance(0.1) and isinstance(inner, dict):
                inner[draw.choice(WORDS)] = plain_value(draw)
            else:
                inner[at[-1]] = plain_value(draw)
        text = json.dumps(config)
        if draw.chance(0.1):
            text = draw.choice((text[:-3], text * 2, "[" * 10**5, "1", "null", "[]", '{"simulation": 1}'))
        arrays["config"] = np.array(text)
    else:
        name = draw.choice([*arrays, "surroundings_9_x", "reorder_more", "radius", "integrator_time"])
        value = arrays.get(name, np.zeros(3))
        other = changed(draw, value) if draw.chance(0.6) else some_array(draw)
        other = np.asarray(other) if not isinstance(other, (type(iter([])), type)) else np.zeros(2)
        if draw.chance(0.1):
            arrays.pop(name, None)
        elif other.nbytes < 10**7 and other.dtype != object:
            arrays[name] = other
    packed = io.BytesIO()
    np.savez(packed, allow_pickle=False, **arrays)
    if draw.chance(0.05):  # an entry that unpacks to a large array
        with zipfile.ZipFile(packed, "a", zipfile.ZIP_DEFLATED) as file:
            head = io.BytesIO()
            np.lib.format.write_array_header_1_0(
                head, {"descr": "<f8", "fortran_order": False, "shape": (2**23,)}
            )
            name = draw.choice(("reorder_bomb", "integrator_x", "surroundings_0_y", "bomb", "radius"))
            file.writestr(f"{name}.npy", head.getvalue() + bytes(8 * 2**23))
    return packed.getvalue()


def crafted(draw: Draw) -> Case:
    """A whole checkpoint that says something else: refused, or it runs."""
    _, raw = draw.choice(saved())
    path = Path("crafted.npz")
    path.write_bytes(rewritten(draw, raw))

    def call(path):
        return md.Simulation.load(path)

    def check(found, _):
        if isinstance(outcome(lambda: found, 2), Exception):
            return
        found.save("again.npz")
        same_simulation(md.Simulation.load("again.npz"), found)

    return made_case(
        draw,
        "Simulation.load of a crafted file",
        call,
        {"path": AnyPath(path)},
        calm=1.0,
        says=REASON,
        check=check,
    )


def trajectories(draw: Draw) -> Case:
    """Trajectories appended to, some of them damaged before."""
    start = usual_state(draw, kinds="pw")
    walls = None if all(start.box.periodic) else md.Walls(contact_time=0.05)
    path = Path("run.gsd")
    path.unlink(missing_ok=True)
    for left in Path().glob("run.before-*"):
        left.unlink()
    sim = md.Simulation(start, LAW, dt=1e-3, backend="cpu", allow_overlap=True, walls=walls)
    before = draw.randrange(4)
    for _ in range(before):
        sim.write(path)
        sim.run(1)
    whole = not before or draw.chance(0.4)
    if not whole:
        path.write_bytes(damaged(draw, path.read_bytes()))
    kinds: dict[str, Kind] = {"path": AnyPath(path), "interval": Integer(1, usual=(1, 2)), "append": Flag()}
    kinds["append"].valid = lambda _: True  # type: ignore[method-assign]
    first = sim.step

    def call(path, interval, append):
        sim.run(3, reporters=[md.Trajectory(path, interval, append=append)])

    def check(_, plain):
        if not whole or Path(plain["path"]) != path:
            return
        with gsd.hoomd.open(str(path), "r") as file:
            steps = [int(frame.configuration.step) for frame in file]
            last = file[-1] if len(file) else None
        due = [k for k in range(first + 1, first + 4) if k % plain["interval"] == 0]
        due = [0, *due] if first == 0 else due
        require(steps == [*range(before), *due], f"frames of steps {steps}, before {before}, due {due}")
        now = sim.state.by_id()
        if last is not None and last.configuration.step == sim.step:
            centred = now.pos - np.array(now.box.lengths) / 2
            off = np.abs(last.particles.position[:, : now.box.dim] - centred)
            off = np.minimum(off, np.where(now.box.periodic, np.abs(off - now.box.lengths), off))
            require((off < 1e-5).all(), "other positions than those of the state")
            require(
                np.allclose(last.particles.velocity[:, : now.box.dim], now.vel, atol=1e-4), "other velocities"
            )

    return made_case(draw, "a run with Trajectory", call, kinds, calm=0.7, check=check)


KINDS = ((flipped, 4), (crafted, 5), (trajectories, 4))


def one_of(draw: Draw) -> Case:
    """An input of any of these."""
    makers, weights = zip(*KINDS, strict=True)
    return draw.choices(makers, weights)[0](draw)


FAMILIES = [Family("files", one_of, 9, saved)]
