"""Sort keys of particles along a curve, measured from the lower corner of the extent of the particles.

Of many particles the extent is that of a sample: up to one in 16, at random slots. A particle outside the
extent has the key of one at its side. Particles may be outside the box at open sides; one farther out than
seven box lengths has the key of a particle at that distance.
"""

from __future__ import annotations

import numpy as np

import sfc
from md import checks
from md.backend import Backend
from md.backend.base import Array
from md.particles.cell_grid import CellGrid
from sfc import Curve
from sfc.automaton.merged_rows import merged_rows
from sfc.automaton.shared_tables import LEVELS
from sfc.automaton.walk import levels_at_once
from sfc.compile import in_parts, inlined, kernel
from sfc.registry import is_curve

BITS = {2: (8, 12, 16, 31), 3: (8, 10, 21)}  # dim -> allowed numbers of bits of a key along an axis
AROUND = 3  # extent along an open axis, in box lengths, for which cells are as narrow as required
FAR = 7  # largest distance out of the box, in box lengths; a larger extent makes cells wider
BINS_EACH = 8  # of a particle, at most, in a counting sort
PARTS, LANES = 256, 256  # parts of the particles for the extent, and threads of a device for each
WORK = 8  # that a particle is to the kernels of a build, in items of little work (`sfc.compile.threads.MANY`)
SPARSEST = 16  # of so many particles, at least one is in the sample of the extent


def curve_of(choice: str | Curve, dim: int) -> Curve:
    """Return the curve of a name, or a curve as it is, after checking that its base is 2.

    Raises:
        ValueError: an unknown curve, or one of another dimension or base; the message lists the allowed ones.
    """
    is_known = isinstance(choice, str) and is_curve(choice, dim)
    curve: object = sfc.curve(str(choice), dim) if is_known else choice
    if isinstance(curve, Curve) and (curve.dim, curve.base) == (dim, 2):
        return curve
    raise ValueError(
        f"a tree in {dim}D along {choice!r}; allowed: {', '.join(halving(dim))}, or a curve of base 2 with "
        f"tables, an sfc.Curve"
    )


def halving(dim: int) -> tuple[str, ...]:
    """Return the names of the curves of base 2 with tables, along which a tree can be built."""
    curves = ((name, sfc.curve(name, dim)) for name in sfc.curves(dim))
    return tuple(name for name, curve in curves if isinstance(curve, Curve) and curve.base == 2)


def bits_for(n: int, grid: CellGrid) -> int:
    """Return the bits of a key along an axis: the fewest that give small enough cells.

    There are two cells a particle or more, and none is wider than the cutoff, as far as the bits of `BITS`
    allow. Fewer bits are sorted in fewer passes. Keys of up to 32 bits are stored in 32 bits, longer ones in
    64.
    """
    sides = zip(grid.box.lengths, grid.box.open, strict=True)
    widest, dim = max(AROUND * side if is_open else side for side, is_open in sides), grid.box.dim
    choices = BITS[dim]
    for bits in choices:
        side = widest / 2**bits
        if side <= grid.cutoff and grid.box.volume >= 2 * n * side**dim:
            return bits
    return choices[-1]


def bits_to_count(n: int, grid: CellGrid, narrowest: float) -> int:
    """Return the bits of a key along an axis for a counting sort by cells; 0 for none.

    There is a cell a particle or more, and none is wider than two diameters, so that few particles that do
    not overlap are in one: a counting sort takes long where many have the same key. At an open side the
    extent may be as large as `FAR` allows.

    Args:
        n: number of particles.
        grid: box and precision.
        narrowest: least diameter in d.
    """
    sides = zip(grid.box.lengths, grid.box.open, strict=True)
    widest, dim = max((1 + 2 * FAR) * side if is_open else side for side, is_open in sides), grid.box.dim
    bits = 1
    while 2 ** (dim * bits) < n or widest / 2**bits > 2 * narrowest:
        bits += 1
        if 2 ** (dim * bits) > max(BINS_EACH * n, 2**10):
            return 0
    return bits if dim * bits < 31 else 0


def steps_of(curve: Curve, bits: int) -> tuple[int, int, np.ndarray]:
    """Make the table of a curve with the rank and the next row of some levels in one number.

    Args:
        curve: of base 2.
        bits: of a key along an axis.

    Returns:
        levels of a look-up; row of the first one; (rows * 2**(dim * levels),) int32: rank << 16 | next row,
        at place row << dim * levels | digit. A digit has `levels` bits of each coordinate, axis 0 lowest.

    Raises:
        ValueError: 65536 states or more.
    """
    states = len(curve.rank)
    if states >= 2**16:
        raise ValueError(f"a curve of {states} states; allowed: fewer than {2**16}; take another curve")
    levels = min(LEVELS[curve.dim], levels_at_once(curve.dim, 2, states))
    rows = merged_rows(curve, bits, levels)
    return levels, rows.start, (rows.rank << 16 | rows.next).astype(np.int32).ravel()


class CurveKeys:
    """Sort keys of particles along a curve, with the buffers to compute and sort them.

    Args:
        n: number of particles.
        grid: box, precision and cutoff.
        backend: where the arrays are stored.
        curve: a name of `sfc.curves(dim)` or a curve, of base 2.
        narrowest: least diameter in d of particles that do not overlap: keys may then be as short as a
            counting sort needs them (`bits_to_count`), by which a device sorts. None for particles that may
            be anywhere.

    Attributes:
        bits: bits of a key along an axis.
        key_bits: bits of a key.
        counts: whether the sort is by counting; the keys themselves are not moved then.
        keys: (n,) indices along the curve: uint32, or uint64 if a key is longer than 32 bits, sorted; of a
            counting sort int32, by the slot of the particle.
        order: (n,) int32 slot of the particle of each sorted key.
        extent: (2 dim,) least and greatest coordinate of the sampled particles along each axis, in d; at
            most `FAR` box lengths out.

    Raises:
        ValueError: a curve that is unknown, of another dimension or of another base, or of 65536
            states or more; or not enough memory for the cells of a counting sort.
    """

    def __init__(
        self, n: int, grid: CellGrid, backend: Backend, curve: str | Curve, narrowest: float | None = None
    ):
        dim, real = grid.box.dim, grid.precision
        self._n, self._grid, self._backend, self._curve = n, grid, backend, curve_of(curve, dim)
        bits = 0 if narrowest is None else bits_to_count(n, grid, narrowest)
        self.bits = bits or bits_for(n, grid)
        self.counts = bits > 0 and backend.runs_ahead  # on the CPU a radix sort of the same keys is faster
        self.key_bits = self.bits * dim
        kind = np.int32 if self.counts else np.uint32 if self.key_bits <= 32 else np.uint64
        self.keys = backend.empty(n, kind)
        self.order = backend.empty(n, np.int32)
        self._parts, self.extent = backend.empty(2 * dim * PARTS, real), backend.empty(2 * dim, real)
        bins = 2**self.key_bits if self.counts else 0
        if self.counts:
            remedy = "take fewer particles"
            checks.require_bytes(
                f"counts of {bins} cells along a curve", 8 * bins, backend.free_memory(), remedy
            )
        self._starts = backend.empty(bins + 1, np.int32)
        self._scratch = backend.sort_scratch(n, bins) if self.counts else backend.radix_scratch(self.keys)
        self._levels, start, steps = steps_of(self._curve, self.bits)
        self._steps = backend.upload(steps)
        interleaves = len(self._curve.rank) == 1 and (self._curve.rank == np.arange(2**dim)).all()
        self._start = -1 if interleaves else start

    def sort(self, pos: Array) -> None:
        """Compute and sort the keys, by kernel launches only.

        Args:
            pos: (n, dim) positions in d, n above 0; not changed.
        """
        n, kernels, threads = self._n, self._backend.kernels(__name__), PARTS * LANES
        every = max(1, min(n // threads, SPARSEST))
        kernels.extent_of_parts(threads, n, every, pos, self._parts)
        kernels.extent_of_all(LANES, pos, self._parts, self._grid.record, self.extent)
        kernels.curve_keys(n, pos, self.extent, self.bits, self._levels, self._start, self._steps, self.keys)
        if self.counts:
            self._backend.sort(self.keys, self._starts, self.order, self._scratch)
        else:
            self._backend.radix_sort(self.keys, self.key_bits, self.order, self._scratch)

    def sample(self, every: int) -> np.ndarray:
        """Copy every so-manyth sorted key to the host, from the first on, as float64."""
        backend = self._backend
        keys = self.keys[self.order[::every]] if self.counts else self.keys[::every].copy()
        return backend.download(keys).astype(np.float64)


@inlined
def sampled(k, every, n):
    """Return the slot of sample k: at random among `every` slots, the same at each call."""
    number = (k * 2654435761 & 0xFFFFFFFF) >> 16  # Knuth's multiplicative hash
    return min(k * every + number % every, n - 1)


def extent_of_parts(threads, n, every, pos, extents):
    """Store the least and greatest coordinate along each axis of every part: of one in `every` particles."""
    in_parts(
        lambda part: _extent_of_parts((part.start, part.stop), n, every, pos, extents), PARTS, rows=n // every
    )


@kernel
def _extent_of_parts(parts, n, every, pos, extents):
    """Store the extents of some parts, from the first one to before the last, as `extent_of_parts`."""
    samples = -(-n // every)
    for part in range(*parts):
        for axis in range(pos.shape[1]):
            first = sampled(part % samples, every, n)
            low, high = pos[first, axis], pos[first, axis]
            for k in range(part, samples, PARTS):
                i = sampled(k, every, n)
                low, high = min(low, pos[i, axis]), max(high, pos[i, axis])
            extents[2 * (axis * PARTS + part)] = low
            extents[2 * (axis * PARTS + part) + 1] = high


@kernel
def extent_of_all(threads, pos, extents, grid, extent):
    """Reduce the extents of the parts: extent[2 axis] is the least coordinate, the next entry the largest."""
    for axis in range(pos.shape[1]):
        first = 2 * axis * PARTS
        low, high = extents[first], extents[first + 1]
        for k in range(first + 2, first + 2 * PARTS, 2):
            low, high = min(low, extents[k]), max(high, extents[k + 1])
        length = grid[0].length[axis]
        least, most = -FAR * length, (1 + FAR) * length
        extent[2 * axis] = min(max(low, least), most)
        extent[2 * axis + 1] = max(min(high, most), least)


def curve_keys(n, pos, extent, bits, levels, start, steps, keys):
    """Compute keys[i], the index along the curve of the cell of particle i in a grid of 2**bits cubes a side.

    `levels` and `steps` are those of `steps_of`. A negative `start` stands for the Morton curve: its index
    interleaves the bits of the coordinates, so that a device needs no table.
    """
    given = pos, extent, bits, levels, start, steps, keys
    in_parts(lambda part: _curve_keys(part.start, part.stop, *given), n, rows=WORK * n)


@kernel
def _curve_keys(first, last, pos, extent, bits, levels, start, steps, keys):
    """Compute the indices of the particles first .. last - 1, as `curve_keys`."""
    dim, real = pos.shape[1], extent.dtype.type
    widest = extent[1] - extent[0]
    for axis in range(1, dim):
        widest = max(widest, extent[2 * axis + 1] - extent[2 * axis])
    scale = real(2**bits) / widest if widest > 0 else real(0)
    groups = -(-bits // levels)
    for i in range(first, last):
        key, row = np.uint64(0), max(start, 0)
        for group in range(groups - 1, -1, -1):
            digit = 0
            for axis in range(dim):
                cell = np.int64((pos[i, axis] - extent[2 * axis]) * scale)
                cell = max(0, min(cell, 2**bits - 1))
                digit |= ((cell >> group * levels) & 2**levels - 1) << axis * levels
            step = steps[row << dim * levels | digit]
            key = key << np.uint64(dim * levels) | np.uint64(step >> 16)
            row = np.int64(step & 0xFFFF)
        keys[i] = key
