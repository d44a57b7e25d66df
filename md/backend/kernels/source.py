"""Assembly of the CUDA source of a kernel as one string, so that an edited header is never missed by a cache.

Contract. The source of kernel `force` of stem `md.search.grid.linked` consists of, in this order:

- the definitions of this case: `real`, DIM, the threads of a block, the layout, the constants;
- one struct for each parameter of a capitalised type, made from the argument of the call, with `HAS_GRID`
  defined if there is a struct `Grid`, and so on;
- `rows.cuh`, and `prelude.cuh` if there is a `Grid`;
- the functors: of the law (`spring_dashpot.cuh`), of the output (`store.cuh`, `sorted_copy.cuh` or
  `fused.cuh`). If the law wraps another, as `pair_tally.cuh` does, the functor of the other comes before,
  with `Pair` in place of `Law`;
- the .cuh file of the stem, if there is one, and that kernel of `linked.cu`.

Included headers, by their paths relative to the file or to the root, are inserted in place of the include.
Line directives make the compiler name the file and line that were edited.
"""

import re
import sys
from collections.abc import Iterable, Mapping
from dataclasses import dataclass
from importlib.util import find_spec
from pathlib import Path

import numpy as np

from md.backend.kernels.on_device import OnDevice, declared
from md.errors import BackendUnavailableError

ROOT = Path(__file__).parents[3]
HEADERS = ROOT / "md" / "backend"
STORE = HEADERS / "store.cuh"  # the functor of an output that is a plain array
C_TYPES = {
    np.dtype(np.float32): "float",
    np.dtype(np.float64): "double",
    np.dtype(np.int32): "int",
    np.dtype(np.int64): "long long",
    np.dtype(np.uint8): "unsigned char",
    np.dtype(np.uint16): "unsigned short",
    np.dtype(np.uint32): "unsigned",
    np.dtype(np.uint64): "unsigned long long",
}
_KERNEL = re.compile(
    r'extern "C" __global__ void (?:(?P<bounds>\w+(?:\([^()]*\))?) )?(?P<name>\w+)'
    r"\((?P<parameters>[^)]*)\) \{\n.*?^\}\n",
    re.DOTALL | re.MULTILINE,
)
_INCLUDE = re.compile(r'#include "(.+)"')


@dataclass(frozen=True)
class Parameter:
    """One parameter of a kernel: its C type without const, and its name."""

    type: str
    name: str

    @property
    def is_struct(self) -> bool:
        """Whether the type of the parameter is a struct made from the argument (capitalised)."""
        return self.type[0].isupper()


@dataclass(frozen=True)
class Struct:
    """A C struct: (C type, field, count) of each field; a count of 0 is no array."""

    fields: tuple[tuple[str, str, int], ...]

    def text(self, name: str) -> str:
        """Return the C definition of the struct under a name."""
        lines = [
            f"    {kind} {field}{f'[{count}]' if count else ''};\n" for kind, field, count in self.fields
        ]
        return f"struct {name} {{\n{''.join(lines)}}};\n"


def struct_of_dtype(dtype: np.dtype) -> Struct:
    """Make the C struct of an aligned structured dtype."""
    fields = []
    for name in dtype.names or ():
        base, shape = dtype[name].subdtype or (dtype[name], ())
        fields.append((C_TYPES[base], name, shape[0] if shape else 0))
    return Struct(tuple(fields))


def parameters(text: str) -> dict[str, list[Parameter]]:
    """Read the parameter list of every kernel in a CUDA source: name -> parameters."""
    return {
        match["name"]: [_parameter(part) for part in match["parameters"].split(",")]
        for match in _KERNEL.finditer(text)
    }


def block_of(stem: str, kernel: str) -> OnDevice:
    """Return the threads and the shared memory of the blocks of a kernel, as its module declares them.

    Raises:
        BackendUnavailableError: the CUDA source of the kernel needs a declaration that is missing.
    """
    path, given = file_of(stem, ".cu"), declared(stem, kernel)
    text = path.read_text("utf-8")
    source = next(match for match in _KERNEL.finditer(text) if match["name"] == kernel)
    if given is None and source["bounds"]:
        needs, option = f"`{source['bounds']}` before its name", "threads=<of a block>"
    elif (given is None or given.shared is None) and "extern __shared__" in source[0]:
        needs, option = "`extern __shared__`", "shared=<function of parameters: bytes>"
    else:
        return given or OnDevice()
    raise BackendUnavailableError(
        f"kernel {kernel!r} of {path.name} has {needs}, and {path.stem}.py does not declare it; write "
        f"@OnDevice({option}) before the function {kernel!r} there, or {kernel} = OnDevice({option}) without "
        "such a function (from md.backend import OnDevice)"
    )


def keep_kernel(text: str, kernel: str) -> str:
    """Replace every kernel of a CUDA source but one with blank lines.

    The text before a kernel belongs to it, except for includes. The structs of the other kernels need not be
    defined then.
    """
    kept, end = [], 0
    for match in _KERNEL.finditer(text):
        part = text[end : match.end()]
        kept.append(part if match["name"] == kernel else _blank(part))
        end = match.end()
    return "".join(kept) + text[end:]


def _blank(text: str) -> str:
    """Replace the lines of a text by blank lines, except for includes."""
    lines = (line if _INCLUDE.match(line) else "" for line in text.split("\n"))
    return "\n".join(lines)


def _parameter(text: str) -> Parameter:
    """Parse one parameter of a kernel."""
    words = " ".join(text.split())
    name = re.findall(r"\w+", words)[-1]
    kind = words.removesuffix(name).replace("const ", "").strip()
    return Parameter(re.sub(r"\s*\*", "*", kind), name)


def file_of(module: str, suffix: str) -> Path:
    """Return the path of a module's file with another suffix, whether or not there is such a file."""
    loaded = sys.modules.get(module)
    spec = find_spec(module) if loaded is None else None
    own = getattr(loaded, "__file__", None) or (spec.origin if spec else None)
    return Path(own or f"{module}.py").resolve().with_suffix(suffix)


def assemble(
    stem: str,
    kernel: str,
    dim: int,
    precision: np.dtype,
    layout: str,
    structs: dict[str, Struct],
    functors: Iterable[Path] = (),
    fused: bool = False,
    pair: Path | None = None,
    constants: Mapping[str, int] | None = None,
) -> str:
    """Assemble the source of one kernel of a stem for one case.

    Args:
        stem: module name.
        kernel: the kernel.
        dim: 2 or 3.
        precision: numpy dtype of `real`.
        layout: one of `md.backend.LAYOUTS`.
        structs: name -> struct, for every capitalised parameter type.
        functors: files with the functions of the law and the output.
        fused: whether the output is a functor of named fields, such as one that moves the particles.
        pair: file with the functions of the law that the law wraps, or None; that law is the struct `Pair`.
        constants: integers to define, by name.

    Returns:
        CUDA C++.

    Raises:
        FileNotFoundError: a stem without a .cu file.
        BackendUnavailableError: a kernel without the declaration that its source needs.
    """
    head = [
        f"typedef {C_TYPES[np.dtype(precision)]} real;\n",
        f"#define DIM {dim}\n",
        f"#define BLOCK_THREADS {block_of(stem, kernel).threads}\n",
        f"#define LAYOUT_{layout.upper()}\n",
        "#define FUSED\n" if fused else "",
        *(f"#define {name} {value}\n" for name, value in (constants or {}).items()),
        *(f"#define HAS_{name.upper()}\n{struct.text(name)}" for name, struct in structs.items()),
    ]
    parts = [HEADERS / "prelude.cuh"] if "Grid" in structs else []
    parts = [HEADERS / "rows.cuh", *parts, *([pair] if pair else []), *functors]
    own = file_of(stem, ".cuh")
    if own.exists() and own not in parts:
        parts.append(own)
    seen: set[Path] = set()
    texts = [_with_includes(path, path.read_text("utf-8"), seen) for path in parts]
    if pair:
        k = parts.index(pair)
        texts[k] = f"#define Law Pair\n{texts[k]}#undef Law\n"
    own = file_of(stem, ".cu")
    return "".join((*head, *texts, _with_includes(own, keep_kernel(own.read_text("utf-8"), kernel), seen)))


def with_includes(path: Path) -> str:
    """Return the text of a functor together with the included headers next to it, each once."""
    paths, texts = [path.resolve()], []
    for file in paths:  # which grows during the loop
        texts.append(file.read_text("utf-8"))
        headers = ((file.parent / name).resolve() for name in _INCLUDE.findall(texts[-1]))
        paths += [header for header in headers if header.exists() and header not in paths]
    return "\n".join(texts)


def _with_includes(path: Path, text: str, seen: set[Path]) -> str:
    """Insert the project's headers that a source includes, each once."""
    if path in seen:
        return ""
    seen.add(path)
    name = path.relative_to(ROOT).as_posix() if path.is_relative_to(ROOT) else path.name
    lines = [f'#line 1 "{name}"']
    for number, line in enumerate(text.splitlines(), 1):
        included = _INCLUDE.fullmatch(line)
        if included:
            relative = path.parent / included[1]
            header = relative if relative.exists() else ROOT / included[1]
            lines += [_with_includes(header, header.read_text("utf-8"), seen), f'#line {number + 1} "{name}"']
        else:
            lines.append(line)
    return "\n".join(lines) + "\n"
