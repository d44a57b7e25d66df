"""Command lines of the claims: parse them, and run them with `--quick`."""

import importlib
import shlex
import subprocess
import sys
from collections.abc import Iterable, Iterator
from pathlib import Path
from types import ModuleType

from experiments.core.command_line import parsed
from experiments.core.settings import Settings, UsageError
from experiments.results.claims.claim import Claim
from experiments.results.claims.origins import COMMAND, origins
from md import backend as backends
from sfc import checks

EXPERIMENTS = Path(__file__).parents[2]
CUDA = "cuda"
LAST_LINES = 3  # of a run that failed


def distinct(claims: Iterable[Claim]) -> list[str]:
    """Return the command lines of claims, each once, in their order."""
    return list(dict.fromkeys(one.command for claim in claims for one in origins(claim)))


def parse(line: str) -> Settings:
    """Parse a command line by the parser of its experiment, without running it.

    Args:
        line: `python -m experiments.<name>` with its flags.

    Returns:
        The settings that it sets.

    Raises:
        UsageError: an unknown experiment or flag, or settings that are not allowed.
    """
    return parsed(*_split(line))


def run_small(lines: Iterable[str], results: Path) -> Iterator[tuple[str, str]]:
    """Run command lines as they are written, with `--quick` at their end, which makes them small.

    Args:
        lines: command lines.
        results: folder for their results.

    Yields:
        Each line and its outcome: "done", "skipped: ..." for the CUDA backend where it cannot run, or
        "failed: ..." with the end of its output.

    Raises:
        UsageError: see `parse`.
    """
    for line in lines:
        if parse(line).backend == CUDA and (reason := backends.why_not()):
            yield line, f"skipped: {reason}"
            continue
        module, arguments = _split(line)
        whole = [sys.executable, "-m", module.__name__, *arguments, "--quick", "--results", str(results)]
        ended = subprocess.run(whole, capture_output=True, encoding="utf-8", errors="replace", check=False)
        end = " / ".join((ended.stderr or ended.stdout).strip().splitlines()[-LAST_LINES:])
        yield line, "done" if ended.returncode == 0 else f"failed: exit status {ended.returncode}: {end}"


def _split(line: str) -> tuple[ModuleType, list[str]]:
    """Return the experiment of a command line and its arguments.

    Raises:
        UsageError: an unknown experiment.
    """
    name, *arguments = shlex.split(checks.text("line", line).removeprefix(COMMAND))
    known = sorted(path.stem for path in EXPERIMENTS.glob("*.py") if not path.stem.startswith("_"))
    if name not in known or not line.startswith(COMMAND):
        allowed = ", ".join(known)
        raise UsageError(
            f"unknown experiment {name!r} in {line!r}; allowed: {COMMAND}<name>, one of {allowed}"
        )
    return importlib.import_module(f"experiments.{name}"), arguments
