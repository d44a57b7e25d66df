"""Entry points of the programs whose output is recorded: the file that changes when a module moves.

Everything else in this room reads what the programs print and write.
"""

from __future__ import annotations

import contextlib
import importlib.util
import io
import runpy
import sys
import warnings
from collections.abc import Iterator, Sequence
from pathlib import Path
from typing import Any

ROOT = Path(__file__).parents[2]
REFERENCE = ROOT / "results" / "reference"

# Name of the experiment in the folder of a kept run -> module that draws it now, where they differ.
MERGED = {
    "fence": "contacts", "grid_limits": "contacts", "cache_map": "cache_hit", "gas_ladder": "ladder",
    "wear": "decay", "speed_up": "timing", "flock_decay": "decay",
}  # fmt: skip
VERDICTS = ("experiments.verdicts",)
PAGE = ("experiments.report",)  # beside `--results FOLDER`, into which it writes the page
PAGE_FILE = "report.html"
WRITERS = (("experiments.verdicts", "--write"), ("experiments.reference", "list"))  # of pages of results
PNG = "experiments.drawing.style.saving._write_png"  # it writes a figure with few colours
WARM = ("matplotlib.pyplot", "seaborn", "pandas", "tyro", "md", "pyarrow.parquet", "scipy.optimize")


def replot(run: Path, out: Path) -> tuple[str, ...]:
    """Module and arguments that draw a kept run again.

    Args:
        run: its folder, `<experiment>/<name>`.
        out: folder of the figures.
    """
    name = run.parent.name
    return f"experiments.{MERGED.get(name, name)}", "--replot", str(run), "--out", str(out)


def answers() -> Iterator[tuple[str, dict[str, Any]]]:
    """Yield the full name of each query of a claim or a page, and its answer in full precision.

    The answer of a claim is its verdict, its sentence and what its cell holds.
    """
    from experiments.results.claims.claim import collected, every
    from experiments.results.claims.judgement import judge
    from experiments.results.claims.numbers import NUMBERS
    from experiments.results.kept.queries import evaluate
    from tests.experiments.results.claims.test_sentences import OF_NO_CLAIM

    claims = collected()
    for claim in {one.id: one for one in (*claims.values(), *every(claims))}.values():
        judged = judge(claim)
        yield f"claim {claim.id}", {"verdict": judged.word, "sentence": judged.sentence, "here": judged.here}
        for name, answer in judged.answers.items():
            yield f"claim {claim.id}, {name}", plain_of(answer)
    for page, queries in (("the page", NUMBERS), ("results", OF_NO_CLAIM)):
        for name, query in queries.items():
            yield f"numbers of {page}, {name}", plain_of(evaluate(query))


def plain_of(estimate: Any) -> dict[str, Any]:
    """Return the fields of an estimate without the cases that it was picked from."""
    return {name: value for name, value in vars(estimate).items() if name != "cases"}


class ProgramFailedError(Exception):
    """A program that ended with another status than 0."""


def output_of(module: str, *arguments: str, allowed: Sequence[int] = (0,)) -> str:
    """Run a module in this process as `python -m` does, and return its standard output.

    Args:
        module: its name.
        arguments: of the command line.
        allowed: statuses with which it may end.

    Raises:
        ProgramFailedError: it ended with another status; the message has its standard error.
    """
    printed, said, status = io.StringIO(), io.StringIO(), 0
    before = sys.argv
    sys.argv = [module, *arguments]
    try:
        with (
            contextlib.redirect_stdout(printed),
            contextlib.redirect_stderr(said),
            warnings.catch_warnings(),
        ):
            warnings.simplefilter("ignore")
            runpy.run_module(module, run_name="__main__", alter_sys=True)
    except SystemExit as ended:
        status = ended.code if isinstance(ended.code, int) else int(ended.code is not None)
    finally:
        sys.argv = before
    if status not in allowed:
        raise ProgramFailedError(
            f"{' '.join([module, *arguments])} ended with status {status}: {said.getvalue()}"
        )
    return printed.getvalue()


def warm_up() -> None:
    """Import what all programs need, once for all processes that are forked."""
    for name in WARM:
        if importlib.util.find_spec(name) is not None:
            importlib.import_module(name)
