"""Users' code by the kind of use and of library: which arrays of a data set each takes.

A code takes a data set in some order and returns a result. That of a trace is for parts of the trace, and
does not depend on the order; all others are for each item, in that order.
"""

from collections.abc import Callable

import numpy as np

from experiments.advice.sets import compiled_code, numpy_code
from experiments.advice.sets.data import SetData

Code = Callable[[SetData], np.ndarray]
OF_TRACE = "trace"  # the use with a result that does not depend on the order


class NotCoveredError(ValueError):
    """A kind of use for which there is no code with this kind of library."""


def _taking(function: Callable, *names: str) -> Code:
    """Return the code that gives a function these fields of a data set.

    Raises:
        ValueError: (the code) the data does not have one of them.
    """

    def code(data: SetData) -> np.ndarray:
        return function(*(data.required(name, function.__name__) for name in names))

    return code


def _compiled_pairs(data: SetData) -> np.ndarray:
    points = data.required("points", "pair_energies")
    radii = np.empty(0) if data.radii is None else data.radii
    return compiled_code.pair_energies(points, radii, data.required("cutoff", "pair_energies"))


def _scipy_pairs(data: SetData) -> np.ndarray:
    points, cutoff = (data.required(name, "pair_energies") for name in ("points", "cutoff"))
    return numpy_code.pair_energies(points, data.radii, cutoff)


def _compiled_product(data: SetData) -> np.ndarray:
    matrix, values = (data.required(name, "matrix_product") for name in ("matrix", "values"))
    return compiled_code.matrix_product(matrix.data, matrix.indices, matrix.indptr, values)


MESH = ("points", "values", "cells")
# (use, library) -> code. `scipy` searches with a k-d tree or multiplies matrices, and adds with numpy.
CODES: dict[tuple[str, str], Code] = {
    ("cutoff", "compiled"): _compiled_pairs,
    ("cutoff", "scipy"): _scipy_pairs,
    ("neighbours", "scipy"): _taking(numpy_code.mean_distances, "points", "neighbours"),
    ("edges", "compiled"): _taking(compiled_code.edge_forces, *MESH),
    ("edges", "numpy"): _taking(numpy_code.edge_forces, *MESH),
    ("cells", "compiled"): _taking(compiled_code.cell_loads, *MESH),
    ("cells", "numpy"): _taking(numpy_code.cell_loads, *MESH),
    ("matrix", "compiled"): _compiled_product,
    ("matrix", "scipy"): _taking(numpy_code.matrix_product, "matrix", "values"),
    ("trace", "compiled"): _taking(compiled_code.trace_sums, "values", "trace"),
    ("trace", "numpy"): _taking(numpy_code.trace_sums, "values", "trace"),
}
USES = tuple(dict.fromkeys(use for use, _ in CODES))
LIBRARIES = tuple(dict.fromkeys(library for _, library in CODES))


def code_of(use: str, library: str) -> Code:
    """Return a user's code.

    Args:
        use: "cutoff", "neighbours", "edges", "cells", "matrix" or "trace".
        library: "compiled" (Numba), "numpy" or "scipy".

    Raises:
        NotCoveredError: no such code.
    """
    if (use, library) not in CODES:
        known = ", ".join(f"{one} with {other}" for one, other in CODES)
        raise NotCoveredError(f"use = {use!r} with library = {library!r}; allowed: {known}")
    return CODES[use, library]
