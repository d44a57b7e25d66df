"""Calls of reading libraries: their errors, exits, warnings and prints become one class of error."""

from __future__ import annotations

import contextlib
import importlib
import io
import os
import warnings
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

from experiments.files.data import FileError

INSTALL = "pip install 'spatial-locality[files]'"


@contextlib.contextmanager
def library(path: Path, name: str) -> Iterator[None]:
    """Convert whatever a library raises about a file to one error; its prints and warnings are dropped.

    Args:
        path: of the file.
        name: of the format, with its article: "a GSD file".

    Raises:
        FileError: the library raised an error, or called `sys.exit`.
    """
    printed = io.StringIO()
    try:
        with (
            warnings.catch_warnings(),
            contextlib.redirect_stdout(printed),
            contextlib.redirect_stderr(printed),
        ):
            warnings.simplefilter("ignore")
            yield
    except FileError:
        raise
    except OSError as error:
        reason = os.strerror(error.errno) if error.errno else _reason(error)
        raise FileError(f"{path} cannot be read as {name} ({reason}); give a whole one") from error
    except (Exception, SystemExit) as error:
        if isinstance(error, ValueError) and str(error).startswith(str(path)):  # of our own readers
            raise FileError(str(error)) from error
        shown = _reason(error)
        if isinstance(error, SystemExit):
            shown = " ".join(printed.getvalue().split())[-160:] or shown
        raise FileError(f"{path} cannot be read as {name} ({shown}); give a whole one") from error


def _reason(error: BaseException) -> str:
    """Return the text of an error in one line; advice to unpickle is left out."""
    text = " ".join(str(error).split())
    if not text or "pickle" in text:
        return type(error).__name__
    return text if len(text) <= 160 else text[:157] + "..."


def module(path: Path, name: str) -> Any:
    """Import a library that only some formats need.

    Raises:
        FileError: it is not installed; names the line that installs it.
    """
    try:
        return importlib.import_module(name)
    except ImportError as error:
        raise FileError(f"{path}: {path.suffix} needs {name}, which is absent; {INSTALL}") from error


def write_whole(target: Path, write: Callable[[Path], None]) -> Path:
    """Write a file under a partial name in the same folder, and move it to its place.

    Args:
        target: path of the file.
        write: function that writes to a path of the same ending.

    Returns:
        The path.

    Raises:
        FileError: it cannot be written; a file that was there is as it was.
    """
    partial = target.with_name(f".{target.stem}.{os.getpid()}{target.suffix}")
    try:
        write(partial)
        os.replace(partial, target)
    except OSError as error:
        reason = os.strerror(error.errno) if error.errno else _reason(error)
        raise FileError(f"{target} cannot be written: {reason}; give another path") from error
    finally:
        partial.unlink(missing_ok=True)
    return target
