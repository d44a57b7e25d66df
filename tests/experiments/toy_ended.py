"""An experiment that times, in the midst of a program and a temporary folder, for tests that end it."""

import subprocess
import time
from dataclasses import dataclass
from pathlib import Path

from tqdm import tqdm

from experiments.core import TimedSettings, main
from experiments.processes.lifetime import run_program, temporary_folder

SLEEP = ["sleep", "61"]


@dataclass(frozen=True)
class Config(TimedSettings):
    """A toy that waits."""

    folder: str = "."
    """Where its temporary folder is made."""
    plainly: bool = False
    """Start the program by `subprocess` alone."""


def measure(case, begin=0):
    """Waits for a program."""
    with temporary_folder("peer-", Path(case.folder)), tqdm(total=1, disable=True):
        (subprocess.run if case.plainly else run_program)(SLEEP)
    yield [{"round": begin, "time_ms": time.perf_counter(), "sample_ms": 0.1}]


def draw(table, out: Path) -> None:
    """Draws nothing."""


if __name__ == "__main__":
    main(Config, measure, draw, {})
