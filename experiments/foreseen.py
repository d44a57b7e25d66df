"""Are bytes and times of a launch foreseen before it is run?

Gases, flocks and index workloads are drawn (`experiments.prediction.drawn_gases`), each in several memory
orders. `--what predicted` runs the model of memory of `sfc.cache` on a CPU for two chips. `--what timed` and
`--what counted` measure the same launches on a device: their times in turns, each after a check of its
result, and what Nsight Compute counts. Predictions are kept in the repository before they are measured:
`experiments.forecasts.compared` compares both, and refuses a measurement without a prediction of an earlier
commit.
"""

from collections.abc import Iterator
from dataclasses import dataclass
from typing import ClassVar

import pandas as pd

import md
from experiments.core import Axis, Settings, main
from experiments.forecasts.measured import counted, timed
from experiments.forecasts.predicted import foreseen
from experiments.prediction.drawn_gases import GASES, SEEN, Gas, drawn_gases
from experiments.prediction.model_ladder import model_ladder
from experiments.results.answers import Answer, rounded
from experiments.results.charts import Table
from sfc.cache import Machine
from sfc.cache.machine import KNOWN

PREDICTED, TIMED, COUNTED, LADDER = "predicted", "timed", "counted", "ladder"


@dataclass(frozen=True)
class Config(Settings):
    """Drawn gases, and what is done with them."""

    TOGETHER: ClassVar[tuple[str, ...]] = ("machine",)

    gas: Axis[int] = tuple(range(GASES))
    """Numbers of drawn gases."""
    cases: str = "drawn"
    """Which gases: drawn, or those that the fitted numbers have seen."""
    what: str = PREDICTED
    """What is done: predicted on a CPU, or by earlier models (ladder); timed or counted on a device."""
    machine: tuple[str, ...] = KNOWN
    """Chips for which launches are predicted: names, or files that `experiments.machine` wrote."""

    def __post_init__(self):
        super().__post_init__()
        self.check_known({"what": (PREDICTED, LADDER, TIMED, COUNTED), "cases": ("drawn", "seen")})
        self.check("gas", low=0, high=len(_gases(self.cases)) - 1)
        for name in self.machine:
            Machine.read(name)
        if self.what in (TIMED, COUNTED) and self.backend == "cpu":
            raise ValueError(f"--what {self.what} beside --backend cpu; allowed: cuda, a device")


def _gases(cases: str) -> tuple[Gas, ...]:
    """Return the gases of a word."""
    return drawn_gases() if cases == "drawn" else SEEN


QUICK = {"gas": (5,)}
MINUTES = 40


def measure(case: Config) -> Iterator[dict]:
    """Yield a row for each memory order of a gas: for each machine, for each round, or one."""
    gas = _gases(case.cases)[case.gas]
    common = {"kernel": gas.kernel, "particles": gas.n, "filling_fraction": gas.filling_fraction,
              "precision": gas.precision}  # fmt: skip
    if case.what == PREDICTED:
        rows = foreseen(gas, case.machine, case.seed)
    elif case.what == LADDER:
        rows = model_ladder(gas, case.seed)
    else:
        common["device"] = md.backend.get("cuda").describe()["device"]
        rows = timed(gas, case.seed) if case.what == TIMED else counted([gas], case.seed)
    for row in rows:
        yield common | row


def _times(table: pd.DataFrame) -> pd.DataFrame:
    """Return the time of each case, over that of the first order of its gas."""
    if "time_us" not in table:
        return table
    by = ["gas", "kernel", "particles", "filling_fraction", "precision", "ordering"]
    by += [name for name in ("machine", "device") if name in table]
    return table.groupby(by, sort=False)["time_us"].median().reset_index()


VIEWS = (Table("times", _times),)


def answer(table: pd.DataFrame) -> Answer:
    """Say how many launches there are, and the largest ratio of times of two orders of one."""
    if "time_us" not in table:
        sentence = f"{len(table)} cases of earlier models; `experiments.forecasts.compared` ranks by them."
        return Answer(pd.DataFrame(), sentence)
    times = _times(table)
    place = "machine" if "machine" in times else "device"
    groups = times.groupby(["gas", "kernel", "particles", place], sort=False)["time_us"]
    found = pd.DataFrame({"slowest order over fastest": (groups.max() / groups.min()).map(rounded)})
    largest = (groups.max() / groups.min()).max()
    sentence = (
        f"{len(times)} launches of {times['gas'].nunique()} gases; the slowest order of a gas takes up to "
        f"{rounded(largest)} times as long as the fastest."
    )
    found.index = pd.Index([f"{kernel}, {n:,} ({chip})" for _, kernel, n, chip in found.index], name="")
    return Answer(found, sentence)


if __name__ == "__main__":
    main(Config, measure, VIEWS, quick=QUICK, spreads=True, answer=answer, minutes=MINUTES)
