"""An experiment that times, for the tests of the core: what its rounds give is known."""

import multiprocessing
import os
import time
from dataclasses import dataclass
from multiprocessing.connection import Connection
from pathlib import Path
from typing import ClassVar

import md
from experiments.core import TimedSettings, main
from experiments.core.settings import UsageError
from tests.experiments.toy import without_style

ERRORS = {
    13: ValueError("size 13 breaks"),
    14: md.NonFiniteState(7, 3),
    15: UsageError("--size 15; allowed: less"),
    16: KeyError("size 16"),
}


@dataclass(frozen=True)
class Config(TimedSettings):
    """A toy sweep; the toys of all colours are sampled in the same rounds."""

    TOGETHER: ClassVar[tuple[str, ...]] = ("colour",)

    size: tuple[int, ...] = (1, 2)
    """Size of the toy."""
    colour: tuple[str, ...] = ("red", "blue")
    """Colour of the toy."""
    log: str = ""
    """File with a line for every measured round."""
    hold: int = 0
    """After so many lines of `log`, and again after as many, a round waits to be killed; 0: none does."""
    apart: float = 1.0
    """Phases over whole steps."""


def measure(case, begin=0):
    """A row a colour in each round, then one that is no sample; `ERRORS` come in round 1; 99 kills."""
    for number in range(begin, case.rounds):
        if number == 1 and case.size in ERRORS:
            raise ERRORS[case.size]
        if number == 1 and case.size == 99:
            os.kill(os.getpid(), 9)
        if case.log:
            with open(case.log, "a") as file:
                file.write(f"{case.size} {case.seed} {number} {os.getpid()}\n")
            if case.hold and len(Path(case.log).read_text().splitlines()) % case.hold == 0:
                time.sleep(60)
        yield [
            {
                "colour": colour,
                "round": number,
                "time_ms": case.size + number / 8 + len(colour) / 64 + case.seed,
                "sample_ms": 0.1,
                "phases_over_step": case.apart,
            }
            for colour in case.colour
        ]
    yield {"colour": "all", "time_ms": None}


def draw(table, out: Path) -> None:
    """How many rows there are."""
    (out / "toy.png").write_text(str(len(table)))


def run(arguments: list[str], message: Connection) -> None:
    """In a process of its own, which may begin others."""
    multiprocessing.current_process()._config["daemon"] = False
    without_style()
    with open(os.devnull, "w") as nowhere:
        os.dup2(nowhere.fileno(), 1)
        main(Config, measure, draw, {"size": (1,), "runs": 1}, arguments)
