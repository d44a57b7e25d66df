"""What the wide hierarchy keeps between steps."""

import md


def test_after_a_reset_the_boxes_of_the_leaves_are_computed_again():
    state = md.State([[1.0, 1, 1], [3.0, 1, 1]], [[0.0] * 3] * 2, md.Box((4, 4, 4)))
    search = md.Simulation(state, md.scenes.BENCHMARK_LAW, search="wide_bvh", dt=1e-4, backend="cpu").search
    search.launch_state = (True, 1)  # of a fused step on a device
    search.reset()
    assert search.launch_state == (False, 1)
