"""Are bytes and times of a launch foreseen before it is run?

Gases, flocks and index workloads are drawn (`experiments.prediction.drawn_gases`), each in several memory
orders. `--what predicted` runs the model of memory of `sfc.cache` on a CPU for two chips. `--what timed` and
`--what counted` measure the same launches on a device: their times in turns, each after a check of its
result, and what Nsight Compute counts. Predictions are kept in the repository before they are measured:
`experiments.forecasts.compared` compares both, and refuses a measurement without a prediction of an earlier
commit.

`--cases cpu` are gases of another draw, for kernels on a CPU: `--what predicted` for the CPUs of `--machine`,
`--what timed` on this one.
"""

from collections.abc import Iterator
from dataclasses import dataclass
from typing import ClassVar

import pandas as pd

import md
from experiments.core import Axis, Settings, main
from experiments.core.provenance import describe_cpu
from experiments.core.terminal import FEW_CASES
from experiments.forecasts.measured import counted, timed
from experiments.forecasts.on_cpu import foreseen_on_cpu, timed_on_cpu
from experiments.forecasts.predicted import foreseen
from experiments.prediction.drawn_gases import (
    DRAWS,
    GASES,
    LISTS,
    SEEN,
    SEEN_ON_CPU,
    Gas,
    cpu_gases,
    drawn_gases,
)
from experiments.prediction.model_ladder import model_ladder
from experiments.results.answers import Answer, rounded
from experiments.results.charts import DOTS, FIRST, Chart, Points, Scale, Table
from experiments.results.charts import ORDERS as ALONG_ORDERS
from sfc.cache import Machine
from sfc.cache.core import Processor
from sfc.cache.machine import KNOWN
from sfc.compile import thread_count

PREDICTED, TIMED, COUNTED, LADDER = "predicted", "timed", "counted", "ladder"
ON_CPU = {"cpu": cpu_gases, "cpu_seen": lambda: SEEN_ON_CPU}  # cases -> gases
GIVEN = {"seen": SEEN, "lists": LISTS}  # cases -> gases of no draw


@dataclass(frozen=True)
class Config(Settings):
    """Drawn gases, and what is done with them."""

    TOGETHER: ClassVar[tuple[str, ...]] = ("machine",)

    gas: Axis[int] = tuple(range(GASES))
    """Numbers of drawn gases."""
    cases: str = "second"
    """Which gases: those of the second draw, of the first (drawn), or some that no draw has: seen, or with
    neighbour lists over sorted and unsorted memory (lists); for CPUs those of a draw (cpu), or some that it
    does not have (cpu_seen)."""
    what: str = PREDICTED
    """What is done: predicted on a CPU, or by earlier models (ladder); timed or counted on a device. Cases
    for CPUs are predicted, or timed on a CPU."""
    machine: tuple[str, ...] = KNOWN
    """Chips for which launches are predicted: names, or files that `experiments.machine` wrote. For cases of
    CPUs they are CPUs."""
    threads: int = 1
    """Threads of a CPU on which its kernels are timed; numpy and scipy take one."""

    def __post_init__(self):
        super().__post_init__()
        self.check_known({
            "what": (PREDICTED, LADDER, TIMED, COUNTED), "cases": (*DRAWS, *GIVEN, *ON_CPU)
        })  # fmt: skip
        self.check("gas", low=0, high=len(_gases(self.cases)) - 1)
        self.check("threads", low=1, high=thread_count(), remedy="set NUMBA_NUM_THREADS for more")
        is_of_cpus = self.cases in ON_CPU
        for name in self.machine if self.what == PREDICTED else ():
            (Processor if is_of_cpus else Machine).read(name)
        if is_of_cpus and self.what in (LADDER, COUNTED):
            raise ValueError(f"--what {self.what} of --cases {self.cases}; allowed: {PREDICTED}, {TIMED}")
        if self.what in (TIMED, COUNTED) and (self.backend == "cpu") != is_of_cpus:
            other = "cpu" if is_of_cpus else "cuda, a device"
            raise ValueError(
                f"--what {self.what} of --cases {self.cases} beside --backend {self.backend}; allowed: "
                f"{other}"
            )


def _gases(cases: str) -> tuple[Gas, ...]:
    """Return the gases of a word."""
    if cases in ON_CPU:
        return ON_CPU[cases]()
    return drawn_gases(seed=DRAWS[cases]) if cases in DRAWS else GIVEN[cases]


QUICK = {"gas": (24,)}
MINUTES = 40


def measure(case: Config) -> Iterator[dict]:
    """Yield a row for each memory order of a gas: for each machine, for each round, or one."""
    gas = _gases(case.cases)[case.gas]
    common = {"kernel": gas.kernel, "particles": gas.n, "filling_fraction": gas.filling_fraction,
              "precision": gas.precision}  # fmt: skip
    if case.what == PREDICTED:
        foresee = foreseen_on_cpu if case.cases in ON_CPU else foreseen
        rows = foresee(gas, case.machine, case.seed)
    elif case.cases in ON_CPU:
        common |= {"device": describe_cpu()["cpu"], "threads": case.threads}
        rows = timed_on_cpu(gas, case.seed, case.threads)
    elif case.what == LADDER:
        rows = model_ladder(gas, case.seed)
    else:
        common["device"] = md.backend.get("cuda").describe()["device"]
        rows = timed(gas, case.seed) if case.what == TIMED else counted([gas], case.seed)
    for row in rows:
        yield common | row


def _times(table: pd.DataFrame) -> pd.DataFrame:
    """Return the median time of each case; the table itself if it has no times."""
    if "time_us" not in table:
        return table
    by = ["gas", "kernel", "particles", "filling_fraction", "precision", "ordering"]
    by += [name for name in ("machine", "device") if name in table]
    return table.groupby(by, sort=False)["time_us"].median().reset_index()


def _slowest(table: pd.DataFrame) -> pd.DataFrame:
    """Return a row for each gas and chip: the time of its slowest memory order over that of its fastest.

    Args:
        table: of `measure`, with times.

    Returns:
        Columns `gas`, `case`, in words, `chip`, and `ratio`.
    """
    times = _times(table)
    times = times.rename(columns={"machine" if "machine" in times else "device": "chip"})
    of_gas = times.groupby(
        ["gas", "kernel", "particles", "filling_fraction", "precision", "chip"], sort=False
    )
    found = (of_gas["time_us"].max() / of_gas["time_us"].min()).rename("ratio").reset_index()
    rows = zip(
        found["kernel"], found["particles"], found["filling_fraction"], found["precision"], strict=True
    )
    found["case"] = [f"{kernel}, {n:,}, {share:g}, {precision}" for kernel, n, share, precision in rows]
    return found[["gas", "case", "chip", "ratio"]]


VIEWS = (
    Table("times", _times),
    Chart(
        "orders",
        "In the slowest memory order a launch takes up to {of_worst} times as long as in the fastest", DOTS,
        Points("ratio", statistic=FIRST), Scale("kernel, items, filling fraction, precision", "case"),
        Scale("time of the slowest order\nover that of the fastest", log=10, line=1),
        "chip", "chip", prepare=_slowest, needs="time_us",
    ),
    Chart(
        "ladder", "Reads that miss in a block of [thesis], by memory order", DOTS,
        Points("block", statistic=FIRST), ALONG_ORDERS, Scale("share of reads that miss", from_zero=True),
        "particles", "particles", needs="block",
    ),
)  # fmt: skip


def answer(table: pd.DataFrame) -> Answer:
    """Say how many launches there are, and the largest ratio of times of two orders of one."""
    if "time_us" not in table:
        sentence = f"{len(table)} cases of earlier models; `experiments.forecasts.compared` ranks by them."
        return Answer(pd.DataFrame(), sentence)
    ratios = _slowest(table).sort_values("ratio", ascending=False, kind="stable")
    found = pd.DataFrame({"slowest order over fastest": ratios["ratio"].map(rounded)})
    found.index = pd.Index(
        [f"{case} ({chip})" for case, chip in zip(ratios["case"], ratios["chip"], strict=True)]
    )
    cases = table.groupby(["gas", "ordering"]).ngroups
    gases = table["gas"].nunique()
    sentence = (
        f"{cases} launches of {gases} {'gas' if gases == 1 else 'gases'}; the slowest order of a gas takes "
        f"up to {rounded(ratios['ratio'].max())} times as long as the fastest."
    )
    return Answer(found.rename_axis(""), sentence)


if __name__ == "__main__":
    main(
        Config,
        measure,
        VIEWS,
        quick=QUICK,
        spreads=lambda config: config.what in (PREDICTED, LADDER),
        answer=answer,
        quick_limit=FEW_CASES,
        minutes=MINUTES,
    )
