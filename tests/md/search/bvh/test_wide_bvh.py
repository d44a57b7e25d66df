"""What the wide hierarchy keeps between steps, and a level of many nodes."""

import numpy as np

import md
from md.search.bvh.wide_boxes import NODES, WIDEST, levels_of
from tests.md.search.bvh.test_trees import fast_gas
from tests.md.search.test_contract import simulated


def test_after_a_reset_the_boxes_of_the_leaves_are_computed_again():
    state = md.State([[1.0, 1, 1], [3.0, 1, 1]], [[0.0] * 3] * 2, md.Box((4, 4, 4)))
    search = md.Simulation(state, md.scenes.BENCHMARK_LAW, search="wide_bvh", dt=1e-4, backend="cpu").search
    search.launch_state = (True, 1)  # of a fused step on a device
    search.reset()
    assert search.launch_state == (False, 1)


def test_every_node_of_a_wide_uppermost_level_is_visited():
    gas = fast_gas(5000, 3, seed=0)
    levels = levels_of(len(gas.pos))[0]
    assert NODES < levels["number"][levels["count"] - 1] <= WIDEST
    wide, linked = (
        simulated(gas, search, "cpu", allow_overlap=True).pairs() for search in ("wide_bvh", "linked")
    )
    assert len(linked) > 1000
    assert np.array_equal(wide, linked)
