"""The CUDA kernel that makes neighbour lists from a tree, compiled for the host, against all pairs."""

from types import SimpleNamespace

import numpy as np
import pytest

import md
from md.particles.cell_grid import CellGrid
from md.search.lists.lister import Lists
from md.search.tree_listing import TreeLister
from tests import tiers
from tests.md.cavity.strategies.emulated_cuda import HostArray
from tests.md.search.bvh.test_wide_bvh_on_host import Device, rows
from tests.md.search.test_verlet_on_host import listed, pooled

CPU, SKIN, CUTOFF = md.backend.get("cpu"), 0.3, 1.0
CASES = {  # dim, precision, n, side of the box, whether it is periodic, side of the cloud, radii
    "plain": (3, np.float64, 700, 9.0, True, 9.0, False),
    "few": (3, np.float64, 5, 4.0, True, 1.5, False),
    "many partners": (3, np.float64, 500, 6.0, True, 6.0, False),
    "crowd in a wide box": (3, np.float64, 1100, 40.0, False, 1.6, False),
    "single": (3, np.float32, 700, 9.0, True, 9.0, False),
    "flat": (2, np.float64, 900, 20.0, True, 20.0, False),
    "flat and open": (2, np.float32, 700, 30.0, False, 11.0, False),
    "radii": (3, np.float64, 600, 12.0, True, 12.0, True),
    "flat radii": (2, np.float32, 400, 25.0, False, 25.0, True),
}


@pytest.fixture(scope="module")
def device():
    return Device()


class TreeLists:
    """Lists of the particles of a case, which are sorted along the curve on the CPU before."""

    def __init__(self, device, case: str, per_list: int = 2, room: int | None = None, column: int = 12):
        dim, dtype, self.n, side, periodic, width, has_radii = CASES[case]
        random = np.random.default_rng(7)
        pos = random.random((self.n, dim)) * width
        radius = np.where(random.random(self.n) < 0.04, 1.1, 0.25) if has_radii else None
        state = md.State(pos, np.zeros_like(pos), md.Box((side,) * dim, periodic), radius=radius)
        widest = 1.0 if radius is None else 2 * radius.max()
        run = md.Simulation(
            state, md.laws.SpringDashpot(1000, 1), search="verlet_tree", dt=1e-4,
            precision=np.dtype(dtype).name, backend="cpu", allow_overlap=True,
        )  # fmt: skip
        run.search.update()
        sorted_ = run.system.particles
        self.pos, self.radius = np.array(sorted_.pos), sorted_.radius
        self.box, self.per_list = state.box, per_list
        particles = SimpleNamespace(
            n=self.n,
            pos=rows(self.pos),
            radius=HostArray(self.radius),
            widest=widest,
            narrowest=widest,
            box=state.box,
        )
        grid = CellGrid(state.box, CUTOFF * widest + SKIN, dtype, device)
        lister = TreeLister("hilbert", grid, CUTOFF * widest, particles, device)
        lister.allocate(grid)
        room = 450 * self.n if room is None else room
        none, partners = device.empty(0, np.int32), device.empty(per_list * self.n + room, np.uint64)
        self.lists = Lists(
            none, none, partners, device.empty(0, np.uint8), per_list, room, device.zeros(1, np.int64),
            device.zeros(6, np.float32),
        )  # fmt: skip
        self.reference = rows(np.zeros_like(self.pos))
        lister.list(0.0, self.reference, self.lists, lambda reach: column, True)

    def near(self, more: float = 0.0) -> np.ndarray:
        """(n, n) whether two particles are partners, or would be at a reach larger by `more`."""
        apart = self.pos[:, None].astype(np.float64) - self.pos
        lengths = np.array(self.box.lengths)
        apart -= np.array(self.box.periodic) * lengths * np.round(apart / lengths)
        reach = CUTOFF + SKIN + more
        if len(self.radius):
            radius = self.radius.astype(np.float64)
            reach = CUTOFF * (radius[:, None] + radius) + SKIN + more
        close = (apart**2).sum(-1) < reach**2
        np.fill_diagonal(close, False)
        return close


@pytest.mark.parametrize(
    ("case", "column"),
    tiers.by_default(
        tiers.product(list(CASES), [4, 40], 2, tiers.full),
        lambda case, column: CASES[case][:2] == (3, np.float64),
        tiers.full,
    ),
)
def test_lists_hold_all_partners_once(device, case, column):
    made = TreeLists(device, case, column=column)
    near, lists = made.near(), made.lists
    farther = made.near(3e-4 if made.pos.dtype == np.float32 else 1e-12)  # with the rounding of boxes
    assert near.any()
    assert (
        pooled(near.sum(1), made.per_list)
        <= lists.needed.host[0]
        <= pooled(farther.sum(1), made.per_list, run=8)
    )
    assert not lists.travelled.host.any()
    np.testing.assert_array_equal(made.reference.host, made.pos)
    for i in range(made.n):
        found = listed(lists.partners.host, made.n, made.per_list, i)
        assert len(set(found)) == len(found)
        assert set(np.flatnonzero(near[i])) <= set(found) <= set(np.flatnonzero(farther[i]))


def test_lists_without_room_halt_the_steps(device):
    needed = int(TreeLists(device, "many partners").lists.needed.host[0])
    assert needed > 100
    for room in (0, needed - 1, needed):
        lists = TreeLists(device, "many partners", 2, room).lists
        assert lists.needed.host[0] == needed
        assert np.isinf(lists.travelled.host[:2]).tolist() == 2 * [room < needed]
