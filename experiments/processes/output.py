"""End a program without a traceback when the reader of its standard output ends first, as `head` does."""

import contextlib
import os
import select
import signal
import sys
from collections.abc import Iterator


@contextlib.contextmanager
def until_output_closes() -> Iterator[None]:
    """End the program if the reader of its standard output has closed it; raise the block's other errors.

    Raises:
        SystemExit: 141, the status of a program that SIGPIPE ends.
    """
    try:
        try:
            yield
        except SystemExit:
            _flush()
            raise
        _flush()
    except BrokenPipeError:
        if not _is_closed():
            raise  # another pipe broke
        os.dup2(os.open(os.devnull, os.O_WRONLY), sys.stdout.fileno())  # for the flush as Python exits
        sys.exit(128 + signal.SIGPIPE)


def _flush() -> None:
    if sys.stdout is not None:  # None: the program was started without one
        sys.stdout.flush()


def _is_closed() -> bool:
    """Return whether the reader of standard output has closed it."""
    if sys.stdout is None:
        return False
    pipe = select.poll()
    pipe.register(sys.stdout.fileno(), 0)
    return any(event & (select.POLLERR | select.POLLHUP) for _, event in pipe.poll(0))
