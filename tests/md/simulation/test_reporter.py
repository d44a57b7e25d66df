"""What is called at intervals while a simulation runs."""

import contextlib
import os
import signal

import numpy as np
import pytest

import md


class Recorder:
    def __init__(self, interval):
        self.interval, self.steps = interval, []

    def report(self, simulation):
        self.steps.append((simulation.step, len(simulation.pairs())))


def test_reporters_are_called_at_multiples_of_their_intervals_and_change_nothing(backend):
    quiet, recorded = (
        md.Simulation(
            md.scenes.benchmark_gas(300, 0.3),
            md.scenes.BENCHMARK_LAW,
            dt=md.scenes.BENCHMARK_DT,
            backend=backend,
        )
        for _ in range(2)
    )
    quiet.run(60)
    threes, sevens = Recorder(3), Recorder(7)
    for steps in (20, 0, 40):
        recorded.run(steps, reporters=[threes, sevens])
    assert [step for step, _ in threes.steps] == list(range(0, 61, 3))
    assert [step for step, _ in sevens.steps] == list(range(0, 61, 7))
    assert np.array_equal(quiet.state.by_id().pos, recorded.state.by_id().pos)
    assert [steps for steps, _ in recorded.timings.total] == [20, 40]


def small() -> md.Simulation:
    return md.Simulation(
        md.scenes.benchmark_gas(8, 0.1), md.scenes.BENCHMARK_LAW, dt=md.scenes.BENCHMARK_DT, backend="cpu"
    )


@pytest.mark.parametrize(
    ("interval", "error"), [(0, ValueError), (-1, ValueError), (2.5, TypeError), (True, TypeError)]
)
def test_a_reporter_without_a_proper_interval_is_refused(interval, error):
    simulation = small()
    with pytest.raises(error, match=r"interval of Recorder = .*allowed: an integer of at least 1 \(steps\)"):
        simulation.run(5, reporters=[Recorder(interval)])
    assert simulation.step == 0


@pytest.mark.parametrize("reporters", [Recorder(3), None, "Recorder", [3], [Recorder], {Recorder(3)}])
def test_what_is_no_reporter_is_refused(reporters):
    simulation = small()
    with pytest.raises(TypeError, match=r"reporters.* = .*allowed: "):
        simulation.run(5, reporters=reporters)
    assert simulation.step == 0


@pytest.mark.parametrize("kind", [np.int8, np.uint8, np.int16, np.uint64])
def test_an_interval_of_few_bits_does_not_wrap(kind):
    recorded = Recorder(kind(100))
    simulation = small()
    simulation.run(350, reporters=[recorded])
    assert [step for step, _ in recorded.steps] == [0, 100, 200, 300]


@pytest.mark.parametrize(
    "make", [md.Observer, md.observe.EnergyBalance, lambda interval: md.observe.Fields(interval, (2, 2, 2))]
)
def test_intervals_are_kept_as_pythons_integers(make):
    assert type(make(np.uint8(100)).interval) is int
    with pytest.raises(TypeError, match=r"interval of \w+ = 2\.5 of class float; allowed: an integer"):
        make(2.5)


class Broken:
    """Raises in the midst of its k-th report, before it has made it."""

    def __init__(self, interval, k, error):
        self.interval, self.k, self.error, self.steps, self.calls = interval, k, error, [], 0

    def report(self, simulation):
        self.calls += 1
        if self.calls == self.k:
            raise self.error
        self.steps.append(simulation.step)


@pytest.mark.parametrize("error", [KeyboardInterrupt, OSError])
@pytest.mark.parametrize("k", [1, 3, 5])  # the first is of step 0, the last of the last step
def test_a_report_that_was_interrupted_is_made_when_the_run_goes_on(k, error):
    simulation, reporters = small(), [Recorder(5), Broken(5, k, error), Recorder(5)]
    with pytest.raises(error):
        simulation.run(20, reporters=reporters)
    assert simulation.step == 5 * (k - 1)
    simulation.run(20 - simulation.step, reporters=reporters)
    simulation.run(20, reporters=reporters)
    for reporter in (reporters[0], reporters[2]):
        assert [step for step, _ in reporter.steps] == list(range(0, 41, 5))
    assert reporters[1].steps == list(range(0, 41, 5))


def test_another_reporter_has_nothing_to_make_up_for():
    simulation, other = small(), Recorder(5)
    with pytest.raises(KeyboardInterrupt):
        simulation.run(20, reporters=[Broken(5, 3, KeyboardInterrupt)])
    simulation.run(0, reporters=[other])
    simulation.run(10, reporters=[other])
    assert [step for step, _ in other.steps] == [15, 20]


@pytest.mark.parametrize("fails", [False, True])
def test_reporters_are_released_when_the_run_ends(fails):
    class Holding:
        interval, held = 2, False

        def report(self, simulation):
            self.held = True
            if fails:
                raise OSError("no room")

        def release(self):
            self.held = False

    holding, sim = Holding(), small()
    with pytest.raises(OSError, match="no room") if fails else contextlib.nullcontext():
        sim.run(4, reporters=[holding])
    assert not holding.held


@pytest.mark.quick
def test_an_interrupt_waits_for_the_reporter_at_work_and_for_no_other():
    class Pressed(Recorder):
        def report(self, simulation):
            if simulation.step == 5:
                os.kill(os.getpid(), signal.SIGINT)
            super().report(simulation)

    simulation, reporters = small(), [Recorder(5), Pressed(5), Recorder(5)]
    with pytest.raises(KeyboardInterrupt):
        simulation.run(10, reporters=reporters)
    assert [[step for step, _ in one.steps] for one in reporters] == [[0, 5], [0, 5], [0]]
    simulation.run(5, reporters=reporters)
    assert [[step for step, _ in one.steps] for one in reporters] == [[0, 5, 10]] * 3


def test_a_reporter_that_is_given_twice_reports_once():
    recorded, sim = Recorder(2), small()
    sim.run(4, reporters=[recorded, recorded])
    assert [step for step, _ in recorded.steps] == [0, 2, 4]
