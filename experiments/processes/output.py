"""Let no standard output end a program with a traceback: neither its reader nor its letters."""

import contextlib
import io
import os
import select
import signal
import sys
from collections.abc import Iterator


@contextlib.contextmanager
def until_output_closes() -> Iterator[None]:
    """End the program if the reader of its standard output has closed it; raise the block's other errors.

    A letter that the output has not, such as one of a path on a terminal in ASCII, is written as an escape.

    Raises:
        SystemExit: 141, the status of a program that SIGPIPE ends.
    """
    if isinstance(sys.stdout, io.TextIOWrapper):
        sys.stdout.reconfigure(errors="backslashreplace")  # as Python does for standard error
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


def readable(text: str) -> str:
    """Return a word of a command line, or a path, as text that any file can hold.

    In the locale C Python does not decode letters that are not in ASCII (PEP 383); they are read as UTF-8.
    Bytes that are not UTF-8 become escapes.

    Args:
        text: as Python gives it.
    """
    return text.encode("utf-8", "surrogateescape").decode("utf-8", "backslashreplace")


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
