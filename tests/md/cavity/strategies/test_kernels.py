"""The kernels of the cavity compile for a device, and the launcher starts them as they need."""

from types import SimpleNamespace

import numpy as np
import pytest

import md
from md.backend.kernels.launcher import Launcher
from md.cavity import STRATEGIES
from tests.kernel_calls import call
from tests.md.cavity.strategies.emulated_cuda import EmulatedCuda
from tests.nvrtc import compile_cubin
from tests.tiers import full, product

ON_DEVICE = [name for name, one in STRATEGIES.items() if "cuda" in one.backends]


class Compiling(EmulatedCuda):
    """A device whose kernels are compiled for it and not run."""

    def _compile(self, text, code, name):
        assert compile_cubin(code).startswith(b"\x7fELF")
        self.compiled.append(name)
        started = lambda *_, **__: None  # noqa: E731 - stands for a kernel
        return SimpleNamespace(__call__=started, kernel=started) if name == "advance" else started


@pytest.mark.parametrize(
    ("strategy", "precision"), product(ON_DEVICE, ["float64", "float32"], every=2, others=full)
)
def test_the_kernels_compile_for_a_device(strategy, precision):
    device = Compiling()
    device.compiled = []
    cavity = md.Cavity((41, 41), viscosity=0.1, strategy=strategy, backend=device, precision=precision)
    cavity._solver.advance(1)
    kernels = ["tentative", "find_source", "sweep", "correct"]
    assert device.compiled == (kernels if strategy in ("cuda", "tiled") else ["advance"])


class Idle(EmulatedCuda):
    """A device with kernels that do nothing, which notes the sizes of the arrays that the host reads."""

    def __init__(self):
        super().__init__()
        self.read = set()

    def _compile(self, text, code, name):
        return SimpleNamespace(kernel=lambda *_, **__: None) if name == "advance" else lambda *_, **__: None

    def download(self, array):
        self.read.add(array.size)
        return super().download(array)


@pytest.mark.quick
@pytest.mark.parametrize(
    ("strategy", "layout"), [("persistent", "arrays"), ("cuda", "arrays"), ("cuda", "structs")]
)
def test_the_check_of_the_speed_copies_no_field_from_the_device_unless_the_flow_is_fast(strategy, layout):
    device = Idle()
    made = md.Cavity((20, 70), viscosity=0.1, strategy=strategy, layout=layout, backend=device)
    made.run(40)
    assert device.read == {2} or layout == "structs"  # the status alone
    fast = np.zeros((20, 70))
    fast[3, 4] = -1e3
    made.set_fields(v=fast)
    with pytest.warns(md.UnstableTimeStep, match="the speed of 1000 at step"):
        made.run(1)


@pytest.mark.quick
@pytest.mark.parametrize("strategy", ["persistent", "spectral"])
def test_a_pressure_without_its_boundary_values_is_refused_and_nothing_set(strategy):
    made = md.Cavity((9, 9), viscosity=0.1, strategy=strategy, backend=Idle())
    p = np.zeros((9, 9))
    p[0, 4] = 2.0
    with pytest.raises(ValueError, match=r"p = 2.0 at row 0, column 4; allowed: the boundary value 0"):
        made.set_fields(p=p, u=np.ones((9, 9)))
    assert not made.p.any()
    assert not made.u.any()


def test_a_resident_kernel_is_started_with_all_its_blocks_and_its_shared_memory():
    calls = []
    kernel = SimpleNamespace(kernel=lambda *call, **options: calls.append((call, options)))
    module = SimpleNamespace(get_function=lambda name: kernel)
    codes = []
    constants = {"RESIDENT_THREADS": 96, "POINTS": 3}
    launcher = Launcher(
        "md.cavity.strategies.spectral",
        None,
        "aos4",
        lambda code: codes.append(code) or module,
        constants,
        call,
    )
    numbers = md.Cavity(viscosity=0.1, backend="cpu", strategy="numpy").scheme.coefficients
    word = SimpleNamespace(dtype=np.dtype(np.int32), ndim=1, shape=(1,), size=0)
    launcher.advance(192, 60_000, 7, numbers, numbers, word)
    (((grid, block, _), options),) = calls
    assert (grid, block) == ((2,), (96,))
    assert options == {"enable_cooperative_groups": True, "shared_mem": 60_000}
    assert kernel.max_dynamic_shared_size_bytes == 60_000
    assert "#define POINTS 3\n" in codes[0]
