"""Shaken box of [thesis]: wide and flat, with walls at the bottom and the top."""

from collections.abc import Sequence

from md.backend import Backend
from md.checks import sequence
from md.particles.box import Box
from md.particles.state import State
from md.preparation.granular import granular_gas
from md.scenes.benchmark import BENCHMARK_TEMPERATURE

THESIS_LENGTHS = (512.0, 512.0, 10.0)


def shaken_box(
    filling_fraction: float,
    lengths: Sequence[float] = THESIS_LENGTHS,
    temperature: float = BENCHMARK_TEMPERATURE,
    seed: int = 0,
    memory_order: str = "lattice",
    mixing: float = 1.0,
    backend: str | Backend = "auto",
) -> State:
    """Make a thermal gas between two walls perpendicular to the last axis, periodic along the other axes.

    The state only: walls and shaking are forces, arguments of `md.Simulation`.

    Args:
        filling_fraction: of the whole box, positive and at most 0.6 (in 2D 0.8); n is the nearest whole
            number of spheres.
        lengths: two or three sides in d, the last one from wall to wall.
        temperature: m <v^2> / dim in d^2 / time^2, 0 or more; exact, with zero total momentum.
        seed: of all random numbers.
        memory_order: "lattice" or "shuffled", as in `granular_gas`.
        mixing: mean path of the elastic run in lattice spacings, as in `granular_gas`; 0 keeps the lattice.
        backend: of the elastic run.

    Returns:
        The state in float64, with no two centres closer than a diameter and none closer than half a diameter
        to a wall. See `granular_gas` for the filling fractions at which positions are random.

    Raises:
        TypeError: an argument of another class.
        ValueError: a filling fraction that cannot be packed, or another value outside its range.
    """
    lengths = sequence("lengths", lengths, "numbers")
    box = Box(lengths, (True,) * (len(lengths) - 1) + (False,))
    return granular_gas(filling_fraction, box, temperature, seed, memory_order, mixing, backend)
