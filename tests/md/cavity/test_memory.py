"""Fields in memory: layouts, places along an ordering, and the reads of a sweep."""

import numpy as np
import pytest

import md
import sfc
from md.cavity.memory import cell_dtype, places, stencil, zeros
from md.cavity.strategies import Blocked


@pytest.mark.quick
@pytest.mark.parametrize("order", ["row", "hilbert", "zigzag", sfc.curve("morton", 2)])
def test_places_are_those_of_the_ordering(order):
    place = places(order, (5, 7))
    cells = sfc.ordering(order, (7, 5)).traversal()  # (x, y) in the order of memory
    assert place[cells[:, 1], cells[:, 0]].tolist() == list(range(35))


@pytest.mark.quick
def test_the_stencil_holds_the_neighbours_of_the_points_inside():
    place = places("hilbert", (5, 7))
    where = {int(place[y, x]): (y, x) for y in range(5) for x in range(7)}
    found = stencil(place)
    assert len(found.centre) == 15
    assert (np.diff(found.centre) > 0).all()
    for centre, west, east, south, north in zip(*found, strict=True):
        y, x = where[centre]
        assert 0 < y < 4
        assert 0 < x < 6
        assert [where[k] for k in (west, east, south, north)] == [
            (y, x - 1),
            (y, x + 1),
            (y - 1, x),
            (y + 1, x),
        ]


@pytest.mark.quick
def test_records_hold_all_that_the_source_stores():
    assert cell_dtype(np.dtype("float64")).itemsize == 184
    assert cell_dtype(np.dtype("float32")).itemsize == 92
    fields, spacing = zeros(12, np.dtype("float64"), "structs")
    assert {field.strides for field in fields} == {(184,)} == {(8 * spacing,)}
    for number, field in enumerate(fields):
        field[...] = number
    assert [float(field[11]) for field in fields] == list(range(7))
    arrays, spacing = zeros(12, np.dtype("float32"), "arrays")
    assert {field.strides for field in arrays} == {(4,)} == {(4 * spacing,)}


@pytest.mark.quick
def test_accesses_of_a_sweep_are_the_neighbours():
    found = md.Cavity((3, 4), viscosity=0.1, backend="cpu").accesses()
    assert found.readers.tolist() == [5, 6]
    assert found.reads.tolist() == [4, 6, 1, 9, 5, 7, 2, 10]
    assert found.offsets.tolist() == [0, 4, 8]


@pytest.mark.quick
def test_curves_hit_more_often_in_a_small_cache():
    def hits(order):
        cavity = md.Cavity((65, 65), viscosity=0.1, strategy="serial", order=order, backend="cpu")
        return sfc.cache.block(cavity.accesses(), capacity=64).ratio

    assert hits("hilbert") > 1.3 * hits("row") > 10 * hits("random")


@pytest.mark.quick
def test_dense_bases_that_there_is_no_memory_for_are_refused(monkeypatch):
    monkeypatch.setattr(md.backend.Cpu, "free_memory", lambda _: 2**36)
    with pytest.raises(ValueError, match=r"fields of shape \(3, 200000\): .* are needed; .*strategy='numpy'"):
        md.Cavity((3, 200_000), viscosity=0.1, strategy="spectral", backend="cpu")


@pytest.mark.quick
def test_rings_of_blocks_count(monkeypatch):
    def bytes_of(strategy, shape=(100, 900)):
        one = md.Cavity(shape, viscosity=0.1, strategy=strategy, backend="cpu")
        return strategy.needed_bytes(one.scheme, "arrays", "row", one.backend), one._solver

    found, solver = bytes_of(Blocked(20))
    u, v, _, u_next, v_next, _, source = solver._fields
    assert found == sum(array.nbytes for array in (u, v, u_next, v_next, source, solver._rows))
    assert bytes_of(Blocked(), (9, 9))[0] == 9 * 9 * 56


@pytest.mark.quick
@pytest.mark.parametrize(
    ("options", "point"),
    [
        ({"strategy": "numpy"}, 56),
        ({"strategy": "numpy", "precision": "float32"}, 28),
        ({"strategy": "serial", "layout": "structs"}, 184),
        ({"strategy": "serial", "order": "hilbert"}, 56 + 24),
    ],
)
def test_fields_that_there_is_no_memory_for_are_refused(options, point, monkeypatch):
    monkeypatch.setattr(md.backend.Cpu, "free_memory", lambda _: 800 * 900 * point)
    md.Cavity((800, 900), viscosity=0.1, backend="cpu", **options)
    monkeypatch.setattr(md.backend.Cpu, "free_memory", lambda _: 800 * 900 * point - 1)
    message = r"fields of shape \(800, 900\): .* are needed; .*smaller shape"
    with pytest.raises(ValueError, match=message):
        md.Cavity((800, 900), viscosity=0.1, backend="cpu", **options)
