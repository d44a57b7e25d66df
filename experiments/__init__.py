"""One file per experiment: `python -m experiments` lists them."""

import importlib.util
import sys
from pathlib import Path
from types import TracebackType


def _end_quietly(kind: type[BaseException], error: BaseException, trace: TracebackType | None) -> None:
    """Handle an uncaught error as `sys.excepthook` does, except Ctrl-C: one line and status 130."""
    if issubclass(kind, KeyboardInterrupt):
        print("error: interrupted", file=sys.stderr)
        raise SystemExit(130)
    sys.__excepthook__(kind, error, trace)


_AS_PROGRAM = sys.argv[:1] == ["-m"]  # python -m experiments.<name>
if _AS_PROGRAM:  # its imports take seconds before `main` starts
    sys.excepthook = _end_quietly
if importlib.util.find_spec("fcntl") is None:
    _REFUSED = (
        f"experiments do not run on {sys.platform}: they need locks, signals and process groups of POSIX; "
        "allowed: Linux and macOS; on Windows take WSL"
    )
    if _AS_PROGRAM:
        print(f"error: {_REFUSED}", file=sys.stderr)
        raise SystemExit(2)
    raise ImportError(_REFUSED)

__path__.append(str(Path(__file__).parent / "former"))  # python -m experiments.<old name>
