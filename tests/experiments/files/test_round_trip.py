"""A file of every format is read, written in another order, and read again: nothing is lost."""

import numpy as np
import pytest
import scipy.io
import scipy.sparse
from hypothesis import given, settings
from hypothesis import strategies as st

from experiments.files import FORMATS, FileError, read, write
from tests.experiments.files import samples
from tests.experiments.files.samples import LENGTHS, MAKERS, ORIGIN, N, cloud


@pytest.fixture(scope="module")
def folder(tmp_path_factory):
    """A folder with a file of every format."""
    place = tmp_path_factory.mktemp("files")
    for name, make in MAKERS.items():
        make(place / name)
    return place


def rows_of(data):
    """All arrays of one row an item."""
    named = ("points", "velocities", "diameters", "earlier")
    return {name: getattr(data, name) for name in named} | data.columns


def test_every_format_has_a_sample():
    assert {f".{name.rpartition('.')[2]}" for name in MAKERS} == FORMATS.keys() - {
        ".laz",
        ".txt",
        ".lmp",
        ".lammpstrj",
    }


@pytest.mark.parametrize("name", MAKERS)
@settings(max_examples=4)
@given(seed=st.integers(0, 2**32 - 1))
def test_nothing_is_lost(folder, name, seed):
    before = read(folder / name)
    order = np.random.default_rng(seed).permutation(before.n)
    target = write(before, order, folder / f"out.{name}")
    after = read(target)
    assert target == folder / f"out.{name}"
    for name, values in rows_of(before).items():
        found = rows_of(after)[name]
        assert (values is None) == (found is None), name
        if values is not None:
            np.testing.assert_array_equal(found, values[order], name)
    assert rows_of(after).keys() == rows_of(before).keys()
    for name in ("kind", "n", "steps", "periodic", "said"):
        assert getattr(after, name) == getattr(before, name)
    for name in ("lengths", "origin"):
        np.testing.assert_array_equal(getattr(after, name), getattr(before, name))
    assert after.cells.keys() == before.cells.keys()
    for name, cells in before.cells.items():
        found = order[after.cells[name]]  # by their old names
        assert sorted(map(tuple, found.tolist())) == sorted(map(tuple, cells.tolist()))
        assert (np.diff(after.cells[name].min(axis=1)) >= 0).all()
    if before.matrix is not None:
        wanted = before.matrix.toarray()[np.ix_(order, order)]
        np.testing.assert_array_equal(after.matrix.toarray(), wanted)
    if before.trace is not None:
        np.testing.assert_array_equal(order[after.trace], before.trace)


@pytest.mark.parametrize(
    "name", ["arrays.npz", "run.dump", "start.data", "run.xyz", "table.csv", "table.parquet"]
)
def test_particles_are_those_that_were_written(folder, name):
    has, data = cloud(), read(folder / name)
    if name == "run.dump":  # of which the last frame has another order
        order = np.argsort(data.columns["q"])
        np.testing.assert_allclose(data.points[order], has["points"] + 0.002, rtol=0, atol=1e-12)
        np.testing.assert_allclose(data.earlier[order], has["points"] + 0.001, rtol=0, atol=1e-12)
        assert data.steps == 100
    else:
        order = np.arange(N)
        moved = 0.001 if name == "run.xyz" else 0
        np.testing.assert_allclose(data.points, has["points"] + moved, rtol=0, atol=1e-12)
    np.testing.assert_array_equal(data.velocities[order], has["velocities"])
    np.testing.assert_allclose(data.diameters[order], has["diameters"], rtol=1e-15)
    if "table" not in name:
        np.testing.assert_allclose(data.lengths, LENGTHS)
        np.testing.assert_array_equal(data.origin, ORIGIN)
        assert data.periodic == (True, True, name == "start.data")
    if name == "start.data":
        np.testing.assert_array_equal(data.cells["edges"], has["edges"])


def test_a_gsd_box_is_centred_and_has_two_frames(folder):
    data = read(folder / "run.gsd")
    np.testing.assert_array_equal(data.origin, -LENGTHS / 2)
    assert (data.steps, data.frame, data.kind) == (10, 2, "particles")
    apart = data.points - data.earlier
    np.testing.assert_allclose(apart, 0.0099 * np.sign(cloud()["velocities"]), atol=1e-5)
    assert read(folder / "run.gsd", frame=0).earlier is None
    np.testing.assert_array_equal(data.cells["edges"], cloud()["edges"])


@pytest.mark.parametrize(("names", "said"), [("xs ys zs", "times the lengths"), ("xu yu zu", "")])
def test_scaled_and_unwrapped_positions_are_converted(tmp_path, names, said):
    data = read(samples.dump_file(tmp_path / "run.dump", names))
    order = np.argsort(data.columns["q"])
    np.testing.assert_allclose(data.points[order], cloud()["points"] + 0.002, rtol=0, atol=1e-12)
    assert said in " ".join(data.said)


@pytest.mark.parametrize("form", ["csc", "coo", "bsr", "dia"])
def test_matrices_of_other_formats_are_read_and_kept(tmp_path, form):
    data = read(samples.sparse_file(tmp_path / "m.npz", form))
    np.testing.assert_array_equal(data.matrix.toarray(), samples.sparse().toarray())
    order = np.arange(N)[::-1]
    again = read(write(data, order, tmp_path / "again.npz"))
    np.testing.assert_array_equal(again.matrix.toarray(), samples.sparse().toarray()[::-1, ::-1])
    with np.load(tmp_path / "again.npz") as stored:
        assert stored["format"].item().decode() == (form if form in ("csc", "coo") else "csr")


def test_a_pattern_is_of_ones(tmp_path):
    data = read(samples.mtx_file(tmp_path / "m.mtx", field="pattern"))
    assert data.said == ("the entries are ones: a pattern",)
    np.testing.assert_array_equal(data.matrix.toarray(), samples.sparse().toarray() != 0)
    write(data, np.arange(N)[::-1], tmp_path / "again.mtx")
    assert "pattern general" in (tmp_path / "again.mtx").read_text().splitlines()[0]


@pytest.mark.parametrize("symmetry", ["symmetric", "skew-symmetric"])
def test_both_halves_of_a_symmetric_matrix_are_read_and_one_is_written(tmp_path, symmetry):
    lower = np.tril(samples.sparse().toarray(), -1)
    full = lower + lower.T * (1 if symmetry == "symmetric" else -1)
    scipy.io.mmwrite(tmp_path / "m.mtx", scipy.sparse.coo_array(full), symmetry=symmetry)
    data = read(tmp_path / "m.mtx")
    np.testing.assert_allclose(data.matrix.toarray(), full, rtol=1e-15)
    order = np.random.default_rng(0).permutation(N)
    again = read(write(data, order, tmp_path / "again.mtx"))
    np.testing.assert_array_equal(again.matrix.toarray(), data.matrix.toarray()[np.ix_(order, order)])
    sizes = [len((tmp_path / name).read_text().splitlines()) for name in ("m.mtx", "again.mtx")]
    assert sizes[0] == sizes[1]


def test_unsigned_bytes_of_a_cloud_stay_unsigned(tmp_path):
    head = f"ply\nformat binary_little_endian 1.0\nelement vertex {N}\n"
    rows = np.zeros(N, [("p", "<f4", 3), ("red", "u1")])
    rows["p"], rows["red"] = cloud()["points"], np.arange(N) * 4
    properties = "".join(f"property float {axis}\n" for axis in "xyz") + "property uchar red\nend_header\n"
    (tmp_path / "p.ply").write_bytes((head + properties).encode() + rows.tobytes())
    data = read(tmp_path / "p.ply")
    assert data.kind == "points"
    np.testing.assert_array_equal(data.columns["red"], np.arange(N) * 4)
    order = np.arange(N)[::-1]
    again = read(write(data, order, tmp_path / "again.ply"))
    np.testing.assert_array_equal(again.columns["red"], np.arange(N)[::-1] * 4)
    np.testing.assert_array_equal(again.points, data.points[::-1])


def test_points_of_npy_are_mapped_and_stay_when_the_file_is_replaced(folder, tmp_path):
    path = samples.npy_file(tmp_path / "p.npy")
    data = read(path)
    assert isinstance(data.points.base, np.memmap)
    write(data, np.arange(N)[::-1], path)
    np.testing.assert_array_equal(data.points, cloud()["points"])
    np.testing.assert_array_equal(read(path).points, cloud()["points"][::-1])


def test_the_table_of_a_trace_is_as_long_as_it_is_and_not_as_the_last_item_read(tmp_path):
    table, trace, dates = np.arange(20.0), np.array([3, 3, 17, 0, 3]), np.arange(5)
    np.savez(tmp_path / "t.npz", table=table, trace=trace, dates=dates)
    data = read(tmp_path / "t.npz")
    assert (data.kind, data.n, list(data.columns)) == ("trace", 20, ["table"])
    again = tmp_path / "again.npz"
    write(data, np.random.default_rng(0).permutation(20), again)
    with np.load(again) as stored:
        np.testing.assert_array_equal(stored["table"][stored["trace"]], table[trace])
        np.testing.assert_array_equal(stored["dates"], dates)
    np.savez(tmp_path / "two.npz", table=table, other=np.arange(30), trace=trace)
    with pytest.raises(FileError, match="arrays of 20 and 30 rows beside a trace; allowed: one length"):
        read(tmp_path / "two.npz")
    np.savez(tmp_path / "equal.npz", table=table, trace=np.arange(20) % 7)
    assert read(tmp_path / "equal.npz").n == 20


def test_arrays_of_cells_go_with_their_cells(tmp_path):
    random = np.random.default_rng(0)
    points, tetra, stress = random.random((30, 3)), random.integers(0, 30, (50, 4)), np.arange(50)
    np.savez(tmp_path / "m.npz", points=points, tetra=tetra, stress=stress, mass=np.arange(30))
    data = read(tmp_path / "m.npz")
    order = random.permutation(30)
    write(data, order, tmp_path / "again.npz")
    with np.load(tmp_path / "again.npz") as stored:
        np.testing.assert_array_equal(order[stored["tetra"]], tetra[stored["stress"]])
        np.testing.assert_array_equal(stored["mass"], order)
    np.savez(tmp_path / "same.npz", points=points, tetra=tetra[:30], stress=stress[:30])
    with pytest.raises(FileError, match="array 'stress' of 30 rows, as many as tetra and items"):
        write(read(tmp_path / "same.npz"), order, tmp_path / "no.npz")
    assert not (tmp_path / "no.npz").exists()
