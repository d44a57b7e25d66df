"""Ctrl-C between steps, never within one."""

from __future__ import annotations

import math
import signal
import threading
from collections.abc import Iterator, Sequence
from contextlib import contextmanager


@contextmanager
def defer_sigint(presses: float = math.inf) -> Iterator[Sequence]:
    """Holds an interrupt from the keyboard back until the block is done.

    Only Python's main thread gets interrupts; in any other this does nothing.

    Args:
        presses: so many are held back; one more interrupts the block.

    Yields:
        What is not empty from the first press on, so that the block may end early.
    """
    before = signal.getsignal(signal.SIGINT)
    if before is None or threading.current_thread() is not threading.main_thread():
        yield ()
        return
    pressed = []

    def press(*arguments) -> None:
        pressed.append(arguments)
        if len(pressed) > presses and callable(before):
            pressed.clear()
            before(*arguments)

    signal.signal(signal.SIGINT, press)
    try:
        yield pressed
    finally:
        signal.signal(signal.SIGINT, before)
    if pressed and callable(before):
        before(*pressed[0])
