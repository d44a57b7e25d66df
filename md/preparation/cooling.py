"""Start of the homogeneous cooling state: n spheres at a filling fraction, in equilibrium."""

import math

from md.backend import Backend
from md.particles.state import State, sphere_volume
from md.preparation.granular import granular_gas
from md.preparation.thermalize import THINNEST, mixing_path
from md.scenes.benchmark import BENCHMARK_TEMPERATURE
from md.scenes.spheres import box_for, checked_filling


def cooling_gas(
    n: int,
    filling_fraction: float,
    temperature: float = BENCHMARK_TEMPERATURE,
    dim: int = 3,
    seed: int = 0,
    memory_order: str = "lattice",
    mixing: float = 1.0,
    backend: str | Backend = "auto",
) -> State:
    """Make a homogeneous thermal gas of zero momentum in a cubic (square) periodic box.

    Under a dissipative law, without energy input, it cools homogeneously at first: Haff, J. Fluid Mech. 134
    (1983) 401.

    Args:
        n: exact number of particles.
        filling_fraction: positive and at most 0.6.
        temperature: m <v^2> / dim in d^2 / time^2, 0 or more; exact, with zero total momentum.
        dim: 2 or 3.
        seed: of all random numbers.
        memory_order: "lattice" or "shuffled", as in `granular_gas`.
        mixing: mean path of the elastic run in lattice spacings, as in `granular_gas`; 0 keeps the lattice.
        backend: of the elastic run.

    Returns:
        The state in float64.

    Raises:
        TypeError: an argument of another class.
        ValueError: too few particles to randomise in a box of that size, or another value outside its range.
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
