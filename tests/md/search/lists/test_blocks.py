"""Lists of blocks on the CPU: forces and fused steps are those of all listed partners, to the last bit."""

import itertools

import numpy as np
import pytest

import md
from md.laws.pair import kernel_law
from md.search.lists.blocks import BLOCK, force_of_blocks
from tests import tiers

LAW, DT = md.scenes.BENCHMARK_LAW, md.scenes.BENCHMARK_DT
BOXES = {
    "periodic": (md.Box((9.0, 8.0, 7.0)), 220),
    "two cells": (md.Box((3.0, 9.0, 9.0)), 110),
    "walls": (md.Box((9.0, 8.0, 7.0), False), 220),
    "flat": (md.Box((14.0, 13.0), (True, False)), 120),
    "one block": (md.Box((9.0, 8.0, 7.0)), BLOCK),
    "few": (md.Box((9.0, 8.0, 7.0)), 3),
}
IN_BOXES = tiers.by_default(
    itertools.product(BOXES, ("float64", "float32")),
    lambda case, precision: case != "flat" and precision == "float64",
    tiers.full,
)


def gas(case: str, speed: float = 3.0, seed: int = 1) -> md.State:
    box, n = BOXES[case]
    start = md.preparation.granular_gas(0.25, md.Box(box.lengths, True), 1.0, seed=seed, backend="cpu")
    random = np.random.default_rng(seed)
    pick = random.permutation(len(start))[:n]
    pos = start.pos[pick] if box.periodic[0] else np.clip(start.pos[pick], 0.3, np.subtract(box.lengths, 0.3))
    return md.State(pos, speed * random.normal(size=pos.shape), box)


def run_of(state, precision="float64", law=LAW, **options) -> md.Simulation:
    options = {"search": md.search.Verlet(skin=0.4), "dt": DT, "allow_overlap": True, "fused": True} | options
    return md.Simulation(state, law, backend="cpu", precision=precision, **options)


def assert_same(one: md.Simulation, other: md.Simulation) -> None:
    assert one.step == other.step
    found, expected = one.state.by_id(), other.state.by_id()
    np.testing.assert_array_equal(found.pos, expected.pos)
    np.testing.assert_array_equal(found.vel, expected.vel)


@pytest.mark.parametrize(("case", "precision"), IN_BOXES)
def test_forces_are_those_of_all_listed_partners(case, precision):
    run = run_of(gas(case), precision, fused=False)
    run.run(30)
    found = run.forces()
    p, search = run.system.particles, run.search
    expected = np.zeros_like(p.pos)
    law, lists = kernel_law(LAW, p.pos.dtype), search._block_lists._replace(within2=p.pos.dtype.type(np.inf))
    force_of_blocks(p.n, p.pos, p.vel, lists, search.grid.record, law, expected)
    np.testing.assert_array_equal(found, expected[np.argsort(p.id)])
    assert (np.abs(found).max() > 1) == (case != "few")


def test_pairs_beyond_the_cutoff_are_collected_from_the_lists():
    run = run_of(gas("periodic"), fused=False)
    run.run(5)
    search, far = run.search, 1.3
    assert len(search.pairs(1.0)) < len(search.pairs(far)) < search._count.sum() // 2 + 1


@pytest.mark.parametrize("case", ["periodic", "two cells", "walls", tiers.full("flat")])
def test_the_lists_of_a_block_are_contiguous_and_know_their_owners(case):
    run = run_of(gas(case))
    run.run(3)
    first, count, partners, owners = run.search._block_lists[:4]
    pos, box, n = run.search._reference_pos, run.state.box, len(run)  # at the build
    apart = pos[:, None] - pos
    apart -= np.where(box.periodic, box.lengths * np.round(apart / box.lengths), 0)
    is_listed = (apart**2).sum(axis=-1) < run.search.grid.cutoff**2
    np.fill_diagonal(is_listed, False)
    lengths = is_listed.sum(axis=1)
    ranges = [slice(begin, begin + entries) for begin, entries in zip(first, count, strict=True)]
    assert len(ranges) == -(-n // BLOCK)
    for b, entries in enumerate(ranges):
        of_block = lengths[b * BLOCK : (b + 1) * BLOCK]
        np.testing.assert_array_equal(owners[entries], np.repeat(np.arange(len(of_block)), of_block))
        of_particles = np.split(partners[entries], np.cumsum(of_block)[:-1])
        for i, listed in enumerate(of_particles, b * BLOCK):
            np.testing.assert_array_equal(np.sort(listed), np.flatnonzero(is_listed[i]))
    assert count.sum() > n


@pytest.mark.parametrize(("case", "precision"), IN_BOXES)
def test_steps_of_one_call_are_those_taken_one_by_one(case, precision, monkeypatch):
    walls = None if all(BOXES[case][0].periodic) else md.Walls(contact_time=0.02)
    if case == "flat":
        walls = md.ShakenWalls(contact_time=0.02, amplitude=0.1, frequency=3.0, axis=1)
    many, one = (run_of(gas(case, 8.0), precision, walls=walls) for _ in range(2))
    calls, take = [], type(many.search).take_steps

    def taken(self, law, outputs, step, most):
        calls.append(take(self, law, outputs, step, most))
        return calls[-1]

    for steps in (1, 40, 33, 2, 200):
        monkeypatch.setattr(type(many.search), "take_steps", taken)
        many.run(steps, phases=False)
        monkeypatch.undo()
        one.run(steps, phases=True)
        assert_same(many, one)
        assert many.builds == one.builds
    assert many.builds > 2
    assert (max(calls) > 10) == (case != "flat")  # walls that move need the time of each step


@pytest.mark.parametrize(
    ("case", "inner", "phases"),
    tiers.by_default(
        itertools.product(
            ("periodic", "two cells", "flat", "one block"), (0.0, 0.03, 0.1, 0.39), (False, True)
        ),
        lambda case, inner, phases: (
            (case, phases) == ("periodic", False) or (case, inner) == ("two cells", 0.1)
        ),
        tiers.full,
    ),
)
def test_steps_with_pruned_lists_are_those_with_the_lists_of_the_build(case, inner, phases):
    walls = None if all(BOXES[case][0].periodic) else md.Walls(contact_time=0.02)
    pruned, whole = (
        run_of(gas(case, 8.0), walls=walls, search=md.search.Verlet(skin=0.4, inner_skin=width))
        for width in (inner, 0.4)
    )
    for steps in (1, 40, 33, 200):
        pruned.run(steps, phases=phases)
        whole.run(steps, phases=phases)
        assert_same(pruned, whole)
    assert pruned.builds == whole.builds > 2
    assert [run.search.policy.prunes for run in (pruned, whole)] == [True, False]
    kept, listed = pruned.search._pruned_blocks[1].sum(), pruned.search._count.sum()
    assert (kept < 0.8 * listed) == (inner < 0.2)


def test_pruned_lists_hold_all_partners_within_the_cutoff():
    run = run_of(gas("periodic", 20.0), search=md.search.Verlet(skin=0.4, inner_skin=0.12))
    prunings = set()
    for _ in range(80):
        run.run(3, phases=False)
        first, count, partners, owners = run.search._pruned_blocks
        bound, ids = run.search.policy._bound_since_pruning, run.system.particles.id.copy()
        listed = {
            (int(ids[b * BLOCK + owners[k]]), int(ids[partners[k]]))
            for b in range(len(first))
            for k in range(first[b], first[b] + count[b])
        }
        close = {tuple(pair) for pair in run.pairs().tolist()} & set(
            map(tuple, run.search.pairs(0.98).tolist())
        )
        assert close <= listed
        assert {(j, i) for i, j in close} <= listed
        assert bound < 0.06 + 0.04  # and the last stride
        prunings.add(bound)
    assert len(prunings) > 10


@pytest.mark.parametrize("phases", [False, True])
def test_pruned_lists_without_room_are_made_again_with_more(phases, monkeypatch):
    few, enough = run_of(gas("periodic", 8.0)), run_of(gas("periodic", 8.0))
    rooms, allocate = [], few.search._allocate_pruned

    def with_little_at_first(room):
        rooms.append(room)
        allocate(room if len(rooms) > 1 else 4 * BLOCK)

    monkeypatch.setattr(few.search, "_allocate_pruned", with_little_at_first)
    few.run(63, phases=phases)
    enough.run(63, phases=phases)
    assert_same(few, enough)
    of_few, of_enough = few.search._pruned_blocks, enough.search._pruned_blocks
    np.testing.assert_array_equal(of_few[1], of_enough[1])
    assert 4 * BLOCK < of_few[1].sum() < len(of_few[2]) == rooms[-1] < rooms[0] == len(of_enough[2])


def test_pruned_lists_that_need_more_than_is_free_are_refused_and_kept(monkeypatch):
    run = run_of(gas("periodic", 8.0))
    run.run(5, phases=False)
    before = run.search._pruned_blocks
    monkeypatch.setattr(type(run.backend), "free_memory", lambda self: 4999)
    with pytest.raises(ValueError, match=r"pruned neighbour lists of .* particles.*smaller inner_skin"):
        run.search._allocate_pruned(1000)
    assert run.search._pruned_blocks is before


def test_no_particle_has_moved_farther_since_the_pruning_than_its_bound():
    run = run_of(gas("periodic", 20.0), search=md.search.Verlet(skin=0.4, inner_skin=0.2))
    policy, last, pruned_at, shares = run.search.policy, np.inf, None, []
    run.run(1, phases=False)
    for _ in range(100):
        before = run.state.by_id().pos
        run.run(1, phases=False)
        if policy._bound_since_pruning < last:  # this step pruned, at the positions before it
            pruned_at = before
        last = policy._bound_since_pruning
        apart = run.state.by_id().pos - pruned_at
        apart -= run.state.box.lengths * np.round(apart / run.state.box.lengths)
        shares.append(np.linalg.norm(apart, axis=1).max() / last)
    assert 0.9 < max(shares) <= 1


def test_lists_are_pruned_by_default_where_steps_bound_the_displacement():
    fused, unfused, narrow = run_of(gas("periodic"), search="verlet"), None, None
    unfused = run_of(gas("periodic"), search="verlet", fused=False)
    narrow = run_of(gas("two cells"), search="verlet")
    opened = run_of(
        md.State([[2.0, 3.0]], [[1.0, 0.0]], md.Box((9.0, 8.0), False, open=True)), search="verlet"
    )
    widths = [(run.search.skin.width, run.search.skin.inner) for run in (fused, unfused, narrow, opened)]
    assert widths == [(0.4, 0.1), (0.3, 0.3), (0.4, 0.1), (0.3, 0.3)]


def test_a_fault_ends_the_steps_of_a_call():
    box, faults = md.Box((40.0, 9.0, 9.0), periodic=(False, True, True)), []
    for phases in (True, False):
        state = md.State([[39.005, 2, 2], [22.0, 2, 2]], [[0.9, 0, 0], [0.0, 0, 0]], box, id=[7, 3])
        run = run_of(state, law=md.laws.SpringDashpot(0.0, 0.0), dt=0.01)
        run.run(17, phases=phases)
        with pytest.raises(md.ParticleEscaped) as caught:
            run.run(300, phases=phases)
        faults.append((caught.value.step, caught.value.particle))
        assert run._loop.step == caught.value.step + 1
    assert faults == 2 * [(110, 7)]


def test_lists_are_built_again_before_they_are_incomplete():
    run = run_of(gas("periodic", 20.0))
    farthest = []
    for _ in range(60):
        run.run(7, phases=False)
        farthest.append(run.search._largest_displacement())
        assert farthest[-1] <= run.search.policy._displacement_bound
    assert 0.05 < max(farthest) < 0.2 + 0.04  # of the last step, after which lists are built
    assert run.builds > 20


def test_a_box_with_an_open_side_takes_steps_one_by_one(monkeypatch):
    box = md.Box((9.0, 8.0, 7.0), False, open=True)
    run = run_of(md.State([[2.0, 3.0, 3.0], [4.0, 4.0, 3.0]], [[1.0, 0.0, 0.0], [0.0, 1.0, 0.0]], box))
    calls, take = [], run.search.take_steps
    monkeypatch.setattr(run.search, "take_steps", lambda *given: calls.append(take(*given)) or calls[-1])
    run.run(30, phases=False)
    assert calls == 29 * [1]
    assert run.search.most_steps == 1
    assert run_of(gas("periodic")).search.most_steps == 256


@pytest.mark.parametrize("phases", [False, True])
def test_the_energy_is_summed_at_the_same_steps(phases, monkeypatch):
    run, summed = run_of(gas("periodic")), []
    launch = run._energy._launch
    monkeypatch.setattr(run._energy, "_launch", lambda: (summed.append(run._loop.step), launch()))
    run.run(300, phases=phases)
    assert summed == [0, 1, 2, 4, 8, 16, 32, 64, 128, 228]
