"""Runs of fused steps with pruned lists, their kernels compiled for the host: those of linked lists."""

import numpy as np
import pytest

import md
from md.search.lists import displacement_bound
from md.search.lists.pruned_lists import PrunedLists
from md.search.lists.step_costs import StepCosts
from tests.md.search.lists.device_of_lists import DeviceOfLists
from tests.tiers import full

LAW, DT = md.scenes.BENCHMARK_LAW, md.scenes.BENCHMARK_DT
PRUNE, PRUNED, PLAIN = "pruned_lists.force_and_prune", "pruned_lists.force", "list_search.force"
MANY = "pruned_lists.many_steps"


@pytest.fixture
def device(monkeypatch):
    """A device of so many particles that launches take no time beside them."""
    for name in ("STEP_LAUNCH", "BUILD_LAUNCHES", "PRUNING_LAUNCHES"):
        monkeypatch.setattr(StepCosts, name, 0.0)
    return DeviceOfLists()


def both(device, state, search, **options) -> list[md.Simulation]:
    """A fused run of lists on the device, and one of linked lists on the CPU."""
    return [
        md.Simulation(state, LAW, search=one, dt=DT, backend=place, fused=fused, **options)
        for one, place, fused in ((search, device, True), ("linked", "cpu", False))
    ]


def same(one: md.Simulation, other: md.Simulation) -> None:
    assert one.step == other.step
    found, expected = one.state.by_id(), other.state.by_id()
    np.testing.assert_allclose(found.pos, expected.pos, atol=1e-9)
    np.testing.assert_allclose(found.vel, expected.vel, atol=1e-7)


@pytest.mark.parametrize(
    ("skin", "inner", "blocks"),
    [(None, None, 5), (None, None, 0), full(0.4, 0.1, 1), (0.4, 0.0, 5), full(0.5, 0.4, 0)],
    ids=lambda value: str(value),
)
def test_steps_with_pruned_lists_are_those_of_linked_lists(device, skin, inner, blocks):
    device.resident_blocks = blocks  # none: one launch a step
    found, expected = both(device, md.scenes.benchmark_gas(300, 0.2), md.search.Verlet("row", skin, inner))
    assert found.search.policy.prunes
    for steps in (1, 40, 130):
        found.run(steps, phases=False)
        expected.run(steps, phases=False)
        same(found, expected)
        assert found._stepper._clock[found.step % 2] == found.step
    assert device.launches[PRUNE] > found.builds  # several times between two builds
    assert device.launches[PLAIN] == 0
    assert (device.launches[PRUNED] > device.launches[PRUNE]) == (inner != 0.0 and not blocks)
    assert (device.launches[MANY] > device.launches[PRUNE] / 2) == (inner != 0.0 and bool(blocks))
    assert not device.first_in_record
    assert device.noted > 0


@pytest.mark.parametrize("sorts", [True, False])
def test_particles_that_are_not_sorted_stay_where_they_are(device, sorts):
    start = md.scenes.in_memory_order(md.scenes.benchmark_gas(300, 0.2), "shuffled", 3)
    search = md.search.Verlet("row", 0.3, 0.1, sorts=sorts)
    found, expected = both(device, start, search)
    for steps in (1, 130):
        found.run(steps, phases=False)
        expected.run(steps, phases=False)
        same(found, expected)
    assert found.builds > 1
    assert np.array_equal(found.state.id, start.id) == (not sorts)


def test_particles_are_sorted_on_the_cpu():
    unsorted, state = md.search.Verlet(sorts=False), md.scenes.benchmark_gas(300, 0.2)
    with pytest.raises(ValueError, match="sorts=False of Verlet on the CPU; allowed: on a device"):
        md.Simulation(state, LAW, search=unsorted, dt=DT, backend="cpu")
    reorder = md.Reorder("row", md.Never())
    with pytest.raises(
        ValueError, match=r"sorts=False leaves the particles where they are.*cell_order='row'"
    ):
        md.Simulation(state, LAW, search=unsorted, dt=DT, backend="cpu", reorder=reorder)
    with pytest.raises(TypeError, match="sorts of Verlet = 1"):
        md.search.Verlet(sorts=1)


@pytest.mark.parametrize("unmoved", [0, 2, 1000])
def test_particles_are_moved_in_memory_at_some_builds_of_plans(device, monkeypatch, unmoved):
    monkeypatch.setattr(displacement_bound, "MOST_UNMOVED_OF_FEW", unmoved)
    found, expected = both(device, md.scenes.benchmark_gas(300, 0.2), md.search.Verlet("row", 0.3, 0.1))
    found.run(1, phases=False)
    arrays, graphs, moved = [*map(id, found.system.particles.arrays)], found._loop.captured, []
    take = graphs.take

    def taken(plan, step):
        before = found.system.particles.id.copy()
        plan = take(plan, step)
        if plan.build:
            is_moved = not np.array_equal(found.system.particles.id, before)
            moved.append((plan.moves, is_moved, graphs.launched))
        return plan

    monkeypatch.setattr(graphs, "take", taken)
    found.run(250, phases=False)
    expected.run(251, phases=False)
    same(found, expected)
    assert len(moved) > 12
    assert all(moves or not is_moved for moves, is_moved, _ in moved)  # a sort may change nothing
    assert any(is_moved for _, is_moved, _ in moved) == (unmoved < 1000)
    assert np.mean([moves for moves, *_ in moved]) == pytest.approx(1 / (1 + unmoved), abs=0.1)
    assert any(moves and graph for moves, _, graph in moved) == (unmoved < 1000)
    assert sorted(map(id, found.system.particles.arrays)) == sorted(arrays)  # no array was replaced


def test_a_list_for_which_there_is_no_memory_is_told_by_a_particle_of_the_crowd(device, monkeypatch):
    state = md.scenes.benchmark_gas(300, 0.2)
    pos, crowd = state.pos.copy(), np.arange(40) * 7  # in one cell
    pos[crowd] = 0.45 * np.array(state.box.lengths) + np.random.default_rng(3).uniform(0, 0.2, (40, 3))
    run = md.Simulation(
        md.State(pos, state.vel, state.box), LAW, search=md.search.Verlet(skin=0.3, inner_skin=0.1), dt=DT,
        backend=device, fused=True,
    )  # fmt: skip
    monkeypatch.setattr(run.search, "_most_room", lambda: 5)
    with pytest.raises(md.ListOverflow) as caught:
        run.search.update(force=True)
    assert caught.value.particle in crowd


def test_sudden_speeds_halt_steps_and_lose_none(device):
    state = md.scenes.benchmark_gas(300, 0.2)
    slow = md.State(state.pos, 0.1 * state.vel, state.box)
    found, expected = both(device, slow, md.search.Verlet("row", 0.3, 0.1), gravity=(0.0, 0.0, -400.0))
    found.run(120, phases=False)
    expected.run(120, phases=False)
    same(found, expected)
    assert int(found.system.status.guard[5]) == 0  # halted steps were taken again


def test_a_build_between_two_runs_is_followed_by_a_pruning(device):
    found, expected = both(device, md.scenes.benchmark_gas(300, 0.2), md.search.Verlet("row", 0.4, 0.1))
    for _ in range(4):
        found.run(7, phases=False)
        expected.run(7, phases=False)
        found.search.update(force=True)
        assert found.search.policy.plan().prune
        same(found, expected)


def test_steps_with_walls_that_shake_have_a_launch_each(device):
    device.resident_blocks = 5
    walls = md.ShakenWalls(amplitude=0.01, frequency=50.0)
    gas = md.scenes.benchmark_gas(300, 0.2)
    between = 1 + gas.pos * np.array([1, 1, 1 - 2 / gas.box.lengths[2]]) - np.array([1, 1, 0])
    state = md.State(between, gas.vel, md.Box(gas.box.lengths, (True, True, False)))
    search = md.search.Verlet("row", 0.4, 0.1)
    found, expected = both(device, state, search, walls=walls, allow_overlap=True)
    found.run(60, phases=False)
    expected.run(60, phases=False)
    same(found, expected)
    assert device.launches[MANY] == 0


@pytest.mark.parametrize(("itemsize", "most"), [(4, 1024), (8, 512)])
def test_a_resident_kernel_has_a_thread_for_each_particle_or_is_not_there(itemsize, most):
    device = DeviceOfLists()
    for n, threads in ((0, most // 8), (1, most // 8), (5 * most, most), (5 * most + 1, 0)):
        assert PrunedLists(n, device).resident_threads(itemsize) == threads
    device.resident_blocks = 0
    assert PrunedLists(1, device).resident_threads(itemsize) == 0


def test_without_an_inner_skin_no_list_is_pruned(device):
    found, expected = both(device, md.scenes.benchmark_gas(300, 0.2), md.search.Verlet("row", 0.3, 0.3))
    found.run(60, phases=False)
    expected.run(60, phases=False)
    same(found, expected)
    assert device.launches[PRUNE] == device.launches[PRUNED] == 0 < device.launches[PLAIN]


def test_a_skin_that_is_tuned_prunes_or_not_and_calls_no_kernel_first_in_a_record(device):
    found, expected = both(device, md.scenes.benchmark_gas(300, 0.2), md.search.Verlet(skin="auto"))
    pruned = set()
    for width in (0.4, 0.02, 0.4):
        found.search.skin._tuner.value = width
        found.run(90, phases=False)
        expected.run(90, phases=False)
        pruned.add(found.search.policy.prunes)
        same(found, expected)
    assert not device.first_in_record
    assert pruned == {True, False}


def test_pruned_lists_that_found_no_memory_are_allocated_at_the_next_build(device, monkeypatch):
    found, expected = both(device, md.scenes.benchmark_gas(300, 0.2), md.search.Verlet("row", 0.4, 0.1))
    lists = found.search._pruned
    empty = type(device).empty

    def none_for_pruned_lists(self, shape, dtype):
        if shape == lists_rows * 300:
            raise MemoryError
        return empty(self, shape, dtype)

    lists_rows = md.search.lists.pruned_lists.rows_for(found.search._usual_length(1.1))
    monkeypatch.setattr(type(device), "empty", none_for_pruned_lists)
    with pytest.raises(MemoryError):
        found.run(5, phases=False)
    assert lists.rows == 0
    monkeypatch.undo()
    found.run(5, phases=False)
    expected.run(5, phases=False)
    same(found, expected)
