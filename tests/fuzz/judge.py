"""What becomes of one input: its call is made, and what it gives or raises is judged.

Verdicts. `accepted`: the call gave an answer, and it agrees with the reference. `refused`: a ValueError, a
TypeError, an OSError or an error that the project names, raised by the project itself, whose message says
what is allowed. `weak`: of such a class, but raised inside Python or a package, or without a word of what is
allowed. `obscure`: of any other class. `wrong`: another answer than the reference's, a value taken that has
to be refused, or one refused that has to be taken. The harness sees `crash` and `hang` from outside.

References. What valid arguments of usual classes give is a matter of the tests of each room. Here it is
required that arguments of any class, width and layout give what their plain values give (`again`), and more
where no other test draws what is drawn here.
"""

from __future__ import annotations

import contextlib
import inspect
import os
import re
import traceback
from collections.abc import Callable, Collection, Iterator, Mapping
from dataclasses import dataclass
from pathlib import Path
from types import FunctionType
from typing import Any, NamedTuple

import numpy as np
from hypothesis import strategies as st
from hypothesis.strategies import SearchStrategy, booleans

from tests.fuzz.drawing import HOSTILE, among, chance, changed, some
from tests.fuzz.kinds import Kind

ROOT = Path(__file__).parents[2]
NAMES = ("sfc", "md", "experiments")
OURS = tuple(f"{ROOT / package}{os.sep}" for package in NAMES)
# How messages of the project say what is allowed: by this word, by a list of what is known, or by a remedy.
SAYS = re.compile(
    r"\ballow(s|ed)\b|\bknown\b"
    r"|; (take|give|choose|lower|raise|enlarge|update|wait|start|put|move|delete|do|free|look|use)\b"
    r"|; (restore|load)\b"
)


class WrongError(Exception):
    """An answer that is not the reference's."""


class RefusedError(Exception):
    """A command line that ended with a message that says what is allowed, or what is wrong with the line."""


class UnclearError(RefusedError):
    """A command line that ended with another message."""


def require(holds: Any, what: str) -> None:
    """Raise `WrongError` where something does not hold."""
    if not holds:
        raise WrongError(what)


def equal(found: Any, right: Any, what: str) -> None:
    """Require that two values are equal."""
    if found != right:
        raise WrongError(f"{what} {shown(found)}, and by the reference {shown(right)}")


def contents(value: Any) -> Any:
    """What two answers are compared by: arrays by dtype and entries, objects by class and attributes."""
    if isinstance(value, np.ndarray):
        return value.dtype, value.shape, value.tobytes()
    if isinstance(value, (list, tuple, Iterator)):
        return [contents(entry) for entry in value]
    if isinstance(value, (type, FunctionType)):
        return value
    inner = value if isinstance(value, Mapping) else getattr(value, "__dict__", None)
    if inner is None:
        return type(value), repr(value)
    return type(value), {name: contents(entry) for name, entry in inner.items()}


def again(call: Callable[..., Any]) -> Callable[[Any, dict], None]:
    """Require the answer that a call gives to what its arguments mean, plain values of Python and numpy."""
    return lambda found, plain: equal(contents(found), contents(call(**plain)), "answer")


def done(found: Any, plain: dict) -> None:
    """Require no more than that a call is made."""


def same(found: Any, right: Any, what: str, tolerance: float = 0.0) -> None:
    """Require that two arrays have one shape and the same entries, NaN in the same places."""
    found, right = np.asarray(found), np.asarray(right)
    require(found.shape == right.shape, f"{what} of shape {found.shape}, and by the reference {right.shape}")
    if tolerance:
        good = np.allclose(found, right, rtol=tolerance, atol=tolerance, equal_nan=True)
    else:
        good = np.array_equal(found, right, equal_nan=found.dtype.kind == right.dtype.kind == "f")
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
    changed: tuple[str, ...] = ()
    says: re.Pattern = SAYS

    def written(self) -> str:
        """The call as one might write it."""
        given = (f"{'*' * (n in self.changed)}{n}={shown(value)}" for n, value in self.arguments.items())
        return f"{self.name}({', '.join(given)})"


class Judged(NamedTuple):
    """What became of an input.

    Attributes:
        verdict: see the module.
        call: as one might write it; empty where all is well.
        cause: by what inputs of one cause can be found together.
        more: the end of the traceback.
    """

    verdict: str
    call: str = ""
    cause: str = ""
    more: str = ""


Cases = SearchStrategy[Case]


@st.composite
def cases(
    draw: Callable,
    call: Callable[..., Any],
    kinds: Mapping[str, Kind],
    *,
    name: str = "",
    calm: float = 0.25,
    always: Collection[str] = (),
    check: Callable[[Any, dict], None] | None = None,
    **rest: Any,
) -> Case:
    """A valid call, in which none, one or two arguments are made hostile.

    Args:
        draw: of Hypothesis.
        call: takes the arguments by name.
        kinds: of the arguments; those that have a default are left out of every other call.
        name: of what is called, if not the function's.
        calm: share of the calls that stay valid.
        always: names of arguments that are given though they have a default.
        check: of `Case`; `again` where none is given.
        rest: of `Case`.
    """
    parameters = inspect.signature(call).parameters.values()
    spare = {p.name for p in parameters if p.default is not p.empty}.difference(always)
    given = {name: kind for name, kind in kinds.items() if name not in spare or draw(booleans())}
    arguments = {name: draw(kind.strategy) for name, kind in given.items()}
    hostile: tuple[str, ...] = ()
    if given and not draw(chance(calm)):
        hostile = draw(some(list(given), 2 if draw(chance(0.25)) else 1))
    for argument in hostile:
        value = draw(among(*[changed(arguments[argument])] * 11, *[HOSTILE] * 9))
        if not given[argument].too_large(value):
            arguments[argument] = value
    return Case(name or call.__name__, call, arguments, given, check or again(call), changed=hostile, **rest)


def judged(case: Case) -> Judged:
    """Make the call of an input and judge what comes of it."""
    try:
        admitted = {name: case.kinds[name].admits(value) for name, value in case.arguments.items()}
        plain = None
        if False not in admitted.values():
            plain = {name: case.kinds[name].plain(value) for name, value in case.arguments.items()}
    except Exception as error:  # what the fuzz itself cannot judge is seen, too
        return Judged("wrong", case.written(), f"the fuzz: {error!r}"[:200], _end_of(error))
    try:
        answer = case.call(**case.arguments)
    except UnclearError as error:
        return Judged("weak", case.written(), f"{case.name}: {_pattern(error)}", str(error)[-600:])
    except RefusedError:
        return Judged("refused")
    except Exception as error:
        return _judged_error(case, error, list(admitted.values()), plain)
    if plain is None:
        bad = ", ".join(name for name, good in admitted.items() if good is False)
        cause = f"{re.sub('<.*>', '', case.name)} took what it must refuse for {bad}"
        return Judged("wrong", case.written(), cause, f"gave {shown(answer)}")
    try:
        if case.check is not None:
            case.check(answer, plain)
    except WrongError as error:
        return Judged("wrong", case.written(), f"{case.name}: {_pattern(error)}", str(error)[:1000])
    except Exception as error:
        cause = f"{case.name}, checked: {type(error).__name__} at {_place(error)}"
        return Judged("wrong", case.written(), cause, _end_of(error))
    return Judged("accepted")


def _judged_error(case: Case, error: Exception, admitted: list, plain: dict | None) -> Judged:
    if isinstance(error, case.documented):
        return Judged("refused")
    named = type(error).__module__.split(".")[0] in NAMES
    failed = case.written(), f"{type(error).__name__} at {_place(error)}", _end_of(error)
    if not (named or type(error) in (ValueError, TypeError) or isinstance(error, OSError)):
        return Judged("obscure", *failed)
    says, of_file = bool(case.says.search(str(error))), isinstance(error, OSError) and not named
    ours = _frames(error)[-1].filename.startswith(OURS)
    if not (says or error.filename is not None if of_file else says and ours):
        return Judged("weak", *failed)
    known = False not in admitted and None not in admitted
    if known and (case.sure if isinstance(case.sure, bool) else case.sure(plain)):
        return Judged("wrong", case.written(), f"{case.name} refused: {_pattern(error)}", _end_of(error))
    return Judged("refused")


def shown(value: Any) -> str:
    """A value in some letters; arrays by dtype, shape and entries."""
    with contextlib.suppress(Exception):
        if not isinstance(value, np.ndarray):
            return repr(value)[:400]
        flags = "m" * isinstance(value, np.ma.MaskedArray) + "r" * (not value.flags.writeable)
        entries = repr(value.tolist())[:200] if value.size <= 40 else "..."
        return f"array<{value.dtype.str} {value.shape} {value.strides} {flags}>({entries})"
    return f"<{type(value).__name__}>"


def _frames(error: BaseException) -> list[traceback.FrameSummary]:
    return traceback.extract_tb(error.__traceback__)


def _place(error: BaseException) -> str:
    """The last line of the project that an error went through."""
    frames = [f for f in _frames(error) if f.filename.startswith(OURS)]
    if not frames:
        return "outside the project"
    return f"{Path(frames[-1].filename).relative_to(ROOT)}:{frames[-1].lineno}"


def _pattern(error: BaseException) -> str:
    """A message without its numbers."""
    return re.sub(r"[-+]?\d[\d.e+-]*", "#", str(error))[:120]


def _end_of(error: BaseException) -> str:
    frames = [f for f in _frames(error)[-6:] if not f.filename.endswith("judge.py")]
    lines = [f"  {Path(f.filename).name}:{f.lineno} {f.name}: {f.line}" for f in frames]
    return "\n".join([*lines, f"{type(error).__name__}: {str(error)[:300]}"])
