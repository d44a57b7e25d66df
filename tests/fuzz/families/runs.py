"""Folders of runs whose files are damaged, and command lines of every experiment, nothing measured."""

from __future__ import annotations

import contextlib
import dataclasses
import functools
import importlib
import io
import json
import math
import re
import shutil
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pandas as pd
from hypothesis import strategies as st
from hypothesis.strategies import integers, just, sampled_from

from experiments.__main__ import listing
from experiments.core import cli
from experiments.core.settings import Settings
from tests.experiments import toy
from tests.fuzz.drawing import WORDS, among, chance
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
    "packages": {}, "started": "now", "command": [], "python": "3", "experiment": "toy",
}
VALUES = (
    *WORDS, "0", "1", "2", "-1", "3.5", "1e3", "1e400", "inf", "-inf", "nan", "9" * 30, "-" + "9" * 30,
    str(2**31), str(2**63), "1_000", " 1", "True", "None", "1,2", "8x8", "2x2x2", "0x0", "--", "-",
    "hilbert-3d", "linked", "verlet", "row", "shuffled", "1e-320", "0.0", "0.6", "1e308",
)
CONTENTS = (
    b"", b"1", b"null", b"[]", b"{}", b'{"config": []}', b"[" * 10**5, b"\xff\xfe", b'{"grammars": null}',
    b"PAR1", b'{"config": {"size": "x"}}\n',
)
# fmt: on
HUGE = 2**63
KEPT = ".json", ".jsonl", ".parquet", ".csv"  # what a run keeps


class Begun(BaseException):
    """All is parsed and checked, and measuring would begin; its argument is the config."""


def ended(words: list, config: type, measure: Callable, tables: list, quick: dict, **options: Any) -> None:
    """What a command line does; `tables` gets what is to be drawn.

    Raises:
        RefusedError: it ended with a message.
    """
    told = io.StringIO()
    try:
        with contextlib.redirect_stderr(told), contextlib.redirect_stdout(told):
            cli.main(config, measure, lambda table, out: tables.append(table), quick, words, **options)
    except SystemExit as end:
        if end.code in (0, None):
            return
        text = told.getvalue()
        said = text[text.find("error: ") :]
        ours = any(line.startswith("error: ") for line in text.splitlines())
        clear = SAYS.search(said) or "[Errno" in said if ours else PARSER.search(text)
        raise (RefusedError if clear and "Traceback" not in text else UnclearError)(text) from None


# Command lines


def begin(experiment: str, config: Settings, arguments: list[str]) -> dict:
    """In place of the look at code and machine, the last thing before measuring."""
    raise Begun(config)


@functools.cache
def experiments() -> dict[str, Any]:
    """The modules of all experiments."""
    return {name: importlib.import_module(f"experiments.{name}") for name in listing()}


@st.composite
def values(draw, default: Any) -> list[str]:
    """Words for a flag: its default, or anything."""
    several = isinstance(default, tuple)
    usual = [str(v) for v in (default if several else (default,))]
    if draw(chance(0.3)):
        return usual
    count = draw(sampled_from((0, 1, 1, 1, 1, 2, 2, 3) if several else (0, 1, 1, 1, 1, 1, 2)))
    word = among(*[sampled_from(VALUES)] * 7, *[sampled_from((*usual, "1"))] * 3)
    return [draw(word) for _ in range(count)]


def checked(config: Settings | None, _: Any) -> None:
    """What is taken from a command line can be meant."""
    if config is None:
        return
    for field in dataclasses.fields(config):
        value = getattr(config, field.name)
        for one in value if isinstance(value, tuple) else (value,):
            if isinstance(one, float):
                require(math.isfinite(one), f"--{field.name} {one} was taken")
            if isinstance(one, int) and field.name != "seed":
                require(abs(one) < HUGE, f"--{field.name} {one} was taken")
    cli.cases(config)


OTHERS = {
    "quick": None, "results": "results", "executor": "serial", "workers": 0, "curve_file": ("none.toml",),
    "replot": "none", "resume": "none", "from": "none",
}  # fmt: skip


@st.composite
def flags(draw, fields: dict[str, Any]) -> list[str]:
    """A flag and its values, now and then misspelt."""
    flag, default = draw(sampled_from(list((fields if draw(chance(0.8)) else OTHERS).items())))
    given = draw(values(default))
    flag = f"--{flag.replace('_', '-') if draw(chance(0.9)) else flag}"
    if draw(chance(0.05)):
        flag = draw(sampled_from((flag[:-1], flag.upper(), flag[1:], "-x", f"--no-{flag[2:]}")))
    return [f"{flag}={given[0]}", *given[1:]] if given and draw(chance(0.1)) else [flag, *given]


def commands(draw) -> Cases:
    """A command line of some experiment."""
    name = draw(sampled_from(sorted(experiments())))
    module = experiments()[name]
    fields = {f.name: getattr(module.Config(), f.name) for f in dataclasses.fields(module.Config)}
    words = ["--quick"] * draw(chance(0.4))
    for _ in range(draw(sampled_from((0, 1, 1, 1, 2, 2, 3)))):
        words += draw(flags(fields))
    words = [word for word in words if "\x00" not in word]

    def call(words):
        cli.provenance = begin
        try:
            ended(words, module.Config, module.measure, [], module.QUICK)
        except Begun as begun:
            return begun.args[0]
        return None

    told = f"python -m experiments.{name}"
    return just(Case(told, call, {"words": words}, {"words": Kind(words)}, checked))


# Folders of runs


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
            return  # told by others
        right = partial if flag == "--replot" else whole
        if flag == "--replot" and not complete:  # a journal may lose last lines, of cases to measure again
            right = right[right["case"].isin(table["case"])] if len(table) else right[:0]
        same = table.reset_index(drop=True).equals(right.reset_index(drop=True))
        require(same or len(table) == len(right) == 0, f"a table of {len(table)} rows, and {len(right)}")

    name = f"a run with {broken.name} damaged"
    return just(Case(name, call, {"words": words}, {"words": Kind(words)}, check))


def prepare() -> None:
    """What all inputs share."""
    folders()
    experiments()


RUNS = Family("runs", {run_folders: 1}, 2.5, prepare)
FAMILIES = [RUNS, Family("commands", {commands: 1}, 3, prepare)]
