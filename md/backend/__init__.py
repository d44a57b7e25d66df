"""Backends of a simulation: the CPU (Numba) and CUDA (CuPy).

`get("auto")` returns CUDA where a device is visible. Otherwise it returns the CPU and warns once a process.
"""

import warnings

from md import checks
from md.backend.base import LAYOUTS, NO_FAULT, Backend
from md.backend.cpu import Cpu
from md.backend.cuda import Cuda, why_not
from md.backend.kernels.on_device import OnDevice
from md.backend.timings import Timings
from md.errors import BackendUnavailableError, DeviceMemoryError

__all__ = [
    "BACKENDS",
    "LAYOUTS",
    "NO_FAULT",
    "Backend",
    "BackendUnavailableError",
    "Cpu",
    "Cuda",
    "DeviceMemoryError",
    "OnDevice",
    "Timings",
    "checked",
    "get",
]

BACKENDS = ("auto", "cpu", "cuda")
_warned = False  # that "auto" returned the CPU; once a process


def checked(choice: str | Backend) -> str | Backend:
    """Check a backend or the name of one, without checking that it can run here.

    Args:
        choice: one of `BACKENDS`, or a backend.

    Returns:
        `choice` as it is.

    Raises:
        TypeError: neither a name nor a backend.
        ValueError: an unknown name; the message lists the known ones.
    """
    if isinstance(choice, Backend):
        return choice
    return checks.word("backend", choice, BACKENDS, "or a md.backend.Backend")


def get(choice: str | Backend, layout: str | None = None) -> Backend:
    """Make the backend of a name, or return a backend as it is.

    Args:
        choice: one of `BACKENDS`, or a backend.
        layout: of particle arrays, one of `LAYOUTS`; None for the default of the device.

    Returns:
        The backend.

    Raises:
        TypeError: neither a name nor a backend.
        ValueError: an unknown name or layout, or a layout beside a backend that has another.
        BackendUnavailableError: "cuda" where CUDA cannot run.
    """
    global _warned
    choice = checked(choice)
    if isinstance(choice, Backend):
        if layout is not None and checks.word("layout", layout, LAYOUTS) != choice.layout:
            raise ValueError(
                f"layout {layout!r} beside a backend of layout {choice.layout!r}; give one of them"
            )
        return choice
    if choice == "cpu":
        return Cpu(layout)
    reason = why_not()
    if reason is None:
        return Cuda(layout)
    if choice == "cuda":
        raise BackendUnavailableError(
            f"backend 'cuda' cannot run here: {reason}; use backend='cpu', or 'auto' for CUDA where there "
            "is a device"
        )
    if not _warned:
        warnings.warn(f"running on the CPU: {reason}", RuntimeWarning, stacklevel=3)
        _warned = True
    return Cpu(layout)
