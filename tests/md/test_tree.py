"""The tree: binary, over all leaves in Morton order, with boxes of its nodes; the same on both backends."""

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

import md
from md.grid import Grid
from md.state import Particles
from md.tree import Tree

NAMES = ("keys", "order", "extent", "other_end", "way", "after", "before", "parent", "box")


def tree_of(pos, box: md.Box, backend: str, precision=np.float64) -> dict[str, np.ndarray]:
    """The tree's arrays on the host, and the particles' positions in its order."""
    place = md.backend.get(backend)
    particles = Particles(md.State(pos, np.zeros_like(pos), box), np.dtype(precision), place)
    tree = Tree(len(pos), Grid(box, 1.0, precision, place), place)
    tree.build(particles)
    found = {name: place.download(getattr(tree, name)) for name in NAMES}
    return found | {"pos": place.download(particles.pos), "bits": tree.bits}


def children(tree, node: int) -> tuple[int, int]:
    return tree["way"][4 * node], tree["way"][4 * node + 2]


def check(tree) -> None:
    """Whether it is a tree over all leaves, split where keys first differ, each box that of a range."""
    n = len(tree["pos"])
    keys = [format(int(key), "064b") + format(k, "032b") for k, key in enumerate(tree["keys"])]
    assert sorted(keys) == keys
    met, depth_first = [], []

    def visit(node, first, last, above):
        depth_first.append(node)
        parent = tree["parent"][node if node >= 0 else n - 1 + ~node]
        assert parent == above
        if node < 0:
            assert ~node == first == last
            met.append(first)
            return
        assert {node, tree["other_end"][node]} == {first, last}
        inside = tree["pos"][first : last + 1]
        assert (tree["box"][2 * node] == inside.min(axis=0)).all()
        assert (tree["box"][2 * node + 1] == inside.max(axis=0)).all()
        left, right = children(tree, node)
        shared = next(k for k, (a, b) in enumerate(zip(keys[first], keys[last], strict=True)) if a != b)
        split = max(k for k in range(first, last) if keys[k][: shared + 1] == keys[first][: shared + 1])
        visit(left, first, split, node)
        visit(right, split + 1, last, node)

    if n == 0:
        return
    visit(0 if n > 1 else ~0, 0, n - 1, -1)
    assert met == list(range(n))
    backwards = []

    def visit_backwards(node):
        backwards.append(node)
        if node >= 0:
            for child in reversed(children(tree, node)):
                visit_backwards(child)

    visit_backwards(0 if n > 1 else ~0)
    for order, leaf, child, end in ((depth_first, "after", 0, max), (backwards, "before", 2, min)):
        for node, following in zip(order, [*order[1:], n], strict=True):
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
@given(data=st.data())
def test_it_is_a_tree_over_all_leaves(dim, data, backend):
    check(tree_of(data.draw(clouds(dim)), md.Box((8.0,) * dim), backend))


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
def test_both_backends_make_the_same_tree(dim, precision, n):
    if md.backend.why_not() is not None:
        pytest.skip(md.backend.why_not())
    rng = np.random.default_rng(n)
    pos = rng.random((n, dim)) * 200
    pos[: n // 3] = pos[rng.integers(n, size=n // 3)]
    trees = [tree_of(pos, md.Box((200.0,) * dim), backend, precision) for backend in ("cpu", "cuda")]
    for name in (*NAMES, "pos"):
        assert np.array_equal(trees[0][name], trees[1][name]), name
