"""Start of compiled kernels that are functions of Python, such as those of an emulated device."""

from typing import Any


def call(kernel: Any, blocks: int, threads: int, values: tuple, shared_mem: int, resident: bool) -> None:
    """Call a kernel as cupy calls one; arguments as those of `KernelLaunches.start`."""
    shared = {"shared_mem": shared_mem} if shared_mem else {}
    if resident:
        kernel.kernel((blocks,), (threads,), values, enable_cooperative_groups=True, **shared)
    else:
        kernel((blocks,), (threads,), values, **shared)
