"""Locks that are held across a fork, so that a child never waits for a thread that it does not have.

Contract. `starting` is held while Numba is imported, while its threads start, and while a dispatcher is made.
A lock that a thread takes before `starting` is registered after it.
"""

import os
from contextlib import AbstractContextManager, ExitStack
from threading import RLock

starting = RLock()
_locks: list[AbstractContextManager] = [starting]
_held: list[ExitStack] = []


def hold_across_forks(lock: AbstractContextManager) -> None:
    """Register a lock, which a fork takes before those registered earlier, and releases in both processes.

    Args:
        lock: a lock that a thread which holds it may take again.
    """
    _locks.append(lock)


def _acquire() -> None:
    """Take all locks; again from the start if one was registered meanwhile."""
    locks: list[AbstractContextManager] = []
    while locks != _locks:
        locks = list(_locks)
        with ExitStack() as taken:
            for lock in reversed(locks):
                taken.enter_context(lock)
            if locks == _locks:
                _held.append(taken.pop_all())


def _release() -> None:
    if _held:  # Ctrl-C may have ended the wait for a lock
        _held.pop().close()


if hasattr(os, "register_at_fork"):  # not on Windows
    os.register_at_fork(before=_acquire, after_in_parent=_release, after_in_child=_release)
