"""Flags of a Config: integers in any notation, and the words of the help.

Contract. A flag's help is the docstring of its field, in one paragraph that is wrapped to the terminal. What
a field takes is shown as words: the allowed ones, if the Config checks them (`Settings.check_known`).
"""

import ast
import inspect
import itertools
import re
import shutil
import textwrap
import typing
from collections.abc import Mapping, Sequence
from dataclasses import fields, is_dataclass
from decimal import Decimal, InvalidOperation
from functools import cache
from pathlib import Path
from typing import Annotated, Any

import tyro
from tyro.constructors import (
    ConstructorRegistry,
    PrimitiveConstructorSpec,
    PrimitiveTypeInfo,
    StructConstructorSpec,
    StructFieldSpec,
    StructTypeInfo,
)

from experiments.core.settings import Settings
from sfc import checks

MOST_DIGITS = 1000  # of an integer, so that no power exhausts the memory
_SHORT = 36  # letters of a list of choices that stands beside the flag; a longer one follows the help
_WORDS = {int: "INTEGER", float: "NUMBER", str: "NAME", Path: "PATH", bool: "{True,False}"}
_INDENT = "  "
_OPTIONAL = "(optional)"  # in place of an empty default
_ITEM = re.compile(r"\n- ")
_POWER = re.compile(r"([+-]?\d+)\*\*(\d+)")
_QUICK = "--quick"


def make_quick(arguments: Sequence[str], quick: Mapping[str, Any]) -> tuple[list[str], list[str]]:
    """Take out the numbers in front of the last `--quick` that it sets itself, to make a command small.

    Names in front of it, such as those of orderings, remain, and all that stands after it. What is no number
    remains too, for its error.

    Args:
        arguments: a command line.
        quick: fields that `--quick` sets, and their values.

    Returns:
        The command line without these numbers, and the flags that were taken out, as they were written.
    """
    if _QUICK not in arguments:
        return list(arguments), []
    end = len(arguments) - 1 - list(reversed(arguments)).index(_QUICK)
    numeric = {f"--{name.replace('_', '-')}" for name, value in quick.items() if _is_numeric(value)}
    groups: list[list[str]] = [[]]  # a flag and its words each; the first has no flag
    for word in arguments[:end]:
        if word.startswith("--"):
            groups.append([])
        groups[-1].append(word)
    kept: list[str] = []
    replaced: list[str] = []
    for words in groups:
        flag, _, first = words[0].partition("=") if words else ("", "", "")
        given = [*filter(None, [first]), *words[1:]]
        is_replaced = flag.replace("_", "-") in numeric and given and all(map(_is_number, given))
        (replaced if is_replaced else kept).extend(words)
    return [*kept, *arguments[end:]], replaced


def _is_numeric(value: Any) -> bool:
    numbers = value if isinstance(value, tuple) else (value,)
    return all(isinstance(one, (int, float)) and not isinstance(one, bool) for one in numbers)


def _is_number(word: str) -> bool:
    for parse in (float, integer):
        try:
            parse(word)
        except ValueError:
            continue
        return True
    return False


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
    width, lines = shutil.get_terminal_size().columns, []
    for paragraph in inspect.cleandoc(docstring).split("\n\n"):
        items = _ITEM.split(paragraph)
        for place, item in enumerate(items):
            dash = "- " if place or paragraph.startswith("- ") else ""
            first, others = _INDENT + dash, _INDENT + " " * len(dash)
            text = _one_line(item.removeprefix("- "))
            lines += textwrap.wrap(text, width, initial_indent=first, subsequent_indent=others)
        lines.append("")
    return "\n".join(lines).rstrip()


def _one_line(text: str) -> str:
    return " ".join(text.split())


def _integers(info: PrimitiveTypeInfo) -> PrimitiveConstructorSpec | None:
    """Parse an integer, and as one value a list of them: tyro's own lists hide the message of `integer`."""
    if info.type is int:
        return PrimitiveConstructorSpec(
            nargs=1,
            metavar=_WORDS[int],
            instance_from_str=lambda given: integer(given[0]),
            is_instance=checks.is_integer,
            str_from_instance=lambda value: [str(value)],
        )
    if info.type_origin is tuple and typing.get_args(info.type) == (int, ...):
        return PrimitiveConstructorSpec(
            nargs="*",
            metavar=f"{_WORDS[int]} ...",
            instance_from_str=lambda given: tuple(map(integer, given)),
            is_instance=lambda value: isinstance(value, tuple) and all(map(checks.is_integer, value)),
            str_from_instance=lambda value: list(map(str, value)),
        )
    return None


def _fields_with_help(info: StructTypeInfo) -> StructConstructorSpec | None:
    """Describe the fields of a Config, or of the options of every experiment."""
    if not is_dataclass(info.type) or info.type.__name__ == "Command":
        return None
    given: Any = info.default
    known = given.known_words if isinstance(given, Settings) else {}
    hints = typing.get_type_hints(info.type, include_extras=True)
    found = []
    for one in fields(info.type):
        text = _help_of(info.type, one.name)
        default = getattr(given, one.name)
        shape, more = _shape(hints[one.name], known.get(one.name, ()))
        hint = _OPTIONAL if default in ((), []) else None
        shown = tyro.conf.arg(metavar=shape, help_behavior_hint=hint)
        kind: Any = hints[one.name] if shape is None else Annotated[hints[one.name], shown]
        found.append(StructFieldSpec(one.name, kind, default, helptext=f"{text} {more}".strip()))
    return StructConstructorSpec(info.type, tuple(found))


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
    word = beside if is_short else _WORDS[inner]
    allowed = "" if is_short or not choices else f"Allowed: {', '.join(choices)}."
    return word + (" ..." if several else ""), allowed


@cache
def _help_of(config_type: type, name: str) -> str:
    """Return the docstring of a field in one line, of the class nearest to the Config that has one."""
    for base in config_type.__mro__:
        if name in _docstrings_of(base):
            return _docstrings_of(base)[name]
    return ""


@cache
def _docstrings_of(kind: type) -> dict[str, str]:
    """Return name -> docstring of the fields that a class itself declares."""
    if not is_dataclass(kind):
        return {}
    (tree,) = ast.parse(textwrap.dedent(inspect.getsource(kind))).body
    body = tree.body if isinstance(tree, ast.ClassDef) else []
    return {
        field.target.id: _one_line(text.value.value)
        for field, text in itertools.pairwise(body)
        if isinstance(field, ast.AnnAssign) and isinstance(field.target, ast.Name)
        if isinstance(text, ast.Expr) and isinstance(text.value, ast.Constant)
        if isinstance(text.value.value, str)
    }
