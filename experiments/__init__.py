"""One file per experiment: `python -m experiments` lists them."""

import sys
from types import TracebackType


def _end_quietly(kind: type[BaseException], error: BaseException, trace: TracebackType | None) -> None:
    """Handle an uncaught error as `sys.excepthook` does, except Ctrl-C: one line and status 130."""
    if issubclass(kind, KeyboardInterrupt):
        print("error: interrupted", file=sys.stderr)
        raise SystemExit(130)
    sys.__excepthook__(kind, error, trace)


if sys.argv[:1] == ["-m"]:  # python -m experiments.<name>: its imports take seconds before `main` starts
    sys.excepthook = _end_quietly
