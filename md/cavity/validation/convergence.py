"""Order of convergence, and extrapolation to zero spacing, from grids with the spacing halved each time."""

from __future__ import annotations

import math


def observed_order(coarse: float, middle: float, fine: float) -> float:
    """Compute with which power of the spacing a value converges.

    Args:
        coarse: the value for a spacing of 4 h.
        middle: for 2 h.
        fine: for h.

    Returns:
        The order p of a value a + b h^p.

    Raises:
        ValueError: values that do not approach a limit from one side.

    Roache (1998), Verification and Validation in Computational Science and Engineering.
    """
    first, second = middle - coarse, fine - middle
    if not first * second > 0 or abs(second) >= abs(first):
        raise ValueError(
            f"values {coarse:.7g}, {middle:.7g}, {fine:.7g} do not approach a limit from one side; allowed: "
            "differences of one sign, the second smaller; take finer grids"
        )
    return math.log2(first / second)


def extrapolated(middle: float, fine: float, order: float = 2.0) -> float:
    """Extrapolate a value to zero spacing.

    Args:
        middle: the value for a spacing of 2 h.
        fine: for h.
        order: of convergence, above 0.

    Returns:
        The limit a of a value a + b h^order.

    Richardson (1911), Phil. Trans. R. Soc. A 210, 307.
    """
    return fine + (fine - middle) / (2**order - 1)
