"""What a pair law is, and how a kernel finds the code of one.

Contract. A search visits, for each particle i, every particle j that could interact with it, and folds

    acc = initial(law, ri)
    acc = interact(law, vel, i, j, r2, dr, vi, acc)        for every j
    force on i = result(law, ri, vi, acc)

where `law` is the law as kernels take it, `dr = r_i - r_j` between nearest images, `r2 = dr . dr`, and `ri`,
`vi` are position and velocity of i. The law tests the distance itself and loads the partner's velocity only
where it needs it. What the accumulator is, the law alone decides: a force law has a vector that begins at
zero and is the force, so that its author writes `interact` alone (`pair_function`); another law may count, or
sum several vectors.

Laws are told apart by type. A law as kernels take it is a NamedTuple of a class of its own, by which Numba
puts that law's functions in the place of the three above. In CUDA C++ the functions of the same names stand
in a `.cuh` file beside the module of the law's class.
"""

from __future__ import annotations

import dataclasses
import hashlib
import inspect
import math
import typing
from collections import namedtuple
from collections.abc import Callable, Sequence
from functools import cached_property
from typing import Any, Protocol

import numpy as np

from md.backend.prelude import zero
from md.checks import flag, is_number, number, refuse_class, sequence, shown, text
from md.checks import function as require_function
from sfc.compile import chosen_by, implement, inlined
from sfc.compile.fingerprint import ChangedConstantError, UnhashableCodeError, fingerprint

PARAMETERS = {
    "initial": ("law", "ri"),
    "interact": ("law", "vel", "i", "j", "r2", "dr", "vi", "acc"),
    "result": ("law", "ri", "vi", "acc"),
    "potential": ("law", "r"),
}
NUMBERS = (int, float, np.integer, np.floating)


@chosen_by("law", default=lambda law, ri: lambda law, ri: zero(ri))
def initial(law, ri):
    """Make the accumulator of a particle that has met no other yet; by default the zero vector.

    Args:
        law: as kernels take it.
        ri: position of the particle, a vector (tuple of dim numbers of the run's precision), in d.
    """
    raise NotImplementedError("only inside a kernel, where Numba puts a law's function in its place")


@chosen_by("law")
def interact(law, vel, i, j, r2, dr, vi, acc):
    """Add what particle i gets of particle j to the accumulator of i.

    Args:
        law: as kernels take it.
        vel: (n, dim) velocities of all, in d per time unit; `load(vel, j, dr)` is the vector of j.
        i: row of the particle.
        j: row of the partner.
        r2: square of their distance, in d^2; 0 where they coincide.
        dr: vector r_i - r_j between nearest images, in d.
        vi: vector, velocity of i.
        acc: accumulator of i.

    Returns:
        The accumulator.
    """
    raise NotImplementedError("only inside a kernel, where Numba puts a law's function in its place")


@chosen_by("law", default=lambda law, ri, vi, acc: lambda law, ri, vi, acc: acc)
def result(law, ri, vi, acc):
    """Turn the accumulator of a particle that has met all others into its force; by default it is the force.

    Args:
        law: as kernels take it.
        ri: vector, position of the particle, in d.
        vi: vector, its velocity, in d per time unit.
        acc: its accumulator.

    Returns:
        Vector, in m d / time^2.
    """
    raise NotImplementedError("only inside a kernel, where Numba puts a law's function in its place")


@chosen_by("law")
def potential(law, r):
    """Energy of a pair at distance r in d, less than the cutoff; in m d^2 / time^2."""
    raise NotImplementedError("only inside a kernel, where Numba puts a law's function in its place")


@inlined
def pair_size(radius, i, j):
    """Sum of the radii of two particles, in d, the distance at which they touch; 1 without radii."""
    return radius[i] + radius[j] if len(radius) else radius.dtype.type(1)


class PairLaw(Protocol):
    """What a simulation needs to know of a law.

    A law that nothing drives may have two attributes more, for `md.simulation.energy_monitor`: `potential(distance)`, the energy
    of a pair, and `closest_start`, the distance in d that no two centres of a start go below. One with the
    method gives the function `potential` to `pair_function` too, and has it in its `.cuh`: `md.observe` sums
    the energy on the device that owns the particles.

    All of it is about two particles whose radii are a half; `md.laws.polydisperse` says what follows for others.

    Attributes:
        cutoff: no interaction at this distance or beyond, in d.
    """

    cutoff: float


@dataclasses.dataclass
class _Known:
    """What `pair_function` was given for a law's class."""

    law_class: type
    fields: tuple[str, ...]
    functions: dict[str, Callable]
    reciprocal: bool

    @cached_property
    def kernel_class(self) -> type:
        """NamedTuple class of such laws in kernels; made at first use, when all globals are defined."""
        made = self.law_class
        if not issubclass(made, tuple):
            made = namedtuple(_class_name(self), self.fields)
        for name, function in self.functions.items():
            implement(_STUBS[name], made, _always(function))
        return made


_known: dict[type, _Known] = {}


def pair_function(
    law_class: type,
    *,
    fields: Sequence[str] | None = None,
    initial: Callable | None = None,
    result: Callable | None = None,
    potential: Callable | None = None,
    reciprocal: bool = False,
) -> Callable[[Callable], Callable]:
    """Decorator of the function `interact` of a law: what a particle gets of another.

    Args:
        law_class: a frozen dataclass with a `cutoff`; each number in `fields` is a field of `law` in the
            function, in the run's precision. Or a NamedTuple class, whose objects kernels take as they are.
        fields: attributes of the law that kernels get; None for the fields of the dataclass.
        initial: function (law, ri) that makes the accumulator; None for the zero vector.
        result: function (law, ri, vi, acc) that gives what is added to the output; None for the accumulator.
        potential: function (law, r) of the energy of a pair; None for a law without an energy.
        reciprocal: whether particle j gets the opposite of what i gets, so that a search may compute each
            pair once (`md.search.Reflexive`); not for a law with an `initial` or a `result`.

    Returns:
        The decorator. It leaves the function as it is.

    Raises:
        TypeError: a class that is neither a frozen dataclass nor a NamedTuple class, a field that is no
            number, a function of other parameters than `PARAMETERS`, or an argument of another class.
        ValueError: the class has a function already, another NamedTuple class has its name, a field that is
            no attribute or begins with an underscore, or a reciprocal law that sums anything but the force.
    """
    names = _fields(law_class, fields)
    flag("reciprocal", reciprocal)

    def register(function: Callable) -> Callable:
        given = {"initial": initial, "interact": function, "result": result, "potential": potential}
        functions = {name: one for name, one in given.items() if one is not None}
        for name, one in functions.items():
            _require_parameters(name, one, law_class)
        if law_class in _known:
            raise ValueError(
                f"a second pair function, {function.__qualname__}, for {law_class.__qualname__}; allowed: "
                "one for each class; define the class again before it, or give another class this function"
            )
        if reciprocal and {"initial", "result"} & set(functions):
            raise ValueError(
                f"reciprocal=True for {law_class.__qualname__} with an `initial` or a `result` of its own; "
                "allowed: for laws whose accumulator is the force"
            )
        known = _known[law_class] = _Known(law_class, names, functions, bool(reciprocal))
        law_class.kernel_functions = tuple(functions)  # which a device's launcher looks for in the .cuh
        if issubclass(law_class, tuple):
            known.kernel_class  # noqa: B018 - kernels take its objects as they are
        return function

    return register


_STUBS = {"initial": initial, "interact": interact, "result": result, "potential": potential}


def _always(function: Callable) -> Callable:
    """Make a function that chooses `function` whatever the types; one marked `by_types` chooses itself."""
    if getattr(function, "by_types", False):
        return function
    return lambda *kinds: function


def by_types(choose: Callable) -> Callable:
    """Mark a function for `pair_function` that takes Numba types and returns the function to compile."""
    choose.by_types = True
    return choose


def _require_parameters(name: str, function: Callable, law_class: type) -> None:
    require_function(name, function, f"a function of ({', '.join(PARAMETERS[name])}), see md.laws.pair")
    found = tuple(inspect.signature(function).parameters)
    if found != PARAMETERS[name]:
        raise TypeError(
            f"{name}: {function.__qualname__}({', '.join(found)}) for {law_class.__qualname__}; allowed: a "
            f"function of ({', '.join(PARAMETERS[name])}), see md.laws.pair"
        )


def _fields(law_class: type, fields: Sequence[str] | None) -> tuple[str, ...]:
    """Names of the numbers that kernels get of a law of some class."""
    if isinstance(law_class, type) and issubclass(law_class, tuple) and hasattr(law_class, "_fields"):
        same = [kind for kind in _known if issubclass(kind, tuple) and kind.__name__ == law_class.__name__]
        if same and law_class not in same:  # Numba tells the types of their objects apart by this name alone
            raise ValueError(
                f"a second NamedTuple class with a pair function is called {law_class.__name__}; the first "
                f"is of {same[0].__module__}; allowed: another name, or a frozen dataclass"
            )
        return law_class._fields
    if not (dataclasses.is_dataclass(law_class) and law_class.__dataclass_params__.frozen):
        raise TypeError(
            f"pair_function({getattr(law_class, '__qualname__', law_class)!r}); allowed: a class decorated "
            "with @dataclass(frozen=True), or a NamedTuple class"
        )
    own = tuple(field.name for field in dataclasses.fields(law_class))
    for name in own if fields is None else sequence("fields", fields, "words"):
        if text("field", name).startswith("_") or not (name in own or hasattr(law_class, name)):
            raise ValueError(
                f"field {name!r} of {law_class.__qualname__}; allowed: fields and attributes of the class "
                "whose names begin with a letter"
            )
    if fields is not None:
        return tuple(fields)
    hints = typing.get_type_hints(law_class)
    for field in dataclasses.fields(law_class):
        kind = hints[field.name]
        if not (isinstance(kind, type) and issubclass(kind, NUMBERS) and not issubclass(kind, bool)):
            raise TypeError(
                f"field {field.name}: {field.type} of {law_class.__qualname__} is no number, so that kernels "
                "cannot take it; allowed: int or float; or name the numbers that they get in fields=(...)"
            )
    return own or ("cutoff",)


def _reach(known: _Known) -> str:
    """Hash the functions of a law; of functions that cannot be hashed, name the class."""
    try:
        return fingerprint(known.functions.values(), extended=False)
    except ChangedConstantError:
        raise
    except UnhashableCodeError:  # kernels that call them are kept nowhere
        return str(id(known.law_class))


def _class_name(known: _Known) -> str:
    """Name the NamedTuple class of a law as no other law's, in this process or another.

    Numba makes the names of compiled functions from those of their argument types, without their fields. So
    two laws of one name, in two modules or before and after an edit in a notebook, must have classes of
    different names.
    """
    kind = known.law_class
    whole = f"{kind.__module__}.{kind.__qualname__} {known.fields} {list(known.functions)} {_reach(known)}"
    return f"{kind.__name__}_{hashlib.sha256(whole.encode()).hexdigest()[:12]}"


def kernel_law(law: Any, precision: np.dtype) -> Any:
    """A law as kernels take it: a NamedTuple of numbers, or of numbers and arrays.

    Args:
        law: of a class with a `pair_function`; or an object with a method `kernel_law(precision)`.
        precision: of the numbers, float32 or float64.

    Raises:
        TypeError: a class without a pair function, or a field that is no number.
        ValueError: a number that the precision has no room for.
    """
    if hasattr(law, "kernel_law"):
        return flat(law.kernel_law(precision))
    if isinstance(law, tuple):
        return law
    known, real = _of(law), np.dtype(precision).type
    values = []
    for name in known.fields:
        value = getattr(law, name)
        if type(value) is not float and not is_number(value):
            raise refuse_class(f"{name} of {law}", value, "a number")
        with np.errstate(over="ignore"):
            try:
                values.append(real(value))
            except OverflowError:  # of a Python integer
                values.append(real(math.inf))
        if not math.isfinite(values[-1]) and (isinstance(value, int) or math.isfinite(value)):
            raise ValueError(
                f"{name} = {shown(value)} of {law} in {np.dtype(precision)}; allowed: up to "
                f"{np.finfo(precision).max:.4g}; take precision='float64' or smaller units"
            )
    return known.kernel_class(*values)


def flat(law: Any) -> Any:
    """Replace the last field of a law, if that is the NamedTuple of another law, by the fields of that one.

    Numba hands a NamedTuple to threads field by field, and cannot hand them one within another. Inside a
    kernel the law is put together again before any of its functions is called; for a device, by the launcher.
    """
    pair = law[-1] if isinstance(law, tuple) and law else None
    if not (isinstance(pair, tuple) and hasattr(pair, "_fields")):
        return law
    kinds = type(law), type(pair)
    if kinds not in _flat_classes:
        _flat_classes[kinds] = _flat_class(*kinds)
    return _flat_classes[kinds](*law[:-1], *pair)


_flat_classes: dict[tuple[type, type], type] = {}


def _flat_class(kind: type, pair_kind: type) -> type:
    """The class of such laws; `parts` are those of the law and of the law that it asks."""
    own = len(kind._fields) - 1
    fields = (*kind._fields[:-1], *(f"pair_{name}" for name in pair_kind._fields))
    made = namedtuple(f"{kind.__name__}_{pair_kind.__name__}", fields)
    made.parts = kind, pair_kind

    @inlined
    def whole(law):
        return kind(*law[:own], pair_kind(*law[own:]))

    def begin(law, ri):
        return initial(whole(law), ri)

    def meet(law, vel, i, j, r2, dr, vi, acc):
        return interact(whole(law), vel, i, j, r2, dr, vi, acc)

    def end(law, ri, vi, acc):
        return result(whole(law), ri, vi, acc)

    for stub, function in ((initial, begin), (interact, meet), (result, end)):
        implement(stub, made, _always(function))
    return made


def is_reciprocal(law: Any) -> bool:
    """Whether each of a pair gets the opposite of what the other gets, so that it may be computed once.

    Raises:
        TypeError: a law of a class without a pair function.
    """
    return bool(law.reciprocal) if hasattr(law, "kernel_law") else _of(law).reciprocal


def require_force_sum(law: Any, purpose: str) -> None:
    """Look whether what a law makes of one partner is a force.

    Args:
        law: the law.
        purpose: what that is needed for, to begin a message with.

    Raises:
        ValueError: it has an `initial` or a `result` of its own.
        TypeError: a law of a class without a pair function.
    """
    if not hasattr(law, "kernel_law") and {"initial", "result"} & set(_of(law).functions):
        raise ValueError(
            f"{purpose} under {law}, which sums other things than the forces of its partners; allowed: a law "
            "without an `initial` and a `result` of its own"
        )


def require_law(law: Any) -> None:
    """Check a law before a simulation computes with it.

    Raises:
        TypeError: its class has no pair function, it has no cutoff, or of the three that tell an energy
            (method `potential`, function `potential` for kernels, `closest_start`) some are missing.
        ValueError: a cutoff that is not positive and finite, or a constant that its functions read and that
            has changed since they were compiled.
    """
    if not hasattr(law, "kernel_law"):
        known = _of(law)
        _reach(known)  # raises if a constant has changed
        names = {"potential", "closest_start"}
        found = {name for name in names if hasattr(law, name)}
        if ("potential" in known.functions or "potential" in found) and not (
            found == names and "potential" in known.functions
        ):
            raise TypeError(
                f"{law} has an energy in part; allowed: a method `potential`, an attribute `closest_start` "
                "and pair_function(..., potential=f), f(law, r) the energy of a pair in a kernel; or none"
            )
    number(
        f"cutoff of {law}",
        getattr(law, "cutoff", None),
        above=0,
        unit="d",
        remedy="give the class a field or a property `cutoff`, the distance at which its interaction ends",
    )


def _of(law: Any) -> _Known:
    if type(law) not in _known:
        laws = sorted({kind.__qualname__ for kind in _known if not issubclass(kind, tuple)})
        raise TypeError(
            f"law = {shown(law)} is of {type(law).__module__}.{type(law).__qualname__}, which has no pair "
            f"function; allowed: {', '.join(laws)}, or a class of your own with "
            "@md.laws.pair_function(TheClass) before its function `interact`; a class derived from a law "
            "needs one too"
        )
    return _known[type(law)]
