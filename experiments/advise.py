"""Shall I reorder my own data in memory, along which order, and how often?

A file of particles, points, a mesh, a sparse matrix or a trace of a program is read, and what a program does
with its items is timed here in candidate memory orders: neighbours within a cutoff, nearest neighbours, a
gather and a scatter over cells or edges, a matrix times a vector, or the reads of the trace. The code is a
stand-in for the user's, in compiled loops, numpy or scipy, or on a GPU in CUDA or cupy: a gain belongs to one
kind of code, and is not promised for another; `advise(points, run=...)` of this module times a function of
the user's instead.

The answer is to reorder, not to reorder, or that the times do not say, because the interval of the gain holds
the smallest one that is worth it. In each round all orders are timed in the same memory, by CPU time (on a
GPU, and of a function of the user's, by wall time), and a round takes other memory, since where arrays lie
changes times; there are more rounds while they do not say. Results are compared with those in the order of
the file. Shuffled memory is timed too, and never advised. The order of a trace is learnt from its first half,
and judged on the second.
"""

from __future__ import annotations

import itertools
from collections.abc import Iterator
from dataclasses import asdict, dataclass, field
from functools import lru_cache
from pathlib import Path

import numpy as np
import pandas as pd
import tyro

from experiments.advice.forecast import in_words, machine_of
from experiments.advice.headroom import least_ms
from experiments.advice.how_often import lasting
from experiments.advice.memory_map import draw, rows_of_map, without_map
from experiments.advice.program import Advice, advise
from experiments.advice.question import Question, question_of
from experiments.advice.report import lines_of
from experiments.advice.times import candidates, rounds_of
from experiments.advice.uses import COMPILED, CUDA, CUPY, NUMPY, SCIPY
from experiments.advice.verdict import REORDER, SMALLEST_GAIN, judge
from experiments.core import TimedSettings, main
from experiments.core.settings import UsageError
from experiments.core.terminal import FEW_ROUNDS
from experiments.files import Data, read, write
from experiments.results.answers import Answer
from experiments.results.charts import DOTS, Chart, Points, Scale

__all__ = ["Advice", "Config", "advise"]


@dataclass(frozen=True)
class Config(TimedSettings):
    """Own data, and what a program does with it."""

    file: tyro.conf.Positional[str] = ""
    """File with the data: gsd, LAMMPS data or dump, csv, parquet, npy, npz, xyz, las, laz, ply, vtk, vtu,
    mtx."""
    runs: int = 1
    """Number of runs, each in a new process."""
    cutoff: float = 0.0
    """Distance within which points are neighbours, in the file's unit; 0 for another use. Particles with a
    diameter have it by default."""
    neighbours: int = 0
    """Nearest neighbours of each point; 0 for another use. Points without a diameter have 8 by default."""
    walk: str = "auto"
    """cells or edges: gather and scatter over those of a mesh; matrix: times a vector; auto by the file."""
    code: str = COMPILED
    """Kind of code that stands for yours: compiled, numpy or scipy; on the GPU here cuda or cupy."""
    diameter: float = 0.0
    """Diameter of particles in the file's unit, if it has none; 0 for that of the file."""
    box: list[float] = field(default_factory=list)
    """Sides of a periodic box from 0 on, in place of that of the file; for a cutoff."""
    columns: list[str] = field(default_factory=list)
    """Columns with the coordinates; x, y and z by default."""
    displacement: float = 0.0
    """Mean path of an item in a step, in the file's unit, for how often to reorder; 0 for that between two
    frames."""
    sample: int = 0
    """About as many items that are near each other, or reads of a trace; 0 for all."""
    smallest_gain: float = SMALLEST_GAIN
    """Gain that is worth a reorder."""
    item_bytes: int = 0
    """Bytes of an item that a trace or a cell reads, a multiple of 8; 0 for 64 of a trace, and for the
    coordinates and a number of a mesh."""
    seconds: float = 40.0
    """Time for the rounds; of large data there are fewer, three at least. How often to reorder takes more."""
    step_ms: float = 0.0
    """Time of a step of your program, of which the timed use is a part; 0 if it is all."""
    uses: int = 0
    """Uses of the data in its order; 0 for any number."""
    machine: str = ""
    """GPU or CPU for which gains are foreseen too, such as h200, or a file that experiments.machine wrote."""
    write: str = ""
    """File for the data in the advised order, with its permutation beside it (.order.npy); none is written if
    no reorder is advised."""

    def __post_init__(self):
        super().__post_init__()
        self.check_known(
            {"code": (COMPILED, NUMPY, SCIPY, CUDA, CUPY), "walk": ("auto", "cells", "edges", "matrix")}
        )
        for name in ("cutoff", "diameter", "displacement", "step_ms"):
            self.check(name, low=0.0)
        self.check("smallest_gain", low=1.0)
        self.check("seconds", above=0.0)
        for name in ("neighbours", "sample", "uses"):
            self.check(name, low=0)
        self.check("box", above=0)
        self.check("item_bytes", low=0)
        if self.item_bytes % 8:
            raise ValueError(f"--item-bytes {self.item_bytes}; allowed: multiples of 8")
        if self.machine:
            machine_of(self.machine)
        if self.cutoff and self.neighbours:
            raise UsageError(
                f"--cutoff {self.cutoff:g} beside --neighbours {self.neighbours}; allowed: one of them, the "
                "use that is timed"
            )


QUICK = {"rounds": 3}
MINUTES = 1


def measure(case: Config, begin: int = 0) -> Iterator[list[dict]]:
    """Yield the rounds of the candidate orders of a file, from `begin` on.

    They are yielded when all are taken: what is interrupted before is measured again.
    """
    asked = question(case)
    use = asked.use
    every = candidates(use, case.seed, asked.learnt)
    columns = {
        "items": use.items, "use": use.in_words, "said": " ".join(asked.said), "uses": case.uses,
        "smallest_gain": case.smallest_gain, "step_ms": case.step_ms,
        "least_ms": least_ms(use) or 0.0,
        "foreseen": in_words(use, {one.name: one.order for one in every}, case.machine, case.seed),
    }  # fmt: skip
    rounds = rounds_of(use, every, case.rounds, case.seed, case.seconds, case.smallest_gain)
    taken = [[columns | row for row in found] for found in rounds]
    verdict = judge(pd.DataFrame(itertools.chain.from_iterable(taken)), case.smallest_gain)
    best = next(one for one in every if one.name == verdict.best)
    last = lasting(asked, best.order, verdict, best.cost_ms, case.seconds, case.seed)
    ages = {f"interval_{name}": value for name, value in asdict(last).items()} if last else {}
    taken[-1] = [row | ages for row in taken[-1]] + rows_of_map(use, best.name, best.order)
    if case.write and verdict.says == REORDER:
        _write(case, asked, best.order)
    yield from taken[begin:]


def question(case: Config) -> Question:
    """Read the file of a Config, and ask what its settings say.

    Raises:
        UsageError: settings that do not fit the file, or a file that cannot be read.
    """
    if not case.file:
        raise UsageError("no file was given; allowed: python -m experiments.advise FILE; see --help")
    data = _read(case.file, tuple(case.columns))
    return question_of(
        data, cutoff=case.cutoff, neighbours=case.neighbours, walk=case.walk, code=case.code,
        diameter=case.diameter, box=np.array(case.box) if case.box else None, sample=case.sample,
        item_bytes=case.item_bytes, displacement=case.displacement,
    )  # fmt: skip


@lru_cache(maxsize=1)  # the plan and the measurement read the same
def _read(file: str, columns: tuple[str, ...]) -> Data:
    return read(file, columns=columns)


def plan(case: Config) -> str:
    """Say what will be timed; a file that cannot be read is refused here, before anything is written."""
    asked = question(case)
    if case.write and len(asked.whole) != asked.data.n:
        raise UsageError("--write beside --sample; allowed: one of them: a part has no order for the whole")
    return f"{asked.use.items:,} items of {case.file}: {asked.use.in_words}, for about {case.seconds:g} s."


def _write(case: Config, asked: Question, order: np.ndarray) -> None:
    """Write the data in an order, and the permutation."""
    path = write(asked.data, order, Path(case.write))
    np.save(path.with_name(path.name + ".order.npy"), order)


VIEWS = (
    Chart(
        "times_{use}", "Time of {use}, {items} items", DOTS, Points("time_ms"), Scale("", "ordering"),
        Scale("time (ms)", log=10), files=("use",), prepare=without_map,
    ),
    draw,
)  # fmt: skip


def answer(table: pd.DataFrame) -> Answer:
    """Say whether to reorder, along what, what was timed and what it costs."""
    first, *rest = lines_of(without_map(table))
    return Answer(pd.DataFrame(), first, tuple(rest))


if __name__ == "__main__":
    main(
        Config, measure, VIEWS, quick=QUICK, answer=answer, minutes=MINUTES, plan=plan,
        quick_limit=FEW_ROUNDS,
    )  # fmt: skip
