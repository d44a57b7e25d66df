"""Triggers that read the run: when particles have moved, when the force phase has become slower."""

from types import SimpleNamespace

import numpy as np
import pytest

import md
from md.backend import Timings
from md.io.checkpoint import SavedRun
from md.reorder.adaptive import ReorderCostModel
from md.reorder.triggers import active

LENGTHS = md.backend.Backend.piece_lengths
LAW = md.laws.SpringDashpot(0.0, 0.0)


def drifting(speeds, schedule, backend, **options):
    """Particles in a row of cells that fly along x at given speeds, in cells a step."""
    n = len(speeds)
    pos = np.column_stack([np.full(n, 0.5), np.arange(n) + 0.5, np.full(n, 0.5)])
    vel = np.zeros((n, 3))
    vel[:, 0] = speeds
    state = md.State(pos, vel, md.Box((8.0, float(max(n, 2)), 4.0)))
    reorder = md.Reorder("row", schedule)
    return md.Simulation(state, LAW, dt=1.0, reorder=reorder, backend=backend, **options)


def at_step(simulation, step: int, path) -> md.Simulation:
    """The simulation as if it had taken so many steps, with the same object as its reorder."""
    simulation.save(path)
    SavedRun.read(path)._replace(step=step).write(path)
    return md.Simulation.load(path, reorder=simulation.config.reorder)


def reorders(simulation, steps: int) -> list[int]:
    simulation.run(steps)
    return simulation.timings.steps.get("reorder", [])


@pytest.mark.quick
@pytest.mark.parametrize(
    ("fraction", "interval", "expected"), [(0.25, 1, [0, 4, 12]), (0.5, 1, [0]), (0.25, 3, [0, 6, 12])]
)
def test_moved_reorders_when_a_share_has_left_its_cell(fraction, interval, expected, backend):
    schedule = md.Moved(fraction, interval)
    assert reorders(drifting([0.125, 0.0, 0.0, 0.0], schedule, backend), 16) == expected


@pytest.mark.quick
def test_moved_counts_from_where_the_particles_were_sorted(backend):
    assert reorders(drifting([0.125, 0.125, 0.0, 0.0], md.Moved(0.5, 1), backend), 24) == [0, 4, 12, 20]


def test_a_gas_at_rest_is_sorted_once(backend):
    assert reorders(drifting([0.0] * 5, md.Moved(0.01, 1), backend), 30) == [0]


def test_an_empty_box_is_no_reason(backend):
    assert reorders(drifting([], md.Moved(0.5, 1), backend, precision="float32"), 20) == [0]


class Clock:
    """A run whose force phase takes the times given, a step each."""

    def __init__(self, schedule, times, cost=10.0, first=None, compiles=None):
        self.timings = Timings()
        backend = md.backend.get("cpu")
        self.trigger = schedule.build(SimpleNamespace(backend=backend, timings=self.timings))
        self.times, self.cost, self.first = times, cost, cost if first is None else first
        self.costs, self.compiles, self.cleared = {}, times[0] if compiles is None else compiles, ()

    def reorders(self) -> list[int]:
        fired, age = [], 0
        for step in range(len(self.times)):
            due = self.trigger(step)
            if step in self.cleared:
                self.timings.clear()
            if due:
                ms = self.costs.get(len(fired), self.cost if fired else self.first)
                self.timings.add("reorder", step, ms)
                self.trigger.reordered(step)
                fired.append(step)
                age = 0
            self.timings.add("force", step, self.times[age] if step else self.compiles)
            age += 1
        return fired


@pytest.mark.quick
def test_decayed_fires_when_the_mean_of_a_window_exceeds_the_fresh_by_the_loss():
    times = [1.0] * 10 + [1.1] * 10 + [1.3] * 80
    assert Clock(md.Decayed(0.21, window=10), times).reorders()[:3] == [0, 26, 52]
    assert Clock(md.Decayed(0.5, window=10), times).reorders() == [0]


def test_decayed_auto_comes_to_the_interval_after_which_the_loss_has_cost_a_reorder():
    aged = Clock(md.Decayed("auto"), [1.0 + 1e-4 * age for age in range(10**4)], cost=2.0)
    assert np.diff(aged.reorders())[-20:] == pytest.approx(np.full(20, np.sqrt(4e4)), abs=3)


def test_a_first_reorder_that_compiles_does_not_keep_decayed_from_the_next_ones():
    aged = Clock(md.Decayed("auto"), [1.0 + 1e-2 * age for age in range(10**4)], cost=2.0, first=1e6)
    found = np.diff(aged.reorders())
    assert list(found[:3]) == [64, 128, 64]
    assert found[-20:] == pytest.approx(np.full(20, np.sqrt(4e2)), abs=3)


def test_a_first_step_that_compiles_does_not_look_like_a_fresh_order_that_is_slow():
    times = [1.0 + 1e-2 * age for age in range(10**4)]
    aged, warm = (Clock(md.Decayed("auto"), times, cost=2.0, compiles=ms) for ms in (1e4, 1.0))
    assert aged.reorders() == warm.reorders()


def test_a_reorder_that_something_else_slowed_down_does_not_move_the_interval():
    aged, one = (Clock(md.Decayed("auto"), [1 + 1e-4 * k for k in range(10**4)], cost=2.0) for _ in range(2))
    aged.costs = {10: 50.0}  # number of the reorder -> ms
    assert aged.reorders() == one.reorders()


@pytest.mark.parametrize("slope", [1e-2, 1e-3])
def test_what_has_the_machine_for_a_moment_moves_the_foreseen_interval_little(slope):
    chance = np.random.default_rng(2)
    noise = 1 + 0.03 * chance.normal(size=10**5) + 9 * (chance.random(10**5) < 0.01)
    found = Late(lambda age: 1.0 + slope * age, cost=2.0, piece=1, factor=noise).intervals(100)
    assert all(0.5 < interval / np.sqrt(4 / slope) < 2 for interval in found[30:])


@pytest.mark.quick
@pytest.mark.parametrize(("slope", "best"), [(6.25e-2, 8), (0.25, 4), (4.0, 2)])
def test_decayed_auto_comes_to_a_short_interval_where_it_pays(slope, best):
    found = np.diff(
        Clock(md.Decayed("auto"), [1.0 + slope * age for age in range(4000)], cost=2.0).reorders()
    )
    assert list(found[:2]) == [64, 32]
    assert set(found[-20:]) == {best}


@pytest.mark.parametrize(("slope", "best"), [(6.25e-2, 8), (0.25, 4)])
def test_decayed_auto_comes_near_a_short_interval_though_times_vary(slope, best):
    noise = 1 + 0.05 * np.random.default_rng(5).normal(size=10**5)
    late = Late(lambda age: 1.0 + slope * age, cost=2.0, piece=1, late=0, factor=noise)
    found = late.intervals(200)[50:]
    assert all(best / 1.5 <= interval <= 1.5 * best for interval in found)
    chosen = late.model.chosen
    assert chosen.interval == found[-1]
    assert chosen.wear_ms == pytest.approx(slope, abs=4 * chosen.wear_error_ms)
    assert 0 < chosen.wear_error_ms < slope / 4


@pytest.mark.parametrize("seed", range(5))
def test_short_cycles_are_remembered_long_enough_to_tell_the_wear_from_noise(seed):
    noise = 1 + 0.2 * np.random.default_rng(seed).normal(size=10**5)
    late = Late(lambda age: 1.0 + 6.25e-2 * age, cost=2.0, piece=1, late=0, factor=noise)
    assert set(late.intervals(200)[50:]) <= set(range(7, 13))  # 8 is best


@pytest.mark.parametrize("seed", range(5))
@pytest.mark.parametrize("slope", [0.0, 1e-4, 1e-3])
def test_noise_leads_to_no_short_interval_where_long_ones_are_best(slope, seed):
    """A reorder of 0.4 steps' time: cheap, so that a little noise looks like wear that pays for it."""
    steps, chance = 8000, np.random.default_rng(seed)
    noise = 1 + 0.1 * chance.normal(size=steps) + 9 * (chance.random(steps) < 0.005)
    model, step = ReorderCostModel(), 0
    taken = []
    while step < steps - model.interval:
        model.reordered(step)
        model.observe_cost(0.4)
        for age in range(min(model.interval, steps - step)):
            model.observe_steps(step + age, 1, (1 + slope * age) * noise[step + age])
        taken.append(model.interval)
        step += model.interval
    assert min(taken) >= 16
    time = sum(0.4 + k + slope * k * (k - 1) / 2 for k in taken) / step
    best = 1 + (np.sqrt(2 * 0.4 * slope) if slope else 0.0)
    assert time < 1.01 * best


def test_a_short_interval_is_left_soon_once_the_order_no_longer_wears():
    model, step = ReorderCostModel(), 0
    while step < 2200:
        model.reordered(step)
        model.observe_cost(2.0)
        for age in range(model.interval):
            model.observe_steps(step + age, 1, 1.0 + age * (step < 2000))
        step += model.interval
        assert model.interval == 2 or not 1000 < step < 2000
    assert model.interval >= 64


def test_a_device_gets_no_interval_below_two_pieces_and_none_of_parts_of_them():
    found = Late(lambda age: 1.0 + 4.0 * age, cost=2.0).intervals(60)
    assert set(found) == {64, 32}


def test_the_choice_tells_the_times_that_it_rests_on():
    clock = Clock(md.Decayed("auto"), [1.0 + 6.25e-2 * age for age in range(2000)], cost=2.0)
    assert str(clock.trigger.chosen) == "interval 64"
    assert np.isnan([clock.trigger.chosen.reorder_ms, clock.trigger.chosen.wear_ms]).all()
    fired, chosen = clock.reorders(), clock.trigger.chosen
    assert (chosen.interval, chosen.reorder_ms, chosen.measured) == (8, 2.0, len(fired) - 1)
    assert chosen.wear_ms == pytest.approx(6.25e-2)
    assert chosen.wear_error_ms == pytest.approx(0, abs=1e-6)
    assert str(chosen).startswith("interval 8: a reorder takes 2 ms, each step 0.0625 +- ")
    assert str(chosen).endswith(f"chosen {len(fired) - 1} times")


class Late:
    """A device that does steps of times known only some steps later, reordered as foreseen."""

    def __init__(self, time, cost, late=100, noise=0.0, launch=0.0, piece=LENGTHS[0], factor=None):
        self.model, self.cost, self.launch = ReorderCostModel(piece), cost, launch
        self.lengths = LENGTHS if piece > 1 else (1,)
        self.factor = np.ones(10**6) if factor is None else factor
        self.time, self.late, self.noise = time, late, np.random.default_rng(1).normal(0, noise, 10**6)

    def intervals(self, reorders: int) -> list[int]:
        model, waiting, step, found = self.model, [], 0, []
        for _ in range(reorders):
            while waiting and waiting[0][0] + waiting[0][1] + self.late <= step:
                model.observe_steps(*waiting.pop(0))
            model.observe_cost(self.cost)
            model.reordered(step)
            found.append(model.interval)
            begin = 0
            while begin < model.interval:
                steps = next(length for length in self.lengths if length <= model.interval - begin)
                at = step + begin
                ms = sum(
                    self.time(begin + k) * self.factor[at + k] + self.noise[at + k] for k in range(steps)
                )
                waiting.append((step + begin, steps, ms + self.launch))
                begin += steps
            step += model.interval
        return found


@pytest.mark.parametrize("slope", [3e-3, 1e-3, 1e-5])
@pytest.mark.parametrize("noise", [0.0, 0.02])
def test_the_best_interval_is_foreseen_from_times_that_come_late(slope, noise):
    found = Late(lambda age: 1.0 + slope * age, cost=2.0, noise=noise).intervals(60)
    best = np.sqrt(2 * 2.0 / slope)
    assert set(found) <= set(range(32, 2**20, 16))
    assert np.array(found[30:]) == pytest.approx(np.full(30, best), rel=0.25 if noise else 0.1, abs=8)
    assert all(1 / 3 <= after / before <= 2 for after, before in zip(found[1:], found, strict=False))


def test_short_pieces_which_are_slower_do_not_look_like_an_order_worn_out():
    found = Late(lambda age: 1.0 + 1e-4 * age, cost=2.0, launch=3.0).intervals(60)
    assert np.array(found[30:]) == pytest.approx(np.full(30, np.sqrt(4e4)), rel=0.1, abs=8)


def test_where_the_best_interval_is_too_short_to_be_seen_the_least_is_kept_and_left_again():
    aged = Late(lambda age: 1.0 + 0.5 * age, cost=2.0)
    assert aged.intervals(40)[-1] == 32
    model, step = aged.model, 10**5
    for _ in range(60):  # it wears out more slowly now
        model.reordered(step)
        for begin in range(0, model.interval, 16):
            steps = min(16, model.interval - begin)
            model.observe_steps(step + begin, steps, sum(1 + 1e-3 * (begin + k) for k in range(steps)))
        step += model.interval
    assert model.interval == pytest.approx(np.sqrt(2 * 2.0 / 1e-3), rel=0.15)


def test_decayed_reads_steps_timed_one_by_one_after_pieces():
    timings = Timings()
    backend = SimpleNamespace(runs_ahead=True, piece_lengths=(16, 4, 1))
    trigger = md.Decayed(0.5, window=10).build(SimpleNamespace(backend=backend, timings=timings))
    assert trigger(0)
    trigger.reordered(0)
    timings.add_piece(0, 16, lambda: 16.0)
    for step in range(16, 60):
        timings.add("force", step, 1.0 if step < 40 else 2.0)
    timings.resolve()
    assert trigger(60)


def test_an_order_that_does_not_wear_out_is_made_ever_more_seldom():
    assert Late(lambda age: 1.0, cost=2.0).intervals(12)[-1] >= 2**14
    assert ReorderCostModel(LENGTHS[0]).interval == 64


def test_decayed_learns_from_pieces_where_a_device_runs_ahead():
    timings = Timings()
    backend = SimpleNamespace(runs_ahead=True, piece_lengths=(16, 4, 1))
    trigger = md.Decayed("auto").build(SimpleNamespace(backend=backend, timings=timings))
    step, found = 0, []
    while len(found) < 40:
        assert trigger(step)
        timings.add("reorder", step, 2.0)
        trigger.reordered(step)
        started, steps = step, 0
        while not trigger(step):
            steps = trigger.steps_to_next(step, 16)
            assert 1 <= steps <= 16
            age = step - started
            timings.add_piece(
                step, steps, lambda age=age, steps=steps: sum(1 + 1e-4 * (age + k) for k in range(steps))
            )
            step += steps
            timings.resolve(step - 50)
        found.append(step - started)
    assert found[-10:] == pytest.approx([200] * 10, abs=9)


@pytest.mark.gpu
def test_decayed_gives_a_device_its_steps_in_pieces():
    if md.backend.why_not() is not None:
        pytest.skip(md.backend.why_not())
    gas = md.scenes.benchmark_gas(2**15, 0.2)
    reorder = md.Reorder("hilbert", md.Decayed("auto"))
    simulation = md.Simulation(
        gas, md.scenes.BENCHMARK_LAW, search="linked", dt=md.scenes.BENCHMARK_DT, reorder=reorder,
        backend="cuda", precision="float32", fused=True,
    )  # fmt: skip
    simulation.run(2000, phases=False)
    assert len(simulation.timings.steps["reorder"]) > 0  # how many depends on the times measured
    pieces = simulation.timings.known_pieces
    assert sum(steps for _, steps, _ in pieces) > 1000
    assert all(ms > 0 for _, _, ms in pieces)
    assert {steps for _, steps, _ in pieces} >= {16}


@pytest.mark.parametrize(
    ("schedule", "growth"), [(md.Decayed("auto"), 1e-4), (md.Decayed(0.5, window=10), 1e-2)]
)
def test_decayed_keeps_what_it_learned_when_the_times_are_cleared(schedule, growth):
    times = [1.0 + growth * age for age in range(10**4)]
    kept, cleared = Clock(schedule, times[:2000], cost=2.0), Clock(schedule, times[:2000], cost=2.0)
    cleared.cleared = {100, 300}
    expected = kept.reorders()
    assert cleared.reorders() == expected
    assert len(set(np.diff(expected)[:4])) > 1 or schedule.loss != "auto"


def test_a_trigger_is_called_no_farther_ahead_than_it_must():
    called = []
    trigger = active(lambda step: called.append(step) or step == 7, None)
    assert trigger.steps_to_next(3, 16) == 4
    assert called == [4, 5, 6, 7]
    assert trigger.steps_to_next(8, 16) == 16
    moved = drifting([0.0], md.Moved(0.5), "cpu").reordering.trigger
    assert moved.steps_to_next(3, 16) == 1


@pytest.mark.quick
def test_the_phases_are_timed_for_decayed_without_phases(backend):
    state = md.scenes.benchmark_gas(125, 0.2)
    schedule = md.Decayed(1e9)
    simulation = md.Simulation(state, LAW, dt=1e-4, reorder=md.Reorder("hilbert", schedule), backend=backend)
    simulation.run(7, phases=False)
    assert len(simulation.timings.milliseconds["force"]) == 7
    assert simulation.timings.steps["reorder"] == [0]
    assert vars(schedule) == {"loss": 1e9, "window": 10}  # the choice stays as it was


@pytest.mark.parametrize(
    ("make", "message"),
    [
        (lambda: md.Moved(0), r"fraction of Moved = 0; allowed: .*above 0, up to 1"),
        (lambda: md.Moved(1.5), r"fraction of Moved = 1\.5; allowed: .*above 0, up to 1"),
        (lambda: md.Moved(0.5, 0), r"interval of Moved = 0; allowed: an integer of at least 1 \(steps\)"),
        (lambda: md.Decayed(0), r"loss of Decayed = 0; allowed: .*above 0 \(share .*'auto'"),
        (lambda: md.Decayed("often"), r"loss of Decayed = 'often'; allowed: .*'auto'"),
        (lambda: md.Decayed(np.inf), r"loss of Decayed = inf; allowed: a finite number"),
        (lambda: md.Decayed(0.1, 2**25), r"window of Decayed = 33554432; allowed: .* up to 16777216 \(steps"),
        (lambda: md.Every(0), r"interval of Every = 0; allowed: an integer of at least 1 \(steps\)"),
    ],
)
def test_what_is_no_schedule_is_refused(make, message):
    with pytest.raises(ValueError, match=message):
        make()


@pytest.mark.parametrize(
    ("make", "message"),
    [
        (lambda: md.Moved("0.5"), r"fraction of Moved = '0\.5' of class str; allowed: "),
        (lambda: md.Moved(0.5, 2.5), r"interval of Moved = 2\.5 of class float; allowed: an integer"),
        (lambda: md.Moved(True), r"fraction of Moved = True of class bool; allowed"),
        (lambda: md.Decayed(None), r"loss of Decayed = None of class NoneType; allowed: .*'auto'"),
        (lambda: md.Decayed(0.1, True), r"window of Decayed = True of class bool; allowed: an integer"),
        (lambda: md.Every(np.timedelta64(5, "s")), r"interval of Every = .* of class timedelta64; allowed"),
        (lambda: md.Every(2.5), r"interval of Every = 2\.5 of class float; allowed: an integer"),
    ],
)
def test_what_is_of_no_class_of_a_schedule_is_refused(make, message):
    with pytest.raises(TypeError, match=message):
        make()


@pytest.mark.parametrize(
    "make",
    [
        lambda: md.Every(np.uint8(100)),
        lambda: md.Moved(np.float16(0.5), np.int8(50)),
        lambda: md.Decayed(np.float32(0.5), np.int64(10)),
        lambda: md.Decayed("auto", np.int8(10)),
    ],
)
def test_narrow_numbers_are_kept_as_pythons_and_no_step_makes_them_wrap(make, tmp_path):
    schedule = make()
    assert {type(value) for value in vars(schedule).values()} <= {int, float, str}
    simulation = drifting([0.125, 0.0], schedule, "cpu")
    simulation = at_step(simulation, 120, tmp_path / "run.npz")
    simulation.run(20)
    assert simulation.timings.steps.get("reorder") is None or not isinstance(schedule, md.Every)
    simulation = at_step(simulation, 250, tmp_path / "run.npz")
    simulation.run(20)
    assert simulation.step == 270
    if isinstance(schedule, md.Every):
        assert simulation.timings.steps.get("reorder") is None
        assert reorders(at_step(simulation, 290, tmp_path / "run.npz"), 20) == [300]


def test_a_longdouble_is_saved(tmp_path):
    simulation = drifting([0.125, 0.0], md.Moved(np.longdouble(0.5), 1), "cpu")
    simulation.run(3, reporters=[md.Checkpoint(tmp_path / "run.npz", 1)])
    assert md.Simulation.load(tmp_path / "run.npz").step == 3
