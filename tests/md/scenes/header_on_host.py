"""Functions of a CUDA header, compiled for the host and called from a small program."""

import subprocess
from pathlib import Path

import numpy as np

import md
from tests.on_host.build import built

MAIN = """
int main() {{
    {given} x;
    while (fread(&x, sizeof x, 1, stdin) == 1) {{
        {found} y = {expression};
        fwrite(&y, sizeof y, 1, stdout);
    }}
}}
"""
C_TYPES = {np.float64: "double", np.uint32: "unsigned"}


def computed(folder: Path, header: str, kind: type, expression: str, before: str = "") -> np.ndarray:
    """Values of an expression of `x`, at each x of the array `x` of a type.

    Args:
        folder: with the numbers in `x.bin`.
        header: of `md/scenes`.
        kind: numpy type of x and of the values.
        expression: C++.
        before: C++ before the program.
    """
    path = Path(md.scenes.__file__).with_name(header)
    name = C_TYPES[kind]
    main = MAIN.format(given=name, found=name, expression=expression)
    program = built("grid_on_host.h", f"{path.read_text()}\n{before}{main}")
    given = (folder / "x.bin").read_bytes()
    found = subprocess.run([program], input=given, capture_output=True, check=True).stdout
    return np.frombuffer(found, kind)
