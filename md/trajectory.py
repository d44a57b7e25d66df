"""Trajectories: frames in a GSD file of the schema hoomd, which OVITO and freud open.

What a file holds. Positions (d), velocities (d per time unit, at the time of the positions) and the box as
float32, centred on the origin, as the schema has it: a box of length L spans [-L/2, L/2). Particles stand in
the order of their ids, whatever their order in memory: a row is the same particle in every frame. Where the
ids are not 0 .. n - 1, they are logged as `particles/id`. Diameter and mass are 1 and the type is "A", the
schema's defaults, but for the diameters of particles that have radii. In 2D `dimensions` is 2, z is 0 and so
is the box's third length. The schema has no open axes, readers take every axis for periodic: the flags are
logged as `periodic` (1 or 0 an axis), for who measures distances. What is logged stands in the first frame
and holds for all.

GSD: https://gsd.readthedocs.io
"""

from __future__ import annotations

import errno
import os
import shutil
import warnings
from pathlib import Path
from typing import Any

import gsd.hoomd
import numpy as np

from md.reporter import checked
from md.state import State


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

    Args:
        path: of the file, usually `.gsd`.
        interval: in steps, at least 1.
        append: go on with a file that is there, as a run does that is loaded from a checkpoint. A frame that
            the file has already, to the last bit, is not written again. Where the run does not repeat the
            one before to the bit, its frames take the place of those of the same and later steps, and the
            file as it was is kept beside it, as `<name>.before-<step>.gsd`; a warning says so.

    Raises:
        ValueError: an interval that is none.
        FileExistsError: the file is there; not with append.
    """

    def __init__(self, path: str | Path, interval: int, append: bool = False):
        self.path, self.interval = Path(path), interval
        self._appends = self._restarts = append
        checked([self])
        self._refuse_another()

    def _refuse_another(self) -> None:
        if not self._appends and os.path.lexists(self.path):
            raise FileExistsError(
                errno.EEXIST, "the file is there; give another name, or append=True to go on", str(self.path)
            )

    def report(self, simulation: Any) -> None:
        """Append a frame; see `append_frame`."""
        self._refuse_another()
        state, step = simulation.state, simulation.step
        try:
            append_frame(self.path, state, step)
        except StepTakenError as taken:
            if not self._restarts:
                raise
            kept = _cut(self.path, taken.frames, step)
            warnings.warn(
                f"{self.path} held other frames from step {step} on; the file as it was is {kept}",
                RuntimeWarning,
                stacklevel=2,
            )
            append_frame(self.path, state, step)
        self._appends = True


def append_frame(path: str | Path, state: State, step: int) -> None:
    """Append a frame to a trajectory; begins one where there is no file.

    The file is closed after each frame, and holds all frames before if writing one fails.

    Args:
        path: of the file.
        state: the particles, in any order.
        step: of the state. Steps increase from frame to frame; a frame that the file has already, to the last
            bit, is not written again.

    Raises:
        StepTakenError: a step that is not after the file's last frame.
        ValueError: another number of particles, other ids or another box than the file has, or a file that
            is no such trajectory.
        OSError: the frame cannot be written.
    """
    path, frame = Path(path), _frame(state, step)
    try:
        if not path.exists():
            _begin(path, frame)
            return
        with _opened(path, "r+") as file:
            if len(file):
                _check_same(path, file, frame)
            if not len(file) or _is_new(path, file, frame):
                if len(file):
                    frame.log = {}
                file.append(frame)
    except OSError as error:
        told = (
            f"{error.strerror or error}; the frame of step {step} was not written, those before it are kept"
        )
        raise OSError(error.errno, told, str(path)) from error


def _begin(path: Path, frame: gsd.hoomd.Frame) -> None:
    partial = path.with_name(f".{path.name}.partial")
    try:
        with gsd.hoomd.open(partial, "w") as file:
            file.append(frame)
        os.replace(partial, path)
    except BaseException:
        partial.unlink(missing_ok=True)
        raise


def _opened(path: Path, mode: str) -> gsd.hoomd.HOOMDTrajectory:
    try:
        return gsd.hoomd.open(path, mode)
    except RuntimeError as error:
        raise ValueError(
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
    first = file[0]
    n, known = frame.particles.N, int(first.particles.N)
    if n != known:
        raise ValueError(f"{path} holds {known} particles, and this frame {n}; give another name")
    ids, known = (f.log.get("particles/id", np.arange(n)) for f in (frame, first))
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
    step, last = frame.configuration.step, _step(file, len(file) - 1)
    if step > last:
        return True
    low, high = 0, len(file) - 1
    while low < high:
        middle = (low + high) // 2
        low, high = (middle + 1, high) if _step(file, middle) < step else (low, middle)
    there = file[low]
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


def _cut(path: Path, frames: int, step: int) -> Path:
    """Keep the first frames of a file, and the file as it was under a name of its own, which is returned."""
    kept, partial = path.with_name(f"{path.stem}.before-{step}.gsd"), path.with_name(f".{path.name}.partial")
    number = 1
    while kept.exists():
        number += 1
        kept = path.with_name(f"{path.stem}.before-{step}-{number}.gsd")
    try:
        with _opened(path, "r") as file, gsd.hoomd.open(partial, "w") as other:
            for index in range(frames):
                frame = file[index]
                if index:
                    frame.log = {}
                other.append(frame)
        try:
            os.link(path, kept)
        except OSError:  # a file system without links
            shutil.copyfile(path, kept)
        os.replace(partial, path)
    except BaseException:
        partial.unlink(missing_ok=True)
        raise
    return kept


def _step(file: gsd.hoomd.HOOMDTrajectory, index: int) -> int:
    """The step of a frame, without reading the rest of it; a 0 is not written."""
    name = "configuration/step"
    return int(file.file.read_chunk(index, name)[0]) if file.file.chunk_exists(index, name) else 0
