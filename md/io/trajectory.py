"""Trajectories: frames in a GSD file of the schema hoomd, which OVITO and freud open.

Contents. Positions (d) and velocities (d per time unit, at the time of the positions) are centred on the
origin as the schema requires: a box of length L spans [-L/2, L/2) on a periodic axis and [-L/2, L/2] between
walls. Particles beyond an open side are stored where they are. Particles are in the order of their ids, not
in memory order: a row is the same particle in every frame. Ids other than 0 .. n - 1 are logged as
`particles/id`. Diameter and mass are 1 and the type is "A", the defaults of the schema, except for the
diameters of particles with radii. In 2D `dimensions` is 2, and z and the third length of the box are 0. The
schema has no open axes, and readers take every axis as periodic: the flags are logged as `periodic` (1 or 0
an axis), for programs that measure distances. Logged values are stored in the first frame and are valid for
all frames.

Precision. All numbers are float32 ("single") or float64 ("double", which needs gsd 5 to write and to read).
Single rounds a coordinate by up to 6e-8 of its distance from the centre, which is 3e-8 L at a side and more
beyond an open one: two discs 1.001 d apart in a box of 1e6 d are stored 1 d apart. Velocities and sides are
rounded by up to 6e-8 of their values. Coordinates from the centre and velocities below 1.2e-38 are rounded to
multiples of 1.4e-45, such as 0; sides below it are refused.
Double stores the run's velocities and box exactly, and positions less L/2 in float64.

Files of other programs. GSD takes from the first frame what a later one does not store. So a frame is
appended only to a file without other chunks than those named here, of which the first frame logs all that a
later one logs, and the first and the last frame are of the same system.

GSD: https://gsd.readthedocs.io
"""

from __future__ import annotations

import errno
import inspect
import itertools
import os
import shutil
import warnings
from bisect import bisect_left
from collections.abc import Iterator
from contextlib import contextmanager, suppress
from pathlib import Path
from typing import Any
from weakref import ref

import gsd.hoomd
import gsd.version
import numpy as np

from md.checks import flag, instance, integer, word
from md.checks import path as as_path
from md.io.atomic_write import Claim, claim_of, claimed, replacing
from md.io.gsd_file import BROKEN, TrajectoryError, check_blocks
from md.particles.state import State

MOST_STEPS = 2**63 - 1
DTYPES: dict[str, np.dtype] = {"single": np.dtype(np.float32), "double": np.dtype(np.float64)}
FLOATS = ("configuration/box", "particles/position", "particles/velocity", "particles/diameter")
CHUNKS = {*FLOATS, "configuration/step", "configuration/dimensions", "particles/N", "log/periodic",
          "log/particles/id"}  # fmt: skip  # all that a frame may store


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
        precision: "single" (float32) or "double" (float64), also that of a file appended to. Single rounds
            coordinates by up to 6e-8 of their distance from the centre of the box (`md.io.trajectory`).

    Raises:
        TypeError: an argument of another class.
        ValueError: an interval below 1, an unknown precision, or "double" with a gsd below 5.
        FileExistsError: there is a file; not with append.
    """

    def __init__(self, path: str | Path, interval: int, append: bool = False, precision: str = "single"):
        self.path = as_path("path", path)
        self.interval = integer("interval of Trajectory", interval, unit="steps")
        self._appends = self._replaces = flag("append", append)
        self._precision = _checked(precision)
        self._claim: Claim | None = None
        self._replaced_by: ref | None = None  # the simulation that replaced frames
        self._require_new()

    def __repr__(self) -> str:
        options = f"interval={self.interval}, append={self._replaces}, precision={self._precision!r}"
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
            ValueError: the file holds another system, or what no frame of this package has.
        """
        self._require_new()
        step = simulation.step
        frame = _frame(simulation.state, step, self._precision)
        try:
            self._claim = _append(self.path, frame, self._precision, self._claim, new=not self._appends)
        except StepTakenError as taken:
            repeated = self._replaced_by is not None and self._replaced_by() is simulation
            if not self._replaces or repeated:
                raise
            with _name_step(self.path, step):
                kept, self._claim = _truncate(self.path, taken.frames, frame, self._precision)
            self._replaced_by = ref(simulation)
            warnings.warn(
                f"{self.path} held other frames from step {step} on; the file as it was is {kept}",
                RuntimeWarning,
                stacklevel=2,
            )
            self._claim = _append(self.path, frame, self._precision, self._claim)
        self._appends = True

    def release(self) -> None:
        """Allow other processes to append to the file, until the next report."""
        self._claim = None  # the lock ends if no other reporter of this process has the claim


def append_frame(path: str | Path, state: State, step: int, precision: str = "single") -> None:
    """Append a frame to a trajectory, or start a new file.

    The file is closed after each frame. If writing a frame fails, the earlier frames are kept.

    Args:
        path: of the file; if it is a link, its target is used.
        state: the particles, in any order.
        step: of the state, from 0. Steps increase from frame to frame; a frame that is in the file already,
            to the last bit, is not written again.
        precision: "single" (float32) or "double" (float64), as the file's.

    Raises:
        TypeError: an argument of another class.
        StepTakenError: a step that is not after the file's last frame.
        TrajectoryError: a file that is not a trajectory, or is damaged.
        ValueError: other particles, another box, other axes or another precision than in the file; a file
            with chunks that no frame of this package has; a number that the precision cannot hold; an unknown
            precision, or "double" with a gsd below 5.
        BlockingIOError: the file is the trajectory of a run in another process.
        OSError: the frame cannot be written.
    """
    instance("state", state, State, "an md.State")
    path, step, precision = as_path("path", path), integer("step", step, 0, MOST_STEPS), _checked(precision)
    _append(path, _frame(state, step, precision), precision)


def _checked(precision: str) -> str:
    """Check a precision, and that the gsd package can write it."""
    precision = word("precision", precision, DTYPES)
    if precision == "double" and "precision" not in inspect.signature(gsd.hoomd.open).parameters:
        raise ValueError(
            f"precision = 'double' with version {gsd.version.version} of the package gsd; allowed: 'single', "
            "or gsd 5.0 or later"
        )
    return precision


def _append(
    path: Path, frame: gsd.hoomd.Frame, precision: str, known: Claim | None = None, new: bool = False
) -> Claim:
    """Append a frame, and claim the file for this process.

    Args:
        path: of the file.
        frame: of a state.
        precision: of the frame.
        known: the claim under which the last frame was written, which then is not checked again.
        new: raise an error if there is a file.

    Returns:
        The claim.
    """
    with _name_step(path, frame.configuration.step):
        if not path.exists():
            try:
                return _create(path, frame, precision)
            except FileExistsError:  # another process has created it
                if new:
                    raise
        claim = claimed(path)
        with _opened(path, "r+", precision) as file:
            if len(file):
                _check_chunks(path, file)
                for index in sorted({0, 0 if claim is known else len(file) - 1}):
                    _check_same(path, file, index, frame, precision)
            if not len(file) or _is_new(path, file, frame):
                if len(file):
                    frame.log = {}
                with _name_frame(path, len(file), "appended"):
                    _write(file, frame)
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


def _create(path: Path, frame: gsd.hoomd.Frame, precision: str) -> Claim:
    """Write a new file with one frame, and claim it."""
    with replacing(path, new=True) as partial:
        with _open(partial.name, "w", precision) as file:
            _write(file, frame)
        return claim_of(partial)


def _open(path: str | Path, mode: str, precision: str) -> gsd.hoomd.HOOMDTrajectory:
    """Open a file; versions of gsd below 5 know single precision only, and no name for it."""
    named = {} if precision == "single" else {"precision": precision}
    return gsd.hoomd.open(path, mode, **named)


def _write(file: gsd.hoomd.HOOMDTrajectory, frame: gsd.hoomd.Frame) -> None:
    """Write a frame after the last one; in double precision the box too, which gsd rounds to single."""
    box = frame.configuration.box
    if not len(file) and np.asarray(box).dtype == np.float64:
        file.file.write_chunk("configuration/box", np.asarray(box))
        frame.configuration.box = None
    file.append(frame)
    frame.configuration.box = box


def _opened(path: Path, mode: str, precision: str) -> gsd.hoomd.HOOMDTrajectory:
    """Open a file as a trajectory.

    Raises:
        TrajectoryError: not a trajectory.
    """
    try:
        check_blocks(path)
        return _open(path, mode, precision)
    except BROKEN as error:
        raise TrajectoryError(
            f"{path} is no trajectory to append to ({error}); allowed: a GSD file of the schema hoomd, or a "
            "new name"
        ) from error


def _frame(state: State, step: int, precision: str) -> gsd.hoomd.Frame:
    """Make the frame of a state.

    Raises:
        ValueError: a number that the precision cannot hold.
    """
    ordered, box, dtype = state.by_id(), state.box, DTYPES[precision]
    frame = gsd.hoomd.Frame()
    frame.configuration.step, frame.configuration.dimensions = step, box.dim
    lengths = _sides(np.array(box.lengths), ordered.pos.dtype).astype(np.float64)  # those of the run
    frame.configuration.box = np.zeros(6, dtype)
    frame.configuration.box[: box.dim] = _sides(lengths, dtype)
    frame.particles.N = len(state)
    frame.particles.position, frame.particles.velocity = np.zeros((2, len(state), 3), dtype)
    frame.particles.position[:, : box.dim] = _centred(ordered.pos, lengths, box.periodic, dtype)
    frame.particles.velocity[:, : box.dim] = _rounded("velocity", ordered.vel, dtype)
    if ordered.radius is not None:
        frame.particles.diameter = 2 * ordered.radius.astype(dtype)
    frame.log["periodic"] = np.array(box.periodic, np.uint8)
    if not np.array_equal(ordered.id, np.arange(len(state))):
        frame.log["particles/id"] = ordered.id
    return frame


def _centred(pos: np.ndarray, lengths: np.ndarray, periodic: tuple[bool, ...], dtype: np.dtype) -> np.ndarray:
    """Shift positions to the centre of the box: (n, dim), on a periodic axis in [-L/2, L/2) as rounded."""
    half = lengths / 2
    centred, side = _rounded("position from the centre of the box", pos - half, dtype), half.astype(dtype)
    return np.where((centred >= side) & np.array(periodic), -side, centred)


def _sides(lengths: np.ndarray, dtype: np.dtype) -> np.ndarray:
    """Round the sides of a box; a side that becomes 0 or loses digits, because it is tiny, is an error."""
    return _rounded("length of the box", lengths, dtype, float(np.finfo(dtype).smallest_normal))


def _rounded(name: str, values: np.ndarray, dtype: np.dtype, least: float = -np.inf) -> np.ndarray:
    """Round numbers to a precision.

    Raises:
        ValueError: a number that is not stored exactly, and becomes infinite or below the least.
    """
    most = float(np.finfo(dtype).max)
    with np.errstate(over="ignore", under="ignore"):
        rounded = values.astype(dtype)
    wrong = (rounded != values) & np.isfinite(values) & ((rounded < least) | np.isinf(rounded))
    if wrong.any():
        raise ValueError(
            f"{name} {values[wrong][0]:g}; allowed in {dtype}: {max(least, -most):g} to {most:g}; give "
            "precision='double', of a run in float64"
        )
    return rounded


def _check_same(
    path: Path, file: gsd.hoomd.HOOMDTrajectory, index: int, frame: gsd.hoomd.Frame, precision: str
) -> None:
    """Raise an error for a frame of another system than that of a frame of the file.

    Args:
        path: of the file.
        file: opened.
        index: of its frame.
        frame: to be appended.
        precision: of the frame to be appended.

    Raises:
        ValueError: other particles, another box, other axes or another precision.
        TrajectoryError: a damaged file.
    """
    n, dim = frame.particles.N, frame.configuration.dimensions
    place, there = f"frame {index} of {path}", _frame_of(path, file, index, n)
    _check_precision(place, file, index, there, precision)
    ids, known = (_logged(place, f, "particles/id", np.arange(n)) for f in (frame, there))
    if not np.array_equal(ids, known):
        row = int((ids != known).argmax())
        raise _differs(place, f"other particles: id {known[row]}", ids[row])
    diameters, known = (_diameters(f) for f in (frame, there))
    if not np.array_equal(diameters, known):
        row = int((diameters != known).argmax())
        theirs = f"other particles: id {ids[row]} of diameter {known[row]:g} d"
        raise _differs(place, theirs, f"one of {diameters[row]:g} d")
    box, known = (np.asarray(f.configuration.box) for f in (frame, there))
    if not np.array_equal(box, known):
        theirs, ours = (", ".join(map(str, numbers)) for numbers in (known, box))
        raise _differs(place, f"a box of [{theirs}], three lengths in d and three tilts", f"one of [{ours}]")
    if there.configuration.dimensions != dim:
        raise _differs(place, f"a system of {there.configuration.dimensions} dimensions", f"one of {dim}")
    axes, known = (_logged(place, f, "periodic", np.ones(dim, np.uint8)) for f in (frame, there))
    if not np.array_equal(axes, known):
        raise _differs(place, f"a box of flags periodic = {known.tolist()}", f"one of {axes.tolist()}")


def _differs(place: str, theirs: str, ours: object) -> ValueError:
    """Return the error for a frame of another system than that of a frame of the file."""
    return ValueError(f"{place} holds {theirs}, and this frame {ours}; give another name")


def _check_chunks(path: Path, file: gsd.hoomd.HOOMDTrajectory) -> None:
    """Raise an error for a chunk that no frame of this package has, or a log that begins after frame 0.

    An appended frame would get that chunk from frame 0, and frames that are copied could lose it. If frame 0
    does not log what another frame logs, gsd cannot read an appended frame.

    Raises:
        ValueError: such a chunk.
        TrajectoryError: a damaged file.
    """
    with _name_frame(path, 0):
        exists = file.file.chunk_exists
        known = {name for name in CHUNKS if not name.startswith("log/") or exists(0, name)}
        others = [name for name in file.file.find_matching_chunk_names("") if name not in known]
        found = ((k, name) for name in others for k in range(len(file)) if exists(k, name))
        index, name = next(found, (0, None))
    if name is not None:
        late = ", and frame 0 does not" if name in CHUNKS else ""
        raise ValueError(
            f"{path} is of another program: frame {index} holds the chunk {name!r}{late}; allowed: "
            f"{', '.join(sorted(CHUNKS))}, those of log/ from frame 0 on; give another name"
        )


def _check_precision(
    place: str, file: gsd.hoomd.HOOMDTrajectory, index: int, there: gsd.hoomd.Frame, precision: str
) -> None:
    """Raise an error for floats of another precision in a frame of a file.

    Raises:
        ValueError: such a chunk.
    """
    stored = [name for name in FLOATS if file.file.chunk_exists(index, name)]
    for name in stored or FLOATS[:1]:  # what is not stored is single, or as in frame 0
        group, array = name.split("/")
        found = np.asarray(getattr(getattr(there, group), array)).dtype
        if found != DTYPES[precision]:
            other = next((f"precision={p!r} or " for p, dtype in DTYPES.items() if dtype == found), "")
            raise ValueError(
                f"{place} holds {name} of {found}, and this frame is of {DTYPES[precision]} "
                f"(precision={precision!r}); give {other}another name"
            )


def _logged(place: str, frame: gsd.hoomd.Frame, name: str, default: np.ndarray) -> np.ndarray:
    """Return a logged value of a frame, or its default.

    Raises:
        TrajectoryError: another shape than that of the default.
    """
    found = frame.log.get(name, default)
    if np.shape(found) != default.shape:
        raise TrajectoryError(
            f"{place} is damaged: log/{name} is of shape {np.shape(found)}; allowed: {default.shape}; give "
            "another name"
        )
    return found


def _diameters(frame: gsd.hoomd.Frame) -> np.ndarray:
    """Return the diameters of the particles of a frame, (n,); the default of the schema is 1."""
    given = frame.particles.diameter
    return np.ones(frame.particles.N, np.float32) if given is None else np.asarray(given)


def _is_new(path: Path, file: gsd.hoomd.HOOMDTrajectory, frame: gsd.hoomd.Frame) -> bool:
    """Check whether a frame is after the last one of a file (True), or is one of the file (False).

    Raises:
        StepTakenError: neither.
    """
    step, last = frame.configuration.step, _step(path, file, len(file) - 1)
    if step > last:
        return True
    low = bisect_left(range(len(file) - 1), step, key=lambda index: _step(path, file, index))
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


def _truncate(path: Path, frames: int, new: gsd.hoomd.Frame, precision: str) -> tuple[Path, Claim]:
    """Replace a file by one with its first frames, and keep the old file.

    Args:
        path: of the file.
        frames: to keep.
        new: the frame that takes the place of the others.
        precision: of all frames.

    Returns:
        The path of the old file, and the claim on the new one.
    """
    kept = None
    try:
        with replacing(path) as partial:
            with _opened(path, "r", precision) as file, _open(partial.name, "w", precision) as other:
                for index in range(frames):
                    frame = _frame_of(path, file, index, new.particles.N)
                    if index:
                        frame.log = {}
                    _write(other, frame)
            kept = _keep_copy(path, new.configuration.step)
            return kept, claim_of(partial)
    except BaseException:
        if kept is not None:
            kept.unlink(missing_ok=True)
        raise


def _keep_copy(path: Path, step: int) -> Path:
    """Link a file under another name, or copy it if the file system has no links; return the new path."""
    place = os.path.realpath(path)
    more = itertools.chain([""], (f"-{number}" for number in itertools.count(2)))
    while True:
        kept = path.with_name(f"{path.stem}.before-{step}{next(more)}.gsd")
        with suppress(FileExistsError):
            try:
                os.link(place, kept)
            except FileExistsError:
                raise
            except OSError:  # a file system without links
                with replacing(kept, new=True) as copy, open(place, "rb") as file:
                    shutil.copyfileobj(file, copy)
            return kept


def _frame_of(path: Path, file: gsd.hoomd.HOOMDTrajectory, index: int, n: int) -> gsd.hoomd.Frame:
    """Read a frame of n particles; another number is an error before the arrays are read.

    Raises:
        ValueError: a frame of another number of particles.
        TrajectoryError: the frame cannot be read.
    """
    with _name_frame(path, index):
        known = _stored(file, "particles/N", index, 0)  # by default that of frame 0
    if known != n:
        raise _differs(f"frame {index} of {path}", f"{known} particles", n)
    with _name_frame(path, index):
        return file[index]


def _step(path: Path, file: gsd.hoomd.HOOMDTrajectory, index: int) -> int:
    """Read the step of a frame only; a step of 0 is not stored."""
    with _name_frame(path, index):
        return _stored(file, "configuration/step", index)


def _stored(file: gsd.hoomd.HOOMDTrajectory, name: str, *frames: int) -> int:
    """Read a number from the first of some frames that stores it; 0 if none does."""
    of = next((frame for frame in frames if file.file.chunk_exists(frame, name)), None)
    return 0 if of is None else int(file.file.read_chunk(of, name)[0])
