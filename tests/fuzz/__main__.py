"""Try inputs: python -m tests.fuzz [family ...] --inputs 5000 --seed 1, or one again with --number 17."""

import argparse
import os
import sys
import tempfile
from pathlib import Path

from tests.fuzz.families import families
from tests.fuzz.harness import FAILURES, TIMEOUT, alone, campaign
from tests.fuzz.worker import Task, tried


def main() -> None:
    """Read the command line; the exit status is 1 where an input failed."""
    parser = argparse.ArgumentParser(description=__doc__)
    known = families()
    parser.add_argument("family", nargs="*", help=", ".join(known))
    parser.add_argument("--inputs", type=int, default=2000)
    parser.add_argument("--seed", type=int, default=0)
    parser.add_argument("--workers", type=int, default=2)
    parser.add_argument("--batch", type=int, default=500)
    parser.add_argument("--number", type=int, help="one input, alone")
    parser.add_argument("--here", action="store_true", help="in this process, for a debugger")
    parser.add_argument("--quiet", action="store_true")
    parser.add_argument("--timeout", type=float, default=TIMEOUT, help="seconds of silence that are a hang")
    parser.add_argument("--shown", type=int, default=25, help="causes that are told")
    given = parser.parse_args()
    if given.number is not None:
        (name,) = given.family
        with tempfile.TemporaryDirectory() as folder:
            if given.here:
                os.chdir(folder)  # inputs write files
                known[name].prepare()
            task = Task(name, given.seed, given.number, 1)
            found = (
                tried(known[name], given.seed, given.number)
                if given.here
                else alone(task, given.timeout, Path(folder))
            )
        print(found.verdict, found.told, found.cause, found.more, sep="\n")
        sys.exit(found.verdict in FAILURES)
    shares = {name: known[name].share for name in given.family or known}
    tell = (lambda _: None) if given.quiet else (lambda line: print(line, flush=True))
    report = campaign(
        shares,
        given.inputs,
        given.seed,
        workers=given.workers,
        batch=given.batch,
        timeout=given.timeout,
        tell=tell,
    )
    print(report.told(given.shown))
    sys.exit(bool(report.kept))


if __name__ == "__main__":
    main()
