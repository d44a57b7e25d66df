"""Runs of a reader beside the kept ones: answers of the claims' queries on their tables, and figures.

Contract. Like is compared with like: an answer of a reader's run stands beside that of a kept run if the rows
of both have the same numbers of particles, within 1 % (a gas may hold a few more or less by chance), and come
from the same backend, CPU or CUDA; predictions that any machine gives compare on both. All other queries
on the experiment are listed as not compared, with the reason. An answer carries the warnings of its rows.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, replace
from typing import Any

import pandas as pd

from experiments.core.old_names import experiment_now
from experiments.results.claims.judgement import Judgement, Shown
from experiments.results.gains import Estimate
from experiments.results.kept.queries import Query, evaluate, runs_of
from experiments.results.page.pictures import embed
from experiments.results.page.runs import Run
from experiments.results.selection import BROKEN
from experiments.results.tables import SIZES, sizes_of

MOST_PICTURES = 12  # of a run, so that a page stays small
SAME_SIZE = 0.01  # relative difference of two numbers of particles that count as the same
NO_ROWS = "your run has no rows of it"


@dataclass(frozen=True)
class Side:
    """Answer of a query on one of two runs that are compared.

    Args:
        text: value with its interval.
        interval: what the interval is.
        on: device, backend and numbers of particles.
        warnings: of the rows.
    """

    text: str
    interval: str
    on: str
    warnings: str


@dataclass(frozen=True)
class Compared:
    """Query of a claim on a reader's run and on the kept one.

    Args:
        id: of the claim.
        query: its name.
        yours: answer on the reader's run.
        kept: answer on the kept run.
        overlap: whether the two intervals have a number in common: "yes" or "no".
    """

    id: str
    query: str
    yours: Side
    kept: Side
    overlap: str


def context(
    own: Sequence[Run],
    judgements: Sequence[Judgement],
    drawn: Mapping[str, dict[str, Any]],
    kept: Mapping[str, Run],
) -> dict[str, Any]:
    """Return what the section on a reader's runs needs.

    Args:
        own: the runs.
        judgements: of all claims.
        drawn: id -> chart, with the names of its runs.
        kept: name -> kept run.

    Raises:
        ValueError: a figure of a run that cannot be read.
    """
    found: dict[str, dict[str, Any]] = {}
    for run in own:
        asked = [one for judgement in judgements for one in beside(run, judgement, kept)]
        pictures = sorted(run.folder.glob("*.png"))[:MOST_PICTURES]
        found[run.name] = {
            "charts": [one for one in drawn.values() if run.name in one["runs"]],
            "pictures": [embed(run.folder, path.name, run.name) for path in pictures],
            "warnings": _rows(run)[1],
            "beside": [one for one in asked if isinstance(one, Compared)],
            "not_compared": _by_reason(one for one in asked if not isinstance(one, Compared)),
        }
    return {"of_own": found}


def beside(
    run: Run, judgement: Judgement, kept: Mapping[str, Run]
) -> Iterator[Compared | tuple[str, str, str]]:
    """Compare the answers of a claim's queries on a run with those on kept runs.

    Args:
        run: of a reader.
        judgement: of a claim.
        kept: name -> kept run.

    Yields:
        A comparison; or id, query and reason, for a query on the experiment of the run that compares nothing.
    """
    for part in judgement.parts:
        yield from beside(run, part, kept)
    for name, answer in judgement.answers.items():
        query = judgement.claim.queries[name]
        if {experiment_now(one.split("/")[0]) for one in query.run} == {run.experiment}:
            found = _compared(run, query, answer, [kept[one] for one in query.run])
            id = judgement.claim.id
            yield (id, name, found) if isinstance(found, str) else Compared(id, name, *found)


def _compared(run: Run, query: Query, answer: Estimate, kept: Sequence[Run]) -> tuple[Side, Side, str] | str:
    """Return both answers and whether they overlap, or why there is nothing to compare."""
    theirs = sorted({size for one in kept for size in _rows(one, query.where)[0]})
    mine, every = _rows(run, query.where)[0], _rows(run)[0]
    if mine:
        is_alike = len(mine) == len(theirs) and all(map(_is_same, mine, theirs))
    else:
        is_alike = all(any(_is_same(size, other) for other in every) for size in theirs)
    if not is_alike or any(not one.is_same_anywhere and one.backend != run.backend for one in kept):
        where = "; ".join(dict.fromkeys(map(_on, kept)))
        return f"n {_listed(mine or every)} on {_on(run)} beside {_listed(theirs)} on {where}"
    try:
        moved = replace(query, run=(f"{run.folder.parent.name}/{run.folder.name}",))
        found = evaluate(moved, run.folder.parent.parent)
    except ValueError:
        return NO_ROWS
    overlap = "yes" if found.low <= answer.high and answer.low <= found.high else "no"
    return _side(found, [run], mine), _side(answer, kept, theirs), overlap


def _side(answer: Estimate, runs: Sequence[Run], sizes: Sequence[int]) -> Side:
    on = f"{'; '.join(dict.fromkeys(map(_on, runs)))}, n {_listed(sizes)}"
    return Side(str(Shown(answer)), answer.interval, on, "; ".join(answer.warnings) or "none")


def _on(run: Run) -> str:
    return f"{run.where} ({run.backend})"


def _rows(run: Run, where: str = "") -> tuple[tuple[int, ...], tuple[str, ...]]:
    """Return the numbers of particles and the warnings of the rows of a run that a filter selects."""
    runs = runs_of((f"{run.folder.parent.name}/{run.folder.name}",), run.folder.parent.parent)
    try:
        rows = runs.rows.query(where, engine="python") if where else runs.rows
    except BROKEN:  # it has not the columns
        rows = runs.rows.iloc[:0]
    column = next((name for name in SIZES if name in rows), None)
    sizes = sorted({*rows[column].dropna().astype(int)}) if column else []
    return tuple(sizes), runs.warnings(rows.index.to_numpy())


def _is_same(size: int, other: int) -> bool:
    return abs(size - other) <= SAME_SIZE * max(size, other)


def _listed(sizes: Sequence[int]) -> str:
    return sizes_of(pd.DataFrame({"n": sizes}), {}) if sizes else "none"


def _by_reason(rows: Iterable[tuple[str, str, str]]) -> dict[str, str]:
    """Return reason -> claims and queries that are not compared for it."""
    found: dict[str, dict[str, list[str]]] = {}
    for id, query, reason in rows:
        found.setdefault(reason, {}).setdefault(id, []).append(query)
    return {
        reason: "; ".join(f"{id} {', '.join(names)}" for id, names in claims.items())
        for reason, claims in found.items()
    }
