"""The kernels of one CUDA stem as Python functions.

What is compiled, and how each argument is passed, follows from the arguments of a call; `source.py` then puts
the text together and the backend compiles it.
"""

from __future__ import annotations

import re
import sys
from collections.abc import Callable
from pathlib import Path
from typing import Any

import numpy as np

from md.backend.cuda_source import (
    C_TYPES,
    STORE,
    Struct,
    assemble,
    blocks,
    file_of,
    parameters,
    struct_of_dtype,
    with_includes,
)
from md.errors import BackendUnavailableError

THREADS = 256  # a block
WIDE = 1024  # a block of a kernel marked so, where that leaves enough blocks to share out
ENOUGH = 2**19  # threads
NARROW = 64  # a block of a kernel marked so
ENTRY = 4  # bytes of shared memory
FUNCTIONS = ("initial", "interact", "result", "potential")  # of a law, on the CPU and in its .cuh


class Launcher:
    """The kernels of one stem as functions: `launcher.force(n, ...)` starts n threads.

    What is compiled follows from the arguments: dim and precision from the first (n, dim) array, a struct
    from each structured argument, the functors of law and output from the modules that define them.

    Args:
        stem: module name.
        law: the law that its kernels call, or None. One that asks another has that as its `pair`, and the
            other as kernels take it in a field of this name in its own.
        layout: of particle arrays, one of `md.backend.LAYOUTS`.
        compile: makes a module, with `get_function`, of CUDA C++ given as `code`.
    """

    def __init__(self, stem: str, law: Any, layout: str, compile: Callable[..., Any]):
        self._stem, self._layout, self._make = stem, layout, compile
        pair = asked_by(law)
        self._law_file = None if law is None else functor_of(law)
        self._pair_file = None if pair is None else functor_of(pair)
        text = _cuda_file(stem).read_text()
        self._parameters, self._blocks = parameters(text), blocks(text)
        self._compiled: dict[tuple, Any] = {}

    def __getattr__(self, name: str):
        listed = self._parameters.get(name)
        if listed is None:
            raise AttributeError(
                f"no kernel {name!r} in {self._stem}.cu; known: {', '.join(self._parameters)}"
            )

        names = [parameter.name for parameter in listed]

        def launch(*arguments):
            if len(arguments) != len(listed):
                raise TypeError(f"{self._stem}.{name} takes {len(listed)} arguments, not {len(arguments)}")
            n = int(arguments[0])
            if n == 0:
                return
            key = (name, *(_kind(argument) for argument in arguments))
            if key not in self._compiled:
                convert = [_conversion(p.type, a) for p, a in zip(listed, arguments, strict=True)]
                self._compiled[key] = self._compile(name, listed, arguments), convert
            kernel, convert = self._compiled[key]
            values = tuple(to(argument) for to, argument in zip(convert, arguments, strict=True))
            block, shared = self._blocks.get(name), {}
            threads = NARROW if block == "NARROW" else THREADS
            if block == "WIDE" and n >= ENOUGH:
                threads = WIDE
            if block == "NARROW" and "entries" in names:
                shared["shared_mem"] = ENTRY * threads * int(arguments[names.index("entries")])
            kernel(((n + threads - 1) // threads,), (threads,), values, **shared)

        setattr(self, name, launch)
        return launch

    def _compile(self, name: str, listed, arguments):
        rows = next((a for a in arguments if getattr(a, "ndim", 0) == 2), None)
        dim, precision = (3, np.dtype(np.float32)) if rows is None else (rows.shape[1], rows.dtype)
        structs, functors, fused = {}, [], False
        for parameter, argument in zip(listed, arguments, strict=True):
            if not parameter.is_struct:
                continue
            structs |= _nested(argument)
            structs[parameter.type] = _struct(argument)
            if parameter.type == "Law":
                functors.append(self._law_file)
            elif parameter.type == "Out":
                fused = hasattr(argument, "_fields")
                functors.append(file_of(type(argument).__module__, ".cuh") if fused else STORE)
        source = assemble(
            self._stem, name, dim, precision, self._layout, structs, functors, fused, self._pair_file
        )
        return self._make(code=source).get_function(name)


def _cuda_file(stem: str) -> Path:
    """The CUDA kernels of a stem.

    Raises:
        BackendUnavailableError: there are none.
    """
    path = file_of(stem, ".cu")
    if not path.exists():
        raise BackendUnavailableError(
            f"{stem} has no CUDA kernel: {path.name} is not beside {path.stem}.py; write it, or use "
            f"backend='cpu'"
        )
    return path


def asked_by(law: Any) -> Any:
    """The law that a law asks, or None."""
    return getattr(law, "pair", None) if hasattr(law, "kernel_law") else None


def functor_of(law: Any) -> Path:
    """Find the CUDA functions of a law: the `.cuh` beside the module of its class.

    Raises:
        BackendUnavailableError: there are none, they are not those that the law has on the CPU, or the module
            has a second law, whose functions would be these too.
    """
    kind = type(law)
    path = file_of(kind.__module__, ".cuh")
    if not path.exists():
        raise BackendUnavailableError(
            f"law {kind.__qualname__} runs on the CPU only: {path.name} is not beside {path.stem}.py; write "
            f"its function `interact` there, as md/laws/spring_dashpot.cuh does, or use backend='cpu'"
        )
    module = vars(sys.modules[kind.__module__]).values()
    own = {kind, *(one for one in module if isinstance(one, type) and one.__module__ == kind.__module__)}
    laws = {one: vars(one)["kernel_functions"] for one in own if "kernel_functions" in vars(one)}
    if len(laws) > 1:
        names = sorted(one.__qualname__ for one in laws)
        raise BackendUnavailableError(
            f"{path.name} cannot hold the functions of {' and of '.join(names)}; allowed: one law in each "
            "module that has a .cuh"
        )
    text = re.sub(r"//[^\n]*|/\*.*?\*/", " ", with_includes(path), flags=re.DOTALL)
    for functions in laws.values():
        found = {name for name in FUNCTIONS if re.search(rf"\b{name}\s*\([^;{{}}]*\)\s*\{{", text)}
        if found != set(functions):
            raise BackendUnavailableError(
                f"{path.name} defines {', '.join(sorted(found)) or 'nothing'}, and {path.stem}.py "
                f"{', '.join(sorted(functions))}; allowed: the same functions in both"
            )
    return path


def _kind(argument) -> Any:
    """What decides, of an argument, which code is compiled."""
    if hasattr(argument, "_fields"):
        return type(argument), *(_kind(field) for field in argument)
    if hasattr(argument, "dtype"):
        return argument.dtype, argument.shape[1] if argument.ndim == 2 else 0
    return type(argument)


def _struct(argument) -> Struct:
    """The struct that holds an argument: its own dtype, its named fields, or a pointer to its data."""
    if hasattr(argument, "_fields"):
        return Struct(tuple((_field_type(name, value), name, 0) for name, value in _held(argument)))
    if argument.dtype.names:
        return struct_of_dtype(argument.dtype)
    return Struct(((f"{C_TYPES[argument.dtype]}*", "data", 0),))


def _held(argument) -> list[tuple[str, Any]]:
    """The named fields that a struct holds: all but those that are None; of a law made flat, as it was."""
    if parts := getattr(argument, "parts", ()):  # `md.laws.pair.flat`
        own = len(parts[0]._fields) - 1
        argument = parts[0](*argument[:own], parts[1](*argument[own:]))
    fields = zip(argument._fields, argument, strict=True)
    return [(name, value) for name, value in fields if value is not None]


def _nested(argument) -> dict[str, Struct]:
    """The structs among the named fields of an argument, each named as its field."""
    fields = _held(argument) if hasattr(argument, "_fields") else ()
    return {name.capitalize(): _struct(value) for name, value in fields if _is_struct(value)}


def _is_struct(value) -> bool:
    """Whether a field is a struct itself: named fields, or a record."""
    return hasattr(value, "_fields") or bool(getattr(getattr(value, "dtype", None), "names", None))


def _field_type(name: str, value) -> str:
    if isinstance(value, (int, float)):
        return "long long" if isinstance(value, int) else "double"
    if _is_struct(value):
        return name.capitalize()
    return C_TYPES[value.dtype] + ("" if isinstance(value, (np.ndarray, np.generic)) else "*")


def _conversion(declared: str, argument) -> Callable[[Any], Any]:
    """What makes of an argument of this kind one that a kernel takes."""
    if declared == "int":
        return np.int32
    if declared == "long long":
        return np.int64
    if declared == "double":
        return np.float64
    if hasattr(argument, "_fields"):
        dtype = _field(argument)
        return lambda given: np.array([_plain(given)], dtype)
    if declared[0].isupper() and not argument.dtype.names:
        dtype = np.dtype([("data", np.uint64)])
        return lambda given: np.array([(_plain(given),)], dtype)
    if declared.endswith("*"):
        return lambda given: np.uint64(_plain(given))
    return lambda given: given


def _field(value):
    """The numpy type of a field of a struct."""
    if hasattr(value, "_fields"):
        return np.dtype([(name, _field(held)) for name, held in _held(value)], align=True)
    if isinstance(value, (int, float)):
        return np.int64 if isinstance(value, int) else np.float64
    return value.dtype if isinstance(value, (np.ndarray, np.generic)) else np.uint64


def _plain(value):
    """A field of a struct: a number, the number in a host array of one, or the address of a device array.

    Of named fields a tuple of these.
    """
    if hasattr(value, "_fields"):
        return tuple(_plain(held) for _, held in _held(value))
    if isinstance(value, np.ndarray):
        return value.reshape(())[()]
    if isinstance(value, (int, float, np.generic)):
        return value
    return value.data.ptr if value.size else 0
