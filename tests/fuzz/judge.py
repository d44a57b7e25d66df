"""What becomes of one input: its call is made, and what it gives or raises is judged.

Verdicts. `accepted`: the call gave an answer, and it agrees with the reference. `refused`: a ValueError, a
TypeError, an OSError or an error that the project names, raised by the project itself, whose message says
what is allowed. `weak`: of such a class, but raised inside Python or a package, or without a word of what is
allowed. `obscure`: of any other class. `wrong`: another answer than the reference's, a value taken that has
to be refused, or one refused that has to be taken. The harness sees `crash` and `hang` from outside.
"""

from __future__ import annotations

import os
import re
import traceback
from collections.abc import Callable
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any, NamedTuple

import numpy as np

from tests.fuzz.drawing import Draw, changed, hostile
from tests.fuzz.kinds import Kind

ROOT = Path(__file__).parents[2]
OURS = tuple(f"{ROOT / package}{os.sep}" for package in ("sfc", "md", "experiments"))
NAMES = ("sfc", "md", "experiments")
# How messages of the project say what is allowed: by this word, by a list of what is known, or by a remedy.
SAYS = re.compile(
    r"\ballow(s|ed)\b|\bknown\b"
    r"|; (take|give|choose|lower|raise|enlarge|update|wait|start|put|move|delete|do|free|look|use)\b"
    r"|; (restore|load)\b"
)
SHOWN = 400


class WrongError(Exception):
    """An answer that is not the reference's."""


class RefusedError(Exception):
    """A command line that ended with a message.

    Args:
        message: what it said.
        clear: whether it told what is allowed, or what is wrong with the line itself.
    """

    def __init__(self, message: str, clear: bool):
        super().__init__(message)
        self.clear = clear


def require(holds: Any, what: str) -> None:
    """Raise `WrongError` where something does not hold."""
    if not holds:
        raise WrongError(what)


def same(found: Any, right: Any, what: str, tolerance: float = 0.0) -> None:
    """Require that two arrays have one shape and the same entries, NaN in the same places."""
    found, right = np.asarray(found), np.asarray(right)
    require(found.shape == right.shape, f"{what} of shape {found.shape}, and by the reference {right.shape}")
    if tolerance:
        good = np.allclose(found, right, rtol=tolerance, atol=tolerance, equal_nan=True)
    elif found.dtype.kind == right.dtype.kind == "f":
        good = np.array_equal(found, right, equal_nan=True)
    else:
        good = np.array_equal(found, right)
    require(good, f"{what} = {shown(found)}, and by the reference {shown(right)}")


@dataclass
class Case:
    """One input.

    Attributes:
        name: of what is called.
        call: takes the arguments by name.
        arguments: as they are given.
        kinds: of the arguments.
        check: looks at the answer and at what the arguments mean; raises `WrongError`.
        sure: whether arguments that are each to be taken have to be taken together: True, False, or a
            function of what they mean.
        documented: classes of errors, besides, that the call's docstring names.
        changed: names of arguments that were made hostile.
        says: what a message has to match.
    """

    name: str
    call: Callable[..., Any]
    arguments: dict[str, Any]
    kinds: dict[str, Kind]
    check: Callable[[Any, dict[str, Any]], None] | None = None
    sure: bool | Callable[[dict[str, Any]], bool] = False
    documented: tuple[type[BaseException], ...] = ()
    changed: list[str] = field(default_factory=list)
    says: re.Pattern = SAYS

    def told(self) -> str:
        """The call as one might write it."""
        given = ", ".join(
            f"{'*' if name in self.changed else ''}{name}={shown(value)}"
            for name, value in self.arguments.items()
        )
        return f"{self.name}({given})"


class Judged(NamedTuple):
    """What became of an input.

    Attributes:
        verdict: see the module.
        told: the call; empty where all is well.
        cause: by what inputs of one cause can be found together.
        more: the end of the traceback.
    """

    verdict: str
    told: str = ""
    cause: str = ""
    more: str = ""


def made_case(
    draw: Draw,
    name: str,
    call: Callable[..., Any],
    kinds: dict[str, Kind],
    *,
    optional: dict[str, Kind] | None = None,
    calm: float = 0.25,
    **rest: Any,
) -> Case:
    """A valid call, in which none, one or two arguments are made hostile.

    Args:
        draw: of the input.
        name: of what is called.
        call: takes the arguments by name.
        kinds: of arguments that are always given.
        optional: of those that may be left out.
        calm: share of the calls that stay valid.
        rest: of `Case`.
    """
    given = dict(kinds)
    for argument, kind in (optional or {}).items():
        if draw.chance(0.5):
            given[argument] = kind
    arguments = {argument: kind.valid(draw) for argument, kind in given.items()}
    hostiles: list[str] = []
    if given and not draw.chance(calm):
        hostiles = list(draw.some(list(given), 1 if draw.chance(0.75) else 2))
    for argument in hostiles:
        for _ in range(20):
            value = changed(draw, arguments[argument]) if draw.chance(0.55) else hostile(draw)
            if not given[argument].too_large(value):
                arguments[argument] = value
                break
    return Case(name, call, arguments, given, changed=hostiles, **rest)


def judged(case: Case) -> Judged:
    """Make the call of an input and judge what comes of it."""
    try:
        admitted = [case.kinds[name].admits(value) for name, value in case.arguments.items()]
        plain = None
        if False not in admitted:
            plain = {name: case.kinds[name].plain(value) for name, value in case.arguments.items()}
    except Exception as error:  # what the fuzz itself cannot judge is seen, too
        return Judged("wrong", case.told(), f"the fuzz: {error!r}"[:200], _end_of(error))
    try:
        answer = case.call(**case.arguments)
    except RefusedError as error:
        if error.clear:
            return Judged("refused")
        return Judged("weak", case.told(), f"{case.name}: {_pattern(error)}", str(error)[-600:])
    except MemoryError as error:
        return Judged("obscure", case.told(), f"MemoryError at {_place(error)}", _end_of(error))
    except Exception as error:
        return _judged_error(case, error, admitted, plain)
    if plain is None:
        bad = [n for n, good in zip(case.arguments, admitted, strict=True) if good is False]
        what = f"{re.sub('<.*>', '', case.name)} took what it must refuse for {', '.join(bad)}"
        return Judged("wrong", case.told(), what, f"gave {shown(answer)}")
    if case.check is not None:
        try:
            case.check(answer, plain)
        except WrongError as error:
            return Judged("wrong", case.told(), f"{case.name}: {_pattern(error)}", str(error)[:1000])
        except Exception as error:
            cause = f"{case.name}, checked: {type(error).__name__} at {_place(error)}"
            return Judged("wrong", case.told(), cause, _end_of(error))
    return Judged("accepted")


def _judged_error(case: Case, error: Exception, admitted: list, plain: dict | None) -> Judged:
    if isinstance(error, case.documented):
        return Judged("refused")
    last = _frames(error)[-1].filename
    named = type(error).__module__.split(".")[0] in NAMES
    where = f"{type(error).__name__} at {_place(error)}"
    if not (named or type(error) in (ValueError, TypeError) or isinstance(error, OSError)):
        return Judged("obscure", case.told(), where, _end_of(error))
    if isinstance(error, OSError) and not named:
        clear = error.filename is not None or bool(case.says.search(str(error)))
    else:
        clear = last.startswith(OURS) and bool(case.says.search(str(error)))
    if not clear:
        return Judged("weak", case.told(), where, _end_of(error))
    if plain is not None and None not in admitted:
        sure = case.sure(plain) if callable(case.sure) else case.sure
        if sure:
            return Judged("wrong", case.told(), f"{case.name} refused: {_pattern(error)}", _end_of(error))
    return Judged("refused")


def shown(value: Any) -> str:
    """A value in some letters; arrays by dtype, shape and entries."""
    try:
        if isinstance(value, np.ndarray):
            flags = "".join(
                letter
                for letter, has in (
                    ("m", isinstance(value, np.ma.MaskedArray)),
                    ("r", not value.flags.writeable),
                )
                if has
            )
            entries = repr(value.tolist())[:200] if value.size <= 40 else "..."
            return f"array<{value.dtype.str} {value.shape} {value.strides} {flags}>({entries})"
        return repr(value)[:SHOWN]
    except Exception:
        return f"<{type(value).__name__}>"


def _frames(error: BaseException) -> list[traceback.FrameSummary]:
    return traceback.extract_tb(error.__traceback__)


def _place(error: BaseException) -> str:
    """The last lines of the project that an error went through."""
    frames = [f for f in _frames(error) if f.filename.startswith(OURS)]
    if not frames:
        return "outside the project"
    return f"{Path(frames[-1].filename).relative_to(ROOT)}:{frames[-1].lineno}"


def _pattern(error: BaseException) -> str:
    """A message without its numbers."""
    return re.sub(r"[-+]?\d[\d.e+-]*", "#", str(error))[:120]


def _end_of(error: BaseException) -> str:
    lines = [
        f"  {Path(f.filename).name}:{f.lineno} {f.name}: {f.line}"
        for f in _frames(error)[-6:]
        if not f.filename.endswith("judge.py")
    ]
    return "\n".join([*lines, f"{type(error).__name__}: {str(error)[:300]}"])
