"""Is the advice on own data right, for code that it has not seen?

Each data set of `experiments.advice.sets` is written to a file as its users have it, and advised as
`experiments.advise` does, with the same kind of code. On a GPU that is CUDA in place of compiled loops, and
cupy in place of numpy and scipy (of neighbours within a cutoff CUDA, since cupy has no search). Then the
user's own plain code is timed apart from it, in a process of its own for each sample, in the order of the
file and in all candidate orders. Advice to reorder is right if the advised order gains the user's code at
least the smallest gain that pays, and advice not to if no candidate gains that much and more than the error
of a gain; "cannot tell" is no answer. Orders of a trace are learnt from its first half; the user's code reads
the second. The rule that stands beside it reorders if the order of the file is less than 1.2 times as fast as
shuffled memory.
"""

import itertools
import math
from collections.abc import Iterator
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Any, ClassVar

import numpy as np
import pandas as pd
import scipy

import md
from experiments.advice.apart import medians, timed_apart
from experiments.advice.candidates import GIVEN, NEVER_ADVISED
from experiments.advice.question import question_of
from experiments.advice.sets.codes import library_on_gpu
from experiments.advice.sets.data import SetData
from experiments.advice.sets.files import write
from experiments.advice.sets.permutations import Order
from experiments.advice.sets.table import SETS, DataSet, make
from experiments.advice.times import candidates, rounds_of
from experiments.advice.verdict import CANNOT_TELL, REORDER, SMALLEST_GAIN, judge
from experiments.core import Axis, TimedSettings, main
from experiments.core.terminal import FEW_ROUNDS
from experiments.files import read
from experiments.processes.lifetime import temporary_folder
from experiments.results.answers import Answer, rounded
from experiments.results.baselines import SHUFFLED
from experiments.results.charts import DOTS, Chart, Points, Scale

NAMES = {2: "edges", 3: "triangle", 4: "tetra", 8: "hexahedron"}  # corners of a cell -> its name in a file
ROUNDS = 5  # of an advice
RULE = 1.2  # of the time in shuffled memory over that as given


@dataclass(frozen=True)
class Config(TimedSettings):
    """Sweep of data sets."""

    TOGETHER: ClassVar[tuple[str, ...]] = ()

    data: Axis[str] = tuple(SETS)
    """Data sets by name."""
    runs: int = 1
    """Number of runs, each with data of its own."""
    rounds: int = 5
    """Number of rounds of the user's code, two at least; the advice takes five."""
    n: int = 0
    """Number of items; 0 for that of each set."""
    seconds: float = 30.0
    """Time of the rounds of an advice."""

    def __post_init__(self):
        super().__post_init__()
        self.check_known({"data": tuple(SETS)})
        self.check("n", low=0)
        self.check("rounds", low=2)
        self.check("seconds", above=0.0)


QUICK = {"n": 3000, "rounds": 2, "seconds": 0.1, "data": ("random_gas", "icosphere", "hash_probes")}
MINUTES = 40


def measure(case: Any, begin: int = 0) -> Iterator[list[dict]]:
    """Yield the rows of a data set, one for each order, as one round."""
    if begin:
        return
    one = SETS[case.data]
    is_on_gpu = md.backend.get(case.backend).name == "cuda"
    library = library_on_gpu(one.use, one.library) if is_on_gpu else one.library
    data = make(one.name, case.n or None, case.seed)
    with temporary_folder("advised-") as folder:
        path = _written(one, data, folder)
        asked = question_of(
            read(path), code=library, neighbours=data.neighbours,
            cutoff=data.cutoff if data.radii is None else 0,  # those of the file decide
            item_bytes=_bytes(data) if data.trace is not None else 0,
        )  # fmt: skip
        every = candidates(asked.use, case.seed, asked.learnt)
        taken = rounds_of(asked.use, every, ROUNDS, case.seed, case.seconds, SMALLEST_GAIN)
        verdict = judge(pd.DataFrame(itertools.chain.from_iterable(taken)))
    orders = {found.name: _order(data, found.order) for found in every if found.order is not None}
    if asked.learnt is not None:
        data = replace(data, trace=asked.use.trace)
    apart = timed_apart(one.name, orders, case.rounds, seed=case.seed, library=library, data=data)
    times = medians(apart).set_index("order")
    yield [
        {
            "round": 0, "kind": one.kind, "use": one.use, "library": library, "items": data.n,
            "says": verdict.says,
            "is_partly_ordered": one.is_partly_ordered, "ordering": name, "is_advised": name == verdict.best,
            "advised_gain": verdict.gains[name].value, "advised_low": verdict.gains[name].low,
            "advised_high": verdict.gains[name].high, "floor": error_of(apart), "recorded": False,
            "time_ms": times.loc[name, "cpu_ms"], "wall_ms": times.loc[name, "wall_ms"],
            "sample_ms": times.loc[name, "cpu_ms"], "gain": times.loc[name, "gain"],
        }
        for name in (GIVEN, *orders)
    ]  # fmt: skip


def error_of(apart: pd.DataFrame) -> float:
    """Return the factor by which two medians of equal times of a user's code differ in 1 of 20 cases.

    Args:
        apart: times of `timed_apart`, of one set; two rounds or more, else infinite.
    """
    logs: Any = np.log(apart.pivot(index="order", columns="round", values="cpu_ms"))
    orders, rounds = logs.shape
    if rounds < 2:
        return math.inf
    errors = logs.sub(logs.mean(axis=1), axis=0)
    freedom = orders * (rounds - 1)
    of_median = math.sqrt(np.pi / 2 * float((errors**2).to_numpy().sum()) / freedom / rounds)
    return math.exp(float(scipy.stats.t.ppf(0.975, freedom)) * math.sqrt(2) * of_median)


def _bytes(data: SetData) -> int:
    """Return the bytes of an item that a trace reads."""
    return max(8, data.required("values", "a trace").nbytes // data.n)


def _written(one: DataSet, data: SetData, folder: Path) -> Path:
    """Write a data set to a file; a mesh with the name of its cells."""
    path = folder / f"{one.name}.{one.file}"
    if data.cells is None:
        write(data, path)
        return path
    path = path.with_suffix(".npz")
    arrays: dict[str, Any] = {"points": data.points, NAMES[data.cells.shape[1]]: data.cells}
    np.savez(path, **arrays)
    return path


def _order(data: SetData, items: np.ndarray) -> Order:
    """Return an order of items, with cells sorted by their first one; items without a read are the last."""
    items = np.concatenate([items, np.arange(len(items), data.n)])
    if data.cells is None:
        return Order(items)
    places = np.empty(data.n, np.int64)
    places[items] = np.arange(data.n)
    return Order(items, np.argsort(places[data.cells].min(axis=1), kind="stable"))


def foretold(table: pd.DataFrame) -> pd.DataFrame:
    """Put the gain that an advice foretells beside those of the user's code.

    Args:
        table: rows of `measure`.

    Returns:
        Three rows for each set and run: `data`, `of` and `gain`.
    """
    best = table[~table["ordering"].isin(NEVER_ADVISED)]
    best = best.loc[best.groupby(["data", "run"], sort=False)["gain"].idxmax()]
    advised = table[table["is_advised"]]
    parts = {
        "foretold": advised.assign(gain=advised["advised_gain"]), "user's code, advised order": advised,
        "user's code, best order": best,
    }  # fmt: skip
    return pd.concat([rows.assign(of=name) for name, rows in parts.items()], ignore_index=True)


VIEWS = (
    Chart(
        "gains", "Gains over the order of the file", DOTS, Points("gain"), Scale("", "data"),
        Scale("gain over the order of the file", log=10, line=1), series="of", title_of_series="gain",
        prepare=foretold,
    ),
)  # fmt: skip


def judged(table: pd.DataFrame) -> pd.DataFrame:
    """Judge the advice on each data set.

    Args:
        table: rows of `measure`.

    Returns:
        A row for each set: `says`, `order`, `advised`, `gain` (of the user's code along the advised order),
        `best` (of its best order), `error` of a gain, `is_right` (None for no answer), `is_best` (within 5 %
        of the best, or the error), `is_near` (the gain is within 15 %) and `rule_is_right`.
    """
    found = []
    for (name, _), rows in table.groupby(["data", "run"], sort=False):
        own = rows.set_index("ordering")["gain"]
        of_best = rows[rows["is_advised"]].iloc[0]
        best = own.drop([name for name in NEVER_ADVISED if name in own]).max()
        says, error = of_best["says"], of_best["floor"]
        is_worth = {True: of_best["gain"] >= SMALLEST_GAIN, False: best >= max(SMALLEST_GAIN, error)}
        rule = 1 / own[SHUFFLED] < RULE
        found.append({
            "data": name, "says": says, "order": of_best["ordering"], "advised": of_best["advised_gain"],
            "gain": of_best["gain"], "best": best, "error": error,
            "is_partly_ordered": bool(of_best["is_partly_ordered"]),
            "is_right": None if says == CANNOT_TELL else (says == REORDER) == is_worth[says == REORDER],
            "is_best": best <= of_best["gain"] * max(1.05, error),
            "is_near": abs(of_best["advised_gain"] / of_best["gain"] - 1) <= 0.15,
            "rule_is_right": rule == is_worth[rule],
        })  # fmt: skip
    return pd.DataFrame(found)


def answer(table: pd.DataFrame) -> Answer:
    """Count how often the advice was right."""
    found = judged(table)
    open_ = found["is_right"].isna()
    right = int((found["is_right"] == True).sum())  # noqa: E712 - None is no answer
    partly = found[found["is_partly_ordered"]]
    right_of_partly = int((partly["is_right"] == True).sum())  # noqa: E712
    shown = found.set_index("data")[["says", "order", "advised", "gain", "best", "error"]]
    shown = shown.map(lambda one: rounded(one) if isinstance(one, float) else one)
    sentence = (
        f"Of {len(found)} data sets the advice is right in {right}, open in {int(open_.sum())}, wrong in "
        f"{len(found) - right - int(open_.sum())}; its order is within 5 % of the best, or the noise, in "
        f"{int(found['is_best'].sum())}, its gain within 15 % in {int(found['is_near'].sum())}. Of "
        f"{len(partly)} partly in order it is right in {right_of_partly}, the rule in "
        f"{int(partly['rule_is_right'].sum())}."
    )
    return Answer(shown, sentence)


if __name__ == "__main__":
    main(Config, measure, VIEWS, quick=QUICK, answer=answer, minutes=MINUTES, quick_limit=FEW_ROUNDS)
