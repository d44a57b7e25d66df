"""Where a simulation runs.

`get("auto")` takes CUDA where a device is, else says once that it runs on the CPU.
"""

import warnings

from md import checks
from md.backend.base import LAYOUTS, NO_FAULT, Backend
from md.backend.cpu import Cpu
from md.backend.cuda import Cuda, why_not
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
    "Timings",
    "checked",
    "get",
]

BACKENDS = ("auto", "cpu", "cuda")
_told = False


def checked(choice: str | Backend) -> str | Backend:
    """The choice itself: a backend, or the name of one, whether or not it can run here.

    Raises:
        TypeError: neither a name nor a backend.
        ValueError: an unknown name; lists those known.
    """
    if isinstance(choice, Backend):
        return choice
    return checks.word("backend", choice, BACKENDS, "or a md.backend.Backend")


def get(choice: str | Backend, layout: str | None = None) -> Backend:
    """The backend of a name, or a backend as it is.

    Args:
        choice: one of `BACKENDS`, or a backend.
        layout: of particle arrays, one of `LAYOUTS`; None for what suits the device.

    Returns:
        The backend.

    Raises:
        TypeError: neither a name nor a backend.
        ValueError: an unknown name or layout, or a layout beside a backend that has its own.
        BackendUnavailableError: CUDA asked for where there is none.
    """
    global _told
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
    if not _told:
        warnings.warn(f"running on the CPU: {reason}", RuntimeWarning, stacklevel=3)
        _told = True
    return Cpu(layout)
