"""Runs of a reader beside the kept ones: answers of the claims' queries on their tables, and figures."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import replace
from typing import Any

from experiments.results.claims.judgement import Judgement, Shown
from experiments.results.kept.queries import evaluate
from experiments.results.page.pictures import Picture, embed
from experiments.results.page.runs import Run

MOST_PICTURES = 12  # of a run, so that a page stays small


def context(
    own: Sequence[Run], judgements: Sequence[Judgement], drawn: Mapping[str, dict[str, Any]]
) -> dict[str, Any]:
    """Return what the section on a reader's runs needs.

    Args:
        own: the runs.
        judgements: of all claims.
        drawn: id -> chart, with the names of its runs.

    Raises:
        ValueError: a figure of a run that cannot be read.
    """
    return {
        "own_charts": {run.name: [one for one in drawn.values() if run.name in one["runs"]] for run in own},
        "own_pictures": {run.name: list(_pictures(run)) for run in own},
        "beside": {run.name: [row for one in judgements for row in beside(run, one)] for run in own},
    }


def beside(run: Run, judgement: Judgement) -> Iterator[dict[str, str]]:
    """Yield the answers of a claim's queries on a run, each beside that on the kept run.

    Queries on other experiments, and those that find no rows or columns in the table, are left out.

    Args:
        run: of a reader.
        judgement: of a claim.
    """
    for part in judgement.parts:
        yield from beside(run, part)
    for name, kept in judgement.answers.items():
        query = judgement.claim.queries[name]
        if {one.split("/")[0] for one in query.run} != {run.experiment}:
            continue
        moved = replace(query, run=(f"{run.folder.parent.name}/{run.folder.name}",))
        try:
            answer = evaluate(moved, run.folder.parent.parent)
        except ValueError:
            continue
        yield {
            "id": judgement.claim.id,
            "anchor": judgement.claim.id.replace(" ", "-"),
            "query": name,
            "yours": str(Shown(answer)),
            "interval": answer.interval,
            "kept": str(Shown(kept)),
            "kept_interval": kept.interval,
        }


def _pictures(run: Run) -> Iterator[Picture]:
    for path in sorted(run.folder.glob("*.png"))[:MOST_PICTURES]:
        yield embed(run.folder, path.name, run.name)
