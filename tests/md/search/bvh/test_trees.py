"""The traversal of trees: old ones miss no pair, images are visited once, wrong choices are refused."""

import numpy as np
import pytest

import md
from md.search import Lbvh, WideBvh
from tests import tiers
from tests.md.search.test_contract import dense_cloud

every_tree = pytest.mark.parametrize("tree", [Lbvh, WideBvh])


def fast_gas(n: int, dim: int, seed: int) -> md.State:
    side = (n / 0.4) ** (1 / dim)
    rng = np.random.default_rng(seed)
    pos = rng.random((n, dim)) * side
    return md.State(pos, rng.normal(0, 3.0, (n, dim)), md.Box((side,) * dim))


def old_and_new(gas: md.State, law, tree, backend: str) -> list[md.Simulation]:
    options = {"dt": 0.05, "backend": backend, "fused": True, "allow_overlap": True}
    searches = tree(rebuild_every=10**6), "linked"
    return [md.Simulation(gas, law, search=search, **options) for search in searches]


@every_tree
@pytest.mark.parametrize("dim", [3, tiers.nightly(2)])
def test_an_old_tree_misses_no_pair(dim, tree, backend):
    gas = fast_gas(500, dim, dim)
    old, new = old_and_new(gas, md.laws.SpringDashpot(0.0, 0.0), tree, backend)
    for _ in range(4):
        old.run(20, phases=False)
        new.run(20, phases=False)
        assert np.array_equal(old.pairs(), new.pairs())
    assert np.array_equal(old.state.by_id().pos, new.state.by_id().pos)
    old, new = old_and_new(gas, md.laws.SpringDashpot(100.0, 0.0), tree, backend)
    for _ in range(2):  # forces ask a leaf by another test than pairs
        old.run(20, phases=False)
        new.run(20, phases=False)
        assert np.abs(new.forces()).max() > 50
        assert old.forces() == pytest.approx(new.forces(), abs=1e-6)


@pytest.mark.quick
@every_tree
@pytest.mark.parametrize("rebuild_every", [1, 5, 16])
def test_fused_steps_sort_every_so_often(rebuild_every, tree, backend, monkeypatch):
    search = tree(rebuild_every=rebuild_every)
    run = md.Simulation(
        fast_gas(100, 3, 0),
        md.laws.SpringDashpot(0.0, 0.0),
        search=search,
        dt=0.01,
        backend=backend,
        fused=True,
    )
    policy = run.search.policy
    sorts, steps_taken = [], policy.steps_taken

    def noted(plan):
        sorts.append(plan.build)
        steps_taken(plan)
        assert policy._age <= rebuild_every

    monkeypatch.setattr(policy, "steps_taken", noted)
    run.run(40, phases=True)
    assert sorts == [step % rebuild_every == 0 for step in range(40)]
    monkeypatch.setattr(policy, "steps_taken", steps_taken)
    run.run(33, phases=False)
    assert run.builds == len(range(0, 73, rebuild_every))


@every_tree
@pytest.mark.parametrize("rebuild_every", [1, 16])
def test_looking_does_not_change_when_it_sorts(rebuild_every, tree, backend):
    ends, search = [], tree(rebuild_every=rebuild_every)
    for looks in (False, True):
        run = md.Simulation(
            md.scenes.benchmark_gas(729, 0.3), md.scenes.BENCHMARK_LAW, search=search,
            dt=md.scenes.BENCHMARK_DT, backend=backend, fused=True,
        )  # fmt: skip
        for _ in range(10):
            run.run(7, phases=False)
            if looks:
                run.pairs()
                run.forces()
        ends.append(run.state)
    assert np.array_equal(ends[0].id, ends[1].id)
    assert np.array_equal(ends[0].vel, ends[1].vel)


@every_tree
@pytest.mark.parametrize("side", [2.0, 2.5, 3.0])
@pytest.mark.parametrize("dim", [tiers.full(2), 3])
def test_in_a_box_of_few_cutoffs_each_pair_is_met_once_from_either_side(side, dim, tree, backend):
    rng = np.random.default_rng(7)
    gas = md.State(rng.random((40, dim)) * side, np.zeros((40, dim)), md.Box((side,) * dim))
    options = {"dt": 0.01, "backend": backend, "allow_overlap": True}
    law = md.laws.SpringDashpot(100.0, 0.0)
    found = [md.Simulation(gas, law, search=search, **options) for search in ("naive", tree())]
    assert np.array_equal(found[0].pairs(), found[1].pairs())
    assert found[1].forces() == pytest.approx(found[0].forces(), abs=1e-9)
    stream = found[1].accesses()
    for reader, low, high in zip(stream.readers, stream.offsets, stream.offsets[1:], strict=False):
        reads = stream.reads[low:high]
        assert len(set(reads.tolist())) == len(reads)
        assert reader not in reads


@pytest.mark.parametrize("n", [1, 2, 7, 8, 9, 127, 128, 129, 4095, 4097])
def test_leaves_and_blocks_that_are_not_full_have_all_their_particles(n, backend):
    state = fast_gas(n, 3, n) if n > 50 else dense_cloud(3, n=n)
    options = {"dt": 1e-4, "backend": backend, "allow_overlap": True}
    found, expected = (
        md.Simulation(state, md.scenes.BENCHMARK_LAW, search=search, **options).pairs()
        for search in ("wide_bvh", "linked")
    )
    assert n < 100 or len(expected) > n / 4
    assert np.array_equal(found, expected)


@every_tree
def test_a_number_of_steps_that_is_none_is_refused(tree):
    message = rf"rebuild_every of {tree.__name__} = .*; allowed: an integer of at least 1"
    for steps in (0, 2.5, True, "16"):
        with pytest.raises(TypeError if steps else ValueError, match=message):
            tree(rebuild_every=steps)


@every_tree
def test_an_order_that_does_not_halve_is_refused_with_those_that_do(tree):
    with pytest.raises(ValueError, match=r"along 'row'; allowed: butz, compact, .*morton"):
        md.Simulation(fast_gas(10, 3, 0), md.scenes.BENCHMARK_LAW, search=tree("row"), backend="cpu")
