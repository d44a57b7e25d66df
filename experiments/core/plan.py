"""First line of a run: what is measured, and about how long that takes.

Contract. An experiment gives `main` the minutes that its defaults take, measured or extrapolated on the
machine of `BASIS`. One that can say more of any settings gives sentences of its own, by `plan`. Of one
without either it is said that its length is not known.
"""

import textwrap
from collections.abc import Callable, Sequence
from typing import Any

from experiments.core.settings import Settings, cases
from experiments.core.terminal import COLUMNS, duration

BASIS = "two cores of an AMD EPYC with 32 MB of last cache"
Plan = Callable[[Any], str]


def plan_lines(config: Settings, minutes: float | None, plan: Plan | None = None) -> Sequence[str]:
    """Say what is measured and about how long that takes, in lines of the terminal's width.

    Args:
        config: settings of the run.
        minutes: that the defaults of the scene take on the machine of `BASIS`; None if it is not known.
        plan: sentences about any settings; None for the number of cases and the time of the defaults.
    """
    if plan is not None:
        return textwrap.wrap(plan(config), COLUMNS, break_on_hyphens=False)
    count = _counted(len(cases(config)))
    if minutes is None:
        return [f"{count}; how long they take was not measured; the progress shows the time left"]
    try:
        common: dict[str, Any] = {"backend": config.backend, "seed": config.seed}
        default = type(config)(**{**config.of_scene.defaults, **common})
    except ValueError:  # this machine has not the memory for the defaults
        return [f"{count}; how long they take is known for the defaults only"]
    takes = f"{duration(60 * minutes)} on {BASIS}"
    if config == default:
        return textwrap.wrap(f"{count}: {takes}", COLUMNS)
    return textwrap.wrap(f"{count}; the defaults are {_counted(len(cases(default)))}: {takes}", COLUMNS)


def _counted(number: int) -> str:
    return f"{number:,} case{'s' if number > 1 else ''}"
