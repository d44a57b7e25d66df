"""Numbers that describe spheres in a box: filling fraction, temperature, seed, memory order."""

from collections.abc import Sequence

import numpy as np

from md.checks import instance, integer, number, word
from md.particles.box import Box
from md.particles.state import MAX_PARTICLES, State, sphere_volume
from md.scenes.maxwell import HOTTEST

MEMORY_ORDERS = ("lattice", "shuffled")
MAX_FILLING = {2: 0.8, 3: 0.6}  # by dim


def box_for(n: int, filling_fraction: float, dim: int = 3, periodic: bool | Sequence[bool] = True) -> Box:
    """Make the cubic (square) box in which n spheres of diameter 1 have a filling fraction.

    Args:
        n: number of particles, at least 1.
        filling_fraction: volume of the spheres over that of the box, positive.
        dim: 2 or 3.
        periodic: one flag for all axes, or one an axis.

    Raises:
        TypeError: an argument of another class.
        ValueError: a value outside its range.
    """
    n, dim = integer("n", n, 1, MAX_PARTICLES, unit="particles"), integer("dim", dim, 2, 3)
    filling_fraction = number("filling_fraction", filling_fraction, above=0)
    lengths = ((n * sphere_volume(dim) / filling_fraction) ** (1 / dim),) * dim
    return Box(lengths, periodic)  # type: ignore[arg-type]  # Box makes a tuple of it


def checked_filling(filling_fraction: float, dim: int) -> float:
    """Check the filling fraction of a gas.

    Returns:
        The filling fraction as a Python float.

    Raises:
        TypeError: not a number.
        ValueError: a value of 0 or less, or above `MAX_FILLING`.
    """
    most = MAX_FILLING[dim]
    return number("filling_fraction", filling_fraction, above=0, high=most, unit=f"in {dim}D")


def checked_seed(seed: int) -> int:
    """Check a seed of random numbers.

    Returns:
        The seed as a Python integer.

    Raises:
        TypeError: not an integer.
        ValueError: a negative integer.
    """
    return integer("seed", seed, 0, remedy="any other gives another state of the same kind")


def checked_temperature(temperature: float) -> float:
    """Check the temperature of a gas.

    Returns:
        The temperature as a Python float, in d^2 / time^2.

    Raises:
        TypeError: not a number.
        ValueError: a negative temperature, or one above `HOTTEST`.
    """
    return number("temperature", temperature, 0, HOTTEST, unit="d^2 / time^2")


def number_of_spheres(filling_fraction: float, box: Box) -> int:
    """Compute the number of spheres of diameter 1 that a filling fraction is in a box.

    Args:
        filling_fraction: of the box.
        box: the box.

    Raises:
        TypeError: an argument of another class.
        ValueError: a filling fraction outside its range, less than half a sphere, or too many spheres.
    """
    instance("box", box, Box, "an md.Box")
    filling_fraction = checked_filling(filling_fraction, box.dim)
    expected = filling_fraction * box.volume / sphere_volume(box.dim)
    if expected > MAX_PARTICLES:
        raise ValueError(
            f"filling_fraction = {filling_fraction} in {box} is {expected:.4g} spheres; allowed: up to "
            f"{MAX_PARTICLES}; lower it, or take a smaller box"
        )
    n = round(expected)
    if n < 1:
        raise ValueError(
            f"filling_fraction = {filling_fraction} in {box} is less than half a sphere; raise it, or take a "
            f"larger box"
        )
    return n


def in_memory_order(state: State, memory_order: str, seed: int) -> State:
    """Return a state in the memory order of its ids ("lattice") or in a random one ("shuffled").

    Args:
        state: the state.
        memory_order: "lattice" or "shuffled".
        seed: of the random order, 0 or more.

    Raises:
        TypeError: an argument of another class.
        ValueError: another order, or a negative seed.
    """
    instance("state", state, State, "an md.State")
    word("memory_order", memory_order, MEMORY_ORDERS)
    seed, state = checked_seed(seed), state.by_id()
    if memory_order == "lattice":
        return state
    return state.take(np.random.default_rng([seed, 1]).permutation(len(state)))
