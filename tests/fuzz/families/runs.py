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
from collections.abc import Sequence
from pathlib import Path
from typing import Any

import pandas as pd

from experiments.__main__ import listing
from experiments.core import cli
from experiments.core.settings import Settings
from tests.experiments import toy
from tests.fuzz.drawing import WORDS, Draw
from tests.fuzz.families import Family
from tests.fuzz.families.files import damaged, places, plain_value
from tests.fuzz.judge import SAYS, Case, RefusedError, require
from tests.fuzz.kinds import Kind

PARSER = re.compile(
    r"error: |Error parsing|Parsing error|[Uu]nrecognized|invalid choice|required|Missing|usage:"
)
ORIGIN = {
    "backend": {"name": "cpu", "device": "a fuzz"},
    "machine": {"cpu": "one"},
    "code": {"tree": "t"},
    "packages": {},
    "started": "now",
    "command": [],
    "python": "3",
    "experiment": "toy",
}
HUGE = 2**63


class Begun(BaseException):
    """All is parsed and checked, and measuring would begin.

    Attributes:
        config: what would be measured.
    """

    def __init__(self, config: Settings):
        super().__init__("begun")
        self.config = config


def ended(arguments: Sequence[str], *main: Any, **options: Any) -> None:
    """What a command line does.

    Raises:
        RefusedError: it ended with a message.
    """
    told = io.StringIO()
    try:
        with contextlib.redirect_stderr(told), contextlib.redirect_stdout(told):
            cli.main(*main, list(arguments), **options)
    except SystemExit as end:
        if end.code in (0, None):
            return
        text = told.getvalue()
        project = [line for line in text.splitlines() if line.startswith("error: ")]
        said = text[text.find("error: ") :]
        clear = bool(SAYS.search(said) or "[Errno" in said) if project else bool(PARSER.search(text))
        raise RefusedError(text, clear and "Traceback" not in text) from None


# Command lines


def begin(experiment: str, config: Settings, arguments: Sequence[str]) -> dict:
    """In place of the look at code and machine, the last thing before measuring."""
    raise Begun(config)


@functools.cache
def experiments() -> dict[str, Any]:
    """The modules of all experiments."""
    return {name: importlib.import_module(f"experiments.{name}") for name in listing()}


def value_of(draw: Draw, default: Any) -> list[str]:
    """Words for a flag: its default, or anything."""
    usual = [str(v) for v in (default if isinstance(default, tuple) else (default,))]
    if draw.chance(0.3):
        return usual
    some = [
        *WORDS,
        "0",
        "1",
        "2",
        "-1",
        "3.5",
        "1e3",
        "1e400",
        "inf",
        "-inf",
        "nan",
        "9" * 30,
        "-" + "9" * 30,
        str(2**31),
        str(2**63),
        "1_000",
        " 1",
        "True",
        "None",
        "1,2",
        "8x8",
        "2x2x2",
        "0x0",
        "--",
        "-",
        "hilbert-3d",
        "linked",
        "verlet",
        "row",
        "shuffled",
        "1e-320",
        "0.0",
        "0.6",
        "1e308",
    ]
    count = (
        draw.choice((0, 1, 1, 1, 1, 2, 2, 3))
        if isinstance(default, tuple)
        else draw.choice((0, 1, 1, 1, 1, 1, 2))
    )
    return [draw.choice(some) if draw.chance(0.7) else draw.choice([*usual, "1"]) for _ in range(count)]


def checked(config: Settings) -> None:
    """What is taken from a command line can be meant."""
    for field in dataclasses.fields(config):
        value = getattr(config, field.name)
        for one in value if isinstance(value, tuple) else (value,):
            if isinstance(one, float):
                require(math.isfinite(one), f"--{field.name} {one} was taken")
            if isinstance(one, int) and field.name != "seed":
                require(abs(one) < HUGE, f"--{field.name} {one} was taken")
    cli.cases(config)


def commands(draw: Draw) -> Case:
    """A command line of some experiment."""
    name = draw.choice(sorted(experiments()))
    module = experiments()[name]
    fields = {f.name: getattr(module.Config(), f.name) for f in dataclasses.fields(module.Config)}
    others = {
        "quick": None,
        "results": "results",
        "executor": "serial",
        "workers": 0,
        "curve_file": ("none.toml",),
        "replot": "none",
        "resume": "none",
        "from": "none",
    }
    words: list[str] = ["--quick"] if draw.chance(0.4) else []
    for _ in range(draw.choice((0, 1, 1, 1, 2, 2, 3))):
        flag = draw.choice(list(fields)) if draw.chance(0.8) else draw.choice(list(others))
        given = value_of(draw, fields.get(flag, others.get(flag)))
        flag = f"--{flag.replace('_', '-') if draw.chance(0.9) else flag}"
        if draw.chance(0.05):
            flag = draw.choice((flag[:-1], flag.upper(), flag[1:], "-x", f"--no-{flag[2:]}"))
        words += [f"{flag}={given[0]}", *given[1:]] if given and draw.chance(0.1) else [flag, *given]
    words = [word for word in words if "\x00" not in word]

    def call(words):
        cli.provenance = begin
        try:
            ended(words, module.Config, module.measure, module.draw, module.QUICK)
        except Begun as begun:
            return begun.config
        return None

    def check(config, _):
        if config is not None:
            checked(config)

    return Case(f"python -m experiments.{name}", call, {"words": words}, {"words": Kind(words)}, check)


# Folders of runs


class Look:
    """Keeps the table that is drawn."""

    table: pd.DataFrame | None = None

    def draw(self, table: pd.DataFrame, out: Path) -> None:
        """Draw nothing."""
        self.table = table


def interrupted(case: toy.Config):
    """Rows as of the toy; Ctrl-C at size 4."""
    if case.size == 4:
        raise KeyboardInterrupt
    yield from toy.measure(case)


@functools.cache
def folders() -> dict[bool, tuple[Path, pd.DataFrame]]:
    """A run that is complete and one that was interrupted, and the table that each has in the end."""
    found = {}
    cli.provenance = lambda experiment, config, arguments: json.loads(
        json.dumps(ORIGIN | {"config": dataclasses.asdict(config)})
    )
    for complete in (True, False):
        place = Path(f"runs-{complete}").resolve()
        shutil.rmtree(place, ignore_errors=True)
        arguments = ["--results", str(place), "--size", "1", "2", "4", "5", "--backend", "cpu"]
        look = Look()
        with contextlib.suppress(RefusedError):
            ended(
                arguments, toy.Config, toy.measure if complete else interrupted, look.draw, {}, spreads=True
            )
        (run,) = (place / "toy").iterdir()
        found[complete] = (run, look.table)
    return found


def run_folder(draw: Draw) -> Case:
    """A damaged run is refused, or gives the table that it had."""
    complete = draw.chance(0.6)
    run, partial = folders()[complete]
    whole = folders()[True][1]
    copy = Path("copy").resolve()
    shutil.rmtree(copy, ignore_errors=True)
    shutil.copytree(run, copy)
    places_of = [p for p in sorted(copy.iterdir()) if p.suffix in (".json", ".jsonl", ".parquet", ".csv")]
    broken = draw.choice(places_of)
    kind = draw.randrange(10)
    if kind == 0:
        broken.unlink()
    elif kind == 1:
        broken.unlink()
        broken.mkdir()
    elif kind == 2:
        broken.write_bytes(
            draw.choice(
                (
                    b"",
                    b"1",
                    b"null",
                    b"[]",
                    b"{}",
                    b'{"config": []}',
                    b"[" * 10**5,
                    b"\xff\xfe",
                    b'{"grammars": null}',
                    b"PAR1",
                    b'{"config": {"size": "x"}}\n',
                )
            )
        )
    elif kind < 6 and broken.suffix == ".json":
        data = json.loads(broken.read_text())
        at = draw.choice(places(data))
        inner = data
        for key in at[:-1]:
            inner = inner[key]
        inner[at[-1]] = plain_value(draw)
        broken.write_text(json.dumps(data))
    else:
        broken.write_bytes(damaged(draw, broken.read_bytes()))
    flag = draw.choice(("--replot", "--replot", "--resume", "--from"))
    words = [flag, str(copy), *(["--results", "again"] if flag == "--from" else [])]
    shutil.rmtree("again", ignore_errors=True)
    look = Look()
    told_by_others = broken.name == "provenance.json"

    def call(words):
        cli.provenance = lambda experiment, config, arguments: ORIGIN | {"config": {}, "cases": 0}
        ended(words, toy.Config, quick_measure, look.draw, {}, spreads=True)
        return look.table

    def check(table, _):
        if table is None or (flag != "--replot" and told_by_others):
            return
        right = partial if flag == "--replot" else whole
        if (
            flag == "--replot" and not complete
        ):  # a journal may lose its last lines: of cases to be measured again
            right = right[right["case"].isin(table["case"])] if len(table) else right[:0]
        same = table.reset_index(drop=True).equals(right.reset_index(drop=True))
        require(
            same or len(table) == len(right) == 0, f"another table, of {len(table)} rows, and {len(right)}"
        )

    name = f"a run with {broken.name} damaged"
    return Case(name, call, {"words": words}, {"words": Kind(words)}, check)


def quick_measure(case: toy.Config):
    """Rows as of the toy, but without its waits, deaths and logs; a damaged Config may ask for them."""
    yield from toy.measure(
        dataclasses.replace(case, seconds=0.0, log="", size=min(case.size, 12), colour=case.colour or "x")
    )


def prepare() -> None:
    """What all inputs share."""
    folders()
    experiments()


FAMILIES = [Family("runs", run_folder, 2.5, prepare), Family("commands", commands, 3, prepare)]
