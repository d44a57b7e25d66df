"""Print the verdicts on all claims, from the kept tables: `python -m experiments.results.claims`."""

import argparse
import sys
import tempfile
from pathlib import Path

from experiments.processes.output import until_output_closes
from experiments.results.claims import commands, table_6_1
from experiments.results.claims import table as page
from experiments.results.claims.claim import collected, every
from experiments.results.claims.judgement import judge
from experiments.results.kept.queries import REFERENCE
from sfc import checks

PAGE = REFERENCE.parent / "README.md"
THESIS = REFERENCE.parent / "details" / "thesis.md"  # has Table 6.1


def main(arguments: list[str] | None = None) -> int:
    """Print, write or check the verdicts.

    Args:
        arguments: the command line, `sys.argv[1:]` if not given.

    Returns:
        0; 1 if a verdict or sentence of a claim does not follow from the tables, or a command failed; 2 for
        wrong input.
    """
    parser = argparse.ArgumentParser(prog="python -m experiments.results.claims", description=__doc__)
    parser.add_argument("id", nargs="*", help="claims to print in full, with their queries: T7 L8")
    parser.add_argument(
        "--write",
        action="store_true",
        help=f"replace the table in results/{PAGE.name}, and Table 6.1 of [thesis] in {THESIS.name}",
    )
    parser.add_argument(
        "--run-commands",
        action="store_true",
        help="run each command of the claims with --quick at its end, in a temporary folder",
    )
    options = parser.parse_args(arguments)
    try:
        claims = collected()
        chosen = [checks.word("claim", name, claims) for name in options.id]
        if chosen and (options.write or options.run_commands):
            raise checks.refuse_value("id", chosen, "none beside --write and --run-commands, which take all")
        if options.run_commands:
            return _run(commands.distinct(every(claims)))
        judgements = [judge(claims[name]) for name in chosen or claims]
        if options.write:
            page.write(page.markdown(judgements), PAGE)
            page.write(table_6_1.markdown(), THESIS, table_6_1.BEGIN, table_6_1.END)
    except (ValueError, OSError) as error:
        print(f"error: {error}", file=sys.stderr)
        return 2
    shown = [line for one in judgements for line in page.details(one)] if chosen else page.lines(judgements)
    print("\n".join(shown))
    faults = [fault for one in judgements for fault in one.faults]
    for fault in faults:
        print(f"error: {fault}; allowed: what the tables say; change the claim", file=sys.stderr)
    return 1 if faults else 0


def _run(lines: list[str]) -> int:
    """Run command lines small; return 1 if one of them failed."""
    failed = 0
    with tempfile.TemporaryDirectory() as folder:
        for line, outcome in commands.run_small(lines, Path(folder)):
            print(f"{outcome}\n  {line}", flush=True)
            failed += outcome.startswith("failed")
    print(f"{len(lines)} commands, {failed} failed")
    return 1 if failed else 0


if __name__ == "__main__":
    with until_output_closes():
        sys.exit(main())
