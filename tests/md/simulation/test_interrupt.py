"""Ctrl-C in the middle of a run: no step is half done, and the run can go on."""

import itertools
import os
import signal
import sys

import numpy as np
import pytest

import md
from md.io.interrupt import defer_sigint

LAW, DT = md.scenes.BENCHMARK_LAW, md.scenes.BENCHMARK_DT


def press() -> None:
    os.kill(os.getpid(), signal.SIGINT)


def press_in_the_fourth_call(loop, monkeypatch, fault: Exception | None = None) -> None:
    """Press Ctrl-C in the fourth call that takes steps of a loop, which may end with a fault."""
    calls, advance = [], loop.advance

    def pressed(*arguments) -> None:
        calls.append(1)
        if len(calls) == 4:
            press()
            if fault is not None:
                raise fault
        advance(*arguments)

    monkeypatch.setattr(loop, "advance", pressed)


@pytest.mark.parametrize("search", ["linked", "verlet"])
@pytest.mark.parametrize("fused", [False, True])
@pytest.mark.parametrize("phases", [False, True])
def test_an_interrupted_run_goes_on_as_if_nothing_had_been(search, fused, phases, backend, monkeypatch):
    runs = [
        md.Simulation(
            md.scenes.benchmark_gas(500, 0.3), LAW, search=search, dt=DT, backend=backend, fused=fused
        )
        for _ in range(2)
    ]
    runs[0].run(120, phases=phases)
    press_in_the_fourth_call(runs[1]._loop, monkeypatch)
    with pytest.raises(KeyboardInterrupt):
        runs[1].run(120, phases=phases)
    assert 0 < runs[1].step < 120
    runs[1].run(120 - runs[1].step, phases=phases)
    ends = [run.state.by_id() for run in runs]
    np.testing.assert_allclose(ends[0].pos, ends[1].pos, atol=1e-9)
    assert runs[1].step == 120


def test_a_run_goes_on_where_a_press_is_only_noted(backend, monkeypatch):
    simulation = md.Simulation(md.scenes.benchmark_gas(60, 0.3), LAW, search="linked", dt=DT, backend=backend)
    loop, noted = simulation._loop, []
    press_in_the_fourth_call(loop, monkeypatch)
    before = signal.signal(signal.SIGINT, lambda *_: noted.append(loop.step))
    try:
        simulation.run(120)
    finally:
        signal.signal(signal.SIGINT, before)
    (at,) = noted
    assert 0 < at < 120
    assert simulation.step == 120


def test_a_press_is_not_lost_if_the_steps_end_with_a_fault(backend, monkeypatch):
    simulation = md.Simulation(md.scenes.benchmark_gas(60, 0.3), LAW, search="linked", dt=DT, backend=backend)
    fault = md.SimulationFault("too fast", step=3, particle=0)
    press_in_the_fourth_call(simulation._loop, monkeypatch, fault)
    with pytest.raises(KeyboardInterrupt) as interrupt:
        simulation.run(120)
    assert interrupt.value.__context__ is fault


def test_a_second_press_does_not_wait_where_one_is_held_back():
    done = []

    def work() -> None:
        with defer_sigint(presses=1):
            press()
            done.append(1)
            press()
            done.append(2)

    with pytest.raises(KeyboardInterrupt):
        work()
    assert done == [1]
    assert signal.getsignal(signal.SIGINT) is signal.default_int_handler


class Frames:
    """A reporter with a list of the steps it was called at, longer before it has written than after."""

    def __init__(self, interval: int):
        self.interval, self.steps = interval, []

    def report(self, simulation) -> None:
        simulation.pairs()
        self.steps.append(simulation.step)
        len(self.steps)


@pytest.mark.parametrize("phases", [False, True])
def test_no_report_is_lost_or_made_twice_wherever_a_run_is_interrupted(phases):
    """Ctrl-C at the k-th line of Python that a run comes to, for many k."""
    presses, k, interrupted = 0, 0, True
    while interrupted:
        k += 61
        run = md.Simulation(md.scenes.benchmark_gas(8, 0.1), LAW, dt=DT, backend="cpu")
        reporters = [Frames(2), Frames(3), Frames(2)]

        lines = itertools.count(-k)

        def traced(frame, event, argument, lines=lines):
            if "/md/" not in frame.f_code.co_filename:
                return None
            if event == "line" and next(lines) == 0:
                press()
            return traced

        sys.settrace(traced)
        try:
            run.run(6, phases=phases, reporters=reporters)
            interrupted = next(lines) > 0  # by a press that came when the run was done
        except KeyboardInterrupt:
            presses += 1
        finally:
            sys.settrace(None)
        run.run(6 - run.step, phases=phases, reporters=reporters)
        run.run(6, phases=phases, reporters=reporters)
        assert [r.steps for r in reporters] == [list(range(0, 13, r.interval)) for r in reporters], k
    assert presses > 20
