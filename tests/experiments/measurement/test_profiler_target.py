"""The profiler target: memory orders are those of their names."""

import numpy as np

import md
from experiments.measurement.profiler_target import Job, gas, ordered

JOB = Job(512, 0.2, "linked", "float64", "cpu", 0, ("shuffled", "lattice", "hilbert"))


def test_memory_orders_are_those_of_their_names():
    state = gas(JOB)
    assert len(state) == 512
    assert np.array_equal(ordered(JOB, state, "lattice").state.id, np.arange(512))
    assert np.array_equal(ordered(JOB, state, "shuffled").state.id, state.id)
    assert not np.array_equal(state.id, np.arange(512))
    along = ordered(JOB, state, "hilbert").state
    again = md.Simulation(
        along, md.scenes.SHARED_LAW, dt=1e-12, backend="cpu", reorder=md.Reorder("hilbert", md.Every(1))
    )
    again.run(1)
    assert np.array_equal(again.state.id, along.id)  # it was reordered after its last step
