"""What a peer is: another code that runs the same gas from the same start and tells how long it took.

Contract. A peer is made of a start, and used as a context manager: what it writes lies in a temporary
folder that is gone afterwards. Every run begins at the start, so runs can be asked for in any order, and
ours and theirs can take turns. Only its steps are timed, by the peer's own clock.
"""

from abc import ABC, abstractmethod
from dataclasses import dataclass
from pathlib import Path
from tempfile import TemporaryDirectory
from typing import ClassVar

import md
from sfc import checks


class PeerError(ValueError):
    """A peer could not be run, or does not compute what we compute; nothing of it is recorded."""


@dataclass(frozen=True)
class Sample:
    """Steps of a peer that were timed.

    Attributes:
        time_ms: of all of them.
        temperature_start, temperature_end: m <v^2> / dim in d^2 / time^2, before and after them.
        builds: how often the neighbour structure was made during them.
        partners_read: slots that the force kernel reads, a particle.
        version: what the peer calls itself.
    """

    time_ms: float
    temperature_start: float
    temperature_end: float
    builds: int
    partners_read: float
    version: str


class Peer(ABC):
    """A start that another code runs.

    Args:
        state: the start, in a box that is periodic along every axis.
        law: the pair law.
        dt: time step in time units.
        workers: cores to run on.

    Attributes:
        name: of the code and its method, as it stands in tables and figures.
        precision: of its positions and forces.

    Raises:
        TypeError: an argument of a wrong class.
        ValueError: a step that is not positive and finite, or no workers.
        UsageError: a code that is not installed here; with the remedy.
    """

    name: ClassVar[str]
    precision: ClassVar[str]

    def __init__(self, state: md.State, law: md.laws.SpringDashpot, dt: float, workers: int):
        self._state = checks.instance("state", state, md.State, "an md.State")
        self._law = checks.instance("law", law, md.laws.SpringDashpot, "an md.laws.SpringDashpot")
        self._dt = checks.number("dt", dt, above=0, unit="time units")
        self._workers = checks.integer("workers", workers, unit="cores")
        self.require()

    def __enter__(self):
        self._temporary = TemporaryDirectory(prefix="peer-")
        self._folder = Path(self._temporary.name)
        self._prepare()
        return self

    def __exit__(self, *_):
        self._temporary.cleanup()

    @classmethod
    @abstractmethod
    def require(cls) -> None:
        """Refuse a code that is not installed here.

        Raises:
            UsageError: with the remedy.
        """

    @abstractmethod
    def _prepare(self) -> None:
        """Write the start into `self._folder`."""

    @abstractmethod
    def after(self, steps: int) -> md.State:
        """The gas some steps, 1 or more, after the start, in its memory order and with its ids.

        Raises:
            PeerError: a run that failed.
        """

    @abstractmethod
    def sample(self, before: int, steps: int) -> Sample:
        """Time some steps, 1 or more, that follow `before` steps, 1 or more, from the start.

        Raises:
            PeerError: a run that failed.
        """
