"""Families that fail, one input in some: what the harness must find."""

from __future__ import annotations

import math
import os
import signal
import time

from hypothesis.strategies import integers

from tests.fuzz.families import Family
from tests.fuzz.judge import Case, equal
from tests.fuzz.kinds import integer

LEAST = 90  # of 0 to 99: an input of such a number fails
FAULTS = {
    "crash": lambda: os.kill(os.getpid(), signal.SIGSEGV),
    "hang": lambda: time.sleep(3600),
    "obscure": lambda: {}["nothing"],
    "weak": lambda: math.sqrt(-1),
    "wrong": lambda: -1,
    "taken": lambda: 0,
}


def _family(name: str) -> Family:
    def case(drawn: int) -> Case:
        given = "many" if name == "taken" and drawn >= LEAST else drawn  # a value that has to be refused
        call = FAULTS[name] if drawn >= LEAST else lambda: drawn
        arguments, kinds = {"number": given}, {"number": integer(0)}
        return Case(name, lambda number: call(), arguments, kinds, check)

    def check(found, plain):
        equal(found, plain["number"], "it gave")

    return Family({integers(0, 99).map(case): 1})


FAMILIES = {name: _family(name) for name in FAULTS}
