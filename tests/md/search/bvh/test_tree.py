"""The tree: binary, over all leaves in Morton order, with boxes of its nodes; the same on both backends."""

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

import md
import sfc
from md.particles.arrays import ParticleArrays
from md.particles.cell_grid import CellGrid
from md.search.bvh.curve_keys import bits_for
from md.search.bvh.tree import Tree
from sfc.curves.morton import bitwise
from tests import tiers

pytestmark = pytest.mark.split

NAMES = ("other_end", "ropes", "parent", "nodes")
KEYS = ("keys", "order", "extent")


def tree_of(pos, box: md.Box, backend: str, precision=np.float64, curve="morton") -> dict[str, np.ndarray]:
    """The tree's arrays on the host, and the particles' positions in its order."""
    place = md.backend.get(backend)
    particles = ParticleArrays(md.State(pos, np.zeros_like(pos), box), np.dtype(precision), place)
    tree = Tree(len(pos), CellGrid(box, 1.0, precision, place), place, curve)
    tree.build(particles.pos)
    if len(pos):
        particles.permute(tree.keys.order)
    tree.fit(particles.pos)
    found = {name: place.download(getattr(tree, name)) for name in NAMES}
    found |= {name: place.download(getattr(tree.keys, name)) for name in KEYS}
    numbers = {"bits": tree.keys.bits, "depth": tree.depth}
    return found | numbers | {"pos": place.download(particles.pos)}


def children(tree, node: int) -> tuple[int, int]:
    left = tree["ropes"][2 * node]
    return left, tree["ropes"][2 * left + 1]


def corners(tree, node: int) -> tuple[np.ndarray, np.ndarray]:
    dim = tree["pos"].shape[1]
    return tree["nodes"][2 * node, :dim], tree["nodes"][2 * node + 1, :dim]


def check(tree) -> None:
    """Whether it is a tree over all leaves, split where keys first differ, each box that of a range."""
    n = len(tree["pos"])
    assert (np.diff(tree["keys"].astype(object)) >= 0).all()
    keys = [format(int(key), "064b") + format(k, "032b") for k, key in enumerate(tree["keys"])]
    met, depth_first, levels = [], [], []

    def visit(node, first, last, above, level):
        depth_first.append(node)
        assert tree["parent"][node] == above
        inside = tree["pos"][first : last + 1]
        low, high = corners(tree, node)
        assert (low == inside.min(axis=0)).all()
        assert (high == inside.max(axis=0)).all()
        if node >= n - 1:
            assert node - (n - 1) == first == last
            met.append(first)
            levels.append(level)
            return
        assert {node, tree["other_end"][node]} == {first, last}
        left, right = children(tree, node)
        shared = next(k for k, (a, b) in enumerate(zip(keys[first], keys[last], strict=True)) if a != b)
        split = max(k for k in range(first, last) if keys[k][: shared + 1] == keys[first][: shared + 1])
        visit(left, first, split, node, level + 1)
        visit(right, split + 1, last, node, level + 1)

    if n == 0:
        return
    visit(0, 0, n - 1, -1, 1)
    assert met == list(range(n))
    assert max(levels) <= tree["depth"]
    following = dict(zip(depth_first, [*depth_first[1:], -1], strict=True))
    for node in depth_first:
        last = node - (n - 1) if node >= n - 1 else max(node, tree["other_end"][node])
        assert tree["ropes"][2 * node] == following[node]
        assert tree["ropes"][2 * node + 1] == following[n - 1 + last]


def clouds(dim: int):
    """Positions in a box of 8: anywhere, on few places, on a line."""
    anywhere = st.lists(st.tuples(*[st.floats(0, 7.9375, width=32)] * dim), max_size=70)
    few = st.lists(st.tuples(*[st.sampled_from([0.0, 0.5, 0.50000006, 7.5])] * dim), max_size=70)
    line = st.lists(st.floats(0, 7.9375, width=32), max_size=70).map(
        lambda xs: [(x, *[3.0] * (dim - 1)) for x in xs]
    )
    return st.one_of(anywhere, few, line).map(lambda rows: np.array(rows, float).reshape(-1, dim))


@pytest.mark.parametrize("dim", [2, 3])
@given(data=st.data())
def test_it_is_a_tree_over_all_leaves(dim, data, backend):
    check(tree_of(data.draw(clouds(dim)), md.Box((8.0,) * dim), backend))


@pytest.mark.parametrize("curve", ["hilbert", "gray"])
def test_it_may_follow_any_curve_that_halves_its_cubes(curve, backend):
    pos = np.random.default_rng(3).random((3000, 3)) * 8
    tree = tree_of(pos, md.Box((8.0,) * 3), backend, curve=curve)
    low, high = tree["extent"][::2], tree["extent"][1::2]
    side = 2 ** tree["bits"]
    cells = np.minimum(((pos - low) * (side / (high - low).max())).astype(int), side - 1)
    index = sfc.curve(curve, 3).encode(cells, tree["bits"])
    assert np.array_equal(tree["keys"], np.sort(index))
    assert np.array_equal(tree["order"], np.argsort(index, kind="stable"))
    check(tree)


def test_boxes_are_right_however_far_particles_have_moved(backend):
    place, box = md.backend.get(backend), md.Box((8.0,) * 3, periodic=False)
    rng = np.random.default_rng(4)
    first, then = (rng.random((777, 3)) * 8 for _ in range(2))
    particles = ParticleArrays(md.State(first, first, box), np.dtype(np.float64), place)
    tree = Tree(777, CellGrid(box, 1.0, np.float64, place), place)
    tree.build(particles.pos)
    tree.fit(particles.pos)
    particles.pos[...] = place.upload(then)
    tree.fit(particles.pos)
    check_boxes(tree, then, place)


def check_boxes(tree, pos, place) -> None:
    """Whether each box is that of its leaves, which are at these positions."""
    found = {name: place.download(getattr(tree, name)) for name in NAMES} | {"pos": pos}
    n = len(pos)
    for node in range(2 * n - 1):
        ends = {node, found["other_end"][node]} if node < n - 1 else {node - (n - 1)}
        inside = pos[min(ends) : max(ends) + 1]
        low, high = corners(found, node)
        assert (low == inside.min(axis=0)).all()
        assert (high == inside.max(axis=0)).all()


def test_a_particle_beyond_a_periodic_side_stays_there_in_the_tree(backend):
    place, box = md.backend.get(backend), md.Box((8.0, 8.0), periodic=(True, False))
    pos = np.random.default_rng(5).random((300, 2)) * 8
    particles = ParticleArrays(md.State(pos, pos, box), np.dtype(np.float64), place)
    tree = Tree(300, CellGrid(box, 1.0, np.float64, place), place)
    tree.build(particles.pos)
    order = place.download(tree.keys.order)
    tree.fit(particles.pos, tree.keys.order)
    gone = pos + np.array([3.0, 0.0])
    particles.pos[...] = place.upload(box.wrap(gone))
    tree.fit(particles.pos, tree.keys.order)
    check_boxes(tree, (box.wrap(gone) + np.where(gone >= 8, [8.0, 0.0], 0))[order], place)
    tree.build(particles.pos)
    tree.fit(particles.pos, tree.keys.order)
    check_boxes(tree, box.wrap(gone)[place.download(tree.keys.order)], place)


@pytest.mark.parametrize(
    ("options", "message"),
    [
        ({"curve": "peano"}, "a tree in 3D along 'peano'; allowed: .*hilbert.*, or a curve of base 2"),
        ({"curve": "row"}, "a tree in 3D along 'row'"),
        ({"curve": bitwise(3)}, "a tree in 3D along <BitwiseCurve morton 3D>; .* of base 2 with tables"),
    ],
)
def test_what_is_no_tree_is_refused(options, message):
    with pytest.raises(ValueError, match=message):
        tree_of(np.zeros((3, 3)), md.Box((8.0,) * 3), "cpu", **options)


@pytest.mark.parametrize(
    ("side", "n", "bits"),
    [tiers.nightly(16.0, 500, 8), (256.0, 500, 8), (257.0, 500, 10), (1024.0, 500, 10), (1025.0, 500, 21)],
)
def test_keys_are_as_short_as_cells_no_wider_than_the_cutoff_allow(side, n, bits, backend):
    pos = np.random.default_rng(0).random((n, 3)) * side
    tree = tree_of(pos, md.Box((side,) * 3), backend)
    assert tree["bits"] == bits
    assert tree["keys"].max() < 2 ** (3 * bits)
    assert tree["keys"].dtype == (np.uint32 if bits <= 10 else np.uint64)
    check(tree)


def test_keys_are_longer_where_particles_are_many():
    place = md.backend.get("cpu")
    grid = CellGrid(md.Box((100.0, 50.0)), 1.0, np.float32, place)
    assert [bits_for(n, grid) for n in (2**14, 2**14 + 1, 2**22, 2**23)] == [8, 12, 12, 16]


def test_a_key_is_the_bits_of_a_cell_in_turn(backend):
    pos = np.array([[0.0, 0, 0], [4, 0, 0], [0, 4, 0], [0, 0, 4], [7.99, 7.99, 7.99], [2, 0, 0]])
    tree = tree_of(pos, md.Box((8.0,) * 3), backend)
    assert tree["extent"].tolist() == [0, 7.99, 0, 7.99, 0, 7.99]
    assert tree["order"].tolist() == [0, 5, 1, 2, 3, 4]
    keys = [format(int(key), "024b")[:6] for key in tree["keys"]]
    assert keys == ["000000", "000001", "001000", "010000", "100000", "111111"]


def test_particles_beyond_an_open_side_have_keys_of_their_own_up_to_seven_lengths(backend):
    pos = np.array([[-900.0, 4], [-56, 4], [4, 4], [28, 4], [28.5, 4], [64, 4], [900, 4]])
    tree = tree_of(pos, md.Box((8.0, 8.0), False, True), backend)
    assert tree["extent"].tolist() == [-56, 64, 4, 4]
    assert tree["order"].tolist() == [*range(7)]
    assert np.diff(tree["keys"].astype(np.int64)).astype(bool).tolist() == [0, 1, 1, 1, 1, 0]


def test_equal_keys_keep_the_order_they_had(backend):
    pos = np.repeat([[5.0, 5, 5], [1, 1, 1]], 5000, axis=0)
    tree = tree_of(pos, md.Box((8.0,) * 3), backend)
    assert tree["order"].tolist() == [*range(5000, 10000), *range(5000)]
    check(tree)


@pytest.mark.gpu
@pytest.mark.parametrize("dim", [2, 3])
@pytest.mark.parametrize("precision", [np.float32, np.float64])
@pytest.mark.parametrize("n", [1, 2, 31, 2049, 300_000])
@pytest.mark.parametrize("curve", ["morton", "hilbert"])
def test_both_backends_make_the_same_tree(dim, precision, n, curve):
    if md.backend.why_not() is not None:
        pytest.skip(md.backend.why_not())
    rng = np.random.default_rng(n)
    pos = rng.random((n, dim)) * 200
    pos[: n // 3] = pos[rng.integers(n, size=n // 3)]
    box = md.Box((200.0,) * dim)
    trees = [tree_of(pos, box, place, precision, curve) for place in ("cpu", "cuda")]
    for tree in trees:
        tree["nodes"] = tree["nodes"][:, :dim]
    for name in (*NAMES, *KEYS, "pos"):
        assert np.array_equal(trees[0][name], trees[1][name]), name
