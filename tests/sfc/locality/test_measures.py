"""Each measure is its definition, gives published figures, and samples honestly."""

import itertools
import math
import tracemalloc

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

import sfc
from sfc import locality
from tests.strategies import shapes
from tests.tiers import nightly

NAMES = {
    1: ["row", "random"],
    2: ["row", "zigzag", "random", "hilbert", "morton", "peano"],
    3: ["row", "zigzag", "random", "hilbert", "morton"],
    4: ["row", "random"],
}
MEASURES = {
    "dilation 1": lambda o, **k: locality.dilation(o, 1, **k),
    "dilation 2": locality.dilation,
    "dilation inf": lambda o, **k: locality.dilation(o, math.inf, **k),
    "bounding box": locality.bounding_box,
    "clusters": lambda o, **k: locality.clusters(o, 2, **k),
    "edge stretch": locality.edge_stretch,
}
every_measure = pytest.mark.parametrize("measure", MEASURES.values(), ids=MEASURES)


@st.composite
def small_orderings(draw):
    """Orderings of boxes of up to 256 cells, with and without gaps."""
    dim = draw(st.sampled_from(sorted(NAMES)))
    shape = draw(shapes(dim, {1: 40, 2: 9, 3: 5, 4: 4}[dim]))
    return sfc.ordering(draw(st.sampled_from(NAMES[dim])), shape)


def agrees(measure: locality.Measure, values: list) -> None:
    """Exact, and the mean and the largest of all these values."""
    assert (measure.exact, measure.error, measure.samples) == (True, 0.0, len(values))
    assert measure.mean == pytest.approx(np.mean(values) if values else math.nan, rel=1e-12, nan_ok=True)
    assert measure.worst == pytest.approx(max(values, default=math.nan), rel=1e-12, nan_ok=True)


def adjacent_positions(ordering: sfc.Ordering) -> list[tuple[int, int]]:
    """Positions of the two cells of each face-adjacent pair."""
    position = {tuple(cell): i for i, cell in enumerate(ordering.traversal().tolist())}
    steps = np.eye(ordering.dim, dtype=int).tolist()
    pairs = [(c, tuple(x + dx for x, dx in zip(c, s, strict=True))) for c in position for s in steps]
    return [(position[a], position[b]) for a, b in pairs if b in position]


@pytest.mark.quick
@pytest.mark.parametrize("norm", [1, 2, math.inf])
@given(ordering=small_orderings().filter(lambda o: o.size <= 80))
def test_dilation_is_distance_to_the_dim_over_lag(norm, ordering):
    cells = ordering.traversal()
    pairs = itertools.combinations(range(len(cells)), 2)
    values = [np.linalg.norm(cells[j] - cells[i], norm) ** ordering.dim / (j - i) for i, j in pairs]
    agrees(locality.dilation(ordering, norm), values)


@pytest.mark.quick
@given(ordering=small_orderings().filter(lambda o: o.size <= 80))
def test_bounding_box_is_its_volume_over_the_section_s(ordering):
    cells = ordering.traversal()
    pairs = itertools.combinations(range(len(cells)), 2)
    values = [np.prod(np.ptp(cells[i : j + 1], axis=0) + 1) / (j - i + 1) for i, j in pairs]
    agrees(locality.bounding_box(ordering), values)


@pytest.mark.quick
@given(ordering=small_orderings(), data=st.data())
def test_clusters_are_the_runs_of_positions_in_a_window(ordering, data):
    window = tuple(data.draw(st.integers(1, side)) for side in ordering.shape)
    cells = ordering.traversal()
    values = []
    for corner in itertools.product(*[range(s - w + 1) for s, w in zip(ordering.shape, window, strict=True)]):
        within = ((cells >= corner) & (cells < np.add(corner, window))).all(axis=1)
        values.append(sum(1 for i, is_in in enumerate(within) if is_in and not (i and within[i - 1])))
    found = locality.clusters(ordering, window)
    agrees(found, values)
    assert found.counts.tolist() == [values.count(c) for c in range(max(values) + 1)]


@pytest.mark.quick
@given(ordering=small_orderings())
def test_edge_stretch_is_the_distance_along_the_order(ordering):
    agrees(locality.edge_stretch(ordering), [abs(a - b) for a, b in adjacent_positions(ordering)])


@pytest.mark.quick
@given(ordering=small_orderings(), data=st.data())
def test_partition_cut_counts_the_faces_between_equal_pieces(ordering, data):
    pieces = data.draw(st.integers(1, ordering.size))
    short, longer = divmod(ordering.size, pieces)
    piece = [p for p in range(pieces) for _ in range(short + (p < longer))]
    edges = adjacent_positions(ordering)
    faces = [0] * pieces
    for a, b in edges:
        if piece[a] != piece[b]:
            faces[piece[a]] += 1
            faces[piece[b]] += 1
    found = locality.partition_cut(ordering, pieces)
    assert (found.cut, found.exact, found.error, found.samples) == (sum(faces) // 2, True, 0.0, len(edges))
    assert found.share == pytest.approx(sum(faces) / 2 / len(edges) if edges else math.nan, nan_ok=True)
    cube = 2 * ordering.dim * (ordering.size / pieces) ** ((ordering.dim - 1) / ordering.dim)
    assert found.surface == pytest.approx(np.mean(faces) / cube)


def test_an_int_is_the_window_along_every_axis():
    ordering = sfc.ordering("hilbert", (9, 7, 5))
    assert locality.clusters(ordering, 3) == locality.clusters(ordering, (3, 3, 3))
    assert locality.clusters(ordering, np.int32(3)) != locality.clusters(ordering, [3, 3, 2])


# Haverkort and van Walderveen, Computational Geometry 43 (2010) 131: WL in the norms 1, 2 and max, and WBA.
# They are limits of finer and finer curves, each of which is a section of the next.
@pytest.mark.parametrize(
    ("curve", "finest", "measure", "limit", "gap"),
    [
        ("hilbert", 6, "dilation 1", 9, 0.38),
        ("hilbert", 6, "dilation 2", 6, 0.39),
        ("hilbert", 6, "dilation inf", 6, 0.39),
        ("hilbert", 6, "bounding box", 2.4, 0.008),
        nightly("hilbert", 7, "dilation 1", 9, 0.2),
        nightly("hilbert", 7, "dilation 2", 6, 0.2),
        nightly("hilbert", 7, "dilation inf", 6, 0.2),
        nightly("hilbert", 7, "bounding box", 2.4, 0.002),
        ("peano", 4, "dilation 1", 32 / 3, 0.4),
        ("peano", 4, "dilation 2", 8, 0.31),
        ("peano", 4, "dilation inf", 8, 0.31),
        ("peano", 4, "bounding box", 2, 0.001),
    ],
)
def test_the_worst_case_rises_to_the_published_value(curve, finest, measure, limit, gap):
    base = sfc.curve(curve, 2).base
    orders = range(1, finest + 1)
    worst = [MEASURES[measure](sfc.ordering(curve, (base**k, base**k))).worst for k in orders]
    assert all(finer > coarser for coarser, finer in itertools.pairwise(worst))
    assert limit - gap < worst[-1] < limit


@given(ordering=st.sampled_from([(n, d) for d in (2, 3) for n in NAMES[d]]), side=st.integers(2, 5))
def test_no_order_of_a_cube_beats_the_bound_of_gotsman_and_lindenbaum(ordering, side):
    """(2**dim - 1) (1 - 1/side)**dim: some two corners in a row are no further apart along the order."""
    name, dim = ordering
    worst = locality.dilation(sfc.ordering(name, (side,) * dim)).worst
    assert worst > (2**dim - 1) * (1 - 1 / side) ** dim


@pytest.mark.parametrize("k", [1, 2, 3])
@pytest.mark.parametrize("n", [1, 2, 3, 4, 5])
def test_clusters_of_the_hilbert_curve_obey_the_theorem_of_moon_et_al(k, n):
    """Mean over windows of 2**k a side in a grid of 2**(k + n): IEEE TKDE 13 (2001) 124, theorem 2."""
    windows = 2 ** (k + n) - 2**k + 1
    clusters = (2**n - 1) ** 2 * 2 ** (3 * k) + (2**n - 1) * 2 ** (2 * k) + 2**n
    found = locality.clusters(sfc.ordering("hilbert", (2 ** (k + n),) * 2), 2**k)
    assert found.counts @ np.arange(len(found.counts)) == clusters
    assert found.samples == windows**2
    assert found.mean == pytest.approx(clusters / windows**2, rel=1e-12)


@pytest.mark.parametrize(
    ("dim", "side", "off"), [(2, 512, 0.002), (3, 64, 0.02), nightly(2, 1024, 0.001), nightly(3, 128, 0.01)]
)
@pytest.mark.parametrize("window", [2, 4])
def test_a_window_of_a_large_grid_has_surface_over_2_dim_clusters(dim, side, off, window):
    """The limit of Moon et al. for a curve without jumps: 2 and 4 in 2D, 4 and 16 in 3D."""
    mean = locality.clusters(sfc.ordering("hilbert", (side,) * dim), window).mean
    assert mean == pytest.approx(window ** (dim - 1), rel=off)


@given(n=st.integers(2, 12), m=st.integers(2, 12))
def test_row_order_has_closed_forms(n, m):
    row = sfc.ordering("row", (n, m))
    stretch = locality.edge_stretch(row)
    assert stretch.mean == pytest.approx(((n - 1) * m + n * (m - 1) * n) / ((n - 1) * m + n * (m - 1)))
    assert stretch.worst == n
    assert locality.partition_cut(row, m).cut == n * (m - 1)
    assert locality.clusters(row, (n - 1, m)).counts.tolist() == [0] * m + [2]
    assert locality.clusters(row, (n, m)).counts.tolist() == [0, 1]


def test_on_a_line_the_row_order_is_perfect():
    line = sfc.ordering("row", (50,))
    for measure in MEASURES.values():
        assert (measure(line).mean, measure(line).worst) == (1.0, 1.0)


@pytest.mark.parametrize("dim", [2, 3])
def test_the_hilbert_curve_cuts_cubes(dim):
    hilbert = sfc.ordering("hilbert", (16,) * dim)
    part = locality.partition_cut(hilbert, 4**dim)
    assert part.cut == dim * 3 * 16 ** (dim - 1)
    assert part.surface == pytest.approx(3 / 4)  # a quarter of the faces of the cubes are on the wall


SAMPLED = [("hilbert", (32, 32)), ("hilbert", (23, 9)), ("random", (24, 24)), ("zigzag", (40, 3))]
SAMPLED += [("zigzag", (9, 8, 7)), ("morton", (8, 8, 8))]


@every_measure
@pytest.mark.parametrize(("name", "shape"), SAMPLED)
def test_a_sample_agrees_with_all(measure, name, shape):
    ordering = sfc.ordering(name, shape)
    every, some = measure(ordering), measure(ordering, samples=4000, seed=5)
    assert (some.exact, some.samples) == (False, 4000)
    assert abs(some.mean - every.mean) <= 5 * some.error
    assert 0 < some.error < every.mean
    assert some.worst <= every.worst
    assert measure(ordering, samples=4000, seed=5) == some
    assert measure(ordering, samples=4000, seed=6) != some


@pytest.mark.quick
@pytest.mark.parametrize("shape", [(32, 32), (23, 9), (9, 8, 7)])
def test_a_sampled_partition_agrees_with_all(shape):
    ordering = sfc.ordering("hilbert", shape)
    every, some = locality.partition_cut(ordering, 10), locality.partition_cut(ordering, 10, samples=4000)
    assert (some.exact, some.samples) == (False, 4000)
    assert abs(some.share - every.share) <= 5 * some.error
    assert some.cut == round(some.share * every.samples)
    assert some.surface == pytest.approx(every.surface * some.cut / every.cut)


@every_measure
@pytest.mark.parametrize(("name", "shape"), [("hilbert", (5, 4)), ("random", (3, 2, 4))])
def test_a_sample_of_all_there_is_finds_the_worst(measure, name, shape):
    ordering = sfc.ordering(name, shape)
    assert measure(ordering, samples=2**14).worst == measure(ordering).worst


@every_measure
def test_two_in_three_samples_are_within_their_error(measure):
    """A weight forgotten, or an error of the wrong size, would show."""
    ordering = sfc.ordering("random", (6, 7))
    mean = measure(ordering).mean
    drawn = [measure(ordering, samples=300, seed=seed) for seed in range(200)]
    within = np.mean([abs(m.mean - mean) < m.error for m in drawn])
    assert 0.55 < within < 0.8  # 0.683, with a standard error of 0.033
    assert abs(np.mean([m.mean for m in drawn]) - mean) < 4 * np.mean([m.error for m in drawn]) / np.sqrt(200)


def test_large_windows_are_sampled_one_by_one():
    found = locality.clusters(sfc.ordering("row", (1500, 1500)), 1470, samples=2)
    assert (found.mean, found.worst, found.samples) == (1470, 1470, 2)


def test_a_huge_box_is_sampled_without_being_listed():
    hilbert = sfc.ordering("hilbert", (2**20,) * 3)
    for measure in (m for name, m in MEASURES.items() if name != "bounding box"):
        found = measure(hilbert)
        assert (found.exact, found.samples) == (False, locality.SAMPLES)
        assert 0 < found.mean <= found.worst
    assert locality.clusters(hilbert, 2).mean == pytest.approx(4, rel=0.02)
    none_found = locality.partition_cut(hilbert, 2)
    assert none_found.share == 0
    assert none_found.error > 0
    row = locality.edge_stretch(sfc.ordering("row", (2**30, 2**30)))
    assert row.mean == pytest.approx((1 + 2**30) / 2, abs=5 * row.error)


def test_pairs_are_sampled_in_boxes_too_large_for_all():
    assert locality.dilation(sfc.ordering("row", (128, 129))).samples == locality.SAMPLES
    assert locality.bounding_box(sfc.ordering("row", (128, 129))).samples == locality.SAMPLES
    assert locality.edge_stretch(sfc.ordering("row", (128, 129))).exact


@pytest.mark.parametrize("samples", [None, 10])
@pytest.mark.parametrize("shape", [(1,), (1, 1), (1, 1, 1)])
def test_a_single_cell_has_no_pair(shape, samples):
    cell = sfc.ordering("row", shape)
    for measure in (locality.dilation, locality.bounding_box, locality.edge_stretch):
        found = measure(cell, samples=samples)
        assert math.isnan(found.mean)
        assert math.isnan(found.worst)
        assert (found.error, found.exact, found.samples) == (0.0, True, 0)
    part = locality.partition_cut(cell, 1, samples=samples)
    assert math.isnan(part.share)
    assert (part.cut, part.surface, part.samples) == (0, 0.0, 0)
    assert locality.clusters(cell, 1, samples=samples).counts.tolist() == [0, 1]


@every_measure
def test_one_sample_has_no_standard_error(measure):
    assert math.isnan(measure(sfc.ordering("row", (4, 4)), samples=1).error)


def test_edge_stretch_holds_one_axis_at_a_time():
    """The table of positions and the stretches along one axis, 8 bytes a cell each: not along all three."""
    ordering = sfc.ordering("row", (256, 256, 64))
    locality.edge_stretch(ordering)
    tracemalloc.start()
    try:
        locality.edge_stretch(ordering)
        peak = tracemalloc.get_traced_memory()[1]
    finally:
        tracemalloc.stop()
    assert peak < 26 * ordering.size
