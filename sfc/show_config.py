"""Report of the paths by which this process encodes."""

import os
from typing import TYPE_CHECKING

import numpy as np

from sfc.automaton import Curve
from sfc.compile import LazyModule, numba, thread_count
from sfc.registry import curve, curves

if TYPE_CHECKING:
    from sfc.automaton import registers
else:
    registers = LazyModule("sfc.automaton.registers")  # it extends Numba, so it imports Numba


def show_config() -> None:
    """Print how curves are encoded on this host: versions, processor, threads, and each curve's tables.

    Tables in registers serve calls of many points (`sfc.automaton.registers.FEWEST`); `SFC_REGISTERS=0` in
    the environment turns them off.

    Example:
        >>> import sfc
        >>> sfc.show_config()  # doctest: +ELLIPSIS
        numpy ..., numba ..., llvmlite ...
        processor ..., ... threads
        ...
    """
    import llvmlite.binding  # loads LLVM

    versions = np.__version__, numba.__version__, llvmlite.__version__
    print("numpy {}, numba {}, llvmlite {}".format(*versions))
    print(f"processor {llvmlite.binding.get_host_cpu_name()}, {thread_count()} threads")
    if instructions := registers.instructions():
        fitting = _in_registers()
        print(f"tables in registers ({instructions}), for {registers.FEWEST} points or more: {fitting}")
        print("tables in memory: all other curves, and fewer points")
    else:
        is_off = os.environ.get(registers.SWITCH) == "0"
        why = f"{registers.SWITCH}=0" if is_off else f"no {' or '.join(registers.FEATURES)} here"
        print(f"tables in memory: all curves ({why})")


def _in_registers() -> str:
    fitting: dict[str, list[str]] = {}
    for dim in (2, 3, 4):
        for name in curves(dim):
            one = curve(name, dim)
            states = len(one.rank) if isinstance(one, Curve) and one.base == 2 else 0
            if states and registers.levels_in_registers(dim, states):
                fitting.setdefault(name, []).append(f"{dim}D")
    return ", ".join(f"{name} {' '.join(dims)}" for name, dims in sorted(fitting.items()))
