"""Curve families: a file for each, and one line here.

Each family is a function dim -> `Curve`. A new one is `register_family(name, build, dims)`; `sfc.curve(name,
dim)` then finds it, and so do all tests and experiments.
"""

from functools import partial

from sfc.curves.butz import butz
from sfc.curves.compact import compact
from sfc.curves.grammars import HILBERT
from sfc.curves.gray import gray
from sfc.curves.hilbert import hilbert
from sfc.curves.moore import moore
from sfc.curves.morton import morton
from sfc.curves.peano import peano
from sfc.registry import register_family

__all__ = ["butz", "compact", "gray", "hilbert", "moore", "morton", "peano"]

register_family("butz", butz, (3,))  # in 2D it is Hilbert's curve; in 4D its name is `hilbert`
register_family("compact", compact, (3,))
register_family("gray", gray, (2, 3, 4))
register_family("hilbert", hilbert, (2, 3), axioms=HILBERT)
register_family("hilbert", partial(butz, name="hilbert"), (4,))
register_family("moore", moore, (2, 3))
register_family("morton", morton, (2, 3, 4))
register_family("peano", peano, (2, 3))
