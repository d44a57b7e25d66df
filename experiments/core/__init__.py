"""Settings, command line, sweep, executors, record and provenance of every experiment.

An experiment is a Config (a frozen dataclass that extends `Settings`), a function `measure(case)` that yields
the rows of one case, `VIEWS` (charts, summaries, tables, and functions of a table and a folder; or one such
function), a function `answer(table)` that says in words what it shows, and
`main(Config, measure, VIEWS, quick=..., answer=..., quick_limit=..., minutes=...)`.
"""

from typing import Any

from experiments.core.cli import main
from experiments.core.settings import Axis, Settings, values
from experiments.core.timed import TimedSettings
from experiments.drawing import figures, style
from experiments.results.tables import save_table

__all__ = [
    "Axis",
    "Settings",
    "TimedSettings",
    "figures",
    "main",
    "save_table",
    "statistics",
    "style",
    "values",
]


def __getattr__(name: str) -> Any:
    """Return `experiments.results.gains` under the name `statistics`, which files of users import."""
    if name != "statistics":
        raise AttributeError(f"module {__name__!r} has no attribute {name!r}")
    from experiments.results import gains

    return gains
