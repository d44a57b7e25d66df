"""Make one HTML page of all results: `python -m experiments.results.page`.

The page has the answer, verdicts on all claims, charts and the list of runs. It is one file, for which
no network is needed.
"""

import argparse
import importlib.util
import sys
from pathlib import Path

from experiments.core.record import write_bytes
from experiments.core.settings import UsageError
from experiments.processes.output import until_output_closes

NEEDED = {"vl_convert": "vl-convert-python", "jinja2": "jinja2", "markdown_it": "markdown-it-py"}
FILE = "report.html"


def main(arguments: list[str] | None = None) -> int:
    """Write the page, and print its path.

    Args:
        arguments: the command line, `sys.argv[1:]` if not given.

    Returns:
        0; 1 if the page cannot be written; 2 for wrong input.
    """
    parser = argparse.ArgumentParser(prog="python -m experiments.results.page", description=__doc__)
    parser.add_argument(
        "--results",
        type=Path,
        default=Path("results"),
        metavar="DIR",
        help=f"folder for the page, DIR/{FILE} (default: results); it is made if it does not exist",
    )
    parser.add_argument(
        "--run",
        type=Path,
        nargs="+",
        action="extend",
        default=[],
        metavar="RUN",
        help="folders of your own runs, results/<experiment>/<utc>-<hash>, shown beside the kept ones",
    )
    options = parser.parse_args(arguments)
    try:
        _check_libraries()
        made = build(options.run)
    except ValueError as error:
        print(f"error: {error}", file=sys.stderr)
        return 2
    path = options.results / FILE
    try:
        path.parent.mkdir(parents=True, exist_ok=True)
        write_bytes(path, made.encode())
    except OSError as error:
        print(
            f"error: {path} cannot be written: {error}; allowed: a folder with permission to write and with "
            "room; give another by --results",
            file=sys.stderr,
        )
        return 1
    print(path)
    return 0


def build(own: list[Path]) -> str:
    """Return the page.

    Args:
        own: folders of a reader's runs.

    Raises:
        UsageError: a run without table or provenance, or a damaged one.
        ValueError: claims or queries that do not fit the tables.
    """
    from experiments.results.claims.claim import collected
    from experiments.results.claims.judgement import judge
    from experiments.results.page import build as page
    from experiments.results.page import runs  # here, so that --help needs no libraries

    given = runs.own(own)
    return page.html([judge(claim) for claim in collected().values()], runs.kept(), given)


def _check_libraries() -> None:
    """Check that the libraries of the page are installed.

    Raises:
        UsageError: some are missing.
    """
    if missing := [name for module, name in NEEDED.items() if importlib.util.find_spec(module) is None]:
        raise UsageError(
            f"{', '.join(missing)} not installed; allowed: the extra `report`; take pip install -e "
            "'.[report]' in the checkout"
        )


if __name__ == "__main__":
    with until_output_closes():
        sys.exit(main())
