"""A damaged file is refused by one error that names it, or read as data that are finite and consistent."""

import hypothesis
import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from experiments.files import FileError, read
from tests.experiments.files import damage
from tests.experiments.files.samples import MAKERS

TEXTS = ["run.dump", "start.data", "run.xyz", "table.csv", "matrix.mtx", "text.ply", "text.vtk", "mesh.vtu"]
ARRAYS = ["points.npy", "trace.npy", "arrays.npz", "matrix.npz"]


@pytest.fixture(scope="module")
def folder(tmp_path_factory):
    """A folder with a file of every format."""
    place = tmp_path_factory.mktemp("damaged")
    for name, make in MAKERS.items():
        make(place / name)
    return place


def outcome(path):
    """Read a file: the data, which must be consistent, or the text of the one error allowed."""
    try:
        data = read(path)
    except FileError as error:
        text = str(error)
        assert str(path) in text
        assert "allow_pickle" not in text
        assert "; " in text
        return text
    n = data.n
    assert n >= 1
    for name in ("points", "velocities", "earlier"):
        if (array := getattr(data, name)) is not None:
            assert array.dtype == np.float64
            assert array.shape in ((n, 2), (n, 3))
            assert np.isfinite(array).all()
    if data.points is not None and data.lengths is not None:
        for pos in (data.points, data.earlier):
            if pos is not None:
                off = pos - data.origin
                slack = 1e-12 * (np.abs(data.origin) + data.lengths)
                assert (off >= -slack).all()
                assert (off <= data.lengths + slack).all()
    if data.diameters is not None:
        assert data.diameters.shape == (n,)
        assert (data.diameters > 0).all()
        assert np.isfinite(data.diameters).all()
    for cells in data.cells.values():
        assert ((cells >= 0) & (cells < n)).all()
    if data.trace is not None:
        assert ((data.trace >= 0) & (data.trace < n)).all()
    if data.matrix is not None:
        assert data.matrix.shape[0] == n
        assert np.isfinite(data.matrix.data).all()
        data.matrix.check_format(full_check=True)
    assert all(len(column) == n for column in data.columns.values())
    return data


def examples(count):
    """Settings of so many examples."""
    return settings(max_examples=count, suppress_health_check=list(hypothesis.HealthCheck))


@pytest.mark.parametrize(("name", "count"), [(name, 6) for name in MAKERS])
def test_damaged_bytes(folder, name, count):
    content = (folder / name).read_bytes()

    @examples(count)
    @given(damage.bytes_of(content))
    def check(changed):
        path = folder / f"bytes.{name}"
        path.write_bytes(changed)
        outcome(path)

    check()


@pytest.mark.parametrize("name", TEXTS)
def test_damaged_texts(folder, name):
    content = (folder / name).read_bytes()

    @examples(10)
    @given(damage.text_of(content))
    def check(changed):
        path = folder / f"text.{name}"
        path.write_bytes(changed)
        outcome(path)

    check()


@pytest.mark.parametrize("name", ARRAYS)
def test_damaged_arrays(folder, name):
    path = folder / f"array.{name}"

    @examples(15)
    @given(st.data())
    def check(data):
        data.draw(damage.arrays_of(folder / name, path))
        outcome(path)

    check()


@pytest.mark.full
@pytest.mark.parametrize("name", MAKERS)
def test_damage_of_every_kind(folder, name):
    content, path = (folder / name).read_bytes(), folder / f"full.{name}"
    kinds = [damage.bytes_of(content), *([damage.text_of(content)] if name in TEXTS else [])]

    @examples(400)
    @given(st.one_of(*kinds))
    def check(changed):
        path.write_bytes(changed)
        outcome(path)

    check()


@pytest.mark.full
@pytest.mark.parametrize("name", ARRAYS)
def test_damage_of_every_array(folder, name):
    path = folder / f"full_array.{name}"

    @examples(300)
    @given(st.data())
    def check(data):
        data.draw(damage.arrays_of(folder / name, path))
        outcome(path)

    check()
