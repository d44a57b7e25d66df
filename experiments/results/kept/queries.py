"""Queries on kept runs: a selection of rows and a form, of which `results.gains` computes the estimate."""

import functools
from dataclasses import dataclass, replace
from pathlib import Path

from experiments.core.rerun import read_table_now
from experiments.results.gains import STATISTICS, Estimate, estimates
from experiments.results.selection import Runs
from sfc import checks

REFERENCE = Path(__file__).parents[3] / "results" / "reference"
LOWEST, HIGHEST = "lowest", "highest"
AGE = "age_steps"  # column


@dataclass(frozen=True)
class Query:
    """Query on the tables of one run or more.

    Args:
        run: folders below `results/reference`, `<experiment>/<name>`.
        where: pandas query that selects the rows.
        value: column, or a pandas expression of columns.
        statistic: one of `STATISTICS`.
        over: pandas query that selects the baseline, for statistics that have one; else empty.
        along: second column or expression, for statistics that have one; else empty.
        each: columns; the statistic is taken in each of their groups.
        pick: "lowest" or "highest": which of the groups is the answer; empty without `each`.
        unit: column with values independent of each other, such as "scene"; empty: runs or gases.

    Raises:
        TypeError: an argument of a wrong class.
        ValueError: a word that is unknown, or `over`, `along` or `pick` missing or superfluous.
    """

    run: tuple[str, ...]
    where: str
    value: str
    statistic: str
    over: str = ""
    along: str = ""
    each: tuple[str, ...] = ()
    pick: str = ""
    unit: str = ""

    def __post_init__(self) -> None:
        """Check that the arguments fit each other."""
        if not checks.sequence("run", self.run, "folders below results/reference"):
            raise checks.refuse_value("run", self.run, "one folder or more")
        for name in ("where", "value"):
            checks.text(name, getattr(self, name))
        for name in ("over", "along", "pick", "unit"):
            checks.instance(name, getattr(self, name), str, "a str")
        kind = STATISTICS[checks.word("statistic", self.statistic, STATISTICS)]
        uses = {"over": kind.has_baseline, "along": kind.has_second, "pick": bool(self.each)}
        for name, needed in uses.items():
            if needed != bool(getattr(self, name)):
                of = "with `each` alone" if name == "pick" else f"statistic {self.statistic!r}"
                allowed = f"{'one' if needed else 'none'} ({of})"
                raise checks.refuse_value(name, getattr(self, name), allowed)
        if self.each:
            checks.word("pick", self.pick, (LOWEST, HIGHEST))


@functools.lru_cache(maxsize=2048)  # pages and the judgements of claims ask the same ones
def evaluate(query: Query, root: Path = REFERENCE) -> Estimate:
    """Evaluate a query.

    Args:
        query: what is asked.
        root: folder of the runs.

    Raises:
        UsageError: a table that is missing or damaged.
        ValueError: a column that is missing, a filter without rows, a value that is no number, or rounds that
            cannot be paired.
    """
    every = estimates(
        runs_of(query.run, root), query.value, query.statistic, where=query.where, over=query.over,
        along=query.along, each=query.each, unit=query.unit,
    )  # fmt: skip
    found = tuple(estimate for _, estimate in every)
    if AGE in query.value:  # it says when was timed; the warnings are about the times
        found = tuple(replace(estimate, warnings=()) for estimate in found)
    picked = (max if query.pick == HIGHEST else min)(found, key=lambda estimate: estimate.value)
    return replace(picked, cases=found) if query.each else picked


@functools.lru_cache(maxsize=64)
def runs_of(names: tuple[str, ...], root: Path = REFERENCE) -> Runs:
    """Read the tables of some runs, under the present names, with the warnings of each row.

    Args:
        names: folders below `root`, `<experiment>/<name>`.
        root: folder of the runs.

    Raises:
        UsageError: a table that is missing or damaged.
    """
    return Runs({name: read_table_now(root / name) for name in names})
