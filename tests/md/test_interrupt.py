"""Ctrl-C in the middle of a run: no step is half done, and the run can go on."""

import os
import signal
import threading

import numpy as np
import pytest

import md
from md.interrupt import held_back

LAW, DT = md.scenes.SHARED_LAW, md.scenes.SHARED_DT


def press() -> None:
    os.kill(os.getpid(), signal.SIGINT)


def test_an_interrupt_comes_when_the_block_is_done():
    done = []

    def work() -> None:
        with held_back():
            press()
            done.append(1)

    with pytest.raises(KeyboardInterrupt):
        work()
    assert done == [1]
    assert signal.getsignal(signal.SIGINT) is signal.default_int_handler


def test_a_block_that_fails_says_why_and_gives_the_handler_back():
    with pytest.raises(ZeroDivisionError), held_back():
        1 / 0  # noqa: B018
    assert signal.getsignal(signal.SIGINT) is signal.default_int_handler


def test_another_thread_is_left_alone():
    seen = []

    def work() -> None:
        with held_back():
            seen.append(signal.getsignal(signal.SIGINT))

    thread = threading.Thread(target=work)
    thread.start()
    thread.join()
    assert seen == [signal.default_int_handler]


@pytest.mark.parametrize("search", ["linked", "verlet"])
@pytest.mark.parametrize("fused", [False, True])
@pytest.mark.parametrize("phases", [False, True])
def test_an_interrupted_run_goes_on_as_if_nothing_had_been(search, fused, phases, backend, monkeypatch):
    runs = [
        md.Simulation(md.scenes.shared_gas(500, 0.3), LAW, search=search, dt=DT, backend=backend, fused=fused)
        for _ in range(2)
    ]
    runs[0].run(120, phases=phases)
    force, calls = type(runs[1].search).force, []

    def pressed(self, law, out) -> None:
        force(self, law, out)
        calls.append(1)
        if len(calls) == 7:
            press()

    monkeypatch.setattr(type(runs[1].search), "force", pressed)
    with pytest.raises(KeyboardInterrupt):
        runs[1].run(120, phases=phases)
    assert 0 < runs[1].step < 120
    runs[1].run(120 - runs[1].step, phases=phases)
    ends = [run.state.by_id() for run in runs]
    np.testing.assert_allclose(ends[0].pos, ends[1].pos, atol=1e-9)
    assert runs[1].step == 120
