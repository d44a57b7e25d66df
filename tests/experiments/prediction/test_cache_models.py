"""Models of caches: the hits are those of a count by hand."""

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

import md
import sfc
from experiments.prediction.cache_models import MODELS, predicted
from experiments.prediction.systems import GEOMETRIES

every_geometry = pytest.mark.parametrize("name", list(GEOMETRIES))


def partners_by_hand(cells: np.ndarray, shape) -> list[set[int]]:
    """Of each particle those in the same and in adjacent boxes, round the ends of the axes."""
    apart = np.abs(cells[:, None] - cells[None])
    near = (np.minimum(apart, np.array(shape) - apart) <= 1).all(axis=2)
    np.fill_diagonal(near, False)
    return [set(np.flatnonzero(row).tolist()) for row in near]


def hits_by_hand(partners: list[set[int]], capacity: int) -> tuple[int, int]:
    hits = sum(j // capacity == i // capacity for i, those in enumerate(partners) for j in those)
    return hits, sum(map(len, partners))


@every_geometry
@given(
    seed=st.integers(0, 99), side=st.integers(2, 5), phi=st.floats(0.02, 0.6), capacity=st.integers(1, 40),
    order=st.sampled_from(["hilbert", "peano", "row", "zigzag", "shuffled", "lattice"]),
)  # fmt: skip
def test_block_hits_are_those_that_a_count_finds(name, seed, side, phi, capacity, order):
    geometry = GEOMETRIES[name]
    state = geometry.gas(side, 3, phi, "ideal", 1.0, seed, "cpu")
    state = geometry.in_order(state, order, seed)
    seen = geometry.seen(state)
    stream = md.Simulation(seen, md.scenes.BENCHMARK_LAW, search="linked", backend="cpu").accesses()
    boxes = np.array(state.box.lengths[: geometry.read], dtype=int)
    cells = np.minimum(state.pos[:, : geometry.read].astype(int), boxes - 1)
    partners = partners_by_hand(cells, boxes)
    rows = np.split(stream.reads, stream.offsets[1:-1])
    assert [set(row.tolist()) for row in rows] == partners
    hits, reads = hits_by_hand(partners, capacity)
    if reads:
        (row,) = predicted(stream, ("block",), (capacity,))
        assert row["hit_ratio"] == hits / reads
        assert row["speed_up"] == pytest.approx(100 / (hits / reads + 100 * (1 - hits / reads)))


def test_every_model_and_capacity_has_a_row_and_lines_need_whole_sets():
    stream = sfc.cache.AccessStream([0, 2, 3], [1, 1, 0])
    rows = list(predicted(stream, MODELS, (1, 128, 200)))
    assert [(row["model"], row["cache_particles"]) for row in rows] == [
        ("block", 1), ("block", 128), ("block", 200), ("lru", 1), ("lru", 128), ("lru", 200),
        ("set_associative", 128),
    ]  # fmt: skip
    assert [row["hit_ratio"] for row in rows] == pytest.approx([0, 1, 1, 1 / 3, 1 / 3, 1 / 3, 2 / 3])


def test_hits_of_each_reader_add_up_to_those_of_all():
    state = GEOMETRIES["cubes"].gas(6, 3, 0.3, "ideal", 1.0, 0, "cpu")
    stream = md.Simulation(state, md.scenes.BENCHMARK_LAW, backend="cpu").accesses()
    each = sfc.cache.block_hits(stream, 50)
    assert each.sum() == sfc.cache.block(stream, 50).hits > 0
    assert (each <= np.diff(stream.offsets)).all()
