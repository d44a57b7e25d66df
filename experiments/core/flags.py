"""Flags of a Config: integers in any notation, and the words of the help.

Contract. A flag's help is the docstring of its field, in one paragraph that is wrapped to the terminal. What
a field takes is shown as words: the allowed ones, if the Config checks them (`Settings.check_known`).
"""

import inspect
import itertools
import re
import shutil
import textwrap
import typing
from dataclasses import fields, is_dataclass
from decimal import Decimal, InvalidOperation
from functools import cache
from pathlib import Path
from typing import Annotated, Any

import tyro
from docstring_parser import parse_from_object
from tyro.constructors import (
    ConstructorRegistry,
    PrimitiveConstructorSpec,
    PrimitiveTypeInfo,
    StructConstructorSpec,
    StructFieldSpec,
    StructTypeInfo,
)

from experiments.core.settings import Settings, values
from sfc import checks

MOST_DIGITS = 1000  # of an integer, so that no power exhausts the memory
_SHORT = 36  # letters of a list of choices that stands beside the flag; a longer one follows the help
_WORDS = {int: "INTEGER", float: "NUMBER", str: "NAME", Path: "PATH", bool: "{True,False}"}
_INDENT = "  "
_OPTIONAL = "(optional)"  # in place of an empty default
_POWER = re.compile(r"([+-]?\d+)\*\*(\d+)")


def integer(text: str) -> int:
    """Parse an integer: 1000000, 1_000_000, 1e6 or 2**20.

    Args:
        text: of the command line.

    Raises:
        ValueError: no integer, or one of more than `MOST_DIGITS` digits.
    """
    word = text.strip()
    try:
        if power := _POWER.fullmatch(word):
            base, exponent = int(power[1]), int(power[2])
            if exponent * len(power[1]) <= MOST_DIGITS:
                return int(base**exponent)
        elif (value := Decimal(word)).is_finite() and value.adjusted() < MOST_DIGITS:
            if value == value.to_integral_value():
                return int(value)
    except (InvalidOperation, ValueError):
        pass
    allowed = f"an integer of up to {MOST_DIGITS} digits, as 1000000, 1e6 or 2**20"
    raise checks.refuse_value("value", text, allowed, "take a whole number")


def registry() -> ConstructorRegistry:
    """Return the rules by which tyro makes flags of a Config."""
    rules = ConstructorRegistry()
    rules.primitive_rule(_integers)
    rules.struct_rule(_fields_with_help)
    return rules


def description(docstring: str) -> str:
    """Wrap a module's docstring to the terminal, paragraph by paragraph, or item by item of a list.

    Lines are indented, because tyro joins lines that begin with a letter.
    """
    width = shutil.get_terminal_size().columns
    parts = re.split(r"(\n\n|\n(?=- ))", inspect.cleandoc(docstring))
    for place, text in enumerate(parts[::2]):
        later = 2 * _INDENT if text.startswith("- ") else _INDENT
        parts[2 * place] = textwrap.fill(
            _one_line(text), width, initial_indent=_INDENT, subsequent_indent=later
        )
    return "".join(parts)


def _one_line(text: str) -> str:
    return " ".join(text.split())


def _integers(info: PrimitiveTypeInfo) -> PrimitiveConstructorSpec | None:
    """Parse an integer, and as one value a list of them: tyro's own lists hide the message of `integer`."""
    several = info.type_origin is tuple and typing.get_args(info.type) == (int, ...)
    if not several and info.type is not int:
        return None
    return PrimitiveConstructorSpec(
        nargs="*" if several else 1,
        metavar=_WORDS[int],
        instance_from_str=lambda given: tuple(map(integer, given)) if several else integer(given[0]),
        is_instance=lambda value: (
            isinstance(value, tuple) == several and all(map(checks.is_integer, values(value)))
        ),
        str_from_instance=lambda value: list(map(str, values(value))),
    )


def _fields_with_help(info: StructTypeInfo) -> StructConstructorSpec | None:
    """Describe the fields of a Config, or of the options of every experiment.

    The fields of a Config become a dict, because the command line is not all that sets them.
    """
    if not is_dataclass(info.type) or info.type.__name__ == "Command":
        return None
    given: Any = info.default
    known = given.known_words if isinstance(given, Settings) else {}
    hints, docstrings = typing.get_type_hints(info.type, include_extras=True), _docstrings(info.type)
    found = []
    for one in fields(info.type):
        default = getattr(given, one.name)
        shape, more = _shape(hints[one.name], known.get(one.name, ()))
        shown = tyro.conf.arg(metavar=shape, help_behavior_hint=_OPTIONAL if default in ((), []) else None)
        kind: Any = hints[one.name] if shape is None else Annotated[hints[one.name], shown]
        text = f"{docstrings.get(one.name, '')} {more}".strip()
        found.append(StructFieldSpec(one.name, kind, default, helptext=text))
    made = info.type
    if issubclass(made, Settings):
        made = type("Given", (dict,), {"__doc__": made.__doc__})  # the help shows the docstring
    return StructConstructorSpec(made, tuple(found))


def _shape(hint: Any, words: typing.Iterable[str]) -> tuple[str | None, str]:
    """Return what stands beside a flag, None for tyro's own, and the sentence about it in the help."""
    kind, *marks = typing.get_args(hint) if typing.get_origin(hint) is Annotated else (hint,)
    several = typing.get_origin(kind) in (tuple, list)
    inner = typing.get_args(kind)[0] if several else kind
    has_own = any(getattr(mark, "metavar", None) for mark in marks)
    if has_own or inner not in _WORDS or (inner is bool and not several):
        return None, ""
    choices = list(words)
    beside = f"{{{','.join(choices)}}}"
    is_short = 0 < len(choices) and len(beside) <= _SHORT
    allowed = "" if is_short or not choices else f"Allowed: {', '.join(choices)}."
    return (beside if is_short else _WORDS[inner]) + " ..." * several, allowed


@cache
def _docstrings(kind: type) -> dict[str, str]:
    """Return name -> docstring in one line of each field, of the class nearest to the Config that has one."""
    bases = filter(is_dataclass, reversed(kind.__mro__))
    described = itertools.chain.from_iterable(parse_from_object(base).params for base in bases)
    return {one.arg_name: _one_line(one.description or "") for one in described}
