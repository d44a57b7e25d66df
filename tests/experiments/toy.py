"""An experiment for the tests of the core, with known rows and a settable duration."""

import io
import os
import signal
import time
from contextlib import redirect_stderr, redirect_stdout
from dataclasses import dataclass
from multiprocessing import parent_process
from multiprocessing.connection import Connection
from pathlib import Path

import md
from experiments.core import Settings, main
from experiments.drawing import style


@dataclass(frozen=True)
class Config(Settings):
    """A toy sweep."""

    size: tuple[int, ...] = (1, 2, 3, 4, 5, 6)
    """Size of the toy."""
    colour: tuple[str, ...] = ("red", "blue")
    """Colour of the toy."""
    seconds: float = 0.0
    """That a case takes."""
    log: str = ""
    """File with a line for every measured case."""


def measure(case):
    """Two rows, but none of size 3; size 13 breaks, 14 is a fault of a simulation, and 99 kills."""
    if case.log:
        with open(case.log, "a") as file:
            file.write(f"{case.size} {case.colour} {case.seed} {os.getpid()}\n")
    time.sleep(case.seconds)
    if case.size == 99:
        os.kill(os.getpid(), 9)
    if case.size == 13:
        time.sleep(0.5 if parent_process() else 0)  # so that those beside it are finished
        raise ValueError("size 13 breaks")
    if case.size == 14:
        raise md.NonFiniteState(7, 3)
    if case.size != 3:
        yield {"area": case.size**2, "share": case.size / 7, "part": None, "name": case.colour[0]}
        yield {"area": -case.size, "share": float("nan"), "part": case.seed, "name": "x" * 20}


def draw(table, out: Path) -> None:
    """How many rows there are."""
    (out / "toy.png").write_text(str(len(table)))


def without_style() -> None:
    """Spare a process the imports of matplotlib, which take a second: the figure of a toy is a text."""
    style.use = lambda *about: None


def run(arguments: list[str], message: Connection) -> None:
    """In a process of its own."""
    without_style()
    with open(os.devnull, "w") as nowhere, redirect_stdout(nowhere):
        main(Config, measure, draw, {}, arguments, spreads=True)


def interrupted(arguments: list[str], message: Connection) -> None:
    """In a process of its own, which hears Ctrl-C; it sends a message when it waits, at size 60."""
    without_style()
    signal.signal(signal.SIGINT, signal.default_int_handler)  # in the background there is no handler

    def waiting(case):
        if case.size == 60:
            message.send("waiting")
            time.sleep(60)
        yield from measure(case)

    errors = io.StringIO()
    try:
        with open(os.devnull, "w") as nowhere, redirect_stdout(nowhere), redirect_stderr(errors):
            main(Config, waiting, draw, {}, arguments, spreads=True)
    finally:
        message.send(errors.getvalue())


if __name__ == "__main__":
    main(Config, measure, draw, quick={"size": (7,)}, spreads=True)
