"""A curve from a few lines of text: a grammar in a TOML file, without any code.

    name = "coil"
    dim = 2
    axiom = "A"
    [rules]
    A = ">BF<AFA<FB>"
    B = "<AF>BFB>FA<"

The commands of the rules are those of `sfc.lsystem`.
"""

import tomllib
from pathlib import Path

from sfc.curve import Curve
from sfc.lsystem import GrammarError, curve_from_grammar

KEYS = {"name": str, "dim": int, "axiom": str, "rules": dict}


def read_curve(path: str | Path) -> Curve:
    """The curve that a grammar file describes.

    Args:
        path: of the file; `axiom` may be left out for the first rule's symbol.

    Returns:
        The curve. `sfc.register(curve)` makes its name known wherever a built-in curve's is.

    Raises:
        GrammarError: a file that cannot be read or is no TOML, a key that is missing, unknown or of a wrong
            type, or a grammar that is no space-filling curve; names the file.
    """
    path = Path(path)
    try:
        text = path.read_text(encoding="utf-8-sig")  # some editors write a mark first
    except (OSError, UnicodeDecodeError) as error:
        raise GrammarError(f"curve file {path}: {error}; allowed: TOML with {_allowed()}") from error
    return parse_curve(text, f"curve file {path}")


def parse_curve(text: str, where: str = "grammar") -> Curve:
    """The curve that the text of a grammar file describes.

    Args:
        text: TOML, as in a file.
        where: whose text it is, to begin a message with.

    Returns:
        The curve.

    Raises:
        GrammarError: as `read_curve`.
    """
    try:
        given = tomllib.loads(text)
    except tomllib.TOMLDecodeError as error:
        raise GrammarError(f"{where}: {error}; allowed: TOML with {_allowed()}") from error
    for key in sorted(set(given) - set(KEYS)):
        raise GrammarError(f"{where}: unknown key {key!r}; allowed: {_allowed()}")
    for key, kind in KEYS.items():
        if key not in given and key != "axiom":
            raise GrammarError(f"{where}: no {key!r}; allowed: {_allowed()}")
        if key in given and (not isinstance(given[key], kind) or isinstance(given[key], bool)):
            raise GrammarError(f"{where}: {key} = {given[key]!r}; allowed: {_allowed()}")
    rules = given["rules"]
    for symbol, pattern in rules.items():
        if len(symbol) != 1 or not isinstance(pattern, str):
            raise GrammarError(f"{where}: rule {symbol!r} = {pattern!r}; allowed: one character = a string")
    if not rules or not given["name"]:
        raise GrammarError(f"{where}: an empty name or no rule; allowed: {_allowed()}")
    axiom = given.get("axiom", next(iter(rules)))
    try:
        return curve_from_grammar(given["name"], given["dim"], axiom, rules)
    except GrammarError as error:
        raise GrammarError(f"{where}: {error}") from error


def _allowed() -> str:
    return "name (text), dim (2 or 3), axiom (text), and a table [rules] of one character = its pattern"
