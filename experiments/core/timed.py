"""Base class of the Config of every experiment that measures times."""

from dataclasses import dataclass
from typing import ClassVar

import tyro

from experiments.core.settings import Settings


@dataclass(frozen=True)
class TimedSettings(Settings):
    """Base of the Config of every experiment that measures times.

    Cases that are compared form one case of the sweep (`TOGETHER`), because they are sampled in the same
    rounds.
    """

    CHANCE: ClassVar[str] = "run"

    seed: int = 0
    """Seed of all random numbers, 0 or above, of any size. Each further run uses the next seed."""
    repeats: tyro.conf.Suppress[int] = 1
    runs: int = 3
    """Number of runs, each in a new process with particles of its own. Take five for a result to publish. One
    run gives no interval and no verdict."""
    rounds: int = 5
    """Number of rounds of a run. In each, every compared case is sampled once, in random order."""

    def __post_init__(self):
        super().__post_init__()
        self.check_least({"runs": 1, "rounds": 1})
