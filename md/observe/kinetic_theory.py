"""Kinetic theory of a gas of hard spheres (in 2D discs) of diameter and mass 1: Enskog's rates."""

import math

from md import checks
from md.particles.state import sphere_volume


def contact_correlation(filling_fraction: float, dim: int = 3) -> float:
    """Compute the pair correlation at contact: the probability of contact over that in a dilute gas.

    Args:
        filling_fraction: 0 <= phi < 1.
        dim: 2 or 3.

    Raises:
        TypeError: a value that is not a number, or a dimension that is not an integer.
        ValueError: a value outside its range.

    Carnahan and Starling, J. Chem. Phys. 51 (1969) 635; in 2D Henderson, Mol. Phys. 30 (1975) 971.
    """
    filling_fraction = checks.number("filling_fraction", filling_fraction, 0, below=1)
    dim = checks.integer("dim", dim, 2, 3)
    if dim == 2:
        return (1 - 7 * filling_fraction / 16) / (1 - filling_fraction) ** 2
    return (1 - filling_fraction / 2) / (1 - filling_fraction) ** 3


def collision_rate(filling_fraction: float, temperature: float, dim: int = 3) -> float:
    """Compute the collisions of a particle per time unit.

    Args:
        filling_fraction: 0 <= phi < 1.
        temperature: m <v^2> / dim in d^2 / time^2, 0 or more.
        dim: 2 or 3.

    Raises:
        TypeError: a value that is not a number, or a dimension that is not an integer.
        ValueError: a value outside its range.

    Chapman and Cowling, The Mathematical Theory of Non-uniform Gases (1970), ch. 16.
    """
    filling_fraction = checks.number("filling_fraction", filling_fraction, 0, below=1)
    temperature = checks.number("temperature", temperature, 0, unit="d^2 / time^2")
    dim = checks.integer("dim", dim, 2, 3)
    density = filling_fraction / sphere_volume(dim)
    surface = 2 if dim == 2 else 4  # of a sphere of radius d, over pi
    return surface * math.sqrt(math.pi * temperature) * density * contact_correlation(filling_fraction, dim)


def sonine_coefficient(restitution: float, dim: int = 3) -> float:
    """Compute the Sonine coefficient a_2 of a cooling gas: the excess kurtosis of velocities over 3.

    Args:
        restitution: 0 < e <= 1.
        dim: 2 or 3.

    Raises:
        TypeError: a value that is not a number, or a dimension that is not an integer.
        ValueError: a value outside its range.

    Van Noije and Ernst, Granular Matter 1 (1998) 57.
    """
    e, dim = checks.number("restitution", restitution, above=0, high=1), checks.integer("dim", dim, 2, 3)
    return 16 * (1 - e) * (1 - 2 * e**2) / (9 + 24 * dim + (8 * dim - 41) * e + 30 * e**2 * (1 - e))


def cooling_time(filling_fraction: float, temperature: float, restitution: float, dim: int = 3) -> float:
    """Compute tau of Haff's law, T(t) = T(0) / (1 + t / tau)^2; infinite for e = 1.

    Args:
        filling_fraction: 0 < phi < 1.
        temperature: T(0) in d^2 / time^2, positive.
        restitution: 0 < e <= 1.
        dim: 2 or 3.

    Raises:
        TypeError: a value that is not a number, or a dimension that is not an integer.
        ValueError: a value outside its range.

    Haff, J. Fluid Mech. 134 (1983) 401; with the Sonine term, van Noije and Ernst (1998).
    """
    restitution = checks.number("restitution", restitution, above=0, high=1)
    excess = 1 + 3 * sonine_coefficient(restitution, dim) / 16
    lost = (1 - restitution**2) * excess * collision_rate(filling_fraction, temperature, dim)
    return 2 * dim / lost if lost else math.inf


def mean_free_path(filling_fraction: float, dim: int = 3) -> float:
    """Compute the mean free path, mean speed over collision rate, in d; infinite for no particles.

    Args:
        filling_fraction: 0 <= phi < 1.
        dim: 2 or 3.

    Raises:
        TypeError: a value that is not a number, or a dimension that is not an integer.
        ValueError: a value outside its range.

    Chapman and Cowling (1970).
    """
    dim = checks.integer("dim", dim, 2, 3)
    speed = math.sqrt(math.pi / 2) if dim == 2 else math.sqrt(8 / math.pi)  # at temperature 1
    rate = collision_rate(filling_fraction, 1.0, dim)
    return speed / rate if rate else math.inf
