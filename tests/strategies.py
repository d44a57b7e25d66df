"""What Hypothesis draws: curves and their cells, shapes, boxes, clouds of particles, access streams."""

import numpy as np
from hypothesis import strategies as st
from hypothesis.extra import numpy as hnp

import md
import sfc

INTEGER_DTYPES = [np.dtype(f"{kind}{bytes}") for kind in "iu" for bytes in (1, 2, 4, 8)]
CURVES = [
    (name, dim)
    for dim in (2, 3, 4)
    for name in sfc.curves(dim)
    if isinstance(sfc.curve(name, dim), sfc.Curve)
]  # those with tables
# With tables and without; three orders fit a key of each.
MANY_DIMS = [
    ("hindex", 2),
    ("skilling", 5),
    ("hilbert", 6),
    ("skilling", 6),
    ("hilbert", 9),
    ("gray", 16),
    ("morton", 21),
]
ORDERINGS = [(name, dim) for dim in (1, 2, 3, 4) for name in sfc.orderings(dim)]
DIMS = st.sampled_from([2, 3])


@st.composite
def cells_of(draw, curve: sfc.AnyCurve):
    """(cells, order) of a curve, in any integer dtype and at any order up to the largest."""
    order = draw(st.integers(0, curve.max_order))
    dtype = draw(st.sampled_from(INTEGER_DTYPES))
    highest = min(curve.base**order - 1, int(np.iinfo(dtype).max))
    shape = (draw(st.integers(0, 12)), curve.dim)
    coordinate = st.one_of(st.integers(0, highest), st.sampled_from([0, highest]))
    return draw(hnp.arrays(dtype, shape, elements=coordinate)), order


@st.composite
def indices_of(draw, curve: sfc.AnyCurve):
    """(index, order) of a curve, in any integer dtype and at any order up to the largest."""
    order = draw(st.integers(0, curve.max_order))
    dtype = draw(st.sampled_from(INTEGER_DTYPES))
    highest = min(curve.base ** (curve.dim * order) - 1, int(np.iinfo(dtype).max))
    position = st.one_of(st.integers(0, highest), st.sampled_from([0, highest]))
    return draw(hnp.arrays(dtype, draw(st.integers(0, 12)), elements=position)), order


def all_cells(shape: tuple[int, ...]) -> np.ndarray:
    """Every cell of a box, axis 0 fastest."""
    return np.stack([axis.ravel(order="F") for axis in np.indices(shape)], axis=1)


def shapes(dim: int, largest: int = 9):
    """Cells along each axis of a box, sides of one cell included."""
    return st.tuples(*[st.one_of(st.just(1), st.integers(1, largest))] * dim)


def shapes_filled_by(name: str, dim: int):
    """Shapes that an ordering can fill: any, but for the pancake."""
    if name != "pancake":
        return shapes(dim)
    height, blocks = st.sampled_from([1, 2, 4, 8]), st.tuples(st.integers(1, 4), st.integers(1, 4))
    return st.tuples(height, blocks).map(lambda drawn: (*(b * drawn[0] for b in drawn[1]), drawn[0]))


@st.composite
def access_streams(draw):
    """Who reads what, as (reads of each slot, stream)."""
    n = draw(st.integers(1, 20))
    rows = draw(st.lists(st.lists(st.integers(0, n - 1), max_size=6), min_size=n, max_size=n))
    offsets = np.concatenate([[0], np.cumsum([len(row) for row in rows])]).astype(np.int64)
    reads = np.array([slot for row in rows for slot in row], np.int32)
    return rows, sfc.cache.AccessStream(offsets, reads)


@st.composite
def boxes(draw, dim: int):
    """Boxes of unequal sides, each axis periodic or not; as narrow as a cutoff of 1 allows."""
    lengths, periodic = [], []
    for _ in range(dim):
        wraps = draw(st.booleans())
        narrow = [2.0, 2.5, 3.0, 3.999] if wraps else [0.4, 1.0, 2.0]
        lengths.append(draw(st.one_of(st.sampled_from(narrow), st.floats(2.0, 7.0), st.sampled_from([60.0]))))
        periodic.append(wraps)
    return md.Box(tuple(lengths), tuple(periodic))


@st.composite
def clouds(draw, max_particles: int = 24, dims=DIMS):
    """States of any kind: none, one or many particles, coincident, touching exactly, on both sides."""
    box = draw(boxes(draw(dims)))
    n = draw(st.one_of(st.integers(0, 2), st.integers(3, max_particles)))
    lengths = np.array(box.lengths)
    edge = st.sampled_from([0.0, 0.5, 1.0, np.nextafter(1.0, 0.0)])
    fractions = draw(hnp.arrays(float, (n, box.dim), elements=st.one_of(st.floats(0, 1), edge)))
    pos = fractions * lengths
    if draw(st.booleans()):
        pos = np.minimum(np.round(2 * pos) / 2, lengths)  # distances of exactly one diameter
    if n and draw(st.booleans()):
        copies = draw(hnp.arrays(int, n, elements=st.integers(0, n - 1)))
        pos[::3] = pos[copies][::3]
    pos = np.where(np.array(box.periodic) & (pos >= lengths), 0.0, pos)
    generator = np.random.default_rng(draw(st.integers(0, 2**16)))
    names = generator.permutation(3 * n)[:n]
    return md.State(pos, generator.normal(scale=4.0, size=(n, box.dim)), box, id=names)
