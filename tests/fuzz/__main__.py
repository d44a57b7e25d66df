"""Try one input again: python -m tests.fuzz FAMILY --seed 0 --number 17, with --here for a debugger.

Many inputs: FUZZ_INPUTS=5000 FUZZ_SEED=1 FUZZ_FAMILY="curves boxes" python -m pytest -m nightly tests/fuzz
"""

import argparse
import os
import sys
import tempfile
from pathlib import Path

from tests.fuzz.families import SHARES, family
from tests.fuzz.harness import alone
from tests.fuzz.worker import FAILURES, Task, trial


def main() -> None:
    """Read the command line; the exit status is 1 where the input failed."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawTextHelpFormatter)
    parser.add_argument("family", choices=SHARES)
    parser.add_argument("--seed", type=int, default=0)
    parser.add_argument("--number", type=int, required=True)
    parser.add_argument("--here", action="store_true", help="in this process, and the smallest that fails")
    given = parser.parse_args()
    with tempfile.TemporaryDirectory() as folder:
        if given.here:
            os.chdir(folder)  # inputs write files
            family(given.family).prepare()
            found = trial(given.family).smallest(given.seed, given.number)
        else:
            found = alone(Task(given.family, given.seed, given.number, 1), folder=Path(folder))
    print(*found, sep="\n")
    sys.exit(found.verdict in FAILURES)


if __name__ == "__main__":
    main()
