"""Table of the verdicts: lines for a terminal, and markdown; a table is put between two marks of a page."""

from collections.abc import Iterable, Sequence
from pathlib import Path

from experiments.core.record import write_bytes
from experiments.results.claims.claim import WORDS, placeholders
from experiments.results.claims.judgement import Judgement, Shown, filled
from experiments.results.claims.origins import origins
from sfc import checks

BEGIN, END = "<!-- verdicts: begin -->", "<!-- verdicts: end -->"
WIDTH = 100  # characters of a line in a terminal
USUAL = "; 3 runs"  # which the page says once


def lines(judgements: Iterable[Judgement]) -> list[str]:
    """Return a line for each claim, and one that counts the verdicts, of at most 100 characters each.

    Args:
        judgements: of the claims.
    """
    judgements = list(judgements)
    longest = max((len(one.claim.short) for one in judgements), default=0)
    found = [_line(one, longest) for one in judgements]
    return [*found, f"{len(judgements)} claims: {counted(judgements)}"]


def counted(judgements: Sequence[Judgement]) -> str:
    """Count the verdicts in words."""
    counts = {word: sum(one.word == word for one in judgements) for word in WORDS}
    return ", ".join(f"{count} {word}" for word, count in counts.items() if count)


def details(judgement: Judgement) -> list[str]:
    """Return all there is on a claim: its words, rules, queries and their answers, a line each."""
    claim = judgement.claim
    found = [
        f"{claim.id}: {claim.claim} [{claim.source}: {claim.there}]",
        f'  the source: "{claim.quote}"',
        f"  {judgement.word}: {judgement.sentence}",
    ]
    found += [f"  {name}: {rule}" for name, rule in claim.rules.items()]
    for name, answer in judgement.answers.items():
        query, case = claim.queries[name], answer.case and f", {answer.case}"
        found.append(f"  {name} = {filled('{x}', {'x': answer})}, {answer.interval}{case}")
        over = query.over and f" over {query.over}"
        found.append(f"    {query.statistic} of {query.value} in {', '.join(query.run)}: {query.where}{over}")
    found += [f"  figure: {claim.figure}"] if claim.figure else []
    for one in origins(claim):
        found += [f"  {one.run}: {one.device}; n {one.n}; commit {one.commit}", f"    {one.command}"]
    return found + [line for part in judgement.parts for line in details(part)]


def markdown(judgements: Iterable[Judgement], reference: str = "reference") -> str:
    """Return the table of claims in markdown, without spaces beside the bars, which count as words.

    Args:
        judgements: of the claims.
        reference: folder of the runs, as seen from the page.
    """
    rows = ["|id, figure|claim|verdict|depends on; here (with interval)|there|", "|---|---|---|---|---|"]
    for one in judgements:
        claim = one.claim
        id = f"[{claim.id}]({reference}/{claim.figure})" if claim.figure else claim.id
        cells = (id, claim.short, one.word, one.cell.removesuffix(USUAL), claim.there)
        rows.append("|" + "|".join(cell.replace("|", "\\|") for cell in cells) + "|")
    return "\n".join(rows)


def write(table: str, page: Path, first: str = BEGIN, last: str = END) -> None:
    """Put a table between the two marks of a page.

    Args:
        table: in markdown.
        page: file that has the lines of the two marks.
        first: mark above the table.
        last: mark below it.

    Raises:
        ValueError: a page that cannot be read, or without the two marks, once each and in order.
        OSError: it cannot be written; the old page is unchanged.
    """
    try:
        text = checks.path("page", page).read_text(encoding="utf-8")
    except (OSError, UnicodeDecodeError) as error:
        raise ValueError(f"{page} cannot be read: {error}; allowed: a page in markdown") from error
    begin, end = text.find(first), text.find(last)
    if text.count(first) != 1 or text.count(last) != 1 or end < begin:
        raise ValueError(
            f"{page} has {text.count(first)} marks {first} and {text.count(last)} marks {last}; allowed: one "
            "of each, in this order; add both lines where the table belongs"
        )
    write_bytes(page, f"{text[: begin + len(first)]}\n{table}\n{text[end:]}".encode())


def _first(judgement: Judgement) -> str:
    """Return the first number measured here with its interval, and what it rests on."""
    if judgement.parts:
        return counted(judgement.parts)
    if not (names := placeholders(judgement.claim.here)):
        return judgement.here
    name = names[0].partition(".")[0]
    answer = judgement.answers[name]
    return str(Shown(answer)) if answer.caveats else f"{Shown(answer)}, {answer.support}"


def _line(judgement: Judgement, longest: int) -> str:
    """Return the line of a claim; what is too wide is cut from the claim, never from its number."""
    head, first = f"{judgement.claim.id:4}{judgement.word:14}", _first(judgement)
    if judgement.parts:
        first = _cut(first, WIDTH - len(head) - longest - 2)
    room = min(longest, WIDTH - len(head) - len(first) - 2)
    return f"{head}{_cut(judgement.claim.short, room):{room}}  {first}".rstrip()


def _cut(text: str, width: int) -> str:
    return text if len(text) <= width else f"{text[: max(width - 3, 0)].rstrip()}..."
