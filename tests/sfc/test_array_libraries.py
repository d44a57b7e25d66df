"""Points and arrays of other libraries, each tested if it is installed."""

import numpy as np
import pytest

import sfc

POINTS = np.random.default_rng(8).random((500, 2)).astype(np.float32)
CELLS = np.random.default_rng(9).integers(0, 2**10, (500, 2))


def assert_ordered_as_numpy(points, cells, numbers):
    """Keys, order and sorted rows are those of the same numbers in arrays of numpy."""
    order = sfc.argsort(POINTS)
    np.testing.assert_array_equal(sfc.keys(points), sfc.keys(POINTS))
    np.testing.assert_array_equal(sfc.argsort(points), order)
    expected = sfc.curve("hilbert", 2).encode(CELLS, 10)
    np.testing.assert_array_equal(sfc.curve("hilbert", 2).encode(cells, 10), expected)
    found = sfc.sort(points, numbers, cells)
    for values, given, rows in zip(
        found, (points, numbers, cells), (POINTS, np.arange(500), CELLS), strict=True
    ):
        assert type(values) is type(given)
        np.testing.assert_array_equal(np.asarray(values), rows[order])


def test_pandas():
    pd = pytest.importorskip("pandas")
    points = pd.DataFrame(POINTS, columns=["x", "y"])
    assert_ordered_as_numpy(points, pd.DataFrame(CELLS), pd.Series(range(500), index=range(7, 507)))
    order = sfc.argsort(points)
    assert sfc.sort(points)[["x", "y"]].index.tolist() == order.tolist()
    assert sfc.sort(points, pd.Index(range(500)))[1].tolist() == order.tolist()


class OnlyDlpack:
    """Array that has no other protocol than DLPack."""

    def __init__(self, values):
        self.__dlpack__, self.__dlpack_device__ = values.__dlpack__, values.__dlpack_device__


def test_torch():
    torch = pytest.importorskip("torch")
    points = torch.tensor(POINTS)
    assert_ordered_as_numpy(points, torch.tensor(CELLS), torch.arange(500))
    np.testing.assert_array_equal(sfc.keys(torch.tensor(POINTS.T.copy()).T), sfc.keys(POINTS))
    low, high = points.amin(0), points.amax(0)
    for box in ((low, high), torch.stack((low, high))):
        np.testing.assert_array_equal(sfc.keys(points, box=box), sfc.keys(POINTS))
    np.testing.assert_array_equal(sfc.keys(OnlyDlpack(points)), sfc.keys(POINTS))
    with pytest.raises(ValueError, match=r"(?s)points = tensor.* makes no array: .*requires grad.*detach"):
        sfc.keys(points.clone().requires_grad_())
    with pytest.raises(TypeError, match=r"(?s)points = tensor.*floats of 16 to 64 bits"):
        sfc.keys(points.to(torch.bfloat16))


def test_jax():
    jax = pytest.importorskip("jax")
    points = jax.numpy.asarray(POINTS)
    assert_ordered_as_numpy(points, jax.numpy.asarray(CELLS), jax.numpy.arange(500))
    np.testing.assert_array_equal(sfc.keys(OnlyDlpack(points)), sfc.keys(POINTS))
    with pytest.raises(ValueError, match="points of dtype bfloat16; allowed: floats of 16 to 64 bits"):
        sfc.keys(points.astype(jax.numpy.bfloat16))


def test_an_array_with_dlpack_alone():
    np.testing.assert_array_equal(sfc.keys(OnlyDlpack(POINTS)), sfc.keys(POINTS))


def test_rows_of_a_sparse_matrix():
    sparse = pytest.importorskip("scipy.sparse")
    matrix = sparse.random(500, 20, density=0.2, format="csr", random_state=np.random.default_rng(10))
    found = sfc.sort(POINTS, matrix)[1]
    assert found.format == "csr"
    np.testing.assert_array_equal(found.toarray(), matrix.toarray()[sfc.argsort(POINTS)])
    with pytest.raises(TypeError, match=r"(?s)arrays\[0\] = .* of class coo_matrix"):
        sfc.sort(POINTS, matrix.tocoo())


def geo_points(geopandas, points):
    return geopandas.GeoSeries(geopandas.points_from_xy(points[:, 0], points[:, 1]))


@pytest.mark.parametrize("level", [3, 10, 16])
def test_geopandas_has_equal_distances_on_its_own_grid(level):
    geopandas = pytest.importorskip("geopandas")
    last = 2**level - 1
    cells = np.random.default_rng(level).integers(0, last, (2000, 2), endpoint=True)
    found = geo_points(geopandas, cells).hilbert_distance(total_bounds=(0, 0, last, last), level=level)
    np.testing.assert_array_equal(found, sfc.keys(cells, bits=level))


@pytest.mark.parametrize("level", [3, 16])
def test_the_grid_of_geopandas_is_that_of_a_larger_box(level):
    geopandas = pytest.importorskip("geopandas")
    low, cell = np.array([4.0, -3.0]), np.array([0.5, 0.25])  # with powers of two no rounding differs
    high = low + cell * (2**level - 1)
    points = np.random.default_rng(11).uniform(low, high, (2000, 2))
    found = geo_points(geopandas, points).hilbert_distance(total_bounds=(*low, *high), level=level)
    box = low, low + (high - low) * 2**level / (2**level - 1)
    np.testing.assert_array_equal(found, sfc.keys(points, bits=level, box=box, stretch=True))
    assert (found != sfc.keys(points, bits=level, box=(low, high), stretch=True)).any()


def test_points_of_geopandas_are_sorted_by_their_coordinates():
    geopandas = pytest.importorskip("geopandas")
    series = geo_points(geopandas, POINTS)
    points, found = sfc.sort(series.get_coordinates(), series)
    assert type(found) is type(series)
    np.testing.assert_array_equal(found.get_coordinates(), points)
