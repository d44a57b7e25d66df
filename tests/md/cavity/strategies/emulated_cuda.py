"""A CUDA backend whose kernels are compiled for the host and run there, all threads of a block as fibers."""

import ctypes
import re
from collections.abc import Callable, Mapping
from types import SimpleNamespace
from typing import Any

import numpy as np
from numpy.lib.mixins import NDArrayOperatorsMixin

from md.backend import Cpu
from md.backend.kernels.launcher import Launcher
from md.backend.kernels.source import file_of, parameters
from tests.kernel_calls import call
from tests.on_host.build import built

ON_HOST = {  # headers with instructions of the device, and what stands for their first part on the host
    "exchanged_words.cuh": """
template <class From, class To> void load_words(unsigned when, From* from, To& to) {
    if (when) memcpy(&to, from, sizeof to);
}
template <class To, class From> void store_words(unsigned when, To* to, From& from) {
    if (when) memcpy(to, &from, sizeof from);
}
inline void add_difference(unsigned& wrong, unsigned word, unsigned tag) { wrong |= word ^ tag; }
inline void add_masked(unsigned& late, unsigned part, unsigned mask) { late |= part & mask; }
__device__ """,
    "double_cores.cuh": """
struct Operands {
    double a[4], b[2];
};
inline void add_product(double (&sum)[4], const double (&a)[4], const double (&b)[2]) {
    int lane = threadIdx.x % 32;
    auto all = of_all_lanes(Operands{{a[0], a[1], a[2], a[3]}, {b[0], b[1]}});
    for (int i = 0; i < 4; ++i) {
        int column = 2 * (lane % 4) + i % 2;
        for (int k = 0; k < 8; ++k) {
            sum[i] += all[lane / 4 * 4 + k % 4].a[i / 2 + 2 * (k / 4)] * all[column * 4 + k % 4].b[k / 4];
        }
    }
}
#line""",
}
LAUNCH = """
static void** values;
static void call() {{ {name}({arguments}); }}
extern "C" void launch(int blocks, int at_once, int threads, size_t bytes, void** given) {{
    values = given;
    gridDim.x = blocks;
    for (int first = 0; first < blocks; first += at_once) run_blocks(first, at_once, threads, bytes, call);
}}
"""


class HostArray(NDArrayOperatorsMixin):
    """An array that the launcher takes for one on a device: it has an address, and is no numpy array.

    As with an array of cupy, an operation on it and a numpy array is an error.
    """

    def __init__(self, host: np.ndarray):
        self.host, self.data = host, SimpleNamespace(ptr=host.ctypes.data)
        self.dtype, self.ndim, self.shape, self.size = host.dtype, host.ndim, host.shape, host.size

    def __len__(self) -> int:
        return len(self.host)

    def __getitem__(self, key: Any) -> "HostArray":
        return HostArray(self.host[key.host if isinstance(key, HostArray) else key])

    def __setitem__(self, key: Any, values: "HostArray") -> None:
        self.host[key.host if isinstance(key, HostArray) else key] = values.host

    def __array_ufunc__(self, ufunc: np.ufunc, method: str, *inputs: Any, out: Any = None) -> Any:
        if method != "__call__" or any(isinstance(value, np.ndarray) for value in inputs):
            return NotImplemented
        result = ufunc(*(one.host if isinstance(one, HostArray) else one for one in inputs))
        if out is None:
            return HostArray(result)
        out[0].host[...] = result
        return out[0]

    @property
    def T(self) -> "HostArray":  # noqa: N802  # as numpy names it
        return HostArray(self.host.T)

    def view(self, dtype: Any) -> "HostArray":
        return HostArray(self.host.view(dtype))

    def astype(self, dtype: Any) -> "HostArray":
        return HostArray(self.host.astype(dtype))

    def min(self) -> Any:
        return self.host.min()

    def max(self) -> Any:
        return self.host.max()

    def copy(self) -> "HostArray":
        return HostArray(self.host.copy())


class Kernel:
    """A compiled kernel, as cupy's `RawKernel` is called."""

    def __init__(self, library: ctypes.CDLL, at_once: int | None):
        self._library, self._at_once = library, at_once

    def __call__(self, grid: tuple, block: tuple, values: tuple, shared_mem: int = 0, **_: Any) -> None:
        self._launch(grid[0], 1, block[0], values, shared_mem)

    def kernel(
        self,
        grid: tuple,
        block: tuple,
        values: tuple,
        *,
        enable_cooperative_groups: bool,
        shared_mem: int = 0,
    ) -> None:
        """Run all blocks at once."""
        assert enable_cooperative_groups
        self._launch(grid[0], self._at_once or grid[0], block[0], values, shared_mem)

    def _launch(self, blocks: int, at_once: int, threads: int, values: tuple, shared: int) -> None:
        kept = [np.ascontiguousarray(value) for value in values]
        addresses = (ctypes.c_void_p * len(kept))(*(value.ctypes.data for value in kept))
        self._library.launch(blocks, at_once, threads, ctypes.c_size_t(shared), addresses)


class EmulatedCuda(Cpu):
    """Backend "cuda" on the host.

    Args:
        resident_blocks: of the device that is emulated.
    """

    name = "cuda"
    default_layout = "aos4"
    resident_blocks = 1
    staging_memory = 227 * 1024
    at_once: int | None = None  # blocks of a resident kernel; None for all

    def __init__(self, resident_blocks: int = 132):
        super().__init__("aos4")
        self.resident_blocks = resident_blocks
        self.launched: list[str] = []  # names of kernels, in the order of their launches

    def upload(self, array: np.ndarray) -> HostArray:
        return HostArray(np.array(array, order="C"))

    def download(self, array: HostArray) -> np.ndarray:
        return array.host.copy()

    def empty(self, shape: Any, dtype: Any) -> HostArray:
        return HostArray(np.full(shape, 77, dtype))

    def zeros(self, shape: Any, dtype: Any) -> HostArray:
        return HostArray(np.zeros(shape, dtype))

    def fill(self, array: HostArray, value: Any) -> None:
        array.host.fill(value)

    def record(self, work: Callable[[], None]) -> Callable[[], None]:
        return work

    def kernels(self, stem: str, law: Any = None, constants: Mapping[str, int] | None = None) -> Launcher:
        text = file_of(stem, ".cu").read_text()

        def compiled(code: str) -> SimpleNamespace:
            return SimpleNamespace(get_function=lambda name: self._compile(text, code, name))

        return Launcher(stem, law, self.layout, compiled, constants, call)

    def _compile(self, text: str, code: str, name: str) -> Kernel:
        types = [parameter.type for parameter in parameters(text)[name]]
        arguments = ", ".join(f"*({kind}*)values[{k}]" for k, kind in enumerate(types))
        for header, replacement in ON_HOST.items():
            end = "#line|__device__ (?=__forceinline__ unsigned word_of)"
            pattern = rf'(#line 1 "[^"]*{header}").*?(?:{end})'
            code = re.sub(pattern, lambda m, r=replacement: m[1] + r, code, flags=re.DOTALL)
        code = code.replace("extern __shared__ uint4 memory[];", "uint4* memory = shared_memory();")
        code = f"#define MOST_POLLS 3000\n{code}\n{LAUNCH.format(name=name, arguments=arguments)}"
        library = built("grid_on_host.h", code, name, is_library=True)
        return Kernel(ctypes.CDLL(str(library)), self.at_once)


class Compiling(EmulatedCuda):
    """A device that keeps the sources of its kernels, and runs none."""

    def __init__(self):
        super().__init__()
        self.sources = {}

    def _compile(self, text, code, name):
        self.sources[name] = code
        return lambda *_, **__: None
