"""What every experiment's Config starts from, and how a Config becomes the cases of a sweep.

Contract. A Config is a frozen dataclass. A field annotated `tuple[T, ...]` is a swept axis, unless the class
names it in `TOGETHER`: then a case takes all its values at once. Every other field is fixed. A case is the
same Config with one value in the place of each axis, and one of the repeats' seeds: the cases of a repeat
share it, so that what differs between them is not chance.
"""

import functools
import itertools
import math
import typing
from collections.abc import Iterable, Iterator
from dataclasses import dataclass, fields, replace
from typing import Any, ClassVar, NamedTuple

import psutil

import sfc
from experiments.analysis.baselines import BASELINES
from sfc import checks

MOST_CASES = 100_000
PARTICLE_BYTES = 100  # at least: positions, velocities and forces in float64 in 3D, id, key, cell, neighbours


class UsageError(ValueError):
    """Something the user can mend: an empty axis, a folder that cannot be written."""


@dataclass(frozen=True)
class Settings:
    """Base of every Config: what the core gives to each experiment.

    A Config with checks of its own calls `super().__post_init__()` first: that looks at the class of every
    value by the annotation of its field, and keeps plain Python values.

    Raises:
        TypeError: a value of another class than its field's.
        ValueError: a seed or a number of repeats that is not allowed, or a curve with a baseline's name.
    """

    TOGETHER: ClassVar[tuple[str, ...]] = ()  # tuple fields that a case takes whole
    CHANCE: ClassVar[str] = "repeat"  # the column that tells a case's seed; the field has an s more

    backend: str = "auto"
    """Where simulations run: cpu, cuda, or auto for CUDA where a device is."""
    seed: int = 0
    """Seed of everything random, 0 or above, as large as you like; of the second repeat it is one more, and
    so on."""
    repeats: int = 1
    """How often every case is measured, each time from another seed."""

    def __post_init__(self):
        for name, kind in _kinds(type(self)).items():
            whole = name in self.TOGETHER or typing.get_origin(kind) is list
            object.__setattr__(self, name, _of_kind(flag_of(name), getattr(self, name), kind, whole))
        self.check("seed", low=0)
        self.check("repeats", low=1)
        for name in sorted(set(BASELINES) & set(sfc.orderings())):
            raise UsageError(
                f"a curve named {name!r}: that is the name of a baseline, which would be measured in its "
                f"place; allowed: any name but {', '.join(BASELINES)}; choose another name in its file"
            )

    def check(self, name: str, **bounds: Any) -> None:
        """Look whether a field, or all values of an axis, are numbers in a range.

        Args:
            name: of the field.
            bounds: `low`, `high`, `remedy`, `unit` of `sfc.checks.integer` and `number`; for those that are
                no integers `above` and `below` too.

        Raises:
            ValueError: one is outside.
        """
        for value in values(getattr(self, name)):
            look = checks.integer if checks.is_integer(value) and _whole(bounds) else checks.number
            look(flag_of(name), value, **({"low": -math.inf} | bounds))

    def check_known(self, known: dict[str, Iterable[str]]) -> None:
        """Look whether fields, or all values of an axis, are among those that are known.

        Args:
            known: name of a field -> words allowed.

        Raises:
            ValueError: one is not.
        """
        for name, allowed in known.items():
            for value in values(getattr(self, name)):
                checks.word(name, value, allowed)

    def check_above_zero(self, most: dict[str, float]) -> None:
        """Look whether fields, or all values of an axis, are above 0 and no larger than allowed.

        Args:
            most: name of a field -> highest value allowed.

        Raises:
            ValueError: one is not.
        """
        for name, highest in most.items():
            self.check(name, above=0, high=highest)

    def check_least(self, least: dict[str, float]) -> None:
        """Look whether fields, or all values of an axis, are large enough.

        Args:
            least: name of a field -> lowest value allowed.

        Raises:
            ValueError: one is below.
        """
        for name, lowest in least.items():
            self.check(name, low=lowest)

    def highest(self, name: str) -> float:
        """The highest value of a field that is an axis; 0 of one without values, which `axes` refuses."""
        return max(values(getattr(self, name)), default=0)

    def check_particles(self, at_once: int = 1) -> None:
        """Look whether this machine has memory for the particles of the field `n`.

        Args:
            at_once: simulations of them that are compared, and so are in memory at the same time.

        Raises:
            UsageError: it has not.
        """
        for n in values(self.n):
            self.check_memory(f"--n {n}{_several(at_once)}", n * at_once, "particles")

    def check_box(self, at_once: int = 1) -> None:
        """Look whether this machine has memory for the spheres of a box of the fields `length` and `height`.

        Args:
            at_once: boxes that are compared, and so are in memory at the same time.

        Raises:
            UsageError: it has not.
        """
        volume = min(self.length, 1e100) ** 2 * min(self.height, 1e100)
        spheres = volume * self.highest("filling_fraction") / (math.pi / 6)
        flags = f"--length {self.length:g} and --height {self.height:g}{_several(at_once)}"
        self.check_memory(flags, spheres * at_once, "spheres")

    def check_memory(self, flags: str, count: float, what: str, each: int = PARTICLE_BYTES) -> None:
        """Look whether this machine has memory for what flags ask for, before any of it is taken.

        Args:
            flags: with their values, for the message: "--n 100".
            count: how many there are to be.
            what: they are: "particles".
            each: bytes that each takes at least.

        Raises:
            UsageError: they do not fit.
        """
        most = psutil.virtual_memory().total
        if not (taken := count * each) <= most:
            raise UsageError(
                f"{flags:.200}: {_many(count)} {what}, at least {each} bytes each, take {_many(taken)} "
                f"bytes; allowed: up to {most:,} bytes, the memory of this machine, {most // each:,} {what}"
            )


class Case(NamedTuple):
    """A case of a sweep.

    Attributes:
        number: its place among all, from 0.
        place: what tells it from the others: number, repeat or run, and its value on each axis; column ->
            value.
        config: what is measured.
    """

    number: int
    place: dict[str, Any]
    config: Settings


def axes(config: Settings) -> dict[str, tuple]:
    """The swept axes: field name -> values.

    Raises:
        TypeError: a config that is no `Settings`.
        UsageError: an axis without a value, or with one twice.
    """
    checks.instance("config", config, Settings, "a Config that extends Settings")
    given = {
        f.name: getattr(config, f.name) for f in fields(config) if isinstance(getattr(config, f.name), tuple)
    }
    for name, values in given.items():
        flag = flag_of(name)
        if not values:
            raise UsageError(f"{flag} has no value: an empty axis has no case; allowed: one value or more")
        if len(set(values)) < len(values):
            raise UsageError(f"{flag} {' '.join(map(str, values))}: a value stands twice; allowed: each once")
    return {name: values for name, values in given.items() if name not in config.TOGETHER}


def cases(config: Settings) -> list[Case]:
    """Every combination of the axes, the last axis running fastest, for one repeat or run after the other.

    Raises:
        TypeError: a config that is no `Settings`.
        UsageError: an axis without a value, or more than `MOST_CASES` cases.
        ValueError: what the Config itself refuses.
    """
    swept, found = axes(config), []
    field = f"{config.CHANCE}s"
    for name in _kinds(type(config)).keys() - {"seed", field}:  # no seed is too large; the others are counted
        _check_width(flag_of(name), getattr(config, name))
    seeds = getattr(config, field)
    count = seeds * math.prod(map(len, swept.values()))
    if count > MOST_CASES:
        product = " x ".join(
            f"{len(given)} of {flag_of(name)}" for name, given in swept.items() if len(given) > 1
        )
        raise UsageError(
            f"{checks.shown(seeds)} of --{field}{' x ' if product else ''}{product}: {_many(count)} "
            f"cases; allowed: up to {MOST_CASES:,}; take fewer {field}, or fewer values"
        )
    for chance in range(seeds):
        for values in itertools.product(*swept.values()):
            chosen = dict(zip(swept, values, strict=True))
            place = {"case": len(found), config.CHANCE: chance} | chosen
            one = replace(config, **chosen, seed=config.seed + chance, **{field: 1})
            found.append(Case(len(found), place, one))
    return found


def values(field) -> Iterator:
    """The values of a field, whether an axis, one of its values or fixed; for checks in `__post_init__`."""
    return iter(field if isinstance(field, (tuple, list)) else (field,))


def _check_width(flag: str, field: Any) -> None:
    """Refuse an integer of more than 64 bits, of which no array and no table has a place."""
    for value in values(field):
        if checks.is_integer(value) and not -(2**63) <= value < 2**63:
            raise checks.refuse_value(flag, value, "an integer of 64 bits", "take a smaller one")


def flag_of(name: str) -> str:
    """The flag of a field."""
    return "--" + name.replace("_", "-")


@functools.cache
def _kinds(config_type: type[Settings]) -> dict[str, Any]:
    """The annotation of every field."""
    hints = typing.get_type_hints(config_type)
    return {f.name: hints[f.name] for f in fields(config_type)}


def _of_kind(flag: str, value: Any, kind: Any, whole: bool = False) -> Any:
    """A value as its field's annotation has it; unless it is taken whole, an axis may be one of its values.

    Raises:
        TypeError: another class.
        ValueError: a number that is not finite.
    """
    if (inside := typing.get_args(kind)) and typing.get_origin(kind) in (tuple, list):
        if whole or isinstance(value, (tuple, list)):
            several = checks.sequence(flag, value, "values")
            return typing.get_origin(kind)(_of_kind(flag, one, inside[0]) for one in several)
        return _of_kind(flag, value, inside[0])
    if kind is bool:
        return checks.flag(flag, value)
    if kind is int:
        return checks.integer(flag, value, -math.inf)
    if kind is float:
        return checks.number(flag, value)
    return str(checks.instance(flag, value, str, "text")) if kind is str else value


def _many(count: float) -> str:
    """A number that may be too long to be read, or for a float."""
    if not 1e15 <= count < math.inf:
        return f"{count:,.0f}"
    return f"about 10^{math.floor(math.log10(count))}"


def _several(at_once: int) -> str:
    return f", {at_once} times at once," if at_once > 1 else ""


def _whole(bounds: dict[str, Any]) -> bool:
    """Whether bounds are those of integers."""
    numbers = [value for value in bounds.values() if not isinstance(value, str)]
    return not {"above", "below"} & set(bounds) and all(checks.is_integer(number) for number in numbers)
