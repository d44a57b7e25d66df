"""Trajectories: frames in a GSD file of the schema hoomd, which OVITO and freud open.

What a file holds. Positions (d), velocities (d per time unit, at the time of the positions) and the box as
float32, centred on the origin, as the schema has it: a box of length L spans [-L/2, L/2). Particles stand in
the order of their ids, whatever their order in memory: a row is the same particle in every frame. Where the
ids are not 0 .. n - 1, they are logged as `particles/id`. Diameter and mass are 1 and the type is "A", the
schema's defaults, but for the diameters of particles that have radii. In 2D `dimensions` is 2, z is 0 and so
is the box's third length. The schema has no open axes, readers take every axis for periodic: the flags are
logged as `periodic` (1 or 0 an axis), for programs that measure distances. What is logged stands in the first
frame and holds for all.

GSD: https://gsd.readthedocs.io
"""

from __future__ import annotations

import errno
import os
import shutil
import warnings
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any
from weakref import ref

import gsd.hoomd
import numpy as np

from md.checks import flag, instance, integer
from md.checks import path as as_path
from md.io.atomic_write import Claim, claim_of, claimed, replacing
from md.particles.state import State

MOST_STEPS = 2**63 - 1
GROUPS = ("particles", "bonds", "angles", "dihedrals", "impropers", "constraints", "pairs")  # of the schema
BROKEN = (  # what gsd and numpy raise for one byte or another that is wrong
    RuntimeError, KeyError, IndexError, AttributeError, TypeError, ValueError, MemoryError, OverflowError,
)  # fmt: skip


class TrajectoryError(ValueError):
    """A file that no frame can be appended to: no trajectory, or a damaged one; tells the frame."""


class StepTakenError(ValueError):
    """A frame whose step is not after those of the file, and which is none of them.

    Attributes:
        frames: how many frames of the file are of earlier steps.
    """

    def __init__(self, message: str, frames: int):
        super().__init__(message)
        self.frames = frames


class Trajectory:
    """Appends a frame to a trajectory at intervals; a reporter for `Simulation.run(reporters=[...])`.

    From its first frame on no other process can append to the file, until `release`, or as long as there is
    this object.

    Args:
        path: of the file, usually `.gsd`.
        interval: in steps, at least 1.
        append: go on with a file that is there, as a run does that is loaded from a checkpoint. A frame that
            the file has already, to the last bit, is not written again. Where the run does not repeat the
            one before to the bit, its frames take the place of those of the same and later steps, and the
            file as it was is kept beside it, as `<name>.before-<step>.gsd`; a warning says so. That is done
            once for each simulation: frames that it finds in its way afterwards are of another run.

    Raises:
        TypeError: an argument of another class.
        ValueError: an interval below 1.
        FileExistsError: the file is there; not with append.
    """

    def __init__(self, path: str | Path, interval: int, append: bool = False):
        self.path, self.interval = (
            as_path("path", path),
            integer("interval of Trajectory", interval, unit="steps"),
        )
        self._appends = self._restarts = flag("append", append)
        self._claim: Claim | None = None
        self._restarted: ref | None = None  # the simulation whose frames took the place of others
        self._refuse_another()

    def _refuse_another(self) -> None:
        if not self._appends and os.path.lexists(self.path):
            raise FileExistsError(
                errno.EEXIST, "the file is there; give another name, or append=True to go on", str(self.path)
            )

    def report(self, simulation: Any) -> None:
        """Append a frame; see `append_frame`.

        Raises:
            BlockingIOError: another process appends to the file.
            StepTakenError: another run has appended to it.
        """
        self._refuse_another()
        state, step = simulation.state, simulation.step
        try:
            self._claim = _append(self.path, state, step, self._claim, new=not self._appends)
        except StepTakenError as taken:
            again = self._restarted is not None and self._restarted() is simulation
            if not self._restarts or again:
                raise
            with _told(self.path, step):
                kept, self._claim = _cut(self.path, taken.frames, step, len(state))
            self._restarted = ref(simulation)
            warnings.warn(
                f"{self.path} held other frames from step {step} on; the file as it was is {kept}",
                RuntimeWarning,
                stacklevel=2,
            )
            self._claim = _append(self.path, state, step, self._claim)
        self._appends = True

    def release(self) -> None:
        """Let other processes append to the file; the next report takes it back."""
        self._claim = None  # it ends where no other reporter of this process has it


def append_frame(path: str | Path, state: State, step: int) -> None:
    """Append a frame to a trajectory; begins one where there is no file.

    The file is closed after each frame, and holds all frames before if writing one fails.

    Args:
        path: of the file; where it is a link, the file it leads to.
        state: the particles, in any order.
        step: of the state, from 0. Steps increase from frame to frame; a frame that the file has already, to
            the last bit, is not written again.

    Raises:
        TypeError: an argument of another class.
        StepTakenError: a step that is not after the file's last frame.
        TrajectoryError: a file that is no such trajectory, or is damaged.
        ValueError: another number of particles, other ids or another box than the file has.
        BlockingIOError: the file is the trajectory of a run in another process.
        OSError: the frame cannot be written.
    """
    instance("state", state, State, "an md.State")
    _append(as_path("path", path), state, integer("step", step, 0, MOST_STEPS))


def _append(path: Path, state: State, step: int, known: Claim | None = None, new: bool = False) -> Claim:
    """Append a frame, and claim the file for this process.

    Args:
        path: of the file.
        state: the particles.
        step: of them.
        known: the claim under which the last frame was written, which then is not read again.
        new: refuse a file that is there.
    """
    frame = _frame(state, step)
    with _told(path, step):
        if not path.exists():
            try:
                return _begin(path, frame)
            except FileExistsError:  # another process has begun it
                if new:
                    raise
        claim = claimed(path)
        with _opened(path, "r+") as file:
            if len(file):
                _check_same(path, file, frame)
                if claim is not known:
                    _frame_of(path, file, len(file) - 1, len(state))  # whether it can be read
            if not len(file) or _is_new(path, file, frame):
                if len(file):
                    frame.log = {}
                with _blamed(path, len(file), "appended"):
                    file.append(frame)
        return claim


@contextmanager
def _told(path: Path, step: int) -> Iterator[None]:
    """Around what writes a frame: an OSError tells which."""
    try:
        yield
    except OSError as error:
        told = (
            f"{error.strerror or error}; the frame of step {step} was not written, those before it are kept"
        )
        raise OSError(error.errno, told, str(path)) from error


@contextmanager
def _blamed(path: Path, frame: int, done: str = "read") -> Iterator[None]:
    """Around what reads or appends a frame by gsd: says of its error which file and frame it was."""
    try:
        yield
    except BROKEN as error:
        raise TrajectoryError(
            f"{path} is damaged: frame {frame} cannot be {done} ({error!r:.200}); allowed: a whole file; "
            "give another name, and copy the frames before it with gsd.hoomd if they are needed"
        ) from error


def _begin(path: Path, frame: gsd.hoomd.Frame) -> Claim:
    with replacing(path, new=True) as partial:
        with gsd.hoomd.open(partial.name, "w") as file:
            file.append(frame)
        return claim_of(partial)


def _opened(path: Path, mode: str) -> gsd.hoomd.HOOMDTrajectory:
    try:
        return gsd.hoomd.open(path, mode)
    except BROKEN as error:
        raise TrajectoryError(
            f"{path} is no trajectory to append to ({error}); allowed: a GSD file of the schema hoomd, or a "
            "new name"
        ) from error


def _frame(state: State, step: int) -> gsd.hoomd.Frame:
    ordered, box = state.by_id(), state.box
    frame = gsd.hoomd.Frame()
    frame.configuration.step, frame.configuration.dimensions = step, box.dim
    lengths = np.zeros(3, np.float32)
    lengths[: box.dim] = box.lengths
    frame.configuration.box = [*lengths, 0, 0, 0]
    frame.particles.N = len(state)
    frame.particles.position, frame.particles.velocity = np.zeros((2, len(state), 3), np.float32)
    frame.particles.position[:, : box.dim] = _centred(ordered.pos, state)
    frame.particles.velocity[:, : box.dim] = ordered.vel
    if ordered.radius is not None:
        frame.particles.diameter = (2 * ordered.radius).astype(np.float32)
    frame.log["periodic"] = np.array(box.periodic, np.uint8)
    if not np.array_equal(ordered.id, np.arange(len(state))):
        frame.log["particles/id"] = ordered.id
    return frame


def _centred(pos: np.ndarray, state: State) -> np.ndarray:
    """Positions from the box's middle: (n, dim) float32, on a periodic axis in [-L/2, L/2) when rounded."""
    centred = (pos - np.array(state.box.lengths) / 2).astype(np.float32)
    half = np.array(state.box.lengths, np.float32) / 2
    over = (centred >= half) & np.array(state.box.periodic)
    return np.where(over, -half, np.maximum(centred, -half))


def _check_same(path: Path, file: gsd.hoomd.HOOMDTrajectory, frame: gsd.hoomd.Frame) -> None:
    """Refuse a frame of another system."""
    n = frame.particles.N
    first = _frame_of(path, file, 0, n)
    ids, known = (f.log.get("particles/id", np.arange(n)) for f in (frame, first))
    if np.shape(known) != (n,):
        raise TrajectoryError(
            f"{path} is damaged: frame 0 holds ids of shape {np.shape(known)}; allowed: ({n},); give another "
            "name"
        )
    if not np.array_equal(ids, known):
        row = int((ids != known).argmax())
        raise ValueError(
            f"{path} holds other particles: id {known[row]}, and this frame {ids[row]}; give another name"
        )
    ours, known = (_diameters(f) for f in (frame, first))
    if not np.array_equal(ours, known):
        row = int((ours != known).argmax())
        raise ValueError(
            f"{path} holds other particles: id {ids[row]} of diameter {known[row]:g} d, and in this frame "
            f"{ours[row]:g} d; give another name"
        )
    ours, theirs = (np.asarray(f.configuration.box, np.float32) for f in (frame, first))
    if not np.array_equal(ours, theirs):
        raise ValueError(
            f"{path} holds a box of {theirs[:3].tolist()}, and this frame one of {ours[:3].tolist()}; give "
            "another name"
        )


def _diameters(frame: gsd.hoomd.Frame) -> np.ndarray:
    """Of the particles, (n,) float32; the schema's default is 1."""
    given = frame.particles.diameter
    return np.ones(frame.particles.N, np.float32) if given is None else np.asarray(given, np.float32)


def _is_new(path: Path, file: gsd.hoomd.HOOMDTrajectory, frame: gsd.hoomd.Frame) -> bool:
    """Whether a frame comes after all others, or else is one of them.

    Raises:
        ValueError: it does not, and is not.
    """
    step, last = frame.configuration.step, _step(path, file, len(file) - 1)
    if step > last:
        return True
    low, high = 0, len(file) - 1
    while low < high:
        middle = (low + high) // 2
        low, high = (middle + 1, high) if _step(path, file, middle) < step else (low, middle)
    there = _frame_of(path, file, low, frame.particles.N)
    if there.configuration.step == step and all(
        np.array_equal(getattr(there.particles, name), getattr(frame.particles, name))
        for name in ("position", "velocity")
    ):
        return False
    raise StepTakenError(
        f"{path} holds frames up to step {last}, and this is another of step {step}; allowed: a later step; "
        "give another name",
        low,
    )


def _cut(path: Path, frames: int, step: int, n: int) -> tuple[Path, Claim]:
    """Keep the first frames of a file.

    Returns:
        Where the file as it was is kept, and the claim on the one that has its place.
    """
    kept = None
    try:
        with replacing(path) as partial:
            with _opened(path, "r") as file, gsd.hoomd.open(partial.name, "w") as other:
                for index in range(frames):
                    frame = _frame_of(path, file, index, n)
                    if index:
                        frame.log = {}
                    other.append(frame)
            kept = _keep(path, step)
            return kept, claim_of(partial)
    except BaseException:
        if kept is not None:
            kept.unlink(missing_ok=True)
        raise


def _keep(path: Path, step: int) -> Path:
    """Give a file another name too, or where it can have one name only a copy, and tell it."""
    place, number = os.path.realpath(path), 1
    while True:
        kept = path.with_name(f"{path.stem}.before-{step}{'' if number == 1 else f'-{number}'}.gsd")
        try:
            try:
                os.link(place, kept)
            except FileExistsError:
                raise
            except OSError:  # a file system without links
                with replacing(kept, new=True) as copy, open(place, "rb") as file:
                    shutil.copyfileobj(file, copy)
        except FileExistsError:
            number += 1
        else:
            return kept


def _frame_of(path: Path, file: gsd.hoomd.HOOMDTrajectory, index: int, n: int) -> gsd.hoomd.Frame:
    """A frame of n particles; what holds others is not read any further.

    Raises:
        ValueError: it is of another number of particles.
        TrajectoryError: it cannot be read.
    """
    with _blamed(path, index):
        counts = {group: _count(file, index, group) for group in GROUPS}
    known = counts.pop("particles")
    if known != n:
        raise ValueError(f"{path} holds {known} particles, and this frame {n}; give another name")
    for group, count in counts.items():
        if count > path.stat().st_size:  # else memory for them is taken before the file is found too short
            raise TrajectoryError(
                f"{path} is damaged: frame {index} says that it has {count} {group}; allowed: what the file "
                "has room for; give another name"
            )
    with _blamed(path, index):
        return file[index]


def _step(path: Path, file: gsd.hoomd.HOOMDTrajectory, index: int) -> int:
    """The step of a frame, without reading the rest of it; a 0 is not written."""
    with _blamed(path, index):
        name = "configuration/step"
        return int(file.file.read_chunk(index, name)[0]) if file.file.chunk_exists(index, name) else 0


def _count(file: gsd.hoomd.HOOMDTrajectory, index: int, group: str) -> int:
    """How many of a group a frame has; what it does not say is as in frame 0."""
    for frame in (index, 0):
        if file.file.chunk_exists(frame, f"{group}/N"):
            return int(file.file.read_chunk(frame, f"{group}/N")[0])
    return 0
