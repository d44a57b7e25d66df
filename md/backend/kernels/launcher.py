"""Launcher of the CUDA kernels of one stem: compiles a kernel for the types of its arguments and calls it.

The arguments of a call decide which source is compiled and how each argument is passed. `source.py`
assembles the source, and the backend compiles it.
"""

from __future__ import annotations

import re
import struct
import sys
from collections.abc import Callable, Mapping
from inspect import signature
from pathlib import Path
from typing import Any, Literal

import numpy as np

from md.backend.kernels.source import (
    C_TYPES,
    STORE,
    Parameter,
    Struct,
    assemble,
    block_of,
    file_of,
    parameters,
    struct_of_dtype,
    with_includes,
)
from md.errors import BackendUnavailableError

CODES = {np.dtype(code): code for code in "fdiIqQH"}  # of numbers, in formats of `struct`
UNASKED = 48 * 1024  # bytes of dynamic shared memory of a block that a device gives without being asked
STRUCTS = "fields", "record"  # kinds of arguments that are structs in a kernel
_PLAIN: set[type] = {int, float, type(None)}  # types of numbers
FUNCTIONS = ("initial", "interact", "result", "potential")  # of a law, on the CPU and in its .cuh


class Launcher:
    """The kernels of one stem as functions: `launcher.force(n, ...)` starts n threads.

    What is compiled follows from the arguments: dim and precision from the first (n, dim) array, a struct
    from each structured argument, the functors of law and output from the modules that define them.

    Args:
        stem: module name.
        law: the law that its kernels call, or None. A law that wraps another has the other as attribute
            `pair`, and in kernels as field `pair`.
        layout: of particle arrays, one of `md.backend.LAYOUTS`.
        compile: function that compiles CUDA C++, given as `code`, to a module with `get_function`.
        constants: integers that are defined for the source by name.
        start: launches a compiled kernel, as `md.backend.kernels.launches.KernelLaunches.start` does.
    """

    def __init__(
        self,
        stem: str,
        law: Any,
        layout: str,
        compile: Callable[..., Any],
        constants: Mapping[str, int] | None,
        start: Callable[..., None],
    ):
        self._stem, self._layout, self._make, self._start = stem, layout, compile, start
        self._constants = dict(constants or {})
        pair = wrapped_law(law)
        self._law_file = None if law is None else functor_of(type(law))
        self._pair_file = None if pair is None else functor_of(type(pair))
        if {"initial", "result"} & set(getattr(pair, "kernel_functions", ())):
            self._constants["OWN_SUMS"] = 1
        self._parameters = parameters(_cuda_file(stem).read_text("utf-8"))
        self._compiled: dict[tuple, Any] = {}
        self._allowed: dict[tuple, int] = {}  # bytes of shared memory that were allowed for a kernel

    def __getattr__(self, name: str) -> Callable[..., None]:
        declared = self._parameters.get(name)
        if declared is None:
            raise AttributeError(
                f"no kernel {name!r} in {self._stem}.cu; known: {', '.join(self._parameters)}"
            )

        threads, shared_of, is_resident = self._block(name, [parameter.name for parameter in declared])

        def launch(*arguments: Any) -> None:
            if len(arguments) != len(declared):
                raise TypeError(f"{self._stem}.{name} takes {len(declared)} arguments, not {len(arguments)}")
            n = int(arguments[0])
            if n == 0:
                return
            key = (name, *(_signature(argument) for argument in arguments))
            if key not in self._compiled:
                convert = [_conversion(p.type, a) for p, a in zip(declared, arguments, strict=True)]
                self._compiled[key] = self._compile(name, declared, arguments), convert
            kernel, convert = self._compiled[key]
            values = tuple(to(argument) for to, argument in zip(convert, arguments, strict=True))
            shared = 0 if shared_of is None else int(shared_of(arguments))
            if shared and shared > self._allowed.get(key, 0):
                self._allowed[key] = kernel.max_dynamic_shared_size_bytes = max(shared, UNASKED)
            self._start(kernel, (n + threads - 1) // threads, threads, values, shared, is_resident)

        setattr(self, name, launch)
        return launch

    def _block(self, name: str, names: list[str]) -> tuple[int, Callable[[tuple], int] | None, bool]:
        """Return what the declaration of a kernel says, for its parameters and the constants.

        Returns:
            threads of a block; function of the arguments that returns the bytes of shared memory, or None;
            whether all blocks have to be on the device at once, or the launch is an error.

        Raises:
            TypeError: the declaration names a constant or a parameter that is not there.
        """
        block = block_of(self._stem, name)
        shared, threads = block.shared, block.threads
        number = self._constants.get(threads) if isinstance(threads, str) else threads
        read = [] if shared is None else list(signature(shared).parameters)
        unknown = [parameter for parameter in read if parameter not in names]
        if number is None or unknown:
            raise TypeError(
                f"OnDevice of kernel {name!r} in {self._stem} names {', '.join(unknown) or threads}; "
                f"allowed: as threads a number or a constant ({', '.join(self._constants) or 'none'}), in "
                f"shared parameters of the kernel ({', '.join(names)})"
            )
        if shared is None:
            return number, None, block.is_resident
        places = [names.index(parameter) for parameter in read]
        return number, lambda arguments: shared(*(arguments[k] for k in places)), block.is_resident

    def _compile(self, name: str, declared: list[Parameter], arguments: tuple[Any, ...]) -> Any:
        """Compile a kernel for the types of the arguments of a call."""
        rows = next((a for a in arguments if getattr(a, "ndim", 0) == 2), None)
        dim, precision = (3, np.dtype(np.float32)) if rows is None else (rows.shape[1], rows.dtype)
        structs: dict[str, Struct] = {}
        functors: list[Path] = []
        fused = False
        for parameter, argument in zip(declared, arguments, strict=True):
            if not parameter.is_struct:
                continue
            structs |= _nested(argument)
            structs[parameter.type] = _struct(argument)
            if parameter.type == "Law":
                if self._law_file is None:
                    raise TypeError(f"{self._stem}.{name} takes a law; get the kernels with one")
                functors.append(self._law_file)
            elif parameter.type == "Out":
                fused = kind_of(argument) == "fields"
                functors.append(file_of(type(argument).__module__, ".cuh") if fused else STORE)
        source = assemble(
            self._stem, name, dim, precision, self._layout, structs, functors, fused, self._pair_file,
            self._constants,
        )  # fmt: skip
        return self._make(code=source).get_function(name)


def _cuda_file(stem: str) -> Path:
    """Find the file of CUDA kernels of a stem.

    Raises:
        BackendUnavailableError: there is none.
    """
    path = file_of(stem, ".cu")
    if not path.exists():
        raise BackendUnavailableError(
            f"{stem} has no CUDA kernel: {path.name} is not beside {path.stem}.py; write it, or use "
            f"backend='cpu'"
        )
    return path


def wrapped_law(law: Any) -> Any:
    """Return the law that a law wraps (`md.observe.pair_tally.PairTally`), or None."""
    return getattr(law, "pair", None) if hasattr(law, "kernel_law") else None


def functor_of(kind: type) -> Path:
    """Find the CUDA functions of a class of laws: the `.cuh` next to its module.

    Raises:
        BackendUnavailableError: there is no file, its functions are not those of the law on the CPU, or the
            module has a second law, which would get the same functions.
    """
    path = file_of(kind.__module__, ".cuh")
    if not path.exists():
        raise BackendUnavailableError(
            f"law {kind.__qualname__} runs on the CPU only: {path.name} is not beside {path.stem}.py; write "
            f"its function `interact` there, as md/laws/spring_dashpot.cuh does, or use backend='cpu'"
        )
    module = vars(sys.modules[kind.__module__]).values()
    own = {kind, *(v for v in module if isinstance(v, type) and v.__module__ == kind.__module__)}
    laws = {found: vars(found)["kernel_functions"] for found in own if "kernel_functions" in vars(found)}
    if len(laws) > 1:
        names = sorted(found.__qualname__ for found in laws)
        raise BackendUnavailableError(
            f"{path.name} cannot hold the functions of {' and of '.join(names)}; allowed: one law in each "
            "module that has a .cuh"
        )
    text = _code(path)
    windows = re.search(r"\bresult_of_windows\s*\([^;{}]*\)\s*\{", text) is not None
    if windows != hasattr(kind, "windows"):
        raise BackendUnavailableError(
            f"{path.name} {'has' if windows else 'lacks'} `result_of_windows`, and {kind.__qualname__} "
            f"{'lacks' if windows else 'has'} an attribute `windows`; allowed: both or neither (md.laws.pair)"
        )
    for functions in laws.values():
        found = {name for name in FUNCTIONS if re.search(rf"\b{name}\s*\([^;{{}}]*\)\s*\{{", text)}
        if found != set(functions):
            raise BackendUnavailableError(
                f"{path.name} defines {', '.join(sorted(found)) or 'nothing'}, and {path.stem}.py "
                f"{', '.join(sorted(functions))}; allowed: the same functions in both"
            )
    return path


def _code(path: Path) -> str:
    """Return the text of a functor and of the headers that it includes, without comments."""
    return re.sub(r"//[^\n]*|/\*.*?\*/", " ", with_includes(path), flags=re.DOTALL)


def takes_packed_rows(kind: type) -> bool:
    """Return whether every `interact` of a class of laws takes velocities as `const velocity*` in CUDA."""
    heads = re.findall(r"\binteract\s*\(([^;{}()]*)\)\s*\{", _code(functor_of(kind)))
    return bool(heads) and all(re.search(r"\bvelocity\s*\*\s*\w+", head) for head in heads)


def _signature(argument: Any) -> Any:
    """Return what an argument contributes to the key of a compiled kernel: its types and its dim.

    Each launch calls it, so that types of numbers are kept, and `kind_of` is not called.
    """
    kind = type(argument)
    if kind in _PLAIN:
        return kind
    if issubclass(kind, tuple):
        return kind, *[_signature(field) for field in argument]
    if isinstance(argument, np.generic) or not hasattr(argument, "dtype"):
        _PLAIN.add(kind)  # the type of a number is all that counts
        return kind
    return argument.dtype, argument.shape[1] if argument.ndim == 2 else 0


def kind_of(argument: Any) -> Literal["fields", "record", "number", "array"]:
    """Return how a kernel gets an argument, or a named field of one.

    Returns:
        "fields": a NamedTuple, as a struct of its fields; "record": a structured array of one entry, as the
        struct of its dtype; "number": a number of Python or numpy, as its value; "array": any other object
        with a dtype, which is an array of the backend, as its address.
    """
    if isinstance(argument, tuple):
        return "fields"
    dtype = getattr(argument, "dtype", None)
    if dtype is not None and dtype.names:
        return "record"
    return "number" if dtype is None or isinstance(argument, (np.ndarray, np.generic)) else "array"


def _struct(argument: Any) -> Struct:
    """Make the C struct of an argument: of its dtype, of its named fields, or with a pointer to its data."""
    kind = kind_of(argument)
    if kind == "fields":
        return Struct(tuple((_field_type(name, value), name, 0) for name, value in _named_fields(argument)))
    if kind == "record":
        return struct_of_dtype(argument.dtype)
    return Struct(((f"{C_TYPES[argument.dtype]}*", "data", 0),))


def _named_fields(argument: Any) -> list[tuple[str, Any]]:
    """Return the named fields of a struct that are not None; a flat law is nested again first."""
    if parts := getattr(argument, "parts", ()):  # `md.laws.pair.flat`
        own = len(parts[0]._fields) - 1
        argument = parts[0](*argument[:own], parts[1](*argument[own:]))
    fields = zip(argument._fields, argument, strict=True)
    return [(name, value) for name, value in fields if value is not None]


def _nested(argument: Any) -> dict[str, Struct]:
    """Make the structs among the named fields of an argument, each with the name of its field."""
    fields = _named_fields(argument) if kind_of(argument) == "fields" else []
    return {name.capitalize(): _struct(value) for name, value in fields if kind_of(value) in STRUCTS}


def _field_type(name: str, value: Any) -> str:
    """Return the C type of a field."""
    kind = kind_of(value)
    if kind in STRUCTS:
        return name.capitalize()
    return C_TYPES[_field_dtype(value)] if kind == "number" else f"{C_TYPES[value.dtype]}*"


def _conversion(declared: str, argument: Any) -> Callable[[Any], Any]:
    """Return a function that converts arguments of these types to those of a kernel call.

    Args:
        declared: C type of the parameter.
        argument: an argument of these types.
    """
    if declared == "int":
        return np.int32
    if declared == "long long":
        return np.int64
    if declared == "double":
        return np.float64
    kind = kind_of(argument)
    if kind == "fields":
        dtype, pack = _field_dtype(argument), struct.Struct(f"={_format(argument)}").pack
        return lambda given: np.frombuffer(pack(*_numbers(given)), dtype)
    if declared[0].isupper() and kind != "record":
        dtype = np.dtype([("data", np.uint64)])
        return lambda given: np.array([(_to_plain(given),)], dtype)
    if declared.endswith("*"):
        return lambda given: np.uint64(_to_plain(given))
    return lambda given: given


def _field_dtype(value: Any) -> Any:
    """Return the numpy type of a field of a struct."""
    kind = kind_of(value)
    if kind == "fields":
        return np.dtype([(name, _field_dtype(field)) for name, field in _named_fields(value)], align=True)
    if kind == "array":
        return np.dtype(np.uint64)
    if hasattr(value, "dtype"):
        return value.dtype
    return np.dtype(np.int64 if isinstance(value, int) else np.float64)


def _format(given: Any) -> str:
    """Return the format in which `struct` packs the named fields of a struct, with their padding."""
    dtype, parts, end = _field_dtype(given), [], 0
    for name, value in _named_fields(given):
        field, offset = dtype.fields[name][:2]
        inner = f"{field.itemsize}s" if isinstance(value, np.ndarray) else CODES.get(field)
        parts.append(f"{offset - end}x{inner or _format(value)}")
        end = offset + field.itemsize
    return "".join(parts) + f"{dtype.itemsize - end}x"


def _to_plain(value: Any) -> Any:
    """Convert a value to a number or bytes, or to the address of a device array."""
    if isinstance(value, (int, float, np.generic)):
        return value
    if isinstance(value, np.ndarray):
        if value.size != 1:
            raise ValueError(f"a record of {value.size} entries in an argument of a kernel; allowed: 1")
        return value.tobytes()
    return value.data.ptr if value.size else 0


def _numbers(given: Any) -> list[Any]:
    """List the named fields of a struct and of the structs in it as numbers, addresses and bytes."""
    found: list[Any] = []
    for value in (field for _, field in _named_fields(given)) if hasattr(given, "parts") else given:
        kind = type(value)
        if kind in _PLAIN:
            if value is not None:
                found.append(value)
        elif issubclass(kind, tuple):
            found += _numbers(value)
        else:
            found.append(_to_plain(value))
    return found
