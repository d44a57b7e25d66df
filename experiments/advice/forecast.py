"""Times of a use in memory orders, foreseen for a machine that need not be there.

The model of memory (`sfc.cache`, `sfc.cache.core`) knows kernels that take elements by an index, on a GPU and
on a core of a CPU. They stand for the uses, with numbers of 8 bytes:

- neighbours: a gather of the points that are listed for each. A point is a row of its coordinates on a CPU,
  and of 16 bytes on a GPU, as four float32.
- cutoff: the same, with as many nearest points of each as there are within the cutoff on average, from 1 to
  `MOST_NEAR`: the model has no lists of different lengths, and no search.
- cells: a gather of the items of each cell, and then a scatter to all of them; their times are added.
- matrix: a product with a vector.
- trace: a gather of a row for each read; on a GPU by a thread each, in loads of 8 or 16 bytes.

The model of a CPU is that of numpy's gather and scipy's product, in which much time is not that of memory.
On an EPYC compiled loops gained 1.2 to 3.2 times as much as was foreseen (three data sets of 0.3 and 1
million items, one run, not kept), most where numbers of 8 MB nearly fill the last cache; numpy gained what
was foreseen.

Of an index with more entries than are followed in a short time the middle part is followed, of all items.
"""

from __future__ import annotations

import tomllib
from collections.abc import Iterator, Mapping
from pathlib import Path
from typing import Any, NamedTuple

import numpy as np
import scipy.sparse
from scipy.spatial import cKDTree

import sfc
from experiments.advice.candidates import GIVEN
from experiments.advice.uses import CELLS, CUTOFF, MATRIX, NEIGHBOURS, OWN, TRACE, Use, wrapped
from experiments.core.settings import UsageError
from experiments.forecasts.on_cpu import LOAD, SHARED
from experiments.forecasts.predicted import fitted_for
from experiments.loads.cores.index import gather_stream, scatter_stream, spmv_stream
from experiments.loads.index import gather_loads, scatter_loads, spmv_loads
from sfc import checks
from sfc.cache import Machine
from sfc.cache.core import Processor
from sfc.cache.core import foresee as foresee_on_core
from sfc.cache.core.processor import KNOWN as CPUS
from sfc.cache.forecast import foresee
from sfc.cache.machine import KNOWN as GPUS

GATHER, SCATTER, SPMV = "gather", "scatter", "spmv"
KERNELS = {CUTOFF: GATHER, NEIGHBOURS: GATHER, CELLS: f"{GATHER} and {SCATTER}", MATRIX: SPMV, TRACE: GATHER}
NUMBER = 8  # bytes
ROW_ON_GPU = 16  # bytes that a thread loads at once, at most
MOST_NEAR = 32  # points of a list that stands for those within a cutoff
COUNTED = 2**12  # points of which those within the cutoff are counted
MOST_ON_CORE = 2**21  # entries of an index that are followed, for each thread
MOST_ON_GPU = 2**24
# Errors of gains over shuffled memory. results/details/foreseen.md
OF_GPUS = {
    GATHER: "its gains were foreseen a third too large",
    KERNELS[CELLS]: "gains of gather were foreseen a third too large, of scatter up to a third",
    SPMV: "gains were wrong by 6 % in the median, by 55 % at worst",
}
OF_LOOPS = "those of compiled loops were up to 3 times as large"
OF_CPUS = {  # median and worst in %
    "epyc_genoa": (7, 58), "epyc_genoa_2": (8, 23), "xeon_emerald_rapids": (16, 68),
}  # fmt: skip


class _Index(NamedTuple):
    """Part of a kernel that takes elements by an index.

    Attributes:
        kernel: "gather", "scatter" or "spmv".
        found: its index, or its matrix.
        row: bytes of an element.
        held: bytes of all elements that the whole kernel takes from.
        share: entries of the whole over those of the part, 1 or more.
    """

    kernel: str
    found: Any
    row: int
    held: int
    share: float


def foreseen(
    use: Use, orders: Mapping[str, np.ndarray | None], machine: str, seed: int = 0
) -> dict[str, float]:
    """Foresee the time of a use in memory orders.

    Args:
        use: its points, cells, matrix or trace.
        orders: name -> (n,) permutation: item `order[i]` lies at place i; None for the order of the file.
        machine: name of a GPU or CPU, or a file that `experiments.machine` wrote.
        seed: of samples.

    Returns:
        Name of each order -> time in ms. Compare times of one call with each other.

    Raises:
        UsageError: a use that is not foreseen, or an unknown machine.
        ValueError: an order of another length, fewer than two items, or a matrix or an index that the model
            cannot follow.
    """
    if use.kind == OWN:
        raise UsageError(
            f"--machine {machine} beside a function of your own; allowed: one of them: what your function "
            "loads is not known; give points, cells, a matrix or a trace"
        )
    chip = machine_of(machine)
    checks.integer("items", use.items, 2)
    listed = _listed(use, seed)
    found = {}
    for name, order in orders.items():
        if order is not None and len(order) != use.items:
            raise ValueError(
                f"order {name!r} has {len(order):,} items; allowed: {use.items:,}, a permutation"
            )
        found[name] = sum(one.share * _time(one, chip, seed) for one in _indices(use, listed, order, chip))
    return found


def machine_of(name: str) -> Machine | Processor:
    """Return the GPU or CPU of a name or a file.

    Raises:
        UsageError: neither a known name nor a file of a machine.
    """
    try:
        table = "" if name in (*GPUS, *CPUS) else tomllib.loads(Path(name).read_text(encoding="utf-8"))
        return Processor.read(name) if name in CPUS or "processor" in table else Machine.read(name)
    except (OSError, ValueError, TypeError) as error:
        raise UsageError(
            f"--machine {name}: {error}; allowed: {', '.join((*GPUS, *CPUS))}, or a file that "
            "experiments.machine wrote"
        ) from error


def error_of(machine: str, kind: str) -> str:
    """Say by how much gains have been foreseen wrongly for a use on a machine, or on others.

    Args:
        machine: as for `foreseen`.
        kind: of the use.

    Raises:
        UsageError: an unknown machine.
    """
    kernel = KERNELS[checks.word("kind", kind, tuple(KERNELS))]
    if isinstance(machine_of(machine), Machine):
        where = "" if machine in GPUS else ", on other GPUs"
        return f"model: {kernel}; {OF_GPUS[kernel]}{where}"
    medians, worst = zip(*([OF_CPUS[machine]] if machine in OF_CPUS else OF_CPUS.values()), strict=True)
    median = " to ".join(map(str, dict.fromkeys([min(medians), max(medians)])))
    where = "" if machine in OF_CPUS else ", on other CPUs"
    return (
        f"model: {kernel}; gains were wrong by {median} % in the median, by {max(worst)} % at worst{where}; "
        f"{OF_LOOPS}"
    )


def in_words(use: Use, orders: Mapping[str, np.ndarray | None], machine: str, seed: int = 0) -> str:
    """Foresee a use in memory orders, and say the gains over the order of the file; "" for no machine.

    Args:
        use: its points, cells, matrix or trace.
        orders: name -> permutation; that of the file, `GIVEN`, is among them.
        machine: as for `foreseen`.
        seed: of samples.

    Raises:
        UsageError, ValueError: as `foreseen`.
    """
    if not machine:
        return ""
    times = foreseen(use, orders, machine, seed)
    return sentence(
        {name: times[GIVEN] / ms for name, ms in times.items()}, machine, error_of(machine, use.kind)
    )


def sentence(gains: Mapping[str, float], machine: str, measured: str) -> str:
    """Say the gains that are foreseen, the largest first.

    Args:
        gains: order -> gain over the order of the file, which may be among them.
        machine: for which they are foreseen.
        measured: error of the model (`error_of`).
    """
    ranked = sorted((name for name in gains if name != GIVEN), key=lambda name: -gains[name])
    return f"Foreseen on {machine}: {', '.join(f'{name} {gains[name]:.1f}' for name in ranked)} ({measured})."


def _listed(use: Use, seed: int) -> np.ndarray | None:
    """Return the (n, k) points that stand for those each point takes; None for another use."""
    if use.kind == NEIGHBOURS:
        return use.nearest
    if use.kind != CUTOFF:
        return None
    points, box = use.points, None
    if use.lengths is not None and any(use.periodic):
        box = np.where(use.periodic, use.lengths, 0.0)
        points = wrapped(points, use.lengths, use.periodic)
    tree = cKDTree(points, boxsize=box)
    counted = np.random.default_rng(seed).integers(0, len(points), min(COUNTED, len(points)))
    within = float(np.mean(tree.query_ball_point(points[counted], use.reach, return_length=True))) - 1
    near = min(max(round(within), 1), MOST_NEAR, len(points) - 1)
    order = sfc.argsort(points, "hilbert")  # a search in the order of a curve is several times as fast
    found = np.empty((len(points), near), np.int32)
    found[order] = np.asarray(tree.query(points[order], near + 1, workers=-1)[1])[:, 1:]
    return found


def _indices(
    use: Use, listed: np.ndarray | None, order: np.ndarray | None, chip: Machine | Processor
) -> Iterator[_Index]:
    """Make the kernels that stand for a use in an order, one after the other."""
    if use.kind == MATRIX:
        yield _product(use, order, _most(chip))
        return
    if use.kind == CELLS:
        yield from _corners(use, order, chip)
        return
    row, unit = _loads_of_row(NUMBER * (use.numbers if listed is None else use.points.shape[1]), chip)
    if listed is not None and isinstance(chip, Machine):
        row = unit = ROW_ON_GPU
    pieces = -(-row // unit)
    _check_index(use.items, row, unit)
    reads = use.trace[:, None] if listed is None else listed
    part, share = _middle(np.arange(len(reads) + 1) * reads.shape[1] * pieces, _most(chip))
    taken = reads[part] if listed is None or order is None else reads[order[part]]
    index = (_places(use, order)[taken][:, :, None] * pieces + np.arange(pieces)).reshape(len(taken), -1)
    yield _Index(GATHER, index.astype(np.int32), min(row, unit), row * use.items, share)


def _loads_of_row(row: int, chip: Machine | Processor) -> tuple[int, int]:
    """Return the bytes of a row of so many, and of each load of it."""
    if isinstance(chip, Processor):
        return row, chip.line
    return row, ROW_ON_GPU if row % ROW_ON_GPU == 0 else NUMBER


def _check_index(items: int, row: int, unit: int) -> None:
    """Check that an index of 32 bits names each load of rows.

    Raises:
        ValueError: more loads.
    """
    loads = items * -(-row // unit)
    if loads > 2**31:
        raise ValueError(
            f"{items:,} items of {row} bytes: {loads:,} loads of {unit}; allowed: up to "
            "2^31, which an index of 32 bits names; take fewer items, or a part"
        )


def _places(use: Use, order: np.ndarray | None) -> np.ndarray:
    """Return the place of each item in an order."""
    return np.arange(use.items) if order is None else np.argsort(order)


def _most(chip: Machine | Processor) -> int:
    """Return the entries of an index that are followed."""
    if isinstance(chip, Machine):
        return max(MOST_ON_GPU, chip.l2_bytes // 2)  # of 4 bytes each: more than the cache holds
    return chip.threads * MOST_ON_CORE


def _corners(use: Use, order: np.ndarray | None, chip: Machine | Processor) -> Iterator[_Index]:
    """Make the gather of the items of cells in an order, and the scatter of a number to each."""
    row, unit = _loads_of_row(NUMBER * use.numbers, chip)
    pieces = -(-row // unit)
    _check_index(use.items, row, unit)
    cells = _places(use, order)[use.cells]
    if order is not None:
        cells = cells[np.argsort(cells.min(axis=1), kind="stable")]
    part, share = _middle(np.arange(len(cells) + 1) * cells.shape[1] * pieces, _most(chip))
    corners = np.ascontiguousarray(cells[part].astype(np.int32))
    gathered = (corners[:, :, None] * pieces + np.arange(pieces, dtype=np.int32)).reshape(len(corners), -1)
    yield _Index(GATHER, gathered, min(row, unit), row * use.items, share)
    yield _Index(SCATTER, corners.ravel(), NUMBER, NUMBER * use.items, share)


def _product(use: Use, order: np.ndarray | None, most: int) -> _Index:
    """Make the product of a matrix in an order and a vector."""
    matrix = scipy.sparse.csr_array(use.matrix)
    matrix = scipy.sparse.csr_array((np.ones(len(matrix.data)), matrix.indices, matrix.indptr), matrix.shape)
    if order is not None:
        matrix = scipy.sparse.csr_array(matrix[order][:, order])
        matrix.sort_indices()
    part, share = _middle(matrix.indptr, most)
    return _Index(SPMV, scipy.sparse.csr_array(matrix[part]), NUMBER, NUMBER * use.items, share)


def _middle(begin: np.ndarray, most: int) -> tuple[slice, float]:
    """Return the rows in the middle that have so many entries, or all, and the entries of all over theirs.

    Args:
        begin: (rows + 1,) entries before each row.
        most: entries; one row may have more.
    """
    entries = int(begin[-1])
    if entries <= most:
        return slice(0, len(begin) - 1), 1.0
    first, last = np.searchsorted(begin, [(entries - most) // 2, (entries + most) // 2], side="right") - 1
    last = max(last, first + 1)
    return slice(int(first), int(last)), entries / int(begin[last] - begin[first])


def _time(one: _Index, chip: Machine | Processor, seed: int) -> float:
    """Foresee the time of a part of a kernel, in ms.

    On a core a part is followed once, not twice, if the last cache does not hold what the whole takes from:
    the part alone may fit, and a second pass would find it there. Its times differ from those of the whole by
    up to 9 %, where both were foreseen. On a GPU a part reads more than the cache holds.
    """
    if isinstance(chip, Machine):
        loads = (
            spmv_loads(one.found) if one.kernel == SPMV
            else (gather_loads if one.kernel == GATHER else scatter_loads)(one.found, one.row)
        )  # fmt: skip
        return 1e-3 * foresee(loads, chip, fitted_for(one.kernel), seed=seed).time
    stream = (
        spmv_stream(one.found) if one.kernel == SPMV
        else (gather_stream if one.kernel == GATHER else scatter_stream)(one.found, one.row)
    )  # fmt: skip
    fitted = SHARED._replace(load=LOAD[one.kernel])
    passes = 2 if one.share == 1 or one.held * chip.threads <= chip.l3_bytes else 1
    return 1e-6 * stream.items * foresee_on_core(stream, chip, fitted, passes).time
