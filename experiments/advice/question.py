"""What is asked about a user's data: which items, what a program does with them, and how they move.

What the settings leave open follows from what the file holds, and is said: particles with a diameter have
it as cutoff, points eight neighbours, meshes their cells, matrices a product, integers a trace.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Any, NamedTuple

import numpy as np
import psutil
import scipy.sparse
from scipy.sparse.csgraph import breadth_first_order

from experiments.advice.candidates import graph_of
from experiments.advice.uses import CELLS, CUTOFF, ITEM_BYTES, MATRIX, NEIGHBOURS, TRACE, Use
from experiments.core.settings import UsageError

if TYPE_CHECKING:
    from experiments.files import Data

NEAREST = 8  # neighbours of points without a diameter
LEAST_ITEMS = 1000
TABLES = 6  # of the items of a trace: of four orders, and two rounds
ORDERS = 7  # of a mesh
EDGES = {  # cell -> pairs of its corners; all pairs of those that are not here, such as a triangle's
    "quad": [(0, 1), (1, 2), (2, 3), (3, 0)],
    "pyramid": [(0, 1), (1, 2), (2, 3), (3, 0), (0, 4), (1, 4), (2, 4), (3, 4)],
    "wedge": [(0, 1), (1, 2), (2, 0), (3, 4), (4, 5), (5, 3), (0, 3), (1, 4), (2, 5)],
    "hexahedron": [(0, 1), (1, 2), (2, 3), (3, 0), (4, 5), (5, 6), (6, 7), (7, 4),
                   (0, 4), (1, 5), (2, 6), (3, 7)],
}  # fmt: skip


class Question(NamedTuple):
    """What is asked about data.

    Attributes:
        data: of the file.
        use: what is timed.
        whole: (items,) their numbers in the file: all, or those of a sample.
        learnt: part of a trace from which orders are learnt; None for other data.
        moves_by: (items, dim) displacements of a step, or None.
        said: sentences on what was assumed.
    """

    data: Data
    use: Use
    whole: np.ndarray
    learnt: np.ndarray | None
    moves_by: np.ndarray | None
    said: tuple[str, ...]


def question_of(
    data: Data, *, cutoff: float = 0, neighbours: int = 0, walk: str = "auto", code: str = "compiled",
    diameter: float = 0, box: np.ndarray | None = None, sample: int = 0, item_bytes: int = 0,
    displacement: float = 0, seed: int = 0,
) -> Question:  # fmt: skip
    """Ask what settings and data say.

    Args:
        data: of a file (`experiments.files.read`).
        cutoff: within which points are neighbours; 0 for what the data says.
        neighbours: nearest ones of each point; 0 for what the data says.
        walk: "auto", "cells", "edges" or "matrix".
        code: "compiled", "numpy" or "scipy"; on a GPU "cuda" or "cupy".
        diameter: of particles, in the unit of the data; 0 for its own.
        box: (dim,) sides of a periodic box; None for that of the data.
        sample: items or reads that are taken; 0 for all.
        item_bytes: of an item that a trace or a cell reads; 0 for that of `Use`.
        displacement: mean path of an item in a step; 0 for what the data says.
        seed: of directions.

    Raises:
        UsageError: a use for which the data has no items, or too few items.
        BackendUnavailableError: code on a GPU, and none is here.
    """
    said = [f"{one[:1].upper()}{one[1:].rstrip('.')}." for one in data.said]
    if data.n < LEAST_ITEMS:
        raise UsageError(
            f"{data.path}: {data.n:,} items; allowed: {LEAST_ITEMS:,} or more: fewer fit a first cache"
        )
    if data.trace is not None and not (cutoff or neighbours):
        _refuse(
            "a trace",
            data,
            walk=walk != "auto",
            displacement=displacement,
            box=box is not None,
            diameter=diameter,
        )
        return _of_trace(data, code, sample, item_bytes, said)
    everything = np.arange(data.n)
    if data.matrix is not None:
        _refuse("a matrix", data, displacement=displacement, box=box is not None,
                diameter=diameter, cutoff=cutoff, neighbours=neighbours,
                walk=walk not in ("auto", MATRIX), item_bytes=item_bytes)  # fmt: skip
        if data.matrix.shape[0] != data.matrix.shape[1]:
            rows, across = data.matrix.shape
            raise UsageError(
                f"{data.path}: a matrix of {rows:,} rows and {across:,} columns; allowed: as many rows as "
                "columns, which one order sorts"
            )
        if np.iscomplexobj(data.matrix.data):
            raise UsageError(f"{data.path}: complex numbers; allowed: real ones; take the real part")
        return _part_of(
            Question(
                data, Use(MATRIX, code, data.n, matrix=data.matrix), everything, None, None, tuple(said)
            ),
            sample,
        )
    if data.kind == "mesh" and not (cutoff or neighbours):
        _refuse("a mesh", data, displacement=displacement, box=box is not None,
                diameter=diameter, walk=walk == MATRIX)  # fmt: skip
        cells = _cells(data, walk, said)
        _check_tables(data.n, item_bytes, ORDERS + 2)
        use = Use(CELLS, code, data.n, points=data.points, cells=cells, item_bytes=item_bytes)
        return _part_of(Question(data, use, everything, None, None, tuple(said)), sample)
    if walk != "auto":
        raise UsageError(f"--walk {walk}: {data.path} has no cells or matrix; allowed: auto")
    _refuse("points", data, item_bytes=item_bytes)
    return _of_points(data, cutoff, neighbours, code, diameter, box, sample, displacement, seed, said)


def _refuse(what: str, data: Data, **given: Any) -> None:
    """Refuse settings that have no meaning for a kind of data.

    Args:
        what: the kind.
        data: of the file.
        given: name of a setting -> whether it is given.

    Raises:
        UsageError: one that is given.
    """
    for name, is_given in given.items():
        if is_given:
            raise UsageError(f"--{name.replace('_', '-')} beside {data.path}, {what}; allowed: without it")


def _check_tables(items: int, item_bytes: int, tables: int) -> None:
    """Check that the tables of the items in each order, and of two rounds, fit the memory.

    Raises:
        UsageError: they do not.
    """
    table, free = items * item_bytes, psutil.virtual_memory().available
    if tables * table > free:
        raise UsageError(
            f"--item-bytes {item_bytes} of {items:,} items: {tables} tables of {table:,} bytes; allowed: "
            f"{free:,} bytes in all, the memory that is free"
        )


def _of_trace(data: Data, code: str, sample: int, item_bytes: int, said: list[str]) -> Question:
    """Ask about the reads of the second half of a trace."""
    trace: Any = data.trace
    trace = trace[:sample] if sample else trace
    _check_tables(data.n, item_bytes or ITEM_BYTES, TABLES)
    half = len(trace) // 2
    said.append(f"Orders are learnt from the first {half:,} reads and judged on the others.")
    use = Use(TRACE, code, data.n, trace=trace[half:], item_bytes=item_bytes)
    return Question(data, use, np.arange(data.n), trace[:half], None, tuple(said))


def _cells(data: Data, walk: str, said: list[str]) -> np.ndarray:
    """Return the cells of a mesh of which there are most, or its edges."""
    name = max(data.cells, key=lambda one: data.cells[one].size)
    found = data.cells[name]
    if walk == "edges" and found.shape[1] > 2:
        found, name = edges_of(name, found, data.n), "edges"
    if len(data.cells) > 1:
        said.append(f"Of {', '.join(data.cells)} the {name} are timed.")
    return found


def edges_of(name: str, cells: np.ndarray, n: int) -> np.ndarray:
    """Return the edges of cells, (m, 2), each once.

    Args:
        name: of the cells, as meshio has it.
        cells: (k, corners) items.
        n: number of items.
    """
    corners = cells.shape[1]
    pairs = EDGES.get(name, [(i, j) for j in range(corners) for i in range(j)])
    low, high = np.sort(np.concatenate([cells[:, pair] for pair in pairs]).astype(np.int64), axis=1).T
    return np.stack(np.divmod(np.unique(low * n + high), n), axis=1)


def _of_points(
    data: Data, cutoff: float, neighbours: int, code: str, diameter: float, box: np.ndarray | None,
    sample: int, displacement: float, seed: int, said: list[str],
) -> Question:  # fmt: skip
    """Ask about the neighbours of points."""
    points: Any = data.points
    radii: Any = None
    lengths, periodic = box, (True,) * points.shape[1]
    if box is None and data.lengths is not None:
        lengths, periodic = data.lengths, data.periodic or periodic
        if data.origin is not None:
            points = points - data.origin
    if box is not None and len(box) != points.shape[1]:
        raise UsageError(f"--box {' '.join(map(str, box))}: points have {points.shape[1]} dimensions")
    if box is not None and not ((points >= 0) & (points <= box)).all():
        bad = int(np.flatnonzero(~((points >= 0) & (points <= box)).all(axis=1))[0])
        raise UsageError(
            f"--box {' '.join(map(str, box))}: point {bad} is at {points[bad]}; allowed: from 0 to the "
            "sides; leave it out, or move the points"
        )
    if not cutoff and not neighbours:
        own = diameter or (float(np.max(data.diameters)) if data.diameters is not None else 0.0)
        if not diameter and data.diameters is not None and np.ptp(data.diameters):
            radii = 0.5 * data.diameters
        cutoff, neighbours = own, 0 if own else NEAREST
        said.append(
            f"The cutoff is the {'largest ' if radii is not None else ''}diameter, {own:g}." if own
            else f"{NEAREST} neighbours of each point."
        )  # fmt: skip
    moves = _moves(data, displacement, points, seed)
    whole = np.arange(len(points))
    if 0 < sample < len(points):
        whole = _part(points, sample)
        points, lengths = points[whole], None
        moves = None if moves is None else moves[whole]
        radii = None if radii is None else radii[whole]
        said.append(
            f"{len(whole):,} points, those nearest to one in the middle, are timed; they may fit a cache."
        )
    kind, reach = (CUTOFF, cutoff) if cutoff else (NEIGHBOURS, neighbours)
    if kind == NEIGHBOURS and neighbours >= len(points):
        raise UsageError(f"--neighbours {neighbours}; allowed: fewer than the {len(points):,} points")
    is_boxed = lengths is not None and kind == CUTOFF
    if is_boxed and reach > 0.5 * min(np.asarray(lengths)[np.asarray(periodic, bool)], default=np.inf):
        raise UsageError(
            f"--cutoff {reach:g}: the sides are {' '.join(f'{one:g}' for one in np.asarray(lengths))}; "
            "allowed: up to half of the shortest periodic one"
        )
    use = Use(kind, code, len(points), points=points, reach=reach, radii=radii,
              lengths=lengths if is_boxed else None, periodic=periodic if is_boxed else ())  # fmt: skip
    return Question(data, use, whole, None, moves, tuple(said))


def _moves(data: Data, displacement: float, points: np.ndarray, seed: int) -> np.ndarray | None:
    """Return the displacements of a step: of two frames, along velocities, or in directions of any kind."""
    if data.points is not None and data.earlier is not None and data.steps and not displacement:
        moves: Any = (data.points - data.earlier) / data.steps
        if data.lengths is not None:
            far = np.array(data.periodic) * data.lengths
            moves -= far * np.round(moves * data.steps / np.where(far > 0, far, np.inf)) / data.steps
        return moves
    if not displacement:
        return None
    moves = data.velocities
    if moves is None or not np.any(moves):
        moves = np.random.default_rng(seed).normal(size=points.shape)
    return moves * (displacement / np.linalg.norm(moves, axis=1).mean())


def _part_of(asked: Question, sample: int) -> Question:
    """Ask about a part of a mesh or a matrix, if a sample is asked for: items that are joined to each other.

    They are those that are the fewest cells or entries away from the item in the middle of the file. Cells
    and entries that join them to others are left out. They stay in the order of the file.
    """
    use = asked.use
    if not 0 < sample < use.items:
        return asked
    near = breadth_first_order(graph_of(use), use.items // 2, directed=False, return_predecessors=False)
    whole = np.sort(near[:sample])
    if len(whole) < LEAST_ITEMS:
        raise UsageError(
            f"--sample {sample}: {len(whole):,} items are joined to that in the middle; allowed: "
            f"{LEAST_ITEMS:,} or more; leave it out"
        )
    if use.matrix is not None:
        part = Use(MATRIX, use.code, len(whole), matrix=scipy.sparse.csr_array(use.matrix)[whole][:, whole])
    else:
        places = np.full(use.items, -1, np.int64)
        places[whole] = np.arange(len(whole))
        cells = places[use.cells]
        points = None if use.points is None else use.points[whole]
        inside = cells[(cells >= 0).all(axis=1)]
        part = Use(CELLS, use.code, len(whole), points=points, cells=inside, item_bytes=use.item_bytes)
    said = f"{len(whole):,} items that are joined to each other are timed; they may fit a cache."
    return asked._replace(use=part, whole=whole, said=(*asked.said, said))


def _part(points: np.ndarray, sample: int) -> np.ndarray:
    """Return the points that are the nearest to the one nearest to the middle, in the order of the file."""
    off = np.linalg.norm(points - np.median(points, axis=0), axis=1)
    far = np.linalg.norm(points - points[off.argmin()], axis=1)
    return np.sort(np.argpartition(far, sample - 1)[:sample])
