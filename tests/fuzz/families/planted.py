"""Families that fail, one input in some: what the harness must find."""

from __future__ import annotations

import math
import os
import signal
import time

from tests.fuzz.drawing import Draw
from tests.fuzz.families import Family
from tests.fuzz.judge import Case, require
from tests.fuzz.kinds import Integer

AT = 7  # number of the input that fails


def _case(name: str, call, number: int, check=None) -> Case:
    return Case(
        name,
        lambda number: call() if number == AT else number,
        {"number": number},
        {"number": Integer(0)},
        check,
    )


def crash(draw: Draw) -> Case:
    """A segmentation fault."""
    return _case("crash", lambda: os.kill(os.getpid(), signal.SIGSEGV), draw.number)


def hang(draw: Draw) -> Case:
    """An input that does not end."""
    return _case("hang", lambda: time.sleep(3600), draw.number)


def obscure(draw: Draw) -> Case:
    """An error of a class that tells nothing."""
    return _case("obscure", lambda: {}["nothing"], draw.number)


def weak(draw: Draw) -> Case:
    """A ValueError of Python's own."""
    return _case("weak", lambda: math.sqrt(-1), draw.number)


def wrong(draw: Draw) -> Case:
    """Another answer than the reference's."""
    return _case(
        "wrong", lambda: -1, draw.number, lambda found, plain: require(found == plain["number"], "-1")
    )


def taken(draw: Draw) -> Case:
    """A value that has to be refused."""
    found = _case("taken", lambda: 0, draw.number)
    if draw.number == AT:
        found.arguments["number"] = "seven"
        found.call = lambda number: 7
    return found


FAMILIES = [Family(made.__name__, made) for made in (crash, hang, obscure, weak, wrong, taken)]
