"""What is fuzzed: families of inputs, each a function that draws one and a share of all inputs."""

from __future__ import annotations

import importlib
import pkgutil
from collections.abc import Callable
from dataclasses import dataclass

from tests.fuzz.drawing import Draw
from tests.fuzz.judge import Case

PLANTED = "planted"  # families that fail, for the tests of the harness


@dataclass(frozen=True)
class Family:
    """Inputs of one subject.

    Attributes:
        name: of it.
        draw: makes an input.
        share: of all inputs, over the sum of all shares.
        prepare: makes what all inputs share, and has kernels compiled; called once in each worker.
    """

    name: str
    draw: Callable[[Draw], Case]
    share: float = 1.0
    prepare: Callable[[], object] = lambda: None


def families(planted: bool = False) -> dict[str, Family]:
    """All families by name, in alphabetical order; or those that fail."""
    found: dict[str, Family] = {}
    for module in sorted(info.name for info in pkgutil.iter_modules(__path__)):
        if (module == PLANTED) == planted:
            for family in importlib.import_module(f"{__name__}.{module}").FAMILIES:
                found[family.name] = family
    return dict(sorted(found.items()))
