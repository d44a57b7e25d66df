"""Class `BitwiseCurve`: a space-filling curve of base 2 that two kernels compute by operations on bits.

Tables of an automaton have a row of 2**dim entries for each state; in many dims there are too many. A kernel
here needs no table, and is compiled once for all dims.
"""

from collections.abc import Callable

import numpy as np

from sfc import checks
from sfc.any_curve import KEY_BITS, AnyCurve
from sfc.bitwise.bits import masks_of
from sfc.compile import first_in_parts

Kernel = Callable[[np.ndarray, int, np.ndarray, np.ndarray], int]


class BitwiseCurve(AnyCurve):
    """Space-filling curve of base 2 in `dim` dimensions, computed by two kernels.

    It has no tables: what needs them (encoding on a device, a tree's keys) takes a `sfc.Curve` only.

    Args:
        name: its name in tables and figures.
        dim: dimensions, 1 to 64.
        encode: (cells, order, masks, index) -> the first row outside the grid, or n. `cells` is (n, dim)
            uint64, `masks` are those of `masks_of(dim, order)`, and `index`, (n,) uint64, is filled.
        decode: (index, order, masks, cells) -> the first row past the end of the curve, or n. `index` is (n,)
            uint64, and `cells`, (n, dim) int64, is filled.
        is_continuous: whether every step, at every order, is one cell along one axis.
        is_closed: whether, at every order, the last cell is one step from the first.
        refines: whether each order refines the one before.

    Both kernels are functions of a module, so that the curve can be pickled. Threads call a kernel with parts
    of the points, several at once if there are many points. So a kernel has no parallel loops, counts rows
    from the start of its part, and computes each row without the others.

    Raises:
        TypeError: a name that is no str, a dim that is no integer, a kernel that is no function, or a flag of
            another class.
        ValueError: a dim out of range, or a kernel compiled with parallel loops.
    """

    is_continuous: bool = False  # attributes of each curve, in place of the properties of `AnyCurve`
    is_closed: bool = False

    def __init__(
        self,
        name: str,
        dim: int,
        encode: Kernel,
        decode: Kernel,
        *,
        is_continuous: bool = False,
        is_closed: bool = False,
        refines: bool = True,
    ):
        self.name = checks.text("name", name, "it is what tables and figures call the curve")
        self.dim, self.base = checks.integer("dim", dim, 1, KEY_BITS), 2
        self._encode = checks.function("encode", encode, "a function of (cells, order, masks, index)")
        self._decode = checks.function("decode", decode, "a function of (index, order, masks, cells)")
        for which, function in (("encode", encode), ("decode", decode)):
            if getattr(function, "targetoptions", {}).get("parallel"):  # of a dispatcher of Numba
                raise ValueError(
                    f"{which} = {function} of curve {name!r} has parallel loops; allowed: plain loops, since "
                    "threads call it with parts of the points; compile it without parallel=True"
                )
        self.is_continuous = checks.flag("is_continuous", is_continuous)
        self.is_closed = checks.flag("is_closed", is_closed)
        self.refines = checks.flag("refines", refines)

    def __repr__(self) -> str:
        return f"<BitwiseCurve {self.name} {self.dim}D>"

    def _encode_words(self, cells: np.ndarray, order: int, index: np.ndarray) -> int:
        masks = masks_of(self.dim, order)
        return first_in_parts(lambda part: self._encode(cells[part], order, masks, index[part]), len(cells))

    def _decode_words(self, index: np.ndarray, order: int, cells: np.ndarray) -> int:
        masks = masks_of(self.dim, order)
        return first_in_parts(lambda part: self._decode(index[part], order, masks, cells[part]), len(index))
