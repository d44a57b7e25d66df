"""One contract for every trigger of the registry: its calls, its state, and what a run shows of it."""

import json

import numpy as np
import pytest

import md
from md.reorder import TRIGGERS, RunTrigger
from md.reorder.triggers import active
from md.simulation.config import from_plain, to_plain

PARAMETERS = {"never": (), "every": (7,), "moved": (0.05, 3), "decayed": ()}
LAW, DT = md.scenes.BENCHMARK_LAW, md.scenes.BENCHMARK_DT


def trigger_of(name: str):
    return TRIGGERS[name](*PARAMETERS[name])


def simulated(backend: str, schedule, **options) -> md.Simulation:
    reorder = None if schedule is None else md.Reorder("hilbert", schedule, **options)
    gas = md.scenes.benchmark_gas(216, 0.3)
    return md.Simulation(gas, LAW, search="scattered", dt=DT, reorder=reorder, backend=backend)


def test_every_trigger_of_the_registry_is_tested_here():
    assert set(PARAMETERS) == set(TRIGGERS)


@pytest.mark.quick
@pytest.mark.parametrize("name", TRIGGERS)
class TestEveryTrigger:
    def test_is_plain_data_that_no_run_changes(self, name, backend):
        choice = trigger_of(name)
        before = dict(vars(choice))
        simulated(backend, choice).run(10)
        assert vars(choice) == before
        assert choice == trigger_of(name)
        plain = json.loads(json.dumps(to_plain("schedule", choice)))
        assert from_plain("schedule", plain) == choice

    def test_returns_the_same_when_called_twice_for_a_step(self, name, backend):
        run = simulated(backend, trigger_of(name))
        trigger = active(trigger_of(name), run.system)
        for step in range(12):
            due = trigger(step)
            assert type(due) is bool
            assert trigger(step) == due
            if due:
                trigger.reordered(step)
                if isinstance(trigger_of(name), RunTrigger):
                    assert not trigger(step)  # a trigger that reads the run has just been served

    def test_that_reads_the_run_is_due_at_the_first_step(self, name, backend):
        run = simulated(backend, trigger_of(name))
        run.run(1)
        assert run.reordering.steps == ([] if name == "never" else [0])

    def test_bounds_the_steps_to_its_next_call(self, name, backend):
        run = simulated(backend, trigger_of(name))
        run.run(3)
        for step, most in ((3, 1), (3, 16), (5, 4)):
            assert 1 <= run.reordering.trigger.steps_to_next(step, most) <= most

    def test_changes_no_trajectory(self, name, backend):
        ordered, plain = simulated(backend, trigger_of(name)), simulated(backend, None)
        for run in (ordered, plain):
            run.run(40)
        np.testing.assert_allclose(ordered.state.by_id().pos, plain.state.by_id().pos, atol=1e-11)

    @pytest.mark.parametrize("mode", md.reorder.MODES)
    def test_shows_the_steps_at_which_it_reordered(self, name, mode, backend):
        run = simulated(backend, trigger_of(name), mode=mode)
        run.run(30)
        assert run.reordering.steps == run.timings.steps.get("reorder", [])
        run.timings.clear()
        steps = list(run.reordering.steps)
        run.reorder()
        assert run.reordering.steps == [*steps, 30]
        assert run.reordering.is_applied

    def test_resumes_where_it_was_unless_it_reads_times(self, name, backend, tmp_path):
        run = simulated(backend, trigger_of(name))
        run.run(10)
        run.save(tmp_path / "run.npz")
        loaded = md.Simulation.load(tmp_path / "run.npz")
        assert loaded.reordering.steps == []  # those of the run that was loaded
        assert loaded.reordering.is_applied == run.reordering.is_applied == (name != "never")
        before = len(run.reordering.steps)
        for one in (run, loaded):
            one.run(30)
        if run.reordering.trigger.capabilities.needs_times:
            assert loaded.reordering.steps[0] == 10
        else:
            assert loaded.reordering.steps == run.reordering.steps[before:]
            assert np.array_equal(run.state.id, loaded.state.id)


def test_only_a_self_tuning_trigger_shows_an_interval_it_has_chosen(backend):
    shown = {name: simulated(backend, trigger_of(name)).reordering.trigger.interval for name in TRIGGERS}
    assert shown == {"never": None, "every": None, "moved": None, "decayed": 64}


def test_the_interval_that_decayed_has_chosen_is_that_of_its_reorders(backend):
    """A first reorder, one after 64 steps, and from then on the interval shown after each."""
    run = simulated(backend, md.Decayed("auto"))
    chosen = []
    while len(run.reordering.steps) < 4:
        run.run(1)
        if len(run.reordering.steps) > len(chosen):
            chosen.append(run.reordering.trigger.interval)
    assert np.diff(run.reordering.steps).tolist() == chosen[:3]
    assert chosen[0] == 64
    assert all(2 <= interval <= 2**20 for interval in chosen)
    found = run.reordering.trigger.chosen
    assert found.interval == chosen[-1]
    if run.backend.runs_ahead:  # where times become known later
        assert found.measured <= 3
    else:
        assert found.measured == 3
        assert found.reorder_ms in run.timings.milliseconds["reorder"]
    assert repr(run.reordering.trigger).endswith(f", {found}>")
    fixed = simulated(backend, md.Decayed(0.5)).reordering.trigger
    assert fixed.interval is fixed.chosen is None
