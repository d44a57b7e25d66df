"""Claims as the page shows them: verdict, queries with their answers and runs, commands, figure."""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from typing import Any

from experiments.results.claims.judgement import Judgement, Shown
from experiments.results.claims.origins import Origin, origins
from experiments.results.kept.queries import REFERENCE
from experiments.results.page.pictures import embed
from experiments.results.page.runs import Run


class ClaimRows:
    """Rows of all claims.

    Args:
        judgements: of all claims.
        runs: name -> run.

    Attributes:
        by_id: id -> what the templates need; a claim with parts has them under `parts`.
        leaves: the same for claims without parts, and for the parts of the others.

    Raises:
        ValueError: a figure that cannot be read.
    """

    def __init__(self, judgements: Sequence[Judgement], runs: Mapping[str, Run]) -> None:
        self._runs = runs
        self._figures: dict[str, str] = {}  # path -> id of the element that has it
        self.by_id = {one.claim.id: self._rows(one) for one in judgements}
        self.leaves = [leaf for one in self.by_id.values() for leaf in one["parts"] or [one]]

    def _rows(self, judgement: Judgement) -> dict[str, Any]:
        claim, known, figure = judgement.claim, origins(judgement.claim), judgement.claim.figure
        anchor = claim.id.replace(" ", "-")
        is_first = bool(figure) and figure not in self._figures
        judged = {name: getattr(judgement, name) for name in ("word", "cell", "sentence", "here")}
        return {**vars(claim), **judged} | {
            "name": claim.name,
            "source": claim.source,
            "anchor": anchor,
            "queries": [self._query(judgement, name) for name in judgement.answers],
            "rules": list(claim.rules.items()),
            "origins": known,
            "picture_at": self._figures.setdefault(figure, f"{anchor}-figure") if figure else "",
            "picture": embed(REFERENCE, figure) if is_first else None,
            "parts": [self._rows(part) for part in judgement.parts],
            "device": _each(known, "device"),
            "n": _each(known, "n"),
        }

    def _query(self, judgement: Judgement, name: str) -> dict[str, Any]:
        query, answer = judgement.claim.queries[name], judgement.answers[name]
        runs = [self._runs[run] for run in query.run]
        asked = {**vars(answer), **vars(query)} | {"name": name, "text": str(Shown(answer))}
        where = {"runs": runs, "device": _each(runs, "where"), "n": _each(runs, "n")}
        return asked | where | {"interval": answer.interval}


def _each(runs: Iterable[Origin | Run], name: str) -> str:
    """Return the distinct texts that runs have under a name."""
    return "; ".join(dict.fromkeys(getattr(run, name) for run in runs))
