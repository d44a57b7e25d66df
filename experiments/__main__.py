"""List the experiments, one line each, for `python -m experiments`."""

import ast
from pathlib import Path


def listing() -> dict[str, str]:
    """Return name of every experiment -> first line of its docstring."""
    files = sorted(Path(__file__).parent.glob("*.py"))
    return {
        path.stem: (ast.get_docstring(ast.parse(path.read_text())) or "").split("\n")[0]
        for path in files
        if not path.stem.startswith("_")
    }


if __name__ == "__main__":
    lines = listing()
    width = max(map(len, lines))
    print(
        "python -m experiments.<name> runs one of these; --help lists its flags, --quick takes under a "
        "minute\n"
    )
    for name, line in lines.items():
        print(f"  {name:{width}}  {line}")
