"""Plans of a device that prunes lists: when lists are built, and when they are pruned."""

from types import SimpleNamespace

import numpy as np
import pytest

from md.search.lists.displacement_bound import DisplacementBound
from md.search.policy import StepPlan
from tests.md.search.test_displacement_guard import CUBE, Words


class TestPlansWithPrunedLists:
    """Plans of a device that prunes lists of a skin of 0.4 to 0.1; particles move 0.01 in a step."""

    def policy(self, width=0.4, inner=0.1, n=2**21) -> DisplacementBound:
        words = np.zeros(7, np.uint64)
        skin = SimpleNamespace(
            limit=width / 2, inner_limit=inner / 2, width=width, inner=inner, step_rounding=0.0, tunes=False,
            proposed=None,
        )  # fmt: skip
        particles = SimpleNamespace(box=CUBE, n=n)
        system = SimpleNamespace(
            backend=Words(), dt=0.01, status=SimpleNamespace(guard=words), particles=particles, n_usual=n
        )
        policy = DisplacementBound(system, skin, farthest=lambda: 1 / 0, grow=lambda: False)
        policy.expect_fused()
        policy.start_at(0.01)
        return policy

    def taken(self, policy, times: int) -> list[tuple]:
        plans = []
        for _ in range(times):
            plan = policy.plan()
            policy.steps_taken(plan)
            plans.append((plan.steps, plan.build, plan.prune))
        return plans

    def test_lists_are_pruned_several_times_between_two_builds(self):
        policy = self.policy()
        policy.built()
        found = self.taken(policy, 10)
        assert all(prune for _, _, prune in found)
        steps, inner = policy._windows()
        assert 0.01 * steps <= 0.2
        assert 0.01 * inner <= 0.05
        assert [k for k, (_, build, _) in enumerate(found) if build] == [steps // inner, 2 * steps // inner]

    @pytest.mark.parametrize(("n", "unmoved"), [(2**21, 7), (2**17, 31)])
    def test_particles_are_sorted_in_memory_at_few_builds(self, n, unmoved):
        policy, moves = self.policy(n=n), []
        policy.built()
        while len(moves) < 2 * unmoved + 3:
            plan = policy.plan()
            policy.steps_taken(plan)
            assert plan.build or plan.moves  # plans without a build are all alike
            moves += [plan.moves] if plan.build else []
        once = [*unmoved * [False], True]
        assert moves == [*once, *once, False]
        policy.built()  # by an update, which sorts too
        policy.retry()
        assert (policy.plan().build, policy.plan().moves) == (True, False)

    def test_a_build_by_an_update_is_followed_by_a_pruning(self):
        policy = self.policy()
        policy.built()
        policy.steps_taken(policy.plan()._replace(steps=2))
        assert not policy.plan().prune
        policy.built()
        assert policy.plan() == StepPlan(policy._windows()[1], build=False, build_each=False, prune=True)

    def test_halted_steps_are_taken_again_after_a_build_with_fewer_steps(self):
        policy = self.policy()
        policy.built()
        before = policy._inner_window
        policy._words[:2] = np.uint64(1) << np.uint64(32)
        policy._words[5:].view(np.int32)[0] = 3
        assert policy.process(policy._words.copy(), 0.01) == 3
        policy.retry()
        assert policy.plan().build
        assert policy.plan().prune
        assert policy._inner_window < before

    def test_few_particles_get_few_different_plans(self):
        few, many = (self.policy(inner=0.22, n=n)._windows()[1] for n in (1000, 2**21))
        assert (few, many) == (8, 10)

    def test_without_an_inner_skin_no_plan_prunes(self):
        policy = self.policy(inner=0.4)
        policy.built()
        assert not any(prune for _, _, prune in self.taken(policy, 5))
