"""Registries: the strategies of one kind by name, to which a user can add."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping
from typing import TypeVar

from md import checks

T = TypeVar("T")


class Registry(Mapping[str, type[T]]):
    """Classes by name; a read-only mapping with `register`.

    Args:
        kind: what the classes are, for messages: "search".
        base: class that each of them is derived from; None for any class.
        built_in: those that are there from the start.
        check: raises an error, given the kind, a name and a class, if the class cannot work under the name.
    """

    def __init__(
        self,
        kind: str,
        base: type[T] | None,
        built_in: Mapping[str, type[T]],
        check: Callable[[str, str, type], None] | None = None,
    ):
        self._kind, self._base, self._classes, self._check = kind, base, dict(built_in), check

    def register(self, name: str, cls: type[T]) -> None:
        """Add a class under a name, in this process.

        From then on the name can be given wherever one of the registry can (of laws, triggers and boundaries
        objects are given, never names), and checkpoints hold objects of the class. A process that loads such
        a checkpoint has to register the class too. The class takes its parameters by keyword and keeps them
        as attributes of the same names.

        Args:
            name: not in the registry yet; the same class under its name again changes nothing.
            cls: the class.

        Raises:
            TypeError: a name that is no str, no class, one of another base, or one that lacks what the kind
                needs: a search and an integrator a `name`, a law a pair function, a trigger `build` or
                `__call__`.
            ValueError: a name that is taken, is no identifier, or is not the `name` of the class.
        """
        name = checks.text("name", name)
        if not isinstance(cls, type) or (self._base is not None and not issubclass(cls, self._base)):
            allowed = "a class" if self._base is None else f"a subclass of {self._base.__qualname__}"
            raise checks.refuse_class(f"{self._kind} {name!r}", cls, allowed)
        if self._classes.get(name) is cls:
            return
        if name in self._classes:
            raise ValueError(f"{self._kind} {name!r} is taken; allowed: a name other than {', '.join(self)}")
        if not name.isidentifier():
            raise checks.refuse_value(f"name of a {self._kind}", name, "a Python identifier")
        if self._check is not None:
            self._check(self._kind, name, cls)
        self._classes[name] = cls

    def __getitem__(self, name: str) -> type[T]:
        return self._classes[name]

    def __iter__(self) -> Iterator[str]:
        return iter(self._classes)

    def __len__(self) -> int:
        return len(self._classes)

    def __repr__(self) -> str:
        return f"<Registry of {len(self)}: {', '.join(self)}>"


def require_name(kind: str, name: str, cls: type) -> None:
    """Check that a class has the name under which it is registered.

    Raises:
        TypeError: the class has no attribute `name`.
        ValueError: its `name` is another.
    """
    own = getattr(cls, "name", None)
    if not isinstance(own, str):
        raise TypeError(
            f"{kind} {name!r}: class {cls.__qualname__} has no name; allowed: a class with a str `name`; "
            f"add name = {name!r} to it"
        )
    if own != name:
        raise ValueError(f"{kind} {name!r}: class {cls.__qualname__} has name = {own!r}; allowed: {name!r}")
