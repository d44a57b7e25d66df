"""Data sets: equal by seed, in range, in the order that the table says, written as users have them."""

from functools import cache

import gsd.hoomd
import numpy as np
import pandas as pd
import pytest
from scipy.io import mmread
from scipy.sparse import csr_array, load_npz

from experiments.advice.sets import SETS, Order, SetData, along, code_of, make, put, shuffled, undo, write
from experiments.advice.sets.codes import USES
from experiments.advice.sets.table import KINDS

N = 700
small = cache(lambda name, seed=0: make(name, N, seed))


def test_there_are_24_sets_of_six_kinds_and_eight_are_partly_in_order():
    every = list(SETS.values())
    assert len(every) == 24
    assert {one.kind for one in every} == set(KINDS)
    assert {one.use for one in every} == set(USES)
    assert {one.library for one in every} == {"compiled", "numpy", "scipy"}
    assert sum(one.is_partly_ordered for one in every) == 8
    assert all(10**5 <= one.n <= 3 * 10**6 for one in every)


@pytest.mark.parametrize("name", SETS)
def test_a_set_is_the_same_for_a_seed_and_another_for_another_seed(name):
    found, again, other = small(name).arrays(), make(name, N).arrays(), small(name, 1).arrays()
    assert found.keys() == again.keys() == other.keys()
    assert all(np.array_equal(found[key], again[key]) for key in found)
    assert any(not np.array_equal(found[key], other[key]) for key in found)


@pytest.mark.parametrize("name", SETS)
def test_a_set_has_as_many_items_as_were_asked_for_or_its_next_lower_size(name):
    data = small(name)
    n = data.n
    assert N / 5 <= n <= N
    assert n == N or SETS[name].kind in ("mesh", "matrix", "image")
    for key, array in data.arrays().items():
        assert array.flags.c_contiguous, key
        assert np.isfinite(array).all(), key
    assert all(len(array) == n for array in (data.values, data.points, data.radii) if array is not None)
    for refers in (data.cells, data.trace):
        assert refers is None or (refers.min() >= 0 and refers.max() < n)
    if data.cells is not None:
        ordered = np.sort(data.cells, axis=1)
        assert (ordered[:, 1:] > ordered[:, :-1]).all()  # no corner twice
        assert len(np.unique(data.cells)) == n
    if data.matrix is not None:
        assert data.matrix.shape == (n, n)
        assert data.matrix.indices.dtype == data.matrix.indptr.dtype == np.int32
        assert data.matrix.has_canonical_format


def distance_of_neighbours(name: str) -> float:
    """Median distance of rows that a matrix joins, or of points side by side in memory; 1 in random order."""
    data = make(name, 20_000)
    if data.matrix is not None:
        row, column = data.matrix.nonzero()
        return float(np.median(np.abs(row - column)[row != column])) / (data.n * (1 - 0.5**0.5))
    shuffled_points = data.points[np.random.default_rng(9).permutation(data.n)]
    along_memory, at_random = (
        np.median(np.linalg.norm(np.diff(points, axis=0), axis=1))
        for points in (data.points, shuffled_points)
    )
    return float(along_memory / at_random)


@pytest.mark.parametrize("name", [name for name, one in SETS.items() if one.use != "trace"])
def test_sets_are_in_random_order_or_not_as_the_table_says(name):
    distance = distance_of_neighbours(name)
    if SETS[name].is_partly_ordered or name == "laplacian_27":
        assert distance < 0.5
    else:
        assert 0.95 < distance < 1.05


def test_shapes_of_meshes_are_those_of_euler():
    sphere, plane = small("icosphere"), small("delaunay")
    assert (sphere.n, len(sphere.cells)) == (642, 1920)
    assert np.allclose(np.linalg.norm(sphere.points, axis=1), 1)
    lengths = np.linalg.norm(np.subtract(*sphere.points[sphere.cells.T]), axis=1)
    assert lengths.max() < 1.4 * lengths.min()
    assert 2 * plane.n < len(plane.cells) <= 3 * plane.n - 6
    tetrahedra, hexahedra = small("tetrahedra"), small("hexahedra_shuffled")
    assert len(tetrahedra.cells) == 6 * len(hexahedra.cells) == 6 * 7**3
    sides = tetrahedra.points[tetrahedra.cells[:, 1:]] - tetrahedra.points[tetrahedra.cells[:, :1]]
    assert np.abs(np.linalg.det(sides)).sum() / 6 == pytest.approx(7**3, rel=0.1)  # they fill the block


def test_matrices_are_what_they_are_called():
    cube, square = small("laplacian_27").matrix, small("laplacian_shuffled").matrix
    assert (cube.diagonal() == 26).all()
    assert (square.diagonal() == 4).all()
    assert np.bincount(np.diff(cube.indptr)).nonzero()[0].tolist() == [8, 12, 18, 27]
    assert np.bincount(np.diff(square.indptr)).nonzero()[0].tolist() == [3, 4, 5]
    banded = np.abs(np.subtract(*small("band_moved").matrix.nonzero())) <= 5
    assert 0.7 < banded.mean() < 0.95
    uniform, skew = (np.diff(small(name).matrix.indptr).max() for name in ("random_graph", "power_law"))
    assert skew > 3 * uniform


def test_traces_read_what_they_are_said_to_read():
    side = int(np.sqrt(small("image_columns").n))
    assert np.median(np.diff(small("image_columns").trace)) == side
    walk = make("grid_walk", 64**2)
    steps = np.abs(np.diff(walk.points[walk.trace].reshape(-1, 1024, 2), axis=0))
    assert (np.minimum(steps, 64 - steps).sum(axis=2) == 1).all()
    counts = np.sort(np.bincount(small("zipf_probes").trace))[::-1]
    assert counts[0] > 10 * np.bincount(small("hash_probes").trace).mean()
    assert np.bincount(small("tree_search").trace).argmax() == (N - 1) // 2  # the root
    merged = small("merged_streams").trace
    assert np.array_equal(np.sort(merged), np.arange(N))
    stream = merged * 16 // N
    assert all((np.diff(merged[stream == k]) > 0).all() for k in range(16))


@pytest.mark.parametrize("name", SETS)
def test_a_result_is_the_same_in_every_order(name):
    data, code = small(name), SETS[name].code
    expected = code(put(data, np.arange(data.n)))
    assert np.isfinite(expected).all()
    assert np.ptp(expected) > 0
    cells = None if data.cells is None else np.arange(len(data.cells))[::-1]
    for order in (Order(np.arange(data.n)[::-1], cells), shuffled(data, 3)):
        found = code(put(data, order))
        if SETS[name].use != "trace":
            assert not np.allclose(found, expected)
            found = undo(found, order)
        assert np.allclose(found, expected, rtol=1e-11, atol=1e-11)


@pytest.mark.parametrize(
    ("name", "library"),
    [("random_gas", "scipy"), ("two_sizes", "scipy"), ("clustered_gas", "compiled"), ("city_tiles", "scipy"),
     ("tetrahedra", "numpy"), ("hexahedra_shuffled", "compiled"), ("icosphere", "numpy"),
     ("delaunay", "compiled"), ("band_moved", "compiled"), ("power_law", "scipy"),
     ("image_columns", "compiled"), ("hash_probes", "numpy")],
)  # fmt: skip
def test_each_library_computes_the_same(name, library):
    data, one = small(name), SETS[name]
    assert library != one.library
    assert np.allclose(code_of(one.use, library)(data), one.code(data), rtol=1e-12, atol=1e-12)


def test_nearest_points_and_edges_are_those_of_a_plain_computation():
    data = small("clusters")
    every = np.sort(np.linalg.norm(data.points[:, None] - data.points, axis=2), axis=1)
    assert np.allclose(SETS["clusters"].code(data), every[:, 1:9].mean(axis=1))
    data = small("delaunay")
    expected = np.zeros_like(data.points)
    for i, j in data.cells:
        force = (data.values[i] + data.values[j]) / 2 * (data.points[j] - data.points[i])
        expected[i] += force
        expected[j] -= force
    assert np.allclose(SETS["delaunay"].code(data), expected)


def test_orders_with_locality_bring_items_together():
    gas = small("random_gas")
    hilbert = put(gas, along(gas))
    steps = [np.linalg.norm(np.diff(data.points, axis=0), axis=1).mean() for data in (gas, hilbert)]
    assert steps[1] < steps[0] / 3
    mesh = small("hexahedra_shuffled")
    cells = put(mesh, along(mesh)).cells
    assert (np.diff(cells.min(axis=1)) >= 0).all()
    matrix = small("laplacian_shuffled")
    spread = [
        np.abs(np.subtract(*d.matrix.nonzero())).max()
        for d in (matrix, put(matrix, along(matrix, "cuthill-mckee")))
    ]
    assert spread[1] < spread[0] / 5
    merged = small("merged_streams")
    assert np.array_equal(put(merged, along(merged, "first touch")).trace, np.arange(N))
    probes = small("hash_probes")
    assert sorted(along(probes, "first touch").items.tolist()) == list(range(N))
    with pytest.raises(ValueError, match=r"order 'hilbert' of data with values, trace; allowed: .* points"):
        along(probes)


@pytest.mark.parametrize(
    ("items", "message"),
    [([0, 1, 1], "items is no permutation: 2 is missing; allowed: each of 0 .. 2 once"),
     ([0, 1], r"items .*\(2,\)"), ([0, 1, 3], "items"), ([0.0, 1.0, 2.0], "items")],
)  # fmt: skip
def test_what_is_no_permutation_is_refused(items, message):
    with pytest.raises(ValueError, match=message):
        put(SetData(values=np.arange(3.0)), np.array(items))


@pytest.mark.parametrize("name", SETS)
def test_a_set_is_loaded_as_it_was_saved(name, tmp_path):
    data = small(name)
    data.save(tmp_path / "data.npz")
    found = SetData.load(tmp_path / "data.npz")
    assert found.arrays().keys() == data.arrays().keys()
    assert all(np.array_equal(found.arrays()[key], array) for key, array in data.arrays().items())
    assert (found.cutoff, found.neighbours, found.n) == (data.cutoff, data.neighbours, data.n)


def as_read(path) -> dict[str, np.ndarray]:
    """Read a file as its users do; fields of `SetData` by name."""
    if path.suffix == ".gsd":
        with gsd.hoomd.open(path) as file:
            frame = file[0]
            return {"points": frame.particles.position + frame.configuration.box[:3] / 2}
    if path.suffix == ".csv":
        table = pd.read_csv(path)
        columns = {"points": table[["x", "y", "z"]].to_numpy()}
        return columns | ({"radii": table["radius"].to_numpy()} if "radius" in table else {})
    if path.suffix == ".npy":
        found = np.load(path)
        return {"points" if found.ndim == 2 else "trace": found}
    if path.suffix == ".mtx":
        return {"matrix": csr_array(mmread(path))}
    if path.suffix == ".ply":
        lines = path.read_text().splitlines()
        body = lines[lines.index("end_header") + 1 :]
        n, m = (int(line.split()[2]) for line in lines if line.startswith("element"))
        assert len(body) == n + m
        return {"points": np.loadtxt(body[:n], ndmin=2), "cells": np.loadtxt(body[n:], dtype=int)}
    try:
        return {"matrix": load_npz(path)}
    except ValueError:
        return dict(np.load(path))


@pytest.mark.parametrize("name", SETS)
def test_a_file_has_the_set_in_its_order(name, tmp_path):
    data, path = small(name), tmp_path / f"{name}.{SETS[name].file}"
    for _ in range(2):  # the second replaces the first
        write(data, path)
    found = as_read(path)
    assert found
    for key, values in found.items():
        expected = getattr(data, key)
        if key == "matrix":
            values, expected = values.toarray(), expected.toarray()
        elif key == "points":
            values = values[:, : expected.shape[1]]
        assert np.allclose(values, expected, rtol=1e-6, atol=1e-4 if path.suffix == ".gsd" else 1e-6), key


def test_a_format_without_place_for_the_data_is_refused(tmp_path):
    with pytest.raises(ValueError, match=r"a\.mtx of data with points; allowed: data with matrix"):
        write(small("random_gas"), tmp_path / "a.mtx")
    with pytest.raises(ValueError, match=r"unknown ending '\.xyz'; allowed: .*\.gsd"):
        write(small("random_gas"), tmp_path / "a.xyz")
    assert not list(tmp_path.iterdir())


def test_an_unknown_set_and_too_few_items_are_refused():
    with pytest.raises(ValueError, match=r"unknown name 'gas'; allowed: one of random_gas, "):
        make("gas")
    with pytest.raises(ValueError, match=r"n = 10; allowed: an integer .*64"):
        make("random_gas", 10)
    with pytest.raises(
        ValueError, match="use = 'cells' with library = 'scipy'; allowed: cutoff with compiled"
    ):
        code_of("cells", "scipy")


@pytest.mark.parametrize("kind", [SetData, Order])
def test_a_damaged_file_is_refused_in_own_words(kind, tmp_path):
    small("hash_probes").save(tmp_path / "whole.npz")
    whole = (tmp_path / "whole.npz").read_bytes()
    half = len(whole) // 2
    changed = whole[:half] + bytes([whole[half] ^ 1]) + whole[half + 1 :]
    for k, content in enumerate((b"", b"1 2 3", whole[:half], changed)):
        path = tmp_path / f"{k}.npz"
        path.write_bytes(content)
        with pytest.raises(ValueError, match=rf"{k}\.npz cannot be read; allowed: \.npz or \.npy of numbers"):
            kind.load(path)
    np.savez(tmp_path / "other.npz", a=np.arange(3))
    with pytest.raises(ValueError, match=r"other\.npz holds a; allowed: "):
        kind.load(tmp_path / "other.npz")


@pytest.mark.full
@pytest.mark.parametrize("name", SETS)
def test_larger_sets_give_the_same_results_along_orders_with_locality(name):
    data, one = make(name, 30_000, 5), SETS[name]
    kind = (
        "hilbert"
        if data.points is not None
        else "cuthill-mckee"
        if data.matrix is not None
        else "first touch"
    )
    order = along(data, kind)
    found = one.code(put(data, order))
    found = found if one.use == "trace" else undo(found, order)
    assert np.allclose(found, one.code(data), rtol=1e-10, atol=1e-10)
