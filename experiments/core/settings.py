"""Base class of every experiment's Config, and the cases of a sweep that a Config describes.

Contract. A Config is a frozen dataclass. A field annotated `Axis[T]`, that is `tuple[T, ...]`, is a swept
axis, unless the class names it in `TOGETHER`: then a case takes all its values at once. Every other field is
fixed. A case is the same Config with one value in place of each axis, and with the seed of a repeat: all
cases of a repeat share the seed, so that their differences are not due to chance.
"""

import functools
import itertools
import math
import os
import typing
from collections.abc import Callable, Iterable, Iterator, Mapping
from dataclasses import dataclass, fields, replace
from typing import TYPE_CHECKING, Annotated, Any, ClassVar, NamedTuple, TypeVar, Union

import psutil
import tyro

import sfc
from experiments.results.baselines import AGED, BASELINES
from sfc import checks

MOST_CASES = 100_000
KEPT = "an integer from -2**63 to 2**63 - 1"  # in a table
PARTICLE_BYTES = 100  # at least: positions, velocities and forces in float64 in 3D, id, key, cell, neighbours


T = TypeVar("T")

if TYPE_CHECKING:
    Axis = Union[T, Any]  # noqa: UP007 - an alias with a type variable; a case holds one T, a sweep a tuple
else:

    class Axis:
        """Annotation `tuple[T, ...]` of a field that is swept: `Axis[T]`; a case holds one of its values."""

        def __class_getitem__(cls, kind: type) -> Any:
            return tuple[kind, ...]


class UsageError(ValueError):
    """Error in the user's input or machine: an empty axis, a folder that cannot be written."""


class Scene(NamedTuple):
    """Word of the field `SCENE` that has other defaults than its Config, or lacks some of its fields.

    Attributes:
        without: fields that it lacks. They keep the default of the Config, and are no axes.
        defaults: field -> default of the command line, in place of that of the Config.
        quick: field -> value of `--quick`; empty for those of the experiment.
    """

    without: tuple[str, ...] = ()
    defaults: Mapping[str, Any] = {}
    quick: Mapping[str, Any] = {}


@dataclass(frozen=True)
class Settings:
    """Base of every Config: fields and checks that all experiments share.

    A Config with its own checks calls `super().__post_init__()` first, which checks the class of every value
    by the annotation of its field, and stores plain Python values.

    Raises:
        TypeError: a value of another class than its field's.
        ValueError: a seed or a number of repeats that is not allowed, a curve with a baseline's name, or a
            field that the scene lacks.
    """

    TOGETHER: ClassVar[tuple[str, ...]] = ()  # tuple fields that are no axes
    SCENE: ClassVar[str] = "scene"  # field of the words of `SCENES`
    SCENES: ClassVar[Mapping[str, Scene]] = {}  # word of the field `SCENE` -> what it changes
    CHANCE: ClassVar[str] = "repeat"  # column that numbers the seeds; the name of the field has an s more

    backend: Annotated[str, tyro.conf.arg(metavar="{auto,cpu,cuda}")] = "auto"
    """Device on which simulations run; auto is CUDA if there is a device, else the CPU."""
    seed: int = 0
    """Seed of all random numbers, 0 or above, of any size. Each further repeat uses the next seed."""
    repeats: int = 1
    """Number of measurements of every case, each with another seed."""

    def __post_init__(self):
        for name, kind in _kinds(type(self)).items():
            whole = name in self.TOGETHER or typing.get_origin(kind) is list
            object.__setattr__(self, name, _of_kind(flag_of(name), getattr(self, name), kind, whole))
        self.check("seed", low=0)
        self.check("repeats", low=1)
        defaults = {field.name: field.default for field in fields(self)}
        for name in self.of_scene.without:
            if [*values(getattr(self, name))] != [*values(defaults[name])]:
                given = " ".join(map(str, values(getattr(self, name))))
                raise UsageError(
                    f"{flag_of(name)} {given} beside {flag_of(self.SCENE)} {vars(self)[self.SCENE]}, which "
                    f"has no such setting; allowed: {flag_of(name)} with other scenes; leave it out"
                )
        for name in sorted({*BASELINES, AGED} & set(sfc.orderings())):
            raise UsageError(
                f"a curve named {name!r}: the baseline of that name would be measured instead; allowed: any "
                f"name but {', '.join((*BASELINES, AGED))}; choose another name in its file"
            )

    @property
    def of_scene(self) -> Scene:
        """What the word of the field `SCENE` changes; nothing without such a field."""
        return self.SCENES.get(vars(self).get(self.SCENE, ""), Scene())

    @property
    def notes(self) -> tuple[str, ...]:
        """What is said before a run besides its length, such as what cannot be measured here."""
        return ()

    def check(self, name: str, **bounds: Any) -> None:
        """Check that a field, or all values of an axis, are numbers in a range.

        Args:
            name: of the field.
            bounds: `low`, `high`, `remedy`, `unit` of `sfc.checks.integer` and `number`; for other numbers
                than integers also `above` and `below`.

        Raises:
            ValueError: a value is outside.
        """
        numbers = [bound for bound in bounds.values() if not isinstance(bound, str)]
        whole = not {"above", "below"} & bounds.keys() and all(map(checks.is_integer, numbers))
        for value in values(getattr(self, name)):
            check = checks.integer if whole and checks.is_integer(value) else checks.number
            check(flag_of(name), value, **({"low": -math.inf} | bounds))

    def check_known(self, known: dict[str, Iterable[str]]) -> None:
        """Check that fields, or all values of an axis, are among the allowed words, which the help lists.

        Args:
            known: name of a field -> words allowed.

        Raises:
            ValueError: a value is not.
        """
        object.__setattr__(self, "_known_words", {name: tuple(allowed) for name, allowed in known.items()})
        for name, allowed in self.known_words.items():
            for value in values(getattr(self, name)):
                checks.word(name, value, allowed, _where_points_are_ordered(value, allowed))

    @property
    def known_words(self) -> dict[str, tuple[str, ...]]:
        """Return name of a field -> words allowed, of the fields given to `check_known`."""
        return dict(getattr(self, "_known_words", {}))

    def check_above_zero(self, most: dict[str, float]) -> None:
        """Check that fields, or all values of an axis, are above 0 and no larger than allowed.

        Args:
            most: name of a field -> highest value allowed.

        Raises:
            ValueError: a value is not.
        """
        for name, highest in most.items():
            self.check(name, above=0, high=highest)

    def check_least(self, least: dict[str, float]) -> None:
        """Check that fields, or all values of an axis, are large enough.

        Args:
            least: name of a field -> lowest value allowed.

        Raises:
            ValueError: a value is below.
        """
        for name, lowest in least.items():
            self.check(name, low=lowest)

    def highest(self, name: str) -> float:
        """Return the highest value of an axis; 0 for an axis without values, which `axes` refuses."""
        return max(values(getattr(self, name)), default=0)

    def check_particles(self, at_once: int = 1) -> None:
        """Check that this machine has memory for the particles of the field `n`.

        Args:
            at_once: number of simulations that are in memory at the same time, because they are compared.

        Raises:
            UsageError: it has too little memory.
        """
        for n in values(getattr(self, "n")):  # noqa: B009 - of the classes that have it
            self.check_memory(f"--n {n}{_several(at_once)}", n * at_once, "particles")

    def check_box(self, at_once: int = 1) -> None:
        """Check that this machine has memory for the spheres of a box of the fields `length` and `height`.

        Args:
            at_once: number of boxes that are in memory at the same time, because they are compared.

        Raises:
            UsageError: it has too little memory.
        """
        length, height = (float(getattr(self, name)) for name in ("length", "height"))
        volume = min(length, 1e100) ** 2 * min(height, 1e100)
        spheres = volume * self.highest("filling_fraction") / (math.pi / 6)
        flags = f"--length {length:g} and --height {height:g}{_several(at_once)}"
        self.check_memory(flags, spheres * at_once, "spheres")

    def check_memory(self, flags: str, count: float, what: str, each: int = PARTICLE_BYTES) -> None:
        """Check that this machine has memory for the objects that flags request, before any is allocated.

        Args:
            flags: with their values, for the message: "--n 100".
            count: number of objects.
            what: their name: "particles".
            each: least number of bytes of each.

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
    """One case of a sweep.

    Attributes:
        number: its position among all cases, from 0.
        place: the columns that identify it: number, repeat or run, and its value on each axis; column ->
            value.
        config: its settings.
    """

    number: int
    place: dict[str, Any]
    config: Settings


def axes(config: Settings) -> dict[str, tuple]:
    """Return the swept axes: field name -> values.

    Raises:
        TypeError: a config that is no `Settings`.
        UsageError: an axis without a value, or with a value twice.
    """
    checks.instance("config", config, Settings, "a Config that extends Settings")
    found = {f.name: one for f in fields(config) if isinstance(one := getattr(config, f.name), tuple)}
    for name, given in found.items():
        flag = flag_of(name)
        if not given:
            raise UsageError(f"{flag} has no value: an empty axis has no case; allowed: one value or more")
        if len(set(given)) < len(given):
            raise UsageError(f"{flag} {' '.join(map(str, given))}: a value stands twice; allowed: each once")
    fixed = (*config.TOGETHER, *config.of_scene.without)
    return {name: given for name, given in found.items() if name not in fixed}


def cases(config: Settings) -> list[Case]:
    """List every combination of the axes, last axis fastest, for one repeat or run after the other.

    Raises:
        TypeError: a config that is no `Settings`.
        UsageError: an axis without a value, or more than `MOST_CASES` cases.
        ValueError: values that the Config itself refuses.
    """
    swept = axes(config)
    field = f"{config.CHANCE}s"
    for name in {one.name for one in fields(config)} - {"seed", field}:  # any seed is allowed
        for value in values(getattr(config, name)):
            if checks.is_integer(value) and not -(2**63) <= value < 2**63:  # which no table holds
                raise checks.refuse_value(flag_of(name), value, KEPT, "take one in that range")
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
    found = []
    for number, (chance, *chosen) in enumerate(itertools.product(range(seeds), *swept.values())):
        on_axes = dict(zip(swept, chosen, strict=True))
        changes: dict[str, Any] = on_axes | {"seed": config.seed + chance, field: 1}
        place = {"case": number, config.CHANCE: chance} | on_axes
        found.append(Case(number, place, replace(config, **changes)))
    return found


def values(field: Any) -> Iterator[Any]:
    """Iterate over the values of a field, whether an axis, one of its values or fixed."""
    return iter(field if isinstance(field, (tuple, list)) else (field,))


def _where_points_are_ordered(word: Any, allowed: Iterable[str]) -> str:
    """Return the remedy for the name of an order of points where curves or orderings are allowed, or ''."""
    if word not in sfc.point_orders() or not {*allowed} & {*sfc.orderings()}:
        return ""
    return f"{word} ranks points and not cells: sfc.argsort, sfc.sort and experiments.foresee take it"


def flag_of(name: str) -> str:
    """Return the flag of a field."""
    return "--" + name.replace("_", "-")


@functools.cache
def _kinds(config_type: Any) -> dict[str, Any]:
    """Return the annotation of every field."""
    hints = typing.get_type_hints(config_type)
    return {f.name: hints[f.name] for f in fields(config_type)}


def _of_kind(flag: str, value: Any, kind: Any, whole: bool = False) -> Any:
    """Convert a value to the class of its field; an axis may also be one of its values, unless `whole`.

    Raises:
        TypeError: another class.
        ValueError: a number that is not finite.
    """
    if (inside := typing.get_args(kind)) and typing.get_origin(kind) in (tuple, list):
        if whole or isinstance(value, (tuple, list)):
            several = checks.sequence(flag, value, "values")
            return typing.get_origin(kind)(_of_kind(flag, one, inside[0]) for one in several)
        return _of_kind(flag, value, inside[0])
    check: dict[Any, Callable[[str, Any], Any]] = {
        bool: checks.flag,
        int: functools.partial(checks.integer, low=-math.inf),
        float: checks.number,
        str: checked_text,
    }
    return check[kind](flag, value) if kind in check else value


def checked_text(flag: str, value: Any) -> str:
    """Check that a text can be written: to a table in UTF-8, and to the name of a file.

    In the locale C Python decodes only ASCII on the command line, and only ASCII can be in the name of a new
    file.

    Args:
        flag: for the message.
        value: the text.

    Raises:
        TypeError: another class.
        ValueError: a letter that cannot be written.
    """
    text = str(checks.instance(flag, value, str, "text"))
    try:
        text.encode()
        os.fsencode(text)
    except UnicodeEncodeError as error:
        allowed = "letters that this locale can read and write, in UTF-8"
        remedy = "set PYTHONUTF8=1; give files a name in UTF-8"
        raise checks.refuse_value(flag, text, allowed, remedy) from error
    return text


def _many(count: float) -> str:
    """Format a number, also one that is too large to read or for a float."""
    if not 1e15 <= count < math.inf:
        return f"{count:,.0f}"
    return f"about 10^{math.floor(math.log10(count))}"


def _several(at_once: int) -> str:
    return f", {at_once} times at once," if at_once > 1 else ""
