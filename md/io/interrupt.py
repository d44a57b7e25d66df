"""Deferred interrupts: Ctrl-C takes effect between steps, never within one."""

from __future__ import annotations

import math
import signal
import threading
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from typing import Any


@contextmanager
def defer_sigint(presses: float = math.inf) -> Iterator[Sequence]:
    """Defer interrupts from the keyboard until the block is done.

    Only Python's main thread gets interrupts; in any other thread this does nothing.

    Args:
        presses: number of interrupts that are deferred; one more interrupts the block.

    Yields:
        A sequence that is not empty from the first interrupt on, so that the block may end early.
    """
    before = signal.getsignal(signal.SIGINT)
    if before is None or threading.current_thread() is not threading.main_thread():
        yield ()
        return
    pressed: list[tuple[Any, ...]] = []

    def press(*arguments: Any) -> None:
        pressed.append(arguments)
        if len(pressed) > presses and callable(before):
            pressed.clear()
            before(*arguments)

    signal.signal(signal.SIGINT, press)
    try:
        yield pressed
    finally:
        signal.signal(signal.SIGINT, before)
        if pressed and callable(before):  # after an exception of the block too, which is then its context
            before(*pressed[0])
