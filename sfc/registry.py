"""Registry of curves, orderings and orders of points, by name.

`sfc/curves/__init__.py` registers the curve families, `sfc/orderings/__init__.py` the orderings, and
`sfc/point_orders/__init__.py` the orders of points, one line an entry. `register` adds one curve and
`register_ordering` one ordering in the present process; both are then available wherever a built-in name is.
All names are disjoint. Each curve is also an ordering. An order of points is neither, because it ranks
points, not cells: `sfc.argsort` and `sfc.sort` alone take it. `ALIASES` has further names, by which `curve`
and `ordering` find the same curves, such as `butz` for `hilbert`, which is Butz's curve in all dims but 3,
and `skilling` for it in 2D.
"""

import inspect
import re
from collections.abc import Callable, Iterable, Mapping
from functools import cache, partial
from typing import Any, NamedTuple

import numpy as np

from sfc import checks
from sfc.any_curve import AnyCurve
from sfc.automaton.curve import Curve

Shape = tuple[int, ...]
Rank = Callable[[np.ndarray], np.ndarray]
Cells = Callable[[np.ndarray], np.ndarray]
PointOrder = Callable[..., Any]  # (points, **options) -> rows


class Scan(NamedTuple):
    """An order of all cells of a box, without gaps: two functions that are inverse to each other.

    Attributes:
        rank: (n, dim) int64 cells -> (n,) uint64 ranks, 0 .. cells of the box - 1; it may be called on
            several threads at once.
        cells: (n,) int64 ranks -> (n, dim) int64 cells.
    """

    rank: Rank
    cells: Cells


class CurveEntry(NamedTuple):
    """A curve family in one dimension.

    Attributes:
        build: (dim, **options) -> curve.
        axioms: values of the option `axiom`; empty if the family does not take it.
    """

    build: Callable[..., AnyCurve]
    axioms: tuple[str, ...] = ()


class OrderingEntry(NamedTuple):
    """An ordering that is no curve.

    Attributes:
        build: (shape, **options) -> Scan; its further parameters are the options of the ordering.
        dims: numbers of axes for which it is known.
        covering: shape -> the smallest shape around it that the ordering can fill; None if it fills any
            shape.
    """

    build: Callable[..., Scan]
    dims: frozenset[int]
    covering: Callable[[Shape], Shape] | None = None


# Further names, in no list; one that is a curve's own name in some dims is another's in all other dims.
ALIASES = {"z": "morton", "zorder": "morton", "lebesgue": "morton", "butz": "hilbert", "skilling": "hilbert"}
CURVES: dict[str, dict[int, CurveEntry]] = {}
ORDERINGS: dict[str, OrderingEntry] = {}
POINT_ORDERS: dict[str, PointOrder] = {}
_registered: dict[tuple[str, int], Curve] = {}


def register_family(
    name: str,
    build: Callable[..., AnyCurve],
    dims: Iterable[int],
    axioms: Mapping[int, Iterable[str]] | None = None,
) -> None:
    """Add a curve family of the package; a name may be added again for other dimensions.

    Args:
        name: of the family.
        build: (dim, **options) -> curve.
        dims: dimensions for which it is known.
        axioms: values of the option `axiom` for each dimension in which `build` takes it.
    """
    entries = CURVES.setdefault(name, {})
    for dim in dims:
        entries[dim] = CurveEntry(build, tuple((axioms or {}).get(dim, ())))


def register_ordering(
    name: str,
    build: Callable[..., Scan],
    dims: Iterable[int],
    covering: Callable[[Shape], Shape] | None = None,
) -> None:
    """Add an ordering that is no curve, in this process.

    Args:
        name: of the ordering.
        build: (shape, **options) -> `Scan` of a box of that shape; its further parameters are the options of
            `sfc.ordering`.
        dims: numbers of axes for which it is known, such as (2, 3).
        covering: shape -> the smallest shape around it that the ordering can fill; None if it fills any
        shape.

    Raises:
        TypeError: an argument of another class.
        ValueError: a name that a curve or an ordering has, or that could not be part of a file's name.
    """
    checks.text("name", name)
    checks.function("build", build, "a function of a shape that returns an sfc.registry.Scan")
    known = frozenset(checks.integer("dims", dim) for dim in dims)
    if covering is not None:
        checks.function("covering", covering, "None, or a function of a shape that returns a shape")
    _check_name("ordering", name, "", (one for one, _ in _registered))
    ORDERINGS[name] = OrderingEntry(build, known, covering)


def register_point_order(name: str, order: PointOrder) -> None:
    """Add an order of points, in this process.

    Args:
        name: of the order.
        order: ((n, dim) floats or integers of numpy or cupy, **options) -> (n,) int64 rows, in the same
            memory. Its further parameters are the options that `sfc.argsort` takes with this name; of
            `bits`, `box`, `clip` and `stretch` it has those that mean something to it.

    Raises:
        TypeError: an argument of another class.
        ValueError: a name that a curve, an ordering or an order of points has, or that could not be part of
            a file's name.
    """
    checks.text("name", name)
    checks.function("order", order, "a function of points that returns their rows in order")
    _check_name("order of points", name, "", (one for one, _ in _registered))
    POINT_ORDERS[name] = order


def register(curve: Curve) -> None:
    """Add a curve in this process; its name is then available wherever a built-in one is.

    Args:
        curve: the curve; registering one with the same tables again changes nothing.

    Raises:
        TypeError: an object that is no `Curve`.
        ValueError: a name that a built-in curve or ordering of any dimension has, or another curve of this
            dimension, or that could not be part of a file's name.
    """
    remedy = "make one with sfc.read_curve or sfc.curve_from_grammar; built-in ones are known already"
    checks.instance("curve", curve, Curve, "an sfc.Curve", remedy)
    known = _registered.get((curve.name, curve.dim))
    tables = ("base", "start", "rank", "next")
    if known and all(np.array_equal(getattr(known, table), getattr(curve, table)) for table in tables):
        return
    _check_name("curve", curve.name, f" in {curve.dim}D", orderings(curve.dim))
    _registered[curve.name, curve.dim] = curve


def curves(dim: int | None = None) -> tuple[str, ...]:
    """List the names of the curves, in alphabetical order.

    Args:
        dim: list only those known in `dim` dimensions; None for all.

    Raises:
        TypeError: a dim that is neither an integer nor None.
        ValueError: a dim below 1.
    """
    dim = dim if dim is None else checks.integer("dim", dim)
    built_in = {name for name, entries in CURVES.items() if dim is None or dim in entries}
    return tuple(sorted(built_in | {name for name, its in _registered if dim is None or dim == its}))


def orderings(dim: int | None = None) -> tuple[str, ...]:
    """List the names of the orderings, curves included, in alphabetical order.

    Args:
        dim: list only those known for boxes of `dim` axes; None for all.

    Raises:
        TypeError: a dim that is neither an integer nor None.
        ValueError: a dim below 1.
    """
    dim = dim if dim is None else checks.integer("dim", dim)
    known = (name for name, entry in ORDERINGS.items() if dim is None or dim in entry.dims)
    return tuple(sorted({*known, *curves(dim)}))


def point_orders() -> tuple[str, ...]:
    """List the names of the orders of points, in alphabetical order; each is known in any number of dims."""
    return tuple(sorted(POINT_ORDERS))


def point_order(name: str, /, **options: Any) -> Callable[[Any], Any]:
    """Return the order of points of a name.

    Args:
        name: one of `point_orders()`.
        options: those that the order takes; their values are checked at the call.

    Returns:
        A function: (n, dim) points of numpy or cupy -> (n,) int64 rows in their order.

    Raises:
        TypeError: a name that is no str.
        ValueError: an unknown name, or an option that the order does not take.
    """
    order = POINT_ORDERS[checks.word("order of points", name, point_orders())]
    taken = list(inspect.signature(order).parameters)[1:]
    if wrong := sorted(set(options) - set(taken)):
        raise ValueError(f"{name!r} does not take {wrong}; allowed: {', '.join(taken) or 'none'}")
    return partial(order, **options)


def refuse_point_order(what: str, name: str, allowed: str) -> ValueError:
    """Return the error for an order of points where a curve or an ordering is needed.

    Args:
        what: is needed, in a word.
        name: of the order of points.
        allowed: names of what is needed.
    """
    ranks = f"{what} {name!r}: this is an order of points, which ranks points and not cells"
    return ValueError(f"{ranks}; allowed: {allowed}; give points and this name to sfc.argsort or sfc.sort")


def is_curve(name: str, dim: int) -> bool:
    """Return whether `curves(dim)` contains a name, or the name of an alias, without listing all."""
    name = _own_name(name, dim)
    return (name, dim) in _registered or dim in CURVES.get(name, {})


def is_ordering(name: str, dim: int) -> bool:
    """Return whether `orderings(dim)` contains a name, without listing all."""
    return (name in ORDERINGS and dim in ORDERINGS[name].dims) or is_curve(name, dim)


def curve(name: str, dim: int, **options: Any) -> AnyCurve:
    """Return the curve of a name and dimension.

    Args:
        name: one of `curves(dim)`, or of `ALIASES`.
        dim: dimensions.
        options: `axiom` for `hilbert` in 2D and 3D, one of its grammar's symbols, and for `ar2w2`, A or D;
            nothing for the others.

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
    name = _own_name(name, dim)
    if name in POINT_ORDERS:
        raise refuse_point_order("curve", name, _list(dim))
    if name in ORDERINGS:
        remedy = "give it to sfc.ordering with a shape, or to sfc.keys, sfc.argsort or sfc.sort with points"
        raise ValueError(f"curve {name!r}: this is an ordering of a box; allowed: {_list(dim)}; {remedy}")
    if not is_curve(name, dim):
        if name in curves():
            there = _shown(_dims(name))
            raise ValueError(
                f"curve {name!r} exists in {there}, not in {dim}D; known in {dim}D: {_list(dim)}"
            )
        others = ", ".join([*sorted(ORDERINGS), *point_orders()])
        also = f"; sfc.argsort and sfc.sort also take {others}"
        raise ValueError(f"unknown curve {name!r}; known in {dim}D: {_list(dim)}{also}")
    axioms = CURVES[name][dim].axioms if dim in CURVES.get(name, {}) else ()
    if options and (not axioms or set(options) != {"axiom"}):
        raise ValueError(
            f"curve {name!r} in {dim}D does not take {sorted(options)}; allowed: axiom, for "
            f"{_curves_with_axioms()} only"
        )
    for option, value in options.items():  # before `_build`: its cache needs hashable arguments
        checks.instance(option, value, str, f"one of {', '.join(axioms)}")
    return _registered.get((name, dim)) or _build(name, dim, **options)


@cache
def _build(name: str, dim: int, **options: Any) -> AnyCurve:
    return CURVES[name][dim].build(dim, **options)


def _own_name(name: str, dim: int) -> str:
    """Return the name of a curve for one of its aliases, and any other name as it is."""
    return name if dim in CURVES.get(name, {}) else ALIASES.get(name, name)


def _check_name(what: str, name: str, where: str, registered: Iterable[str]) -> None:
    """Check that a name can be part of a file's name, and that no curve or ordering has it."""
    if not re.fullmatch(r"\w[\w-]*", name):
        raise ValueError(
            f"{what} name {name!r}; allowed: letters, digits, _ and -, for it becomes part of file names"
        )
    taken = {*ORDERINGS, *CURVES, *ALIASES, *POINT_ORDERS, *registered}
    if name in taken:
        known = ", ".join(sorted(taken))
        raise ValueError(f"{what} {name!r}{where}: the name is taken; choose another than {known}")


def _curves_with_axioms() -> str:
    dims = {name: [dim for dim, entry in entries.items() if entry.axioms] for name, entries in CURVES.items()}
    return ", ".join(
        f"{name!r} in {' and '.join(f'{d}D' for d in dims[name])}" for name in dims if dims[name]
    )


def _shown(dims: list[int]) -> str:
    """Format sorted dims for a message: three or more successive ones as a range."""
    words: list[str] = []
    for run in np.split(np.array(dims), np.flatnonzero(np.diff(dims) > 1) + 1):
        words += [f"{run[0]}D to {run[-1]}D"] if len(run) > 2 else [f"{dim}D" for dim in run]
    return " and ".join(words)


def _dims(name: str) -> list[int]:
    return sorted({*CURVES.get(name, ()), *(dim for known, dim in _registered if known == name)})


def _list(dim: int) -> str:
    return ", ".join(curves(dim)) or "none"
