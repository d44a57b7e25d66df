"""Precision of trajectories: double loses nothing, single rounds, and a file keeps the one that it has."""

import gsd.hoomd
import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

import md
from md.io.trajectory import append_frame
from tests.md.io.test_trajectory import Now, cloud, frames, needs_double

BIG = md.Box((1e6, 1e6))  # in single precision the unit in the last place is 1/32 d at its sides
APART = md.State([[7e5 + 0.123, 5.0], [7e5 + 1.124, 5.0]], [[1 / 3, 0], [0, 1e-300]], BIG)


@pytest.mark.parametrize(
    ("precision", "stored"), [("single", 1.0), pytest.param("double", 1.001, marks=needs_double)]
)
def test_two_discs_in_a_large_box(precision, stored, tmp_path):
    append_frame(tmp_path / "run.gsd", APART, 0, precision)
    (frame,) = frames(tmp_path / "run.gsd")
    distance = np.diff(frame.particles.position[:, 0].astype(float))[0]
    assert distance == pytest.approx(stored, abs=1e-9)


@given(
    exponents=st.lists(st.floats(-37, 35), min_size=2, max_size=3),
    away=st.sampled_from([0, 1, 1e3]),
    small=st.integers(-320, 30),
    seed=st.integers(0, 99),
)
def test_single_is_as_near_as_is_said(exponents, away, small, seed, tmp_path_factory):
    """6e-8 of the distance from the centre, of a side and of a velocity; tiny numbers to 7e-46."""
    path, random = tmp_path_factory.mktemp("run") / "run.gsd", np.random.default_rng(seed)
    sides, dim = 10.0 ** np.array(exponents), len(exponents)
    pos = random.uniform(-away, 1 + away, (7, dim)) * sides
    vel = random.normal(size=(7, dim)) * 10.0**small
    append_frame(path, md.State(pos, vel, md.Box(tuple(sides), periodic=False, open=True)), 0)
    (frame,) = frames(path)
    for found, exact in (
        (frame.configuration.box[:dim], sides),
        (frame.particles.position[:, :dim], pos - sides / 2),
        (frame.particles.velocity[:, :dim], vel),
    ):
        assert (np.abs(found.astype(float) - exact) <= 6e-8 * np.abs(exact) + 7.1e-46).all()


@needs_double
@given(
    lengths=st.lists(st.floats(1e-3, 1e7), min_size=2, max_size=3),
    seed=st.integers(0, 99),
    dtype=st.sampled_from([np.float64, np.float32]),
    radii=st.booleans(),
)
def test_double_is_read_bit_for_bit(lengths, seed, dtype, radii, tmp_path_factory):
    path, random, dim = tmp_path_factory.mktemp("run") / "run.gsd", np.random.default_rng(seed), len(lengths)
    box, sides = md.Box(tuple(lengths)), np.array(lengths, dtype)
    states = []
    radius = 10.0 ** random.uniform(-9, 9, 7) if radii else None
    for step in range(3):
        pos = box.wrap((random.random((7, dim)) * sides).astype(dtype))
        vel = (random.normal(size=(7, dim)) * 10.0 ** random.integers(-30, 30)).astype(dtype)
        states.append(md.State(pos, vel, box, radius=radius))
        append_frame(path, states[-1], step, "double")
    for frame, state in zip(frames(path), states, strict=True):
        assert frame.particles.position.dtype == frame.configuration.box.dtype == np.float64
        assert np.array_equal(frame.configuration.box[:dim], sides)
        assert np.array_equal(frame.particles.position[:, :dim], state.pos - sides.astype(float) / 2)
        assert np.array_equal(frame.particles.velocity[:, :dim], state.vel)
        assert np.array_equal(frame.particles.diameter, np.ones(7) if radius is None else 2 * radius)


@needs_double
def test_a_simulation_writes_either(tmp_path):
    simulation = md.Simulation(cloud(), md.laws.SpringDashpot(0, 0), dt=1e-3, backend="cpu")
    simulation.run(4, reporters=[md.Trajectory(tmp_path / "run.gsd", 4, precision="double")])
    simulation.write(tmp_path / "double.gsd", precision="double")
    simulation.write(tmp_path / "single.gsd")
    state = simulation.state.by_id()
    vel = {
        name: frames(tmp_path / f"{name}.gsd")[-1].particles.velocity for name in ("run", "double", "single")
    }
    assert np.array_equal(vel["run"], state.vel)
    assert np.array_equal(vel["double"], state.vel)
    assert np.array_equal(vel["single"], np.float32(state.vel))
    assert vel["single"].dtype == np.float32


@needs_double
@pytest.mark.parametrize("state", [cloud(), md.State(np.empty((0, 3)), np.empty((0, 3)), md.Box((1, 1, 1)))])
@pytest.mark.parametrize(("first", "then"), [("single", "double"), ("double", "single")])
def test_a_frame_of_the_other_precision_is_refused(first, then, state, tmp_path):
    path = tmp_path / "run.gsd"
    append_frame(path, state, 0, first)
    before = path.read_bytes()
    message = (
        rf"run\.gsd holds configuration/box of float.., and this frame .*{then}.*give precision='{first}'"
    )
    with pytest.raises(ValueError, match=message):
        append_frame(path, state, 1, then)
    with pytest.raises(ValueError, match=message):
        md.Trajectory(path, 5, append=True, precision=then).report(Now(state, 0))
    assert path.read_bytes() == before
    append_frame(path, state, 1, first)
    assert len(frames(path)) == 2


@needs_double
def test_frames_that_are_kept_stay_double(tmp_path):
    path = tmp_path / "run.gsd"
    for step in (0, 5, 10):
        append_frame(path, cloud(seed=step), step, "double")
    whole = frames(path)
    with pytest.warns(RuntimeWarning, match="other frames from step 10"):
        md.Trajectory(path, 5, append=True, precision="double").report(Now(cloud(seed=9), 10))
    kept = frames(path)
    assert len(kept) == 3
    for one, other in zip(kept[:2], whole, strict=False):
        assert np.array_equal(one.particles.position, other.particles.position)
        assert np.array_equal(one.configuration.box, other.configuration.box)
        assert one.configuration.box.dtype == np.float64


@pytest.mark.quick
def test_gsd_below_5_writes_single_only(tmp_path, monkeypatch):
    opened = gsd.hoomd.open
    monkeypatch.setattr(gsd.hoomd, "open", lambda name, mode="r": opened(name, mode))
    monkeypatch.setattr(gsd.version, "version", "4.0.0")
    for refused in (
        lambda: md.Trajectory(tmp_path / "run.gsd", 5, precision="double"),
        lambda: append_frame(tmp_path / "run.gsd", cloud(), 0, "double"),
    ):
        with pytest.raises(ValueError, match=r"'double' with version 4.0.0 .*allowed: 'single', or gsd 5.0"):
            refused()
    assert not (tmp_path / "run.gsd").exists()
    for step in range(2):
        append_frame(tmp_path / "run.gsd", cloud(), step)


@pytest.mark.parametrize("precision", ["float64", "half", ""])
def test_an_unknown_precision_is_refused(precision, tmp_path):
    with pytest.raises(ValueError, match=f"precision.*'{precision}'.*single"):
        md.Trajectory(tmp_path / "run.gsd", 5, precision=precision)
    with pytest.raises(ValueError, match=f"precision.*'{precision}'.*single"):
        append_frame(tmp_path / "run.gsd", cloud(), 0, precision)


@needs_double
@pytest.mark.parametrize(
    ("name", "state"),
    [
        ("velocity 1e\\+39", md.State([[1, 1]], [[1e39, 0]], md.Box((9, 9)))),
        ("length of the box 1e\\+39", md.State([[1, 1]], [[1, 0]], md.Box((1e39, 9)))),
        (
            "box -1.015e\\+39",
            md.State([[-1e39, 1]], [[1, 0]], md.Box((3e37, 9), periodic=False, open=True)),
        ),
        ("length of the box 1e-46", md.State([[0, 1]], [[1, 0]], md.Box((1e-46, 9)))),
        ("length of the box 1e-40", md.State([[0, 1]], [[1, 0]], md.Box((1e-40, 9)))),
    ],
)
def test_a_number_that_single_does_not_hold_is_refused(name, state, tmp_path):
    path = tmp_path / "run.gsd"
    with pytest.raises(ValueError, match=f"{name}; allowed in float32: .* to 3.4.*give precision='double'"):
        append_frame(path, state, 0)
    assert not path.exists()
    append_frame(path, state, 0, "double")
    assert len(frames(path)) == 1


@needs_double
@pytest.mark.parametrize("precision", ["single", "double"])
@pytest.mark.parametrize("side", [1e39, 1e-40])
def test_a_side_that_the_run_does_not_hold_is_refused(side, precision, tmp_path):
    """A run in float32 has the sides of its box in float32, whatever the file is in."""
    zeros = np.zeros((1, 2), np.float32)
    with np.errstate(over="ignore"):
        state = md.State(zeros, zeros, md.Box((side, 9), periodic=False))
        with pytest.raises(
            ValueError, match=r"length of the box 1e.*; allowed in float32: 1.17.* of a run in float64"
        ):
            append_frame(tmp_path / "run.gsd", state, 0, precision)
    assert not (tmp_path / "run.gsd").exists()
