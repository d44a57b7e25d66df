"""Claims as the page shows them: verdict, queries with their answers and runs, commands, figure."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any

from experiments.results.claims.judgement import Judgement, Shown
from experiments.results.claims.origins import origins
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
        claim = judgement.claim
        anchor = claim.id.replace(" ", "-")
        texts = ("id", "claim", "short", "source", "there", "quote", "figure")
        found: dict[str, Any] = {name: getattr(claim, name) for name in texts}
        found |= {
            "word": judgement.word,
            "cell": judgement.cell,
            "sentence": judgement.sentence,
            "here": judgement.here,
        }
        found |= {"anchor": anchor, "name": claim.id.partition(" ")[2].replace("_", " ")}
        found |= {"queries": self._queries(judgement), "picture": None, "picture_at": ""}
        found |= {"rules": list(claim.rules.items()), "origins": (known := origins(claim))}
        for name in ("device", "n"):
            found[name] = "; ".join(dict.fromkeys(getattr(one, name) for one in known))
        if figure := claim.figure:
            is_first = figure not in self._figures
            found["picture_at"] = self._figures.setdefault(figure, f"{anchor}-figure")
            found["picture"] = embed(REFERENCE, figure) if is_first else None
        found["parts"] = [self._rows(part) for part in judgement.parts]
        return found

    def _queries(self, judgement: Judgement) -> list[dict[str, Any]]:
        found = []
        for name, answer in judgement.answers.items():
            query = judgement.claim.queries[name]
            runs = [self._runs[run] for run in query.run]
            found.append(
                {
                    "name": name,
                    "text": str(Shown(answer)),
                    "interval": answer.interval,
                    "case": answer.case,
                    "warnings": answer.warnings,
                    "runs": runs,
                    "device": "; ".join(dict.fromkeys(run.where for run in runs)),
                    "n": "; ".join(dict.fromkeys(run.n for run in runs)),
                    "statistic": query.statistic,
                    "value": query.value,
                    "where": query.where,
                    "over": query.over,
                    "along": query.along,
                }
            )
        return found
