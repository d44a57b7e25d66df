"""Claims of the sources as data: read and check `results/verdicts.toml`.

Contract. Each claim is a table of the file. It has the words of the claim and of its verdict, the number of
the source, queries on committed tables and two rules on their answers (`confirmed_if`, `refuted_if`). A claim
without them is "not measured", and may have queries for what was measured beside it. A third rule,
`sentence_if`, holds as long as the sentence is true. `sentence` and `here`
take numbers from queries alone: `{gain}` is the answer with its interval, `{gain.value}`, `{gain.low}` and
`{gain.high}` one of its numbers. L8 has parts, a table each, and the verdict that they have in common.
"""

import re
import tomllib
from collections.abc import Iterator, Mapping
from dataclasses import dataclass, fields
from pathlib import Path
from string import Formatter
from typing import Any

from experiments.results.claims.rules import DEPENDS, FIELDS, NOT_MEASURED, WORDS, Rule
from experiments.results.kept.queries import REFERENCE, Query
from sfc import checks

RESULTS = REFERENCE.parent
FILE, SOURCES = RESULTS / "verdicts.toml", RESULTS / "SOURCES.md"
IDS = (*(f"T{k}" for k in range(1, 17)), *(f"L{k}" for k in range(1, 9)), "B1", "F1", "F2", "F3")
PARTS = {"L8": ("bounded_coordinates", "far_in_memory", "memory_at_low_density", "long_lists", "lock_free")}
MOST_WORDS = {"claim": 12, "short": 8, "sentence": 30}
TEXTS = ("claim", "short", "source", "verdict", "sentence", "there")
SHOWN = ("here", "figure", "commit", "device", "n")  # of a claim with queries, with its command lines
MEASURED = (*SHOWN, "command")
RULES = ("confirmed_if", "refuted_if")
EVERY_RULE = (*RULES, "sentence_if")
COMMAND = "python -m experiments."


@dataclass(frozen=True)
class Claim:
    """Claim of a source.

    Args:
        id: T1 to T16, L1 to L8, B1, F1 to F3; of a part, `L8 <name>`.
        claim: what the source states.
        short: the same for a table.
        source: key of `results/SOURCES.md`.
        verdict: "confirmed", "refuted", "depends" or "not measured".
        sentence: reason for the verdict.
        there: number of the source.
        here: numbers measured here; empty without queries, like those that follow.
        figure: its path below `results/reference`.
        command: command lines that measure it again.
        commit: commit of the code that measured it, or of the same tree.
        device: where it was measured.
        n: sizes.
        confirmed_if: rule; None if it is not measured.
        refuted_if: rule; None if it is not measured.
        sentence_if: rule that the sentence needs beyond the other two; None for none.
        queries: name -> query.
        parts: claims of which this one consists.
    """

    id: str
    claim: str
    short: str
    source: str
    verdict: str
    sentence: str
    there: str
    here: str
    figure: str
    command: tuple[str, ...]
    commit: str
    device: str
    n: str
    confirmed_if: Rule | None
    refuted_if: Rule | None
    sentence_if: Rule | None
    queries: Mapping[str, Query]
    parts: tuple["Claim", ...] = ()


def read(path: Path = FILE) -> dict[str, Claim]:
    """Read the claims.

    Args:
        path: of the file.

    Returns:
        id -> claim, in the order of the ids.

    Raises:
        ValueError: no TOML, a claim that is missing or unknown, or a field that is missing, unknown or not
            allowed; the error names the claim and the field.
    """
    tables = read_tables(path, "claim")
    if set(tables) != set(IDS):
        odd = ", ".join(sorted(set(tables) ^ set(IDS)))
        raise ValueError(f"{path} differs in {odd}; allowed: tables {', '.join(IDS)}, each once")
    sources = set(re.findall(r"^\| \[(\w+)\]", SOURCES.read_text(encoding="utf-8"), re.MULTILINE))
    return {name: _claim(name, tables[name], sources) for name in IDS}


def read_tables(path: Path, each: str) -> dict[str, Any]:
    """Read the tables of a TOML file.

    Args:
        path: of the file.
        each: what a table describes, in a word, for the error.

    Raises:
        ValueError: it cannot be read, or is no TOML.
    """
    try:
        return tomllib.loads(checks.path("path", path).read_text(encoding="utf-8"))
    except (OSError, UnicodeDecodeError, tomllib.TOMLDecodeError) as error:
        raise ValueError(
            f"{path} cannot be read: {error}; allowed: TOML with a table for each {each}"
        ) from error


def words(text: str) -> int:
    """Count the words of a text; a placeholder is one word."""
    return len(text.split())


def every(claims: Mapping[str, Claim]) -> Iterator[Claim]:
    """Yield all claims; instead of a claim with parts, its parts."""
    for claim in claims.values():
        yield from claim.parts or (claim,)


def common(verdicts: tuple[str, ...]) -> str:
    """Return the verdict that all parts of a claim have, or "depends"."""
    return verdicts[0] if len(set(verdicts)) == 1 else DEPENDS


def _claim(name: str, table: Any, sources: set[str], part: str = "") -> Claim:
    """Build a claim from its table.

    Raises:
        ValueError: see `read`; also of a class that TOML has and the field has not.
    """
    names = () if part else PARTS.get(name, ())
    name = f"{name} {part}" if part else name
    try:
        checks.instance("table", table, dict, "a table of fields")
        _check_names(table, (*TEXTS, *MEASURED, *EVERY_RULE, "queries", *names), (*TEXTS, *names))
        queries = {key: query_of(key, given) for key, given in table.get("queries", {}).items()}
        texts = {key: checks.text(key, table[key]) for key in (*TEXTS, *SHOWN) if key in table}
        commands = _commands(table.get("command", ()))
        rules = {key: Rule(table[key]) for key in EVERY_RULE if key in table}
        _check_texts(texts, queries, sources)
        _check_verdict(texts, rules, queries, bool(names))
        if queries and (absent := [key for key in MEASURED if key not in table]):
            raise checks.refuse_value("fields", absent, f"{', '.join(MEASURED)} beside queries", "add them")
    except (TypeError, ValueError) as error:
        raise ValueError(f"claim {name}: {error}") from error
    parts = tuple(_claim(name, table[key], sources, key) for key in names)
    optional: dict[str, Any] = dict.fromkeys(SHOWN, "") | dict.fromkeys(EVERY_RULE)
    return Claim(id=name, **optional | texts | rules, command=commands, queries=queries, parts=parts)


def _check_names(table: dict, known: tuple[str, ...], needed: tuple[str, ...]) -> None:
    unknown, missing = sorted(set(table) - set(known)), [key for key in needed if key not in table]
    if unknown or missing:
        raise ValueError(
            f"fields unknown: {', '.join(unknown) or 'none'}; missing: {', '.join(missing) or 'none'}; "
            f"allowed: {', '.join(known)}"
        )


def query_of(name: str, table: Any) -> Query:
    """Build a query from its table; `run` and `each` may be one str.

    Raises:
        ValueError: a field that is unknown, missing or not allowed, or a name that is no identifier.
    """
    try:
        if not name.isidentifier():
            raise checks.refuse_value("name", name, "letters, digits and _")
        known = tuple(field.name for field in fields(Query))
        _check_names(checks.instance("table", table, dict, "a table"), known, known[:4])
        lists = {key: table[key] for key in ("run", "each") if key in table}
        return Query(**table | {key: (v,) if isinstance(v, str) else tuple(v) for key, v in lists.items()})
    except (TypeError, ValueError) as error:
        raise ValueError(f"query {name}: {error}") from error


def _check_texts(texts: dict[str, str], queries: dict[str, Query], sources: set[str]) -> None:
    """Check words, source, figure and placeholders.

    Raises:
        ValueError: one that is not allowed.
    """
    for key, most in MOST_WORDS.items():
        if (count := words(texts[key])) > most:
            raise checks.refuse_value(key, texts[key], f"at most {most} words", f"leave out {count - most}")
    checks.word("source", texts["source"], sorted(sources), f"add it to {SOURCES.name}")
    checks.word("verdict", texts["verdict"], WORDS)
    for key in ("sentence", "here"):
        for name in placeholders(texts.get(key, "")):
            query, _, field = name.partition(".")
            if query not in queries or field not in ("", *FIELDS):
                allowed = (
                    f"placeholders {', '.join(queries) or '(none: no queries)'}, with .value, .low or .high"
                )
                raise checks.refuse_value(key, "{" + name + "}", allowed)
    if "figure" in texts and not (REFERENCE / texts["figure"]).is_file():
        raise checks.refuse_value("figure", texts["figure"], f"a file below {REFERENCE.name}")


def _commands(given: Any) -> tuple[str, ...]:
    """Return command lines from one, or from a list of them.

    Raises:
        TypeError: no str.
        ValueError: a line of another program.
    """
    lines = (given,) if isinstance(given, str) else checks.sequence("command", given, "command lines")
    for line in lines:
        if not checks.text("command", line).startswith(COMMAND):
            raise checks.refuse_value("command", line, f"a command line that begins with {COMMAND!r}")
    return tuple(lines)


def _check_verdict(
    texts: dict[str, str], rules: dict[str, Rule], queries: dict[str, Query], has_parts: bool
) -> None:
    """Check that a claim has what its verdict needs.

    Raises:
        ValueError: one rule without the other, rules without queries, a query without a use, or a verdict
            without rules.
    """
    judging = [key for key in RULES if key in rules]
    if len(judging) == 1:
        raise checks.refuse_value("rules", judging, " and ".join(RULES), "add the other")
    if has_parts:
        if rules or queries:
            raise checks.refuse_value(
                "rules", list(rules), "none in a claim with parts", "move them to its parts"
            )
    elif bool(judging) == (texts["verdict"] == NOT_MEASURED):
        allowed = f"{NOT_MEASURED!r} without rules, another verdict with them"
        raise checks.refuse_value("verdict", texts["verdict"], allowed)
    used = {name for rule in rules.values() for name in rule.names}
    if missing := sorted(used - set(queries)):
        raise checks.refuse_value(
            "rules", missing, f"queries {', '.join(queries) or '(none)'}", "add the query"
        )
    shown = {
        name.partition(".")[0] for key in ("sentence", "here") for name in placeholders(texts.get(key, ""))
    }
    if idle := sorted(set(queries) - used - shown):
        raise checks.refuse_value("queries", idle, "queries in a rule, or in `sentence` or `here`")


def placeholders(template: str) -> list[str]:
    """Return the names in braces of a text, such as `gain.low`."""
    return [name for _, name, _, _ in Formatter().parse(template) if name is not None]
