"""Claim of a source as data, and all claims: each file of `subjects/` has those of a subject as `CLAIMS`.

Contract. A claim has the words of the claim and of its verdict, the source's sentence and number, queries on
kept tables and two rules on their answers (`confirmed_if`, `refuted_if`). A claim without rules is "not
measured", and may have queries for what was measured beside it. A third rule, `sentence_if`, holds as long as
the sentence is true. `sentence` and `here` take numbers from queries alone: `{gain}` is the answer with its
interval, `{gain.value}`, `{gain.low}` and `{gain.high}` one of its numbers. A claim with parts has the
verdict that its parts have in common. Line breaks in texts are spaces. A claim is added in the file of its
subject, and nowhere else.
"""

import ast
import functools
import importlib
import pkgutil
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, field, fields
from pathlib import Path
from string import Formatter

from experiments.results.claims.queries import on_a_line
from experiments.results.kept.queries import REFERENCE, Query
from sfc import checks

SOURCES = {"T": "thesis", "L": "lift", "B": "flock", "F": "cavity"}  # letter of an id -> key of SOURCES.md
CONFIRMED, REFUTED, DEPENDS, NOT_MEASURED = "confirmed", "refuted", "depends", "not measured"
WORDS = (CONFIRMED, REFUTED, DEPENDS, NOT_MEASURED)
NUMBERS = ("value", "low", "high", "runs")  # of an answer, in rules and texts
RULES = ("confirmed_if", "refuted_if", "sentence_if")
MOST_WORDS = {"claim": 12, "short": 8, "sentence": 30}
NEEDED = ("claim", "short", "there", "quote", "sentence")
MOST_NUMBERS = 3  # of `sentence` and `here` together; the others are behind the id
SUBJECTS = "experiments.results.claims.subjects"


@dataclass(frozen=True)
class Claim:
    """Claim of a source.

    Args:
        id: letter of the source and number, "T12"; of a part, `L8 <name>`.
        verdict: "confirmed", "refuted", "depends" or "not measured".
        claim: what the source states.
        short: the same for a table.
        there: number of the source.
        quote: the source's sentences, word for word; " ... " where words are left out.
        sentence: on what the verdict depends.
        here: numbers measured here; empty without queries.
        figure: that shows them: its path below `results/reference`; empty for none.
        confirmed_if: rule, see `judgement`; empty if it is not measured.
        refuted_if: rule; empty if it is not measured.
        sentence_if: rule that the sentence needs beyond the other two; empty for none.
        queries: name -> query.
        parts: claims of which this one consists.

    Raises:
        ValueError: a field that is not allowed; the error names claim and field.
    """

    id: str
    verdict: str
    claim: str
    short: str
    there: str
    quote: str
    sentence: str
    here: str = ""
    figure: str = ""
    confirmed_if: str = ""
    refuted_if: str = ""
    sentence_if: str = ""
    queries: Mapping[str, Query] = field(default_factory=dict)
    parts: tuple["Claim", ...] = ()

    def __post_init__(self) -> None:
        """Put each text on one line and check the fields."""
        for each in fields(self):
            if isinstance(text := getattr(self, each.name), str):
                object.__setattr__(self, each.name, on_a_line(text))
        try:
            self._check_texts()
            self._check_rules()
        except ValueError as error:
            raise ValueError(f"claim {self.id}: {error}") from error

    @property
    def source(self) -> str:
        """Key of `results/SOURCES.md`."""
        return SOURCES[self.id[0]]

    @property
    def name(self) -> str:
        """What the id of a part has after that of the whole, in words; empty for a whole claim."""
        return self.id.partition(" ")[2].replace("_", " ")

    @property
    def runs(self) -> tuple[str, ...]:
        """The kept runs that the queries read, each once; `origins` has the facts of each."""
        return tuple(dict.fromkeys(run for query in self.queries.values() for run in query.run))

    @property
    def rules(self) -> dict[str, str]:
        """The rules that the claim has, by name."""
        return {name: rule for name in RULES if (rule := getattr(self, name))}

    def _check_texts(self) -> None:
        """Check id, words, figure, and names in braces.

        Raises:
            ValueError: one that is not allowed.
        """
        checks.word("letter of the id", self.id[:1], SOURCES, "add the source to SOURCES in claim.py")
        checks.word("verdict", self.verdict, WORDS)
        for name, most in MOST_WORDS.items():
            if (over := len((text := getattr(self, name)).split()) - most) > 0:
                raise checks.refuse_value(name, text, f"at most {most} words", f"leave out {over}")
        if empty := [name for name in NEEDED if not getattr(self, name)]:
            raise checks.refuse_value("fields without a text", empty, "none")
        if len(given := placeholders(f"{self.sentence} {self.here}")) > MOST_NUMBERS:
            raise checks.refuse_value("numbers of sentence and here", given, f"at most {MOST_NUMBERS}")
        if self.figure and not (REFERENCE / self.figure).is_file():
            raise checks.refuse_value("figure", self.figure, f"a file below {REFERENCE.name}")
        for name in ("sentence", "here"):
            for shown in placeholders(getattr(self, name)):
                query, _, number = shown.partition(".")
                if query not in self.queries or number not in ("", *NUMBERS):
                    known = ", ".join(self.queries) or "(no queries)"
                    allowed = f"{known}, with .value, .low, .high or .runs"
                    raise checks.refuse_value(name, "{" + shown + "}", allowed)

    def _check_rules(self) -> None:
        """Check that the claim has what its verdict needs.

        Raises:
            ValueError: one rule without the other, a verdict without rules, or a query that is missing.
        """
        judging = [name for name in RULES[:2] if name in self.rules]
        if len(judging) == 1:
            raise checks.refuse_value("rules", judging, " and ".join(RULES[:2]), "add the other")
        if self.parts and (self.rules or self.queries):
            allowed = "none in a claim with parts"
            raise checks.refuse_value("rules", list(self.rules), allowed, "move them there")
        if not self.parts and bool(judging) == (self.verdict == NOT_MEASURED):
            allowed = f"{NOT_MEASURED!r} without rules, another verdict with them"
            raise checks.refuse_value("verdict", self.verdict, allowed)
        if bool(self.queries) != bool(self.here):
            raise checks.refuse_value("here", self.here, "a text beside queries, else none")
        used = {name for rule in self.rules.values() for name in names(rule)}
        if missing := sorted(used - set(self.queries)):
            raise checks.refuse_value("rules", missing, f"queries {', '.join(self.queries)}", "add the query")


@functools.cache
def collected() -> dict[str, Claim]:
    """Collect the claims of all subjects.

    Returns:
        id -> claim, by source and number.

    Raises:
        ValueError: an id that two claims have.
    """
    found: dict[str, Claim] = {}
    for subject, claims in by_subject().items():
        for claim in claims:
            if claim.id in found:
                raise checks.refuse_value("id", claim.id, "one that no other claim has", f"see {subject}.py")
            found[claim.id] = claim
    letters = list(SOURCES)
    return dict(sorted(found.items(), key=lambda pair: (letters.index(pair[0][0]), int(pair[0][1:]))))


@functools.cache
def by_subject() -> dict[str, Sequence[Claim]]:
    """Return name of a file of `subjects/` -> its claims."""
    files = pkgutil.iter_modules([str(Path(__file__).parent / "subjects")])
    return {file.name: importlib.import_module(f"{SUBJECTS}.{file.name}").CLAIMS for file in files}


def every(claims: Mapping[str, Claim]) -> Iterator[Claim]:
    """Yield all claims; instead of a claim with parts, its parts."""
    for claim in claims.values():
        yield from claim.parts or (claim,)


def names(rule: str) -> tuple[str, ...]:
    """Return the queries that a rule names, each once.

    Raises:
        ValueError: it does not parse.
    """
    try:
        nodes = list(ast.walk(ast.parse(rule, mode="eval")))
    except SyntaxError as error:
        raise checks.refuse_value("rule", rule, "a Python expression", str(error)) from error
    return tuple(dict.fromkeys(node.id for node in nodes if isinstance(node, ast.Name)))


def placeholders(template: str) -> list[str]:
    """Return the names in braces of a text, such as `gain.low`."""
    return [name for _, name, _, _ in Formatter().parse(template) if name is not None]
