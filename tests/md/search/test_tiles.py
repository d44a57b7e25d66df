"""Tiles of cells: any width in any order of the cells, more particles in a cell than are staged at once."""

import re
from itertools import product

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

import md
import sfc
from md.backend.kernels.source import file_of
from md.search.grid import tiles
from tests import tiers
from tests.strategies import clouds

LAW = md.laws.SpringDashpot(stiffness=1e4, damping=5.0)
WIDTHS = st.sampled_from([None, 1, 2, 3, 4, 7, tiles.WIDEST])


def simulated(state, search, backend, precision="float64", fused=False):
    return md.Simulation(
        state, LAW, search=search, dt=1e-4, backend=backend, precision=precision, fused=fused
    )


def partners(simulation) -> list[list[int]]:
    """The slots that each particle reads, sorted."""
    stream = simulation.accesses()
    return [sorted(reads) for reads in np.split(stream.reads, stream.offsets[1:-1])]


@pytest.mark.parametrize("dim", [3, tiers.full(2)])
@tiers.examples(25)
@given(data=st.data(), width=WIDTHS)
def test_each_particle_meets_those_it_meets_under_coherent(dim, backend, data, width):
    state, order = data.draw(clouds(dims=st.just(dim))), data.draw(st.sampled_from(sfc.orderings(dim)))
    expected = simulated(state, md.search.Coherent(order), backend)
    found = simulated(state, md.search.Tiles(order, width), backend)
    assert partners(found) == partners(expected)
    assert np.array_equal(found.state.id, expected.state.id)


@pytest.mark.parametrize("dim", [3, tiers.nightly(2)])
@tiers.examples(25)
@given(data=st.data(), width=WIDTHS)
def test_each_particle_feels_what_it_feels_under_coherent(dim, backend, data, width):
    state, order = data.draw(clouds(dims=st.just(dim))), data.draw(st.sampled_from(sfc.orderings(dim)))
    expected = simulated(state, md.search.Coherent(order), backend)
    found = simulated(state, md.search.Tiles(order, width), backend)
    rounding = 1e-13 * len(state.pos) * (1e4 + 10 * np.abs(state.vel).sum(axis=1).max(initial=0))
    assert np.abs(found.forces() - expected.forces()).max(initial=0) <= rounding


@pytest.mark.parametrize(
    ("dim", "precision"),
    tiers.by_default(product((3, 2), ("float64", "float32")), lambda *kind: kind == (3, "float64")),
)
def test_more_in_one_cell_than_are_staged_at_once(backend, dim, precision):
    generator = np.random.default_rng(7)
    pos = 0.5 + 0.3 * generator.random((1000, dim))
    pos[600:] += 1.0 + 3 * generator.random((400, dim))
    state = md.State(pos, generator.normal(size=pos.shape), md.Box((6.0,) * dim))
    expected, found = (simulated(state, name, backend, precision) for name in ("naive", "tiles"))
    assert np.array_equal(found.pairs(), expected.pairs())
    assert len(found.pairs()) >= 600 * 599 // 2
    largest = 1000 * 1e4 * np.finfo(precision).eps
    assert np.abs(found.forces() - expected.forces()).max() <= 4 * largest


@pytest.mark.parametrize("width", [None, 1, 5])
def test_a_fused_run_moves_every_particle_once(backend, width):
    box = md.Box((40.3, 5.2, 4.1), (True, False, True))
    generator = np.random.default_rng(3)
    pos = 1 + generator.random((60, 3)) * (np.array(box.lengths) - 2)
    state = md.State(pos, 0.1 * generator.normal(size=pos.shape), box)
    free = md.laws.SpringDashpot(0, 0)
    search = md.search.Tiles(width=width)
    simulation = md.Simulation(state, free, search=search, dt=1e-2, backend=backend, fused=True)
    simulation.run(50)
    end = simulation.state.by_id()
    assert np.allclose(end.pos, state.pos + 0.5 * state.vel, rtol=0, atol=1e-12)


@pytest.mark.parametrize("precision", ["float64", tiers.nightly("float32")])
@pytest.mark.parametrize("fused", [False, True])
def test_runs_repeat_bit_for_bit(backend, fused, precision):
    ends = []
    for _ in range(2):
        simulation = simulated(md.scenes.benchmark_gas(729, 0.4), "tiles", backend, precision, fused=fused)
        simulation.run(40)
        ends.append(simulation.state)
    for name in ("pos", "vel", "id"):
        assert np.array_equal(getattr(ends[0], name), getattr(ends[1], name))


@pytest.mark.parametrize("width", [0, -1, 95, 2.5, True, "3"])
def test_a_width_out_of_range_is_refused(width):
    error = ValueError if type(width) is int else TypeError
    allowed = r"width of Tiles = .*; allowed: an integer of at least 1, up to 94 \(cells\); None for"
    with pytest.raises(error, match=allowed):
        md.search.Tiles(width=width)


@pytest.mark.parametrize("name", ["LANES", "WIDEST"])
def test_both_backends_have_the_same_limits(name):
    text = file_of("md.search.grid.tiles", ".cu").read_text()
    assert int(re.search(rf"#define {name} (\d+)", text)[1]) == getattr(tiles, name)
