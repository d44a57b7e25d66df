"""Command lines of every experiment, nothing measured."""

from __future__ import annotations

import dataclasses
import functools
import importlib
import math
from typing import Any

from hypothesis import strategies as st
from hypothesis.strategies import just, sampled_from

from experiments.__main__ import listing
from experiments.core import cli
from experiments.core.settings import Settings
from tests.fuzz.drawing import WORDS, among, chance
from tests.fuzz.families import Family
from tests.fuzz.families.runs import ended
from tests.fuzz.judge import Case, Cases, require
from tests.fuzz.kinds import Kind

# fmt: off
VALUES = (
    *WORDS, "0", "1", "2", "-1", "3.5", "1e3", "1e400", "inf", "-inf", "nan", "9" * 30, "-" + "9" * 30,
    str(2**31), str(2**63), "1_000", " 1", "True", "None", "1,2", "8x8", "2x2x2", "0x0", "--", "-",
    "hilbert-3d", "linked", "verlet", "row", "shuffled", "wing_\udcc3.dat", "1e-320", "0.0", "0.6", "1e308",
)
# fmt: on
HUGE = 2**63


class Begun(BaseException):
    """All is parsed and checked, and measuring would begin; its argument is the config."""


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
            if isinstance(one, str):
                one.encode()  # for the table
            elif isinstance(one, (int, float)) and field.name != "seed":
                require(abs(one) < (math.inf if type(one) is float else HUGE), f"--{field.name} {one} taken")
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

    called = f"python -m experiments.{name}"
    return just(Case(called, call, {"words": words}, {"words": Kind(words)}, checked))


FAMILY = Family({commands: 1}, experiments)
