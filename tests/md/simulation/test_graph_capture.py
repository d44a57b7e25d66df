"""Steps given to a device in pieces: which are captured, and that they are the steps taken one by one."""

from types import SimpleNamespace

import numpy as np
import pytest

import md
from md.search.bvh.reflexive import Reflexive
from md.search.policy import StepPlan
from md.simulation.graph_capture import MOST_KEPT, PATIENCE, CapturedSteps, PreparedParts
from tests.md.search.test_contract import LAW

on_device = pytest.mark.gpu
SHAKEN = md.ShakenWalls(contact_time=0.02, amplitude=0.1, frequency=3.0, axis=0)
BOX = md.Box((24.0, 18.0), (False, True))
TUNNEL = md.Box((60.0, 40.0), periodic=(True, False))
CASES = {
    "walls that shake": {"integrator": "velocity_verlet", "walls": SHAKEN, "gravity": (-3.0, 0.0)},
    "half a step ahead": {"integrator": "position_verlet", "walls": SHAKEN},
    "a step that is found": {"integrator": "adaptive_euler", "walls": SHAKEN, "gravity": (-3.0, 0.0)},
    "a flock": {"integrator": "flight", "law": md.laws.Boids(2.0, 1.2, 1.6), "walls": SHAKEN},
    "relaxed": {"integrator": "steepest_descent", "walls": md.Walls(contact_time=0.02)},
}
REORDERS = {mode: md.Reorder("hilbert", md.Every(30), mode=mode) for mode in ("data", "threads", "shadow")}


def gas(box=BOX) -> md.State:
    start = md.preparation.granular_gas(0.35, box, 4.0, seed=2, backend="cpu")
    return md.State(start.pos, start.vel, box)


@pytest.fixture
def path(tmp_path):
    return tmp_path / "run.npz"


def both(device, state, search, law=LAW, **options) -> list[md.Simulation]:
    """One run step by step, and one in pieces, with a check that they were captured."""
    runs = []
    for phases in (True, False):
        run = md.Simulation(state, law, search=search, backend=device, **{"dt": 4e-4} | options)
        for steps in (1, 60, 33, 140, 5):
            run.run(steps, phases=phases)
        runs.append(run)
    assert [len(run._loop.captured) > 0 for run in runs] == [False, True]
    assert runs[0].step == runs[1].step == 239
    return runs


def assert_same(one: md.Simulation, other: md.Simulation) -> None:
    assert one.time == other.time > 0
    ends = [run.state.by_id() for run in (one, other)]
    assert np.array_equal(ends[0].pos, ends[1].pos)
    assert np.array_equal(ends[0].vel, ends[1].vel)
    assert np.array_equal(one.pairs(), other.pairs())
    assert one.builds == other.builds


@on_device
@pytest.mark.parametrize(
    "search",
    ["coherent", "tiles", md.search.Lbvh(rebuild_every=7), md.search.Lbvh(rebuild_every=1)],
    ids=["coherent", "tiles", "lbvh", "lbvh-1"],
)
@pytest.mark.parametrize("case", CASES)
def test_of_each_integrator(case, search, device):
    start = gas()
    if case == "relaxed":  # out of overlaps
        start = md.State(np.random.default_rng(1).random((400, 2)) * (24.0, 18.0), np.zeros((400, 2)), BOX)
    runs = both(device, start, search, **CASES[case])
    assert_same(*runs)
    assert np.abs(runs[1].state.by_id().pos - start.pos).max() > 1e-3


@on_device
@pytest.mark.parametrize("mode", REORDERS)
def test_with_a_reorder_in_between(mode, device):
    runs = both(device, gas(), "scattered", reorder=REORDERS[mode], walls=SHAKEN)
    assert_same(*runs)


@on_device
@pytest.mark.parametrize("integrator", ["velocity_verlet", "adaptive_euler"])
@pytest.mark.parametrize(
    "search",
    [
        md.search.Lbvh(),
        Reflexive(met="twice", atomics="none", rebuild_every=5),
        Reflexive(met="twice", atomics="none", data="unsorted", stack="none"),
        Reflexive(met="twice", atomics="none", data="shadow", rebuild_every=3),
    ],
    ids=lambda search: f"{search.name}-{getattr(search, 'data', '')}",
)
def test_round_a_wing_in_a_stream(search, integrator, device):
    wing = md.Wing(airfoil=md.naca("2412", 30), chord=20.0, at=(20.0, 20.0), angle=10, stiffness=2e4)
    start = md.preparation.wing_tunnel(0.2, TUNNEL, wing, (20.0, 0.0), 1.0, backend="cpu")
    stream = md.Inflow(velocity=(20.0, 0.0), temperature=1.0)
    walls = md.Walls(contact_time=0.02)
    runs = both(device, start, search, surroundings=[wing, stream], walls=walls, integrator=integrator)
    assert_same(*runs)
    assert runs[0].surroundings[1].renewed == runs[1].surroundings[1].renewed > 0
    given = [run.surroundings[0].momentum for run in runs]
    assert np.array_equal(*given)
    assert np.abs(given[0]).max() > 0


@on_device
@pytest.mark.parametrize(
    "search",
    ["linked", Reflexive(data="shadow", contacts="listed", room=2, rebuild_every=4)],
    ids=["linked", "listed"],
)
def test_of_searches_that_add_up_in_no_fixed_order(search, device):
    one, other = both(device, gas(), search, walls=SHAKEN)
    np.testing.assert_allclose(one.state.by_id().pos, other.state.by_id().pos, atol=1e-8)
    assert np.array_equal(one.pairs(), other.pairs())


@on_device
@pytest.mark.parametrize("case", CASES)
def test_in_turn_with_steps_one_by_one_and_from_a_file_at_an_odd_step(case, device, path):
    options = {"law": LAW, "search": md.search.Lbvh(rebuild_every=7), "dt": 4e-4, "backend": device}
    plain, mixed = (md.Simulation(gas(), **options | CASES[case]) for _ in range(2))
    for k, steps in enumerate((17, 40, 36, 21, 33)):
        for run, phases in ((plain, True), (mixed, k % 2 == 0)):
            run.run(steps, phases=phases)
            run.save(path)  # where it is saved a run forgets its tree
        if k == 2:
            mixed = md.Simulation.load(path)  # at step 93
            assert mixed.step == plain.step == 93
    assert plain.time == mixed.time
    for name in ("pos", "vel"):
        assert np.array_equal(*(getattr(run.state.by_id(), name) for run in (plain, mixed)))


@on_device
def test_a_tree_made_at_each_step_is_given_in_pieces_of_many(device, monkeypatch):
    run = md.Simulation(
        gas(), LAW, search=md.search.Lbvh(rebuild_every=1), dt=4e-4, walls=SHAKEN, backend=device
    )
    lengths, steps_taken = [], run.search.policy.steps_taken
    monkeypatch.setattr(
        run.search.policy, "steps_taken", lambda plan: (lengths.append(plan.steps), steps_taken(plan))
    )
    run.run(100, phases=False)
    assert max(lengths) == run.backend.piece_lengths[0]
    assert run.builds == 100


@on_device
def test_without_particles(device):
    empty = md.State(np.empty((0, 2)), np.empty((0, 2)), BOX)
    run = md.Simulation(empty, LAW, search="lbvh", dt=4e-4, walls=SHAKEN, backend=device)
    run.run(50, phases=False)
    assert run.step == 50


@on_device
def test_every_integrator_that_counts_steps_is_here():
    counting = {name for name, kind in md.integrate.INTEGRATORS.items() if kind.capabilities.capturable}
    assert counting == {case["integrator"] for case in CASES.values()}


@on_device
def test_a_look_in_between_changes_nothing(device):
    options = {"search": md.search.Lbvh(rebuild_every=16), "walls": SHAKEN, "dt": 4e-4, "backend": device}
    runs = [md.Simulation(gas(), LAW, **options) for _ in range(2)]
    for run in runs:
        run.run(1)
    for _ in range(12):
        runs[0].run(11, phases=False)
        runs[0].forces()
        runs[0].pairs()
    runs[1].run(132, phases=False)
    assert runs[0].step == runs[1].step
    np.testing.assert_allclose(*(run.state.by_id().pos for run in runs), atol=1e-9)


@on_device
@pytest.mark.parametrize("integrator", ["velocity_verlet", "adaptive_euler", "position_verlet"])
def test_a_fault_tells_its_step(integrator, device):
    box = md.Box((40.0, 5), periodic=(False, True))
    state = md.State([[39.005, 2], [5.0, 2]], [[1.0, 0], [0.0, 0]], box, id=[7, 3])
    free = md.laws.SpringDashpot(0.0, 0.0)
    for phases in (True, False):
        run = md.Simulation(state, free, integrator=integrator, dt=0.01, backend=device)
        run.run(20, phases=phases)
        with pytest.raises(md.ParticleEscaped) as caught:
            run.run(300, phases=phases)
        assert (caught.value.step, caught.value.particle) == (99, 7)


@on_device
def test_lists_with_a_skin_are_asked_at_every_step_where_steps_are_not_fused(device):
    search = md.search.Verlet(skin=0.3)
    run = md.Simulation(gas(), LAW, search=search, dt=4e-4, walls=SHAKEN, backend=device)
    run.run(100, phases=False)
    assert len(run._loop.captured) == 0
    assert run.builds > 1


class Recorder:
    """A backend of three piece lengths."""

    piece_lengths = 16, 4, 1

    def __init__(self):
        self.captured, self.launched, self.noted = [], [], []

    def record(self, work):
        self.captured.append(work.args[0])
        work()
        return lambda: self.launched.append(work.args[0])

    def note(self, work):
        self.noted.append(work)
        work()
        return lambda: self.launched.append(work)


class Search:
    """A search, with state that decides its launches."""

    def __init__(self):
        self.generation, self.launch_state = 0, None


@pytest.fixture
def recorder():
    return Recorder()


@pytest.fixture
def system(recorder):
    """Two arrays, in their roles."""
    return SimpleNamespace(particles=SimpleNamespace(arrays=("one", "other")), backend=recorder)


@pytest.fixture
def steps(system):
    return CapturedSteps(system, Search(), lambda plan, step: None, fused=False)


@pytest.fixture
def fused(system):
    return CapturedSteps(system, Search(), lambda plan, step: None, fused=True)


def plan(steps: int, build: bool = False) -> StepPlan:
    return StepPlan(steps, build, build_each=False)


def test_the_longest_piece_is_captured_only_if_it_keeps_coming(recorder, steps):
    taken = [steps.take(plan(20), 2).steps for _ in range(PATIENCE + 3)]
    assert taken == PATIENCE * [4] + 3 * [16]
    assert [one.steps for one in recorder.captured] == [4, 16]
    assert len(recorder.launched) == PATIENCE + 2  # the first steps were taken one by one


def test_plans_are_counted_apart(steps):
    for _ in range(PATIENCE):
        assert steps.take(plan(16), 2).steps == 4
    assert steps.take(plan(16, build=True), 2).steps == 4
    assert steps.take(plan(16), 2).steps == 16


def test_a_plan_with_a_build_is_captured_as_a_whole_if_it_keeps_coming(recorder, steps):
    taken = [steps.take(plan(11, build=True), 2).steps for _ in range(PATIENCE + 2)]
    assert taken == PATIENCE * [4] + 2 * [11]
    assert [(one.steps, one.build) for one in recorder.captured] == [(4, True), (11, True)]


def test_graphs_of_arrays_that_were_replaced_are_captured_again(recorder, steps):
    for _ in range(3):
        steps.take(plan(1), 2)
    assert len(recorder.captured) == 1
    steps._search.generation += 1
    for _ in range(2):
        steps.take(plan(1), 2)
    assert len(recorder.captured) == 2
    assert len(steps) == 1


@pytest.mark.parametrize(("left", "piece"), [(1, 1), (3, 1), (4, 4), (15, 4)])
def test_a_shorter_plan_gets_the_longest_piece_that_fits(steps, left, piece):
    assert [steps.take(plan(left), 2).steps for _ in range(PATIENCE + 2)] == (PATIENCE + 2) * [piece]


def test_a_backend_of_one_length_takes_pieces_of_it(recorder, steps):
    recorder.piece_lengths = (1,)
    assert [steps.take(plan(5), 2).steps for _ in range(3)] == [1, 1, 1]


def test_all_kernels_are_called_again_before_a_capture_after_arrays_were_replaced(recorder, steps):
    steps.take(plan(1), 2)
    steps._search.generation += 1
    steps.take(plan(1), 2)
    assert not recorder.captured


def test_fused_steps_are_taken_as_a_whole_and_captured_when_they_come_again(recorder, fused):
    for length, taken in ((11, 11), (20, 16), (1, 1)):
        assert [fused.take(plan(length, build=True), 2).steps for _ in range(4)] == 4 * [taken]
    assert [one.steps for one in recorder.captured] == [11, 16, 1]
    assert len(recorder.launched) == 3 * 3
    assert fused.launched


def test_fused_steps_are_captured_apart_for_each_plan_and_parity(recorder, fused):
    prunes = StepPlan(11, build=False, build_each=False, prune=True)
    for one, step in ((plan(11), 2), (prunes, 2), (plan(11), 3), (plan(11), 5)):
        fused.take(one, step)
    assert [one.prune for one in recorder.captured] == [False]
    fused._search.generation += 1
    fused.take(plan(11), 2)
    assert len(recorder.captured) == 1  # other kernels may be called from now on


def test_a_capture_that_fails_takes_no_step(system, recorder, monkeypatch):
    def take(plan, step):
        system.particles.arrays = system.particles.arrays[::-1]
        search.launch_state = not search.launch_state

    def fail(work):
        work()
        raise MemoryError

    search = Search()
    search.launch_state = False
    fused = CapturedSteps(system, search, take, fused=True)
    for _ in range(2):
        fused.take(plan(1), 2)
    assert (system.particles.arrays, search.launch_state) == (("one", "other"), False)
    monkeypatch.setattr(recorder, "record", fail)
    with pytest.raises(MemoryError):
        fused.take(plan(1), 2)
    assert (system.particles.arrays, search.launch_state) == (("one", "other"), False)
    assert not recorder.launched


class TestPreparedParts:
    @pytest.fixture
    def parts(self, system):
        return PreparedParts(system, Search())

    def swap(self, parts):
        """A part that swaps the arrays, and changes the state of the search to the next of three."""
        parts._particles.arrays = parts._particles.arrays[::-1]
        search = parts._known._search
        search.launch_state = (search.launch_state + 1) % 3

    def test_launches_are_made_again_in_the_same_roles_and_state(self, parts, recorder):
        search, roles = parts._known._search, parts._particles.arrays
        search.launch_state = 0
        for k in range(14):
            parts.take("swap", 2, lambda: self.swap(parts))
            assert search.launch_state == (k + 1) % 3
            assert parts._particles.arrays == (roles[::-1] if k % 2 == 0 else roles)
        assert len(recorder.noted) == 6
        assert recorder.launched == [recorder.noted[k % 6] for k in range(6, 14)]

    def test_another_part_parity_role_or_state_has_other_launches(self, parts, recorder):
        search = parts._known._search
        for part, step in (("a", 2), ("b", 2), ("a", 3), ("a", 4), ("a", 7)):
            parts.take(part, step, lambda: None)
        assert (len(recorder.noted), len(recorder.launched)) == (3, 2)
        parts._particles.arrays = "three", "four"
        parts.take("a", 2, lambda: None)
        search.launch_state = "new"
        parts.take("a", 2, lambda: None)
        assert (len(recorder.noted), len(recorder.launched)) == (5, 2)

    def test_launches_are_forgotten_when_the_search_replaces_its_arrays(self, parts, recorder):
        search = parts._known._search
        for generation in (0, 0, 1, 1):
            search.generation = generation
            parts.take("a", 2, lambda: None)
        assert (len(recorder.noted), len(recorder.launched)) == (2, 2)

    def test_launches_of_work_that_replaces_arrays_are_forgotten(self, parts, recorder):
        search = parts._known._search

        def build():
            search.generation = 1

        for _ in range(3):
            parts.take("a", 2, build)
        assert (len(recorder.noted), len(recorder.launched)) == (2, 1)

    def test_few_are_kept(self, parts):
        for k in range(MOST_KEPT + 3):
            parts.take(f"part {k}", 2, lambda: None)
        assert len(parts._known) == 3
