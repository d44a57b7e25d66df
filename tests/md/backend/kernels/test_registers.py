"""Registers and shared memory that kernels declare for models of memory: those that the compiler prints."""

import re

import numpy as np
import pytest

import md
from md.backend.kernels.on_device import declared
from md.backend.kernels.source import ROOT, file_of, parameters
from tests.md.backend.kernels.test_source import KERNELS, source_of
from tests.md.cavity.strategies.emulated_cuda import Compiling
from tests.nvrtc import compiled
from tests.tiers import full

UNIT = 8  # registers of a thread that a warp is given at once
OF_SPHERES, OF_BOIDS = ("spring_dashpot", "fused"), ("boids", "flight")
SWEEP = "md.cavity.strategies.cuda", "sweep"
PACKED = {  # as simulations on a device have their rows by default
    "md.particles.arrays", "md.search.bvh.wide_boxes", "md.search.bvh.wide_bvh", "md.search.grid.coherent",
    "md.search.lists.list_search", "md.search.lists.pruned_lists",
}  # fmt: skip
DECLARED = [kernel for kernel in KERNELS if getattr(declared(*kernel), "registers", None)]
CASES = [
    (*kernel, law, real)
    for kernel in DECLARED
    for law in (OF_SPHERES, *([OF_BOIDS] if declared(*kernel).of_boids else []))
    for real in (np.float32, np.float64)
]


def given(registers: int) -> int:
    """Registers that a thread takes of those of a multiprocessor."""
    return -(-registers // UNIT) * UNIT


def resources(source: str) -> tuple[int, int]:
    """Registers of a thread, and bytes of shared memory of a block, of the only kernel of a source."""
    _, log = compiled(source)
    assert log.count("Compiling entry function") == 1
    shared = re.search(r"(\d+) bytes smem", log)
    return int(re.search(r"Used (\d+) registers", log)[1]), int(shared[1]) if shared else 0


@pytest.mark.parametrize(
    ("stem", "kernel", "law", "real"),
    [case if case[2] is OF_SPHERES and case[3] is np.float32 else full(*case) for case in CASES],
)
def test_a_kernel_declares_what_the_compiler_gives_it(stem, kernel, law, real):
    """In the units of a multiprocessor, as another release of the compiler may count one more or less."""
    found, k = declared(stem, kernel), int(real is np.float64)
    has_output = any(one.type == "Out" for one in parameters(file_of(stem, ".cu").read_text())[kernel])
    source = source_of(stem, kernel, 3, real, "aos4", law[0], law[1] if has_output else "store")
    used, shared = resources(("#define PACKED 1\n" if stem in PACKED else "") + source)
    registers = found.of_boids if law is OF_BOIDS else found.registers
    assert given(registers[k]) == given(used), f"declared {registers[k]}, used {used}"
    assert found.static[k] == shared


@pytest.mark.parametrize(("order", "fewer"), [("hilbert", 0), ("row", 4)])
@pytest.mark.parametrize("precision", ["float32", full("float64")])
def test_the_sweep_of_the_cavity_declares_what_the_compiler_gives_it(precision, order, fewer):
    device = Compiling()
    options = {"strategy": "cuda", "precision": precision, "order": order, "backend": device}
    md.Cavity((41, 41), viscosity=0.1, **options)._solver.advance(1)
    found = declared(*SWEEP)
    registers = found.registers[precision == "float64"] - fewer
    used, shared = resources(device.sources["sweep"])
    assert given(registers) == given(used), f"declared {registers}, used {used}"
    assert found.static[precision == "float64"] == shared == 0


def test_every_kernel_with_registers_is_compiled_here():
    assert {stem for stem, _ in DECLARED} >= PACKED
    stems = {
        ".".join(path.relative_to(ROOT).with_suffix("").parts)
        for path in (ROOT / "md").rglob("*.py")
        if re.search(r"\bOnDevice\([^)]*registers=", path.read_text())
    }
    assert stems == {stem for stem, _ in [*DECLARED, SWEEP]}
