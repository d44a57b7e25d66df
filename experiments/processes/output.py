"""Let no standard output end a program with a traceback: neither its reader nor its letters."""

import codecs
import contextlib
import io
import os
import re
import select
import signal
import sys
from collections.abc import Iterator

READABLE = "readable"  # handler of errors of streams
_UNDECODED = re.compile("[\udc80-\udcff]+")  # bytes of a path, as Python has them


@contextlib.contextmanager
def until_output_closes() -> Iterator[None]:
    """End the program if the reader of its standard output has closed it; raise the block's other errors.

    A letter that the output has not, such as one of a path on a terminal in ASCII, is written as an escape,
    to standard error too.

    Raises:
        SystemExit: 141, the status of a program that SIGPIPE ends.
    """
    for stream in (sys.stdout, sys.stderr):
        if isinstance(stream, io.TextIOWrapper):
            stream.reconfigure(errors=READABLE)
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
    text = _UNDECODED.sub(_decoded, text)
    return text.encode("utf-8", "backslashreplace").decode("utf-8")


def _decoded(found: re.Match) -> str:
    return found[0].encode("utf-8", "surrogateescape").decode("utf-8", "backslashreplace")


def _escaped(error: UnicodeError) -> tuple[str, int]:
    """Return the letters that a stream has not as escapes, and where they end."""
    if not isinstance(error, UnicodeEncodeError):
        raise error
    letters = readable(error.object[error.start : error.end])
    return letters.encode("ascii", "backslashreplace").decode("ascii"), error.end


codecs.register_error(READABLE, _escaped)


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
