"""The base of the Config of every experiment that times."""

from dataclasses import dataclass
from typing import ClassVar

import tyro

from experiments.core.settings import Settings


@dataclass(frozen=True)
class TimedSettings(Settings):
    """Base of the Config of every experiment that times.

    Cases that are compared are one case of the sweep (`TOGETHER`), for they are sampled in turns.
    """

    CHANCE: ClassVar[str] = "run"

    seed: int = 0
    """Seed of everything random, 0 or above, as large as you like; of the second run it is one more, and so
    on."""
    repeats: tyro.conf.Suppress[int] = 1
    runs: int = 3
    """Runs, each a new process with a gas of its own. Take five for a headline; with one there is no interval
    and no verdict."""
    rounds: int = 5
    """Rounds of a run: in each, every case that is compared is sampled once, in random order."""

    def __post_init__(self):
        super().__post_init__()
        self.check_least({"runs": 1, "rounds": 1})
