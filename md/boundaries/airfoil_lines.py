"""Lines of a file of coordinates: encodings, markup, separators, decimal marks and forms of numbers."""

from __future__ import annotations

import codecs
import html
import math
import re
from dataclasses import dataclass
from pathlib import Path

MOST_BYTES = 10_000_000  # of a file of coordinates
NUMBER = re.compile(r"[+-]?(?:[0-9]+\.?[0-9]*|\.[0-9]+)(?:[eEdD][+-]?[0-9]+)?")  # D as Fortran writes it
INFINITE = re.compile("[+-]?(?:nan|inf|infinity)", re.IGNORECASE)
BROKEN = {mark: re.compile(rf"[+-]?(?:[0-9]+[{mark}].*|[{mark}][0-9].*)") for mark in ".,"}
MISSING = re.compile(r"[-*?.]*")  # in the place of a number
SEPARATORS = {".": (";", "|", ",", None), ",": (";", "|", None)}  # of a decimal mark; None: blanks
DIGITS = re.compile(r"[-+0-9.]+[\s,;|]+[-+0-9.,;|\s]*")  # and no letters, of two words at least
BRACKETS = str.maketrans(dict.fromkeys("()[]{}\"'", " "))
SIGNS = str.maketrans({"\N{MINUS SIGN}": "-", "\N{NO-BREAK SPACE}": " ", "\x1a": " "})  # 1a: end, in DOS
TAG = re.compile(r"</?[a-zA-Z!][^<>]*>")
MARKED = {codecs.BOM_UTF8: "utf-8-sig", codecs.BOM_UTF16_LE: "utf-16", codecs.BOM_UTF16_BE: "utf-16"}


@dataclass(frozen=True)
class Line:
    """Line of a file that is not blank.

    Attributes:
        path: of the file.
        row: number of the line, from 1.
        text: without markup, and without blanks at both ends.
        words: parts between separators, without brackets.
        numbers: as many as words; None if a word is no finite number.
        comment: text after the numbers, from # or !, that is in no word.
        mark: decimal mark of the file.
    """

    path: Path
    row: int
    text: str
    words: tuple[str, ...]
    numbers: tuple[float, ...] | None
    comment: str
    mark: str

    @property
    def is_point(self) -> bool:
        """Whether the line has two or three numbers and nothing else."""
        return self.numbers is not None and len(self.numbers) in (2, 3)

    @property
    def is_damaged(self) -> bool:
        """Whether the line looks like numbers of which one is missing, broken or not finite, or one too many.

        These are lines of numbers alone, or of digits, signs, marks and separators; and lines of up to three
        words of which the first one is a number with a decimal mark, or that all are numbers, NaN, infinity,
        begin as a number with a decimal mark, or stand for a missing number, but not all of the last kind.
        """
        if self.numbers is not None or DIGITS.fullmatch(self.text):
            return True
        first, broken = self.words[0], BROKEN[self.mark]
        found = [
            math.isfinite(_number(word, self.mark))
            or bool(INFINITE.fullmatch(word) or broken.fullmatch(word))
            for word in self.words
        ]
        all_are = all(some or MISSING.fullmatch(word) for some, word in zip(found, self.words, strict=True))
        marked = self.mark in first and math.isfinite(_number(first, self.mark))
        return len(self.words) <= 3 and (marked or (all_are and any(found)))

    def refused(self, reason: str) -> ValueError:
        """Create an error that names the file, the line and its text."""
        return ValueError(f"{self.path}, line {self.row}: {self.text!r:.100}{reason}")


def lines_of(path: Path) -> list[Line]:
    """Read the lines of a file that are not blank.

    Encodings are UTF-8, UTF-16 with a byte order mark, or else Windows-1252, which has the letters of
    Latin-1. Lines end as on any system. Tags of HTML are left out. Numbers are separated by semicolons, bars,
    commas or blanks, the first of them that a line has; may be in brackets or quotes; and have an exponent of
    e or d. Commas are decimal marks if more lines are points that way.

    Args:
        path: of the file.

    Returns:
        The lines.

    Raises:
        ValueError: too many bytes, or no text.
        OSError: the file cannot be read.
    """
    written = []
    for row, raw in enumerate(re.split(r"\r\n|\r|\n", _content(path)), 1):
        if text := html.unescape(TAG.sub(" ", raw)).translate(SIGNS).strip():
            written.append((row, text))
    marks = SEPARATORS if any("," in text for _, text in written) else "."
    readings = [[_line(path, row, text, mark) for row, text in written] for mark in marks]
    return max(readings, key=lambda lines: sum(line.is_point for line in lines))  # the first one if equal


def _content(path: Path) -> str:
    """Decode a file.

    Raises:
        ValueError: too many bytes, or no text.
    """
    with open(path, "rb") as file:
        raw = file.read(MOST_BYTES + 1)
    if len(raw) > MOST_BYTES:
        raise ValueError(f"{path} has more than {MOST_BYTES} bytes; allowed: a file of coordinates")
    coding = next((coding for mark, coding in MARKED.items() if raw.startswith(mark)), "utf-8")
    try:
        content = raw.decode(coding)
    except UnicodeDecodeError:
        content = raw.decode("cp1252", errors="replace") if coding == "utf-8" else "\0"
    if "\0" in content:
        raise ValueError(
            f"{path} has zero bytes, or is no valid {coding}; allowed: text in UTF-8, in "
            "Windows-1252, or in UTF-16 with a byte order mark; store the file in UTF-8"
        )
    return content


def _line(path: Path, row: int, text: str, mark: str) -> Line:
    """Parse a line for a decimal mark."""
    words, comment = _words(text, mark), ""
    numbers = _numbers(words, mark)
    if numbers is None and (sign := re.search("[#!]", text)):
        ahead = _words(text[: sign.start()], mark)
        if (numbers := _numbers(ahead, mark)) is not None:
            words, comment = ahead, text[sign.start() :]
    return Line(path, row, text, words, numbers, comment, mark)


def _words(text: str, mark: str) -> tuple[str, ...]:
    """Split a text; an empty word is a number left out. A separator at the end is left out."""
    text = text.translate(BRACKETS).strip()
    text = text[:-1].rstrip() if text[-1:] in tuple(",;|") else text
    separator = next(separator for separator in SEPARATORS[mark] if separator is None or separator in text)
    return tuple(word.strip() for word in text.split(separator)) or ("",)


def _numbers(words: tuple[str, ...], mark: str) -> tuple[float, ...] | None:
    """Parse words; None if one is no finite number."""
    numbers = tuple(_number(word, mark) for word in words)
    return numbers if all(map(math.isfinite, numbers)) else None


def _number(word: str, mark: str) -> float:
    """Parse a word; NaN if it is no number, infinite if it is a too large one."""
    if mark == ",":
        word = "" if "." in word else word.replace(",", ".", 1)
    return float(re.sub("[dD]", "e", word)) if NUMBER.fullmatch(word) else math.nan
