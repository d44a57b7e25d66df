"""The thesis's shaken box: wide and flat, with walls below and above."""

from collections.abc import Sequence

from md.checks import sequence
from md.particles.box import Box
from md.particles.state import State
from md.scenes.granular import SHARED_TEMPERATURE, granular_gas

THESIS_LENGTHS = (512.0, 512.0, 10.0)


def shaken_box(
    filling_fraction: float,
    lengths: Sequence[float] = THESIS_LENGTHS,
    temperature: float = SHARED_TEMPERATURE,
    seed: int = 0,
    memory_order: str = "lattice",
    mixing: float = 1.0,
    backend: str = "auto",
) -> State:
    """A thermal gas between two walls across the last axis, periodic sideways.

    The state alone: what the walls do, and their shaking, is a force.

    Args:
        filling_fraction: of the whole box, positive and at most 0.6 (in 2D 0.8); n is the nearest whole
            number of spheres.
        lengths: two or three sides in d, the last one from wall to wall.
        temperature: m <v^2> / dim in d^2 / time^2, 0 or more; met exactly, with zero total momentum.
        seed: of everything that is drawn.
        memory_order: "lattice" or "shuffled", as in `granular_gas`.
        mixing: mean path of the elastic run in lattice spacings, as there; 0 keeps the lattice.
        backend: where the elastic run is done.

    Returns:
        The state in float64, no two centres closer than a diameter and none closer than half of one to a
        wall. See `granular_gas` for what is random at which filling fraction.

    Raises:
        TypeError: an argument of another class.
        ValueError: a filling fraction that cannot be packed, or another value outside its range.
    """
    lengths = sequence("lengths", lengths, "numbers")
    box = Box(lengths, (True,) * (len(lengths) - 1) + (False,))
    return granular_gas(filling_fraction, box, temperature, seed, memory_order, mixing, backend)
