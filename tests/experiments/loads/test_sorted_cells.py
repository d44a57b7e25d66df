"""Loads of the kernels that sort by cell: those of a plain walk, thread by thread."""

from itertools import product

import numpy as np
import pytest

import md
import sfc
from experiments.loads.sorted_cells import coherent_loads, scattered_loads
from sfc import cache
from sfc.cache.loads import ADDED, ALIGNED, LANES, READ, WRITTEN
from tests.tiers import full

STREAMS = {"scattered": scattered_loads, "coherent": coherent_loads}
SORTED = 4, 5, 6, 7, 8, 9  # addresses of table, counts, numbers in a cell, keys, start, order
TABLE, COUNTS, NUMBERS, KEYS, START, ORDER = SORTED


def simulation(search, order, dim, periodic, precision, y=4.3, law=None, **options):
    n = 300 if dim == 3 else 160
    random = np.random.default_rng(dim)
    lengths = (4.4, y, 5.6)[:dim]
    box = md.Box(lengths, periodic=periodic)
    pos = random.random((n, dim)) * lengths
    pos[: n // 2] = (0.3 + 0.4 * random.random((n // 2, dim))) * lengths  # warps in inner cells
    state = md.State(pos, random.normal(size=(n, dim)), box)
    find = md.search.SEARCHES[search](cell_order=order, **options)
    flight = {"integrator": "flight"} if law else {}
    return md.Simulation(
        state, law or md.laws.SpringDashpot(1.0, 1.0), dt=1e-4, search=find, precision=precision,
        backend="cpu", allow_overlap=True, **flight,
    )  # fmt: skip


class Plain:
    """What both kernels read, by numpy and lists."""

    def __init__(self, run, reach, moves):
        pos, self.box = np.array(run.system.particles.pos), run.system.box
        (self.n, self.dim), self.shape = pos.shape, run.system.grid.shape
        shape = np.array(self.shape)
        self.cells = np.minimum((pos * (shape / self.box.lengths)).astype(int), shape - 1)
        self.number = np.cumprod([1, *shape[:-1]])
        order = run.config.search.cell_order
        self.ranks = sfc.covering(order, self.shape).dense_ranks()
        keys = self.ranks[self.cells @ self.number]
        self.order = np.argsort(keys, kind="stable")
        if moves:
            pos, keys, self.cells = pos[self.order], keys[self.order], self.cells[self.order]
            self.order = np.arange(self.n)
        self.keys = keys
        self.start = np.searchsorted(np.sort(keys), np.arange(shape.prod() + 1)).tolist()
        dr = pos[:, None] - pos
        if all(self.box.periodic):
            lengths = np.array(self.box.lengths, pos.dtype)
            dr -= np.round(dr / lengths) * lengths
        self.in_reach = (dr * dr).sum(axis=2) < pos.dtype.type(reach) ** 2
        self.size = pos.itemsize
        self.row = 4 * self.size
        n, cells = 4 * self.n, 4 * int(shape.prod())
        rows = [2 * self.dim * self.size * self.n] * 2 if moves else [self.row * self.n] * 4
        sizes = [*rows, cells, cells, n, n, cells + 4, n, *([n, n] if moves else [])]
        at = np.cumsum([0, *(-(-one // ALIGNED) * ALIGNED for one in sizes)]).tolist()
        four = self.row * self.n
        self.base = [at[0], at[0] + four, at[1], at[1] + four, *at[2:]] if moves else at

    def beside(self, axis, home):
        """Cells before, at and after a home cell along an axis; None for none."""
        count, wraps = self.shape[axis], all(self.box.periodic)
        found = [home - 1 if home else None, home, home + 1 if home + 1 < count else None]
        if wraps and count == 2:
            return [None, home, 1 - home]
        if wraps:
            found = [cell % count for cell in (home - 1, home, home + 1)]
        return found

    def parts(self, array, j):
        return [self.base[array] + self.row * j + 16 * part for part in range(self.row // 16)]

    def rank(self, *cell):
        return int(self.ranks[np.dot(cell, self.number)])


def scattered_thread(plain, i, interior):
    """Yield key, address and whether the warp waits: lanes with the same key take the load together."""
    own = plain.parts(0, i) + plain.parts(1, i)
    yield from (((0, k), one, k == 0) for k, one in enumerate(own))
    home = plain.cells[i]
    takes_two = interior and plain.dim == 3 and plain.size == 4
    others = [plain.beside(axis, home[axis]) for axis in range(plain.dim - 1, 0, -1)]
    for visit, (*away, x) in enumerate(product(*others, plain.beside(0, home[0]))):
        if None in away or x is None:
            continue
        stage, cell = 1 + visit, (x, *away[::-1])
        yield (stage, 0), plain.base[TABLE] + 4 * int(np.dot(cell, plain.number)), True
        rank = plain.rank(*cell)
        yield (stage, 1), plain.base[START] + 4 * rank, True
        yield (stage, 2), plain.base[START] + 4 * rank + 4, False
        entries = list(range(plain.start[rank], plain.start[rank + 1]))
        turns = [[k] for k in entries]
        if takes_two:
            odd = len(entries) % 2
            turns = [entries[:odd], *(entries[k : k + 2] for k in range(odd, len(entries), 2))]
        for turn, taken in enumerate(turns):
            key = (stage, 3, turn)
            for c, k in enumerate(taken):
                yield (*key, 0, c), plain.base[ORDER] + 4 * k, c == 0
            for c, k in enumerate(taken):
                j = int(plain.order[k])
                if j == i:
                    continue
                for part, one in enumerate(plain.parts(0, j)):
                    yield (*key, 1 + c, 0, part), one, part == 0
                if plain.in_reach[i, j]:
                    for part, one in enumerate(plain.parts(1, j)):
                        yield (*key, 1 + c, 1, part), one, part == 0
    moved = plain.parts(2, i) + plain.parts(3, i)
    yield from (((99, k), one, k == 0) for k, one in enumerate(moved))


def listed_layer(plain, key, home, z, is_row):
    """Yield loads of a layer of cells and, in the end, its ranges."""
    ranges = []
    length, wraps = plain.shape[0], all(plain.box.periodic) and plain.shape[0] > 2
    near = [x for x in (home[0] - 1, home[0], home[0] + 1) if 0 <= x < length]
    far = [length - 1 if home[0] == 0 else 0] if wraps and len(near) == 2 else []
    rows = plain.beside(1, home[1])
    if all(plain.box.periodic) and plain.shape[1] == 2:
        rows = [None, 0, 1] if home[1] == 0 else [0, 1, None]
    lines = [(k, y) for k, y in enumerate(rows) if y is not None]
    start, up = plain.base[START], (z,) if plain.dim == 3 else ()
    if is_row:
        for part, cells in enumerate([near, far]):
            for k, y in lines if cells else []:
                first = plain.rank(cells[0], y, *up)
                ends = first, first + len(cells)
                for side in range(2):
                    yield (*key, part, 2 * k + side), start + 4 * ends[side], k == side == 0
                ranges.append([plain.start[end] for end in ends])
    else:
        for k, y in lines:
            taken = near + far
            for c, x in enumerate(taken):
                at = plain.base[TABLE] + 4 * int(np.dot((x, y, *up), plain.number))
                yield (*key, k, 0, c), at, c == 0
            for c, x in enumerate(taken):
                first = plain.rank(x, y, *up)
                for side in range(2):
                    yield (*key, k, 1, 2 * c + side), start + 4 * (first + side), c == side == 0
                ranges.append([plain.start[first], plain.start[first + 1]])
    return [one for one in ranges if one[0] < one[1]]


def packed(plain, array, j):
    second = [plain.base[array + 1] + 2 * plain.size * j] if plain.dim == 3 else []
    return plain.parts(array, j) + second


def coherent_thread(plain, i, is_row):
    yield from (((0, k), one, k == 0) for k, one in enumerate(packed(plain, 0, i)))
    home, turn = plain.cells[i], 0
    layers = [0] if plain.dim == 2 else plain.beside(2, home[2])
    if plain.dim == 3 and all(plain.box.periodic) and plain.shape[2] == 2:
        layers = [None, 0, 1] if home[2] == 0 else [0, 1, None]
    while layers:
        turn, step, ranges = turn + 1, 0, []
        while layers and len(ranges) <= (6 if is_row else 3):
            z, *layers = layers
            step += 1
            if z is not None:
                ranges += yield from listed_layer(plain, (turn, 0, step), home, z, is_row)
        partners = [j for first, end in ranges for j in range(first, end)]
        partners += [i] * (len(partners) % 2)
        for k in range(0, len(partners), 2):
            for c in range(2):
                at = plain.parts(0, partners[k + c])[: None if plain.dim == 3 else 1]
                for part, one in enumerate(at):
                    yield (turn, 1, k, 0, c, part), one, c == part == 0
            for c in range(2):
                j = partners[k + c]
                if j != i and plain.in_reach[i, j]:
                    row = plain.base[0] + plain.row * j
                    at = [row + 2 * plain.size]
                    if plain.dim == 3:
                        at = [plain.base[1] + 2 * plain.size * j, row + 3 * plain.size]
                    for part, one in enumerate(at):
                        yield (turn, 1, k, 1, c, part), one, part == 0
    yield from (((99, k), one, k == 0) for k, one in enumerate(packed(plain, 2, i)))


def together(lanes):
    """Return the events of a warp: addresses, and whether it waits."""
    events = {}
    for lane in lanes:
        for key, address, waits in lane:
            events.setdefault(key, ([], waits))[0].append(address)
    return [events[key] for key in sorted(events)]


def walked(run, reach=1.0):
    search = run.config.search.name
    plain = Plain(run, reach, search == "coherent")
    if search == "scattered":
        inner = ((plain.cells > 0) & (plain.cells < np.array(plain.shape) - 1)).all(axis=1)
        groups = [range(k, min(k + LANES, plain.n)) for k in range(0, plain.n, LANES)]
        return [together([scattered_thread(plain, i, inner[own].all()) for i in own]) for own in groups]
    is_row = (plain.ranks == np.arange(len(plain.ranks))).all()
    warps = [range(k, min(k + LANES, plain.n)) for k in range(0, -(-plain.n // 128) * 128, LANES)]
    blocks = [warps[k : k + 4] for k in range(0, len(warps), 4)]
    return [together([coherent_thread(plain, i, is_row) for i in own]) for b in blocks[::-1] for own in b]


def events_of(stream):
    loads = stream.loads_of(np.arange(stream.warps))
    lanes = map(np.ndarray.tolist, np.split(loads.address, loads.start[1:-1]))
    events = [*zip(lanes, loads.waits.tolist(), strict=True)]
    return [events[a:b] for a, b in zip(loads.first, loads.first[1:], strict=False)]


@pytest.mark.parametrize("search", STREAMS)
@pytest.mark.parametrize(
    ("order", "dim", "periodic", "precision", "y"),
    [
        *(full("row", *case, 4.3) for case in product((2,), (True, False), ("float32", "float64"))),
        ("row", 3, True, "float32", 4.3), full("row", 3, True, "float64", 4.3),
        full("row", 3, False, "float32", 4.3), ("row", 3, False, "float64", 4.3),
        full("hilbert", 2, True, "float32", 4.3), ("hilbert", 3, True, "float64", 4.3),
        ("hilbert", 3, False, "float32", 4.3), ("row", 3, True, "float32", 2.2),
        ("hilbert", 3, True, "float32", 2.2), full("row", 2, False, "float32", 1.2),
        ("tiled", 3, False, "float32", 1.2),
    ],
)  # fmt: skip
def test_loads_are_those_of_a_plain_walk(search, order, dim, periodic, precision, y):
    run = simulation(search, order, dim, periodic, precision, y)
    before = np.array(run.system.particles.pos)
    assert events_of(STREAMS[search](run).force) == walked(run)
    assert np.array_equal(run.system.particles.pos, before)


@pytest.mark.parametrize("search", STREAMS)
def test_the_run_goes_on(search):
    run = simulation(search, "row", 3, True, "float32")
    STREAMS[search](run)
    run.run(2)
    assert events_of(STREAMS[search](run).force) == walked(run)


@pytest.mark.parametrize("precision", ["float32", "float64"])
@pytest.mark.parametrize("search", STREAMS)
def test_boids_load_velocities_below_the_alignment_radius(search, precision):
    law = md.laws.Boids(cohesion_radius=1.0, alignment_radius=0.6, separation_radius=0.4)
    run = simulation(search, "row", 3, True, precision, law=law)
    force = STREAMS[search](run).force
    assert events_of(force) == walked(run, 0.6)
    registers = {"scattered": (40, 64), "coherent": (40, 80)}[search]
    assert force.registers == registers[precision == "float64"]


def test_registers_and_shared_memory_are_those_that_the_kernels_declare():
    found = {}
    for search, precision in product(STREAMS, ("float32", "float64")):
        force = STREAMS[search](simulation(search, "row", 3, True, precision)).force
        found[search, precision] = force.block, force.registers, force.shared
    assert found == {
        ("scattered", "float32"): (256, 32, 0), ("scattered", "float64"): (256, 56, 0),
        ("coherent", "float32"): (128, 40, 13312), ("coherent", "float64"): (128, 72, 13312),
    }  # fmt: skip


def by_kind(stream):
    """Addresses of a stream, sorted, of each kind."""
    loads = stream.loads_of(np.arange(stream.warps))
    kinds = np.repeat(loads.kind, np.diff(loads.start))
    return [np.sort(loads.address[kinds == kind]).tolist() for kind in (READ, WRITTEN, ADDED)]


@pytest.mark.parametrize("order", ["row", "hilbert"])
@pytest.mark.parametrize("search", STREAMS)
def test_the_launches_before_sort_the_particles(search, order):
    run = simulation(search, order, 3, True, "float32")
    plain, loads = Plain(run, 1.0, search == "coherent"), STREAMS[search](run)
    base, n, cells = plain.base, plain.n, int(np.prod(plain.shape))
    _, count, scan, place, bins, *gather = loads.before

    def entries(array, numbers):
        return [base[array] + 4 * int(k) for k in numbers]

    every, source = range(n), 2 if search == "coherent" else 0
    rows = [base[source] + 16 * k for k in every]
    table = entries(TABLE, plain.cells @ plain.number) if order == "hilbert" else []
    keys, numbers = entries(KEYS, every), entries(NUMBERS, every)
    added, summed = sorted(entries(COUNTS, plain.keys)), entries(COUNTS, range(0, cells, 4))
    assert by_kind(count) == [sorted(rows + table), sorted(numbers + keys), added]
    assert by_kind(scan) == [summed, entries(START, range(0, cells + 1, 4)), []]
    started = entries(START, plain.keys)
    assert by_kind(place) == [sorted(numbers + keys + started), entries(ORDER, every), []]
    taken = [k for a, b in zip(plain.start, plain.start[1:], strict=False) for k in range(a + 1, b)]
    starts = entries(START, range(cells)) + entries(START, range(1, cells + 1))
    read = starts + entries(ORDER, taken) + entries(ORDER, [k - 1 for k in taken])
    assert by_kind(bins) == [sorted(read), entries(ORDER, taken), []]
    assert len(gather) == (search == "coherent")
    for one in gather:
        (first, second), ids = (([base[k] + 16 * i for i in every], k) for k in (2, 0)), (10, 11)
        pairs = {k: [base[k + 1] + 8 * i for i in every] for k in (2, 0)}
        read = entries(ORDER, every) + first[0] + pairs[2] + entries(ids[0], every)
        assert by_kind(one) == [sorted(read), sorted(second[0] + pairs[0] + entries(ids[1], every)), []]


def test_the_scattered_step_before_has_the_arrays_in_the_other_roles():
    loads = scattered_loads(simulation("scattered", "row", 3, True, "float32"))
    size = -(-16 * 300 // ALIGNED) * ALIGNED
    (read, written, _), (read_then, written_then, _) = by_kind(loads.force), by_kind(loads.before[0])
    assert written_then == [one - 2 * size for one in written]
    assert read_then == sorted(one + 2 * size if one < 2 * size else one for one in read)


def test_the_coherent_step_before_is_the_same():
    loads = coherent_loads(simulation("coherent", "row", 3, True, "float32"))
    assert events_of(loads.before[0]) == events_of(loads.force)


def test_the_memory_order_matters_to_scattered_alone():
    n, counts = 2**14, {}
    state = md.scenes.benchmark_gas(n, 0.2)
    orders = np.random.default_rng(0).permutation(n), np.lexsort(np.floor(state.pos.T / 1.1))
    for search, (k, order) in product(STREAMS, enumerate(orders)):
        run = md.Simulation(
            state.take(order), md.scenes.BENCHMARK_LAW, dt=md.scenes.BENCHMARK_DT, search=search,
            backend="cpu", precision="float32",
        )  # fmt: skip
        counts[search, k] = cache.warps(STREAMS[search](run).force).read.mean
    assert counts["scattered", 0] > 1.5 * counts["scattered", 1]
    assert counts["coherent", 0] == pytest.approx(counts["coherent", 1], rel=1e-3)
    assert counts["coherent", 0] < counts["scattered", 1]


@pytest.mark.parametrize("search", STREAMS)
def test_a_division_and_another_search_are_told(search):
    run = simulation(search, "row", 3, True, "float32", division=2)
    with pytest.raises(ValueError, match=rf"division 2 of search '{search}'; allowed: None"):
        STREAMS[search](run)
    state = md.scenes.benchmark_gas(125, 0.2)
    options = {"dt": md.scenes.BENCHMARK_DT, "backend": "cpu", "search": "linked"}
    with pytest.raises(ValueError, match=rf"search 'linked' on 'cpu'; allowed: '{search}'"):
        STREAMS[search](md.Simulation(state, md.scenes.BENCHMARK_LAW, **options))
