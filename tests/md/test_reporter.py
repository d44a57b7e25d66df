"""What is called at intervals while a simulation runs."""

import numpy as np
import pytest

import md


class Told:
    def __init__(self, interval):
        self.interval, self.steps = interval, []

    def report(self, simulation):
        self.steps.append((simulation.step, len(simulation.pairs())))


def test_reporters_are_called_at_multiples_of_their_intervals_and_change_nothing(backend):
    quiet, told = (
        md.Simulation(
            md.scenes.shared_gas(300, 0.3), md.scenes.SHARED_LAW, dt=md.scenes.SHARED_DT, backend=backend
        )
        for _ in range(2)
    )
    quiet.run(60)
    threes, sevens = Told(3), Told(7)
    for steps in (20, 0, 40):
        told.run(steps, reporters=[threes, sevens])
    assert [step for step, _ in threes.steps] == list(range(0, 61, 3))
    assert [step for step, _ in sevens.steps] == list(range(0, 61, 7))
    assert np.array_equal(quiet.state.by_id().pos, told.state.by_id().pos)
    assert [steps for steps, _ in told.timings.total] == [20, 40]


@pytest.mark.parametrize("interval", [0, -1, 2.5, True])
def test_a_reporter_without_a_proper_interval_is_refused(interval):
    simulation = md.Simulation(md.scenes.shared_gas(8, 0.1), md.scenes.SHARED_LAW, backend="cpu")
    with pytest.raises(ValueError, match="interval"):
        simulation.run(5, reporters=[Told(interval)])
    assert simulation.step == 0
