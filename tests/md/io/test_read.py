"""States are read from GSD files, ours and others', and from arrays of numpy."""

import warnings

import gsd.hoomd
import numpy as np
import pytest

import md
from md.io.trajectory import append_frame

BOX = md.Box((9.0, 8.0, 7.0), (True, True, False))


def gas(n=50, radius=None):
    draw = np.random.default_rng(n)
    return md.State(
        0.01 + draw.random((n, 3)) * 6.9, draw.normal(size=(n, 3)), BOX, draw.permutation(n) + 5, radius
    )


def foreign(path, **particles):
    """A frame of another program, in mm."""
    frame = gsd.hoomd.Frame()
    frame.configuration.box = [300, 240, 180, 0, 0, 0]
    frame.particles.N = 20
    frame.particles.position = (np.random.default_rng(0).random((20, 3)) - 0.5) * (300, 240, 180)
    for name, values in particles.items():
        setattr(frame.particles, name, values)
    with gsd.hoomd.open(str(path), "w") as file:
        file.append(frame)
    return path


@pytest.mark.parametrize("sized", [False, True])
def test_a_trajectory_of_ours_is_read_as_it_was_without_a_diameter(tmp_path, sized):
    state = gas(radius=np.linspace(0.4, 0.6, 50) if sized else None)
    for step in (1, 2):
        append_frame(tmp_path / "run.gsd", state, step)
    with warnings.catch_warnings():
        warnings.simplefilter("ignore" if sized else "error", md.ConvertedPoints)
        found = md.read(tmp_path / "run.gsd")
    wanted = state.by_id()
    np.testing.assert_allclose(found.pos, wanted.pos, atol=1e-5)
    np.testing.assert_allclose(found.vel, wanted.vel, atol=1e-5)
    np.testing.assert_array_equal(found.id, wanted.id)
    np.testing.assert_allclose(found.box.lengths, BOX.lengths, rtol=1e-6)
    assert found.box.periodic == BOX.periodic
    if sized:
        np.testing.assert_allclose(found.radius, wanted.radius, rtol=1e-5)


def test_a_file_of_another_program_needs_a_diameter(tmp_path):
    path = foreign(tmp_path / "mm.gsd")
    with pytest.raises(ValueError, match=r"mm.gsd: diameter = None; .*would fill 8.08e-07"):
        md.read(path)
    with pytest.warns(
        md.ConvertedPoints, match=r"mm.gsd: lengths are divided by the diameter 2; velocities are 0"
    ):
        state = md.read(path, diameter=2)
    assert state.box == md.Box((150, 120, 90))
    with pytest.warns(md.ConvertedPoints, match="divided by the diameter 3"):
        sized = md.read(foreign(tmp_path / "sized.gsd", diameter=np.full(20, 3.0)))
    assert sized.radius is None
    assert sized.box.lengths == pytest.approx((100, 80, 60))


def test_points_of_numpy_are_read(tmp_path):
    np.save(tmp_path / "p.npy", np.random.default_rng(0).random((30, 2)) * 100)
    with pytest.warns(md.ConvertedPoints, match="box is that around the spheres"):
        state = md.read(tmp_path / "p.npy", diameter=2)
    assert (len(state), state.box.dim, state.box.periodic) == (30, 2, (False, False))


@pytest.mark.parametrize(
    ("name", "content", "text"),
    [
        ("p.csv", b"x", r"ending '.csv'; allowed: .gsd, .npy; .*from_points"),
        ("p.npy", b"\x89PNG", "cannot be read as an array of numpy"),
        ("p.npy", np.arange(3), r"an array of int64, shape \(3,\)"),
        ("p.npy", np.array([[1, None]]), "holds Python objects"),
        ("p.gsd", b"x" * 300, "cannot be read as GSD"),
        ("p.gsd", None, "frame = 3; allowed: -1 to 0"),
    ],
)
def test_other_files_are_refused(tmp_path, name, content, text):
    path = tmp_path / name
    if isinstance(content, np.ndarray):
        np.save(path, content, allow_pickle=True)
    elif content is None:
        foreign(path)
    else:
        path.write_bytes(content)
    with pytest.raises(ValueError, match=text) as found:
        md.read(path, diameter=1, frame=3 if content is None else -1)
    assert str(path) in str(found.value)
    assert "allow_pickle" not in str(found.value)


def test_an_array_that_declares_more_than_the_file_holds_is_refused(tmp_path):
    path = tmp_path / "huge.npy"
    with open(path, "wb") as file:
        np.lib.format.write_array_header_1_0(
            file, {"descr": "<f8", "fortran_order": False, "shape": (900_000_000_000, 3)}
        )
    with pytest.raises(ValueError, match=r"declares shape \(900000000000, 3\) .* and holds 0 bytes"):
        md.read(path, diameter=1)


@pytest.mark.parametrize(
    ("change", "text"),
    [
        ({"position": np.full((20, 3), 151.0)}, "outside the box"),
        ({"position": np.full((20, 3), np.nan)}, "points"),
        ({"diameter": np.zeros(20)}, r"radius\[0\] = 0"),
        ({"velocity": np.full((20, 3), np.inf)}, "velocities"),
    ],
)
def test_wrong_particles_of_a_frame_are_refused(tmp_path, change, text):
    with pytest.raises(ValueError, match=text):
        md.read(foreign(tmp_path / "p.gsd", **change), diameter=1)
