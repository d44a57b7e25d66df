"""Flocks among the simulations of `tests.final_arrays`: the cases and their start."""

from collections.abc import Mapping, Sequence

import numpy as np

import md

DT, BOIDS, SPEED = 0.1, 160, 0.6  # SPEED is the root mean square of a velocity along an axis
ALONE = {"law": "boids", "integrator": "flight", "around": "nothing", "start": "uniform", "radii": "equal"}
ROWS = (  # values of the other factors, in their order
    "naive none - periodic data plain aos device 3D float64 fused weightless",
    "linked every hilbert walled shadow resumed aos device 3D float64 unfused heavy",
    "linked moved morton open threads plain soa device 2D float32 fused weightless",
    "scattered every row flat data observed aos host 3D float64 unfused weightless",
    "coherent none hilbert walled data resumed aos4 device 3D float32 fused heavy",
    "tiles none row periodic data plain aos device 2D float64 unfused weightless",
    "tensor none row periodic data resumed aos4 device 3D float32 fused weightless",
    "verlet none row open data resumed aos device 3D float64 fused weightless",
    "verlet none hilbert walled data plain aos device 2D float32 unfused heavy",
    "lbvh none hilbert open_walled data observed aos device 3D float64 fused heavy",
    "wide_bvh none hilbert periodic data resumed aos device 3D float32 fused weightless",
    "verlet_tree none hilbert periodic data observed aos device 3D float32 fused weightless",
    "reflexive none morton periodic data plain aos device 3D float32 unfused heavy",
    "reflexive_twice none morton flat data plain aos device 3D float64 fused heavy",
    "reflexive_shadow none gray open data resumed aos device 2D float64 unfused heavy",
)


def cases(factors: Mapping[str, Sequence[str]]) -> list[dict[str, str]]:
    """The cases: a value for each factor.

    Args:
        factors: their names, in order.
    """
    free = [factor for factor in factors if factor not in ALONE]
    values = (ALONE | dict(zip(free, row.split(), strict=True)) for row in ROWS)
    return [{factor: case[factor] for factor in factors} for case in values]


def start(box: md.Box, generator: np.random.Generator) -> md.State:
    """Boids anywhere in a box, 0.3 from its sides."""
    pos = 0.3 + generator.random((BOIDS, box.dim)) * (np.array(box.lengths) - 0.6)
    return md.State(pos, generator.normal(0, SPEED, pos.shape), box)
