"""Hash of all code that a compiled function can call and all constants that it reads.

Numba compiles byte code, calls or inlines the functions that it names, and freezes the globals that it reads.
So two functions give the same machine code for the same types if their instructions, the instructions and
compiler options of every function that they can call, directly or not, and all constants read by these are
the same. Comments, docstrings, line numbers and paths of files are not hashed, and an edit of code that no
kernel can call changes no fingerprint.
"""

from __future__ import annotations

import dis
import hashlib
import sys
import sysconfig
from collections.abc import Callable, Iterable, Iterator
from enum import Enum
from pathlib import Path
from types import BuiltinFunctionType, CodeType, FunctionType, ModuleType
from typing import Any

import numpy as np
from numba import types

from sfc.compile.numba_internals import Dispatcher, builtin_registry

VERSIONED = frozenset({"builtins", "numpy", "numba", "llvmlite"})  # packages that their versions identify
STANDARD = Path(sysconfig.get_paths()["stdlib"]).resolve()
GLOBALS = frozenset({"LOAD_GLOBAL", "LOAD_NAME"})
ATTRIBUTES = frozenset({"LOAD_ATTR", "LOAD_METHOD"})
PLAIN = (type(None), bool, int, float, complex, str, bytes, type(Ellipsis), slice, range)


class UnhashableCodeError(ValueError):
    """Error for a compiled function that reads an object that cannot be hashed; the message names it."""


class ChangedConstantError(UnhashableCodeError):
    """Error for a constant that has changed after a function that reads it was hashed; names the function."""


def fingerprint(roots: Iterable[Callable], extended: bool = True) -> str:
    """Hash the code that some functions can call and the constants that it reads.

    Args:
        roots: functions or Numba dispatchers; their order counts.
        extended: include extensions of builtins, numpy and the attributes of types, which compiled code may
            call without naming them.

    Returns:
        64 hexadecimal digits.

    Raises:
        UnhashableCodeError: a global that is neither code nor a plain constant.
        ChangedConstantError: a global that differs from its value when it was first hashed: machine code
            compiled since may contain either value.
    """
    numbers: dict[Callable, int] = {}  # functions in the order in which they are found
    waiting: list[Callable] = []

    def number(function: Callable) -> int:
        if function not in numbers:
            numbers[function] = len(numbers)
            waiting.append(function)
        return numbers[function]

    digest = hashlib.sha256(
        repr([number(root) for root in (*roots, *(_extensions() if extended else ()))]).encode()
    )
    for function in waiting:  # grows during the loop
        try:
            text, found = _described(function)
        except RecursionError as error:
            raise UnhashableCodeError(f"{_name(function)} reads a container that contains itself") from error
        digest.update(f"{text}\n{[number(one) for one in found]}\n".encode())
    return digest.hexdigest()


_first_seen: dict[Callable, tuple[str, list[Callable]]] = {}
_read: dict[CodeType, tuple[str, tuple[str, ...], frozenset[str]]] = {}


def _described(function: Callable) -> tuple[str, list[Callable]]:
    """Describe a function by its instructions, constants and options; list the functions that it names."""
    found: list[Callable] = []
    function = getattr(function, "dispatcher", function)  # of a kernel
    if isinstance(function, Dispatcher):
        is_open = function._can_compile  # type: ignore[attr-defined]  # not in the stubs of Numba
        kinds = [] if is_open else [str(kind) for kind in function.overloads]
        options = _token({**function.targetoptions, "locals": function.locals}, frozenset(), found)
        return f"options {options} {kinds}", [function.py_func, *found]
    if isinstance(plain := getattr(function, "py_func", None), FunctionType):
        return "threaded", [plain]
    if _is_foreign_function(function):
        return _name(function), found
    code, closure = function.__code__, function.__closure__ or ()
    if code not in _read:
        instructions = hashlib.sha256("\n".join(_instructions(code)).encode()).hexdigest()
        names = tuple(sorted(set(_names(code, GLOBALS))))
        _read[code] = instructions, names, frozenset(_names(code, ATTRIBUTES))
    instructions, names, attributes = _read[code]
    values = {name: function.__globals__[name] for name in names if name in function.__globals__}
    try:
        values |= {f"cell {n}": c.cell_contents for n, c in zip(code.co_freevars, closure, strict=True)}
    except ValueError as error:
        raise UnhashableCodeError(f"{_name(function)} closes over a variable without a value") from error
    values |= {"defaults": function.__defaults__, "keyword defaults": function.__kwdefaults__}
    constants = [f"{name} = {_token(value, attributes, found)}" for name, value in values.items()]
    text = "\n".join([_name(function), instructions, *constants])
    if _first_seen.setdefault(function, (text, found)) != (text, found):
        raise ChangedConstantError(
            f"a constant that {_name(function)} reads has changed since it was first compiled; define the "
            "function again, or start a new process"
        )
    overloads, stand_ins = _overloads(function)
    return f"{text}\n{overloads}", found + stand_ins


_registered: dict[Callable, list[Any]] = {}
_registered_of = 0  # number of entries of Numba's registry copied to it
_extended: list[Callable] = []
_extended_of = [0, 0]  # number of entries read of Numba's lists of functions and of attributes


def _extensions() -> list[Callable]:
    """List the overloads of builtins, numpy and type attributes that packages other than Numba define.

    Compiled code calls these without naming them, so they count for every kernel.
    """
    for k, listed in enumerate((builtin_registry.functions, builtin_registry.attributes)):
        for template in listed[_extended_of[k] :]:
            choose, key = getattr(template, "_overload_func", None), getattr(template, "key", None)
            if isinstance(key, FunctionType) and not _is_foreign_function(key):
                continue  # found by its name
            if isinstance(choose, FunctionType) and not _is_foreign_function(choose):
                _extended.append(choose)
        _extended_of[k] = len(listed)
    return _extended


def _overloads(function: Callable) -> tuple[list[str], list[Callable]]:
    """List the overloads of a function: their options, and the functions that choose their code.

    A chooser with the attribute `by_class` chooses by the class of an argument (`sfc.compile.chosen_by`). Of
    it only the attribute `default` counts, because the code for the classes is hashed by class.
    """
    global _registered_of
    for registered, kind in builtin_registry.globals[_registered_of:]:
        if isinstance(registered, FunctionType) and isinstance(kind, types.Function):
            _registered.setdefault(registered, []).extend(kind.templates)
    _registered_of = len(builtin_registry.globals)
    options, choosers = [], []
    for template in _registered.get(function, ()):
        choose = getattr(template, "_overload_func", None)
        if choose is None:
            raise UnhashableCodeError(f"{_name(function)} has a {template.__name__} of Numba's own")
        options.append(f"{getattr(template, '_jit_options', None)} {getattr(template, '_inline', None)}")
        by_class = getattr(choose, "by_class", False)
        choosers += ([choose.default] if choose.default else []) if by_class else [choose]
    return options, choosers


def described_options(options: dict[str, Any]) -> str:
    """Describe compiler options as text that is the same in every process."""
    return _token(dict(sorted(options.items())), frozenset(), [])


def _token(value: Any, attributes: frozenset[str], found: list[Callable], above: tuple = ()) -> str:
    """Describe a value as text, and append the functions in it to those found.

    Args:
        value: a global, or a cell of a closure.
        attributes: names that the code reads as attributes; of a module or a class, those members count.
        found: functions.
        above: modules and classes that contain the value.

    Raises:
        UnhashableCodeError: a value of no known kind.
    """
    if isinstance(getattr(value, "py_func", value), FunctionType):  # or a kernel, or a dispatcher
        found.append(value)
        return "function"
    if isinstance(defined := getattr(value, "_defn", None), FunctionType):  # an intrinsic of Numba
        found.append(defined)
        return "intrinsic"
    if isinstance(value, Enum):
        return f"{_name(type(value))}.{value.name} = {value.value!r}"
    if isinstance(value, PLAIN):
        return f"{type(value).__name__} {value!r}"
    if isinstance(value, (np.generic, np.ndarray)):
        plain = np.ascontiguousarray(value)
        if plain.dtype.hasobject:
            raise UnhashableCodeError(f"an array of objects, {value!r:.100}")
        return f"{plain.dtype!r} {plain.shape} {hashlib.sha256(plain.tobytes()).hexdigest()}"
    if isinstance(value, (np.dtype, types.Type)):
        return f"{type(value).__name__} {value!r}"
    if isinstance(value, dict):
        return f"dict {_token(tuple(value.items()), attributes, found, above)}"
    if isinstance(value, (tuple, list, set, frozenset)):
        ordered = sorted(value, key=repr) if isinstance(value, (set, frozenset)) else value
        parts = [_token(part, attributes, found, above) for part in ordered]
        fields = getattr(value, "_fields", "") if isinstance(value, tuple) else ""
        return f"{_name(type(value))} {fields} {parts}"
    if above and isinstance(above[-1], type) and hasattr(value, "__get__"):
        return _name(type(value))  # compiled code depends only on the type of a property or field
    if type(value).__name__ == "JitClassType":
        raise UnhashableCodeError(f"the jitclass {value.__name__}, with methods that are not hashed")
    if isinstance(value, (ModuleType, type)):
        name = value.__name__ if isinstance(value, ModuleType) else _name(value)
        if value in above or _is_foreign(name if isinstance(value, ModuleType) else value.__module__):
            return name
        read = sorted(attributes & set(vars(value)))
        parts = [f"{k}: {_token(vars(value)[k], attributes, found, (*above, value))}" for k in read]
        is_named = isinstance(value, type) and issubclass(value, tuple)
        fields = getattr(value, "_fields", "") if is_named else ""
        return f"{name} {fields} {parts}"
    named = None if type(value).__module__.startswith("numba") else getattr(value, "__name__", None)
    if isinstance(value, BuiltinFunctionType) or (named and _is_foreign(getattr(value, "__module__", None))):
        return f"{_name(type(value))} {getattr(value, '__module__', '')} {named}"
    raise UnhashableCodeError(
        f"{value!r:.100} is of {_name(type(value))}; known: numbers, arrays, functions, types"
    )


def _instructions(code: CodeType) -> Iterator[str]:
    """List the instructions of a code object and its inner ones, a line each, without docstrings."""
    yield f"{code.co_argcount} {code.co_kwonlyargcount} {code.co_flags & 0xFF} {code.co_varnames}"
    yield code.co_exceptiontable.hex()
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
    """List the names that a code object and its inner ones read by some operations."""
    for step in dis.get_instructions(code):
        if step.opname in operations:
            yield step.argval
        elif isinstance(step.argval, CodeType):
            yield from _names(step.argval, operations)


def _name(value: Any) -> str:
    return f"{value.__module__}.{value.__qualname__}"


def _is_foreign(module: str | None) -> bool:
    """Return whether a module belongs to Python, numpy or Numba, which their versions identify."""
    top = (module or "builtins").partition(".")[0]
    if top in VERSIONED:
        return True
    if top not in sys.stdlib_module_names:
        return False
    file = getattr(sys.modules.get(module or top), "__file__", None)
    if file is None:
        return top in sys.builtin_module_names
    return Path(file).resolve().is_relative_to(STANDARD)


def _is_foreign_function(function: Any) -> bool:
    """Return whether a function belongs to such a module, by its globals; `__module__` can be overwritten."""
    name = function.__globals__.get("__name__")
    module = sys.modules.get(name) if isinstance(name, str) else None
    return module is not None and vars(module) is function.__globals__ and _is_foreign(name)
