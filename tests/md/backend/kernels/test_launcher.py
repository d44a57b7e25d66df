"""The CUDA launcher without a device: the source compiles, and structs arrive as C reads them."""

import ctypes
import importlib
import re
import sys
from importlib import import_module
from types import SimpleNamespace

import numpy as np
import pytest

import md
from md.backend import Cpu
from md.backend.kernels.launcher import Launcher, kind_of
from md.backend.kernels.on_device import OnDevice
from md.backend.kernels.source import ROOT, block_of
from md.errors import BackendUnavailableError
from md.laws.pair import kernel_law
from md.observe.pair_tally import PairTally
from md.particles.cell_grid import CellGrid
from tests.kernel_calls import call
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
    launcher = Launcher("md.search.grid.naive", measure, "aos4", compiled, None, call)
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
def test_a_kernel_is_launched_with_the_blocks_that_its_module_declares(kernel, block, shared):
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
    launcher = Launcher("md.search.bvh.reflexive", law, "aos4", compiled, None, call)
    tree = words, nodes, words, reach, grid, kernel_law(law, np.float32)
    getattr(launcher, kernel)(n, 1, 40, rows, rows, *tree, words, rows)
    assert calls == [((-(-n // block),), (block,), shared)]


@pytest.mark.parametrize(
    ("argument", "kind"),
    [
        (3, "number"),
        (np.float32(3), "number"),
        (np.ones(1), "number"),
        (on_device(np.ones(1), 16), "array"),
        (np.zeros(1, [("reach", np.float32)]), "record"),
        (kernel_law(LAWS[0], np.float32), "fields"),
    ],
)
def test_an_argument_is_passed_by_its_kind(argument, kind):
    assert kind_of(argument) == kind


def block_without(kernel: str, monkeypatch) -> None:
    """Read the declaration of a kernel that has none."""
    stem, _, name = kernel.rpartition(".")
    module = import_module(stem)
    twin = getattr(module, name)
    if isinstance(twin, OnDevice):
        monkeypatch.delattr(module, name)
    else:
        monkeypatch.delattr(twin, "on_device")
    block_of(stem, name)


@pytest.mark.parametrize(
    ("kernel", "message"),
    [
        (
            "md.search.grid.coherent.force",
            r"kernel 'force' of coherent\.cu has `BLOCKS\(12\)` before its name, and coherent\.py .*"
            r"@OnDevice\(threads=<of a block>\)",
        ),
        ("md.search.lists.listing.list_partners", r"list_partners = OnDevice\(threads=<of a block>\)"),
        ("md.search.bvh.reflexive.push_shared", "kernel 'push_shared' of reflexive.cu has `NARROW` before"),
    ],
)
def test_a_kernel_without_the_declaration_that_its_source_needs_is_refused(kernel, message, monkeypatch):
    with pytest.raises(BackendUnavailableError, match=message):
        block_without(kernel, monkeypatch)


USER_KERNEL = """extern "C" __global__ void {bounds}force(int n, int room, real* out) {{
    {memory}
}}
"""
SHARED = "extern __shared__ int memory[];"


@pytest.fixture
def user_module(tmp_path, monkeypatch):
    """Return a function that writes a user's module and its CUDA kernel `force`, and makes the launcher."""

    def make(python: str, bounds: str = "", memory: str = "") -> Launcher:
        (tmp_path / "of_user.py").write_text(f"from md.backend import OnDevice\n{python}\n")
        (tmp_path / "of_user.cu").write_text(USER_KERNEL.format(bounds=bounds, memory=memory))
        monkeypatch.syspath_prepend(tmp_path)
        importlib.invalidate_caches()

        def compiled(code):
            assert compile_cubin(code).startswith(b"\x7fELF")
            return SimpleNamespace(get_function=lambda name: kernel)

        return Launcher(
            "of_user", None, "aos4", compiled, {"WIDTH": 96}, start=lambda *call: calls.append(call[1:])
        )

    calls: list = []
    kernel = SimpleNamespace(max_dynamic_shared_size_bytes=48 * 1024)
    make.calls, make.kernel = calls, kernel
    yield make
    sys.modules.pop("of_user", None)


@pytest.mark.parametrize(
    ("declaration", "threads", "bytes"),
    [
        ("OnDevice(64, shared=lambda room: 8 * room)", 64, 24),
        ("OnDevice('WIDTH', shared=lambda room, n: room + n)", 96, 103),
    ],
)
def test_a_user_declares_the_blocks_of_a_kernel(user_module, declaration, threads, bytes):
    launcher = user_module(f"force = {declaration}", "__launch_bounds__(BLOCK_THREADS) ", SHARED)
    launcher.force(100, 3, on_device(np.zeros((100, 3), np.float32), 16))
    ((blocks, found, _, shared, is_resident),) = user_module.calls
    assert (blocks, found, shared, is_resident) == (2, threads, bytes, False)


def test_a_device_is_asked_for_more_shared_memory_than_it_gives_unasked(user_module):
    launcher = user_module("force = OnDevice(64, shared=lambda room: room)", memory=SHARED)
    allowed = []
    for room in (100, 49_000, 50_000, 60_000, 40_000):
        launcher.force(100, room, on_device(np.zeros((100, 3), np.float32), 16))
        allowed.append(user_module.kernel.max_dynamic_shared_size_bytes)
    assert allowed == [49_152, 49_152, 50_000, 60_000, 60_000]


def test_the_declaration_of_the_page_for_users_is_read(user_module):
    page = (ROOT / "md" / "EXTENDING.md").read_text()
    (example,) = re.findall(r"```python\n(@md\.backend\.OnDevice.*?)```", page, re.DOTALL)
    python = f"import md\nfrom sfc.compile import kernel\n{example}    pass"
    launcher = user_module(python, "BLOCKS(8) ", SHARED)
    launcher.force(300, 3, on_device(np.zeros((300, 3), np.float32), 16))
    ((blocks, threads, _, shared, _),) = user_module.calls
    assert (blocks, threads, shared) == (3, 128, 4 * 128 * 3)


@pytest.mark.parametrize(
    ("python", "source", "message"),
    [
        (
            "",
            {"memory": SHARED},
            "kernel 'force' of of_user.cu has `extern __shared__`, and of_user.py .*shared=",
        ),
        (
            "force = OnDevice()",
            {"memory": SHARED},
            "has `extern __shared__`, and of_user.py does not declare",
        ),
        ("", {"bounds": "__launch_bounds__(64, 2) "}, r"has `__launch_bounds__\(64, 2\)` before its name"),
    ],
)
def test_a_user_gets_the_file_and_the_remedy_for_a_missing_declaration(user_module, python, source, message):
    with pytest.raises(BackendUnavailableError, match=message):
        getattr(user_module(python, **source), "force")  # noqa: B009  # it is a function of the launcher


@pytest.mark.parametrize(
    ("declaration", "message"),
    [
        ("OnDevice('HEIGHT')", r"kernel 'force' in of_user names HEIGHT; .*a constant \(WIDTH\)"),
        ("OnDevice(shared=lambda rows: 4 * rows)", r"names rows; .*parameters .*\(n, room, out\)"),
    ],
)
def test_a_declaration_of_unknown_names_lists_the_known_ones(user_module, declaration, message):
    with pytest.raises(TypeError, match=message):
        getattr(user_module(f"force = {declaration}"), "force")  # noqa: B009


@pytest.mark.parametrize(("threads", "error"), [(0, ValueError), (1025, ValueError), (64.5, TypeError)])
def test_threads_that_no_device_runs_are_refused(threads, error):
    with pytest.raises(error, match=f"threads of OnDevice.*{threads}"):
        OnDevice(threads)
