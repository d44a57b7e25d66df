"""The shared state of a simulation: its status block, copied once a poll, and scratch arrays by name."""

import numpy as np
import pytest

import md
from md.backend import NO_FAULT
from md.particles.system import WORDS, StatusBlock
from md.simulation.fault_monitor import FaultMonitor

LAW, DT = md.scenes.BENCHMARK_LAW, md.scenes.BENCHMARK_DT


def simulated(backend, **options) -> md.Simulation:
    return md.Simulation(md.scenes.benchmark_gas(125, 0.2), LAW, dt=DT, backend=backend, **options)


@pytest.mark.quick
def test_the_parts_of_a_status_block_are_words_of_their_own(backend):
    place = md.backend.get(backend)
    block = StatusBlock(place)
    before = block.poll()()
    assert (before.fault, before.energy, int(before.fastest)) == (int(NO_FAULT), 0.0, 0)
    assert not before.guard.any()
    block.guard[...] = place.upload(np.array([1, 2, 3, 4, 8, 9, 10], np.uint64))
    block.fault[...] = place.upload(np.array([5], np.uint64))
    block.energy[...] = place.upload(np.array([6.5]))
    block.fastest[...] = place.upload(np.array([7], np.uint64))
    after = block.poll()()
    assert after.guard.tolist() == [1, 2, 3, 4, 8, 9, 10]
    assert (after.fault, after.energy, int(after.fastest)) == (5, 6.5, 7)
    assert before.fault == int(NO_FAULT)  # a copy


def test_a_poll_shows_the_block_as_it_was_at_that_moment(backend):
    place = md.backend.get(backend)
    block = StatusBlock(place)
    read = block.poll()
    place.fill(block.fault, 3)
    assert read().fault == int(NO_FAULT)
    assert block.poll()().fault == 3


@pytest.mark.quick
@pytest.mark.parametrize(
    "options",
    [
        {"search": "linked"},
        {"search": "verlet", "fused": True},
        {"search": "lbvh", "integrator": "adaptive_euler"},
    ],
    ids=lambda options: options["search"],
)
def test_a_poll_copies_the_status_block_once_and_nothing_else(options, backend, monkeypatch):
    run = simulated(backend, **options)
    run.run(2)
    copies, polls = [], []
    look, sample = run.backend.look, FaultMonitor.sample
    monkeypatch.setattr(run.backend, "look", lambda array: copies.append(len(array)) or look(array))
    monkeypatch.setattr(
        FaultMonitor, "sample", lambda self, *given, **how: polls.append(1) or sample(self, *given, **how)
    )
    for _ in range(3):
        run.run(20)
    assert len(polls) >= 3
    assert copies == [WORDS] * len(polls)
    run.time  # noqa: B018 - a poll that waits
    assert copies == [WORDS] * len(polls)


@pytest.mark.quick
def test_kernels_write_the_energy_and_the_fastest_particle(backend):
    run = simulated(backend)
    run.run(5)
    state = run.state  # a poll that waits sums the energy
    status = run.system.status.poll()()
    vel = run.backend.download(run.system.particles.vel)
    squares = np.square(vel).sum(axis=1)
    assert status.energy == pytest.approx(squares.sum() / 2, rel=1e-12)
    assert int(status.fastest) & 0xFFFFFFFF == state.id[squares.argmax()]
    speed2 = np.uint32(int(status.fastest) >> 32).view(np.float32)
    assert speed2 == np.float32(squares.max())
    assert status.fault == int(NO_FAULT)


@pytest.mark.quick
@pytest.mark.parametrize("fused", [False, True])
def test_kernels_write_the_fault(fused, backend):
    box = md.Box((5.0, 5.0, 5.0), (False, True, True))
    state = md.State([[4.8, 2, 2], [1.0, 2, 2]], [[10.0, 0, 0], [0.0, 0, 0]], box, id=[7, 3])
    run = md.Simulation(state, md.laws.SpringDashpot(0, 0), dt=0.01, backend=backend, fused=fused)
    with pytest.raises(md.ParticleEscaped) as caught:
        run.run(20)
    word = run.system.status.poll()().fault
    assert (word >> 33, word >> 32 & 1, word & 0xFFFFFFFF) == (caught.value.step, 1, 7)


def test_the_displacement_guard_is_in_the_status_block():
    run = simulated("cpu", search="verlet")
    run.run(3)
    assert np.shares_memory(run.search.policy.travelled, run.system.status.guard)
    run.system.status.guard[...] = 9
    run.search.reset()
    assert not run.system.status.guard.any()


@pytest.mark.gpu
def test_a_device_writes_its_guard(device):
    run = simulated(device, search="verlet", fused=True, precision="float32")
    run.run(30, phases=False)
    guard = run.system.status.poll()().guard
    assert (guard[:2] >> np.uint64(32)).any()  # counters of the two words for the largest speed


def test_scratch_arrays_are_shared_by_name_and_not_with_another_system(backend):
    run = simulated(backend, precision="float32")
    system = run.system
    one, other = system.scratch("force"), system.scratch("moved")
    assert system.scratch("force") is one
    assert other is not one
    assert (one.shape, one.dtype) == ((125, 3), np.float32)
    view = system.with_particles(system.particles)
    assert view.scratch("force") is not one
    assert (view.grid, view.status, view.timings) == (system.grid, system.status, system.timings)
    assert (system.n_owned, system.n_rows, len(run)) == (125, 125, 125)
    assert (system.precision, system.box) == (np.dtype("float32"), run.state.box)
