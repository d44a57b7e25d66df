"""Times of a backend: of pieces, and of a device whose host is ahead of it."""

import pytest

import md
from md.backend import Timings


def test_times_of_pieces_are_taken_when_the_device_has_done_them():
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
def test_a_device_waits_while_the_host_gives_it_steps(monkeypatch):
    if md.backend.why_not() is not None:
        pytest.skip(md.backend.why_not())
    place = md.backend.get("cuda")
    with place.host_ahead(0.2):
        with place.stopwatch() as held:
            first = place.mark()
            assert not first.done
        assert first.done
    assert held[0] < 200  # what it waited does not count
    asleep = []
    monkeypatch.setattr("md.backend.cuda.time.sleep", asleep.append)
    with place.stopwatch():
        pass
    assert asleep == []


def test_where_the_host_computes_nothing_waits(monkeypatch):
    monkeypatch.setattr("time.sleep", lambda seconds: pytest.fail(f"slept {seconds} s"))
    place = md.backend.get("cpu")
    with place.host_ahead(60.0), place.stopwatch() as elapsed:
        pass
    assert len(elapsed) == 1
