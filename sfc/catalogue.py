"""The curves there are, by name and dimension. A new curve is its own file and one line here."""

from collections.abc import Callable
from functools import cache

from sfc.curve import Curve
from sfc.hilbert import hilbert
from sfc.morton import morton
from sfc.peano import peano

CURVES: dict[str, tuple[Callable[[int], Curve], tuple[int, ...]]] = {
    "hilbert": (hilbert, (2, 3)),
    "morton": (morton, (2, 3)),
    "peano": (peano, (2,)),
}


def curves(dim: int | None = None) -> tuple[str, ...]:
    """Names of the curves, in alphabetical order; those known in `dim` dimensions where it is given."""
    return tuple(sorted(name for name, (_, dims) in CURVES.items() if dim is None or dim in dims))


def curve(name: str, dim: int) -> Curve:
    """A curve of the catalogue.

    Args:
        name: one of `curves(dim)`.
        dim: dimensions.

    Returns:
        The curve; the same object at every call.

    Raises:
        ValueError: an unknown name, or one not known in `dim` dimensions; lists those that are.
    """
    if name not in curves(dim):
        if name in CURVES:
            there = " and ".join(f"{d}D" for d in CURVES[name][1])
            raise ValueError(
                f"curve {name!r} exists in {there}, not in {dim}D; known in {dim}D: {_list(dim)}"
            )
        raise ValueError(f"unknown curve {name!r}; known in {dim}D: {_list(dim)}")
    return _built(name, dim)


@cache
def _built(name: str, dim: int) -> Curve:
    return CURVES[name][0](dim)


def _list(dim: int) -> str:
    return ", ".join(curves(dim)) or "none"
