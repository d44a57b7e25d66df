"""What is fuzzed: families of inputs, each a strategy that draws one and a share of all inputs."""

from __future__ import annotations

import importlib
import pkgutil
from collections.abc import Callable
from dataclasses import dataclass

from hypothesis import strategies as st

from tests.fuzz.drawing import among
from tests.fuzz.judge import Cases

PLANTED = "planted"  # families that fail, for the tests of the harness


@dataclass(frozen=True)
class Family:
    """Inputs of one subject.

    Attributes:
        name: of it.
        parts: strategies of inputs, or functions that make one from what they draw; how often each is taken.
        share: of all inputs, over the sum of all shares.
        prepare: makes what all inputs share, and has kernels compiled; called once in each worker.
    """

    name: str
    parts: dict[Cases | Callable[[Callable], Cases], int]
    share: float = 1.0
    prepare: Callable[[], object] = lambda: None

    @property
    def cases(self) -> Cases:
        """Draws an input."""
        parts = {part: st.composite(lambda draw, part=part: draw(part(draw)))() if callable(part) else part
                 for part in self.parts}  # fmt: skip
        return among(*(parts[part] for part, weight in self.parts.items() for _ in range(weight)))


def families(planted: bool = False) -> dict[str, Family]:
    """All families by name, in alphabetical order; or those that fail."""
    modules = sorted(i.name for i in pkgutil.iter_modules(__path__) if (i.name == PLANTED) == planted)
    found = [f for name in modules for f in importlib.import_module(f"{__name__}.{name}").FAMILIES]
    return {family.name: family for family in sorted(found, key=lambda family: family.name)}
