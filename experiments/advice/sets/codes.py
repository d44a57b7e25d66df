"""Users' code by the kind of use and of library: which arrays of a data set each takes.

A code takes a data set in some order and returns a result. That of a trace is for parts of the trace, and
does not depend on the order; all others are for each item, in that order. Code on a GPU takes a data set of
`on_gpu`.
"""

from collections.abc import Callable
from dataclasses import replace
from functools import cache
from typing import Any

import numpy as np
from scipy.spatial import cKDTree

import md
from experiments.advice.sets import compiled_code, numpy_code
from experiments.advice.sets.data import ARRAYS, SetData

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


@cache
def _gpu() -> compiled_code.OnGpu:
    return compiled_code.OnGpu()


def _cuda(name: str, *names: str) -> Code:
    """Return the code that gives a function of CUDA these fields of a data set."""

    def code(data: SetData) -> Any:
        return getattr(_gpu(), name)(*(data.required(field, name) for field in names))

    return code


def _cuda_pairs(data: SetData) -> Any:
    points, cutoff = (data.required(name, "pair_energies") for name in ("points", "cutoff"))
    return _gpu().pair_energies(points, points.ravel()[:0] if data.radii is None else data.radii, cutoff)


def _cuda_product(data: SetData) -> Any:
    matrix, values = (data.required(name, "matrix_product") for name in ("matrix", "values"))
    return _gpu().matrix_product(matrix.data, matrix.indices, matrix.indptr, values)


MESH = ("points", "values", "cells")
CUDA, CUPY = "cuda", "cupy"
ON_GPU = {"compiled": CUDA, "numpy": CUPY, "scipy": CUPY}  # library of the host -> that of a user with a GPU
# (use, library) -> code. `scipy` searches with a k-d tree or multiplies matrices, and adds with numpy. `cupy`
# multiplies matrices by cuSPARSE.
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
    ("cutoff", CUDA): _cuda_pairs,
    ("neighbours", CUPY): _taking(numpy_code.listed_distances, "points", "lists"),
    ("edges", CUDA): _cuda("edge_forces", *MESH),
    ("edges", CUPY): _taking(numpy_code.edge_forces_of_cupy, *MESH),
    ("cells", CUDA): _cuda("cell_loads", *MESH),
    ("cells", CUPY): _taking(numpy_code.cell_loads, *MESH),
    ("matrix", CUDA): _cuda_product,
    ("matrix", CUPY): _taking(numpy_code.matrix_product, "matrix", "values"),
    ("trace", CUDA): _cuda("trace_sums", "values", "trace"),
    ("trace", CUPY): _taking(numpy_code.trace_sums_in_rows, "values", "trace"),
}
USES = tuple(dict.fromkeys(use for use, _ in CODES))
LIBRARIES = tuple(dict.fromkeys(library for _, library in CODES))


def code_of(use: str, library: str) -> Code:
    """Return a user's code.

    Args:
        use: "cutoff", "neighbours", "edges", "cells", "matrix" or "trace".
        library: "compiled" (Numba), "numpy" or "scipy"; on a GPU "cuda" or "cupy".

    Raises:
        NotCoveredError: no such code.
    """
    if (use, library) not in CODES:
        known = ", ".join(f"{one} with {other}" for one, other in CODES)
        raise NotCoveredError(f"use = {use!r} with library = {library!r}; allowed: {known}")
    return CODES[use, library]


def library_on_gpu(use: str, library: str) -> str:
    """Return the library on a GPU that stands for one of the host.

    Args:
        use: of the code.
        library: on the host.
    """
    found = ON_GPU[library]
    return found if (use, found) in CODES else CUDA


def on_gpu(data: SetData) -> SetData:
    """Copy a data set to the GPU; the lists of nearest items, which cupy does not search, are found before.

    Args:
        data: in the order in which it is used.

    Raises:
        BackendUnavailableError: no GPU.
    """
    backend = md.backend.get("cuda")
    if data.neighbours:
        points: Any = data.points
        found: Any = cKDTree(points).query(points, data.neighbours + 1, workers=-1)[1]
        data = replace(data, lists=found[:, 1:].astype(np.int32))
    arrays: dict[str, Any] = {
        name: backend.upload(getattr(data, name)) for name in ARRAYS if getattr(data, name) is not None
    }
    if data.matrix is not None:
        from cupyx.scipy.sparse import csr_matrix

        arrays["matrix"] = csr_matrix(data.matrix)
    return replace(data, **arrays)
