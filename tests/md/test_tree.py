"""The tree: binary, over all leaves in Morton order, with boxes of its nodes; the same on both backends."""

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

import md
import sfc
from md.grid import Grid
from md.state import Particles
from md.tree import Tree

pytestmark = pytest.mark.split

NAMES = ("keys", "order", "extent", "other_end", "way", "after", "before", "parent", "box")


def tree_of(pos, box: md.Box, backend: str, precision=np.float64, **options) -> dict[str, np.ndarray]:
    """The tree's arrays on the host, and the particles' positions in its order."""
    place = md.backend.get(backend)
    particles = Particles(md.State(pos, np.zeros_like(pos), box), np.dtype(precision), place)
    tree = Tree(len(pos), Grid(box, 1.0, precision, place), place, **options)
    tree.build(particles)
    tree.fit(particles)
    found = {name: place.download(getattr(tree, name)) for name in NAMES}
    told = {"bits": tree.bits, "width": tree.width, "leaves": tree.leaves}
    return found | told | {"pos": place.download(particles.pos)}


def children(tree, node: int) -> tuple[int, int]:
    return tree["way"][4 * node], tree["way"][4 * node + 2]


def check(tree) -> None:
    """Whether it is a tree over all leaves, split where keys first differ, each box that of a range."""
    n, leaves, width = len(tree["pos"]), tree["leaves"], tree["width"]
    assert leaves == -(-n // width)
    assert (np.diff(tree["keys"].astype(object)) >= 0).all()
    firsts = tree["keys"][::width]
    keys = [format(int(key), "064b") + format(k, "032b") for k, key in enumerate(firsts)]
    met, depth_first = [], []

    def visit(node, first, last, above):
        depth_first.append(node)
        place = node if node >= 0 else leaves - 1 + ~node
        assert tree["parent"][place] == above
        inside = tree["pos"][first * width : (last + 1) * width]
        assert (tree["box"][2 * place] == inside.min(axis=0)).all()
        assert (tree["box"][2 * place + 1] == inside.max(axis=0)).all()
        if node < 0:
            assert ~node == first == last
            met.append(first)
            return
        assert {node, tree["other_end"][node]} == {first, last}
        left, right = children(tree, node)
        shared = next(k for k, (a, b) in enumerate(zip(keys[first], keys[last], strict=True)) if a != b)
        split = max(k for k in range(first, last) if keys[k][: shared + 1] == keys[first][: shared + 1])
        visit(left, first, split, node)
        visit(right, split + 1, last, node)

    if n == 0:
        return
    visit(0 if leaves > 1 else ~0, 0, leaves - 1, -1)
    assert met == list(range(leaves))
    backwards = []

    def visit_backwards(node):
        backwards.append(node)
        if node >= 0:
            for child in reversed(children(tree, node)):
                visit_backwards(child)

    visit_backwards(0 if leaves > 1 else ~0)
    for order, leaf, child, end in ((depth_first, "after", 0, max), (backwards, "before", 2, min)):
        for node, following in zip(order, [*order[1:], leaves], strict=True):
            if node < 0:
                assert tree[leaf][~node] == following
            else:
                assert tree["way"][4 * node + child] == following
                assert tree["way"][4 * node + child + 1] == tree[leaf][end(node, tree["other_end"][node])]


def clouds(dim: int):
    """Positions in a box of 8: anywhere, on few places, on a line."""
    anywhere = st.lists(st.tuples(*[st.floats(0, 7.9375, width=32)] * dim), max_size=70)
    few = st.lists(st.tuples(*[st.sampled_from([0.0, 0.5, 0.50000006, 7.5])] * dim), max_size=70)
    line = st.lists(st.floats(0, 7.9375, width=32), max_size=70).map(
        lambda xs: [(x, *[3.0] * (dim - 1)) for x in xs]
    )
    return st.one_of(anywhere, few, line).map(lambda rows: np.array(rows, float).reshape(-1, dim))


@pytest.mark.parametrize("dim", [2, 3])
@given(data=st.data(), width=st.integers(1, 5))
def test_it_is_a_tree_over_all_leaves(dim, data, width, backend):
    check(tree_of(data.draw(clouds(dim)), md.Box((8.0,) * dim), backend, width=width))


@pytest.mark.parametrize("curve", ["hilbert", "gray"])
def test_it_may_follow_any_curve_that_halves_its_cubes(curve, backend):
    pos = np.random.default_rng(3).random((3000, 3)) * 8
    tree = tree_of(pos, md.Box((8.0,) * 3), backend, curve=curve)
    low, high = tree["extent"][::2], tree["extent"][1::2]
    cells = np.minimum(((pos - low) * (2.0**10 / (high - low).max())).astype(int), 2**10 - 1)
    index = sfc.curve(curve, 3).encode(cells, 10)
    assert np.array_equal(tree["keys"], np.sort(index))
    assert np.array_equal(tree["order"], np.argsort(index, kind="stable"))
    check(tree)


def test_boxes_are_right_however_far_particles_have_moved(backend):
    place, box = md.backend.get(backend), md.Box((8.0,) * 3)
    rng = np.random.default_rng(4)
    first, then = (rng.random((777, 3)) * 8 for _ in range(2))
    particles = Particles(md.State(first, first, box), np.dtype(np.float64), place)
    tree = Tree(777, Grid(box, 1.0, np.float64, place), place)
    tree.build(particles)
    particles.pos[...] = place.upload(then)
    tree.fit(particles)
    box = place.download(tree.box)
    assert (box[0] == then.min(axis=0)).all()
    assert (box[1] == then.max(axis=0)).all()
    last = tree.leaves - 1
    assert (box[2 * (2 * last)] == then[last * tree.width :].min(axis=0)).all()


@pytest.mark.parametrize(
    ("options", "message"),
    [
        ({"curve": "peano"}, "a tree in 3D along 'peano'; allowed: .*hilbert.*, or a curve of base 2"),
        ({"curve": "row"}, "a tree in 3D along 'row'"),
        ({"width": 0}, "width = 0; allowed: an integer of at least 1"),
        ({"width": 2.0}, "width = 2.0; allowed"),
    ],
)
def test_what_is_no_tree_is_refused(options, message):
    with pytest.raises(ValueError, match=message):
        tree_of(np.zeros((3, 3)), md.Box((8.0,) * 3), "cpu", **options)


@pytest.mark.parametrize(("side", "bits"), [(1024.0, 10), (1025.0, 21)])
def test_keys_are_wide_where_a_narrow_step_would_be_longer_than_the_cutoff(side, bits, backend):
    pos = np.random.default_rng(0).random((2000, 3)) * side
    tree = tree_of(pos, md.Box((side,) * 3), backend, np.float32)
    assert tree["bits"] == bits
    assert tree["keys"].max() < 2 ** (3 * bits)
    check(tree)


def test_a_key_is_the_bits_of_a_cell_in_turn(backend):
    pos = np.array([[0.0, 0, 0], [4, 0, 0], [0, 4, 0], [0, 0, 4], [7.99, 7.99, 7.99], [2, 0, 0]])
    tree = tree_of(pos, md.Box((8.0,) * 3), backend)
    assert tree["extent"].tolist() == [0, 7.99, 0, 7.99, 0, 7.99]
    assert tree["order"].tolist() == [0, 5, 1, 2, 3, 4]
    keys = [format(int(key), "030b")[:6] for key in tree["keys"]]
    assert keys == ["000000", "000001", "001000", "010000", "100000", "111111"]


def test_equal_keys_keep_the_order_they_had(backend):
    pos = np.repeat([[5.0, 5, 5], [1, 1, 1]], 5000, axis=0)
    tree = tree_of(pos, md.Box((8.0,) * 3), backend)
    assert tree["order"].tolist() == [*range(5000, 10000), *range(5000)]
    check(tree)


@pytest.mark.gpu
@pytest.mark.parametrize("dim", [2, 3])
@pytest.mark.parametrize("precision", [np.float32, np.float64])
@pytest.mark.parametrize("n", [1, 2, 31, 2049, 300_000])
@pytest.mark.parametrize(("curve", "width"), [("morton", 4), ("hilbert", 1)])
def test_both_backends_make_the_same_tree(dim, precision, n, curve, width):
    if md.backend.why_not() is not None:
        pytest.skip(md.backend.why_not())
    rng = np.random.default_rng(n)
    pos = rng.random((n, dim)) * 200
    pos[: n // 3] = pos[rng.integers(n, size=n // 3)]
    box = md.Box((200.0,) * dim)
    trees = [tree_of(pos, box, place, precision, curve=curve, width=width) for place in ("cpu", "cuda")]
    for name in (*NAMES, "pos"):
        assert np.array_equal(trees[0][name], trees[1][name]), name
