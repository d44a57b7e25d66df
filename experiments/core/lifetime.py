"""Worker processes end with the process that began them, however that ends."""

import ctypes
import multiprocessing
import os
import signal
import sys
import threading
from multiprocessing.process import BaseProcess

_PR_SET_PDEATHSIG = 1  # linux/prctl.h


def end_with_parent() -> None:
    """Have this worker process killed as soon as the process that began it is over, also by SIGKILL.

    Called once by a process that `multiprocessing` began, before its work. On Linux the kernel kills it, in
    the midst of a compiled loop too; there "over" is the thread that began the worker, so begin workers from
    a thread that outlives them. Elsewhere a thread of the worker waits, and ends it between two calls of
    compiled code. The resource tracker of `multiprocessing` ends by itself once all of its processes have.

    Raises:
        RuntimeError: this process was not begun by `multiprocessing`.
    """
    parent = multiprocessing.parent_process()
    if parent is None:
        raise RuntimeError("no worker process; allowed: processes that multiprocessing began; call it there")
    if sys.platform == "linux" and _killed_by_the_kernel():
        if not parent.is_alive():  # over already, before the kernel was asked
            os._exit(1)
        return
    threading.Thread(target=_wait_for, args=(parent,), name="end_with_parent", daemon=True).start()


def _killed_by_the_kernel() -> bool:
    """Ask Linux for SIGKILL at the end of the parent; whether it will send it."""
    try:
        return ctypes.CDLL(None).prctl(_PR_SET_PDEATHSIG, signal.SIGKILL, 0, 0, 0) == 0
    except (OSError, AttributeError):  # another C library
        return False


def _wait_for(parent: BaseProcess) -> None:
    parent.join()
    os._exit(1)
