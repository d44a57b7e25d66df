"""Files of other programs: what an appended frame would inherit from the first frame is refused by name."""

import gsd.fl
import gsd.hoomd
import numpy as np
import pytest
from hypothesis import assume, given
from hypothesis import strategies as st

import md
from md.io.trajectory import CHUNKS, append_frame
from tests import tiers
from tests.md.io.test_trajectory import GSD_HAS_DOUBLE, Now, cloud, frames, needs_double

GROUPS = ("particles", "bonds", "angles", "dihedrals", "impropers", "constraints", "pairs")
SCHEMA = {f"{group}/{name}" for group in GROUPS for name in getattr(gsd.hoomd.Frame(), group)._default_value}
OTHERS = [
    *sorted(SCHEMA - CHUNKS),
    "state/hpmc/sphere/radius",
    "log/md/compute/ThermodynamicQuantities/pressure",
    "log/particles/force",
    "my/own",
]
N = 40


def foreign(path, prepare=None, raw=None, precision="single", later=False, log=()):
    """A file of another program with the particles and the box of `cloud`, one or two frames.

    Args:
        path: of the file.
        prepare: changes the last frame.
        raw: chunks that the last frame has besides: name to array.
        precision: of its floats.
        later: the last frame is a second one.
        log: logged values of all frames.
    """
    state, frame = cloud(), gsd.hoomd.Frame()
    frame.configuration.step, frame.configuration.box = 3, [9, 8, 7.5, 0, 0, 0]
    frame.particles.N = N
    frame.particles.position = state.pos - np.array(state.box.lengths) / 2
    frame.particles.velocity, frame.log = state.vel, dict(log)
    with gsd.hoomd.open(path, "w", **({} if precision == "single" else {"precision": precision})) as file:
        if later:
            file.append(frame)
            frame.configuration.step += 1
        if prepare:
            prepare(frame)
        for name, array in (raw or {}).items():
            file.file.write_chunk(name, array)
        file.append(frame)


def refused(path, message, state=None, step=7):
    """Both ways of appending refuse the file, and leave it as it was."""
    state, before = state or cloud(), path.read_bytes()
    for append in (
        lambda: append_frame(path, state, step),
        lambda: md.Trajectory(path, 5, append=True).report(Now(state, step)),
    ):
        with pytest.raises(ValueError, match=rf"run\.gsd .*{message}.*give .*another name"):
            append()
    assert path.read_bytes() == before
    assert [entry.name for entry in path.parent.iterdir()] == [path.name]


@pytest.fixture
def path(tmp_path):
    return tmp_path / "run.gsd"


@pytest.mark.quick
def test_a_file_of_another_program_of_the_same_system_is_continued(path):
    foreign(path)
    append_frame(path, cloud(seed=1), 7)
    append_frame(path.with_name("own.gsd"), cloud(seed=1), 7)
    (alone,), last = frames(path.with_name("own.gsd")), frames(path)[-1]
    for name in gsd.hoomd.ParticleData._default_value:
        assert np.array_equal(getattr(last.particles, name), getattr(alone.particles, name)), name
    assert np.array_equal(last.configuration.box, alone.configuration.box)


@pytest.mark.parametrize("later", [False, True])
@pytest.mark.parametrize("name", OTHERS)
def test_a_chunk_that_no_frame_of_ours_has_is_refused_by_name(name, later, path):
    array = np.full(N, 2, np.uint32) if name.split("/")[-1] != "N" else np.zeros(1, np.uint32)
    foreign(path, raw={name: array}, later=later)
    refused(path, f"frame {int(later)} holds the chunk '{name}'; allowed: configuration/box, ")


@pytest.mark.parametrize(
    ("name", "array"), [("periodic", np.ones(3, np.uint8)), ("particles/id", np.arange(N))]
)
def test_a_log_that_begins_in_a_later_frame_is_refused(name, array, path):
    """Readers take the log of an appended frame from frame 0, and fail if frame 0 has none of that name."""
    foreign(path, lambda frame: frame.log.update({name: array}), later=True)
    refused(path, f"frame 1 holds the chunk 'log/{name}', and frame 0 does not")


@tiers.examples(20)
@given(
    name=st.text("aZ/_ .-é粒", min_size=1, max_size=15) | st.sampled_from(sorted(CHUNKS)).map("{}2".format)
)
def test_no_name_passes(name, tmp_path_factory):
    assume(name not in CHUNKS)
    path = tmp_path_factory.mktemp("any") / "run.gsd"
    foreign(path, raw={name: np.ones(1)})
    refused(path, "is of another program: frame 0 holds the chunk")


def test_other_masses_and_types_are_refused(path):
    def prepare(frame):
        frame.particles.types, frame.particles.typeid = ["A", "B"], [0, 1] * 20
        frame.particles.mass = np.full(N, 2.0)

    foreign(path, prepare)
    refused(path, "holds the chunk 'particles/(types|typeid|mass)'; ")


def set_box(*box):
    return lambda frame: setattr(frame.configuration, "box", box)


@pytest.mark.parametrize(
    ("prepare", "message"),
    [
        (set_box(9, 8, 7.5, 0.3, 0, 0), r"box of \[9.0, 8.0, 7.5, 0.3, 0.0, 0.0\], three .* tilts"),
        (set_box(9, 8, 7.5, 0, 0, -1), r"7.5, 0.0, 0.0, -1.0\].*one of \[9.0, 8.0, 7.5, 0.0, 0.0, 0"),
        (set_box(9, 8, 7.25, 0, 0, 0), r"box of \[9.0, 8.0, 7.25, 0.0, 0.0, 0.0\]"),
        (lambda f: setattr(f.configuration, "dimensions", 2), "of 2 dimensions, and this frame one of 3"),
        (lambda f: f.log.update(periodic=np.uint8([1, 0, 1])), r"periodic = \[1, 0, 1\], and .* \[1, 1, 1\]"),
        (lambda f: f.log.update(periodic=np.uint8([1, 1])), r"log/periodic is of shape \(2,\); .*\(3,\)"),
        (lambda f: f.log.update({"particles/id": np.arange(N) + 1}), "id 1, and this frame 0"),
        (lambda f: f.log.update({"particles/id": np.arange(3)}), r"log/particles/id is of shape \(3,\)"),
        (lambda f: setattr(f.particles, "diameter", np.full(N, 2)), "id 0 of diameter 2 d, and .* 1 d"),
    ],
)  # fmt: skip
@pytest.mark.parametrize("later", [False, True])
def test_another_system_is_refused(prepare, message, later, path):
    """In the first frame or in the last one."""
    foreign(path, prepare, later=later, log={"periodic": np.ones(3, np.uint8), "particles/id": np.arange(N)})
    refused(path, message)


def test_a_flat_box_of_three_dimensions_is_another_system(path):
    state = cloud(2)
    append_frame(path, state, 0)
    with gsd.hoomd.open(path) as file:
        frame = file[0]
    frame.configuration.dimensions, frame.log = 3, {}
    with gsd.hoomd.open(path, "w") as file:
        file.append(frame)
    refused(path, "a system of 3 dimensions, and this frame one of 2", state)


@pytest.mark.parametrize("flags", [(True, False, True), (False, False, False)])
def test_a_file_without_flags_is_taken_as_periodic(flags, path):
    """A run with walls would otherwise be read as one of a periodic box."""
    foreign(path)
    refused(path, r"periodic = \[1, 1, 1\], and this frame one of \[", cloud(periodic=flags))


def test_another_run_with_other_axes_is_refused(path):
    append_frame(path, cloud(), 0)
    refused(path, r"periodic = \[1, 1, 1\], and .*\[1, 1, 0\]", cloud(periodic=(True, True, False)))


@pytest.mark.parametrize("name", ["position", "velocity", "diameter"])
@pytest.mark.parametrize("dtype", [np.float64, np.int32, np.uint8])
@pytest.mark.parametrize("later", [False, True])
def test_floats_of_another_class_are_refused(name, dtype, later, path):
    values = np.ones((N, 3) if name != "diameter" else N, dtype)
    foreign(path, lambda f: setattr(f.particles, name, None), {f"particles/{name}": values}, later=later)
    refused(path, f"holds particles/{name} of {np.dtype(dtype)}, and this frame is of float32")


@needs_double
def test_a_file_in_double_precision_is_continued_in_double(path):
    foreign(path, precision="double")
    refused(path, "of float64, and this frame is of float32 .precision='single'")
    append_frame(path, cloud(seed=1), 7, "double")
    assert np.array_equal(frames(path)[-1].particles.velocity, cloud(seed=1).vel)


@pytest.mark.parametrize(
    ("application", "schema", "version", "allowed"),
    [
        ("HOOMD-blue 5.3", "hoomd", [1, 4], True),
        ("other", "hoomd", [1, 0], True),
        ("HOOMD-blue 9", "hoomd", [9, 0], False),
        ("other", "hoomd", [0, 9], False),
        ("other", "other", [1, 4], False),
    ],
)
def test_the_schema_decides_not_the_application(application, schema, version, allowed, path):
    with gsd.fl.open(path, "w", application=application, schema=schema, schema_version=version):
        pass
    if not allowed:
        with pytest.raises(
            ValueError, match=r"run\.gsd is no trajectory .*schema.*allowed: a GSD file of the"
        ):
            append_frame(path, cloud(), 0)
        return
    if GSD_HAS_DOUBLE:
        with pytest.raises(ValueError, match=r"run\.gsd is no trajectory .*schema 1.x .*double.*a new name"):
            append_frame(path, cloud(), 0, "double")
    append_frame(path, cloud(), 0)
    append_frame(path, cloud(seed=1), 1)
    assert len(frames(path)) == 2
