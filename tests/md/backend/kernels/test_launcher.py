"""The CUDA launcher without a device: the source compiles, and structs arrive as C reads them."""

import ctypes
from types import SimpleNamespace

import numpy as np
import pytest

import md
from md.backend import Cpu
from md.backend.kernels.launcher import Launcher
from md.backend.kernels.source import blocks, file_of
from md.laws.pair import kernel_law
from md.observe.pair_tally import PairTally
from md.particles.cell_grid import CellGrid
from tests.nvrtc import compile_cubin

LAWS = [
    md.laws.SpringDashpot(stiffness=3.0, damping=2.0, diameter=1.25),
    md.laws.FrictionalSpringDashpot(3.0, 2.0, 1.25, friction=0.3, tangential_damping=0.1),
    SimpleNamespace(cutoff=1.25),
]


def on_device(array: np.ndarray, address: int) -> SimpleNamespace:
    """Make a stand-in for a device array at an address."""
    attributes = {name: getattr(array, name) for name in ("dtype", "ndim", "shape", "size")}
    return SimpleNamespace(data=SimpleNamespace(ptr=address), **attributes)


def law_as_c_reads_it(real, pair: tuple[str, ...]) -> type[ctypes.Structure]:
    """Make the ctypes struct of `md.observe.pair_tally`."""

    class Pair(ctypes.Structure):
        _fields_ = [(name, real) for name in pair]

    class Law(ctypes.Structure):
        _fields_ = [
            ("reach2", real),
            ("radius", ctypes.c_uint64),
            ("dt", ctypes.c_double),
            *((name, ctypes.c_uint64) for name in ("energy", "touching", "started")),
            *([("pair", Pair)] if pair else []),
        ]

    return Law


@pytest.mark.parametrize(("precision", "real"), [(np.float32, ctypes.c_float), (np.float64, ctypes.c_double)])
@pytest.mark.parametrize("wrapped", LAWS)
def test_a_law_that_wraps_another_is_passed_with_its_parameters(precision, real, wrapped):
    has_energy = hasattr(wrapped, "potential")
    measure = PairTally(wrapped, 0.5, 7, Cpu()).scaled_to_radii(on_device(np.empty(0, precision), 0))
    for address, name in ((80, "energy"), (96, "touching"), (112, "started")):
        setattr(measure, name, on_device(getattr(measure, name), address))
    calls = []

    def compiled(code):
        assert compile_cubin(code).startswith(b"\x7fELF")
        return SimpleNamespace(get_function=lambda name: lambda *call: calls.append(call))

    grid = CellGrid(md.Box((5, 5, 5)), wrapped.cutoff, precision, Cpu())
    rows = on_device(np.zeros((7, 3), precision), 16)
    no_order = on_device(np.empty(0, np.int32), 0)
    launcher = Launcher("md.search.grid.naive", measure, "aos4", compiled)
    launcher.force(7, rows, rows, no_order, grid.record, kernel_law(measure, precision), rows)

    ((_, _, values),) = calls
    numbers = kernel_law(wrapped, precision) if has_energy else ()
    pair = getattr(numbers, "_fields", ())
    kind = law_as_c_reads_it(real, pair)
    assert values[-2].nbytes == ctypes.sizeof(kind)
    law = kind.from_buffer_copy(values[-2].tobytes())
    assert (law.reach2, law.dt, law.energy, law.touching, law.started) == (1.5625, 0.5, 80, 96, 112)
    assert not law.radius
    for name in pair:
        assert getattr(law.pair, name) == getattr(numbers, name)


@pytest.mark.parametrize(
    ("kernel", "block", "shared"),
    [("push_none", 256, {}), ("push_local", 256, {}), ("push_shared", 64, {"shared_mem": 40 * 64 * 4})],
)
def test_a_narrow_kernel_gets_blocks_of_64_with_its_entries_in_shared_memory(kernel, block, shared):
    calls = []

    def launch(grid, threads, values, **more):
        calls.append((grid, threads, more))

    def compiled(code):
        return SimpleNamespace(get_function=lambda name: launch)

    n, law = 300, LAWS[0]
    rows, words = on_device(np.zeros((n, 3), np.float32), 16), on_device(np.zeros(n, np.int32), 32)
    reach = np.zeros(1, np.dtype([(name, np.float32) for name in ("reach", "reach2", "leaf2")], align=True))
    nodes = on_device(np.zeros((4 * n - 2, 4), np.float32), 64)
    grid = CellGrid(md.Box((5, 5, 5)), 1.0, np.float32, Cpu()).record
    launcher = Launcher("md.search.bvh.reflexive", law, "aos4", compiled)
    tree = words, nodes, words, reach, grid, kernel_law(law, np.float32)
    getattr(launcher, kernel)(n, 1, 40, rows, rows, *tree, words, rows)
    assert calls == [((-(-n // block),), (block,), shared)]


def test_only_marked_kernels_have_another_block_size():
    stems = ("lists.list_search", "bvh.reflexive", "bvh.lbvh")
    found = {stem: blocks(file_of(f"md.search.{stem}", ".cu").read_text()) for stem in stems}
    shared = {f"{kind}_shared": "NARROW" for kind in ("gather", "push", "sum")}
    assert found == {"lists.list_search": {"force": "HALF_BLOCKS"}, "bvh.reflexive": shared, "bvh.lbvh": {}}
