"""Strategies of the cavity. A new one is its own file (pair) and one line here, or is added by `register`."""

from md.cavity.base import Strategy
from md.cavity.strategies.blocked import Blocked
from md.cavity.strategies.cuda import Cuda
from md.cavity.strategies.persistent import Persistent
from md.cavity.strategies.reference import Numpy
from md.cavity.strategies.serial import Serial
from md.cavity.strategies.spectral import Spectral
from md.cavity.strategies.staggered import Staggered
from md.cavity.strategies.threads import Threads
from md.cavity.strategies.tiled import Tiled
from md.registry import Registry, require_name

__all__ = [
    "STRATEGIES",
    "Blocked",
    "Cuda",
    "Numpy",
    "Persistent",
    "Serial",
    "Spectral",
    "Staggered",
    "Threads",
    "Tiled",
    "register",
]

STRATEGIES: Registry[Strategy] = Registry(
    "strategy",
    Strategy,
    check=require_name,
    built_in={
        one.name: one
        for one in (Numpy, Serial, Threads, Blocked, Cuda, Tiled, Persistent, Spectral, Staggered)
    },
)
register = STRATEGIES.register
