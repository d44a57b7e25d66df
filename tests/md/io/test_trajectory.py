"""Trajectories: frames read by the gsd package equal the states of the simulation, particle by particle."""

import errno
import inspect
import itertools
import os
import resource

import gsd.hoomd
import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

import md
from md.io.trajectory import append_frame
from tests import tiers


def cloud(dim=3, n=40, periodic=True, seed=0, ids=None) -> md.State:
    generator = np.random.default_rng(seed)
    box = md.Box((9.0, 8.0, 7.5)[:dim], periodic)
    pos = generator.random((n, dim)) * box.lengths
    return md.State(pos, generator.normal(size=(n, dim)), box, ids)


def frames(path) -> list[gsd.hoomd.Frame]:
    with gsd.hoomd.open(path) as file:
        return list(file)


class Now:
    """Stand-in for a simulation at a step, with the attributes that a trajectory reads."""

    def __init__(self, state, step):
        self.state, self.step = state, step


@pytest.fixture
def path(tmp_path):
    """Write a trajectory of two frames."""
    for step in (0, 10):
        append_frame(tmp_path / "run.gsd", cloud(seed=step), step)
    return tmp_path / "run.gsd"


@pytest.mark.parametrize(
    ("search", "precision"),
    [
        tiers.quick(md.search.Coherent("hilbert"), "float64"),
        ("linked", "float32"),
        ("verlet", "float64"),
        tiers.nightly("linked", "float64"),
        tiers.nightly(md.search.Coherent("hilbert"), "float32"),
        tiers.nightly("verlet", "float32"),
    ],
)
def test_a_row_is_the_same_particle_in_every_frame_though_memory_is_sorted(
    search, precision, backend, tmp_path
):
    states = []

    class Keeper:
        interval = 10

        def report(self, simulation):
            states.append((simulation.step, simulation.state))

    gas = md.scenes.benchmark_gas(300, 0.3)
    gas = gas.take(np.random.default_rng(1).permutation(300))
    simulation = md.Simulation(
        gas,
        md.scenes.BENCHMARK_LAW,
        search=search,
        dt=md.scenes.BENCHMARK_DT,
        backend=backend,
        precision=precision,
    )
    simulation.run(35, reporters=[md.Trajectory(tmp_path / "run.gsd", 10), Keeper()])
    simulation.write(tmp_path / "run.gsd")
    states.append((35, simulation.state))
    read = frames(tmp_path / "run.gsd")
    assert [frame.configuration.step for frame in read] == [0, 10, 20, 30, 35]
    for frame, (_, state) in zip(read, states, strict=True):
        state, half = state.by_id(), np.float32(gas.box.lengths) / 2
        assert frame.particles.N == 300
        assert frame.configuration.dimensions == 3
        assert frame.configuration.box.tolist() == [*np.float32(gas.box.lengths), 0, 0, 0]
        assert frame.particles.position.dtype == frame.particles.velocity.dtype == np.float32
        assert (np.abs(frame.particles.position) <= half).all()
        np.testing.assert_allclose(frame.particles.position + half, state.pos, atol=2e-6)
        assert np.array_equal(frame.particles.velocity, np.float32(state.vel))
        assert set(frame.particles.diameter) == set(frame.particles.mass) == {1.0}
        assert (frame.particles.types, set(frame.particles.typeid)) == (["A"], {0})
        assert set(frame.log) == {"periodic"}
    assert not np.array_equal(read[1].particles.position, read[0].particles.position)


@pytest.mark.quick
def test_in_2d_the_third_axis_is_flat(tmp_path):
    append_frame(tmp_path / "run.gsd", cloud(2), 0)
    (frame,) = frames(tmp_path / "run.gsd")
    assert frame.configuration.dimensions == 2
    assert frame.configuration.box.tolist() == [9, 8, 0, 0, 0, 0]
    assert not frame.particles.position[:, 2].any()
    assert not frame.particles.velocity[:, 2].any()
    assert frame.particles.velocity[:, :2].any(axis=1).all()


def test_axes_that_are_open_and_ids_that_do_not_count_up_are_logged_for_all_frames(tmp_path):
    ids = np.random.default_rng(2).permutation(40) * 3 + 5
    for step in (3, 8):
        append_frame(tmp_path / "run.gsd", cloud(periodic=(True, False, True), seed=step, ids=ids), step)
    for frame in frames(tmp_path / "run.gsd"):
        assert frame.log["periodic"].tolist() == [1, 0, 1]
        assert frame.log["particles/id"].tolist() == sorted(ids)
    last = cloud(periodic=(True, False, True), seed=8, ids=ids).by_id()
    half = np.array(last.box.lengths) / 2
    np.testing.assert_allclose(frame.particles.position, last.pos - half, atol=1e-6)


GSD_HAS_DOUBLE = "precision" in inspect.signature(gsd.hoomd.open).parameters  # from gsd 5 on
needs_double = pytest.mark.skipif(not GSD_HAS_DOUBLE, reason="gsd 4 writes single precision only")
SIDES = ("open", "walls", "periodic")


def at_sides(sides, dtype, ids=None) -> md.State:
    """Centres at both sides of each axis, one unit in the last place inside them, and beyond open ones."""
    lengths = (9.1, 8.3, 7.7)[: len(sides)]
    along = []
    for length, side in zip(np.array(lengths, dtype), sides, strict=True):
        found = [dtype(0), np.nextafter(dtype(0), dtype(1)), length / 3, np.nextafter(length, dtype(0))]
        found += [length] * (side != "periodic")
        along.append(found + [k * length for k in (dtype(-1000), dtype(-0.3), dtype(1.7))] * (side == "open"))
    pos = np.stack([axis.ravel() for axis in np.meshgrid(*along)], axis=1)
    flags = ([side == name for side in sides] for name in ("periodic", "open"))
    return md.State(pos, pos[::-1], md.Box(lengths, *flags), ids)


@pytest.mark.parametrize("dtype", [np.float64, np.float32])
@pytest.mark.parametrize("sides", [s for dim in (2, 3) for s in itertools.product(SIDES, repeat=dim)])
def test_a_particle_is_stored_where_it_is_at_any_side(sides, dtype, tmp_path):
    """In all precisions; a position that rounds to the upper side of a periodic axis is at the lower one."""
    state, dim = at_sides(sides, dtype), len(sides)
    half = np.array(state.box.lengths, dtype).astype(float) / 2
    for precision, stored in {"single": np.float32, "double": np.float64}.items():
        if precision == "double" and not GSD_HAS_DOUBLE:
            continue
        append_frame(tmp_path / precision, state, 0, precision)
        (frame,) = frames(tmp_path / precision)
        right, end = (state.pos - half).astype(stored), half.astype(stored)
        right = np.where((right == end) & np.array(state.box.periodic), -end, right)
        assert np.array_equal(frame.particles.position[:, :dim], right)
        assert np.array_equal(frame.configuration.box[:dim], 2 * end)
        beyond = np.abs(frame.particles.position[:, :dim]) > end
        assert np.array_equal(beyond.any(axis=0), state.box.open)


@pytest.mark.parametrize("beyond", [-3.0, 12.0])
def test_frames_that_differ_beyond_an_open_side_are_two_frames(beyond, tmp_path):
    path, box = tmp_path / "run.gsd", md.Box((9, 8), periodic=(False, True), open=(True, False))
    first, other = (md.State([[x, 4], [4, 4]], np.zeros((2, 2)), box) for x in (beyond, 1.5 * beyond))
    append_frame(path, first, 5)
    before = path.read_bytes()
    append_frame(path, first, 5)
    with pytest.raises(ValueError, match="another of step 5"):
        append_frame(path, other, 5)
    assert path.read_bytes() == before
    with pytest.warns(RuntimeWarning, match="other frames from step 5"):
        md.Trajectory(path, 5, append=True).report(Now(other, 5))
    (frame,) = frames(path)
    assert frame.particles.position[0, 0] == 1.5 * beyond - 4.5


@given(lengths=st.lists(st.floats(0.5, 1e4), min_size=2, max_size=3), data=st.data())
def test_no_position_leaves_the_box_by_rounding(lengths, data, tmp_path_factory):
    box = md.Box(tuple(lengths), data.draw(st.booleans()))
    pos = [[0.0] * box.dim, np.nextafter(box.lengths, 0), np.array(box.lengths) / 2]
    path = tmp_path_factory.mktemp("edge") / "run.gsd"
    append_frame(path, md.State(pos, np.zeros((3, box.dim)), box), 0)
    (frame,) = frames(path)
    half = frame.configuration.box[: box.dim] / 2
    assert (frame.particles.position[:, : box.dim] >= -half).all()
    if all(box.periodic):
        assert (frame.particles.position[:, : box.dim] < half).all()
    else:
        assert (frame.particles.position[:, : box.dim] <= half).all()


@pytest.mark.quick
def test_no_particles_are_a_frame_too(tmp_path):
    for step in (0, 5):
        append_frame(tmp_path / "run.gsd", cloud(n=0), step)
    assert [frame.particles.N for frame in frames(tmp_path / "run.gsd")] == [0, 0]


def test_an_existing_trajectory_is_unchanged_by_default(path):
    before = path.read_bytes()
    with pytest.raises(FileExistsError, match=r"another name, or append=True to go on: '.*run\.gsd'"):
        md.Trajectory(path, 10)
    late = md.Trajectory(path.parent / "late.gsd", 10)
    (path.parent / "late.gsd").write_bytes(before)
    simulation = md.Simulation(cloud(), md.scenes.BENCHMARK_LAW, backend="cpu", allow_overlap=True)
    with pytest.raises(FileExistsError):
        simulation.run(1, reporters=[late])
    assert path.read_bytes() == (path.parent / "late.gsd").read_bytes() == before


def test_a_reporter_appends_to_a_file_over_several_runs(path):
    trajectory = md.Trajectory(path, 10, append=True)
    simulation = md.Simulation(cloud(), md.laws.SpringDashpot(0, 0), dt=1e-3, backend="cpu")
    simulation.run(11)
    for _ in range(3):
        simulation.run(10, reporters=[trajectory])
    assert [frame.configuration.step for frame in frames(path)] == [0, 10, 20, 30, 40]


@pytest.mark.parametrize("step", [0, 10])
def test_a_frame_of_the_file_is_not_written_again(path, step):
    before = path.read_bytes()
    append_frame(path, cloud(seed=step), step)
    assert path.read_bytes() == before


@pytest.mark.quick
@pytest.mark.parametrize(
    ("state", "step", "message"),
    [
        (cloud(n=41), 20, "holds 40 particles, and this frame 41"),
        (cloud(ids=np.arange(1, 41)), 20, "holds other particles: id 0, and this frame 1"),
        (cloud(dim=2), 20, "holds a box of .*9.0, 8.0, 7.5.*, and this frame one of .*9.0, 8.0, 0.0"),
        (cloud(seed=1), 10, "holds frames up to step 10, and this is another of step 10; allowed: a later"),
        (cloud(seed=1), 0, "holds frames up to step 10, and this is another of step 0; allowed: a later"),
        (cloud(seed=10), 7, "holds frames up to step 10, and this is another of step 7; allowed: a later"),
    ],
)
def test_a_frame_of_another_run_is_refused(path, state, step, message):
    before = path.read_bytes()
    with pytest.raises(ValueError, match=rf"run\.gsd {message}.*give another name"):
        append_frame(path, state, step)
    assert path.read_bytes() == before


@pytest.mark.parametrize("content", [b"", b"TIMESTEP " * 100])
def test_a_file_that_is_no_trajectory_is_refused(path, content):
    path.write_bytes(content)
    with pytest.raises(ValueError, match=r"run\.gsd is no trajectory to append to .*allowed: a GSD file"):
        append_frame(path, cloud(), 20)
    assert path.read_bytes() == content


@pytest.mark.parametrize("room", [0, 100, 600, 950])
def test_a_disk_that_fills_up_leaves_the_frames_before(path, room):
    soft, hard = resource.getrlimit(resource.RLIMIT_FSIZE)
    before = frames(path)
    try:
        resource.setrlimit(resource.RLIMIT_FSIZE, (path.stat().st_size + room, hard))
        with pytest.raises(
            OSError, match="the frame of step 20 was not written, those before it are kept"
        ) as caught:
            append_frame(path, cloud(seed=20), 20)
    finally:
        resource.setrlimit(resource.RLIMIT_FSIZE, (soft, hard))
    assert (caught.value.errno, caught.value.filename) == (errno.EFBIG, str(path))
    for one, other in zip(frames(path), before, strict=True):
        assert np.array_equal(one.particles.position, other.particles.position)
    append_frame(path, cloud(seed=20), 20)
    assert [frame.configuration.step for frame in frames(path)] == [0, 10, 20]


def test_a_first_frame_that_cannot_be_written_leaves_nothing(tmp_path):
    soft, hard = resource.getrlimit(resource.RLIMIT_FSIZE)
    try:
        resource.setrlimit(resource.RLIMIT_FSIZE, (700, hard))
        with pytest.raises(OSError, match="the frame of step 0 was not written"):
            append_frame(tmp_path / "run.gsd", cloud(), 0)
    finally:
        resource.setrlimit(resource.RLIMIT_FSIZE, (soft, hard))
    assert os.listdir(tmp_path) == []


def test_a_read_only_folder_is_an_error(tmp_path):
    (tmp_path / "closed").mkdir(mode=0o555)
    if os.geteuid() == 0:  # root has all permissions
        os.seteuid(65534)
    try:
        with pytest.raises(PermissionError, match="the frame of step 0 was not written"):
            append_frame(tmp_path / "closed" / "run.gsd", cloud(), 0)
    finally:
        os.seteuid(os.getuid())
    assert os.listdir(tmp_path / "closed") == []


@pytest.mark.parametrize(
    ("wrong", "error", "message"),
    [
        ({"interval": 0}, ValueError, "interval of Trajectory = 0; allowed: an integer of at least 1"),
        ({"interval": 2.5}, TypeError, "interval of Trajectory = 2.5 of class float; allowed: an integer"),
        ({"interval": True}, TypeError, "interval of Trajectory = True"),
        ({"append": "no"}, TypeError, "append = 'no' of class str; allowed: True or False"),
        ({"append": 1}, TypeError, "append = 1"),
        ({"path": 1}, TypeError, "path = 1 of class int; allowed: a path"),
        ({"path": True}, TypeError, "path = True"),
        ({"path": None}, TypeError, "path = None"),
        ({"path": ""}, ValueError, "path = ''"),
        ({"path": "a\0b"}, ValueError, "without a zero byte"),
    ],
)
def test_an_invalid_argument_is_refused(wrong, error, message):
    with pytest.raises(error, match=message):
        md.Trajectory(**({"path": "run.gsd", "interval": 10} | wrong))


def test_an_interval_of_numpy_is_an_integer():
    assert type(md.Trajectory("run.gsd", np.uint8(100)).interval) is int


@pytest.mark.parametrize(
    ("wrong", "error", "message"),
    [
        ({"path": 1}, TypeError, "path = 1 of class int"),
        ({"state": None}, TypeError, "state = None .*allowed: an md.State"),
        ({"step": 2.5}, TypeError, "step = 2.5"),
        ({"step": -1}, ValueError, "step = -1; allowed: an integer of at least 0"),
    ],
)
def test_a_frame_of_invalid_arguments_is_refused(wrong, error, message, tmp_path):
    with pytest.raises(error, match=message):
        append_frame(**({"path": tmp_path / "run.gsd", "state": cloud(), "step": 0} | wrong))
    assert os.listdir(tmp_path) == []


class TestAnotherRunAppends:
    def report(self, path, state, step, append=True):
        md.Trajectory(path, 5, append=append).report(Now(state, step))

    @pytest.mark.parametrize("step", [0, 7, 10])
    def test_later_frames_are_replaced_and_kept_in_another_file(self, path, step):
        before = path.read_bytes()
        kept = path.with_name(f"run.before-{step}.gsd")
        with pytest.warns(RuntimeWarning, match=f"other frames from step {step} on; .*{kept.name}") as warned:
            self.report(path, cloud(seed=99), step)
        assert warned[0].filename == __file__
        read = frames(path)
        assert [frame.configuration.step for frame in read] == [s for s in (0, 10) if s < step] + [step]
        append_frame(path.with_name("alone.gsd"), cloud(seed=99), step)
        (alone,) = frames(path.with_name("alone.gsd"))
        assert np.array_equal(read[-1].particles.position, alone.particles.position)
        assert np.array_equal(read[-1].particles.velocity, alone.particles.velocity)
        assert set(read[-1].log) == {"periodic"}
        assert kept.read_bytes() == before
        with pytest.warns(RuntimeWarning, match=f"run.before-{step}-2.gsd"):
            self.report(path, cloud(seed=98), step)

    def test_a_run_that_repeats_changes_nothing(self, path):
        before = path.read_bytes()
        self.report(path, cloud(seed=10), 10)
        assert path.read_bytes() == before
        assert os.listdir(path.parent) == [path.name]

    def test_another_system_is_refused_all_the_same(self, path):
        with pytest.raises(ValueError, match="holds 40 particles"):
            self.report(path, cloud(n=39), 10)

    def test_frames_are_replaced_once(self, path):
        """Other frames that the same simulation finds later come from another run that continues."""
        trajectory, run = md.Trajectory(path, 5, append=True), Now(cloud(seed=99), 5)
        with pytest.warns(RuntimeWarning, match="other frames from step 5"):
            trajectory.report(run)
        append_frame(path, cloud(seed=1), 12)
        run.step, before = 10, path.read_bytes()
        with pytest.raises(
            ValueError, match=r"run\.gsd holds frames up to step 12, and .* another of step 10"
        ):
            trajectory.report(run)
        assert sorted(os.listdir(path.parent)) == ["run.before-5.gsd", "run.gsd"]
        assert path.read_bytes() == before
        with pytest.warns(RuntimeWarning, match="other frames from step 10"):
            trajectory.report(Now(run.state, 10))

    def test_without_hard_links_the_old_file_is_copied(self, path, monkeypatch):
        def no_link(*_):
            raise OSError(errno.EPERM, os.strerror(errno.EPERM))

        before = path.read_bytes()
        (path.parent / "victim").write_text("mine")
        (path.parent / "run.before-7.gsd").symlink_to(path.parent / "victim")
        monkeypatch.setattr(os, "link", no_link)
        with pytest.warns(RuntimeWarning, match=r"run\.before-7-2\.gsd"):
            self.report(path, cloud(seed=99), 7)
        assert (path.parent / "run.before-7-2.gsd").read_bytes() == before
        assert (path.parent / "victim").read_text() == "mine"

    def test_a_disk_that_is_full_leaves_it_as_it_was(self, path):
        soft, hard = resource.getrlimit(resource.RLIMIT_FSIZE)
        before = path.read_bytes()
        try:
            resource.setrlimit(resource.RLIMIT_FSIZE, (700, hard))
            with pytest.raises(OSError, match=r"the frame of step 10 was not written.*run\.gsd"):
                self.report(path, cloud(seed=99), 10)
        finally:
            resource.setrlimit(resource.RLIMIT_FSIZE, (soft, hard))
        assert path.read_bytes() == before
        assert os.listdir(path.parent) == [path.name]
