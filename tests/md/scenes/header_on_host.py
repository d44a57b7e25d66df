"""Functions of a CUDA header, compiled for the host and called from a small program."""

import shutil
import subprocess
from pathlib import Path

import numpy as np
import pytest

import md

HEADER = Path(__file__).parents[2] / "grid_on_host.h"
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
        folder: for the program, with the numbers in `x.bin`.
        header: of `md/scenes`.
        kind: numpy type of x and of the values.
        expression: C++.
        before: C++ before the program.
    """
    compiler = shutil.which("g++") or shutil.which("clang++")
    if compiler is None:
        pytest.skip("no C++ compiler (g++ or clang++) is installed")
    path = Path(md.scenes.__file__).with_name(header)
    name = C_TYPES[kind]
    main = MAIN.format(given=name, found=name, expression=expression)
    (folder / "program.cpp").write_text(f'#include "{HEADER}"\n{path.read_text()}\n{before}{main}')
    flags = ["-std=c++17", "-O1", "-w", "-ffp-contract=off"]
    subprocess.run([compiler, *flags, "-o", folder / "program", folder / "program.cpp"], check=True)
    given = (folder / "x.bin").read_bytes()
    found = subprocess.run([folder / "program"], input=given, capture_output=True, check=True).stdout
    return np.frombuffer(found, kind)
