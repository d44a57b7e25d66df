"""What every experiment's Config starts from, and how a Config becomes the cases of a sweep.

Contract. A Config is a frozen dataclass. A field annotated `tuple[T, ...]` is a swept axis, unless the class
names it in `TOGETHER`: then a case takes all its values at once. Every other field is fixed. A case is the
same Config with one value in the place of each axis, and one of the repeats' seeds: the cases of a repeat
share it, so that what differs between them is not chance.
"""

import itertools
from collections.abc import Iterable, Iterator
from dataclasses import dataclass, fields, replace
from typing import Any, ClassVar, NamedTuple


class UsageError(ValueError):
    """Something the user can mend: an empty axis, a folder that cannot be written."""


@dataclass(frozen=True)
class Settings:
    """Base of every Config: what the core gives to each experiment.

    A Config with checks of its own calls `super().__post_init__()` too.
    """

    TOGETHER: ClassVar[tuple[str, ...]] = ()  # tuple fields that a case takes whole

    backend: str = "auto"
    """Where simulations run: cpu, cuda, or auto for CUDA where a device is."""
    seed: int = 0
    """Seed of everything random; of the second repeat it is one more, and so on."""
    repeats: int = 1
    """How often every case is measured, each time from another seed."""

    def __post_init__(self):
        if self.seed < 0:
            raise ValueError(f"--seed {self.seed}; allowed: 0 or more")
        if self.repeats < 1:
            raise ValueError(f"--repeats {self.repeats}; allowed: 1 or more")

    def check_known(self, known: dict[str, Iterable[str]]) -> None:
        """Look whether fields, or all values of an axis, are among those that are known.

        Args:
            known: name of a field -> words allowed.

        Raises:
            ValueError: one is not.
        """
        for name, allowed in known.items():
            for value in values(getattr(self, name)):
                if value not in allowed:
                    raise ValueError(f"unknown {name} {value!r}; known: {', '.join(allowed)}")

    def check_above_zero(self, most: dict[str, float]) -> None:
        """Look whether fields, or all values of an axis, are above 0 and no larger than allowed.

        Args:
            most: name of a field -> highest value allowed.

        Raises:
            ValueError: one is not.
        """
        for flag, value, highest in self._each(most):
            if not 0 < value <= highest:
                raise ValueError(f"{flag} {value}; allowed: above 0, up to {highest:g}")

    def check_least(self, least: dict[str, float]) -> None:
        """Look whether fields, or all values of an axis, are large enough.

        Args:
            least: name of a field -> lowest value allowed.

        Raises:
            ValueError: one is below.
        """
        for flag, value, lowest in self._each(least):
            if not value >= lowest:
                raise ValueError(f"{flag} {value}; allowed: at least {lowest}")

    def _each(self, bounds: dict[str, float]) -> Iterator[tuple[str, Any, float]]:
        """Flag, value and bound of every value of the fields named."""
        for name, bound in bounds.items():
            for value in values(getattr(self, name)):
                yield "--" + name.replace("_", "-"), value, bound


class Case(NamedTuple):
    """A case of a sweep.

    Attributes:
        number: its place among all, from 0.
        place: what tells it from the others: number, repeat, and its value on each axis; column -> value.
        config: what is measured.
    """

    number: int
    place: dict[str, Any]
    config: Settings


def axes(config: Settings) -> dict[str, tuple]:
    """The swept axes: field name -> values.

    Raises:
        UsageError: an axis without a value, or with one twice.
    """
    given = {
        f.name: getattr(config, f.name) for f in fields(config) if isinstance(getattr(config, f.name), tuple)
    }
    for name, values in given.items():
        flag = "--" + name.replace("_", "-")
        if not values:
            raise UsageError(f"{flag} has no value: an empty axis has no case; allowed: one value or more")
        if len(set(values)) < len(values):
            raise UsageError(f"{flag} {' '.join(map(str, values))}: a value stands twice; allowed: each once")
    return {name: values for name, values in given.items() if name not in config.TOGETHER}


def cases(config: Settings) -> list[Case]:
    """Every combination of the axes, the last axis running fastest, for one repeat after the other.

    Raises:
        UsageError: an axis without a value.
        ValueError: what the Config itself refuses.
    """
    swept, found = axes(config), []
    for repeat in range(config.repeats):
        for values in itertools.product(*swept.values()):
            chosen = dict(zip(swept, values, strict=True))
            place = {"case": len(found), "repeat": repeat} | chosen
            one = replace(config, **chosen, seed=config.seed + repeat, repeats=1)
            found.append(Case(len(found), place, one))
    return found


def values(field) -> Iterator:
    """The values of a field, whether an axis, one of its values or fixed; for checks in `__post_init__`."""
    return iter(field if isinstance(field, tuple) else (field,))
