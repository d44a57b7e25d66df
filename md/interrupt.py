"""Ctrl-C between steps, never within one."""

from __future__ import annotations

import signal
import threading
from contextlib import contextmanager


@contextmanager
def held_back():
    """Holds an interrupt from the keyboard back until the block is done.

    Only Python's main thread gets interrupts; in any other this does nothing.
    """
    before = signal.getsignal(signal.SIGINT)
    if before is None or threading.current_thread() is not threading.main_thread():
        yield
        return
    pressed = []
    signal.signal(signal.SIGINT, lambda *arguments: pressed.append(arguments))
    try:
        yield
    finally:
        signal.signal(signal.SIGINT, before)
    if pressed and callable(before):
        before(*pressed[0])
