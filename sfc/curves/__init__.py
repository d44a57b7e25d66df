"""Curve families: a file for each, and one line here.

Each family is a function dim -> curve. A new one is a file and one line here, `register_family(name, build,
dims)`; `sfc.curve(name, dim)` then finds it, and so do all tests and experiments.
"""

from functools import partial

from sfc.any_curve import KEY_BITS
from sfc.curves import (
    ar2w2,
    betaomega,
    butz,
    compact,
    gray,
    harmonious,
    haverkort_a26,
    haverkort_f,
    hilbert,
    hindex,
    meander,
    moore,
    morton,
    peano,
    skilling,
)
from sfc.curves.grammars import HILBERT
from sfc.registry import register_family

register_family("ar2w2", ar2w2.ar2w2, (2,), axioms={2: ar2w2.STARTS})
register_family("betaomega", betaomega.betaomega, (2,))
register_family("butz", butz.butz, (3,))  # an alias of `hilbert` in all other dims
register_family("compact", compact.compact, (3,))
register_family("gray", gray.gray, range(1, KEY_BITS + 1))
register_family("harmonious", harmonious.harmonious, (3,))  # in 2D it is Hilbert's curve
register_family("haverkort_a26", haverkort_a26.haverkort_a26, (3,))
register_family("haverkort_f", haverkort_f.haverkort_f, (3,))
register_family("hilbert", hilbert.hilbert, (2, 3), axioms=HILBERT)
register_family("hilbert", partial(butz.butz, name="hilbert"), range(4, KEY_BITS + 1))
register_family("hindex", hindex.hindex, (2,))
register_family("meander", meander.meander, (2,))
register_family("moore", moore.moore, (2, 3))
register_family("morton", morton.morton, range(1, KEY_BITS + 1))
register_family("peano", peano.peano, (2, 3, 4))
register_family("skilling", skilling.skilling, range(3, KEY_BITS + 1))  # an alias of `hilbert` in 2D
