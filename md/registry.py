"""Registries: the strategies of one kind by name, to which a user can add."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from typing import TypeVar

from md import checks

T = TypeVar("T")


class Registry(Mapping[str, type[T]]):
    """Classes by name; a read-only mapping with `register`.

    Args:
        kind: what the classes are, for messages: "search".
        base: class that each of them is derived from; None for any class.
        built_in: those that are there from the start.
    """

    def __init__(self, kind: str, base: type[T] | None, built_in: Mapping[str, type[T]]):
        self._kind, self._base, self._classes = kind, base, dict(built_in)

    def register(self, name: str, cls: type[T]) -> None:
        """Add a class under a name, in this process.

        From then on the name can be given wherever one of the registry can, and checkpoints hold objects of
        the class. A process that loads such a checkpoint has to register it too. The class takes its
        parameters by keyword and keeps them as attributes of the same names.

        Args:
            name: not in the registry yet; the same class under its name again changes nothing.
            cls: the class.

        Raises:
            TypeError: a name that is no str, no class, or one of another base.
            ValueError: a name that is taken or is no identifier.
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
        self._classes[name] = cls

    def __getitem__(self, name: str) -> type[T]:
        return self._classes[name]

    def __iter__(self) -> Iterator[str]:
        return iter(self._classes)

    def __len__(self) -> int:
        return len(self._classes)

    def __repr__(self) -> str:
        return f"<Registry of {len(self)}: {', '.join(self)}>"
