"""Interface of a peer: another code that runs the same gas from the same start and reports its time.

Contract. A peer is created with a start, and with a folder for its files. Every run starts at the start, so
that runs can be made in any order, in the same rounds as ours. Only the steps are timed, by the peer's own
clock.
"""

from abc import ABC, abstractmethod
from dataclasses import dataclass
from pathlib import Path
from typing import ClassVar

import md
from sfc import checks


class PeerError(ValueError):
    """Raised if a peer cannot be run; no time of it is recorded."""


@dataclass(frozen=True)
class Sample:
    """Timed steps of a peer.

    Attributes:
        steps: their number.
        time_ms: of all of them.
        temperature_start, temperature_end: m <v^2> / dim in d^2 / time^2, before and after them.
        builds: number of builds of the neighbour structure during them.
        partners_read: slots that the force kernel reads per particle.
        version: name and version that the peer prints.
    """

    steps: int
    time_ms: float
    temperature_start: float
    temperature_end: float
    builds: int
    partners_read: float
    version: str


class Peer(ABC):
    """Another code that runs a start.

    Args:
        state: the start, in a box that is periodic along every axis.
        law: the pair law.
        dt: time step in time units.
        workers: number of cores.
        folder: an empty one.

    Attributes:
        name: of the code and its method, in tables and figures.
        precision: of its positions and forces.

    Raises:
        TypeError: an argument of a wrong class.
        ValueError: a step that is not positive and finite, or no workers.
        UsageError: the code is not installed; the message has the remedy.
    """

    name: ClassVar[str]
    precision: ClassVar[str]

    def __init__(self, state: md.State, law: md.laws.SpringDashpot, dt: float, workers: int, folder: Path):
        self._state = checks.instance("state", state, md.State, "an md.State")
        self._law = checks.instance("law", law, md.laws.SpringDashpot, "an md.laws.SpringDashpot")
        self._dt = checks.number("dt", dt, above=0, unit="time units")
        self._workers = checks.integer("workers", workers, unit="cores")
        self._folder = checks.path("folder", folder)
        self.require()

    @classmethod
    @abstractmethod
    def require(cls) -> None:
        """Raise if the code is not installed.

        Raises:
            UsageError: it is not; the message has the remedy.
        """

    @abstractmethod
    def after(self, steps: int) -> md.State:
        """Return the gas 1 or more steps after the start, in the memory order and with the ids of the start.

        Raises:
            PeerError: a run that failed.
        """

    @abstractmethod
    def sample(self, before: int, steps: int) -> Sample:
        """Time some steps, 1 or more, after `before` steps, 1 or more, from the start.

        Raises:
            PeerError: a run that failed.
        """
