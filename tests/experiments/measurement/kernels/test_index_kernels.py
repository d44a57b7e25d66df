"""Kernels that take elements by an index: on the host, on the CPU, and as a compiler makes them."""

import re

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st
from scipy.sparse import csr_array

from experiments.loads.index import gather_loads, scatter_loads, spmv_loads
from experiments.measurement.correctness import WrongResultError
from experiments.measurement.kernels import index_kernels
from experiments.measurement.kernels.index_kernels import BLOCK, LAUNCHES, REGISTERS, Gather, Scatter, Spmv
from md.backend import Cpu
from md.backend.kernels.source import block_of
from sfc.cache.loads import ADDED, READ, WRITTEN
from tests.md.cavity.strategies.emulated_cuda import Compiling, EmulatedCuda
from tests.nvrtc import compiled, instructions

DEVICES = {"cpu": Cpu(), "cuda": EmulatedCuda()}
SIZES = [(name, size) for name, sizes in REGISTERS.items() for size in sizes]
REGISTER_FILE, FULL = 2**16, 2048  # registers, and threads, of a multiprocessor


def index_of(n: int, reads: int, rows: int, seed: int = 0) -> np.ndarray:
    return np.random.default_rng(seed).integers(0, rows, (n, reads))


def matrix_of(rows: int, columns: int, seed: int = 0, dtype: str = "float64") -> csr_array:
    random = np.random.default_rng(seed)
    there = random.random((rows, columns)) < 0.3 * random.random((rows, 1))
    return csr_array((there * random.standard_normal((rows, columns))).astype(dtype))


def made(name: str, size: int, backend, n: int = 300, seed: int = 0):
    """A workload, and the loads of its kernel."""
    if name == "gather":
        index = index_of(n, 5, 70, seed)
        return Gather(backend, index, size, seed), gather_loads(index, size)
    if name == "scatter":
        index = index_of(n, 1, 20, seed)[:, 0]
        return Scatter(backend, index, size, seed), scatter_loads(index, size)
    matrix = matrix_of(n, 40, seed, f"float{8 * size}")
    return Spmv(backend, matrix, seed), spmv_loads(matrix)


@pytest.mark.parametrize("place", DEVICES)
@pytest.mark.parametrize("numbers", [1, 2, 4])
def test_gather_is_a_plain_loop(place, numbers):
    @given(st.integers(1, 300), st.integers(1, 6), st.integers(1, 40), st.integers(0, 2**32))
    def check(n, reads, rows, seed):
        index, backend = index_of(n, reads, rows, seed), DEVICES[place]
        x = np.random.default_rng(seed).standard_normal((rows, numbers)).astype("float32")
        given_, y = [index.T.astype("int32"), x], backend.empty(n * numbers, np.float32)
        kernels = backend.kernels(index_kernels.__name__, constants={"NUMBERS": numbers})
        kernels.gather(n, reads, *(backend.upload(one.ravel()) for one in given_), y)
        expected = np.zeros((n, numbers), np.float32)
        for i in range(n):
            for k in range(reads):
                expected[i] += x[index[i, k]]
        assert np.array_equal(backend.download(y).reshape(n, numbers), expected)

    check()


@pytest.mark.parametrize("place", DEVICES)
@pytest.mark.parametrize("dtype", ["float32", "float64"])
def test_scatter_is_a_plain_loop(place, dtype):
    @given(st.integers(1, 300), st.integers(1, 40), st.integers(0, 2**32))
    def check(n, cells, seed):
        index, backend = index_of(n, 1, cells, seed)[:, 0].astype("int32"), DEVICES[place]
        value = np.random.default_rng(seed).integers(-99, 99, n).astype(dtype)
        sums = backend.upload(np.full(cells, 3, dtype))
        kernels = backend.kernels(index_kernels.__name__, constants={})
        kernels.scatter(n, backend.upload(index), backend.upload(value), sums)
        expected = np.full(cells, 3, dtype)
        np.add.at(expected, index, value)
        assert np.array_equal(backend.download(sums), expected)

    check()


@pytest.mark.parametrize("place", DEVICES)
@pytest.mark.parametrize("dtype", ["float32", "float64"])
def test_a_product_with_a_matrix_is_that_of_scipy(place, dtype):
    @given(st.integers(1, 300), st.integers(1, 40), st.integers(0, 2**32))
    def check(rows, columns, seed):
        a, backend = matrix_of(rows, columns, seed, dtype), DEVICES[place]
        x = np.random.default_rng(seed).standard_normal(columns).astype(dtype)
        arrays = (backend.upload(one) for one in (a.indptr, a.indices, a.data, x))
        y = backend.upload(np.full(rows, np.nan, dtype))
        backend.kernels(index_kernels.__name__, constants={}).spmv(rows, *arrays, y)
        assert backend.download(y) == pytest.approx(a @ x, rel=0, abs=40 * 9 * float(np.finfo(dtype).eps))

    check()


@pytest.mark.parametrize("place", DEVICES)
@pytest.mark.parametrize(("name", "size"), SIZES)
def test_right_results_pass_and_one_wrong_number_does_not(place, name, size, monkeypatch):
    one, _ = made(name, size, DEVICES[place])
    with pytest.raises(WrongResultError, match="differ"):
        one.check()  # before the first launch
    one.launch()
    one.launch()
    assert one.launches == 2
    assert one.check() <= (16 * np.finfo(f"f{size}").eps if name == "spmv" else 0)
    download = one.backend.download

    def wrong(array):
        found = download(array)
        found[len(found) // 2] += 1
        return found

    monkeypatch.setattr(one.backend, "download", wrong)
    with pytest.raises(WrongResultError, match=r"by 1; allowed|by 1 of \d+ (numbers|rows)"):
        one.check()


def test_sums_of_launches_are_exact_and_a_missing_launch_is_found():
    one = Scatter(Cpu(), np.zeros(2**18, int))  # of values of 1: 2**24 in 64 launches
    for _ in range(LAUNCHES):
        one.launch()
    assert one.check() == 0
    one.launches -= 1
    with pytest.raises(WrongResultError, match="sums differ from numpy's by 1 of 1 numbers"):
        one.check()
    one.launches += 2
    with pytest.raises(ValueError, match=r"launches since the reset = 65; allowed: .* up to 64.*reset\(\)"):
        one.check()
    one.reset()
    one.launch()
    assert one.check() == 0


class Timed(EmulatedCuda):
    """A device that takes some times for its launches."""

    def __init__(self, *times: float):
        super().__init__()
        self.times = iter(times)

    def between(self, first, second):
        return next(self.times)


@pytest.mark.parametrize("name", REGISTERS)
def test_a_time_is_the_median_without_the_first_launch(name):
    assert made(name, 4, Timed(90.0, 5.0, 1.0, 2.0))[0].time(samples=3) == 2.0


def test_a_sample_is_a_time_that_is_not_checked(monkeypatch):
    one, _ = made("scatter", 4, Timed(*(90.0, 5.0, 1.0, 2.0) * 2))
    monkeypatch.setattr(one, "check", lambda: pytest.fail("checked"))
    assert one.sample(3) == 2.0
    assert one.launches == 4


@pytest.mark.parametrize("name", REGISTERS)
def test_no_time_of_a_wrong_result_is_kept(name, monkeypatch):
    one, _ = made(name, 4, Cpu())
    assert one.time(samples=1) > 0
    monkeypatch.setattr(one, "launch", lambda: setattr(one, "launches", one.launches + 1))
    with pytest.raises(WrongResultError, match="not recorded"):
        one.time(samples=1)


def source_of(name: str, size: int) -> str:
    one, _ = made(name, size, Compiling())
    one.launch()
    return one.backend.sources[name]


@pytest.mark.parametrize(("name", "size"), SIZES)
def test_kernels_compile_and_as_many_fit_as_the_registers_say(name, size):
    code, log = compiled(source_of(name, size))
    assert code.startswith(b"\x7fELF")
    used = int(re.search(r"Used (\d+) registers", log)[1])
    stream = made(name, size, Cpu())[1]
    assert stream.registers == REGISTERS[name][size]
    assert stream.block == block_of(index_kernels.__name__, name).threads == BLOCK
    fit = [min(FULL, REGISTER_FILE // (-(-count // 8) * 8)) for count in (used, stream.registers)]
    assert fit[0] == fit[1]


@pytest.mark.parametrize(("name", "size"), SIZES)
def test_the_code_has_the_loads_of_the_stream(name, size):
    """No loop is unrolled, and a row is one load: those of a thread with one entry are in the code once."""
    index = np.zeros((1, 1), int)
    one_entry = {
        "gather": lambda: gather_loads(index, size),
        "scatter": lambda: scatter_loads(index[0], size),
        "spmv": lambda: spmv_loads(csr_array(np.ones((1, 1), f"f{size}"))),
    }
    expected = one_entry[name]().loads_of(np.arange(1)).kind
    found = instructions(source_of(name, size))
    words = {"ld.global": READ, "st.global": WRITTEN, "atom.global": ADDED, "red.global": ADDED}
    kinds = [words[".".join(one.split(".")[:2])] for one in found if one.startswith(tuple(words))]
    assert kinds == expected.tolist()
    wide = {4: "f32", 8: "v2.f32", 16: "v4.f32"}[size] if name == "gather" else f"f{8 * size}"
    assert sum(one.endswith(wide) for one in found if one.startswith("ld.global")) >= 1


@pytest.mark.parametrize(
    ("call", "message"),
    [
        (lambda: Gather(Cpu(), [[0]], 12), r"row_bytes = 12 bytes; allowed: 4, 8, 16; split or pad"),
        (lambda: Gather(Cpu(), [[0, -1]]), r"index\[0, 1\] = -1; allowed: .* at least 0.*from 0 on"),
        (lambda: Gather(Cpu(), [[2**31 - 1]]), r"index\[0, 0\] = 2147483647; allowed: .* up to 2147483646"),
        (lambda: Gather(Cpu(), [0, 1]), r"index of shape \(2,\); allowed: \(n, k\)"),
        (lambda: Gather(Cpu(), [[0.5]]), r"index of dtype float64; allowed: an array of integers"),
        (lambda: Gather(Cpu(), np.empty((0, 3), int)), "entries of index = 0; allowed: .* at least 1"),
        (lambda: Gather(Cpu(), np.zeros((1, 2**16 + 1), int)), "reads = k of the index = 65537; allowed"),
        (lambda: Gather(Cpu(), [[2**31 - 2]], 16), "a gather: .* are needed; allowed: .*take fewer rows"),
        (lambda: Gather(Cpu(), [[0]], seed=-1), "seed = -1; allowed"),
        (lambda: Scatter(Cpu(), [0], 16), "size = 16 bytes; allowed: 4, 8"),
        (lambda: Scatter(Cpu(), np.zeros(2**18 + 1, int)), "items of one sum = 262145; .* take size 8"),
        (lambda: Scatter(Cpu(), []), "entries of index = 0"),
        (
            lambda: Spmv(Cpu(), csr_array(np.eye(3, dtype=int))),
            "matrix of int64; allowed: float32 or float64",
        ),
        (lambda: Spmv(Cpu(), csr_array((0, 3))), "rows of the matrix = 0; allowed"),
        (lambda: Scatter(Cpu(), [0]).time(LAUNCHES), "samples = 64; allowed: .* up to 63"),
    ],
)
def test_bad_input_is_named_with_what_is_allowed(call, message, monkeypatch):
    monkeypatch.setattr(Cpu, "free_memory", lambda self: 2**30)
    with pytest.raises(ValueError, match=message):
        call()


def test_a_matrix_of_another_class_is_refused():
    with pytest.raises(TypeError, match=r"csr_array.*make csr_array\(matrix\)"):
        Spmv(Cpu(), np.eye(3))


@pytest.mark.gpu
@pytest.mark.parametrize(("name", "size"), SIZES)
def test_a_device_computes_what_numpy_does(device, name, size):
    near = np.arange(2**20)
    far = np.random.default_rng(0).permutation(near)
    for index in (near, far):
        if name == "gather":
            one = Gather(device, np.stack([index, index[::-1]], axis=1), size)
        elif name == "scatter":
            one = Scatter(device, index, size)
        else:
            begin = np.arange(len(index) + 1)
            one = Spmv(device, csr_array((np.ones(len(index), f"f{size}"), index, begin)))
        assert one.time() > 0  # raises an error if the result is another
