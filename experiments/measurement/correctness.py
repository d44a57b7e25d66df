"""The check before a time is taken: the forces are those that another search finds."""

import numpy as np

import md
from sfc import checks

TOLERANCE = {"float32": 2e-3, "float64": 1e-9}  # of the root mean square force


def check_forces(simulation: md.Simulation, right: np.ndarray, precision: str) -> None:
    """Compare the forces on all particles, so that nothing wrong is timed.

    Args:
        simulation: what is to be timed.
        right: (n, dim) forces in order of id that another search found after as many steps.
        precision: "float32" or "float64".

    Raises:
        TypeError: an argument of a wrong class.
        ValueError: they differ by more than rounding; or forces of another shape, or another precision.
    """
    checks.instance("simulation", simulation, md.Simulation, "an md.Simulation")
    limit, found = TOLERANCE[checks.word("precision", precision, TOLERANCE)], simulation.forces()
    right = checks.array("right", right, "fiu", "forces", found.shape)
    scale = float(np.sqrt(np.square(right, dtype=np.float64).mean()))
    error = float(np.abs(found - right).max()) / (scale or 1.0)
    if not error <= limit:
        raise ValueError(
            f"the forces came out wrong by {error:.3g} of their root mean square; allowed in {precision}: "
            f"{limit:g}; not recorded. The search or the reorder is broken: see whether their "
            "pairs() are the same"
        )
