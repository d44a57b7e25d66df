"""Timings: of steps launched together, and of a device that starts after the host has launched steps."""

import pytest

import md
from md.backend import Timings


def test_times_of_steps_launched_together_are_read_once_they_are_done():
    timings = Timings()
    timings.add("reorder", 0, 3.0)
    for step in (0, 16, 32):
        timings.add_piece(step, 16, lambda step=step: 1.0 + step)
    timings.resolve(before=33)
    assert timings.known("reorder") == [(0, 3.0)]
    assert timings.known_pieces == [(0, 16, 1.0), (16, 16, 17.0)]
    timings.resolve()
    assert len(timings.known_pieces) == 3
    timings.clear()
    assert timings.known_pieces == []


@pytest.mark.gpu
def test_a_device_waits_while_the_host_launches_steps(monkeypatch):
    if md.backend.why_not() is not None:
        pytest.skip(md.backend.why_not())
    place = md.backend.get("cuda")
    with place.delay_device(0.2):
        with place.stopwatch() as elapsed:
            first = place.mark()
            assert not first.done
        assert first.done
    assert elapsed[0] < 200  # without the delay
    asleep = []
    monkeypatch.setattr("md.backend.cuda.time.sleep", asleep.append)
    with place.stopwatch():
        pass
    assert asleep == []


def test_the_cpu_does_not_wait(monkeypatch):
    monkeypatch.setattr("time.sleep", lambda seconds: pytest.fail(f"slept {seconds} s"))
    place = md.backend.get("cpu")
    with place.delay_device(60.0), place.stopwatch() as elapsed:
        pass
    assert len(elapsed) == 1
