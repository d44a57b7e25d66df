"""The curves there are, by name and dimension. A new curve is its own file and one line here."""

import re
from collections.abc import Callable
from functools import cache

from sfc import checks
from sfc.automaton.curve import Curve
from sfc.butz import butz
from sfc.compact import compact
from sfc.gray import gray
from sfc.hilbert import RULES as HILBERT
from sfc.hilbert import hilbert
from sfc.moore import moore
from sfc.morton import morton
from sfc.peano import peano

CURVES: dict[str, tuple[Callable[..., Curve], tuple[int, ...]]] = {
    "butz": (butz, (3,)),  # in 2D it is Hilbert's, in 4D `hilbert` is it
    "compact": (compact, (3,)),
    "gray": (gray, (2, 3, 4)),
    "hilbert": (hilbert, (2, 3, 4)),
    "moore": (moore, (2, 3)),
    "morton": (morton, (2, 3, 4)),
    "peano": (peano, (2, 3)),
}
_registered: dict[tuple[str, int], Curve] = {}


def curves(dim: int | None = None) -> tuple[str, ...]:
    """Names of the curves, in alphabetical order; those known in `dim` dimensions where it is given.

    Raises:
        TypeError: a dim that is neither an integer nor None.
        ValueError: a dim below 1.
    """
    dim = dim if dim is None else checks.integer("dim", dim)
    built_in = {name for name, (_, dims) in CURVES.items() if dim is None or dim in dims}
    return tuple(sorted(built_in | {name for name, its in _registered if dim is None or dim == its}))


def is_curve(name: str, dim: int) -> bool:
    """Whether `curves(dim)` has a name, without listing all."""
    return (name, dim) in _registered or (name in CURVES and dim in CURVES[name][1])


def curve(name: str, dim: int, **options) -> Curve:
    """A curve of the catalogue.

    Args:
        name: one of `curves(dim)`.
        dim: dimensions.
        options: `axiom` for `hilbert` in 2D and 3D, one of its grammar's symbols; nothing for the others.

    Returns:
        The curve; the same object at every call.

    Raises:
        TypeError: a name or an axiom that is no str, or a dim that is no integer.
        ValueError: an unknown name, or one not known in `dim` dimensions; lists those that are. An option
            that the curve does not take.
    """
    dim = checks.integer("dim", dim)
    if not isinstance(name, str):
        raise checks.refuse_class("name", name, f"a name, one of {_list(dim)}")
    if not is_curve(name, dim):
        if name in curves():
            there = " and ".join(f"{d}D" for d in _dims(name))
            raise ValueError(
                f"curve {name!r} exists in {there}, not in {dim}D; known in {dim}D: {_list(dim)}"
            )
        raise ValueError(f"unknown curve {name!r}; known in {dim}D: {_list(dim)}")
    if options and (name != "hilbert" or dim not in HILBERT or set(options) != {"axiom"}):
        raise ValueError(
            f"curve {name!r} in {dim}D does not take {sorted(options)}; allowed: axiom, for 'hilbert' in "
            f"{' and '.join(f'{d}D' for d in HILBERT)} only"
        )
    for option, value in options.items():  # the cache below asks for what has a hash
        checks.instance(option, value, str, f"one of {', '.join(HILBERT[dim])}")
    return _registered.get((name, dim)) or _built(name, dim, **options)


def register(curve: Curve) -> None:
    """Make a curve of your own known by its name, in this process, wherever a built-in one is.

    Args:
        curve: the curve; registering one with the same tables again changes nothing.

    Raises:
        TypeError: what is no `Curve`.
        ValueError: a name that a built-in curve or ordering of any dimension has, or another curve of this
            one, or that could not be part of a file's name.
    """
    from sfc.orderings import SCANS, orderings

    remedy = "make one with sfc.read_curve or sfc.curve_from_grammar; built-in ones are known already"
    checks.instance("curve", curve, Curve, "an sfc.Curve", remedy)
    if not re.fullmatch(r"\w[\w-]*", curve.name):
        raise ValueError(
            f"curve name {curve.name!r}; allowed: letters, digits, _ and -, for it becomes part of file names"
        )
    known = _registered.get((curve.name, curve.dim))
    if known is not None and _same(known, curve):
        return
    if curve.name in {*SCANS, *CURVES, *orderings(curve.dim)}:
        taken = sorted({*SCANS, *CURVES, *orderings(curve.dim)})
        raise ValueError(
            f"curve {curve.name!r} in {curve.dim}D: the name is taken; choose another than {', '.join(taken)}"
        )
    _registered[curve.name, curve.dim] = curve


def _same(one: Curve, other: Curve) -> bool:
    tables = [(c.base, c.start, c.rank.tobytes(), c.next.tobytes()) for c in (one, other)]
    return tables[0] == tables[1]


@cache
def _built(name: str, dim: int, **options) -> Curve:
    return CURVES[name][0](dim, **options)


def _dims(name: str) -> list[int]:
    built_in = CURVES[name][1] if name in CURVES else ()
    return sorted({*built_in, *(dim for known, dim in _registered if known == name)})


def _list(dim: int) -> str:
    return ", ".join(curves(dim)) or "none"
