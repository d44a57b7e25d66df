"""The CUDA source of a kernel as one string, so that no compiler's cache can miss an edited header.

Contract. The source of kernel `force` of stem `md.search.linked` is, in this order: the definitions of this
case (`real`, DIM, the layout), one struct for each parameter of a capitalised type, made from the argument
that is to be passed, the prelude, the functors (`spring_dashpot.cuh` of the law; `store.cuh`, `sorted_copy.cuh` or
`integrate/moving.cuh` of the output), the stem's own .cuh where there is one, and that kernel of `linked.cu`;
headers that one of these includes, by their paths beside it or from the root, stand where it does so. Where
the law asks another, as `pair_tally.cuh` does, the other's functor comes before it, with `Pair` in place of
`Law`. `HAS_GRID` is defined where there is a struct `CellGrid`, and so on. Line directives make the compiler name
the file and line that were edited.
"""

import re
import sys
from collections.abc import Iterable
from dataclasses import dataclass
from importlib.util import find_spec
from pathlib import Path

import numpy as np

ROOT = Path(__file__).parents[2]
STORE = Path(__file__).with_name("store.cuh")  # the functor of an output that is a plain array
C_TYPES = {
    np.dtype(np.float32): "float",
    np.dtype(np.float64): "double",
    np.dtype(np.int32): "int",
    np.dtype(np.int64): "long long",
    np.dtype(np.uint16): "unsigned short",
    np.dtype(np.uint32): "unsigned",
    np.dtype(np.uint64): "unsigned long long",
}
_KERNEL = re.compile(
    r'extern "C" __global__ void (?:BLOCKS\(\d\) |(?P<block>WIDE|NARROW) )?(?P<name>\w+)'
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
        """Whether its type is a struct made from the argument (capitalised)."""
        return self.type[0].isupper()


@dataclass(frozen=True)
class Struct:
    """A struct to define: (C type, field, count) of each field; a count of 0 is no array."""

    fields: tuple[tuple[str, str, int], ...]

    def text(self, name: str) -> str:
        """Its C definition."""
        lines = [
            f"    {kind} {field}{f'[{count}]' if count else ''};\n" for kind, field, count in self.fields
        ]
        return f"struct {name} {{\n{''.join(lines)}}};\n"


def struct_of_dtype(dtype: np.dtype) -> Struct:
    """The struct of an aligned structured dtype."""
    fields = []
    for name in dtype.names:
        base, shape = dtype[name].subdtype or (dtype[name], ())
        fields.append((C_TYPES[base], name, shape[0] if shape else 0))
    return Struct(tuple(fields))


def parameters(text: str) -> dict[str, list[Parameter]]:
    """Parameter list of every kernel in a CUDA source."""
    return {
        match["name"]: [_parameter(part) for part in match["parameters"].split(",")]
        for match in _KERNEL.finditer(text)
    }


def blocks(text: str) -> dict[str, str]:
    """Kernels of a CUDA source whose blocks have a size of their own: name -> WIDE or NARROW."""
    return {match["name"]: match["block"] for match in _KERNEL.finditer(text) if match["block"]}


def only(text: str, kernel: str) -> str:
    """A CUDA source with every kernel but one left blank, line for line.

    What stands before a kernel belongs to it, but for includes. The structs of the others need not be known
    then.
    """
    kept, end = [], 0
    for match in _KERNEL.finditer(text):
        part = text[end : match.end()]
        kept.append(part if match["name"] == kernel else _blank(part))
        end = match.end()
    return "".join(kept) + text[end:]


def _blank(text: str) -> str:
    lines = (line if _INCLUDE.match(line) else "" for line in text.split("\n"))
    return "\n".join(lines)


def _parameter(text: str) -> Parameter:
    kind, name = re.fullmatch(r"(.*?)(\w+)", " ".join(text.split())).groups()
    return Parameter(re.sub(r"\s*\*", "*", kind.replace("const ", "").strip()), name)


def file_of(module: str, suffix: str) -> Path:
    """The file beside a module's own that has another suffix, there or not."""
    known = sys.modules.get(module)
    own = getattr(known, "__file__", None) or (find_spec(module).origin if known is None else None)
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
) -> str:
    """The whole source of one kernel of a stem for one case.

    Args:
        stem: module name.
        kernel: the kernel.
        dim: 2 or 3.
        precision: numpy dtype of `real`.
        layout: one of `md.backend.LAYOUTS`.
        structs: name -> struct, for every capitalised parameter type.
        functors: files with the functions of the law and the output.
        fused: whether the output is a functor of named fields, such as one that moves the particles.
        pair: functor of a law that the law asks, or None; that law is the struct `Pair`.

    Returns:
        CUDA C++.

    Raises:
        FileNotFoundError: a stem without a .cu file.
    """
    head = [
        f"typedef {C_TYPES[np.dtype(precision)]} real;\n",
        f"#define DIM {dim}\n",
        f"#define LAYOUT_{layout.upper()}\n",
        "#define FUSED\n" if fused else "",
        *(f"#define HAS_{name.upper()}\n{struct.text(name)}" for name, struct in structs.items()),
    ]
    parts = [Path(__file__).with_name("prelude.cuh")] if "Grid" in structs else []
    parts = [Path(__file__).with_name("rows.cuh"), *parts, *([pair] if pair else []), *functors]
    own = file_of(stem, ".cuh")
    if own.exists() and own not in parts:
        parts.append(own)
    seen: set[Path] = set()
    texts = [_with_includes(path, path.read_text(), seen) for path in parts]
    if pair:
        k = parts.index(pair)
        texts[k] = f"#define Law Pair\n{texts[k]}#undef Law\n"
    own = file_of(stem, ".cu")
    return "".join((*head, *texts, _with_includes(own, only(own.read_text(), kernel), seen)))


def with_includes(path: Path) -> str:
    """The text of a functor with the headers beside it that it includes, each once."""
    paths, texts = [path.resolve()], []
    for one in paths:  # grows on the way
        texts.append(one.read_text())
        beside = ((one.parent / name).resolve() for name in _INCLUDE.findall(texts[-1]))
        paths += [header for header in beside if header.exists() and header not in paths]
    return "\n".join(texts)


def _with_includes(path: Path, text: str, seen: set[Path]) -> str:
    """A source with the project's headers that it includes in their places, each but once."""
    if path in seen:
        return ""
    seen.add(path)
    name = path.relative_to(ROOT).as_posix() if path.is_relative_to(ROOT) else path.name
    lines = [f'#line 1 "{name}"']
    for number, line in enumerate(text.splitlines(), 1):
        included = _INCLUDE.fullmatch(line)
        if included:
            beside = path.parent / included[1]
            header = beside if beside.exists() else ROOT / included[1]
            lines += [_with_includes(header, header.read_text(), seen), f'#line {number + 1} "{name}"']
        else:
            lines.append(line)
    return "\n".join(lines) + "\n"
