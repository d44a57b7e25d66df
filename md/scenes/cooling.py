"""The homogeneous cooling state's start: n spheres at a filling fraction, spread evenly, in equilibrium."""

import math

from md.particles.state import State, sphere_volume
from md.scenes.granular import SHARED_TEMPERATURE, box_for, checked_filling, granular_gas
from md.scenes.thermalize import THINNEST, mixing_path


def cooling_gas(
    n: int,
    filling_fraction: float,
    temperature: float = SHARED_TEMPERATURE,
    dim: int = 3,
    seed: int = 0,
    memory_order: str = "lattice",
    mixing: float = 1.0,
    backend: str = "auto",
) -> State:
    """A gas at rest as a whole, thermal and without a lattice, in a cubic (square) periodic box.

    Left alone under a dissipative law it cools homogeneously at first: Haff, J. Fluid Mech. 134 (1983) 401.

    Args:
        n: particles, exactly.
        filling_fraction: positive and at most 0.6.
        temperature: m <v^2> / dim in d^2 / time^2, 0 or more; met exactly, with zero total momentum.
        dim: 2 or 3.
        seed: of everything that is drawn.
        memory_order: "lattice" or "shuffled", as in `granular_gas`.
        mixing: mean path of the elastic run in lattice spacings, as there; 0 keeps the lattice.
        backend: where the elastic run is done.

    Returns:
        The state in float64.

    Raises:
        TypeError: an argument of another class.
        ValueError: too few particles to randomise in so small a box, or another value outside its range.
    """
    box = box_for(n, filling_fraction, dim)
    filling_fraction = checked_filling(filling_fraction, box.dim)
    mixing = mixing_path(mixing)
    if mixing and n > 1 and box.lengths[0] < THINNEST:
        least = math.ceil(THINNEST**dim * filling_fraction / sphere_volume(dim))
        raise ValueError(
            f"n = {n} at filling_fraction = {filling_fraction} is too few to randomise; allowed: at least "
            f"{least} there; take more, a lower filling fraction, or mixing = 0"
        )
    return granular_gas(filling_fraction, box, temperature, seed, memory_order, mixing, backend)
