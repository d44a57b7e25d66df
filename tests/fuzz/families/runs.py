"""Folders of runs whose files are damaged, and command lines of every experiment, nothing measured."""

from __future__ import annotations

import contextlib
import dataclasses
import functools
import io
import json
import re
import shutil
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pandas as pd
from hypothesis import strategies as st
from hypothesis.strategies import integers, just, sampled_from

from experiments.core import cli
from tests.experiments import toy
from tests.fuzz.drawing import chance
from tests.fuzz.families import Family
from tests.fuzz.families.files import damaged, with_a_value
from tests.fuzz.judge import SAYS, Case, Cases, RefusedError, UnclearError, require
from tests.fuzz.kinds import Kind

PARSER = re.compile(
    r"error: |Error parsing|Parsing error|[Uu]nrecognized|invalid choice|required|Missing|usage:"
)
# fmt: off
ORIGIN = {
    "backend": {"name": "cpu", "device": "a fuzz"}, "machine": {"cpu": "one"}, "code": {"tree": "t"},
    "packages": {}, "environment": {}, "started": "now", "command": [], "python": "3", "experiment": "toy",
}
CONTENTS = (
    b"", b"1", b"null", b"[]", b"{}", b'{"config": []}', b"[" * 10**5, b"\xff\xfe", b'{"grammars": null}',
    b"PAR1", b'{"config": {"size": "x"}}\n',
)
# fmt: on
KEPT = ".json", ".jsonl", ".parquet", ".csv"  # what a run keeps


def ended(words: list, config: type, measure: Callable, tables: list, quick: dict, **options: Any) -> None:
    """What a command line does; `tables` gets what is to be drawn.

    Raises:
        RefusedError: it ended with a message.
    """
    printed = io.StringIO()
    try:
        with contextlib.redirect_stderr(printed), contextlib.redirect_stdout(printed):
            cli.main(config, measure, lambda table, out: tables.append(table), quick, words, **options)
    except SystemExit as end:
        if end.code in (0, None):
            return
        text = printed.getvalue()
        said = text[text.find("error: ") :]
        ours = any(line.startswith("error: ") for line in text.splitlines())
        clear = SAYS.search(said) or "[Errno" in said if ours else PARSER.search(text)
        raise (RefusedError if clear and "Traceback" not in text else UnclearError)(text) from None


def interrupted(case: toy.Config):
    """Rows as of the toy; Ctrl-C at size 4."""
    if case.size == 4:
        raise KeyboardInterrupt
    yield from toy.measure(case)


def quick_measure(case: toy.Config):
    """Rows as of the toy, but without its waits, deaths and logs; a damaged Config may ask for them."""
    size, colour = min(case.size, 12), case.colour or "x"
    yield from toy.measure(dataclasses.replace(case, seconds=0.0, log="", size=size, colour=colour))


@functools.cache
def folders() -> dict[bool, tuple[Path, pd.DataFrame]]:
    """A run that is complete and one that was interrupted, and the table that each has in the end."""
    found = {}
    cli.provenance = lambda experiment, config, arguments: json.loads(
        json.dumps(ORIGIN | {"config": dataclasses.asdict(config)})
    )
    for complete, measure in ((True, toy.measure), (False, interrupted)):
        place, tables = Path(f"runs-{complete}").resolve(), []
        shutil.rmtree(place, ignore_errors=True)
        arguments = ["--results", str(place), "--size", "1", "2", "4", "5", "--backend", "cpu"]
        with contextlib.suppress(RefusedError):
            ended(arguments, toy.Config, measure, tables, {}, spreads=True)
        (run,) = (place / "toy").iterdir()
        found[complete] = (run, tables[-1])
    return found


@st.composite
def broken_files(draw, folder: Path) -> Path:
    """A file of a run, after it was damaged."""
    file = draw(sampled_from([p for p in sorted(folder.iterdir()) if p.suffix in KEPT]))
    kind = draw(integers(0, 9))
    if kind < 2:
        file.unlink()
        if kind:
            file.mkdir()
    elif kind == 2:
        file.write_bytes(draw(sampled_from(CONTENTS)))
    elif kind < 6 and file.suffix == ".json":
        file.write_text(json.dumps(draw(with_a_value(json.loads(file.read_text())))))
    else:
        file.write_bytes(draw(damaged(file.read_bytes())))
    return file


def run_folders(draw) -> Cases:
    """A damaged run is refused, or gives the table that it had."""
    complete = draw(chance(0.6))
    run, partial = folders()[complete]
    whole, copy, tables = folders()[True][1], Path("copy").resolve(), []
    shutil.rmtree(copy, ignore_errors=True)
    shutil.rmtree("again", ignore_errors=True)
    shutil.copytree(run, copy)
    broken = draw(broken_files(copy))
    flag = draw(sampled_from(("--replot", "--replot", "--resume", "--from")))
    words = [flag, str(copy), *(["--results", "again"] if flag == "--from" else [])]

    def call(words):
        cli.provenance = lambda experiment, config, arguments: ORIGIN | {"config": {}, "cases": 0}
        ended(words, toy.Config, quick_measure, tables, {}, spreads=True)
        return tables[-1] if tables else None

    def check(table, _):
        if table is None or (flag != "--replot" and broken.name == "provenance.json"):
            return  # others report it
        right = partial if flag == "--replot" else whole
        if flag == "--replot" and not complete:  # a journal may lose last lines, of cases to measure again
            right = right[right["case"].isin(table["case"])] if len(table) else right[:0]
        same = table.reset_index(drop=True).equals(right.reset_index(drop=True))
        require(same or len(table) == len(right) == 0, f"a table of {len(table)} rows, and {len(right)}")

    name = f"a run with {broken.name} damaged"
    return just(Case(name, call, {"words": words}, {"words": Kind(words)}, check))


FAMILY = Family({run_folders: 1}, folders)
