"""Where a simulation runs.

`get("auto")` takes CUDA where a device is, else says once that it runs on the CPU.
"""

import warnings

from md.backend.base import NO_FAULT, Backend, BackendUnavailableError, Timings
from md.backend.cpu import Cpu

__all__ = ["BACKENDS", "NO_FAULT", "Backend", "BackendUnavailableError", "Timings", "get"]

BACKENDS = ("auto", "cpu", "cuda")
_told = False


def get(name: str) -> Backend:
    """The backend of a name.

    Args:
        name: one of `BACKENDS`.

    Returns:
        The backend.

    Raises:
        ValueError: an unknown name.
        BackendUnavailableError: CUDA asked for where there is none.
    """
    global _told
    if name not in BACKENDS:
        raise ValueError(f"unknown backend {name!r}; known: {', '.join(BACKENDS)}")
    if name == "cpu":
        return Cpu()
    reason = "this version has no CUDA kernels yet"
    if name == "cuda":
        raise BackendUnavailableError(
            f"backend 'cuda' cannot run here: {reason}; use backend='cpu' or 'auto'"
        )
    if not _told:
        warnings.warn(f"running on the CPU: {reason}", RuntimeWarning, stacklevel=3)
        _told = True
    return Cpu()
