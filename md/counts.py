"""Numbers of things that a user gives: whole, and at least one."""

import numpy as np


def require_count(given: str, count, thing: str = "step") -> None:
    """ValueError unless a number of things is an integer of at least 1; tells what was given."""
    if isinstance(count, bool) or not isinstance(count, (int, np.integer)) or count < 1:
        raise ValueError(f"{given}; allowed: an integer of at least 1 {thing}")
