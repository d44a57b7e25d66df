"""Trajectories: frames in a GSD file of the schema hoomd, which OVITO and freud open.

Contents. Positions (d), velocities (d per time unit, at the time of the positions) and the box are float32,
centred on the origin as the schema requires: a box of length L spans [-L/2, L/2). Particles are in the order
of their ids, not in memory order: a row is the same particle in every frame. Ids other than 0 .. n - 1 are
logged as `particles/id`. Diameter and mass are 1 and the type is "A", the defaults of the schema, except for
the diameters of particles with radii. In 2D `dimensions` is 2, and z and the third length of the box are 0.
The schema has no open axes, and readers take every axis as periodic: the flags are logged as `periodic` (1 or
0 an axis), for programs that measure distances. Logged values are stored in the first frame and are valid for
all frames.

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
BROKEN = (  # exceptions of gsd and numpy for files with wrong bytes
    RuntimeError, KeyError, IndexError, AttributeError, TypeError, ValueError, MemoryError, OverflowError,
)  # fmt: skip


class TrajectoryError(ValueError):
    """Error of a file that is not a trajectory, or is damaged; the message names the frame."""


class StepTakenError(ValueError):
    """Error of a frame that is neither after the last step of a file nor one of its frames.

    Attributes:
        frames: number of frames of the file with earlier steps.
    """

    def __init__(self, message: str, frames: int):
        super().__init__(message)
        self.frames = frames


class Trajectory:
    """A reporter that appends frames to a trajectory; for `Simulation.run(reporters=[...])`.

    From the first frame on no other process can append to the file, until `release` or the end of this
    object.

    Args:
        path: of the file, usually `.gsd`.
        interval: in steps, at least 1.
        append: append to an existing file, as for a run that is loaded from a checkpoint. A frame that is in
            the file already, to the last bit, is not written again. If the run differs from the earlier one,
            its frames replace those of the same and later steps, and the old file is kept as
            `<name>.before-<step>.gsd`, with a warning. This is done once for each simulation: later
            differences are an error, because they come from another run.

    Raises:
        TypeError: an argument of another class.
        ValueError: an interval below 1.
        FileExistsError: there is a file; not with append.
    """

    def __init__(self, path: str | Path, interval: int, append: bool = False):
        self.path, self.interval = (
            as_path("path", path),
            integer("interval of Trajectory", interval, unit="steps"),
        )
        self._appends = self._replaces = flag("append", append)
        self._claim: Claim | None = None
        self._replaced_by: ref | None = None  # the simulation that replaced frames
        self._require_new()

    def __repr__(self) -> str:
        options = f"interval={self.interval}, append={self._replaces}"
        return f"Trajectory({str(self.path)!r}, {options})"

    def _require_new(self) -> None:
        """Raise an error for an existing file, without append."""
        if not self._appends and os.path.lexists(self.path):
            raise FileExistsError(
                errno.EEXIST, "the file is there; give another name, or append=True to go on", str(self.path)
            )

    def report(self, simulation: Any) -> None:
        """Append a frame of a simulation; see `append_frame`.

        Raises:
            BlockingIOError: another process appends to the file.
            StepTakenError: another run has appended to the file.
        """
        self._require_new()
        state, step = simulation.state, simulation.step
        try:
            self._claim = _append(self.path, state, step, self._claim, new=not self._appends)
        except StepTakenError as taken:
            repeated = self._replaced_by is not None and self._replaced_by() is simulation
            if not self._replaces or repeated:
                raise
            with _name_step(self.path, step):
                kept, self._claim = _truncate(self.path, taken.frames, step, len(state))
            self._replaced_by = ref(simulation)
            warnings.warn(
                f"{self.path} held other frames from step {step} on; the file as it was is {kept}",
                RuntimeWarning,
                stacklevel=2,
            )
            self._claim = _append(self.path, state, step, self._claim)
        self._appends = True

    def release(self) -> None:
        """Allow other processes to append to the file, until the next report."""
        self._claim = None  # the lock ends if no other reporter of this process has the claim


def append_frame(path: str | Path, state: State, step: int) -> None:
    """Append a frame to a trajectory, or start a new file.

    The file is closed after each frame. If writing a frame fails, the earlier frames are kept.

    Args:
        path: of the file; if it is a link, its target is used.
        state: the particles, in any order.
        step: of the state, from 0. Steps increase from frame to frame; a frame that is in the file already,
            to the last bit, is not written again.

    Raises:
        TypeError: an argument of another class.
        StepTakenError: a step that is not after the file's last frame.
        TrajectoryError: a file that is not a trajectory, or is damaged.
        ValueError: another number of particles, other ids or another box than in the file.
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
        step: of the state.
        known: the claim under which the last frame was written, which then is not checked again.
        new: raise an error if there is a file.

    Returns:
        The claim.
    """
    frame = _frame(state, step)
    with _name_step(path, step):
        if not path.exists():
            try:
                return _create(path, frame)
            except FileExistsError:  # another process has created it
                if new:
                    raise
        claim = claimed(path)
        with _opened(path, "r+") as file:
            if len(file):
                _check_same(path, file, frame)
                if claim is not known:
                    _frame_of(path, file, len(file) - 1, len(state))  # raises if it cannot be read
            if not len(file) or _is_new(path, file, frame):
                if len(file):
                    frame.log = {}
                with _name_frame(path, len(file), "appended"):
                    file.append(frame)
        return claim


@contextmanager
def _name_step(path: Path, step: int) -> Iterator[None]:
    """Add the step of the frame to an OSError of writing it."""
    try:
        yield
    except OSError as error:
        reason = (
            f"{error.strerror or error}; the frame of step {step} was not written, those before it are kept"
        )
        raise OSError(error.errno, reason, str(path)) from error


@contextmanager
def _name_frame(path: Path, frame: int, done: str = "read") -> Iterator[None]:
    """Convert an error of gsd while a frame is read or appended to one that names the file and the frame.

    Raises:
        TrajectoryError: the frame cannot be read or appended.
    """
    try:
        yield
    except BROKEN as error:
        raise TrajectoryError(
            f"{path} is damaged: frame {frame} cannot be {done} ({error!r:.200}); allowed: a whole file; "
            "give another name, and copy the frames before it with gsd.hoomd if they are needed"
        ) from error


def _create(path: Path, frame: gsd.hoomd.Frame) -> Claim:
    """Write a new file with one frame, and claim it."""
    with replacing(path, new=True) as partial:
        with gsd.hoomd.open(partial.name, "w") as file:
            file.append(frame)
        return claim_of(partial)


def _opened(path: Path, mode: str) -> gsd.hoomd.HOOMDTrajectory:
    """Open a file as a trajectory.

    Raises:
        TrajectoryError: not a trajectory.
    """
    try:
        return gsd.hoomd.open(path, mode)
    except BROKEN as error:
        raise TrajectoryError(
            f"{path} is no trajectory to append to ({error}); allowed: a GSD file of the schema hoomd, or a "
            "new name"
        ) from error


def _frame(state: State, step: int) -> gsd.hoomd.Frame:
    """Make the frame of a state."""
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
    """Shift positions to the box's centre: (n, dim) float32, on a periodic axis in [-L/2, L/2) as rounded."""
    centred = (pos - np.array(state.box.lengths) / 2).astype(np.float32)
    half = np.array(state.box.lengths, np.float32) / 2
    over = (centred >= half) & np.array(state.box.periodic)
    return np.where(over, -half, np.maximum(centred, -half))


def _check_same(path: Path, file: gsd.hoomd.HOOMDTrajectory, frame: gsd.hoomd.Frame) -> None:
    """Raise an error for a frame of another system than that of the file.

    Raises:
        ValueError: other particles, or another box.
        TrajectoryError: a damaged file.
    """
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
    diameters, known = (_diameters(f) for f in (frame, first))
    if not np.array_equal(diameters, known):
        row = int((diameters != known).argmax())
        raise ValueError(
            f"{path} holds other particles: id {ids[row]} of diameter {known[row]:g} d, and in this frame "
            f"{diameters[row]:g} d; give another name"
        )
    box, known = (np.asarray(f.configuration.box, np.float32) for f in (frame, first))
    if not np.array_equal(box, known):
        raise ValueError(
            f"{path} holds a box of {known[:3].tolist()}, and this frame one of {box[:3].tolist()}; give "
            "another name"
        )


def _diameters(frame: gsd.hoomd.Frame) -> np.ndarray:
    """Return the diameters of the particles of a frame, (n,) float32; the default of the schema is 1."""
    given = frame.particles.diameter
    return np.ones(frame.particles.N, np.float32) if given is None else np.asarray(given, np.float32)


def _is_new(path: Path, file: gsd.hoomd.HOOMDTrajectory, frame: gsd.hoomd.Frame) -> bool:
    """Check whether a frame is after the last one of a file (True), or is one of the file (False).

    Raises:
        StepTakenError: neither.
    """
    step, last = frame.configuration.step, _step(path, file, len(file) - 1)
    if step > last:
        return True
    low, high = 0, len(file) - 1
    while low < high:
        middle = (low + high) // 2
        low, high = (middle + 1, high) if _step(path, file, middle) < step else (low, middle)
    found = _frame_of(path, file, low, frame.particles.N)
    if found.configuration.step == step and all(
        np.array_equal(getattr(found.particles, name), getattr(frame.particles, name))
        for name in ("position", "velocity")
    ):
        return False
    raise StepTakenError(
        f"{path} holds frames up to step {last}, and this is another of step {step}; allowed: a later step; "
        "give another name",
        low,
    )


def _truncate(path: Path, frames: int, step: int, n: int) -> tuple[Path, Claim]:
    """Replace a file by one with its first frames, and keep the old file.

    Returns:
        The path of the old file, and the claim on the new one.
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
            kept = _keep_copy(path, step)
            return kept, claim_of(partial)
    except BaseException:
        if kept is not None:
            kept.unlink(missing_ok=True)
        raise


def _keep_copy(path: Path, step: int) -> Path:
    """Link a file under another name, or copy it if the file system has no links; return the new path."""
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
    """Read a frame of n particles; another number is an error before the arrays are read.

    Raises:
        ValueError: a frame of another number of particles.
        TrajectoryError: the frame cannot be read.
    """
    with _name_frame(path, index):
        counts = {group: _count(file, index, group) for group in GROUPS}
    known = counts.pop("particles")
    if known != n:
        raise ValueError(f"{path} holds {known} particles, and this frame {n}; give another name")
    for group, count in counts.items():
        if count > path.stat().st_size:  # gsd would allocate memory before it finds the file too short
            raise TrajectoryError(
                f"{path} is damaged: frame {index} says that it has {count} {group}; allowed: what the file "
                "has room for; give another name"
            )
    with _name_frame(path, index):
        return file[index]


def _step(path: Path, file: gsd.hoomd.HOOMDTrajectory, index: int) -> int:
    """Read the step of a frame only; a step of 0 is not stored."""
    with _name_frame(path, index):
        name = "configuration/step"
        return int(file.file.read_chunk(index, name)[0]) if file.file.chunk_exists(index, name) else 0


def _count(file: gsd.hoomd.HOOMDTrajectory, index: int, group: str) -> int:
    """Read the size of a group in a frame; by default it is that of frame 0."""
    for frame in (index, 0):
        if file.file.chunk_exists(frame, f"{group}/N"):
            return int(file.file.read_chunk(frame, f"{group}/N")[0])
    return 0
