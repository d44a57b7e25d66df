"""Curves from grammar files: an L-system in TOML.

    name = "coil"
    dim = 2
    axiom = "A"
    [rules]
    A = ">BF<AFA<FB>"
    B = "<AF>BFB>FA<"

The commands of the rules are those of `sfc.automaton.lsystem`.
"""

import stat
import tomllib
from pathlib import Path

from sfc import checks
from sfc.automaton.curve import Curve
from sfc.automaton.lsystem import GrammarError, curve_from_grammar

ALLOWED = "name (text), dim (2 or 3), axiom (text), and a table [rules] of one character = its pattern"
KEYS = ("name", "dim", "axiom", "rules")
MOST_BYTES = 2**20  # of a file; a grammar of the largest base in 3D takes less than a tenth


def read_curve(path: str | Path) -> Curve:
    """Read a curve from a grammar file.

    Args:
        path: of the file. Without `axiom`, the symbol of the first rule is the axiom.

    Returns:
        The curve. `sfc.register(curve)` makes it available by name, as the built-in ones are.

    Raises:
        TypeError: an object that is no path.
        GrammarError: a file that cannot be read, is no regular file, is larger than `MOST_BYTES` or is no
            TOML; a key that is missing, unknown or of a wrong type; or a grammar that is no space-filling
            curve. The message names the file.
    """
    path = checks.path("path", path)
    where = f"curve file {path}"
    try:
        status = path.stat()
        if not stat.S_ISREG(status.st_mode):  # a device may be endless, and a pipe without a writer blocks
            raise GrammarError(f"{where} is no regular file; allowed: a file of TOML with {ALLOWED}")
        with path.open("rb") as file:
            data = file.read(MOST_BYTES + 1)  # bounded also for a file that grows or reports no size
        if len(data) > MOST_BYTES:
            found = f"at least {max(status.st_size, len(data)):,} bytes"
            raise GrammarError(f"{where} has {found}; allowed: up to {MOST_BYTES:,}; is it another file?")
        text = data.decode("utf-8-sig")  # some editors write a byte order mark
    except (OSError, UnicodeError) as error:
        raise GrammarError(f"{where}: {error}; allowed: TOML with {ALLOWED}") from error
    return parse_curve(text, where)


def parse_curve(text: str, where: str = "grammar") -> Curve:
    """Make a curve from the text of a grammar file.

    Args:
        text: TOML, as in a file.
        where: name of the file or the grammar, for error messages.

    Returns:
        The curve.

    Raises:
        TypeError: a text that is no str.
        GrammarError: as `read_curve`.
    """
    checks.instance("text", text, str, "a str of TOML", "decode bytes first")
    checks.instance("where", where, str, "a str")
    try:
        given = tomllib.loads(text)
    except RecursionError as error:
        raise GrammarError(f"{where}: nested too deeply; allowed: TOML with {ALLOWED}") from error
    except (ValueError, OverflowError) as error:
        raise GrammarError(f"{where}: {error}; allowed: TOML with {ALLOWED}") from error
    for key in sorted(set(given) - set(KEYS)):
        raise GrammarError(f"{where}: unknown key {checks.shown(key)}; allowed: {ALLOWED}")
    for key in KEYS:
        if key not in given and key != "axiom":
            raise GrammarError(f"{where}: no {key!r}; allowed: {ALLOWED}")
    rules = given["rules"]
    axiom = given.get("axiom", next(iter(rules), "") if isinstance(rules, dict) else "")
    try:
        return curve_from_grammar(given["name"], given["dim"], axiom, rules)
    except (TypeError, ValueError) as error:
        raise GrammarError(f"{where}: {error}") from error
