"""Pair laws: the interface of a law, and how kernels find its functions.

Contract. A search visits, for each particle i, every candidate partner j, and computes

    acc = initial(law, ri)
    acc = interact(law, vel, i, j, r2, dr, vi, acc)        for every j
    force on i = result(law, ri, vi, acc)             or, of a law of increments, the increment of vi

where `law` are the kernel parameters of the law, `dr = r_i - r_j` between nearest images, `r2 = dr . dr`, and
`ri`, `vi` are position and velocity of i. The law tests the distance itself and loads the partner's velocity
only if needed. The law defines its accumulator. For a force law it is a vector that starts at zero and is the
force, so that its author writes `interact` only (`pair_function`); another law may count, or sum several
vectors.

With `increments=True` in `pair_function` a law gives increments of velocity a step, for the integrator
"flight": new velocity = old + increment, which is not multiplied by the time step.

Laws are distinguished by type. The kernel parameters of a law are a NamedTuple of a class of its own, by
which Numba selects the law's functions for the three above. In CUDA C++ the functions of the same names are
in a `.cuh` file next to the module of the law's class.

A law of sums of the number, the relative positions and the relative velocities of the partners within one or
more radii may have an attribute `windows`, a tuple of these radii in units of length, and in its `.cuh` the
function `result_of_windows(law, ri, vi, sums)` with a `WindowSums` for each. Then `md.search.Tensor` computes
the sums of many particles at once.
"""

from __future__ import annotations

import dataclasses
import hashlib
import inspect
import math
import typing
from collections import namedtuple
from collections.abc import Callable, Sequence
from functools import cache, cached_property, lru_cache
from typing import Any, Protocol, runtime_checkable

import numpy as np

from md.backend.prelude import zero
from md.checks import flag, is_number, number, refuse_class, sequence, shown, text
from md.checks import function as require_function
from sfc.compile import chosen_by, implement, inlined
from sfc.compile.fingerprint import ChangedConstantError, UnhashableCodeError, fingerprint

NUMBERS = (int, float, np.integer, np.floating)


@chosen_by("law", default=lambda law, ri: lambda law, ri: zero(ri))
def initial(law, ri):
    """Make the accumulator of a particle before its first partner; by default the zero vector.

    Args:
        law: kernel parameters of the law.
        ri: position of the particle, a vector (tuple of dim numbers of the run's precision), in d.
    """
    raise NotImplementedError("only in a kernel, where Numba compiles the function of the law instead")


@chosen_by("law")
def interact(law, vel, i, j, r2, dr, vi, acc):
    """Add the contribution of partner j to the accumulator of particle i.

    Args:
        law: kernel parameters of the law.
        vel: (n, dim) velocities of all particles, in d per time unit; `load(vel, j, dr)` is the vector of j.
        i: row of the particle.
        j: row of the partner.
        r2: square of their distance, in d^2; 0 for coincident centres.
        dr: vector r_i - r_j between nearest images, in d.
        vi: vector, velocity of i.
        acc: accumulator of i.

    Returns:
        The accumulator.
    """
    raise NotImplementedError("only in a kernel, where Numba compiles the function of the law instead")


@chosen_by("law", default=lambda law, ri, vi, acc: lambda law, ri, vi, acc: acc)
def result(law, ri, vi, acc):
    """Convert the accumulator of a particle, after its last partner, to the force; by default they are equal.

    Args:
        law: kernel parameters of the law.
        ri: vector, position of the particle, in d.
        vi: vector, velocity of the particle, in d per time unit.
        acc: accumulator of the particle.

    Returns:
        Vector, in m d / time^2.
    """
    raise NotImplementedError("only in a kernel, where Numba compiles the function of the law instead")


@chosen_by("law")
def potential(law, r):
    """Compute the energy of a pair, in m d^2 / time^2, at a distance r in d, less than the cutoff."""
    raise NotImplementedError("only in a kernel, where Numba compiles the function of the law instead")


_STUBS: dict[str, Callable] = {stub.__name__: stub for stub in (initial, interact, result, potential)}
PARAMETERS = {name: tuple(inspect.signature(stub).parameters) for name, stub in _STUBS.items()}


@inlined
def pair_size(radius, i, j):
    """Compute the sum of two radii in d, the distance at which the particles touch; 1 without radii."""
    return radius[i] + radius[j] if len(radius) else radius.dtype.type(1)


class PairLaw(Protocol):
    """Interface of a pair law for a simulation, and of its class one of two.

    Either the class has a pair function (`pair_function`), or it is a `KernelLaw`. A law with an energy is an
    `EnergyLaw` too. Lengths are for two particles of radius 0.5; see `md.laws.polydisperse` for others.
    """

    @property
    def cutoff(self) -> float:
        """Distance in d from which on there is no interaction."""


@runtime_checkable
class KernelLaw(Protocol):
    """Law that makes its kernel parameters itself, as one that wraps another law.

    The class of the parameters has the pair function. In a search that computes each pair once the law also
    has an attribute `reciprocal`, as the argument of `pair_function`.
    """

    def kernel_law(self, precision: np.dtype) -> Any:
        """Return the kernel parameters of the law, a NamedTuple, in a precision."""


@runtime_checkable
class EnergyLaw(Protocol):
    """Law with an energy of pairs, for `md.simulation.energy_monitor` and `md.observe`.

    Such a law also has an attribute `closest_start`, the least distance in d of two centres at the start. It
    passes the function `potential` to `pair_function`, and defines it in its `.cuh`: `md.observe` sums the
    energy on the device that holds the particles.
    """

    def potential(self, distance: np.ndarray) -> np.ndarray:
        """Compute the energies of pairs, in m d^2 / time^2, at distances in d, each less than the cutoff."""


# Whether the laws of a class are `KernelLaw`s; `isinstance` of a protocol would take as long as a small step.
_makes_parameters: Callable[[Any], bool] = cache(lambda law_class: issubclass(law_class, KernelLaw))


@dataclasses.dataclass
class _Registered:
    """Arguments of `pair_function` for a law's class."""

    law_class: type
    fields: tuple[str, ...]
    functions: dict[str, Callable]
    reciprocal: bool
    increments: bool

    @cached_property
    def kernel_class(self) -> type:
        """NamedTuple class of the kernel parameters; made at first use, when all globals are defined.

        Its attribute `zero_alone` is whether a particle without partners has no force, for kernels: a law
        with an `initial` or a `result` of its own may give such a particle any force.
        """
        kernel_class: Any = self.law_class
        if not issubclass(kernel_class, tuple):
            kernel_class = typing.cast(Any, namedtuple(_class_name(self), self.fields))
        for name, function in self.functions.items():
            implement(_STUBS[name], kernel_class, _always(function))
        kernel_class.zero_alone = self.functions.keys().isdisjoint(("initial", "result"))
        return kernel_class


_registered: dict[type, _Registered] = {}


def pair_function(
    law_class: type,
    *,
    fields: Sequence[str] | None = None,
    initial: Callable | None = None,
    result: Callable | None = None,
    potential: Callable | None = None,
    reciprocal: bool = False,
    increments: bool = False,
) -> Callable[[Callable], Callable]:
    """Decorate the function `interact` of a law, the contribution of one particle to another.

    Args:
        law_class: a frozen dataclass with a `cutoff`; each number in `fields` is a field of `law` in the
            function, in the run's precision. Or a NamedTuple class; its objects are passed to kernels as
            they are.
        fields: attributes of the law that are passed to kernels; None for the fields of the dataclass.
        initial: function (law, ri) that makes the accumulator; None for the zero vector.
        result: function (law, ri, vi, acc) that computes the output; None for the accumulator.
        potential: function (law, r) of the energy of a pair; None for a law without an energy.
        reciprocal: whether the force on j is the opposite of that on i, so that a search may compute each
            pair once (`md.search.Reflexive`); not for a law with an `initial` or a `result`.
        increments: whether the law gives the increment of the velocity in a step instead of a force, for an
            integrator such as `md.integrate.Flight`.

    Returns:
        The decorator. It returns the function unchanged.

    Raises:
        TypeError: a class that is neither a frozen dataclass nor a NamedTuple class, a field that is not a
            number, a function of other parameters than `PARAMETERS`, or an argument of another class.
        ValueError: the class has a function already, another NamedTuple class has its name, a field that is
            not an attribute or starts with an underscore, or a reciprocal law that sums other values than the
            force.
    """
    names = _fields(law_class, fields)
    reciprocal, increments = flag("reciprocal", reciprocal), flag("increments", increments)

    def register(function: Callable) -> Callable:
        """Register `function` as the pair function of the class."""
        given = {"initial": initial, "interact": function, "result": result, "potential": potential}
        functions = {name: found for name, found in given.items() if found is not None}
        for name, found in functions.items():
            _require_parameters(name, found, law_class)
        if law_class in _registered:
            raise ValueError(
                f"a second pair function, {function.__qualname__}, for {law_class.__qualname__}; allowed: "
                "one for each class; define the class again before it, or give another class this function"
            )
        if reciprocal and {"initial", "result"} & set(functions):
            raise ValueError(
                f"reciprocal=True for {law_class.__qualname__} with an `initial` or a `result` of its own; "
                "allowed: for laws with the force as their accumulator"
            )
        entry = _registered[law_class] = _Registered(law_class, names, functions, reciprocal, increments)
        # The CUDA launcher requires these functions in the .cuh.
        law_class.kernel_functions = tuple(functions)  # type: ignore[attr-defined]  # on any class
        if issubclass(law_class, tuple):
            entry.kernel_class  # noqa: B018 - its objects are passed to kernels as they are
        return function

    return register


def _always(function: Callable) -> Callable:
    """Return a function of Numba types that returns `function`; one marked `by_types` is returned itself."""
    if getattr(function, "by_types", False):
        return function
    return lambda *kinds: function


def by_types(choose: Callable) -> Callable:
    """Mark a function for `pair_function` that takes Numba types and returns the function to compile."""
    choose.by_types = True  # type: ignore[attr-defined]  # an attribute of a function
    return choose


def _require_parameters(name: str, function: Callable, law_class: type) -> None:
    """Raise an error for a function of a law with other parameters than `PARAMETERS`."""
    allowed = f"a function of ({', '.join(PARAMETERS[name])}), see md.laws.pair"
    require_function(name, function, allowed)
    found = tuple(inspect.signature(function).parameters)
    if found != PARAMETERS[name]:
        given = f"{name}: {function.__qualname__}({', '.join(found)})"
        raise TypeError(f"{given} for {law_class.__qualname__}; allowed: {allowed}")


def _fields(law_class: type, fields: Sequence[str] | None) -> tuple[str, ...]:
    """Return the names of a law's numbers that are passed to kernels, checked."""
    if isinstance(law_class, type) and issubclass(law_class, tuple) and hasattr(law_class, "_fields"):
        tuples = [kind for kind in _registered if issubclass(kind, tuple) and kind is not law_class]
        for kind in tuples:
            if kind.__name__ == law_class.__name__:  # by which alone Numba tells the types of objects apart
                raise ValueError(
                    f"a second NamedTuple class with a pair function is called {law_class.__name__}; the "
                    f"first is of {kind.__module__}; allowed: another name, or a frozen dataclass"
                )
        return law_class._fields
    options = getattr(law_class, "__dataclass_params__", None)
    if not (dataclasses.is_dataclass(law_class) and options is not None and options.frozen):
        raise TypeError(
            f"pair_function({getattr(law_class, '__qualname__', law_class)!r}); allowed: a class decorated "
            "with @dataclass(frozen=True), or a NamedTuple class"
        )
    own = tuple(field.name for field in dataclasses.fields(law_class))
    for name in own if fields is None else sequence("fields", fields, "words"):
        if text("field", name).startswith("_") or not (name in own or hasattr(law_class, name)):
            raise ValueError(
                f"field {name!r} of {law_class.__qualname__}; allowed: fields and attributes of the class "
                "with names that begin with a letter"
            )
    if fields is not None:
        return tuple(fields)
    hints = typing.get_type_hints(law_class)
    for field in dataclasses.fields(law_class):
        kind = hints[field.name]
        if not (isinstance(kind, type) and issubclass(kind, NUMBERS) and not issubclass(kind, bool)):
            raise TypeError(
                f"field {field.name}: {field.type} of {law_class.__qualname__} is no number, so that kernels "
                "cannot take it; allowed: int or float; or name the numbers for kernels in fields=(...)"
            )
    return own or ("cutoff",)


def _hash_of(entry: _Registered) -> str:
    """Hash the functions of a law; for functions that cannot be hashed, return the id of the class."""
    try:
        return fingerprint(entry.functions.values(), extended=False)
    except ChangedConstantError:
        raise
    except UnhashableCodeError:  # kernels that call them are not cached
        return str(id(entry.law_class))


def _class_name(entry: _Registered) -> str:
    """Make a name for the NamedTuple class of a law, unique in this process and across processes.

    Numba makes the names of compiled functions from those of their argument types, without their fields. So
    two laws of one name, in two modules or before and after an edit in a notebook, must have classes of
    different names.
    """
    kind = entry.law_class
    key = f"{kind.__module__}.{kind.__qualname__} {entry.fields} {list(entry.functions)} {_hash_of(entry)}"
    return f"{kind.__name__}_{hashlib.sha256(key.encode()).hexdigest()[:12]}"


def kernel_law(law: Any, precision: np.dtype) -> Any:
    """Make the kernel parameters of a law: a NamedTuple of numbers, or of numbers and arrays.

    Args:
        law: of a class with a `pair_function`, or a `KernelLaw`.
        precision: of the numbers, float32 or float64.

    Returns:
        The NamedTuple.

    Raises:
        TypeError: a class without a pair function, or a field that is not a number.
        ValueError: a number that overflows in the precision.
    """
    if _makes_parameters(type(law)):
        return flat(law.kernel_law(precision))
    if isinstance(law, tuple):
        return law
    entry, real, values = _entry_of(law), np.dtype(precision).type, []
    for name in entry.fields:
        value = getattr(law, name)
        if type(value) is not float and not is_number(value):
            raise refuse_class(f"{name} of {law}", value, "a number")
        try:
            values.append(_rounded(value, real))  # type: ignore[arg-type]  # numbers, classes: hashable
        except OverflowError:
            raise ValueError(
                f"{name} = {shown(value)} of {law} in {np.dtype(precision)}; allowed: up to "
                f"{np.finfo(precision).max:.4g}; take precision='float64' or smaller units"
            ) from None
    return entry.kernel_class(*values)


@lru_cache(maxsize=256, typed=True)
def _rounded(value: Any, real: Callable[[Any], Any]) -> Any:
    """Convert a number to a precision.

    Raises:
        OverflowError: a finite number that is infinite there.
    """
    with np.errstate(over="ignore"):
        rounded = real(value)
    if math.isinf(rounded) and not math.isinf(value):
        raise OverflowError
    return rounded


def flat(law: Any) -> Any:
    """Replace the last field of a law, if it is the NamedTuple of a wrapped law, by the fields of that law.

    Numba passes a NamedTuple to threads field by field, and cannot pass a nested one. In a kernel the law is
    nested again before any of its functions is called; for a device the launcher does so.
    """
    pair = law[-1] if isinstance(law, tuple) and law else None
    if type(pair) is tuple or not isinstance(pair, tuple):
        return law
    return _flat_class(type(law), type(pair))(*law[:-1], *pair)  # type: ignore[arg-type]  # hashable


@cache
def _flat_class(kind: Any, pair_kind: Any) -> type:
    """Make the class of flat laws; its attribute `parts` has the classes of the law and the wrapped law."""
    names, pair_names = kind._fields, pair_kind._fields
    own = len(names) - 1
    fields = (*names[:-1], *(f"pair_{name}" for name in pair_names))
    made = typing.cast(Any, namedtuple(f"{kind.__name__}_{pair_kind.__name__}", fields))
    made.parts = kind, pair_kind

    @inlined
    def nested(law):
        return kind(*law[:own], pair_kind(*law[own:]))

    def initial_of_flat(law, ri):
        return initial(nested(law), ri)

    def interact_of_flat(law, vel, i, j, r2, dr, vi, acc):
        return interact(nested(law), vel, i, j, r2, dr, vi, acc)

    def result_of_flat(law, ri, vi, acc):
        return result(nested(law), ri, vi, acc)

    functions = (initial, initial_of_flat), (interact, interact_of_flat), (result, result_of_flat)
    for stub, function in functions:
        implement(stub, made, _always(function))
    return made


def is_reciprocal(law: Any) -> bool:
    """Check that the force on j is the opposite of that on i, so that each pair may be computed once.

    Raises:
        TypeError: a law of a class without a pair function.
    """
    return bool(law.reciprocal) if _makes_parameters(type(law)) else _entry_of(law).reciprocal


def gives_increments(law: Any) -> bool:
    """Check that a law gives increments of velocity instead of forces.

    Raises:
        TypeError: a law of a class without a pair function.
    """
    if not _makes_parameters(type(law)):
        return _entry_of(law).increments
    parameters = type(law.kernel_law(np.dtype(np.float64)))
    return any(
        entry.increments and vars(entry).get("kernel_class") is parameters for entry in _registered.values()
    )


def require_force_sum(law: Any, purpose: str) -> None:
    """Raise an error for a law that sums other values than the forces of the partners.

    Args:
        law: the law.
        purpose: of the sum of forces, the first words of the message.

    Raises:
        ValueError: the law has an `initial` or a `result` of its own, or gives increments of velocity.
        TypeError: a law of a class without a pair function.
    """
    own = not _makes_parameters(type(law)) and {"initial", "result"} & set(_entry_of(law).functions)
    if own or gives_increments(law):
        raise ValueError(
            f"{purpose} under {law}, which sums other things than the forces of its partners; allowed: a law "
            "without an `initial` and a `result` of its own, which gives forces"
        )


def require_pair_function(kind: str, name: str, law_class: type) -> None:
    """Check that a class can be registered as a law.

    Raises:
        TypeError: the class has neither a pair function nor `kernel_law`.
    """
    if law_class not in _registered and not _makes_parameters(law_class):
        raise TypeError(
            f"{kind} {name!r}: class {law_class.__qualname__} has no pair function; allowed: a class that "
            "was given to md.laws.pair_function"
        )


def require_law(law: Any) -> None:
    """Check a law before a simulation computes with it.

    Raises:
        TypeError: the class of the law has no pair function, the law has no cutoff, or only some of the three
            that define an energy (method `potential`, function `potential` for kernels, `closest_start`).
        ValueError: a cutoff that is not positive and finite, or a constant that is read by the law's
            functions and has changed since they were compiled.
    """
    if not _makes_parameters(type(law)):
        entry = _entry_of(law)
        _hash_of(entry)  # raises if a constant has changed
        potentials = hasattr(law, "potential"), "potential" in entry.functions
        if any(potentials) and not (all(potentials) and hasattr(law, "closest_start")):
            raise TypeError(
                f"{law} has an energy in part; allowed: a method `potential`, an attribute `closest_start` "
                "and pair_function(..., potential=f), f(law, r) the energy of a pair in a kernel; or none"
            )
    remedy = "give the class a field or a property `cutoff`, the distance at which its interaction ends"
    number(f"cutoff of {law}", getattr(law, "cutoff", None), above=0, unit="d", remedy=remedy)


def _entry_of(law: Any) -> _Registered:
    """Return what `pair_function` registered for the class of a law.

    Raises:
        TypeError: a class without a pair function.
    """
    if type(law) not in _registered:
        laws = sorted({kind.__qualname__ for kind in _registered if not issubclass(kind, tuple)})
        raise TypeError(
            f"law = {shown(law)} is of {type(law).__module__}.{type(law).__qualname__}, which has no pair "
            f"function; allowed: {', '.join(laws)}, or a class of your own with "
            "@md.laws.pair_function(TheClass) before its function `interact`; a class derived from a law "
            "needs one too"
        )
    return _registered[type(law)]
