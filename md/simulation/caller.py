"""Caller of the package: the frame that a warning names."""

import sys
from pathlib import Path

PACKAGE_FILES = f"{Path(__file__).parents[1]}/"


def levels_to_caller() -> int:
    """Return the number of calls between the function that warns and the caller of this package.

    It is the `stacklevel` of `warnings.warn`. Python 3.12 has `skip_file_prefixes` for it.
    """
    level, frame = 1, sys._getframe(1)
    while frame.f_back is not None and frame.f_code.co_filename.startswith(PACKAGE_FILES):
        level, frame = level + 1, frame.f_back
    return level
