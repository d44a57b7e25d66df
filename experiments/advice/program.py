"""Advice in a program: arrays, a matrix, a trace, a simulation or a function of one's own.

advice = advise(points, cutoff=0.1)
points, masses = advice.apply(points, masses)
"""

from __future__ import annotations

import itertools
from collections.abc import Callable
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import numpy as np
import pandas as pd
import scipy.sparse

import md
from experiments.advice.forecast import in_words
from experiments.advice.headroom import least_ms
from experiments.advice.how_often import Lasting, lasting
from experiments.advice.question import LEAST_ITEMS, Question, question_of
from experiments.advice.report import lines
from experiments.advice.times import Candidate, candidates, rounds_of
from experiments.advice.uses import OWN, Use
from experiments.advice.verdict import REORDER, SMALLEST_GAIN, Gain, Verdict, judge
from experiments.files import Data, read
from sfc import checks

ROUNDS = 5
SECONDS = 40.0  # of all rounds


@dataclass(frozen=True)
class Advice:
    """What was found for some data.

    Attributes:
        verdict: reorder, do not, or cannot tell; with gains and times.
        table: times, a row for each round and order.
        order: permutation of the best order: item `order[i]` goes to place i. It is there even if it should
            not be applied.
        interval: steps between reorders; None if items do not move.
    """

    verdict: Verdict
    table: pd.DataFrame
    order: np.ndarray
    interval: Lasting | None
    _lines: tuple[str, ...]

    @property
    def gain(self) -> Gain:
        """Return the gain of the best order over the order given, with its 95 % interval."""
        return self.verdict.gains[self.verdict.best]

    @property
    def should_reorder(self) -> bool:
        """Return whether the gain exceeds the smallest one that is worth it."""
        return self.verdict.says == REORDER

    def explain(self) -> str:
        """Return the answer in at most ten sentences, each on its line."""
        return "\n".join(self._lines)

    def apply(self, *arrays: np.ndarray) -> tuple[np.ndarray, ...]:
        """Return arrays in the best order, or unchanged copies if no reorder is advised.

        Args:
            arrays: of as many rows as there are items.

        Raises:
            ValueError: an array of another length.
        """
        found = []
        for k, one in enumerate(map(np.asarray, arrays)):
            if len(one) != len(self.order):
                raise ValueError(
                    f"arrays[{k}] has {len(one):,} rows; allowed: {len(self.order):,}, one an item"
                )
            found.append(one[self.order] if self.should_reorder else one.copy())
        return tuple(found)


def advise(
    data: Any, *arrays: np.ndarray, run: Callable[..., Any] | None = None, rounds: int = ROUNDS,
    seed: int = 0, smallest_gain: float = SMALLEST_GAIN, machine: str = "", **options: Any,
) -> Advice:  # fmt: skip
    """Time candidate memory orders of data, and say whether one is worth a reorder.

    Args:
        data: (n, 2) or (n, 3) points, a trace of integers (m,), a sparse matrix, a simulation (its particles
            within the cutoff of its law), or the path of a file.
        arrays: further ones of n rows, which `run` takes.
        run: function of your own that takes the points and the further arrays, and is timed in place of a
            stand-in: the only one for which a gain is promised. It must not depend on the order, nor change
            its arrays.
        rounds: number of rounds; three at least, fewer if they would take more than `SECONDS`, 40 s, and up
            to four times as many while they do not tell.
        seed: of the shuffled order.
        smallest_gain: that is worth a reorder.
        machine: GPU or CPU for which gains are foreseen too, such as "h200"; not for `run`.
        options: of `question_of`: cutoff, neighbours, walk, code, diameter, box, sample, item_bytes,
            displacement.

    Raises:
        TypeError: data of another class.
        ValueError: too few items, settings that do not fit, or a file that cannot be read.
    """
    rounds = checks.integer("rounds", rounds, 1)
    if run is not None and (options or machine):
        given = [*options, *["machine"] * bool(machine)]
        raise ValueError(f"{', '.join(given)} beside run; allowed: run alone, which is what is timed")
    if run is None and arrays:
        raise ValueError(
            f"{len(arrays)} further arrays without run; allowed: beside a function that takes them"
        )
    asked = question_of(_data(data, options), **options) if run is None else _own(data, arrays, run)
    every = candidates(asked.use, seed, asked.learnt)
    foreseen = in_words(asked.use, {one.name: one.order for one in every}, machine, seed)
    taken = rounds_of(asked.use, every, rounds, seed, SECONDS, smallest_gain)
    table = pd.DataFrame(itertools.chain.from_iterable(taken))
    return advice_of(asked, every, table, smallest_gain, foreseen, seed)


def advice_of(
    asked: Question, every: list[Candidate], table: pd.DataFrame, smallest_gain: float, foreseen: str = "",
    seed: int = 0,
) -> Advice:  # fmt: skip
    """Judge the times of candidates.

    Args:
        asked: question.
        every: candidates.
        table: their times.
        smallest_gain: that is worth a reorder.
        foreseen: sentence on another machine.
        seed: of the order within rounds.
    """
    verdict = judge(table, smallest_gain)
    best = next(one for one in every if one.name == verdict.best)
    last = lasting(asked, best.order, verdict, best.cost_ms, SECONDS, seed)
    said = lines(
        verdict, what=asked.use.in_words, items=asked.use.items, last=last, said=" ".join(asked.said),
        costs_ms={one.name: one.cost_ms for one in every}, smallest_gain=smallest_gain,
        rounds=int(table["round"].nunique()), foreseen=foreseen,
        least_ms=least_ms(asked.use) or 0.0,
    )  # fmt: skip
    return Advice(verdict, table, best.order, last, tuple(said))


def _data(data: Any, options: dict[str, Any]) -> Data:
    """Return arrays, a matrix or a simulation as if they came from a file."""
    if isinstance(data, (str, Path)):
        return read(Path(data))
    if isinstance(data, md.Simulation):
        state = data.state
        options.setdefault("cutoff", data.law.cutoff)
        return Data(Path("a simulation"), "particles", len(state), points=state.pos, velocities=state.vel,
                   lengths=np.array(state.box.lengths), periodic=state.box.periodic)  # fmt: skip
    rows: Any = data
    _check_mask("data", data)
    if scipy.sparse.issparse(data):
        return Data(Path("a matrix"), "matrix", rows.shape[0], matrix=data)
    found = np.asarray(data)
    if found.ndim == 1 and np.issubdtype(found.dtype, np.integer):
        if not len(found) or found.min() < 0:
            least = f"with {found.min()}" if len(found) else "of no reads"
            raise ValueError(f"a trace {least}; allowed: one read or more, of items from 0 on")
        return Data(Path("a trace"), "trace", int(found.max()) + 1, trace=found)
    return Data(Path("points"), "points", len(found), points=_points(found))


def _points(found: np.ndarray) -> np.ndarray:
    if found.ndim != 2 or found.shape[1] not in (2, 3) or not np.issubdtype(found.dtype, np.number):
        raise checks.refuse_class(
            "data",
            found,
            "points (n, 2) or (n, 3), a trace of integers, a sparse matrix, a Simulation or a path",
        )
    if not np.isfinite(found).all():
        bad = int(np.flatnonzero(~np.isfinite(found).all(axis=1))[0])
        raise ValueError(f"points[{bad}] = {found[bad]}; allowed: finite numbers; leave it out")
    return found.astype(float)


def _check_mask(name: str, array: Any) -> None:
    """Refuse entries that are masked, which would be taken as numbers."""
    if np.ma.is_masked(array):
        raise ValueError(f"{name} has {np.ma.count_masked(array):,} masked entries; allowed: none; fill them")


def _own(data: Any, arrays: tuple[np.ndarray, ...], run: Callable[..., Any]) -> Question:
    """Ask about a function of the user's."""
    for name, one in (("data", data), *((f"arrays[{k}]", one) for k, one in enumerate(arrays))):
        _check_mask(name, one)
    points = _points(np.asarray(data))
    checks.function("run", run, "a function of the points and the further arrays")
    if len(points) < LEAST_ITEMS:
        raise ValueError(f"{len(points):,} points; allowed: {LEAST_ITEMS:,} or more: fewer fit a first cache")
    for k, one in enumerate(arrays):
        if len(one) != len(points):
            raise ValueError(f"arrays[{k}] has {len(one):,} rows; allowed: {len(points):,}, one a point")
    use = Use(OWN, OWN, len(points), points=points, function=run,
              arrays=(np.asarray(data), *map(np.asarray, arrays)))  # fmt: skip
    data = Data(Path("points"), "points", len(points), points=points)
    return Question(data, use, np.arange(len(points)), None, None, ("Its results are not compared.",))
