"""Boxes of a tree that are merged again: right with the fence, found if wrong, compiled without it."""

import numpy as np
import pytest

import md
from experiments.measurement.kernels.tree_boxes import FAR, KERNELS, STARTS, Boxes, bounds_of_ranges
from md.backend.kernels.source import assemble
from tests.nvrtc import compile_cubin
from tests.tiers import full


def boxes_of(n: int, dim: int) -> Boxes:
    return Boxes(n, dim, [0, 3], md.backend.get("cpu"))


class TestBoxes:
    @pytest.mark.parametrize("start", STARTS)
    @pytest.mark.parametrize(("n", "dim"), [(2, 3), full(300, 2), (600, 3), full(5000, 3)])
    def test_a_build_gives_the_bounds_of_ranges(self, n, dim, start):
        boxes = boxes_of(n, dim)
        kept = boxes.tree.nodes.copy()
        boxes.build(start, fence=True)
        assert len(boxes.wrong()) == 0
        assert np.array_equal(boxes.tree.nodes[:, :dim], kept[:, :dim])

    def test_the_bounds_are_those_of_the_leaves_one_by_one(self):
        generator = np.random.default_rng(0)
        low = generator.random((9, 2))
        high = low + generator.random((9, 2))
        first, last = np.array([0, 3, 8, 0]), np.array([8, 5, 8, 1])
        found = bounds_of_ranges(low, high, first, last)
        for k, (a, b) in enumerate(zip(first, last, strict=True)):
            assert np.array_equal(found[2 * k], low[a : b + 1].min(axis=0))
            assert np.array_equal(found[2 * k + 1], high[a : b + 1].max(axis=0))

    def test_a_wrong_box_is_found_and_a_race_is_the_lowest_of_a_path(self):
        boxes = boxes_of(300, 3)
        boxes.build("leaves", fence=True)
        path = [int(np.argmax(boxes.tree.parent[: 300 - 1]))]  # an inner node, and all above it
        while boxes.tree.parent[path[-1]] >= 0:
            path.append(int(boxes.tree.parent[path[-1]]))
        for node in path:
            boxes.tree.nodes[2 * node, 1] = -FAR
        wrong = boxes.wrong()
        assert wrong.tolist() == sorted(path)
        assert boxes.races(wrong) == 1

    def test_boxes_of_no_build_are_all_wrong(self, monkeypatch):
        boxes = boxes_of(300, 3)
        monkeypatch.setattr(md.search.bvh.tree, "fit_spanning", lambda *arguments: None)
        boxes.build("leaves", fence=True)
        assert len(boxes.wrong()) == 299


@pytest.mark.parametrize("dim", [full(2), 3])
def test_the_kernel_without_the_fence_compiles_to_other_code(dim):
    arguments = KERNELS, "fit_spanning", dim, np.dtype(np.float32), "aos4", {}
    whole, without = assemble(*arguments), assemble(*arguments, constants={"NO_FENCE": 1})
    assert whole.count("VISIT_FENCE();") == 2  # one on each side of the visit
    defined = whole.replace("#define LAYOUT_AOS4\n", "#define LAYOUT_AOS4\n#define NO_FENCE 1\n", 1)
    assert without == defined
    assert compile_cubin(whole) != compile_cubin(without)
    fenceless = whole.replace("VISIT_FENCE() __threadfence()", "VISIT_FENCE()")
    assert fenceless != whole
    assert len(compile_cubin(fenceless)) == len(compile_cubin(without))
