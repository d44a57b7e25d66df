"""What a compiled function can reach: the code it calls and the constants it reads, as one hash.

Numba compiles byte code, calls or inlines what a function names and freezes the globals it reads. So two
functions give the same machine code for the same types if their instructions, those of every function they
can reach and all constants on the way are the same. Comments, docstrings, line numbers and the paths of files
are in none of these, and an edit of code that no kernel can reach changes no fingerprint.
"""

from __future__ import annotations

import dis
import hashlib
import sys
from collections.abc import Callable, Iterable, Iterator
from enum import Enum
from types import BuiltinFunctionType, CodeType, FunctionType, ModuleType
from typing import Any

import numpy as np
from numba.core.dispatcher import Dispatcher
from numba.core.types import Type

FOREIGN = frozenset(sys.stdlib_module_names) | {"numpy", "numba", "llvmlite"}  # told apart by their versions
GLOBALS = frozenset({"LOAD_GLOBAL", "LOAD_NAME"})
ATTRIBUTES = frozenset({"LOAD_ATTR", "LOAD_METHOD"})
PLAIN = (type(None), bool, int, float, complex, str, bytes, type(Ellipsis))


class UnknownReachError(ValueError):
    """What a compiled function reads cannot be hashed, or has changed since; the message names it."""


def fingerprint(
    roots: Iterable[Callable], stand_ins: Callable[[Callable], Iterable[Callable]] = lambda stub: ()
) -> str:
    """Hash of all that some functions can reach.

    Args:
        roots: functions or Numba dispatchers.
        stand_ins: gives the functions that compiled code calls in place of a function (its overloads).

    Returns:
        64 hexadecimal digits.

    Raises:
        UnknownReachError: a global that is neither code nor a plain constant, or one that is another than it
            was when it was first hashed: what Numba has compiled since holds the one or the other.
    """
    tokens, seen = set(), set()
    waiting = list(roots)
    while waiting:
        function = waiting.pop()
        if isinstance(function, Dispatcher):
            tokens.add(f"{_name(function)} with {sorted(map(str, function.targetoptions.items()))}")
        function = getattr(function, "py_func", function)
        if function in seen:
            continue
        seen.add(function)
        if _is_foreign(function.__module__):
            tokens.add(_name(function))
            continue
        token, named = _described(function)
        if _first_seen.setdefault(function, token) != token:
            raise UnknownReachError(
                f"a constant that {_name(function)} reads has changed since it was first used"
            )
        tokens.add(token)
        waiting += [*named, *stand_ins(function)]
    return hashlib.sha256("\n".join(sorted(tokens)).encode()).hexdigest()


_first_seen: dict[FunctionType, str] = {}
_read: dict[CodeType, tuple[str, tuple[str, ...], frozenset[str]]] = {}


def _described(function: FunctionType) -> tuple[str, list[Callable]]:
    """A token of a function's instructions and of the constants that they name; and the functions named."""
    code, closure = function.__code__, function.__closure__ or ()
    if code not in _read:
        instructions = hashlib.sha256("\n".join(_instructions(code)).encode()).hexdigest()
        _read[code] = (
            instructions,
            tuple(sorted(set(_names(code, GLOBALS)))),
            frozenset(_names(code, ATTRIBUTES)),
        )
    instructions, names, attributes = _read[code]
    values = {name: function.__globals__[name] for name in names if name in function.__globals__}
    values |= {f"cell {n}": c.cell_contents for n, c in zip(code.co_freevars, closure, strict=True)}
    values |= {"defaults": function.__defaults__, "keyword defaults": function.__kwdefaults__}
    found: list[Callable] = []
    constants = [f"{name} = {_token(value, attributes, found)}" for name, value in values.items()]
    return "\n".join([_name(function), instructions, *constants]), found


def _token(value: Any, attributes: frozenset[str], found: list[Callable]) -> str:
    """A value as text; functions in it are appended to those found.

    Args:
        value: a global, or a cell of a closure.
        attributes: names that the code reads of whatever; of a module or a class of one's own, those matter.
        found: functions.

    Raises:
        UnknownReachError: a value of no known kind.
    """
    behind = getattr(value, "py_func", value)
    if isinstance(behind, FunctionType):
        found.append(value)
        return _name(behind)
    if isinstance(value, Enum):
        return f"{_name(type(value))}.{value.name} = {value.value!r}"
    if isinstance(value, PLAIN):
        return f"{type(value).__name__} {value!r}"
    if isinstance(value, (np.generic, np.ndarray)):
        held = np.ascontiguousarray(value)
        return f"{held.dtype.str} {held.shape} {hashlib.sha256(held.tobytes()).hexdigest()}"
    if isinstance(value, (np.dtype, np.ufunc, Type)):
        return f"{type(value).__name__} {value!r}"
    if isinstance(value, dict):
        value = tuple(value.items())
    if isinstance(value, (tuple, list, set, frozenset)):
        parts = [_token(part, attributes, found) for part in value]
        return f"{type(value).__name__} {sorted(parts) if isinstance(value, (set, frozenset)) else parts}"
    if isinstance(value, (ModuleType, type)):
        own = (
            ""
            if _is_foreign(value.__name__ if isinstance(value, ModuleType) else value.__module__)
            else value
        )
        read = sorted(attributes & set(vars(own))) if own else ()
        inner = attributes - {value.__name__.rpartition(".")[2]}  # `a.b.c` names b and c of a; and no circles
        parts = [f"{name}: {_token(vars(own)[name], inner - {name}, found)}" for name in read]
        return f"{value.__name__ if isinstance(value, ModuleType) else _name(value)} {parts}"
    if isinstance(value, BuiltinFunctionType) or _is_foreign(type(value).__module__):
        return f"{_name(type(value))} {getattr(value, '__name__', '')}"
    raise UnknownReachError(
        f"{value!r:.100} is of {_name(type(value))}; known: numbers, arrays, functions, types"
    )


def _instructions(code: CodeType) -> Iterator[str]:
    """The instructions of a code object and of those in it, a line each; no docstring, no line numbers."""
    yield f"{code.co_argcount} {code.co_kwonlyargcount} {code.co_flags & 0xFF} {code.co_varnames}"
    for step in dis.get_instructions(code):
        value = step.argval
        if isinstance(value, CodeType):
            yield f"{step.opname} {value.co_name}"
            yield from _instructions(value)
        elif isinstance(value, frozenset):
            yield f"{step.opname} {sorted(map(repr, value))}"
        else:
            yield f"{step.offset} {step.opname} {type(value).__name__} {value!r}"


def _names(code: CodeType, operations: frozenset[str]) -> Iterator[str]:
    """Names that a code object and those in it read by some operations."""
    for step in dis.get_instructions(code):
        if step.opname in operations:
            yield step.argval
        elif isinstance(step.argval, CodeType):
            yield from _names(step.argval, operations)


def _name(value: Any) -> str:
    return f"{value.__module__}.{value.__qualname__}"


def _is_foreign(module: str | None) -> bool:
    return (module or "builtins").partition(".")[0] in FOREIGN
