"""What is fuzzed: families of inputs, each with a share of all inputs, in a module of its name.

Those of `sfc` are in a folder of their own.
"""

from __future__ import annotations

import importlib
from collections.abc import Callable
from dataclasses import dataclass

from hypothesis import strategies as st

from tests.fuzz.drawing import among
from tests.fuzz.judge import Cases

SHARES = {
    "boxes": 10, "caches": 10, "choices": 10, "commands": 3, "curves": 12, "files": 9, "flocks": 6,
    "grammars": 6, "locality": 5, "looks": 4, "runs": 2.5, "scenes": 4, "simulations": 16, "states": 14,
    "wings": 8,
}  # fmt: skip


@dataclass(frozen=True)
class Family:
    """Inputs of one subject.

    Attributes:
        parts: strategies of inputs, or functions that make one from what they draw; how often each is taken.
        prepare: makes what all inputs share, and has kernels compiled; called once in each worker.
    """

    parts: dict[Cases | Callable[[Callable], Cases], int]
    prepare: Callable[[], object] = lambda: None

    @property
    def cases(self) -> Cases:
        """Draws an input."""

        def strategy(part: Cases | Callable[[Callable], Cases]) -> Cases:
            return st.composite(lambda draw: draw(part(draw)))() if callable(part) else part

        return among(*(drawn for part, n in self.parts.items() for drawn in [strategy(part)] * n))


def family(name: str, planted: bool = False) -> Family:
    """A family by its name; or one of those that fail, for the tests of the harness."""
    room = "sfc." if name in ("boxes", "caches", "curves", "grammars", "locality") else ""
    module = importlib.import_module(f"{__name__}.{'planted' if planted else room + name}")
    return module.FAMILIES[name] if planted else module.FAMILY
