"""Published steady solutions of the square lid-driven cavity, of side 1 and with a lid of speed 1 along +x.

The Reynolds number is lid times side over viscosity. The stream function psi has u = dpsi/dy and
v = -dpsi/dx, and is 0 at the walls.
"""

from __future__ import annotations

from dataclasses import dataclass, field


@dataclass(frozen=True)
class Reference:
    """Published solution at one Reynolds number.

    Attributes:
        source: citation.
        reynolds: Reynolds number.
        y, u: velocity along +x on the vertical centre line, x = 0.5; empty if not tabulated.
        x, v: velocity along +y on the horizontal centre line, y = 0.5; empty if not tabulated.
        extremes: smallest u ("u_min") on the vertical centre line, largest and smallest v ("v_max", "v_min")
            on the horizontal one, and psi at the centre of the primary vortex ("psi").
        doubtful: abscissae of values of v that contradict their neighbours, to be left out.
    """

    source: str
    reynolds: int
    extremes: dict[str, float]
    y: tuple[float, ...] = ()
    u: tuple[float, ...] = ()
    x: tuple[float, ...] = ()
    v: tuple[float, ...] = ()
    doubtful: tuple[float, ...] = field(default=())


GHIA_SOURCE = "Ghia, Ghia and Shin (1982), J. Comput. Phys. 48, 387"
BOTELLA_SOURCE = "Botella and Peyret (1998), Comput. Fluids 27, 421"
MARCHI_SOURCE = "Marchi, Suero and Araki (2009), J. Braz. Soc. Mech. Sci. Eng. 31, 186"

_Y = (
    0.0, 0.0547, 0.0625, 0.0703, 0.1016, 0.1719, 0.2813, 0.4531, 0.5, 0.6172, 0.7344, 0.8516, 0.9531, 0.9609,
    0.9688, 0.9766, 1.0,
)  # fmt: skip
_X = (
    0.0, 0.0625, 0.0703, 0.0781, 0.0938, 0.1563, 0.2266, 0.2344, 0.5, 0.8047, 0.8594, 0.9063, 0.9453, 0.9531,
    0.9609, 0.9688, 1.0,
)  # fmt: skip

GHIA = {
    100: Reference(
        GHIA_SOURCE,
        100,
        {"u_min": -0.21090, "v_max": 0.17527, "v_min": -0.24533, "psi": -0.103423},
        _Y,
        (
            0.0, -0.03717, -0.04192, -0.04775, -0.06434, -0.10150, -0.15662, -0.21090, -0.20581, -0.13641,
            0.00332, 0.23151, 0.68717, 0.73722, 0.78871, 0.84123, 1.0,
        ),
        _X,
        (
            0.0, 0.09233, 0.10091, 0.10890, 0.12317, 0.16077, 0.17507, 0.17527, 0.05454, -0.24533, -0.22445,
            -0.16914, -0.10313, -0.08864, -0.07391, -0.05906, 0.0,
        ),
    ),
    400: Reference(
        GHIA_SOURCE,
        400,
        {"u_min": -0.32726, "v_max": 0.30203, "v_min": -0.44993, "psi": -0.113909},
        _Y,
        (
            0.0, -0.08186, -0.09266, -0.10338, -0.14612, -0.24299, -0.32726, -0.17119, -0.11477, 0.02135,
            0.16256, 0.29093, 0.55892, 0.61756, 0.68439, 0.75837, 1.0,
        ),
        _X,
        (
            0.0, 0.18360, 0.19713, 0.20920, 0.22965, 0.28124, 0.30203, 0.30174, 0.05186, -0.38598, -0.44993,
            -0.23827, -0.22847, -0.19254, -0.15663, -0.12146, 0.0,
        ),
        doubtful=(0.9063,),
    ),
    1000: Reference(
        GHIA_SOURCE,
        1000,
        {"u_min": -0.38289, "v_max": 0.37095, "v_min": -0.51550, "psi": -0.117929},
        _Y,
        (
            0.0, -0.18109, -0.20196, -0.22220, -0.29730, -0.38289, -0.27805, -0.10648, -0.06080, 0.05702,
            0.18719, 0.33304, 0.46604, 0.51117, 0.57492, 0.65928, 1.0,
        ),
        _X,
        (
            0.0, 0.27485, 0.29012, 0.30353, 0.32627, 0.37095, 0.33075, 0.32235, 0.02526, -0.31966, -0.42665,
            -0.51550, -0.39188, -0.33714, -0.27669, -0.21388, 0.0,
        ),
    ),
}  # fmt: skip
"""Multigrid on 129 x 129 points: tables I and II, and psi of the primary vortex. The extremes are the
largest and smallest tabulated values. v = -0.23827 at Re 400, x = 0.9063, contradicts its neighbours."""

BOTELLA_PEYRET = {
    1000: Reference(
        BOTELLA_SOURCE,
        1000,
        {"u_min": -0.3885698, "v_max": 0.3769447, "v_min": -0.5270771, "psi": -0.1189366},
        _Y,
        (
            0.0, -0.1812881, -0.2023300, -0.2228955, -0.3004561, -0.3885691, -0.2803696, -0.1081999,
            -0.0620561, 0.0570178, 0.1886747, 0.3372212, 0.4723329, 0.5169277, 0.5808359, 0.6644227, 1.0,
        ),
        _X,
        (
            0.0, 0.2807056, 0.2962703, 0.3099097, 0.3330442, 0.3769189, 0.3339924, 0.3253592, 0.0257995,
            -0.3202137, -0.4264545, -0.5264392, -0.4103754, -0.3553213, -0.2936869, -0.2279225, 0.0,
        ),
    ),
}  # fmt: skip
"""Chebyshev collocation with the corner singularity subtracted; their lid moves along -x, mirrored here."""

MARCHI = {100: Reference(MARCHI_SOURCE, 100, {"u_min": -0.21404, "v_max": 0.17957, "v_min": -0.25380})}
"""Finite volumes on 1024 x 1024 cells, extrapolated; rounded to five decimals."""

HELD_TO: dict[int, dict[str, Reference]] = {
    reynolds: dict.fromkeys(one.extremes, one) for reynolds, one in GHIA.items()
}
HELD_TO[100] |= dict.fromkeys(("v_max", "v_min"), MARCHI[100])
HELD_TO[1000]["v_min"] = BOTELLA_PEYRET[1000]
"""Which reference each extreme is held to. Ghia's v_max and v_min at Re 100 are 2.4 % and 3.3 % from
converged values, and its v_min at Re 1000 is 2.2 %, farther than the tolerance of 2 %."""
