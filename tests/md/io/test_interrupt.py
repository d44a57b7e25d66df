"""Interrupts from the keyboard that wait for the end of a block."""

import os
import signal
import threading

import pytest

from md.io.interrupt import defer_sigint


def press() -> None:
    os.kill(os.getpid(), signal.SIGINT)


def test_an_interrupt_comes_when_the_block_is_done():
    done = []

    def work() -> None:
        with defer_sigint():
            press()
            done.append(1)

    with pytest.raises(KeyboardInterrupt):
        work()
    assert done == [1]
    assert signal.getsignal(signal.SIGINT) is signal.default_int_handler


def test_a_block_that_fails_says_why_and_gives_the_handler_back():
    with pytest.raises(ZeroDivisionError), defer_sigint():
        1 / 0  # noqa: B018
    assert signal.getsignal(signal.SIGINT) is signal.default_int_handler


def test_another_thread_is_left_alone():
    seen = []

    def work() -> None:
        with defer_sigint():
            seen.append(signal.getsignal(signal.SIGINT))

    thread = threading.Thread(target=work)
    thread.start()
    thread.join()
    assert seen == [signal.default_int_handler]
