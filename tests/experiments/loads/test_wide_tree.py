"""Loads of the kernel of the wide tree: those of a plain walk, a warp after the other."""

import numpy as np
import pytest

import md
from experiments.loads.wide_tree import wide_tree_loads
from md.search.bvh.wide_boxes import levels_of
from sfc.cache import LoadStream
from sfc.cache.loads import ALIGNED, WarpLoads
from tests import tiers
from tests.tiers import full

LAW = md.laws.SpringDashpot(1e3, 1.0)
MOST_NODES, MOST_NEAR = 256, 64  # of the kernel
Event = tuple[list[int], bool, int]  # addresses of the lanes, whether the warp waits, and the kind


def simulated(pos: np.ndarray, box: md.Box, precision: str = "float32", **options) -> md.Simulation:
    vel = np.random.default_rng(1).normal(size=pos.shape)
    state = md.State(pos, vel, box, radius=options.pop("radius", None))
    options = {"search": "wide_bvh", "backend": "cpu", "allow_overlap": True, **options}
    return md.Simulation(state, LAW, dt=1e-4, precision=precision, **options)


def cloud(
    dim: int, n: int, periodic: bool = True, precision: str = "float32", side: float = 0.0
) -> md.Simulation:
    """Particles anywhere in a box, with about 0.8 partners."""
    box = md.Box((side or (5.6 if dim == 3 else 19.0),) * dim, periodic=periodic)
    return simulated(np.random.default_rng(dim).random((n, dim)) * box.lengths, box, precision)


def events_of(stream: LoadStream, warps: list[int]) -> list[list[Event]]:
    """The events of some warps."""
    loads: WarpLoads = stream.loads_of(np.array(warps))
    lanes = [one.tolist() for one in np.split(loads.address, loads.start[1:-1])]
    events = [*zip(lanes, loads.waits.tolist(), loads.kind.tolist(), strict=True)]
    return [events[a:b] for a, b in zip(loads.first, loads.first[1:], strict=False)]


class Walk:
    """The kernel, a warp at a time, as md/search/bvh/wide_bvh.cu has it.

    Attributes:
        present, moved: roles of the arrays: first byte of rows of four numbers, of the rest of the
            velocities, of boxes, and of bytes.
        alone: number of threads that walked down the tree by themselves.
    """

    def __init__(self, run: md.Simulation):
        run.forces()  # the boxes of the present positions
        search, self.alone, self.known = run.search, 0, dict[int, list[float]]()
        self.pos, box, self.n = run.system.particles.pos, run.system.box, run.system.particles.n
        boxes, _, _, units, _, reach, *_ = search.structure()
        self.boxes, self.reach2, self.units = boxes, float(reach["reach2"][0]), units[0]
        self.dim, self.size, levels = box.dim, self.pos.itemsize, levels_of(self.n)[0]
        self.top, self.first, self.number = int(levels["count"]) - 1, levels["first"], levels["number"]
        self.lengths = np.array(box.lengths) * np.array(box.periodic) + 1e9 * ~np.array(box.periodic)
        rows, leaves = 2 * self.dim * self.size * self.n, int(self.number[0])
        sizes = [rows, rows, *2 * [boxes.nbytes, 4 * 8 * leaves]]
        a, b, c, d, e, f = np.cumsum([0, *(-(-one // ALIGNED) * ALIGNED for one in sizes[:-1])]).tolist()
        four = 4 * self.size * self.n
        self.present, self.moved = (a, a + four, c, d), (b, b + four, e, f)
        whole = np.floor(self.pos.astype(float) * self.units["per_unit"]).astype(int) & 255
        self.bytes = np.zeros(8 * leaves, np.int32)
        self.bytes[: self.n] = sum(whole[:, axis] << 8 * axis for axis in range(self.dim))

    def gaps2(self, centre: np.ndarray, half: np.ndarray, nodes) -> np.ndarray:
        """Squares of the distances of a box to the boxes in some rows."""
        others = self.boxes[nodes].astype(float)
        apart = others[:, : self.dim] - centre
        apart = np.abs(apart - np.round(apart / self.lengths) * self.lengths)
        gap = apart - half - others[:, 4 : 4 + self.dim]
        return (np.maximum(gap, 0) ** 2).sum(axis=1)

    def near(self, row: int, nodes: list[int], level: int) -> list[int]:
        """Those nodes of a level that are within reach of the box in a row."""
        if not nodes:
            return []
        own = self.boxes[row].astype(float)
        rows = self.first[level] + np.array(nodes)
        is_near = self.gaps2(own[: self.dim], own[4 : 4 + self.dim], rows) < self.reach2
        return [node for node, near in zip(nodes, is_near, strict=True) if near]

    def add(self, lanes: list[int], waits: bool, kind: int = 0) -> None:
        if lanes:
            self.events.append((lanes, waits, kind))

    def of_row(self, starts: list[int], parts: list[int], waits: bool, kind: int = 0) -> None:
        for k, part in enumerate(parts):
            self.add([start + 16 * part for start in starts], waits and k == 0, kind)

    @property
    def coordinates(self) -> list[int]:
        """Parts of 16 bytes of a row of 4 numbers that hold coordinates."""
        return [0, 1] if self.dim == 3 and self.size == 8 else [0]

    def box(self, rows: list[int], waits: bool) -> None:
        half = self.size // 4
        parts = [*self.coordinates, *(half + part for part in self.coordinates)]
        self.of_row([self.present[2] + 8 * self.size * row for row in rows], parts, waits)

    def packed(self, slots: list[int], role: tuple[int, ...], waits: bool, kind: int = 0) -> None:
        parts = [*range(self.size // 4)]
        self.of_row([role[0] + 4 * self.size * i for i in slots], parts, waits, kind)
        if self.dim == 3:
            self.add([role[1] + 2 * self.size * i for i in slots], False, kind)

    def pairs(self, pairs: list[tuple[int, int]]) -> None:
        """Positions of partners, and velocities of those in contact."""
        first, rest = self.present[:2]
        self.of_row([first + 4 * self.size * j for _, j in pairs], self.coordinates, True)
        touching = [j for i, j in pairs if self.far2(i)[j] < 1]
        if self.dim == 3:
            self.add([rest + 2 * self.size * j for j in touching], True)
            self.add([first + self.size * (4 * j + 3) for j in touching], False)
        else:
            self.add([first + self.size * (4 * j + 2) for j in touching], True)

    def far2(self, i: int) -> list[float]:
        """Squares of the distances of a particle to all."""
        if i not in self.known:
            apart = self.pos[i] - self.pos
            apart = apart - np.round(apart / self.lengths).astype(apart.dtype) * self.lengths
            self.known[i] = (apart * apart).sum(axis=1).tolist()
        return self.known[i]

    def descend(self, block: int, lanes: range) -> list[int] | None:
        """Boxes of the descent; returns the leaves within reach, or None if there are too many nodes."""
        own = self.first[1] + block
        self.box([own] * 32, True)
        tested = [*range(self.number[self.top])]
        for level in range(self.top, -1, -1):
            for k in range(0, len(tested), 128):
                nodes = [tested[k + lane] for lane in lanes if k + lane < len(tested)]
                rows = [self.first[level] + node for node in nodes if node < self.number[level]]
                self.box(rows, level < self.top or k > 0)
            found = self.near(own, [node for node in tested if node < self.number[level]], level)
            if len(found) > MOST_NODES:
                return None
            children = 32 if level > 1 else 16
            tested = [node * children + k for node in found for k in range(children)]
        return found

    def passing(self, i: int, near: list[int]) -> list[int]:
        others = np.array([8 * leaf + k for leaf in near for k in range(8)])
        apart = (self.bytes[i] - self.bytes[others]).astype(np.int32)
        squares = (apart[:, None].view(np.int8).astype(int) ** 2).sum(axis=1)
        return others[squares <= self.units["most"]].tolist()

    def compare(self, slots: list[int], near: list[list[int]]) -> None:
        """Bytes, then partners, of particles that have leaves."""
        bytes, at_once = self.present[3], 4 if self.size == 4 else 8
        self.add([bytes + 4 * i for i in slots], False)
        for k in range(0, max(map(len, near), default=0), 4):
            for four in range(8):
                leaves = [one[min(k + four // 2, len(one) - 1)] for one in near if k < len(one)]
                waits = four == at_once or (four == 0 and k > 0)
                self.add([bytes + 32 * leaf + 16 * (four % 2) for leaf in leaves], waits)
        found = [self.passing(i, one) for i, one in zip(slots, near, strict=True)]
        for turn in range(max(map(len, found), default=0)):
            pairs = [(i, js[turn]) for i, js in zip(slots, found, strict=True) if turn < len(js)]
            self.pairs([(i, j) for i, j in pairs if j != i and j < self.n])

    def path(self, i: int, level: int, node: int) -> list[tuple[int, list[int]]]:
        """Boxes that a thread visits below a node by itself, each with the particles that follow."""
        row = self.first[level] + node
        centre = self.pos[i].astype(float)
        if not self.gaps2(centre, np.zeros(self.dim), [row])[0] < self.reach2:
            return [(row, [])]
        if level == 0:
            return [(row, [j for j in range(8 * node, min(8 * node + 8, self.n)) if j != i])]
        children, found = 32 if level > 1 else 16, [(row, list[int]())]
        for child in range(node * children, min((node + 1) * children, self.number[level - 1])):
            found += self.path(i, level - 1, child)
        return found

    def walk_alone(self, slots: list[int]) -> None:
        self.alone += len(slots)
        self.packed(slots, self.present, True)
        top = range(self.number[self.top])
        paths = [[step for node in top for step in self.path(i, self.top, node)] for i in slots]
        for turn in range(max(map(len, paths), default=0)):
            here = [(i, path[turn]) for i, path in zip(slots, paths, strict=True) if turn < len(path)]
            self.box([row for _, (row, _) in here], turn > 0)
            for k in range(8):
                self.pairs([(i, j) for i, (_, js) in here for j in js if j % 8 == k])

    def warp(self, number: int, is_reversed: bool = False) -> list[Event]:
        """The events of a warp."""
        self.events: list[Event] = []
        block = number // 4
        block = self.number[1] - 1 - block if is_reversed else block
        lanes = range(number % 4 * 32, number % 4 * 32 + 32)
        slots = [min(128 * block + lane, self.n - 1) for lane in lanes]
        here = [128 * block + lane < self.n for lane in lanes]
        leaves = self.descend(block, lanes)
        near: list[list[int]] = [[]] * 32
        if leaves is not None:
            self.box([i // 8 for i in slots], True)
            for k in range(0, len(leaves), 8):
                asked = [leaves[k + lane % 8] for lane in lanes if k + lane % 8 < len(leaves)]
                self.box(asked, k > 0)
            near = [self.near(i // 8, leaves, 0) for i in slots]
        alone = [leaves is None or len(one) > MOST_NEAR for one in near]
        self.packed(slots, self.present, True)
        whole = [*zip(slots, near, here, alone, strict=True)]
        compared = [(i, one) for i, one, there, by_itself in whole if there and not by_itself]
        self.compare([i for i, _ in compared], [one for _, one in compared])
        by_itself = [i for i, _, there, lonely in whole if there and lonely]
        if by_itself:
            self.walk_alone(by_itself)
        self.store([i for i, there in zip(slots, here, strict=True) if there], block, number % 4 == 0)
        return self.events

    def store(self, slots: list[int], block: int, is_first: bool) -> None:
        first, _, boxes, bytes = self.moved
        self.packed(slots, self.moved, True, 1)
        self.of_row([first + 4 * self.size * i for i in slots], self.coordinates, False)
        self.add([bytes + 4 * i for i in slots], True, 1)
        parts = [*range(self.size // 2)]
        self.of_row([boxes + self.size * i for i in slots if i % 8 == 0], parts, False, 1)
        if is_first:
            self.of_row([boxes + 8 * self.size * (self.first[1] + block)], parts, False, 1)


@pytest.mark.parametrize("precision", ["float32", full("float64")])
@pytest.mark.parametrize("periodic", [True, False])
@pytest.mark.parametrize("dim", [full(2), 3])
def test_loads_are_those_of_a_plain_walk(dim, periodic, precision):
    run = cloud(dim, 300, periodic, precision)
    stream = wide_tree_loads(run).force
    assert (stream.items, stream.block) == (384, 128)  # whole blocks
    walk = Walk(run)
    assert events_of(stream, [*range(12)]) == [walk.warp(k) for k in range(12)]
    assert walk.alone == 0
    run.run(3)  # the run goes on


@pytest.mark.parametrize(("dim", "precision", "n"), [(3, "float32", 17_000), full(2, "float64", 16_500)])
def test_a_tree_of_three_levels_and_the_step_before(dim, precision, n):
    run = cloud(dim, n, precision=precision, side=28.0 if dim == 3 else 140.0)
    force, (before, above) = wide_tree_loads(run)
    walk, warps = Walk(run), [0, 262, 513]
    assert events_of(force, warps) == [walk.warp(k) for k in warps]
    walk.present, walk.moved = walk.moved, walk.present
    assert events_of(before, warps) == [walk.warp(k, is_reversed=True) for k in warps]
    walk.present, fitted = walk.moved, []
    for node in range(walk.number[2]):
        walk.events = []
        children = range(32 * node, 32 * node + 32)
        walk.box([walk.first[1] + (k if k < walk.number[1] else 32 * node) for k in children], True)
        at = walk.present[2] + 8 * walk.size * int(walk.first[2] + node)
        walk.of_row([at], [*range(walk.size // 2)], True, 1)
        fitted.append(walk.events)
    assert events_of(above, [*range(above.warps)]) == fitted


@pytest.mark.parametrize(
    ("dense", "sparse", "warps"), [full(680, 300, range(0, 31, 6)), full(2400, 0, [60]), full(2300, 100, [3])]
)
def test_threads_that_have_too_many_leaves_walk_alone(dense, sparse, warps):
    random, box = np.random.default_rng(4), md.Box((8.0, 9.0, 10.0), (True, False, True))
    pos = np.concatenate([random.random((dense, 3)) * 1.4 + 3, random.random((sparse, 3)) * box.lengths])
    run = simulated(pos, box)
    stream = wide_tree_loads(run).force
    walk = Walk(run)
    assert events_of(stream, [*warps]) == [walk.warp(k) for k in warps]
    assert walk.alone > 30
    assert walk.alone < 32 * len(warps) or not sparse or dense > 2000


def test_the_order_is_kept_until_the_next_sort():
    run = cloud(3, 300)
    first = wide_tree_loads(run)
    order = run.system.particles.id.copy()
    run.system.particles.pos[...] = run.system.particles.pos[::-1].copy()
    second = wide_tree_loads(run)
    assert np.array_equal(order, run.system.particles.id)
    assert events_of(first.force, [3]) != events_of(second.force, [3])


@pytest.mark.parametrize(
    ("options", "told"),
    [
        ({"search": "lbvh"}, "search 'lbvh' on 'cpu'; allowed: 'wide_bvh'"),
        ({"search": md.search.WideBvh(rebuild_every=1)}, "rebuild_every = 1; allowed: from 2 on"),
        ({"radius": np.full(50, 0.4)}, "differ in radius; allowed: all of diameter 1"),
    ],
)
def test_another_search_is_told(options, told):
    box = md.Box((8.0,) * 3)
    with pytest.raises(ValueError, match=told):
        wide_tree_loads(simulated(np.random.default_rng(0).random((50, 3)) * 8, box, **options))


@pytest.mark.parametrize(
    ("precision", "force", "above"),
    [tiers.full("float32", (48, 14752), (26, 0)), tiers.full("float64", (96, 15136), (40, 0))],
)
def test_registers_and_shared_memory_are_those_that_the_kernels_declare(precision, force, above):
    stream, (_, boxes) = wide_tree_loads(cloud(3, 16_500, precision=precision, side=28.0))
    assert (stream.registers, stream.shared) == force
    assert (boxes.registers, boxes.shared) == above
