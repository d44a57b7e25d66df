"""The way of taking steps: which one is chosen, and when it is chosen again."""

import pytest
from tqdm import tqdm

import md
from md.backend import Cpu
from md.simulation.stepping import FusedSteps, ManyFusedSteps, SeparateSteps, StepsAhead

LAW, DT = md.scenes.BENCHMARK_LAW, md.scenes.BENCHMARK_DT
EVERY, DECAYED = (md.Reorder("hilbert", schedule) for schedule in (md.Every(30), md.Decayed(0.5)))


class Ahead(Cpu):
    """CPU in the role of a device."""

    runs_ahead = True


def simulated(backend: Cpu, fused: bool, reorder: md.Reorder | None) -> md.Simulation:
    state = md.scenes.benchmark_gas(60, 0.3)
    return md.Simulation(state, LAW, "linked", dt=DT, reorder=reorder, backend=backend, fused=fused)


@pytest.mark.parametrize(
    ("place", "fused", "reorder", "way"),
    [
        (Cpu, False, None, SeparateSteps),
        (Cpu, False, DECAYED, SeparateSteps),
        (Cpu, True, None, ManyFusedSteps),
        (Cpu, True, EVERY, FusedSteps),
        (Ahead, False, None, StepsAhead),
        (Ahead, False, EVERY, StepsAhead),
        (Ahead, False, DECAYED, SeparateSteps),
        (Ahead, True, None, StepsAhead),
        (Ahead, True, DECAYED, StepsAhead),
    ],
)
def test_the_way_is_that_of_backend_fusion_and_trigger(place, fused, reorder, way):
    loop = simulated(place(), fused, reorder)._loop
    assert type(loop._chosen) is way
    assert type(loop._one_by_one) is (FusedSteps if fused else SeparateSteps)


def test_steps_that_allocate_are_not_captured(monkeypatch):
    monkeypatch.setattr(md.search.Linked, "capabilities", md.search.Capabilities(fusable=True))
    assert type(simulated(Ahead(), False, None)._loop._chosen) is SeparateSteps


def test_a_run_chooses_again_by_the_times_that_its_trigger_needs(monkeypatch):
    simulation = simulated(Ahead(), False, EVERY)
    monkeypatch.setattr(
        type(simulation.reordering.trigger), "capabilities", md.reorder.Capabilities(needs_times=True)
    )
    simulation._loop.run_to(0, False, tqdm(disable=True))
    assert type(simulation._loop._chosen) is SeparateSteps


def test_the_first_step_and_steps_with_phases_are_taken_one_by_one(monkeypatch):
    simulation, taken = simulated(Cpu(), True, None), []
    loop = simulation._loop
    for way in (loop._one_by_one, loop._chosen):
        take = way.take
        monkeypatch.setattr(way, "take", lambda *given, way=way, take=take: taken.append(way) or take(*given))
    for phases in (False, False, True):
        loop.advance(phases, 1)
    assert taken == [loop._one_by_one, loop._chosen, loop._one_by_one]
