"""Words that a number must have behind it, told apart from the module that writes them."""

import re
from collections.abc import Iterable

from experiments.results import reliability
from experiments.results.claims.judgement import number
from experiments.results.estimate import Estimate

SHORT = {
    reliability.SMALL: "does not carry over",
    reliability.BUSY: "busy",
    reliability.TICKS: "on ticks",
    reliability.PHASES: "phases disagree",
    reliability.CLOCK: "clock fell",
    reliability.RECORDED: "recording",
    reliability.SERIAL: "in series",
}


def words_of(answer: Estimate) -> list[str]:
    """The words that belong to an answer."""
    few = [f"one {answer.unit}"] if answer.runs == 1 else []
    return [*(SHORT[text] for text in answer.warnings), *few]


def missing(text: str, answers: Iterable[Estimate]) -> list[str]:
    """Numbers of answers in a text, and words that do not stand in the brackets behind each."""
    spaced, found = " ".join(text.split()), []
    for answer in answers:
        shown = re.escape(number(answer.value))
        for word in words_of(answer):
            behind = rf"(?<![\d.]){shown} \([^()]*{word}[^()]*\)"
            if not re.search(behind, spaced):
                found.append(f"{number(answer.value)}: {word}")
    return found
