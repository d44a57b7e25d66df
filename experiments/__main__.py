"""List the experiments, one line each, for `python -m experiments`."""

import ast
import difflib
import functools
import re
import shutil
import sys
import textwrap
from collections.abc import Mapping, Sequence
from pathlib import Path
from types import MappingProxyType

from experiments.processes.output import until_output_closes

HEADING = (
    "python -m experiments.<name> runs one of these experiments. --help lists its flags, --quick takes under "
    "a minute."
)
LIST = ("list", "help", "-h", "--help")  # words that ask for the list


@functools.cache
def listing() -> Mapping[str, str]:
    """Return name of every experiment -> first line of its docstring."""
    files = sorted(Path(__file__).parent.glob("*.py"))
    return MappingProxyType(
        {
            path.stem: (ast.get_docstring(ast.parse(path.read_bytes())) or "").split("\n")[0]
            for path in files
            if not path.stem.startswith("_")
        }
    )


def listed(width: int) -> str:
    """Arrange the experiments as text.

    Args:
        width: letters of a line.
    """
    lines = listing()
    indent = max(map(len, lines)) + 4
    parts = [textwrap.fill(HEADING, width), ""]
    for name, line in lines.items():
        first = f"  {name}".ljust(indent)
        parts.append(textwrap.fill(line, width, initial_indent=first, subsequent_indent=" " * indent))
    return "\n".join(parts)


def commands() -> Mapping[str, str]:
    """Return every name that a user may take for a command -> the command of today.

    A former name's command stands in the docstring of its file.
    """
    here = Path(__file__).parent
    rooms = (path.parent.relative_to(here) for path in here.glob("*/**/__main__.py"))
    former = {path.stem: ast.get_docstring(ast.parse(path.read_bytes())) for path in here.glob("former/*.py")}
    present = re.compile("`(python -m .*?)`", re.DOTALL)
    return (
        {name: f"python -m experiments.{name}" for name in listing()}
        | {room.name: f"python -m experiments.{'.'.join(room.parts)}" for room in rooms}
        | {name: now[1] for name, text in former.items() if (now := present.search(text or ""))}
    )


def refusal(word: str) -> str:
    """Say why a word on the command line is refused: no experiment, or a command with a module of its own."""
    known = commands()
    if word in known:
        return f"error: {word} is run as a module: {known[word]}"
    near = difflib.get_close_matches(word, known, n=1, cutoff=0.5)
    remedy = f"did you mean {known[near[0]]}?" if near else "take one of the list above"
    return f"error: unknown experiment {word!r}; allowed: those listed above; {remedy}"


def main(arguments: Sequence[str]) -> int:
    """Print the list of experiments, and return the exit status.

    Args:
        arguments: the command line: nothing, a word of `LIST`, or another, which is refused with status 2.
    """
    text = listed(shutil.get_terminal_size().columns)
    if not arguments or arguments[0] in LIST:
        print(text)
        return 0
    print(f"{text}\n\n{refusal(arguments[0])}", file=sys.stderr)
    return 2


if __name__ == "__main__":
    with until_output_closes():
        sys.exit(main(sys.argv[1:]))
