"""Launches that are made again: their arguments and their order, on a driver that keeps what it gets."""

import ctypes
from functools import partial
from threading import Thread
from types import SimpleNamespace

import numpy as np
import pytest

from md.backend.kernels.launches import KernelLaunches

RECORD = np.dtype([("start", np.uint64), ("width", np.float32)], align=True)


@pytest.fixture
def made():
    """The launches that were made: function, blocks, threads, shared memory, stream, arguments."""
    return []


@pytest.fixture
def launches(made):
    """Launches of kernels with an int32, a record and a float32."""
    current = SimpleNamespace(ptr=11)

    def launch(function, *numbers, resident=False):
        blocks, _, _, threads, _, _, shared, stream, addresses, *rest = numbers
        assert rest == ([] if resident else [0])
        number, record, width = (ctypes.c_void_p * 3).from_address(addresses)
        given = (
            ctypes.c_int32.from_address(number).value,
            np.frombuffer(ctypes.string_at(record, RECORD.itemsize), RECORD)[0].item(),
            ctypes.c_float.from_address(width).value,
        )
        made.append((function, blocks, threads, shared, stream, given, *(["resident"] if resident else [])))

    driver = SimpleNamespace(launchKernel=launch, launchCooperativeKernel=partial(launch, resident=True))
    cupy = SimpleNamespace(cuda=SimpleNamespace(driver=driver, get_current_stream=lambda: current))
    launches = KernelLaunches(cupy)
    launches.stream = current
    return launches


def values(number: int) -> tuple:
    return np.int32(number), np.array([(2**40 + number, 0.5)], RECORD), np.float32(number / 4)


def test_the_driver_gets_the_arguments_of_a_launch(launches, made):
    kernel = SimpleNamespace(kernel=SimpleNamespace(ptr=77))
    launches.start(kernel, 5, 64, values(3), 48, False)
    assert made == [(77, 5, 64, 48, 11, (3, (2**40 + 3, 0.5), 0.75))]


def test_launches_are_made_again_in_order_on_the_stream_of_the_time(launches, made):
    first, second = (SimpleNamespace(kernel=SimpleNamespace(ptr=ptr)) for ptr in (1, 2))
    calls = []

    def work():
        calls.append(None)
        launches.start(first, 5, 64, values(3), 0, False)
        launches.make(partial(made.append, "filled"))
        launches.start(second, 6, 32, values(4), 0, False)
        launches.stream.ptr = 12

    again = launches.note(work)
    again()
    again()
    assert len(calls) == 1
    once = [
        (1, 5, 64, 0, 11, (3, (2**40 + 3, 0.5), 0.75)),
        "filled",
        (2, 6, 32, 0, 11, (4, (2**40 + 4, 0.5), 1.0)),
    ]
    again = [one if one == "filled" else (*one[:4], 12, one[5]) for one in once]
    assert made == once + again + again


def test_launches_after_work_that_fails_are_not_noted(launches, made):
    def work():
        launches.make(partial(made.append, "before"))
        raise ValueError("no room")

    with pytest.raises(ValueError, match="no room"):
        launches.note(work)
    launches.make(partial(made.append, "after"))
    launches.note(partial(launches.make, partial(made.append, "noted")))()
    assert made == ["before", "after", "noted", "noted"]


def test_launches_that_are_made_again_are_noted_by_the_work_around(launches, made):
    def inner():
        launches.make(partial(made.append, "inner"))

    def outer():
        launches.make(partial(made.append, "first"))
        again = launches.note(inner)
        again()
        launches.make(partial(made.append, "last"))

    launches.note(outer)()
    assert made == 2 * ["first", "inner", "inner", "last"]


def test_each_thread_notes_its_own_launches(launches, made):
    def work():
        other = Thread(target=launches.make, args=(partial(made.append, "other"),))
        other.start()
        other.join()
        launches.make(partial(made.append, "own"))

    launches.note(work)()
    assert made == ["other", "own", "own"]


def test_a_resident_kernel_is_launched_and_repeated_as_a_whole(launches, made):
    kernel = SimpleNamespace(kernel=SimpleNamespace(ptr=77))
    launches.note(lambda: launches.start(kernel, 132, 256, values(1), 60_000, True))()
    assert made == 2 * [(77, 132, 256, 60_000, 11, (1, (2**40 + 1, 0.5), 0.25), "resident")]
